// Bits of numbers, and numbers that are the same in each run.
#ifndef WEIR_TESTS_SUPPORT_NUMBERS_H
#define WEIR_TESTS_SUPPORT_NUMBERS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t test_bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float test_float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline double test_half_value(uint32_t half)
{
    const int power = (int)(half >> 10 & 31);
    const double digits = half & 1023;
    const double size = power == 31 ? (digits != 0 ? (double)NAN : (double)INFINITY)
                        : power     ? ldexp(1024 + digits, power - 25)
                                    : ldexp(digits, -24);
    return half & 0x8000 ? -size : size;
}

// The next of a sequence, whose state begins with any number but 0.
static inline uint32_t test_next(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

#endif
