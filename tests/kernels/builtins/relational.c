// Comparisons, and choices by them: section 6.12.6 of OpenCL C 1.2.
#include "tests/kernels/builtins/rows.h"

static bool is_normal(const struct call *call)
{
    const long double least = call->type == FLOAT ? 0x1p-126L : 0x1p-1022L;
    return isfinite(X) && fabsl(X) >= least;
}

WHOLE(isequal, X == Y)
WHOLE(isnotequal, !(X == Y))
WHOLE(isgreater, X > Y)
WHOLE(isgreaterequal, X >= Y)
WHOLE(isless, X < Y)
WHOLE(islessequal, X <= Y)
WHOLE(islessgreater, X<Y || X> Y)
WHOLE(isordered, !isnan(X) && !isnan(Y))
WHOLE(isunordered, isnan(X) || isnan(Y))
WHOLE(isfinite, isfinite(X))
WHOLE(isinf, isinf(X) != 0)
WHOLE(isnan, isnan(X))
WHOLE(isnormal, is_normal(call))
WHOLE(signbit, signbit(X) != 0)

static integer bits(const struct call *call, unsigned number)
{
    return bits_at(call, number, call->lane);
}

// A scalar chooses by not being zero, a vector by the highest bits of its parts.
static bool chosen(const struct call *call)
{
    const integer choice = call->argument[2].i;
    return call->width == 1 ? choice != 0 : choice >> (type_bits(call->type) - 1) & 1;
}

static integer bitselected(const struct call *call)
{
    const integer mask = bits(call, 2);
    return (bits(call, 0) & ~mask) | (bits(call, 1) & mask);
}

// Whether `wanted` parts of the vector at least have their highest bit set.
static bool have_bit(const struct call *call, unsigned wanted)
{
    const struct call *first = call - call->lane;
    unsigned count = 0;
    for (unsigned i = 0; i < call->width; i++)
        count += first[i].argument[0].i < 0;
    return count >= wanted;
}

WHOLE(select, chosen(call) ? bits(call, 1) : bits(call, 0))
WHOLE(ternary, chosen(call) ? bits(call, 0) : bits(call, 1))
WHOLE(bitselect, bitselected(call))
WHOLE(any, have_bit(call, 1))
WHOLE(all, have_bit(call, call->width))

#define COMPARED(id, like, expression, takes) \
    ROW_OF(id, expression, REALS, takes, 'J', .truth = true, .whole = ref_##like)
#define IS2(id) COMPARED(id, id, #id "(a, b)", "TT")
#define IS(id) COMPARED(id, id, #id "(a)", "T")
#define OPERATOR(id, like, expression) COMPARED(id, like, expression, "TT")

// Bits of a float or double; bitselect and select do not change them, NaN or not.
static const struct row rows[] = {
    IS2(isequal),
    IS2(isnotequal),
    IS2(isgreater),
    IS2(isgreaterequal),
    IS2(isless),
    IS2(islessequal),
    IS2(islessgreater),
    IS2(isordered),
    IS2(isunordered),
    IS(isfinite),
    IS(isinf),
    IS(isnan),
    IS(isnormal),
    IS(signbit),
    OPERATOR(real_equal, isequal, "a == b"),
    OPERATOR(real_unequal, isnotequal, "a != b"),
    OPERATOR(real_greater, isgreater, "a > b"),
    OPERATOR(real_greater_equal, isgreaterequal, "a >= b"),
    OPERATOR(real_less, isless, "a < b"),
    OPERATOR(real_less_equal, islessequal, "a <= b"),
    ROW_OF(select_signed, "as_$U(select(a, b, c))", INTEGERS | REALS, "TTS", 'U',
           .whole = ref_select),
    ROW_OF(select_unsigned, "as_$U(select(a, b, c))", INTEGERS | REALS, "TTU", 'U',
           .whole = ref_select),
    ROW_OF(ternary, "as_$U(($T)(c ? a : b))", INTEGERS | REALS, "TTS", 'U', .whole = ref_ternary),
    ROW_OF(bitselect, "as_$U(bitselect(a, b, c))", INTEGERS | REALS, "TTT", 'U',
           .whole = ref_bitselect),
    ROW_OF(any, "any(a)", SIGNED, "T", 'I', .whole = ref_any),
    ROW_OF(all, "all(a)", SIGNED, "T", 'I', .whole = ref_all),
};

const struct group relational_group = {"relational", rows, sizeof rows / sizeof *rows};
