// Computes everything in the two networks that does not depend on the image, once
// per query.
//
// With f = W2 h + b2 the kernels need f.q = h.(W2'q) + b2.q and
// |f|^2 = h'(W2'W2)h + h.(2 W2'b2) + |b2|^2, and so nothing of length D.

#include "kernels/arr_coc/pack.h"

#include <math.h>

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
