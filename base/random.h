// Random numbers that depend on a seed, a stream and an index only, on every machine: SplitMix64 (Steele, Lea,
// Flood: Fast splittable pseudorandom number generators, 2014).
#ifndef WEIR_BASE_RANDOM_H
#define WEIR_BASE_RANDOM_H

#include <stdint.h>

#define WEIR_RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t weir_random_mix(uint64_t value)
{
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

// The next number of a generator.
static inline uint64_t weir_random_next(uint64_t *state)
{
    return weir_random_mix(*state += WEIR_RANDOM_STEP);
}

// The state at the beginning of a stream of that seed. Mixed twice: all states are in one sequence, so streams
// of neighbouring seeds could overlap.
static inline uint64_t weir_random_stream(uint64_t seed, uint64_t stream)
{
    return weir_random_mix(weir_random_mix(seed + WEIR_RANDOM_STEP) + stream + WEIR_RANDOM_STEP);
}

// Number `index` of a stream.
static inline uint64_t weir_random_draw(uint64_t stream, uint64_t index)
{
    return weir_random_mix(stream + index * WEIR_RANDOM_STEP + WEIR_RANDOM_STEP);
}

static inline uint64_t weir_random(uint64_t seed, uint64_t stream, uint64_t index)
{
    return weir_random_draw(weir_random_stream(seed, stream), index);
}

#endif
