// One function for each element and operation, so that each is one loop over one type.
#include "transports/kit/reduce.h"

#include <string.h>

typedef void (*reduce_function)(void *total, const void *more, size_t count);
typedef void (*divide_function)(void *total, size_t count, uint32_t ranks);

// The loop of one operation. `expression` is of a and b, which `load` makes from the stored type;
// `more` may lie at any address.
#define LOOP(name, stored, computed, load, store, expression)                    \
    static void name(void *total, const void *more, size_t count)                \
    {                                                                            \
        stored *into = total;                                                    \
        for (size_t i = 0; i < count; i++) {                                     \
            stored other;                                                        \
            memcpy(&other, (const char *)more + i * sizeof other, sizeof other); \
            const computed a = load(into[i]);                                    \
            const computed b = load(other);                                      \
            into[i] = (stored)store(expression);                                 \
        }                                                                        \
    }

#define DIVIDE(name, stored, computed, load, store)                   \
    static void name(void *total, size_t count, uint32_t ranks)       \
    {                                                                 \
        stored *into = total;                                         \
        for (size_t i = 0; i < count; i++)                            \
            into[i] = (stored)store(load(into[i]) / (computed)ranks); \
    }

#define SAME(value) (value)

#define OPERATIONS(name, stored, computed, load, store)                \
    LOOP(name##_sum, stored, computed, load, store, a + b)             \
    LOOP(name##_product, stored, computed, load, store, a *b)          \
    LOOP(name##_minimum, stored, computed, load, store, b < a ? b : a) \
    LOOP(name##_maximum, stored, computed, load, store, b > a ? b : a)

// Integers wrap, which only unsigned arithmetic of at least an int's width does by the language;
// the order of signed ones is that of their own type.
#define INTEGER(name, stored, wide, divided)                        \
    LOOP(name##_sum, stored, wide, (wide)SAME, SAME, a + b)         \
    LOOP(name##_product, stored, wide, (wide)SAME, SAME, a *b)      \
    LOOP(name##_minimum, stored, stored, SAME, SAME, b < a ? b : a) \
    LOOP(name##_maximum, stored, stored, SAME, SAME, b > a ? b : a) \
    DIVIDE(name##_average, stored, divided, SAME, SAME)

#define FLOATING(name, stored, computed, load, store) \
    OPERATIONS(name, stored, computed, load, store)   \
    DIVIDE(name##_average, stored, computed, load, store)

INTEGER(i8, int8_t, uint32_t, int64_t)
INTEGER(u8, uint8_t, uint32_t, uint64_t)
INTEGER(i16, int16_t, uint32_t, int64_t)
INTEGER(u16, uint16_t, uint32_t, uint64_t)
INTEGER(i32, int32_t, uint32_t, int64_t)
INTEGER(u32, uint32_t, uint32_t, uint64_t)
INTEGER(i64, int64_t, uint64_t, int64_t)
INTEGER(u64, uint64_t, uint64_t, uint64_t)
FLOATING(f16, uint16_t, float, weir_half_from_f16, weir_half_to_f16)
FLOATING(bf16, uint16_t, float, weir_half_from_bf16, weir_half_to_bf16)
FLOATING(f32, float, float, SAME, SAME)
FLOATING(f64, double, double, SAME, SAME)

#undef FLOATING
#undef INTEGER
#undef OPERATIONS
#undef SAME
#undef DIVIDE
#undef LOOP

#define ROW(name)                                                                                  \
    {                                                                                              \
        [WEIR_SUM] = name##_sum, [WEIR_PRODUCT] = name##_product, [WEIR_MINIMUM] = name##_minimum, \
        [WEIR_MAXIMUM] = name##_maximum, [WEIR_AVERAGE] = name##_sum,                              \
    }

static const reduce_function reductions[][WEIR_AVERAGE + 1] = {
    [WEIR_I8] = ROW(i8),   [WEIR_U8] = ROW(u8),     [WEIR_I16] = ROW(i16), [WEIR_U16] = ROW(u16),
    [WEIR_I32] = ROW(i32), [WEIR_U32] = ROW(u32),   [WEIR_I64] = ROW(i64), [WEIR_U64] = ROW(u64),
    [WEIR_F16] = ROW(f16), [WEIR_BF16] = ROW(bf16), [WEIR_F32] = ROW(f32), [WEIR_F64] = ROW(f64),
};

#undef ROW

static const divide_function divisions[] = {
    [WEIR_I8] = i8_average,     [WEIR_U8] = u8_average,   [WEIR_I16] = i16_average,
    [WEIR_U16] = u16_average,   [WEIR_I32] = i32_average, [WEIR_U32] = u32_average,
    [WEIR_I64] = i64_average,   [WEIR_U64] = u64_average, [WEIR_F16] = f16_average,
    [WEIR_BF16] = bf16_average, [WEIR_F32] = f32_average, [WEIR_F64] = f64_average,
};

void weir_reduce(weir_datatype element, weir_reduction reduction, void *total, const void *more,
                 size_t count)
{
    reductions[element][reduction](total, more, count);
}

void weir_reduce_divide(weir_datatype element, void *total, size_t count, uint32_t ranks)
{
    divisions[element](total, count, ranks);
}
