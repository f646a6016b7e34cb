// Functions with half_, within 8192 ulp, and with native_, which each device rounds as it will: what
// is asked of them here is three digits. Both on arguments of moderate size.
#include "tests/kernels/builtins/rows.h"

static void fit_moderate(struct call *call)
{
    for (size_t k = 0; k < ARGUMENTS; k++) {
        long double *x = &call->argument[k].x;
        if (!(fabsl(*x) >= 0.01L && fabsl(*x) <= 10))
            *x = isfinite(*x) ? (long double)(float)(0.01L + fmodl(fabsl(*x), 10)) : 1;
        *x = fabsl(*x);
    }
}

REAL(sin, sinl(X))
REAL(cos, cosl(X))
REAL(tan, tanl(X))
REAL(divide, X / Y)
REAL(exp, expl(X))
REAL(exp2, exp2l(X))
REAL(exp10, powl(10, X))
REAL(log, logl(X))
REAL(log2, log2l(X))
REAL(log10, log10l(X))
REAL(powr, powl(X, Y))
REAL(recip, 1 / X)
REAL(rsqrt, 1 / sqrtl(X))
REAL(sqrt, sqrtl(X))

#define MODERATE(id, form_, takes, reference, ...)                                                 \
    ROW_OF(id, form_, 1 << FLOAT, takes, 'T', .real = reference, .fit = fit_moderate, .low = 0.01, \
           .high = 10, .ulp = __VA_ARGS__)
#define PAIR(id, takes, inside)                                     \
    MODERATE(half_##id, "half_" #id inside, takes, ref_##id, 8192), \
        MODERATE(native_##id, "native_" #id inside, takes, ref_##id, 8192, .absolute = 1e-3F)
#define ONE_OF(id) PAIR(id, "T", "(a)")
#define TWO_OF(id) PAIR(id, "TT", "(a, b)")

static const struct row rows[] = {
    ONE_OF(sin),  ONE_OF(cos),   ONE_OF(tan),   TWO_OF(divide), ONE_OF(exp),
    ONE_OF(exp2), ONE_OF(exp10), ONE_OF(log),   ONE_OF(log2),   ONE_OF(log10),
    TWO_OF(powr), ONE_OF(recip), ONE_OF(rsqrt), ONE_OF(sqrt),
};

const struct group native_group = {"native", rows, sizeof rows / sizeof *rows};
