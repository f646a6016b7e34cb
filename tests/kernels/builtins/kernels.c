// The kernels of a group, as text. All have the same parameters, so that one launch serves all.
#include <ctype.h>
#include <string.h>

#include "tests/kernels/builtins/table.h"

static void print_type(FILE *file, char letter, enum type type, unsigned width)
{
    const bool vector = width > 1 && !letter_is_scalar(letter);
    fputs(type_name(letter_type(letter, type, width > 1)), file);
    if (vector)
        fprintf(file, "%u", width);
}

static void print_form(FILE *file, const struct row *row, enum type type, unsigned width)
{
    for (const char *at = row->form; *at != '\0'; at++) {
        if (*at == '$')
            print_type(file, *++at, type, width);
        else
            fputc(*at, file);
    }
}

static void print_load(FILE *file, const struct row *row, enum type type, unsigned width,
                       unsigned number)
{
    const char letter = row->arguments[number];
    fprintf(file, "        const ");
    print_type(file, letter, type, width);
    if (width > 1 && !letter_is_scalar(letter))
        fprintf(file, " %c = vload%u(0, %c + i);\n", 'a' + number, width, 'A' + number);
    else
        fprintf(file, " %c = %c[i];\n", 'a' + number, 'A' + number);
}

static void print_width(FILE *file, const struct row *row, enum type type, unsigned index)
{
    const unsigned width = widths[index];
    fprintf(file, "#pragma unroll 1\n    for (uint i = at; i + %u <= at + %u; i += %u) {\n", width,
            CHUNK, width);
    for (unsigned k = 0; row->arguments[k] != '\0'; k++)
        print_load(file, row, type, width, k);
    fprintf(file, "        const ");
    print_type(file, row->result, type, width);
    fprintf(file, " r = ");
    print_form(file, row, type, width);
    if (width > 1)
        fprintf(file, ";\n        vstore%u(r, 0, R + %u + i);\n    }\n", width, index * COUNT);
    else
        fprintf(file, ";\n        R[i] = r;\n    }\n");
}

// One function: a case of the kernel.
static void print_row(FILE *file, const struct row *row, enum type type, size_t number)
{
    fprintf(file, "    case %zu: {\n", number);
    for (unsigned k = 0; row->arguments[k] != '\0'; k++)
        fprintf(file, "    __global const %s *%c = arguments_%c;\n",
                type_name(letter_type((char)toupper(row->arguments[k]), type, true)), 'A' + k,
                'a' + k);
    fprintf(file, "    __global %s *R = results;\n",
            type_name(letter_type(row->result, type, true)));
    for (unsigned i = 0; i < WIDTHS; i++)
        print_width(file, row, type, i);
    fputs("    break;\n    }\n", file);
}

bool group_has(const struct group *group, enum type type)
{
    for (size_t i = 0; i < group->count; i++)
        if (group->rows[i].types >> type & 1)
            return true;
    return false;
}

void print_kernel(FILE *file, const struct group *group, enum type type)
{
    fprintf(file,
            "__kernel void run(__global const void *arguments_a, __global const void *arguments_b, "
            "__global const void *arguments_c, __global void *results, uint function)\n{\n"
            "    const uint at = (uint)get_global_id(0) * %u;\n    switch (function) {\n",
            CHUNK);
    for (size_t i = 0; i < group->count; i++)
        if (group->rows[i].types >> type & 1)
            print_row(file, &group->rows[i], type, i);
    fputs("    }\n}\n", file);
}
