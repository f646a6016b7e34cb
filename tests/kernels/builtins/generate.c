// generate TYPE: writes the kernels of the functions of the type to standard output.
// generate: writes a table of the groups in these programs, in C.
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

static bool generate(const char *name)
{
    for (enum type type = CHAR; type < TYPES; type++)
        if (strcmp(type_name(type), name) == 0) {
            print_start(type);
            for (size_t i = 0; i < group_count; i++)
                print_kernels(stdout, groups[i], type);
            return true;
        }
    return false;
}

static void list_programs(void)
{
    puts("#include \"tests/kernels/builtins/programs.h\"\n");
    for (enum type type = CHAR; type < TYPES; type++)
        printf("extern const struct weir_bundle builtins_%s;\n", type_name(type));
    puts("\nconst struct program programs[] = {");
    for (size_t i = 0; i < group_count; i++)
        for (enum type type = CHAR; type < TYPES; type++)
            if (group_has(groups[i], type))
                printf("    {\"%s_%s\", &builtins_%s, &%s_group, %d},\n", groups[i]->name,
                       type_name(type), type_name(type), groups[i]->name, (int)type);
    puts("};\nconst size_t program_count = sizeof programs / sizeof *programs;");
}

int main(int argc, char **argv)
{
    if (argc == 1)
        list_programs();
    else if (argc != 2 || !generate(argv[1])) {
        fputs("usage: generate [TYPE]\n", stderr);
        return 2;
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
