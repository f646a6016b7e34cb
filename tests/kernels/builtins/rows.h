// What the tables share.
#ifndef WEIR_TESTS_KERNELS_BUILTINS_ROWS_H
#define WEIR_TESTS_KERNELS_BUILTINS_ROWS_H

#include <math.h>

#include "tests/kernels/builtins/table.h"

#define A (call->argument[0].i)
#define B (call->argument[1].i)
#define C (call->argument[2].i)
#define X (call->argument[0].x)
#define Y (call->argument[1].x)
#define Z (call->argument[2].x)

#define PI 3.141592653589793238462643383279502884L

#define REAL(name, expression)                             \
    static long double ref_##name(const struct call *call) \
    {                                                      \
        return expression;                                 \
    }

#define WHOLE(name, expression)                        \
    static integer ref_##name(const struct call *call) \
    {                                                  \
        return expression;                             \
    }

#define ROW_OF(id, expression, of, takes, gives, ...)                                      \
    {                                                                                      \
        .name = #id, .form = expression, .types = of, .arguments = takes, .result = gives, \
        __VA_ARGS__                                                                        \
    }
#define ROW(id, expression, takes, gives, ...) \
    ROW_OF(id, expression, REALS, takes, gives, __VA_ARGS__)

// A function and its bound in ulp.
#define ULP(id, expression, takes, ...) \
    ROW(id, expression, takes, 'T', .real = ref_##id, .ulp = __VA_ARGS__)
#define ONE(id, ...) ULP(id, #id "(a)", "T", __VA_ARGS__)
#define TWO(id, ...) ULP(id, #id "(a, b)", "TT", __VA_ARGS__)

#endif
