// convert_ of every pair of types: section 6.2.3 of OpenCL C 1.2. Modes of rounding mean something
// where floats or doubles are read or made; between whole numbers one of them stands for all.
#include "tests/kernels/builtins/rows.h"

enum {
    AND_2 = 1 | 1 << 1,
    AND_3 = 1 | 1 << 2,
    AND_4 = 1 | 1 << 3,
    AND_8 = 1 | 1 << 4,
    AND_16 = 1 | 1 << 5
};

// To whole numbers.

// Exactly, as its argument is whole and within the range of `integer`, or else made so.
static integer whole_of(const struct call *call, long double x)
{
    return isnan(x) ? 0 : saturated(call->type, (integer)fminl(fmaxl(x, -0x1p64L), 0x1p64L));
}

static bool is_outside(const struct call *call, long double whole)
{
    return !(whole >= (long double)type_least(call->type) &&
             whole <= (long double)type_most(call->type));
}

#define TO_WHOLE(mode, rounding)                           \
    static integer whole_##mode(const struct call *call)   \
    {                                                      \
        return whole_of(call, rounding(X));                \
    }                                                      \
    static bool is_outside_##mode(const struct call *call) \
    {                                                      \
        return is_outside(call, rounding(X));              \
    }

TO_WHOLE(rte, rintl)
TO_WHOLE(rtz, truncl)
TO_WHOLE(rtp, ceill)
TO_WHOLE(rtn, floorl)

static integer wrapped(const struct call *call)
{
    return A;
}

static integer clamped(const struct call *call)
{
    return saturated(call->type, A);
}

// To floats and doubles: the nearest, or its neighbour where that lies on the wrong side.

static long double nearest(const struct call *call, long double x)
{
    return rounded(call->type, x);
}

static long double not_below(const struct call *call, long double x)
{
    const long double near = nearest(call, x);
    return near < x ? next_number(call->type, near, (long double)INFINITY) : near;
}

static long double not_above(const struct call *call, long double x)
{
    return -not_below(call, -x);
}

static long double not_beyond(const struct call *call, long double x)
{
    return x < 0 ? not_below(call, x) : not_above(call, x);
}

#define TO_REAL(mode, rounding)                                 \
    static long double whole_to_##mode(const struct call *call) \
    {                                                           \
        return rounding(call, (long double)A);                  \
    }                                                           \
    static long double real_to_##mode(const struct call *call)  \
    {                                                           \
        return rounding(call, X);                               \
    }

TO_REAL(rte, nearest)
TO_REAL(rtz, not_beyond)
TO_REAL(rtp, not_below)
TO_REAL(rtn, not_above)

// Small numbers become ones at the limits of the type, in steps of a half.
static long double near_limit(const struct call *call)
{
    const integer limit = X < 0 ? type_least(call->type) : type_most(call->type);
    return fabsl(X) < 0.25L && X != 0 ? (long double)limit + rintl(X * 32) / 2 : X;
}

static void fit_float(struct call *call)
{
    X = (long double)(float)near_limit(call);
}

static void fit_double(struct call *call)
{
    X = (long double)(double)near_limit(call);
}

// The digit is the source's place in enum type; `nan` has the types for which NVIDIA's OpenCL leaves
// NaN to the GPU's conversion.
#define CONVERT(digit, named, suffix, of, lanes, ...) \
    NAMED(named, "convert_$T" suffix "(a)", of, digit, 'T', .widths = lanes, __VA_ARGS__)
#define TO_REALS(digit, from, suffix, lanes, reference) \
    CONVERT(digit, from "_to" suffix "_real", suffix, REALS, lanes, .real = reference)
#define FROM_WHOLE(digit, from, lanes)                                                     \
    CONVERT(digit, from "_to", "", INTEGERS, lanes, .whole = wrapped),                     \
        CONVERT(digit, from "_to_sat", "_sat", INTEGERS, lanes, .whole = clamped),         \
        CONVERT(digit, from "_to_sat_rtp", "_sat_rtp", INTEGERS, lanes, .whole = clamped), \
        TO_REALS(digit, from, "", lanes, whole_to_rte),                                    \
        TO_REALS(digit, from, "_rte", lanes, whole_to_rte),                                \
        TO_REALS(digit, from, "_rtz", lanes, whole_to_rtz),                                \
        TO_REALS(digit, from, "_rtp", lanes, whole_to_rtp),                                \
        TO_REALS(digit, from, "_rtn", lanes, whole_to_rtn)
#define FROM_REAL_IN(digit, from, suffix, mode, lanes, fitted, nan)                   \
    CONVERT(digit, from "_to" suffix, suffix, INTEGERS, lanes, .whole = whole_##mode, \
            .open = is_outside_##mode, .fit = fitted),                                \
        CONVERT(digit, from "_to_sat" suffix, "_sat" suffix, INTEGERS, lanes,         \
                .whole = whole_##mode, .fit = fitted,                                 \
                .known = {{NVIDIA, nan, "NaN does not give 0"}})
#define FROM_REAL(digit, from, fitted, nan)                          \
    FROM_REAL_IN(digit, from, "", rtz, AND_3, fitted, nan),          \
        FROM_REAL_IN(digit, from, "_rte", rte, AND_4, fitted, nan),  \
        FROM_REAL_IN(digit, from, "_rtz", rtz, AND_8, fitted, nan),  \
        FROM_REAL_IN(digit, from, "_rtp", rtp, AND_16, fitted, nan), \
        FROM_REAL_IN(digit, from, "_rtn", rtn, AND_2, fitted, nan),  \
        TO_REALS(digit, from, "", AND_2, real_to_rte),               \
        TO_REALS(digit, from, "_rte", AND_3, real_to_rte),           \
        TO_REALS(digit, from, "_rtz", AND_4, real_to_rtz),           \
        TO_REALS(digit, from, "_rtp", AND_8, real_to_rtp),           \
        TO_REALS(digit, from, "_rtn", AND_16, real_to_rtn)

static const struct row rows[] = {
    FROM_WHOLE("0", "char", AND_2),
    FROM_WHOLE("1", "uchar", AND_3),
    FROM_WHOLE("2", "short", AND_4),
    FROM_WHOLE("3", "ushort", AND_8),
    FROM_WHOLE("4", "int", AND_16),
    FROM_WHOLE("5", "uint", AND_4),
    FROM_WHOLE("6", "long", AND_3),
    FROM_WHOLE("7", "ulong", AND_2),
    FROM_REAL("8", "float", fit_float, 1 << LONG | 1 << ULONG),
    FROM_REAL("9", "double", fit_double, INTEGERS),
};

const struct group conversion_group = {"conversion", rows, sizeof rows / sizeof *rows};
