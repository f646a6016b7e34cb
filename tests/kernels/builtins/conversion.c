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

static integer saturated(const struct call *call, long double x)
{
    const integer most = type_most(call->type), least = type_least(call->type);
    if (isnan(x))
        return 0;
    return x >= (long double)most ? most : x <= (long double)least ? least : (integer)x;
}

static bool is_outside(const struct call *call, long double whole)
{
    return !(whole >= (long double)type_least(call->type) &&
             whole <= (long double)type_most(call->type));
}

#define TO_WHOLE(mode, rounding)                           \
    static integer whole_##mode(const struct call *call)   \
    {                                                      \
        return saturated(call, rounding(X));               \
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
    return call->argument[0].i;
}

static integer clamped(const struct call *call)
{
    const integer most = type_most(call->type), least = type_least(call->type);
    const integer value = call->argument[0].i;
    return value > most ? most : value < least ? least : value;
}

// To floats and doubles: the nearest, or its neighbour where that lies on the wrong side.

static long double nearest(const struct call *call, long double x)
{
    return call->type == FLOAT ? (long double)(float)x : (long double)(double)x;
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

#define TO_REAL(mode, rounding)                                  \
    static long double whole_to_##mode(const struct call *call)  \
    {                                                            \
        return rounding(call, (long double)call->argument[0].i); \
    }                                                            \
    static long double real_to_##mode(const struct call *call)   \
    {                                                            \
        return rounding(call, X);                                \
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
#define FROM_WHOLE(digit, from, lanes)                  \
    {.name = from "_to",                                \
     .form = "convert_$T(a)",                           \
     .types = INTEGERS,                                 \
     .arguments = digit,                                \
     .result = 'T',                                     \
     .widths = lanes,                                   \
     .whole = wrapped},                                 \
        {.name = from "_to_sat",                        \
         .form = "convert_$T_sat(a)",                   \
         .types = INTEGERS,                             \
         .arguments = digit,                            \
         .result = 'T',                                 \
         .widths = lanes,                               \
         .whole = clamped},                             \
        {.name = from "_to_sat_rtp",                    \
         .form = "convert_$T_sat_rtp(a)",               \
         .types = INTEGERS,                             \
         .arguments = digit,                            \
         .result = 'T',                                 \
         .widths = lanes,                               \
         .whole = clamped},                             \
        WHOLE_TO_REAL(digit, from, "", rte, lanes),     \
        WHOLE_TO_REAL(digit, from, "_rte", rte, lanes), \
        WHOLE_TO_REAL(digit, from, "_rtz", rtz, lanes), \
        WHOLE_TO_REAL(digit, from, "_rtp", rtp, lanes), \
        WHOLE_TO_REAL(digit, from, "_rtn", rtn, lanes)
#define WHOLE_TO_REAL(digit, from, suffix, mode, lanes)                                       \
    {                                                                                         \
        .name = from "_to" suffix "_real", .form = "convert_$T" suffix "(a)", .types = REALS, \
        .arguments = digit, .result = 'T', .widths = lanes, .real = whole_to_##mode           \
    }
#define FROM_REAL_IN(digit, from, suffix, mode, lanes, fitted, nan)                               \
    {.name = from "_to" suffix,                                                                   \
     .form = "convert_$T" suffix "(a)",                                                           \
     .types = INTEGERS,                                                                           \
     .arguments = digit,                                                                          \
     .result = 'T',                                                                               \
     .widths = lanes,                                                                             \
     .whole = whole_##mode,                                                                       \
     .open = is_outside_##mode,                                                                   \
     .fit = fitted},                                                                              \
    {                                                                                             \
        .name = from "_to_sat" suffix, .form = "convert_$T_sat" suffix "(a)", .types = INTEGERS,  \
        .arguments = digit, .result = 'T', .widths = lanes, .whole = whole_##mode, .fit = fitted, \
        .known = {                                                                                \
            {NVIDIA, nan, "NaN does not give 0"}                                                  \
        }                                                                                         \
    }
#define REAL_TO_REAL(digit, from, suffix, mode, lanes)                                        \
    {                                                                                         \
        .name = from "_to" suffix "_real", .form = "convert_$T" suffix "(a)", .types = REALS, \
        .arguments = digit, .result = 'T', .widths = lanes, .real = real_to_##mode            \
    }
#define FROM_REAL(digit, from, fitted, nan)                                                       \
    FROM_REAL_IN(digit, from, "", rtz, AND_3, fitted, nan),                                       \
        FROM_REAL_IN(digit, from, "_rte", rte, AND_4, fitted, nan),                               \
        FROM_REAL_IN(digit, from, "_rtz", rtz, AND_8, fitted, nan),                               \
        FROM_REAL_IN(digit, from, "_rtp", rtp, AND_16, fitted, nan),                              \
        FROM_REAL_IN(digit, from, "_rtn", rtn, AND_2, fitted, nan),                               \
        REAL_TO_REAL(digit, from, "", rte, AND_2), REAL_TO_REAL(digit, from, "_rte", rte, AND_3), \
        REAL_TO_REAL(digit, from, "_rtz", rtz, AND_4),                                            \
        REAL_TO_REAL(digit, from, "_rtp", rtp, AND_8),                                            \
        REAL_TO_REAL(digit, from, "_rtn", rtn, AND_16)

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
