// generate GROUP TYPE: writes the kernels of the group's functions of the type to standard output.
// generate: writes a table of these programs, in C.
#include <string.h>

#include "tests/kernels/builtins/table.h"

static bool generate(const struct group *group, const char *name)
{
    for (enum type type = CHAR; type < TYPES; type++)
        if (strcmp(type_name(type), name) == 0 && group_has(group, type)) {
            print_kernels(stdout, group, type);
            return true;
        }
    return false;
}

static void declare_program(const struct group *group, enum type type)
{
    printf("extern const struct weir_bundle builtins_%s_%s;\n", group->name, type_name(type));
}

static void list_program(const struct group *group, enum type type)
{
    printf("    {\"%s_%s\", &builtins_%s_%s, &%s_group, %d},\n", group->name, type_name(type),
           group->name, type_name(type), group->name, (int)type);
}

static void each_program(void (*print)(const struct group *group, enum type type))
{
    for (size_t i = 0; i < group_count; i++)
        for (enum type type = CHAR; type < TYPES; type++)
            if (group_has(groups[i], type))
                print(groups[i], type);
}

static void list_programs(void)
{
    puts("#include \"tests/kernels/builtins/programs.h\"\n");
    each_program(declare_program);
    puts("\nconst struct program programs[] = {");
    each_program(list_program);
    puts("};\nconst size_t program_count = sizeof programs / sizeof *programs;");
}

int main(int argc, char **argv)
{
    if (argc == 1)
        list_programs();
    for (size_t i = 0; argc == 3 && i < group_count; i++)
        if (strcmp(groups[i]->name, argv[1]) == 0 && generate(groups[i], argv[2]))
            argc = 1;
    if (argc == 1)
        return fflush(stdout) == 0 ? 0 : 1;
    fputs("usage: generate GROUP TYPE\n", stderr);
    return 2;
}
