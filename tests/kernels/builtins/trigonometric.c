// Trigonometric and hyperbolic functions: sections 6.12.2, 7.4 and 7.5.1 of OpenCL C 1.2.
#include "tests/kernels/builtins/rows.h"

REAL(cos, cosl(X))
REAL(asinpi, asinl(X) / PI)
REAL(acospi, acosl(X) / PI)
REAL(atanpi, atanl(X) / PI)
REAL(atan2pi, atan2l(X, Y) / PI)

// x is taken to a period exactly, and then to an eighth of one, so that zeros are too.

static long double sin_of_pi(long double x)
{
    const long double place = remainderl(x, 2), size = fabsl(place);
    if (isinf(x) || isnan(x))
        return (long double)NAN;
    if (floorl(x) == x)
        return copysignl(0, x);
    const long double sine = size <= 0.25L   ? sinl(PI * size)
                             : size <= 0.75L ? cosl(PI * (0.5L - size))
                                             : sinl(PI * (1 - size));
    return copysignl(sine, place);
}

static long double cos_of_pi(long double x)
{
    const long double size = fabsl(remainderl(x, 2));
    if (isinf(x) || isnan(x))
        return (long double)NAN;
    if (size <= 0.25L)
        return cosl(PI * size);
    return size <= 0.75L ? sinl(PI * (0.5L - size)) : -cosl(PI * (1 - size));
}

static long double tan_of_pi(long double x)
{
    const long double sine = sin_of_pi(x), cosine = cos_of_pi(x);
    if (sine == 0)
        return copysignl(0, fmodl(x, 2) == 0 ? x : -x);
    return cosine == 0 ? copysignl((long double)INFINITY, sine) : sine / cosine;
}

#define TINY \
    .known = {{POCL, 1 << FLOAT, "vectors are wrong for arguments below 2^-14 or so", true}}
#define ZERO_OF(sign) \
    .flushes = POCL, .known = {{POCL, 1 << DOUBLE, "zeros have the wrong sign: " sign}}

#define SINCOS(id, where)                                                                    \
    ROW(id, "sincos(a, s)", "T", 'T', .of_x = sinl, .ulp = 4, .second = 'T', .space = where, \
        .low = -30, .high = 30, .second_real = ref_cos, TINY)

static const struct row rows[] = {
    ONE(sin, sinl, 4, TINY, .low = -30, .high = 30),
    ONE(cos, cosl, 4, TINY, .low = -30, .high = 30),
    ONE(tan, tanl, 5, TINY, .low = -30, .high = 30),
    SINCOS(sincos, PRIVATE),
    SINCOS(sincos_local, LOCAL),
    SINCOS(sincos_global, GLOBAL),
    ONE(asin, asinl, 4, .low = -1, .high = 1),
    ONE(acos, acosl, 4, .low = -1, .high = 1),
    ONE(atan, atanl, 5, .low = -4, .high = 4),
    TWO(atan2, atan2l, 6, .low = -4, .high = 4),
    ONE(sinh, sinhl, 4, .low = -10, .high = 10),
    ONE(cosh, coshl, 4, .low = -10, .high = 10),
    ONE(tanh, tanhl, 5, .low = -4, .high = 4),
    ONE(asinh, asinhl, 4, .low = -4, .high = 4),
    ONE(acosh, acoshl, 4, .low = 1, .high = 4),
    ONE(atanh, atanhl, 5, .low = -1, .high = 1),
    ONE(sinpi, sin_of_pi, 4, ZERO_OF("sinpi(1) = -0"), .low = -4, .high = 4),
    ONE(cospi, cos_of_pi, 4, ZERO_OF("cospi(0.5) = -0"), .low = -4, .high = 4),
    ONE(tanpi, tan_of_pi, 6, .flushes = POCL, .low = -4, .high = 4,
        .known = {{POCL, 1 << DOUBLE, "zeros have the wrong sign: tanpi(1) = 0"},
                  {NVIDIA, REALS, "tanpi(-0) = 0"}}),
    ULP(asinpi, "asinpi(a)", "T", 5, .low = -1, .high = 1),
    ULP(acospi, "acospi(a)", "T", 5, .low = -1, .high = 1),
    ULP(atanpi, "atanpi(a)", "T", 5, ZERO_OF("atanpi(-0) = 0"), .low = -4, .high = 4),
    ULP(atan2pi, "atan2pi(a, b)", "TT", 6, .low = -4, .high = 4),
};

const struct group trigonometric_group = {"trigonometric", rows, sizeof rows / sizeof *rows};
