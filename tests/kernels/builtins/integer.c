// Functions and operators of whole numbers: section 6.3 and 6.12.3 of OpenCL C 1.2.
#include "tests/kernels/builtins/table.h"

#define A (call->argument[0].i)
#define B (call->argument[1].i)
#define C (call->argument[2].i)

#define REFERENCE(name, expression)                    \
    static integer ref_##name(const struct call *call) \
    {                                                  \
        return expression;                             \
    }

static integer clamped(integer value, integer least, integer most)
{
    return value < least ? least : value > most ? most : value;
}

static integer saturated(const struct call *call, integer value)
{
    return clamped(value, type_least(call->type), type_most(call->type));
}

// a * b + c in two parts, since that of ulong is too large for `integer`: the part above the type's
// bits, and those bits. The shift of a negative number rounds it down, with gcc and clang.
static integer product_high(const struct call *call, integer c, integer *out_low)
{
    const unsigned bits = type_bits(call->type);
    const integer part = ((integer)1 << bits / 2) - 1;
    const integer low = (A & part) * B + (c & part);
    const integer high = (A >> bits / 2) * B + (c >> bits / 2) + (low >> bits / 2);
    *out_low = (high & part) * (part + 1) + (low & part);
    return high >> bits / 2;
}

static integer mul_hi(const struct call *call)
{
    integer low;
    return product_high(call, 0, &low);
}

static integer mad_sat(const struct call *call)
{
    integer low;
    const integer high = product_high(call, C, &low);
    if (high > 0)
        return type_most(call->type);
    if (high < -1)
        return type_least(call->type);
    return saturated(call, high * ((integer)1 << type_bits(call->type)) + low);
}

static integer bits_of(const struct call *call, integer value)
{
    return value & (((integer)1 << type_bits(call->type)) - 1);
}

// Scalars smaller than int are promoted to it first.
static unsigned places(const struct call *call, integer count)
{
    const unsigned bits = type_bits(call->type);
    return (unsigned)(count & (call->width == 1 && bits < 32 ? 31 : bits - 1));
}

static integer turned(const struct call *call)
{
    const unsigned bits = type_bits(call->type), by = (unsigned)(B & (bits - 1));
    const integer value = bits_of(call, A);
    return value << by | value >> (bits - by);
}

static integer ones(integer value)
{
    integer count = 0;
    for (; value != 0; value &= value - 1)
        count++;
    return count;
}

static integer leading_zeros(const struct call *call)
{
    integer count = type_bits(call->type);
    for (integer value = bits_of(call, A); value != 0; value >>= 1)
        count--;
    return count;
}

static integer greater(integer a, integer b)
{
    return a > b ? a : b;
}

REFERENCE(abs, A < 0 ? -A : A)
REFERENCE(abs_diff, A > B ? A - B : B - A)
REFERENCE(add_sat, saturated(call, A + B))
REFERENCE(sub_sat, saturated(call, A - B))
REFERENCE(hadd, (A + B) >> 1)
REFERENCE(rhadd, (A + B + 1) >> 1)
REFERENCE(clamp, clamped(A, B, C))
REFERENCE(clz, leading_zeros(call))
REFERENCE(popcount, ones(bits_of(call, A)))
REFERENCE(mul_hi, mul_hi(call))
REFERENCE(mad_hi, mul_hi(call) + C)
REFERENCE(mad_sat, mad_sat(call))
REFERENCE(max, greater(A, B))
REFERENCE(min, -greater(-A, -B))
REFERENCE(rotate, turned(call))
REFERENCE(upsample, A *((integer)1 << type_bits(call->type)) + B)
REFERENCE(multiply, (integer)((uint64_t)A *(uint64_t)B))
REFERENCE(multiply_add, A *B + C)

REFERENCE(add, A + B)
REFERENCE(subtract, A - B)
REFERENCE(divide, A / B)
REFERENCE(remainder, A % B)
REFERENCE(negate, -A)
REFERENCE(left, bits_of(call, A) << places(call, B))
REFERENCE(right, A >> places(call, B))
REFERENCE(and, A &B)
REFERENCE(or, A | B)
REFERENCE(xor, A ^ B)
REFERENCE(not, ~A)
REFERENCE(less, A < B)
REFERENCE(less_equal, A <= B)
REFERENCE(greater, A > B)
REFERENCE(greater_equal, A >= B)
REFERENCE(equal, A == B)
REFERENCE(unequal, A != B)
REFERENCE(both, A &&B)
REFERENCE(either, A || B)
REFERENCE(neither, !A)

static void fit_order(struct call *call)
{
    const integer least = B < C ? B : C;
    C = greater(B, C);
    B = least;
}

// Zero has no quotient, and the least number by -1 one outside its type.
static void fit_divisor(struct call *call)
{
    if (B == 0 || B == -1)
        B = 1 + (A & 7);
}

static integer low_24(enum type type, integer value)
{
    const uint32_t low = (uint32_t)value << 8;
    return is_signed(type) ? (int32_t)low >> 8 : (integer)(low >> 8);
}

static void fit_24(struct call *call)
{
    A = low_24(call->type, A);
    B = low_24(call->type, B);
}

enum {
    NARROW = INTEGERS & ~(1 << LONG | 1 << ULONG),
    OF_32 = 1 << INT | 1 << UINT
};

#define ROW(id, expression, of, takes, gives, ...)                                         \
    {                                                                                      \
        .name = #id, .form = expression, .types = of, .arguments = takes, .result = gives, \
        __VA_ARGS__                                                                        \
    }
#define IS(id, expression, takes) \
    ROW(id, expression, INTEGERS, takes, 'J', .truth = true, .whole = ref_##id)
#define OPERATOR(id, expression) ROW(id, expression, INTEGERS, "TT", 'T', .whole = ref_##id)

static const struct row rows[] = {
    ROW(abs, "abs(a)", INTEGERS, "T", 'U', .whole = ref_abs),
    ROW(abs_diff, "abs_diff(a, b)", INTEGERS, "TT", 'U', .whole = ref_abs_diff),
    OPERATOR(add_sat, "add_sat(a, b)"),
    OPERATOR(sub_sat, "sub_sat(a, b)"),
    OPERATOR(hadd, "hadd(a, b)"),
    OPERATOR(rhadd, "rhadd(a, b)"),
    ROW(clamp, "clamp(a, b, c)", INTEGERS, "TTT", 'T', .whole = ref_clamp, .fit = fit_order),
    ROW(clamp_scalar, "clamp(a, b, c)", INTEGERS, "Ttt", 'T', .whole = ref_clamp, .fit = fit_order),
    ROW(clz, "clz(a)", INTEGERS, "T", 'T', .whole = ref_clz),
    ROW(popcount, "popcount(a)", INTEGERS, "T", 'T', .whole = ref_popcount),
    OPERATOR(mul_hi, "mul_hi(a, b)"),
    ROW(mad_hi, "mad_hi(a, b, c)", INTEGERS, "TTT", 'T', .whole = ref_mad_hi),
    ROW(mad_sat, "mad_sat(a, b, c)", INTEGERS, "TTT", 'T', .whole = ref_mad_sat,
        .known = {{NVIDIA, 1 << LONG, "the sum of a product beyond long wraps around"}}),
    OPERATOR(max, "max(a, b)"),
    OPERATOR(min, "min(a, b)"),
    ROW(max_scalar, "max(a, b)", INTEGERS, "Tt", 'T', .whole = ref_max),
    ROW(min_scalar, "min(a, b)", INTEGERS, "Tt", 'T', .whole = ref_min),
    OPERATOR(rotate, "rotate(a, b)"),
    ROW(upsample, "upsample(a, b)", NARROW, "TU", 'W', .whole = ref_upsample),
    ROW(mul24, "mul24(a, b)", OF_32, "TT", 'T', .whole = ref_multiply, .fit = fit_24),
    ROW(mad24, "mad24(a, b, c)", OF_32, "TTT", 'T', .whole = ref_multiply_add, .fit = fit_24),

    OPERATOR(add, "a + b"),
    OPERATOR(subtract, "a - b"),
    OPERATOR(multiply, "a * b"),
    ROW(divide, "a / b", INTEGERS, "TT", 'T', .whole = ref_divide, .fit = fit_divisor),
    ROW(remainder, "a % b", INTEGERS, "TT", 'T', .whole = ref_remainder, .fit = fit_divisor),
    ROW(negate, "-a", INTEGERS, "T", 'T', .whole = ref_negate),
    ROW(left, "a << b", INTEGERS, "TT", 'T', .whole = ref_left),
    ROW(right, "a >> b", INTEGERS, "TT", 'T', .whole = ref_right),
    OPERATOR(and, "a & b"),
    OPERATOR(or, "a | b"),
    OPERATOR(xor, "a ^ b"),
    ROW(not, "~a", INTEGERS, "T", 'T', .whole = ref_not),
    ROW(add_scalar, "a + b", INTEGERS, "Tt", 'T', .whole = ref_add),
    ROW(scalar_multiply, "a * b", INTEGERS, "tT", 'T', .whole = ref_multiply),
    IS(less, "a < b", "TT"),
    IS(less_equal, "a <= b", "TT"),
    IS(greater, "a > b", "TT"),
    IS(greater_equal, "a >= b", "TT"),
    IS(equal, "a == b", "TT"),
    IS(unequal, "a != b", "TT"),
    IS(both, "a && b", "TT"),
    IS(either, "a || b", "TT"),
    IS(neither, "!a", "T"),
};

const struct group integer_group = {"integer", rows, sizeof rows / sizeof *rows};
