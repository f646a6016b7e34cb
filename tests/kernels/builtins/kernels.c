// The kernels of a group, as text. All have parameters of the same kinds, so that one launch serves
// all. A function has a kernel of its own: compilers take longer for all of them in one.
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

static void print_form(FILE *file, const struct row *row, enum type type, unsigned index)
{
    for (const char *at = row->form; *at != '\0'; at++) {
        if (*at != '$')
            fputc(*at, file);
        else if (*++at == 'R')
            fprintf(file, "(R + %u + i)", index * COUNT);
        else if (*at != 'N')
            print_type(file, *at, type, widths[index]);
        else if (widths[index] > 1)
            fprintf(file, "%u", widths[index]);
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

// A second result is at *s, and goes to Q.
static void print_second(FILE *file, const struct row *row, enum type type, unsigned index)
{
    static const char *const spaces[] = {
        [PRIVATE] = "__private", [LOCAL] = "__local", [GLOBAL] = "__global"};
    const unsigned width = widths[index];
    if (row->space == PRIVATE) {
        fprintf(file, "        ");
        print_type(file, row->second, type, width);
        fprintf(file, " kept;\n");
    }
    fprintf(file, "        %s ", spaces[row->space]);
    print_type(file, row->second, type, width);
    fprintf(file, " *s = (%s ", spaces[row->space]);
    print_type(file, row->second, type, width);
    if (row->space == GLOBAL)
        fprintf(file, " *)(Q + %u + i);\n", index * COUNT);
    else
        fprintf(file, " *)&%s;\n", row->space == LOCAL ? "shared" : "kept");
}

static void print_store(FILE *file, const char *what, const char *to, unsigned width,
                        unsigned index)
{
    if (width > 1)
        fprintf(file, "        vstore%u(%s, 0, %s + %u + i);\n", width, what, to, index * COUNT);
    else
        fprintf(file, "        %s[i] = %s;\n", to, what);
}

static void print_result(FILE *file, const struct row *row, enum type type, unsigned index)
{
    fprintf(file, "        ");
    if (!row->statement) {
        fprintf(file, "const ");
        print_type(file, row->result, type, widths[index]);
        fprintf(file, " r = ");
    }
    print_form(file, row, type, index);
    fprintf(file, ";\n");
    if (!row->statement)
        print_store(file, "r", "R", widths[index], index);
}

static void print_width(FILE *file, const struct row *row, enum type type, unsigned index)
{
    const unsigned width = widths[index];
    fprintf(file, "#pragma unroll 1\n    for (uint i = at; i + %u <= at + %u; i += %u) {\n", width,
            CHUNK, width);
    for (unsigned k = 0; row->arguments[k] != '\0' && !row->in_place; k++)
        print_load(file, row, type, width, k);
    if (row->second)
        print_second(file, row, type, index);
    print_result(file, row, type, index);
    if (row->second)
        print_store(file, "*s", "Q", width, index);
    fprintf(file, "    }\n");
}

// Compilers take long for all widths of all types of integers: int has all of them, and each other
// type two.
bool row_has_width(const struct row *row, enum type type, unsigned index)
{
    static const unsigned some[TYPES][2] = {
        [CHAR] = {2, 16}, [UCHAR] = {3, 8}, [SHORT] = {4, 8},  [USHORT] = {2, 3},
        [UINT] = {4, 16}, [LONG] = {3, 8},  [ULONG] = {2, 16},
    };
    const unsigned width = widths[index];
    if (row->widths != 0)
        return row->widths >> index & 1;
    if (row->space != PRIVATE)
        return width == 1 || width == 4;
    return width == 1 || is_real(type) || type == INT || width == some[type][0] ||
           width == some[type][1];
}

static const char *buffer_type(char letter, enum type type)
{
    return type_name(letter_type((char)toupper(letter), type, true));
}

// A kernel takes the arguments' buffers, of which some are unused, and that of the results.
static void print_kernel(FILE *file, const struct row *row, enum type type)
{
    const size_t count = strlen(row->arguments);
    fprintf(file, "__kernel void test_%s(", row->name);
    for (size_t k = 0; k < ARGUMENTS; k++)
        fprintf(file, "__global const %s *%c, ",
                buffer_type(k < count ? row->arguments[k] : 'T', type), (char)('A' + k));
    fprintf(file, "__global %s *R)\n{\n    const uint at = (uint)get_global_id(0) * %d;\n",
            buffer_type(row->result, type), CHUNK);
    if (row->second)
        fprintf(file, "    __global %s *Q = (__global void *)((__global char *)R + %d);\n",
                buffer_type(row->second, type), SECOND_AT);
    if (row->space == LOCAL)
        fprintf(file, "    __local ulong16 shared;\n");
    for (unsigned i = 0; i < WIDTHS; i++)
        if (row_has_width(row, type, i))
            print_width(file, row, type, i);
    fputs("}\n\n", file);
}

bool group_has(const struct group *group, enum type type)
{
    for (size_t i = 0; i < group->count; i++)
        if (group->rows[i].types >> type & 1)
            return true;
    return false;
}

void print_kernels(FILE *file, const struct group *group, enum type type)
{
    for (size_t i = 0; i < group->count; i++)
        if (group->rows[i].types >> type & 1)
            print_kernel(file, &group->rows[i], type);
}
