// Uses only integers, + - * / and sqrt, no libm function whose last bit may vary;
// the file is compiled without contraction.
#include "pipelines/arr_coc/normal.h"

#include <math.h>

#include "base/random.h"

// In [-1, 1), a multiple of 2^-52.
static double next_uniform(uint64_t *state)
{
    return (double)(weir_random_next(state) >> 11) * 0x1p-52 - 1.0;
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
    for (int k = 21; k >= 1; k -= 2)
        sum = sum * square + 1.0 / k;
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
        if (i + 1 < count)
            values[i + 1] = (float)(pair[1] * deviation);
    }
}
