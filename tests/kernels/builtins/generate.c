// generate TYPE: writes the kernels of the functions of the type to standard output.
// generate --list TYPE...: writes a table of the groups in the programs of these types, in C.
#include <ctype.h>

#include "tests/kernels/builtins/table.h"

// The kernels of a group. All have the same parameters, a buffer for each argument, one for the results, and which
// call it is: a row's place in the kernel times WIDTHS, plus the index of the width; so one launch serves all. A
// work-item makes a vector. A kernel has several functions, each in a case for each width: PoCL takes about as long for
// an empty kernel as for a function, and longer for a loop over vectors than for one vector.

static void print_type(char letter, enum type type, unsigned width)
{
    const bool vector = width > 1 && !letter_is_scalar(letter);
    fputs(type_name(letter_type(letter, type, width > 1)), stdout);
    if (vector)
        printf("%u", width);
}

static void print_form(const struct row *row, enum type type, unsigned index)
{
    for (const char *at = row->form; *at != '\0'; at++) {
        if (*at != '$')
            putchar(*at);
        else if (*++at == 'R')
            printf("(R + %u + i)", index * COUNT);
        else if (*at != 'N')
            print_type(*at, type, widths[index]);
        else if (widths[index] > 1)
            printf("%u", widths[index]);
    }
}

static const char *buffer_type(char letter, enum type type)
{
    return type_name(letter_type((char)toupper(letter), type, true));
}

// The buffers as arrays of their types.
static void print_arrays(const struct row *row, enum type type)
{
    for (unsigned k = 0; row->arguments[k] != '\0'; k++)
        printf("        __global const %s *%c = in_%c;\n", buffer_type(row->arguments[k], type),
               'A' + k, 'a' + k);
    printf("        __global %s *R = results;\n", buffer_type(row->result, type));
    if (row->second)
        printf("        __global %s *Q = (__global void *)((__global char *)results + %d);\n",
               buffer_type(row->second, type), SECOND_AT);
}

static void print_load(const struct row *row, enum type type, unsigned width, unsigned number)
{
    const char letter = row->arguments[number];
    printf("        const ");
    print_type(letter, type, width);
    if (width > 1 && !letter_is_scalar(letter))
        printf(" %c = vload%u(0, %c + i);\n", 'a' + number, width, 'A' + number);
    else
        printf(" %c = %c[i];\n", 'a' + number, 'A' + number);
}

// A second result is at *s, and goes to Q.
static void print_second(const struct row *row, enum type type, unsigned index)
{
    static const char *const spaces[] = {
        [PRIVATE] = "__private", [LOCAL] = "__local", [GLOBAL] = "__global"};
    const unsigned width = widths[index];
    if (row->space == PRIVATE) {
        printf("        ");
        print_type(row->second, type, width);
        printf(" kept;\n");
    }
    printf("        %s ", spaces[row->space]);
    print_type(row->second, type, width);
    printf(" *s = (%s ", spaces[row->space]);
    print_type(row->second, type, width);
    if (row->space == GLOBAL)
        printf(" *)(Q + %u + i);\n", index * COUNT);
    else
        printf(" *)&%s;\n", row->space == LOCAL ? "shared" : "kept");
}

static void print_store(const char *what, const char *to, unsigned width, unsigned index)
{
    if (width > 1)
        printf("        vstore%u(%s, 0, %s + %u + i);\n", width, what, to, index * COUNT);
    else
        printf("        %s[i] = %s;\n", to, what);
}

static void print_result(const struct row *row, enum type type, unsigned index)
{
    printf("        ");
    if (!row->statement) {
        printf("const ");
        print_type(row->result, type, widths[index]);
        printf(" r = ");
    }
    print_form(row, type, index);
    printf(";\n");
    if (!row->statement)
        print_store("r", "R", widths[index], index);
}

static void print_width(const struct row *row, enum type type, unsigned index)
{
    const unsigned width = widths[index], count = CHUNK / width;
    print_arrays(row, type);
    printf("        const uint i = at / %u * %d + at %% %u * %u;\n", count, CHUNK, count, width);
    for (unsigned k = 0; row->arguments[k] != '\0' && !row->in_place; k++)
        print_load(row, type, width, k);
    if (row->second)
        print_second(row, type, index);
    print_result(row, type, index);
    if (row->second)
        print_store("*s", "Q", width, index);
}

static void print_row(const struct row *row, enum type type, unsigned place)
{
    printf("    // %s\n", row->name);
    for (unsigned i = 0; i < WIDTHS; i++)
        if (row_has_width(row, type, i)) {
            printf("    case %u: {\n", place % KERNEL_ROWS * WIDTHS + i);
            print_width(row, type, i);
            printf("        break;\n    }\n");
        }
}

// Whether a row of the kernel that begins with `row` has second results in local memory.
static bool needs_local(const struct group *group, enum type type, const struct row *row)
{
    unsigned rows = 0;
    for (; row < group->rows + group->count && rows < KERNEL_ROWS; row++) {
        const bool taken = row->types >> type & 1;
        if (taken && row->space == LOCAL)
            return true;
        rows += taken;
    }
    return false;
}

static void begin_kernel(const struct group *group, enum type type, const struct row *row)
{
    printf("__kernel void %s_%u(__global const void *in_a, __global const void *in_b,\n"
           "                    __global const void *in_c, __global void *results, uint call)\n"
           "{\n"
           "%s"
           "    const uint at = (uint)get_global_id(0);\n"
           "    switch (call) {\n",
           group->name, row_place(group, type, row) / KERNEL_ROWS,
           needs_local(group, type, row) ? "    __local ulong16 shared;\n" : "");
}

static void print_kernels(const struct group *group, enum type type)
{
    unsigned place = 0;
    for (size_t i = 0; i < group->count; i++) {
        if (!(group->rows[i].types >> type & 1))
            continue;
        if (place % KERNEL_ROWS == 0) {
            fputs(place > 0 ? "    }\n}\n\n" : "", stdout);
            begin_kernel(group, type, &group->rows[i]);
        }
        print_row(&group->rows[i], type, place++);
    }
    fputs(place > 0 ? "    }\n}\n\n" : "", stdout);
}

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
        print_kernels(groups[i], type);
}

static void list_programs(char *const *names)
{
    puts("#include \"tests/kernels/builtins/table.h\"\n");
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
