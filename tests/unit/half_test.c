// weir_half() against the definition: the nearest half, found by a search of all of them.
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tests/support/test.h"
#include <weir/launch.h>

// The value of a half that is a number.
static double value_of(uint32_t bits)
{
    const int exponent = (int)(bits >> 10 & 31);
    const double mantissa = bits & 1023;
    return exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
}

static uint32_t half_of(float value)
{
    const struct weir_argument argument = weir_half(value);
    EXPECT_INT_EQ(argument.scalar, WEIR_SCALAR_F16);
    EXPECT_SIZE_EQ(argument.size, 2);
    return (uint32_t)argument.bits;
}

// Each half, both of its neighbours' midpoints, and the floats next to those.
WEIR_TEST(Half, IsTheNearest)
{
    for (uint32_t bits = 0; bits < 0x7c00; bits++) {
        const uint32_t next = bits + 1;
        const double here = value_of(bits);
        const double there = next < 0x7c00 ? value_of(next) : 65536;
        const float middle = (float)((here + there) / 2);
        if (half_of((float)here) != bits || half_of(nextafterf(middle, 0)) != bits ||
            half_of(middle) != (bits & 1 ? next : bits) ||
            half_of(nextafterf(middle, INFINITY)) != next ||
            half_of(-(float)here) != (bits | 0x8000)) {
            weir_test_fail(__FILE__, __LINE__, "near half %x", (unsigned)bits);
            return;
        }
    }
}

WEIR_TEST(Half, OfWhatIsNoNumber)
{
    const float tiny = 1e-30f;
    const float huge = 1e30f;
    EXPECT_UINT_EQ(half_of(INFINITY), 0x7c00);
    EXPECT_UINT_EQ(half_of(-INFINITY), 0xfc00);
    EXPECT_UINT_EQ(half_of(huge), 0x7c00);
    EXPECT_UINT_EQ(half_of(tiny), 0);
    EXPECT_UINT_EQ(half_of(-tiny), 0x8000);
    EXPECT_UINT_EQ(half_of(NAN) & 0x7e00, 0x7e00);
    EXPECT_UINT_EQ(weir_half_bits(0x1234).bits, 0x1234);
}

#ifdef WEIR__FLOAT16
WEIR_TEST(Half, OfTheCompiler)
{
    const weir__float16 value = (weir__float16)-1.5f;
    const struct weir_argument argument = WEIR__ARGUMENT(value);
    EXPECT_INT_EQ(argument.scalar, WEIR_SCALAR_F16);
    EXPECT_SIZE_EQ(argument.size, 2);
    EXPECT_UINT_EQ(argument.bits, 0xbe00);
}
#endif
