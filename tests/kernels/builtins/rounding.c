// Arithmetic, and functions of floats and doubles whose results are exact or nearly so: sections 6.3,
// 6.12.2, 7.4 and 7.5.1 of OpenCL C 1.2.
#include <limits.h>

#include "tests/kernels/builtins/rows.h"

// Rounded once, in the type itself: two roundings may differ from one.
#define NATIVE(name, single, twice)                                                \
    static long double ref_##name(const struct call *call)                         \
    {                                                                              \
        const float x = (float)X, y = (float)Y, z = (float)Z;                      \
        const double p = (double)X, q = (double)Y, r = (double)Z;                  \
        (void)y, (void)z, (void)q, (void)r;                                        \
        return call->type == FLOAT ? (long double)(single) : (long double)(twice); \
    }

NATIVE(add, x + y, p + q)
NATIVE(subtract, x - y, p - q)
NATIVE(multiply, x *y, p *q)
NATIVE(divide, x / y, p / q)
NATIVE(reciprocal, 1 / x, 1 / p)
NATIVE(sqrt, sqrtf(x), sqrt(p))
NATIVE(fma, fmaf(x, y, z), fma(p, q, r))
NATIVE(fdim, fdimf(x, y), fdim(p, q))
NATIVE(fract, fminf(x - floorf(x), 0x1.fffffep-1F), fmin(p - floor(p), 0x1.fffffffffffffp-1))
NATIVE(nextafter, nextafterf(x, y), nextafter(p, q))

REAL(negate, -X)
REAL(floor, floorl(X))
REAL(trunc, truncl(X))
REAL(mad, X *Y + Z)
REAL(ldexp, ldexpl(X, (int)B))
REAL(maxmag, fabsl(X) > fabsl(Y) ? X : fabsl(Y) > fabsl(X) ? Y : fmaxl(X, Y))
REAL(minmag, fabsl(X) < fabsl(Y) ? X : fabsl(Y) < fabsl(X) ? Y : fminl(X, Y))
REAL(rsqrt, 1 / sqrtl(X))

static long double ref_nan(const struct call *call)
{
    return (long double)NAN;
}

static long double fraction(const struct call *call)
{
    return isnan(X) || X == 0 ? X : isinf(X) ? copysignl(0, X) : ref_fract(call);
}

static long double ref_frexp(const struct call *call)
{
    int power;
    return frexpl(X, &power);
}

static integer ref_frexp_power(const struct call *call)
{
    int power;
    frexpl(X, &power);
    return isfinite(X) ? power : 0;
}

static long double ref_modf(const struct call *call)
{
    long double whole;
    return modfl(X, &whole);
}

// The quotient's lower seven bits: that of what is left of x after multiples of 128 y.
static integer ref_remquo_quotient(const struct call *call)
{
    if (isnan(X) || isnan(Y) || isinf(X) || Y == 0)
        return 0;
    if (isinf(Y))
        return 0;
    const long double size = fabsl(Y), left = fmodl(fabsl(X), 128 * size);
    const integer quotient = llrintl((left - remainderl(left, size)) / size) & 127;
    return (X < 0) != (Y < 0) ? -quotient : quotient;
}

WHOLE(ilogb, isinf(X) ? INT_MAX : ilogbl(X))

static bool has_no_ilogb(const struct call *call)
{
    return isnan(X) || X == 0;
}

// A product may overflow, or not, before the sum.
static bool overflows(const struct call *call)
{
    return fabsl(X * Y) > (call->type == FLOAT ? 0x1.fffffep127L : 0x1.fffffffffffffp1023L) ||
           isnan(X * Y);
}

#define EXACT(id, expression, takes) ULP(id, expression, takes, 0)
#define FRACT(id, where)                                                              \
    ROW(id, "fract(a, s)", "T", 'T', .second = 'T', .space = where, .real = fraction, \
        .second_real = ref_floor, .flushes = POCL,                                    \
        .known = {{POCL, 1 << DOUBLE, "fract(-0) = 0"}, {NVIDIA, REALS, "fract(-0) = 0"}})
#define FREXP(id, where, ...)                                                          \
    ROW(id, "frexp(a, s)", "T", 'T', .second = 'I', .space = where, .real = ref_frexp, \
        .second_whole = ref_frexp_power, __VA_ARGS__)
#define MODF(id, where)                                                              \
    ROW(id, "modf(a, s)", "T", 'T', .second = 'T', .space = where, .real = ref_modf, \
        .second_real = ref_trunc)
#define REMQUO(id, where, ...)                                                                \
    ROW(id, "remquo(a, b, s)", "TT", 'T', .second = 'I', .space = where, .of_xy = remainderl, \
        .second_whole = ref_remquo_quotient, __VA_ARGS__)
#define ENDLESS \
    .known = {{POCL, 1 << DOUBLE, "of double8 it does not end with AVX-512", .hangs = true}}

static const struct row rows[] = {
    EXACT(add, "a + b", "TT"),
    EXACT(subtract, "a - b", "TT"),
    EXACT(multiply, "a * b", "TT"),
    ROW(divide, "a / b", "TT", 'T', .real = ref_divide, .ulp = 2.5F, .exact_types = 1 << DOUBLE,
        .exact_devices = CUDA),
    ROW(reciprocal, "1 / a", "T", 'T', .real = ref_reciprocal, .ulp = 2.5F,
        .exact_types = 1 << DOUBLE, .exact_devices = CUDA),
    EXACT(negate, "-a", "T"),
    ONE(fabs, fabsl, 0),
    ONE(ceil, ceill, 0),
    ONE(floor, floorl, 0),
    ONE(rint, rintl, 0),
    ONE(round, roundl, 0),
    ONE(trunc, truncl, 0),
    TWO(copysign, copysignl, 0),
    EXACT(fdim, "fdim(a, b)", "TT"),
    EXACT(fma, "fma(a, b, c)", "TTT"),
    ULP(mad, "mad(a, b, c)", "TTT", UNBOUNDED, .open = overflows),
    TWO(fmax, fmaxl, 0, .any_zero = true),
    TWO(fmin, fminl, 0, .any_zero = true),
    ROW(fmax_scalar, "fmax(a, b)", "Tt", 'T', .of_xy = fmaxl, .any_zero = true),
    ROW(fmin_scalar, "fmin(a, b)", "Tt", 'T', .of_xy = fminl, .any_zero = true),
    TWO(fmod, fmodl, 0, ENDLESS),
    FRACT(fract, PRIVATE),
    FRACT(fract_local, LOCAL),
    FRACT(fract_global, GLOBAL),
    FREXP(frexp, PRIVATE,
          .known = {{POCL, 1 << DOUBLE, "the power of double8(-0) is -1022 with AVX-512", true}}),
    FREXP(frexp_local, LOCAL, .ulp = 0),
    FREXP(frexp_global, GLOBAL, .ulp = 0),
    ROW(ilogb, "ilogb(a)", "T", 'I', .whole = ref_ilogb, .open = has_no_ilogb),
    EXACT(ldexp, "ldexp(a, b)", "TI"),
    ROW(ldexp_scalar, "ldexp(a, b)", "Ti", 'T', .real = ref_ldexp),
    ONE(logb, logbl, 0),
    ULP(maxmag, "maxmag(a, b)", "TT", 0, .any_zero = true),
    ULP(minmag, "minmag(a, b)", "TT", 0, .any_zero = true),
    MODF(modf, PRIVATE),
    MODF(modf_local, LOCAL),
    MODF(modf_global, GLOBAL),
    EXACT(nan, "nan(a)", "U"),
    EXACT(nextafter, "nextafter(a, b)", "TT"),
    TWO(remainder, remainderl, 0, ENDLESS),
    REMQUO(remquo, PRIVATE, ENDLESS),
    REMQUO(remquo_local, LOCAL, .ulp = 0),
    REMQUO(remquo_global, GLOBAL, .ulp = 0),
    ROW(sqrt, "sqrt(a)", "T", 'T', .real = ref_sqrt, .ulp = 3, .exact_types = 1 << DOUBLE),
    ULP(rsqrt, "rsqrt(a)", "T", 2),
    TWO(hypot, hypotl, 4),
    ONE(cbrt, cbrtl, 2),
};

const struct group rounding_group = {"rounding", rows, sizeof rows / sizeof *rows};
