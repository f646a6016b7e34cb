// The kernels of a group, as text. All have the same parameters, so that one launch serves all. A kernel
// has several functions, each in a case for each width: PoCL takes about as long for an empty kernel as
// for a function, and longer for a loop over vectors than for one vector.
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

static const char *buffer_type(char letter, enum type type)
{
    return type_name(letter_type((char)toupper(letter), type, true));
}

// The buffers as arrays of their types.
static void print_arrays(FILE *file, const struct row *row, enum type type)
{
    for (unsigned k = 0; row->arguments[k] != '\0'; k++)
        fprintf(file, "        __global const %s *%c = in_%c;\n",
                buffer_type(row->arguments[k], type), 'A' + k, 'a' + k);
    fprintf(file, "        __global %s *R = results;\n", buffer_type(row->result, type));
    if (row->second)
        fprintf(file,
                "        __global %s *Q = (__global void *)((__global char *)results + %d);\n",
                buffer_type(row->second, type), SECOND_AT);
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
    const unsigned width = widths[index], count = CHUNK / width;
    print_arrays(file, row, type);
    fprintf(file, "        const uint i = at / %u * %d + at %% %u * %u;\n", count, CHUNK, count,
            width);
    for (unsigned k = 0; row->arguments[k] != '\0' && !row->in_place; k++)
        print_load(file, row, type, width, k);
    if (row->second)
        print_second(file, row, type, index);
    print_result(file, row, type, index);
    if (row->second)
        print_store(file, "*s", "Q", width, index);
}

// Compilers take long for all widths of all types of integers: int has all of them, and each other
// type two. Where only processors are tested, int and the reals have two as well.
bool row_has_width(const struct row *row, enum type type, unsigned index)
{
    static const unsigned some[TYPES][2] = {
        [CHAR] = {2, 16}, [UCHAR] = {3, 8}, [SHORT] = {4, 8},  [USHORT] = {2, 3}, [INT] = {3, 8},
        [UINT] = {4, 16}, [LONG] = {3, 8},  [ULONG] = {2, 16}, [FLOAT] = {3, 4},  [DOUBLE] = {3, 4},
    };
#ifdef BUILTINS_OF_PROCESSORS
    const bool all = false;
#else
    const bool all = is_real(type) || type == INT;
#endif
    const unsigned width = widths[index];
    if (row->widths != 0)
        return row->widths >> index & 1;
    if (row->space != PRIVATE)
        return width == 1 || width == 4;
    return width == 1 || all || width == some[type][0] || width == some[type][1];
}

static void print_row(FILE *file, const struct row *row, enum type type, unsigned place)
{
    fprintf(file, "    // %s\n", row->name);
    for (unsigned i = 0; i < WIDTHS; i++)
        if (row_has_width(row, type, i)) {
            fprintf(file, "    case %u: {\n", place % KERNEL_ROWS * WIDTHS + i);
            print_width(file, row, type, i);
            fprintf(file, "        break;\n    }\n");
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

static void begin_kernel(FILE *file, const struct group *group, enum type type,
                         const struct row *row)
{
    fprintf(file,
            "__kernel void %s_%u(__global const void *in_a, __global const void *in_b,\n"
            "                    __global const void *in_c, __global void *results, uint call)\n"
            "{\n"
            "%s"
            "    const uint at = (uint)get_global_id(0);\n"
            "    switch (call) {\n",
            group->name, row_place(group, type, row) / KERNEL_ROWS,
            needs_local(group, type, row) ? "    __local ulong16 shared;\n" : "");
}

bool group_has(const struct group *group, enum type type)
{
    return row_place(group, type, group->rows + group->count) > 0;
}

unsigned row_place(const struct group *group, enum type type, const struct row *row)
{
    unsigned place = 0;
    for (const struct row *before = group->rows; before < row; before++)
        place += before->types >> type & 1;
    return place;
}

void print_kernels(FILE *file, const struct group *group, enum type type)
{
    unsigned place = 0;
    for (size_t i = 0; i < group->count; i++) {
        if (!(group->rows[i].types >> type & 1))
            continue;
        if (place % KERNEL_ROWS == 0) {
            fputs(place > 0 ? "    }\n}\n\n" : "", file);
            begin_kernel(file, group, type, &group->rows[i]);
        }
        print_row(file, &group->rows[i], type, place++);
    }
    fputs(place > 0 ? "    }\n}\n\n" : "", file);
}
