// Powers, logarithms, and functions of probability: sections 6.12.2, 7.4 and 7.5.1 of OpenCL C 1.2.
#include "tests/kernels/builtins/rows.h"

// glibc's powl() takes some large even powers for odd ones.
static long double power(long double x, long double y)
{
    const bool whole = floorl(y) == y, odd = whole && isfinite(y) && fmodl(y, 2) != 0;
    if (!signbit(x) || y == 0 || isnan(x))
        return powl(x, y);
    if (isnan(y) || (!whole && x != 0 && isfinite(x)))
        return (long double)NAN;
    return odd ? -powl(-x, y) : powl(-x, y);
}

REAL(exp10, powl(10, X))
REAL(pown, power(X, (long double)B))

// As exp(y * log(x)), which pow() is not.
static long double ref_powr(const struct call *call)
{
    const bool unknown = (X == 0 && Y == 0) || (isinf(X) && Y == 0) || (X == 1 && isinf(Y));
    if (X < 0 || isnan(X) || isnan(Y) || unknown)
        return (long double)NAN;
    return powl(fabsl(X), Y);
}

static long double ref_rootn(const struct call *call)
{
    if (B == 0 || isnan(X) || (X < 0 && B % 2 == 0))
        return (long double)NAN;
    const long double size = powl(fabsl(X), 1 / (long double)B);
    return B % 2 == 0 ? size : copysignl(size, X);
}

// 0 where gamma has no sign.
static integer ref_gamma_sign(const struct call *call)
{
    if (X == 0 || (X < 0 && floorl(X) == X))
        return 0;
    return X > 0 || fmodl(floorl(X), 2) == 0 ? 1 : -1;
}

static bool has_no_sign(const struct call *call)
{
    return isnan(X) || isinf(X);
}

#define LGAMMA(id, where)                                                                  \
    ROW(id, "lgamma_r(a, s)", "T", 'T', .of_x = lgammal, .ulp = UNBOUNDED, .second = 'I',  \
        .space = where, .second_whole = ref_gamma_sign, SIGN_OF_POLE, .open = has_no_sign, \
        .low = -10, .high = 10)

#define SMALLEST \
    .known = {   \
        {POCL, 1 << DOUBLE, "double8 is wrong with AVX-512 where a part is below 2^-1022", true}}
#define SIGN_OF_POLE \
    .known = {{POCL | NVIDIA, REALS, "the sign at 0 and negative whole numbers is 1, not 0"}}

static const struct row rows[] = {
    ONE(exp, expl, 3, .low = -90, .high = 90),
    ONE(exp2, exp2l, 3, .low = -130, .high = 130),
    ULP(exp10, "exp10(a)", "T", 3, .low = -40, .high = 40),
    ONE(expm1, expm1l, 3, .low = -2, .high = 2),
    ONE(log, logl, 3, .low = 0.5, .high = 2),
    ONE(log2, log2l, 3, .low = 0.5, .high = 2),
    ONE(log10, log10l, 3, .low = 0.5, .high = 2),
    ONE(log1p, log1pl, 2, .low = -1, .high = 1),
    TWO(pow, power, 16, SMALLEST, .low = 0, .high = 20),
    ULP(pown, "pown(a, b)", "TI", 16, SMALLEST, .low = -2, .high = 2),
    ULP(powr, "powr(a, b)", "TT", 16, SMALLEST, .low = 0, .high = 20),
    ULP(rootn, "rootn(a, b)", "TI", 16, SMALLEST, .low = -10, .high = 10),
    ONE(erf, erfl, 16, .low = -3, .high = 3),
    ONE(erfc, erfcl, 16, .low = -3, .high = 10),
    ONE(tgamma, tgammal, 16, .any_zero = true, .flushes = POCL, .low = -10, .high = 36),
    ONE(lgamma, lgammal, UNBOUNDED, .low = -10, .high = 10),
    LGAMMA(lgamma_r, PRIVATE),
    LGAMMA(lgamma_r_local, LOCAL),
    LGAMMA(lgamma_r_global, GLOBAL),
};

const struct group exponential_group = {"exponential", rows, sizeof rows / sizeof *rows};
