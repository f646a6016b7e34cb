// The arithmetic of reductions.
#ifndef WEIR_TRANSPORTS_REDUCE_H
#define WEIR_TRANSPORTS_REDUCE_H

#include <stdint.h>
#include <string.h>
#include <weir/comm.h>

// float16 and bfloat16 to float32 and back, rounded to nearest even.
//
// In integer arithmetic, because not every compiler of every machine has the types. Inline, so that
// loops over them become vector code.

#define WEIR_HALF_F16_INFINITY 0x7C00u
#define WEIR_HALF_F16_LOWEST_NORMAL 0x38800000u // 2^-14 as a float32
#define WEIR_HALF_F16_OVERFLOW 0x47800000u      // 2^16
#define WEIR_HALF_F32_INFINITY 0x7F800000u

static inline float weir_half_float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t weir_half_bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float weir_half_from_f16(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    const uint32_t rest = bits & 0x7FFFu;
    if (rest >= WEIR_HALF_F16_INFINITY)
        return weir_half_float_of(sign | WEIR_HALF_F32_INFINITY | (rest & 0x3FFu) << 13);
    // Both forms are exact: 2^112 moves the exponent's bias, for subnormal numbers too.
    return weir_half_float_of(weir_half_bits_of(weir_half_float_of(rest << 13) * 0x1p112f) | sign);
}

static inline uint16_t weir_half_to_f16(float value)
{
    const uint32_t bits = weir_half_bits_of(value);
    const uint32_t sign = bits >> 16 & 0x8000u;
    const uint32_t rest = bits & 0x7FFFFFFFu;
    if (rest > WEIR_HALF_F32_INFINITY)
        return (uint16_t)(sign | WEIR_HALF_F16_INFINITY | 0x200u);
    if (rest >= WEIR_HALF_F16_OVERFLOW)
        return (uint16_t)(sign | WEIR_HALF_F16_INFINITY);
    // Adding 0.5 puts the last bit of a subnormal float16 last in the float32, which rounds there.
    if (rest < WEIR_HALF_F16_LOWEST_NORMAL)
        return (uint16_t)(sign | (weir_half_bits_of(weir_half_float_of(rest) + 0.5f) -
                                  weir_half_bits_of(0.5f)));
    const uint32_t odd = rest >> 13 & 1u;
    return (uint16_t)(sign | (rest - (112u << 23) + 0xFFFu + odd) >> 13);
}

static inline float weir_half_from_bf16(uint16_t bits)
{
    return weir_half_float_of((uint32_t)bits << 16);
}

static inline uint16_t weir_half_to_bf16(float value)
{
    const uint32_t bits = weir_half_bits_of(value);
    if ((bits & 0x7FFFFFFFu) > WEIR_HALF_F32_INFINITY)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

// total[i] = total[i] (op) more[i], in the type of the elements; float16 and bfloat16 in float32,
// rounded to nearest even. AVERAGE adds. `total` is aligned for any element, `more` need not be.
void weir_reduce(weir_datatype element, weir_reduction reduction, void *total, const void *more,
                 size_t count);

// total[i] = total[i] / ranks, of integers towards zero: the end of an AVERAGE.
void weir_reduce_divide(weir_datatype element, void *total, size_t count, uint32_t ranks);

#endif
