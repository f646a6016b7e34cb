// The packed weights give the same two numbers as the networks themselves:
// checked with small integers, for which the sums are exact.

#include <stdlib.h>

#include "kernels/arr_coc/pack.h"
#include "tests/support/test.h"

enum {
    D = 5,
    HIDDEN = ARR_COC_HIDDEN,
    WIDTH = ARR_COC_BALANCER,
    COLUMNS = ARR_COC_STATISTICS + D
};

static float w0[HIDDEN * ARR_COC_CHANNELS], b0[HIDDEN], w2[D * HIDDEN], b2[D];
static float balancer0[WIDTH * COLUMNS], balancer0_bias[WIDTH];
static float balancer2[WIDTH * WIDTH], balancer2_bias[WIDTH], balancer4[3 * WIDTH],
    balancer4_bias[3];
static const float query[D] = {2.0f, -1.0f, 0.0f, 3.0f, 1.0f};
static float pack[ARR_COC_PACK_FLOATS];

// -3 to 3, without a pattern that a transposition would not change.
static void fill(float *values, size_t count, unsigned seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(int)(seed >> 16 & 7u) - 3.0f;
    }
}

#define FILL(array, seed) fill(array, sizeof array / sizeof array[0], seed)

static void make_pack(void)
{
    FILL(w0, 1);
    FILL(b0, 2);
    FILL(w2, 3);
    FILL(b2, 4);
    FILL(balancer0, 5);
    FILL(balancer0_bias, 6);
    FILL(balancer2, 7);
    FILL(balancer2_bias, 8);
    FILL(balancer4, 9);
    FILL(balancer4_bias, 10);
    const struct arr_coc_tensors tensors = {w0,        b0,
                                            w2,        b2,
                                            balancer0, balancer0_bias,
                                            balancer2, balancer2_bias,
                                            balancer4, balancer4_bias};
    arr_coc_pack(&tensors, query, D, pack);
}

WEIR_TEST(Pack, KeepsLengthAndProductOfTheFeature)
{
    make_pack();
    float h[HIDDEN];
    FILL(h, 11);
    double f_f = 0.0, f_q = 0.0;
    for (int row = 0; row < D; row++) {
        double f = b2[row];
        for (int i = 0; i < HIDDEN; i++)
            f += (double)w2[row * HIDDEN + i] * h[i];
        f_f += f * f;
        f_q += f * query[row];
    }
    double packed_f_f = pack[ARR_COC_PACK_SCALARS], packed_f_q = pack[ARR_COC_PACK_SCALARS + 1];
    for (int i = 0; i < HIDDEN; i++) {
        double row = pack[ARR_COC_PACK_WB + i];
        for (int j = 0; j < HIDDEN; j++)
            row += (double)pack[ARR_COC_PACK_GRAM + i * HIDDEN + j] * h[j];
        packed_f_f += row * h[i];
        packed_f_q += (double)pack[ARR_COC_PACK_WQ + i] * h[i];
    }
    EXPECT_DOUBLE_EQ(packed_f_f, f_f);
    EXPECT_DOUBLE_EQ(packed_f_q, f_q);
    EXPECT_NEAR(pack[ARR_COC_PACK_SCALARS + 2], 3.872983346, 1e-6); // sqrt(15)
}

WEIR_TEST(Pack, FoldsTheQueryIntoTheBalancersBias)
{
    make_pack();
    for (int row = 0; row < WIDTH; row++) {
        double bias = balancer0_bias[row];
        for (int i = 0; i < D; i++)
            bias += (double)balancer0[row * COLUMNS + ARR_COC_STATISTICS + i] * query[i];
        ASSERT_DOUBLE_EQ(pack[ARR_COC_PACK_BALANCER_0_BIAS + row], bias);
    }
}

static void expect_transposed(int at, const float *matrix, int rows, int columns, int pitch)
{
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < columns; column++)
            ASSERT_DOUBLE_EQ(pack[at + column * rows + row], matrix[row * pitch + column]);
}

WEIR_TEST(Pack, TransposesMatrices)
{
    make_pack();
    expect_transposed(ARR_COC_PACK_W0, w0, HIDDEN, ARR_COC_CHANNELS, ARR_COC_CHANNELS);
    expect_transposed(ARR_COC_PACK_BALANCER_0, balancer0, WIDTH, ARR_COC_STATISTICS, COLUMNS);
    expect_transposed(ARR_COC_PACK_BALANCER_2, balancer2, WIDTH, WIDTH, WIDTH);
    expect_transposed(ARR_COC_PACK_BALANCER_4, balancer4, 3, WIDTH, WIDTH);
    expect_transposed(ARR_COC_PACK_B0, b0, HIDDEN, 1, 1);
    expect_transposed(ARR_COC_PACK_BALANCER_2_BIAS, balancer2_bias, WIDTH, 1, 1);
    expect_transposed(ARR_COC_PACK_BALANCER_4_BIAS, balancer4_bias, 3, 1, 1);
}
