// The reference of ARR-COC, and the rule of stage 3 that is compared with it.
#include <math.h>
#include <string.h>

#include "pipelines/arr_coc/weights.h"
#include "tests/support/arr_coc_reference.h"
#include "tests/support/test.h"

// Every backend is compared with the reference, so the reference itself is
// compared with values computed by hand, never with another program.

enum {
    S = 64,
    G = 4,
    P = S / G,
    PATCHES = G * G,
    PLANE = S * S,
    D = 5
};

static const struct arr_coc_reference_dims small = {.size = S,
                                                    .grid = G,
                                                    .budget = 512,
                                                    .query = D};

static double texture[13 * PLANE];

static double *channel(int index)
{
    return texture + (size_t)index * PLANE;
}

static void texture_of(const unsigned char *rgb8, int height, int width)
{
    arr_coc_reference_texture(&small, rgb8, height, width, texture);
}

// CIE values of the sRGB primaries under D65, L* a* b*.
WEIR_TEST(ArrCocReferenceTexture, LabOfKnownColours)
{
    static const struct {
        double rgb[3], lab[3];
    } known[] = {
        {{0, 0, 0}, {0, 0, 0}},
        {{1, 1, 1}, {100, 0, 0}},
        {{1, 0, 0}, {53.2408, 80.0925, 67.2032}},
        {{0, 1, 0}, {87.7347, -86.1827, 83.1793}},
        {{0, 0, 1}, {32.2970, 79.1875, -107.8602}},
        {{0, 1, 1}, {91.1132, -48.0875, -14.1312}},
        {{1, 1, 0}, {97.1393, -21.5537, 94.4780}},
        // Gray has no colour. 0.5 is 0.2140411 in linear light, and L* = 116 * cbrt(0.2140411) - 16.
        {{0.5, 0.5, 0.5}, {53.38897, 0, 0}},
        // Both formulas have a straight part near black.
        {{2 / 255.0, 2 / 255.0, 2 / 255.0}, {116 * 7.787 * 2 / 255 / 12.92, 0, 0}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        double lab[3];
        arr_coc_reference_lab(known[i].rgb, lab);
        EXPECT_NEAR(lab[0], known[i].lab[0] / 100, 1e-4);
        EXPECT_NEAR(lab[1], (known[i].lab[1] + 128) / 255, 1e-4);
        EXPECT_NEAR(lab[2], (known[i].lab[2] + 128) / 255, 1e-4);
    }
}

static void fill_patch(double *plane, int index, double value)
{
    for (int i = 0; i < P * P; i++)
        plane[(index / G * P + i / P) * S + index % G * P + i % P] = value;
}

// Patch 0: all on bin 0. Patch 1: all on bin 31. Patch 2: half way between two
// bins: 1 bit of 5. Patch 3: a quarter and three quarters: 0.811278 bit.
WEIR_TEST(ArrCocReferenceRelevance, EntropyOfSimplePatches)
{
    static double lightness[PLANE];
    double entropy[PATCHES];
    fill_patch(lightness, 1, 1.0);
    fill_patch(lightness, 2, 10.5 / 31);
    fill_patch(lightness, 3, 7.25 / 31);
    arr_coc_reference_entropy(&small, lightness, entropy);
    EXPECT_DOUBLE_EQ(entropy[0], 0.0);
    EXPECT_DOUBLE_EQ(entropy[1], 0.0);
    EXPECT_NEAR(entropy[2], 1.0 / 5, 1e-12);
    EXPECT_NEAR(entropy[3], 0.8112781244591328 / 5, 1e-12);
    for (int i = 4; i < PATCHES; i++)
        EXPECT_DOUBLE_EQ(entropy[i], 0.0);
}

// Weights chosen by hand: the participatory layer passes m[9] (y) and m[10] (x) to
// f[0] and f[1]; the balancer passes three of its inputs to the softmax.
struct hand_weights {
    float p0w[64 * 13], p0b[64], p2w[D * 64], p2b[D];
    float b0w[128 * (9 + D)], b0b[128], b2w[128 * 128], b2b[128], b4w[3 * 128], b4b[3];
};

static struct hand_weights hand;

static struct arr_coc_tensors hand_weights(void)
{
    memset(&hand, 0, sizeof hand);
    hand.p0w[0 * 13 + 9] = 1;
    hand.p0w[1 * 13 + 10] = 1;
    hand.p0b[2] = -1; // set to 0 by the relu
    hand.p2w[0 * 64 + 0] = 1;
    hand.p2w[1 * 64 + 1] = 1;
    hand.p2w[2 * 64 + 2] = 1;
    return (struct arr_coc_tensors){
        hand.p0w, hand.p0b, hand.p2w, hand.p2b, hand.b0w,
        hand.b0b, hand.b2w, hand.b2b, hand.b4w, hand.b4b,
    };
}

static double scores[3 * PATCHES], balance[3], relevance[PATCHES];

static void relevance_of_flat(const struct arr_coc_tensors *weights, const float *query)
{
    static const unsigned char pixel[3] = {90, 90, 90};
    texture_of(pixel, 1, 1);
    arr_coc_reference_relevance(&small, weights, texture, query, scores, balance, relevance);
}

// f = (y, x, 0, 0, 0) and q = (2, 0, 0, 0, 0), so cos = y / sqrt(x^2 + y^2),
// with y and x the centre of the patch. The softmax of three zeros is even.
WEIR_TEST(ArrCocReferenceRelevance, ParticipatoryScoreByHand)
{
    static const float query[D] = {2, 0, 0, 0, 0};
    struct arr_coc_tensors weights = hand_weights();
    relevance_of_flat(&weights, query);
    for (int i = 0; i < PATCHES; i++) {
        double y = (i / G + 0.5) / G, x = (i % G + 0.5) / G;
        EXPECT_DOUBLE_EQ(scores[i], 0.0);
        EXPECT_DOUBLE_EQ(scores[PATCHES + i], 0.0);
        EXPECT_NEAR(scores[2 * PATCHES + i], (1 + y / sqrt(x * x + y * y)) / 2, 1e-14);
    }
    for (int i = 0; i < 3; i++)
        EXPECT_NEAR(balance[i], 1.0 / 3, 1e-15);
}

// 16 pixels in 12 cells of 4/3 pixel: the first is pixel 0 and a third of
// pixel 1, the second is two thirds of each of the pixels 1 and 2.
WEIR_TEST(ArrCocReferenceCompress, FractionalPixelsCountByCoverage)
{
    static double tokens[12 * 12 * 13];
    static const int32_t patch[3] = {0, 12, 0};
    memset(texture, 0, sizeof texture);
    for (int row = 0; row < P; row++) {
        channel(4)[row * S + 0] = 1;
        channel(4)[row * S + 1] = 10;
        channel(4)[row * S + 2] = 100;
    }
    arr_coc_reference_compress(&small, texture, patch, 1, tokens);
    EXPECT_NEAR(tokens[13 * 0 + 4], (1 + 10 / 3.0) / (4 / 3.0), 1e-13);
    EXPECT_NEAR(tokens[13 * 1 + 4], (10 + 100) / 2.0, 1e-13);
    EXPECT_NEAR(tokens[13 * 2 + 4], 100 / 3.0 / (4 / 3.0), 1e-13);
    EXPECT_DOUBLE_EQ(tokens[13 * 3 + 4], 0.0);
    EXPECT_DOUBLE_EQ(tokens[13 * 0 + 3], 0.0);
}

// The rule of stage 3 that is used to check results.

WEIR_TEST(ArrCocPatches, SideOfARelevance)
{
    const float values[] = {0, 1, 0.5f, 0.125f, nextafterf(0.125f, 0)}; // 1.5 + 0.5: a tie goes up
    const int sides[] = {8, 20, 14, 10, 9};
    for (int i = 0; i < 5; i++) {
        int32_t patch[3];
        uint32_t count;
        int64_t tokens;
        ASSERT_TRUE(weir_arr_coc_expect_patches(&values[i], 1, 400, patch, &count, &tokens));
        EXPECT_INT_EQ(patch[1], sides[i]);
        EXPECT_INT_EQ(tokens, sides[i] * sides[i]);
    }
}

// 400 + 400 of 4096 and so on: 10 patches of side 20, and of the 96 tokens left
// the eleventh gets 9 x 9. Equal relevance goes by ascending index, and the largest is first.
WEIR_TEST(ArrCocPatches, LastPatchTakesWhatIsLeft)
{
    float values[PATCHES];
    int32_t patches[3 * PATCHES];
    uint32_t count;
    int64_t tokens;
    for (int i = 0; i < PATCHES; i++)
        values[i] = i == 5 ? 1.0f : 0.99f; // both of side 20
    ASSERT_TRUE(weir_arr_coc_expect_patches(values, PATCHES, 4096, patches, &count, &tokens));
    ASSERT_UINT_EQ(count, 11);
    for (int i = 0; i < 10; i++) {
        EXPECT_INT_EQ(patches[3 * i], i == 0 ? 5 : i <= 5 ? i - 1 : i);
        EXPECT_INT_EQ(patches[3 * i + 1], 20);
        EXPECT_INT_EQ(patches[3 * i + 2], 400 * i);
    }
    EXPECT_INT_EQ(patches[30], 10);
    EXPECT_INT_EQ(patches[31], 9);
    EXPECT_INT_EQ(patches[32], 4000);
    EXPECT_INT_EQ(tokens, 4081);
}
