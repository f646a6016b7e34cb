// What the tables share.
#ifndef WEIR_TESTS_KERNELS_BUILTINS_ROWS_H
#define WEIR_TESTS_KERNELS_BUILTINS_ROWS_H

#include <math.h>

#include "tests/kernels/builtins/table.h"

// Bits for struct row's `widths`.
enum {
    SCALARS = 1,
    UP_TO_4 = 0xf,
    OF_3_AND_4 = 0xc,
    VECTORS = 0x3e,
    POWERS_OF_TWO = 1 << 1 | 1 << 3 | 1 << 4 | 1 << 5
};

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

// A row of these types.
#define NAMED(name_, expression, of, takes, gives, ...)                                      \
    {                                                                                        \
        .name = name_, .form = expression, .types = of, .arguments = takes, .result = gives, \
        __VA_ARGS__                                                                          \
    }
#define ROW_OF(id, ...) NAMED(#id, __VA_ARGS__)
#define ROW(id, expression, takes, gives, ...) \
    ROW_OF(id, expression, REALS, takes, gives, __VA_ARGS__)

// A function and its bound in ulp.
#define ULP(id, expression, takes, ...) \
    ROW(id, expression, takes, 'T', .real = ref_##id, .ulp = __VA_ARGS__)
// The same of one and of two arguments, where the reference is a function of long double.
#define ONE(id, function, ...) ROW(id, #id "(a)", "T", 'T', .of_x = function, .ulp = __VA_ARGS__)
#define TWO(id, function, ...) \
    ROW(id, #id "(a, b)", "TT", 'T', .of_xy = function, .ulp = __VA_ARGS__)

#endif
