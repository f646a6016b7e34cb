// Uses only integers, + - * / and sqrt, no libm function whose last bit may vary;
// the file is compiled without contraction.
#include "pipelines/arr_coc/normal.h"

#include <math.h>

// splitmix64, by Sebastiano Vigna, https://prng.di.unimi.it/splitmix64.c
static uint64_t next_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

// Hashed, since all states of splitmix64 are in one sequence: the streams of
// neighbouring seeds could overlap.
uint64_t weir_arr_coc_stream(uint64_t seed, uint64_t index)
{
    uint64_t state = seed;
    state = next_bits(&state) + index;
    return next_bits(&state);
}

// In [-1, 1), a multiple of 2^-52.
static double next_uniform(uint64_t *state)
{
    return (double)(next_bits(state) >> 11) * 0x1p-52 - 1.0;
}

// The natural logarithm of x > 0: ln x = e ln 2 + 2 artanh((m - 1)/(m + 1)) with m
// near 1, where |z| <= 0.172 and the series is exact to a double after z^21.
static double logarithm(double x)
{
    int exponent = 0;
    double m = frexp(x, &exponent);
    if (m < 0.70710678118654752440) {
        m *= 2;
        exponent--;
    }
    double z = (m - 1) / (m + 1);
    double square = z * z;
    double sum = 0;
    for (int k = 21; k >= 1; k -= 2) {
        sum = sum * square + 1.0 / k;
    }
    return exponent * 0.69314718055994530942 + 2 * z * sum;
}

// Box and Muller's pair in Marsaglia's polar form, which needs neither sine nor
// cosine (https://doi.org/10.1137/1006063).
static void next_normals(uint64_t *state, double out[2])
{
    double x, y, s;
    do {
        x = next_uniform(state);
        y = next_uniform(state);
        s = x * x + y * y;
    } while (s >= 1.0 || s == 0.0);
    double scale = sqrt(-2.0 * logarithm(s) / s);
    out[0] = x * scale;
    out[1] = y * scale;
}

void weir_arr_coc_fill_normal(float *values, uint64_t count, double deviation, uint64_t state)
{
    for (uint64_t i = 0; i < count; i += 2) {
        double pair[2];
        next_normals(&state, pair);
        values[i] = (float)(pair[0] * deviation);
        if (i + 1 < count) {
            values[i + 1] = (float)(pair[1] * deviation);
        }
    }
}
