// Every float16 and bfloat16, and the float32 half way between each two.
#include "transports/kit/reduce.h"

#include <math.h>

#include "tests/support/test.h"

// By the definition of the format: `bits` of mantissa, and an exponent with that bias.
static double defined(uint16_t number, int mantissa_bits, int bias)
{
    const int exponent = (number & 0x7FFF) >> mantissa_bits;
    const double mantissa = number & ((1 << mantissa_bits) - 1);
    const double lead = exponent > 0 ? ldexp(1, mantissa_bits) : 0;
    const double value =
        ldexp(lead + mantissa, (exponent > 0 ? exponent : 1) - bias - mantissa_bits);
    return number & 0x8000 ? -value : value;
}

#define CHECK_FORMAT(format, mantissa_bits, bias, infinity)                               \
    do {                                                                                  \
        uint32_t wrong = 0;                                                               \
        for (uint32_t i = 0; i < (infinity); i++) {                                       \
            for (uint32_t sign = 0; sign <= 0x8000; sign += 0x8000) {                     \
                const uint16_t number = (uint16_t)(i | sign);                             \
                const float value = weir_half_from_##format(number);                      \
                wrong += value != defined(number, mantissa_bits, bias);                   \
                wrong += weir_half_to_##format(value) != number;                          \
                const double next = defined((uint16_t)(number + 1), mantissa_bits, bias); \
                const float middle = (float)((value + next) / 2);                         \
                const uint16_t even = (uint16_t)(number + (number & 1));                  \
                wrong += middle != INFINITY && weir_half_to_##format(middle) != even;     \
                wrong += weir_half_to_##format(nextafterf(middle, value)) != number;      \
                const float above = nextafterf(middle, (float)next);                      \
                wrong += fabsf(above) > fabsf(middle) &&                                  \
                         weir_half_to_##format(above) != (uint16_t)(number + 1);          \
            }                                                                             \
        }                                                                                 \
        EXPECT_UINT_EQ(wrong, 0u);                                                        \
        EXPECT_UINT_EQ(weir_half_to_##format(INFINITY), (infinity));                      \
        EXPECT_UINT_EQ(weir_half_to_##format(-INFINITY), (infinity) | 0x8000u);           \
        EXPECT_TRUE(isinf(weir_half_from_##format(infinity)));                            \
        EXPECT_TRUE(isnan(weir_half_from_##format((infinity) + 1)));                      \
        EXPECT_TRUE(isnan(weir_half_from_##format(weir_half_to_##format(NAN))));          \
    } while (0)

WEIR_TEST(Half, RoundsEachFloat16ToNearestEven)
{
    CHECK_FORMAT(f16, 10, 15, 0x7C00);
}

WEIR_TEST(Half, RoundsEachBfloat16ToNearestEven)
{
    CHECK_FORMAT(bf16, 7, 127, 0x7F80);
}
