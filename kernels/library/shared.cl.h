// What the files of this folder share. It stands before their texts.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define FUNCTION __attribute__((overloadable))
#define OWN FUNCTION static
// A function that is one expression.
#define GIVES(type, name, parameters, ...) \
    FUNCTION type name parameters          \
    {                                      \
        return __VA_ARGS__;                \
    }

// A vector of n has the parts `lo` and REST_n.
#define REST_2 hi
#define REST_3 z
#define REST_4 hi
#define REST_8 hi
#define REST_16 hi

// A definition for each width of vectors, in an order in which parts come first; and for one number before them.
#define VECTORS(define, ...)                                                                    \
    define(__VA_ARGS__, 2) define(__VA_ARGS__, 3) define(__VA_ARGS__, 4) define(__VA_ARGS__, 8) \
        define(__VA_ARGS__, 16)
#define WIDTHS(define, ...) define(__VA_ARGS__, ) VECTORS(define, __VA_ARGS__)

// A function of vectors whose parts are computed one by one, and ldexp() with one power for all.

#define PART_OF_ONE(f, T, n) GIVES(T##n, f, (T##n x), (T##n)(f(x.lo), f(x.REST_##n)))
#define PARTS_OF_ONE(f, T) VECTORS(PART_OF_ONE, f, T)

#define PART_OF_TWO(f, T, S, n) \
    GIVES(T##n, f, (T##n x, S##n y), (T##n)(f(x.lo, y.lo), f(x.REST_##n, y.REST_##n)))
#define PARTS_OF_TWO(f, T, S) VECTORS(PART_OF_TWO, f, T, S)

#define PART_OF_THREE(f, T, n)               \
    GIVES(T##n, f, (T##n x, T##n y, T##n z), \
          (T##n)(f(x.lo, y.lo, z.lo), f(x.REST_##n, y.REST_##n, z.REST_##n)))

#define SCALED(T, n) GIVES(T##n, ldexp, (T##n x, int power), ldexp(x, (int##n)power))

// A half in float, which holds every one.

OWN float wide(half x)
{
    return (float)x;
}

#define WIDE(unused, n) \
    GIVES(static float##n, wide, (half##n x), __builtin_convertvector(x, float##n))

VECTORS(WIDE, )

// Of a work-item in its block. The hardware numbers a warp's lanes in the same order.
static uint linear_id(void)
{
    return (uint)((get_local_id(2) * get_local_size(1) + get_local_id(1)) * get_local_size(0) +
                  get_local_id(0));
}
