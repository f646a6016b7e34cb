// Random numbers that depend on a seed, a stream and an index only, on every machine: the finaliser
// of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
#ifndef WEIR_PIPELINES_TRAIN_RANDOM_H
#define WEIR_PIPELINES_TRAIN_RANDOM_H

#include <stdint.h>

static inline uint64_t train_mix(uint64_t value)
{
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

#define TRAIN_RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t train_stream(uint64_t seed, uint64_t stream)
{
    return train_mix(train_mix(seed + TRAIN_RANDOM_STEP) + stream + TRAIN_RANDOM_STEP);
}

// Number `index` of a stream.
static inline uint64_t train_draw(uint64_t stream, uint64_t index)
{
    return train_mix(stream + index * TRAIN_RANDOM_STEP + TRAIN_RANDOM_STEP);
}

static inline uint64_t train_random(uint64_t seed, uint64_t stream, uint64_t index)
{
    return train_draw(train_stream(seed, stream), index);
}

#endif
