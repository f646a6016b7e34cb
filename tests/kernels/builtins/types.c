// The types of OpenCL C and the letters for them, and the groups of functions.

#include "tests/kernels/builtins/table.h"

const unsigned widths[WIDTHS] = {1, 2, 3, 4, 8, 16};

static const struct {
    const char *name;
    size_t size;
} types[TYPES] = {
    [CHAR] = {"char", 1},     [UCHAR] = {"uchar", 1}, [SHORT] = {"short", 2},
    [USHORT] = {"ushort", 2}, [INT] = {"int", 4},     [UINT] = {"uint", 4},
    [LONG] = {"long", 8},     [ULONG] = {"ulong", 8}, [FLOAT] = {"float", 4},
    [DOUBLE] = {"double", 8},
};

const char *type_name(enum type type)
{
    return types[type].name;
}

size_t type_size(enum type type)
{
    return types[type].size;
}

unsigned type_bits(enum type type)
{
    return (unsigned)types[type].size * 8;
}

bool is_signed(enum type type)
{
    return SIGNED >> type & 1;
}

bool is_real(enum type type)
{
    return REALS >> type & 1;
}

integer type_least(enum type type)
{
    return is_signed(type) ? -((integer)1 << (type_bits(type) - 1)) : 0;
}

integer type_most(enum type type)
{
    return ((integer)1 << (type_bits(type) - is_signed(type))) - 1;
}

integer saturated(enum type type, integer value)
{
    const integer least = type_least(type), most = type_most(type);
    return value < least ? least : value > most ? most : value;
}

static enum type integer_of(size_t size, bool with_sign)
{
    for (enum type type = CHAR; type <= ULONG; type++)
        if (type_size(type) == size && is_signed(type) == with_sign)
            return type;
    return INT;
}

bool letter_is_scalar(char letter)
{
    return letter >= 'a' && letter <= 'z';
}

enum type letter_type(char letter, enum type type, bool vector)
{
    if (letter >= '0' && letter < '0' + TYPES)
        return (enum type)(letter - '0');
    switch (letter) {
    case 'I':
    case 'i':
        return INT;
    case 'U':
        return integer_of(type_size(type), false);
    case 'S':
        return integer_of(type_size(type), true);
    case 'W':
        return integer_of(type_size(type) * 2, is_signed(type));
    case 'J':
        return vector ? integer_of(type_size(type), true) : INT;
    default:
        return type;
    }
}

const struct group *const groups[] = {
    &integer_group,       &relational_group, &rounding_group, &exponential_group,
    &trigonometric_group, &native_group,     &common_group,   &conversion_group,
    &memory_group,        &copies_group,     &atomic_group,
};
const size_t group_count = sizeof groups / sizeof *groups;

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
