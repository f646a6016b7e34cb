// D is the size of participatory.2.bias; the other shapes follow from it.
//
// Numbers from a seed use only integers, + - * / and sqrt, no libm function whose last bit may vary; the file is compiled
// without contraction.
#include "pipelines/arr_coc/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

void weir_arr_coc_weights_describe(uint64_t query_size,
                                   struct weir_io_tensor tensors[WEIR_ARR_COC_TENSORS])
{
    const struct weir_io_tensor list[WEIR_ARR_COC_TENSORS] = {
        {.name = "participatory.0.weight", .rank = 2, .shape = {64, 13}},
        {.name = "participatory.0.bias", .rank = 1, .shape = {64}},
        {.name = "participatory.2.weight", .rank = 2, .shape = {query_size, 64}},
        {.name = "participatory.2.bias", .rank = 1, .shape = {query_size}},
        {.name = "balancer.0.weight", .rank = 2, .shape = {128, 9 + query_size}},
        {.name = "balancer.0.bias", .rank = 1, .shape = {128}},
        {.name = "balancer.2.weight", .rank = 2, .shape = {128, 128}},
        {.name = "balancer.2.bias", .rank = 1, .shape = {128}},
        {.name = "balancer.4.weight", .rank = 2, .shape = {3, 128}},
        {.name = "balancer.4.bias", .rank = 1, .shape = {3}},
    };
    memcpy(tensors, list, sizeof list);
}

static bool find_all(const char *path, weir_arr_coc_weights *weights, struct weir_io_error *error)
{
    const uint64_t any = WEIR_IO_ANY_SIZE;
    const float *unused;
    if (!weir_io_safetensors_find(weights->file, "participatory.2.bias", 1, &any, &unused, error))
        return false;
    const uint64_t d = weir_io_safetensors_get(weights->file, "participatory.2.bias")->shape[0];
    if (d == 0)
        return weir_io_fail(error, path,
                            "participatory.2.bias is empty; a query needs at least "
                            "one number");

    struct arr_coc_tensors *t = &weights->tensors;
    const float **const values[WEIR_ARR_COC_TENSORS] = {
        &t->participatory_0_weight, &t->participatory_0_bias, &t->participatory_2_weight,
        &t->participatory_2_bias,   &t->balancer_0_weight,    &t->balancer_0_bias,
        &t->balancer_2_weight,      &t->balancer_2_bias,      &t->balancer_4_weight,
        &t->balancer_4_bias,
    };
    struct weir_io_tensor wanted[WEIR_ARR_COC_TENSORS];
    weir_arr_coc_weights_describe(d, wanted);
    for (size_t i = 0; i < WEIR_ARR_COC_TENSORS; i++)
        if (!weir_io_safetensors_find(weights->file, wanted[i].name, wanted[i].rank,
                                      wanted[i].shape, values[i], error))
            return false;
    weights->query_size = (size_t)d;
    return true;
}

bool weir_arr_coc_weights_load(const char *path, weir_arr_coc_weights **out_weights,
                               struct weir_io_error *error)
{
    *out_weights = NULL;
    weir_arr_coc_weights *weights = calloc(1, sizeof *weights);
    if (!weights)
        return weir_io_fail(error, path, "no memory");
    if (!weir_io_safetensors_open(path, &weights->file, error) || !find_all(path, weights, error)) {
        weir_arr_coc_weights_destroy(&weights);
        return false;
    }
    *out_weights = weights;
    return true;
}

void weir_arr_coc_weights_destroy(weir_arr_coc_weights **weights)
{
    if (!weights || !*weights)
        return;
    weir_io_safetensors_destroy(&(*weights)->file);
    free(*weights);
    *weights = NULL;
}

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

// The rule of stage 3.

enum {
    SIDE_RANGE = 12
};

struct ranked {
    float relevance;
    int32_t index;
};

static int by_relevance(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;
    if (left->relevance != right->relevance)
        return left->relevance < right->relevance ? 1 : -1;
    return left->index < right->index ? -1 : 1;
}

// The first patch that does not fit gets the rest of the budget, and is the last.
static uint32_t allocate(const struct ranked *ranked, uint32_t count, int64_t budget,
                         int32_t *patches, int64_t *out_tokens)
{
    int64_t used = 0;
    uint32_t taken = 0;
    bool last = false;
    while (taken < count && !last) {
        const float relevance = ranked[taken].relevance;
        int32_t side = WEIR_ARR_COC_SIDE_LEAST + (int32_t)floorf(fmaf(SIDE_RANGE, relevance, 0.5f));
        last = used + (int64_t)side * side > budget;
        if (last)
            side = (int32_t)sqrt((double)(budget - used));
        if (side < WEIR_ARR_COC_SIDE_LEAST)
            break;
        int32_t *patch = patches + (size_t)WEIR_ARR_COC_PATCH_NUMBERS * taken++;
        patch[0] = ranked[taken - 1].index;
        patch[1] = side;
        patch[2] = (int32_t)used;
        used += (int64_t)side * side;
    }
    *out_tokens = used;
    return taken;
}

bool weir_arr_coc_expect_patches(const float *relevance, uint32_t count, int64_t budget,
                                 int32_t *patches, uint32_t *out_count, int64_t *out_tokens)
{
    struct ranked *ranked = malloc((size_t)count * sizeof *ranked + 1);
    *out_count = 0;
    *out_tokens = 0;
    if (!ranked)
        return false;
    for (uint32_t i = 0; i < count; i++)
        ranked[i] = (struct ranked){relevance[i], (int32_t)i};
    qsort(ranked, count, sizeof *ranked, by_relevance);
    *out_count = allocate(ranked, count, budget, patches, out_tokens);
    free(ranked);
    return true;
}

bool weir_arr_coc_follows(const float *relevance, uint32_t count, int64_t budget,
                          const int32_t *patches, uint32_t patch_count, int64_t tokens)
{
    const size_t size = WEIR_ARR_COC_PATCH_NUMBERS * sizeof *patches;
    int32_t *wanted = malloc((size_t)count * size + 1);
    struct weir_io_error ignored;
    uint32_t wanted_count;
    int64_t wanted_tokens;
    const bool same = wanted && weir_io_check_finite("", "relevance", relevance, count, &ignored) &&
                      weir_arr_coc_expect_patches(relevance, count, budget, wanted, &wanted_count,
                                                  &wanted_tokens) &&
                      wanted_count == patch_count && wanted_tokens == tokens &&
                      memcmp(wanted, patches, patch_count * size) == 0;
    free(wanted);
    return same;
}

// Everything in the two networks that does not depend on the image is computed once per query: with f = W2 h + b2 the
// kernels need f.q = h.(W2'q) + b2.q and |f|^2 = h'(W2'W2)h + h.(2 W2'b2) + |b2|^2, and so nothing of length D.

enum {
    HIDDEN = ARR_COC_HIDDEN,
    WIDTH = ARR_COC_BALANCER
};

// Element [i] of out = column `column` of `matrix` [rows, columns] times `vector`.
static double column_dot(const float *matrix, size_t columns, size_t column, const float *vector,
                         size_t rows)
{
    double sum = 0.0;
    for (size_t row = 0; row < rows; row++)
        sum += (double)matrix[row * columns + column] * (double)vector[row];
    return sum;
}

static double dot(const float *a, const float *b, size_t count)
{
    return column_dot(a, 1, 0, b, count);
}

static void transpose(const float *in, size_t rows, size_t columns, size_t in_pitch, float *out)
{
    for (size_t row = 0; row < rows; row++)
        for (size_t column = 0; column < columns; column++)
            out[column * rows + row] = in[row * in_pitch + column];
}

static void copy(const float *in, size_t count, float *out)
{
    transpose(in, 1, count, count, out);
}

// The Gram matrix is summed row by row of W2, to read D x 64 numbers once.
static void gram(const float *w2, size_t rows, float *out)
{
    static const size_t n = HIDDEN;
    double sums[HIDDEN * HIDDEN] = {0};
    for (size_t row = 0; row < rows; row++) {
        const float *w = w2 + row * n;
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j <= i; j++)
                sums[i * n + j] += (double)w[i] * (double)w[j];
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            out[i * n + j] = (float)(j <= i ? sums[i * n + j] : sums[j * n + i]);
}

static void pack_participatory(const struct arr_coc_tensors *t, const float *query, size_t size,
                               float *pack)
{
    transpose(t->participatory_0_weight, HIDDEN, ARR_COC_CHANNELS, ARR_COC_CHANNELS,
              pack + ARR_COC_PACK_W0);
    copy(t->participatory_0_bias, HIDDEN, pack + ARR_COC_PACK_B0);
    gram(t->participatory_2_weight, size, pack + ARR_COC_PACK_GRAM);
    for (size_t i = 0; i < HIDDEN; i++) {
        const float *w2 = t->participatory_2_weight, *b2 = t->participatory_2_bias;
        pack[ARR_COC_PACK_WB + i] = (float)(2.0 * column_dot(w2, HIDDEN, i, b2, size));
        pack[ARR_COC_PACK_WQ + i] = (float)column_dot(w2, HIDDEN, i, query, size);
    }
    float *scalars = pack + ARR_COC_PACK_SCALARS;
    scalars[0] = (float)dot(t->participatory_2_bias, t->participatory_2_bias, size);
    scalars[1] = (float)dot(t->participatory_2_bias, query, size);
    scalars[2] = (float)sqrt(dot(query, query, size));
    scalars[3] = 0.0f;
}

static void pack_balancer(const struct arr_coc_tensors *t, const float *query, size_t size,
                          float *pack)
{
    size_t columns = ARR_COC_STATISTICS + size;
    transpose(t->balancer_0_weight, WIDTH, ARR_COC_STATISTICS, columns,
              pack + ARR_COC_PACK_BALANCER_0);
    for (size_t row = 0; row < WIDTH; row++) {
        const float *of_query = t->balancer_0_weight + row * columns + ARR_COC_STATISTICS;
        pack[ARR_COC_PACK_BALANCER_0_BIAS + row] =
            (float)((double)t->balancer_0_bias[row] + dot(of_query, query, size));
    }
    transpose(t->balancer_2_weight, WIDTH, WIDTH, WIDTH, pack + ARR_COC_PACK_BALANCER_2);
    copy(t->balancer_2_bias, WIDTH, pack + ARR_COC_PACK_BALANCER_2_BIAS);
    transpose(t->balancer_4_weight, 3, WIDTH, WIDTH, pack + ARR_COC_PACK_BALANCER_4);
    copy(t->balancer_4_bias, 3, pack + ARR_COC_PACK_BALANCER_4_BIAS);
    pack[ARR_COC_PACK_BALANCER_4_BIAS + 3] = 0.0f;
}

void arr_coc_pack(const struct arr_coc_tensors *tensors, const float *query, size_t query_size,
                  float out_pack[ARR_COC_PACK_FLOATS])
{
    pack_participatory(tensors, query, query_size, out_pack);
    pack_balancer(tensors, query, query_size, out_pack);
}
