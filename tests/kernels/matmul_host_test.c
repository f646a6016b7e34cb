// The matrix product for tensor cores, on the host, with the bound of its README. The matrices are inside
// larger ones full of NaN, so that a read past an edge is noticed, and a write.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/kernels/matmul_host.h"
#include "tests/support/test.h"

enum {
    MARGIN = 64 // floats; whole vectors
};

struct size {
    unsigned m, n, k;
    unsigned shift; // of the matrices from a multiple of 16 bytes, in floats
};

struct matrix {
    size_t count, all;
    float *values; // the first of the matrix
    float *memory;
};

static struct matrix make(size_t count, unsigned shift)
{
    struct matrix matrix = {.count = count, .all = count + 2 * MARGIN};
    matrix.memory = aligned_alloc(64, (matrix.all * sizeof(float) + 63) / 64 * 64);
    if (!matrix.memory)
        exit(EXIT_FAILURE);
    for (size_t i = 0; i < matrix.all; i++)
        matrix.memory[i] = NAN;
    matrix.values = matrix.memory + MARGIN + shift;
    return matrix;
}

// `low` is -1 or 0: sums of one sign add up what is cut off.
static void fill(const struct matrix *matrix, uint32_t seed, float low)
{
    for (size_t i = 0; i < matrix->count; i++) {
        seed = seed * 1664525u + 1013904223u;
        const float part = (float)(seed >> 8) * 0x1p-24f;
        matrix->values[i] = ldexpf(low + part * (1 - low), (int)(i % 7));
    }
}

static size_t count_wrong(const struct size *size, const float *a, const float *b, const float *c)
{
    size_t wrong = 0;
    for (size_t i = 0; i < size->m; i++)
        for (size_t j = 0; j < size->n; j++) {
            double exact = 0, sizes = 0;
            for (size_t d = 0; d < size->k; d++) {
                const double product = (double)a[i * size->k + d] * (double)b[d * size->n + j];
                exact += product;
                sizes += fabs(product);
            }
            const double bound = ((double)size->k + 16) * 0x1p-23 * sizes;
            wrong += !(fabs((double)c[i * size->n + j] - exact) <= bound);
        }
    return wrong;
}

static size_t count_touched(const struct matrix *matrix)
{
    size_t touched = 0;
    for (const float *at = matrix->memory; at < matrix->memory + matrix->all; at++)
        touched += (at < matrix->values || at >= matrix->values + matrix->count) && !isnan(*at);
    return touched;
}

static void check(const struct size *size, float low, bool early)
{
    struct matrix a = make((size_t)size->m * size->k, size->shift);
    struct matrix b = make((size_t)size->k * size->n, size->shift);
    struct matrix c = make((size_t)size->m * size->n, size->shift);
    fill(&a, size->m, low);
    fill(&b, size->n, low);
    const unsigned faults =
        matmul_on_host(a.values, b.values, c.values, size->m, size->n, size->k, early);
    const size_t wrong = count_wrong(size, a.values, b.values, c.values);
    if (faults || wrong || count_touched(&c))
        weir_test_fail(
            __FILE__, __LINE__,
            "%u x %u x %u at %u: %u misused instructions, %zu beyond the bound, %zu past "
            "the edge",
            size->m, size->n, size->k, size->shift, faults, wrong, count_touched(&c));
    free(a.memory);
    free(b.memory);
    free(c.memory);
}

// Exact tiles; edges of whole vectors; edges of single floats, and matrices between vectors.
static const struct size sizes[] = {
    {128, 64, 64, 0}, {132, 68, 20, 0}, {40, 12, 4, 0},  {100, 60, 36, 0}, {129, 65, 17, 0},
    {127, 63, 15, 0}, {1, 1, 1, 0},     {5, 130, 33, 0}, {20, 64, 16, 1},  {130, 70, 0, 0},
};

WEIR_TEST(MatmulOnHost, CopiesAreLate)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check(&sizes[i], -1, false);
}

WEIR_TEST(MatmulOnHost, CopiesAreEarly)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check(&sizes[i], 0, true);
}
