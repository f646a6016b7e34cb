// Functions and operators of whole numbers: section 6.3 and 6.12.3 of OpenCL C 1.2.
#include "tests/kernels/builtins/rows.h"

static integer clamped(integer value, integer least, integer most)
{
    return value < least ? least : value > most ? most : value;
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
    return saturated(call->type, high * ((integer)1 << type_bits(call->type)) + low);
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

WHOLE(abs, A < 0 ? -A : A)
WHOLE(abs_diff, A > B ? A - B : B - A)
WHOLE(add_sat, saturated(call->type, A + B))
WHOLE(sub_sat, saturated(call->type, A - B))
WHOLE(hadd, (A + B) >> 1)
WHOLE(rhadd, (A + B + 1) >> 1)
WHOLE(clamp, clamped(A, B, C))
WHOLE(clz, leading_zeros(call))
WHOLE(popcount, ones(bits_of(call, A)))
WHOLE(mul_hi, mul_hi(call))
WHOLE(mad_hi, mul_hi(call) + C)
WHOLE(mad_sat, mad_sat(call))
WHOLE(max, greater(A, B))
WHOLE(min, -greater(-A, -B))
WHOLE(rotate, turned(call))
WHOLE(upsample, A *((integer)1 << type_bits(call->type)) + B)
WHOLE(multiply, (integer)((uint64_t)A *(uint64_t)B))
WHOLE(multiply_add, A *B + C)

WHOLE(add, A + B)
WHOLE(subtract, A - B)
WHOLE(divide, A / B)
WHOLE(remainder, A % B)
WHOLE(negate, -A)
WHOLE(left, bits_of(call, A) << places(call, B))
WHOLE(right, A >> places(call, B))
WHOLE(and, A &B)
WHOLE(or, A | B)
WHOLE(xor, A ^ B)
WHOLE(not, ~A)
WHOLE(less, A < B)
WHOLE(less_equal, A <= B)
WHOLE(greater, A > B)
WHOLE(greater_equal, A >= B)
WHOLE(equal, A == B)
WHOLE(unequal, A != B)
WHOLE(both, A &&B)
WHOLE(either, A || B)
WHOLE(neither, !A)

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

#define IS(id, expression, takes) \
    ROW_OF(id, expression, INTEGERS, takes, 'J', .truth = true, .whole = ref_##id)
#define OPERATOR(id, expression) ROW_OF(id, expression, INTEGERS, "TT", 'T', .whole = ref_##id)

static const struct row rows[] = {
    ROW_OF(abs, "abs(a)", INTEGERS, "T", 'U', .whole = ref_abs),
    ROW_OF(abs_diff, "abs_diff(a, b)", INTEGERS, "TT", 'U', .whole = ref_abs_diff),
    OPERATOR(add_sat, "add_sat(a, b)"),
    OPERATOR(sub_sat, "sub_sat(a, b)"),
    OPERATOR(hadd, "hadd(a, b)"),
    OPERATOR(rhadd, "rhadd(a, b)"),
    ROW_OF(clamp, "clamp(a, b, c)", INTEGERS, "TTT", 'T', .whole = ref_clamp, .fit = fit_order),
    ROW_OF(clamp_scalar, "clamp(a, b, c)", INTEGERS, "Ttt", 'T', .whole = ref_clamp,
           .fit = fit_order),
    ROW_OF(clz, "clz(a)", INTEGERS, "T", 'T', .whole = ref_clz),
    ROW_OF(popcount, "popcount(a)", INTEGERS, "T", 'T', .whole = ref_popcount),
    OPERATOR(mul_hi, "mul_hi(a, b)"),
    ROW_OF(mad_hi, "mad_hi(a, b, c)", INTEGERS, "TTT", 'T', .whole = ref_mad_hi),
    ROW_OF(mad_sat, "mad_sat(a, b, c)", INTEGERS, "TTT", 'T', .whole = ref_mad_sat,
           .known = {{NVIDIA, 1 << LONG, "the sum of a product beyond long wraps around"}}),
    OPERATOR(max, "max(a, b)"),
    OPERATOR(min, "min(a, b)"),
    ROW_OF(max_scalar, "max(a, b)", INTEGERS, "Tt", 'T', .whole = ref_max),
    ROW_OF(min_scalar, "min(a, b)", INTEGERS, "Tt", 'T', .whole = ref_min),
    OPERATOR(rotate, "rotate(a, b)"),
    ROW_OF(upsample, "upsample(a, b)", NARROW, "TU", 'W', .whole = ref_upsample),
    ROW_OF(mul24, "mul24(a, b)", OF_32, "TT", 'T', .whole = ref_multiply, .fit = fit_24),
    ROW_OF(mad24, "mad24(a, b, c)", OF_32, "TTT", 'T', .whole = ref_multiply_add, .fit = fit_24),

    OPERATOR(add, "a + b"),
    OPERATOR(subtract, "a - b"),
    OPERATOR(multiply, "a * b"),
    ROW_OF(divide, "a / b", INTEGERS, "TT", 'T', .whole = ref_divide, .fit = fit_divisor),
    ROW_OF(remainder, "a % b", INTEGERS, "TT", 'T', .whole = ref_remainder, .fit = fit_divisor),
    ROW_OF(negate, "-a", INTEGERS, "T", 'T', .whole = ref_negate),
    ROW_OF(left, "a << b", INTEGERS, "TT", 'T', .whole = ref_left),
    ROW_OF(right, "a >> b", INTEGERS, "TT", 'T', .whole = ref_right),
    OPERATOR(and, "a & b"),
    OPERATOR(or, "a | b"),
    OPERATOR(xor, "a ^ b"),
    ROW_OF(not, "~a", INTEGERS, "T", 'T', .whole = ref_not),
    ROW_OF(add_scalar, "a + b", INTEGERS, "Tt", 'T', .whole = ref_add),
    ROW_OF(scalar_multiply, "a * b", INTEGERS, "tT", 'T', .whole = ref_multiply),
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
