// vload_half and vstore_half with every rounding, vectors put in another order, and types that are
// read as others: sections 6.12.7, 6.12.12 and 6.2.4 of OpenCL C 1.2.
#include "tests/kernels/builtins/rows.h"

// Halves.

static long double of_half(const struct call *call)
{
    const unsigned bits = (unsigned)call->argument[0].i;
    const int power = (int)(bits >> 10 & 31);
    const long double digits = bits & 1023;
    const long double size = power == 31 ? (digits != 0 ? (long double)NAN : (long double)INFINITY)
                             : power > 0 ? ldexpl(1024 + digits, power - 25)
                                         : ldexpl(digits, -24);
    return bits >> 15 ? -size : size;
}

// The bits of `size`, of which `round` makes a whole number of the last digit's units.
static unsigned to_half(long double size, long double (*round)(long double))
{
    const int power = size < 0x1p-14L ? -14 : ilogbl(size);
    const long double units = round(ldexpl(size, 10 - power)), half = ldexpl(units, power - 10);
    if (half >= 0x1p16L)
        return isinf(size) || round(65519) > 65519 || round(65519.5L) > 65519 ? 0x7c00 : 0x7bff;
    return (unsigned)(units + ldexpl(power + 14, 10));
}

static integer half_of(const struct call *call, long double (*round)(long double))
{
    const long double size = fabsl(X);
    return (integer)((signbit(X) ? 0x8000U : 0) | (isinf(X) ? 0x7c00U : to_half(size, round)));
}

static integer half_rte(const struct call *call)
{
    return half_of(call, rintl);
}

static integer half_rtz(const struct call *call)
{
    return half_of(call, floorl);
}

static integer half_rtp(const struct call *call)
{
    return half_of(call, signbit(X) ? floorl : ceill);
}

static integer half_rtn(const struct call *call)
{
    return half_of(call, signbit(X) ? ceill : floorl);
}

static bool is_nan(const struct call *call)
{
    return isnan(X);
}

static integer shuffled(const struct call *call)
{
    return bits_at(call, 0, (unsigned)call->argument[1].i & (call->width - 1));
}

static integer shuffled2(const struct call *call)
{
    const unsigned place = (unsigned)call->argument[1].i & (2 * call->width - 1);
    return bits_at(call, place < call->width ? 0 : 2, place & (call->width - 1));
}

static integer same_bits(const struct call *call)
{
    return call->argument[0].i;
}

#define LOAD(id, form_, lanes) \
    ROW_OF(id, form_, 1 << FLOAT, "3", 'T', .in_place = true, .widths = lanes, .real = of_half)
#define STORE(id, function, reference, lanes)                                                     \
    ROW(id, function "(a, 0, (__global half *)$R)", "T", '3', .statement = true, .widths = lanes, \
        .whole = reference, .open = is_nan, .low = -70000, .high = 70000)
#define STORES(suffix, reference)                                      \
    STORE(vstore_half##suffix, "vstore_half$N" #suffix, reference, 0), \
        STORE(vstorea_half##suffix, "vstorea_half$N" #suffix, reference, POWERS_OF_TWO)
#define SHUFFLE(id, form_, takes, reference) \
    ROW_OF(id, form_, INTEGERS | REALS, takes, 'U', .widths = POWERS_OF_TWO, .whole = reference)
#define AS(id, from) ROW_OF(id, "as_$U(as_$T(a))", INTEGERS | REALS, from, 'U', .whole = same_bits)

static const struct row rows[] = {
    LOAD(vload_half, "vload_half$N(0, (__global const half *)A + i)", 0),
    LOAD(vloada_half, "vloada_half$N(0, (__global const half *)A + i)", POWERS_OF_TWO),
    STORE(vstore_half, "vstore_half$N", half_rte, 0),
    STORE(vstorea_half, "vstorea_half$N", half_rte, POWERS_OF_TWO),
    STORES(_rte, half_rte),
    STORES(_rtz, half_rtz),
    STORES(_rtp, half_rtp),
    STORES(_rtn, half_rtn),
    SHUFFLE(shuffle, "as_$U(shuffle(a, b))", "TU", shuffled),
    SHUFFLE(shuffle2, "as_$U(shuffle2(a, c, b))", "TUT", shuffled2),
    AS(as_from_unsigned, "U"),
    AS(as_from_signed, "S"),
};

const struct group memory_group = {"memory", rows, sizeof rows / sizeof *rows};
