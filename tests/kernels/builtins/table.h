// The table of OpenCL C's built-in functions: how each is called, on which types, and what it must
// give. generate.c makes kernels of it, and builtins_test.c runs and judges them.
//
//   integer.c      functions and operators of whole numbers
//   relational.c   comparisons, select and bitselect
//   kernels.c      the OpenCL C of a row
//   values.c       its arguments
//   judge.c        its results against the reference
//
// A kernel calls its function on the same arguments with scalars and with vectors of 2, 3, 4, 8
// and 16, and all these results are judged.
#ifndef WEIR_TESTS_KERNELS_BUILTINS_TABLE_H
#define WEIR_TESTS_KERNELS_BUILTINS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Wide enough for the exact sum and product of any two arguments.
__extension__ typedef __int128 integer;

enum type {
    CHAR,
    UCHAR,
    SHORT,
    USHORT,
    INT,
    UINT,
    LONG,
    ULONG,
    FLOAT,
    DOUBLE,
    TYPES
};

enum {
    SIGNED = 1 << CHAR | 1 << SHORT | 1 << INT | 1 << LONG,
    UNSIGNED = 1 << UCHAR | 1 << USHORT | 1 << UINT | 1 << ULONG,
    INTEGERS = SIGNED | UNSIGNED,
    REALS = 1 << FLOAT | 1 << DOUBLE,

    ARGUMENTS = 3,
    CHUNK = 16, // what a work-item calls the function on
    COUNT = 4096,
    WIDTHS = 6
};

// 1, 2, 3, 4, 8, 16. With vectors of 3 the last of a chunk has no result.
extern const unsigned widths[WIDTHS];

const char *type_name(enum type type);
size_t type_size(enum type type);
unsigned type_bits(enum type type);
bool is_signed(enum type type);
bool is_real(enum type type);
integer type_least(enum type type);
integer type_most(enum type type);

// What the implementations are called in the table.
enum device {
    POCL = 1,
    NVIDIA = 2, // its OpenCL
    CUDA = 4
};

// A number, in the member that its type wants.
struct value {
    integer i;
    long double x;
};

// One call, of a row's type. The calls of one vector are neighbours in an array, and `lane` is a
// call's place among them.
struct call {
    enum type type;
    unsigned width, lane;
    struct value argument[ARGUMENTS];
};

// A result that an implementation is known to get wrong. A row without such a result fails its test,
// so that it is taken out here.
struct known {
    unsigned devices;
    unsigned types;
    const char *reason;
};

struct row {
    const char *name;
    // The expression, of arguments a, b and c. $T is the type with the vector's width, and so are
    // $I, $U and the others below.
    const char *form;
    unsigned types; // a kernel for each
    // A letter for each argument, and for the result:
    // T the row's type, I int, U the unsigned type of T's size, S the signed one,
    // W the integer of twice T's size, J what comparisons of T give: int for scalars, S for vectors.
    // Lower case is a scalar, even if the result is a vector.
    const char *arguments;
    char result;
    bool truth; // the reference gives 0 or 1; in a vector 1 is -1
    // The result for these arguments, wrapped to its type afterwards.
    integer (*whole)(const struct call *call);
    // Makes arguments ones that the function is defined for; may be NULL.
    void (*fit)(struct call *call);
    struct known known[3];
};

struct group {
    const char *name;
    const struct row *rows;
    size_t count;
};

extern const struct group *const groups[];
extern const size_t group_count;

extern const struct group integer_group;
extern const struct group relational_group;

// The type that a letter of a row stands for, with scalars or vectors.
enum type letter_type(char letter, enum type type, bool vector);
bool letter_is_scalar(char letter);

// kernels.c

// Whether the group has a function of the type.
bool group_has(const struct group *group, enum type type);
// Writes the kernel `run` of the group's functions of the type. It takes a buffer for each argument,
// one for the results, and the number of the function's row in the group.
void print_kernel(FILE *file, const struct group *group, enum type type);

// values.c

// Fills the arguments of COUNT calls: first corner cases, then random ones. An absent argument is 0.
void make_calls(const struct row *row, enum type type, struct call *calls);
// A number as bytes of its type, and back.
void store_value(enum type type, const struct value *value, void *at);
struct value load_value(enum type type, const void *at);

// judge.c

struct verdict {
    size_t wrong;      // results outside the bound
    char example[512]; // the first of these
};

// Judges `results`, COUNT for each width.
void judge(const struct row *row, enum type type, const struct call *calls, const void *results,
           struct verdict *out);

#endif
