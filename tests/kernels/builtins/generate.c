// generate TYPE: writes the kernels of the functions of the type to standard output.
// generate --list TYPE...: writes a table of the groups in the programs of these types, in C.
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/builtins/table.h"

static void print_start(enum type type)
{
    if (type_size(type) == 8 && !is_real(type))
        puts("#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n"
             "#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable");
    puts("__constant __attribute__((aligned(8))) uchar constant_bytes[] = {");
    for (unsigned i = 0; i < CONSTANT_BYTES; i++)
        printf("%u,%s", constant_byte(i), i % 16 == 15 ? "\n" : " ");
    puts("};\n");
}

static enum type type_of(const char *name)
{
    for (enum type type = CHAR; type < TYPES; type++)
        if (strcmp(type_name(type), name) == 0)
            return type;
    fprintf(stderr, "generate: '%s' is no type of the table\n", name);
    exit(2);
}

static void generate(enum type type)
{
    print_start(type);
    for (size_t i = 0; i < group_count; i++)
        print_kernels(stdout, groups[i], type);
}

static void list_programs(char *const *names)
{
    puts("#include \"tests/kernels/builtins/programs.h\"\n");
    for (char *const *name = names; *name; name++)
        printf("extern const struct weir_bundle builtins_%s;\n", *name);
    puts("\nconst struct program programs[] = {");
    for (size_t i = 0; i < group_count; i++)
        for (char *const *name = names; *name; name++)
            if (group_has(groups[i], type_of(*name)))
                printf("    {\"%s_%s\", &builtins_%s, &%s_group, %d},\n", groups[i]->name, *name,
                       *name, groups[i]->name, (int)type_of(*name));
    puts("};\nconst size_t program_count = sizeof programs / sizeof *programs;");
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--list") == 0)
        list_programs(argv + 2);
    else if (argc == 2)
        generate(type_of(argv[1]));
    else {
        fputs("usage: generate TYPE, or generate --list TYPE...\n", stderr);
        return 2;
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
