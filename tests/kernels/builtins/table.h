// The table of OpenCL C's built-in functions: how each is called, on which types, and what it must
// give. generate.c makes kernels of it, and builtins_test.c runs and judges them.
//
//   integer.c      functions and operators of whole numbers
//   relational.c   comparisons, select and bitselect
//   rounding.c     arithmetic, and functions of floats and doubles that are nearly exact
//   exponential.c  powers, logarithms, and functions of probability
//   trigonometric.c
//   native.c       functions with half_ and native_
//   common.c       common and geometric functions
//   conversion.c   convert_ of every pair of types
//   memory.c       halves in memory, shuffles, and types read as others
//   copies.c       asynchronous copies, and vectors in memory of each address space
//   atomic.c       atomic functions
//   values.c       its arguments
//   judge.c        its results against the reference
//
// A function is called on the same arguments with scalars and with vectors of 2, 3, 4, 8 and 16 (of
// integers other than int, and without a CUDA toolkit of all types: two of these), and all these
// results are judged.
#ifndef WEIR_TESTS_KERNELS_BUILTINS_TABLE_H
#define WEIR_TESTS_KERNELS_BUILTINS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/program.h>

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
    CHUNK = 16, // the arguments are divided into these, and each into vectors
    KERNEL_ROWS = 4,
    COUNT = 4096,
    WIDTHS = 6,
    SECOND_AT = WIDTHS * COUNT * 8, // where second results begin, in bytes
    RESULT_BYTES = 2 * SECOND_AT,
    CONSTANT_BYTES = 256
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
integer saturated(enum type type, integer value);

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
    bool varies; // it depends on the processor, and may be right
    bool hangs;  // the kernel does not end: the function is not run
};

// What a pointer to a second result points to. All but private ones have scalars and vectors of 4 only.
enum space {
    PRIVATE,
    LOCAL,
    GLOBAL
};

#define UNBOUNDED (-1.0F)

struct row {
    const char *name;
    // The expression, of arguments a, b and c, and of the pointer `s` for a second result. $T is the
    // type with the vector's width, and so are $I, $U and the others below.
    const char *form;
    unsigned types; // a kernel for each
    bool statement; // it is one, and stores its result at $R itself
    bool in_place;  // it reads its argument at A + i itself
    // A letter for each argument, and for the results; a digit is a place in enum type.
    // T the row's type, I int, U the unsigned type of T's size, S the signed one,
    // W the integer of twice T's size, J what comparisons of T give: int for scalars, S for vectors.
    // Lower case is a scalar, even if the result is a vector.
    const char *arguments;
    char result, second;
    enum space space;
    unsigned widths; // a bit for each of those that the function has; 0: all
    bool truth;      // the reference gives 0 or 1; in a vector 1 is -1
    // The results for these arguments: of whole numbers, wrapped to their type afterwards, or of
    // floats and doubles.
    integer (*whole)(const struct call *call);
    long double (*real)(const struct call *call);
    long double (*of_x)(long double x); // in place of `real`
    long double (*of_xy)(long double x, long double y);
    integer (*second_whole)(const struct call *call);
    long double (*second_real)(const struct call *call);
    // How far results may be from the reference: `ulp`, and `each_part` more for each part of the
    // vector; or `absolute`, or what `allowance` says. Where a result is exact, or is rounded once,
    // `ulp` is 0 and the result is the reference. UNBOUNDED: only infinities and NaN are judged.
    float ulp, each_part, absolute;
    long double (*allowance)(const struct call *call);
    unsigned exact_types, exact_devices; // with `ulp` 0 all the same
    bool any_zero;                       // the sign of a zero is not told
    // Results that the specification leaves open are not judged. May be NULL.
    bool (*open)(const struct call *call);
    // A third of the random arguments is from here, if `high` is above `low`.
    double low, high;
    // Makes arguments ones that the function is defined for; may be NULL.
    void (*fit)(struct call *call);
    unsigned flushes; // devices that take floats below 2^-126 for 0, here or in results
    struct known known[3];
};

struct group {
    const char *name;
    const struct row *rows;
    size_t count;
};

// A program of one type, and a group of functions in it; generate.c lists these.
struct program {
    const char *name; // "integer_char"
    const struct weir_bundle *bundle;
    const struct group *group;
    enum type type;
};

extern const struct program programs[];
extern const size_t program_count;

extern const struct group *const groups[];
extern const size_t group_count;

extern const struct group integer_group;
extern const struct group relational_group;
extern const struct group rounding_group;
extern const struct group exponential_group;
extern const struct group trigonometric_group;
extern const struct group native_group;
extern const struct group common_group;
extern const struct group conversion_group;
extern const struct group memory_group;
extern const struct group copies_group;
extern const struct group atomic_group;

// The type that a letter of a row stands for, with scalars or vectors.
enum type letter_type(char letter, enum type type, bool vector);
bool letter_is_scalar(char letter);

// copies.c

// A byte of `constant_bytes`, the __constant memory of each program.
unsigned constant_byte(unsigned place);

// types.c

// A kernel has KERNEL_ROWS functions. Whether the function is called on vectors of widths[index].
bool row_has_width(const struct row *row, enum type type, unsigned index);
// Whether the group has a function of the type.
bool group_has(const struct group *group, enum type type);
// How many rows of the type the group has before this one.
unsigned row_place(const struct group *group, enum type type, const struct row *row);
// values.c

// Fills the arguments of COUNT calls: first corner cases, then random ones. An absent argument is 0.
void make_calls(const struct row *row, enum type type, struct call *calls);
// The bits of an argument, of whatever type, of the part `lane` of the vector that the call belongs to.
integer bits_at(const struct call *call, unsigned number, unsigned lane);
// A number as bytes of its type, and back.
void store_value(enum type type, const struct value *value, void *at);
struct value load_value(enum type type, const void *at);

// judge.c

struct verdict {
    size_t wrong;      // results outside the bound
    size_t flushed;    // results that are right if numbers below 2^-126 are 0
    double worst;      // the largest error in ulp, of finite results
    char at[128];      // its arguments
    char example[512]; // the first wrong result
};

// Judges `results`, COUNT for each width, and the second ones.
void judge(const struct row *row, enum type type, unsigned device, const struct call *calls,
           const void *results, struct verdict *out);

// The number of `type` that is nearest to `x`.
long double rounded(enum type type, long double x);
// The first number of `type` after `x` in the direction of `y`.
long double next_number(enum type type, long double x, long double y);

#endif
