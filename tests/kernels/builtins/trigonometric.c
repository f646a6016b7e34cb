// Trigonometric and hyperbolic functions: sections 6.12.2, 7.4 and 7.5.1 of OpenCL C 1.2.
#include "tests/kernels/builtins/rows.h"

REAL(sin, sinl(X))
REAL(cos, cosl(X))
REAL(tan, tanl(X))
REAL(asin, asinl(X))
REAL(acos, acosl(X))
REAL(atan, atanl(X))
REAL(atan2, atan2l(X, Y))
REAL(sinh, sinhl(X))
REAL(cosh, coshl(X))
REAL(tanh, tanhl(X))
REAL(asinh, asinhl(X))
REAL(acosh, acoshl(X))
REAL(atanh, atanhl(X))
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

REAL(sinpi, sin_of_pi(X))
REAL(cospi, cos_of_pi(X))
REAL(tanpi, tan_of_pi(X))

#define TINY \
    .known = {{POCL, 1 << FLOAT, "vectors are wrong for arguments below 2^-14 or so", true}}
#define ZERO_OF(sign) \
    .flushes = POCL, .known = {{POCL, 1 << DOUBLE, "zeros have the wrong sign: " sign}}

#define SINCOS(id, where)                                                                       \
    ROW(id, "sincos(a, s)", "T", 'T', .real = ref_sin, .ulp = 4, .second = 'T', .space = where, \
        .low = -30, .high = 30, .second_real = ref_cos, TINY)

static const struct row rows[] = {
    ONE(sin, 4, TINY, .low = -30, .high = 30),
    ONE(cos, 4, TINY, .low = -30, .high = 30),
    ONE(tan, 5, TINY, .low = -30, .high = 30),
    SINCOS(sincos, PRIVATE),
    SINCOS(sincos_local, LOCAL),
    SINCOS(sincos_global, GLOBAL),
    ONE(asin, 4, .low = -1, .high = 1),
    ONE(acos, 4, .low = -1, .high = 1),
    ONE(atan, 5, .low = -4, .high = 4),
    TWO(atan2, 6, .low = -4, .high = 4),
    ONE(sinh, 4, .low = -10, .high = 10),
    ONE(cosh, 4, .low = -10, .high = 10),
    ONE(tanh, 5, .low = -4, .high = 4),
    ONE(asinh, 4, .low = -4, .high = 4),
    ONE(acosh, 4, .low = 1, .high = 4),
    ONE(atanh, 5, .low = -1, .high = 1),
    ONE(sinpi, 4, ZERO_OF("sinpi(1) = -0"), .low = -4, .high = 4),
    ONE(cospi, 4, ZERO_OF("cospi(0.5) = -0"), .low = -4, .high = 4),
    ONE(tanpi, 6, .flushes = POCL, .low = -4, .high = 4,
        .known = {{POCL, 1 << DOUBLE, "zeros have the wrong sign: tanpi(1) = 0"},
                  {NVIDIA, REALS, "tanpi(-0) = 0"}}),
    ONE(asinpi, 5, .low = -1, .high = 1),
    ONE(acospi, 5, .low = -1, .high = 1),
    ONE(atanpi, 5, ZERO_OF("atanpi(-0) = 0"), .low = -4, .high = 4),
    TWO(atan2pi, 6, .low = -4, .high = 4),
};

const struct group trigonometric_group = {"trigonometric", rows, sizeof rows / sizeof *rows};
