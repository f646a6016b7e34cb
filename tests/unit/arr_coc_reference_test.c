// The reference of ARR-COC, and the rule of stage 3 that is compared with it.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipelines/arr_coc/patches.h"
#include "tests/support/arr_coc_reference.h"
#include "tests/support/made_images.h"
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

// Two pixels on S columns: centres are at (i + 0.5) / 32 - 0.5, clamped to
// [0, 1], so red is 0 up to column 15, 1 from column 48, and 0.5 between the
// columns 31 and 32.
WEIR_TEST(ArrCocReferenceTexture, BilinearWithHalfPixelCentres)
{
    unsigned char rgb8[2 * 3];
    made_image_halves(1, 2, 0x000000, 0xff0000, rgb8);
    texture_of(rgb8, 1, 2);
    for (int column = 0; column < S; column++) {
        double centre = (column + 0.5) / 32 - 0.5;
        double red = centre < 0 ? 0 : centre > 1 ? 1 : centre;
        EXPECT_NEAR(channel(0)[column], red, 1e-15);
        EXPECT_NEAR(channel(0)[(S - 1) * S + column], red, 1e-15);
    }
    EXPECT_DOUBLE_EQ(channel(0)[15], 0.0);
    EXPECT_NEAR(channel(0)[31], 31.5 / 32 - 0.5, 0);
    EXPECT_DOUBLE_EQ(channel(0)[48], 1.0);
}

// No anti-aliasing: of a row of 5000 pixels, output column c depends only on the
// two source pixels around (c + 0.5) * 5000 / 64 - 0.5.
WEIR_TEST(ArrCocReferenceTexture, LongRowIsSampledNotAveraged)
{
    enum {
        WIDTH = 5000
    };
    static unsigned char rgb8[WIDTH * 3];
    made_image_flat(1, WIDTH, 0x000000, rgb8);
    // Column 0 is centred on 38.5625: pixel 38 weighs 0.4375, pixel 39 0.5625.
    rgb8[39 * 3] = 255;
    texture_of(rgb8, 1, WIDTH);
    EXPECT_NEAR(channel(0)[0], 0.5625, 1e-12);
    EXPECT_NEAR(channel(0)[(S - 1) * S], 0.5625, 1e-12);
    EXPECT_DOUBLE_EQ(channel(0)[1], 0.0);
}

// One white pixel at (10, 20): right of its left neighbour, so gx is +2/8
// there; gy of the pixel above is +2/8; the diagonal neighbours get 1/8 of both.
WEIR_TEST(ArrCocReferenceTexture, GradientsPointTowardsBrightness)
{
    static unsigned char rgb8[PLANE * 3];
    made_image_dot(S, S, 0x000000, 10, 20, 0xffffff, rgb8);
    texture_of(rgb8, S, S);
    EXPECT_NEAR(channel(6)[10 * S + 19], 0.75, 1e-15);
    EXPECT_NEAR(channel(6)[10 * S + 21], 0.25, 1e-15);
    EXPECT_NEAR(channel(7)[9 * S + 20], 0.75, 1e-15);
    EXPECT_NEAR(channel(7)[11 * S + 20], 0.25, 1e-15);
    EXPECT_NEAR(channel(6)[9 * S + 19], 0.625, 1e-15);
    EXPECT_NEAR(channel(7)[9 * S + 19], 0.625, 1e-15);
    EXPECT_NEAR(channel(8)[9 * S + 19], 0.25, 1e-15);
    EXPECT_DOUBLE_EQ(channel(8)[10 * S + 20], 0.0);
}

// The border is replicated: at a bright corner pixel the neighbours outside are
// the pixel itself, so gx = (right - left) = -(1 + 2)/8 there.
WEIR_TEST(ArrCocReferenceTexture, BorderIsReplicated)
{
    static unsigned char rgb8[PLANE * 3];
    made_image_dot(S, S, 0x000000, 0, 0, 0xffffff, rgb8);
    texture_of(rgb8, S, S);
    EXPECT_NEAR(channel(6)[0], 0.5 - 3.0 / 8, 1e-15);
    EXPECT_NEAR(channel(7)[0], 0.5 - 3.0 / 8, 1e-15);
}

WEIR_TEST(ArrCocReferenceTexture, Positions)
{
    static const unsigned char pixel[3];
    texture_of(pixel, 1, 1);
    EXPECT_DOUBLE_EQ(channel(9)[0], 0.5 / S);
    EXPECT_DOUBLE_EQ(channel(9)[3 * S + 7], 3.5 / S);
    EXPECT_DOUBLE_EQ(channel(10)[3 * S + 7], 7.5 / S);
    // On the diagonals: 1/8, 3/8, 5/8 and 7/8 of a turn, from the left, where
    // y - 0.5 just turns negative.
    EXPECT_NEAR(channel(11)[0], 0.125, 1e-15);
    EXPECT_NEAR(channel(11)[S - 1], 0.375, 1e-15);
    EXPECT_NEAR(channel(11)[PLANE - 1], 0.625, 1e-15);
    EXPECT_NEAR(channel(11)[PLANE - S], 0.875, 1e-15);
    EXPECT_NEAR(channel(12)[0], 1 - 1.0 / S, 1e-15);
    EXPECT_NEAR(channel(12)[(S / 2) * S + S / 2], 1.0 / S, 1e-15);
}

static void fill_patch(double *plane, int index, double value)
{
    for (int i = 0; i < P * P; i++) {
        plane[(index / G * P + i / P) * S + index % G * P + i % P] = value;
    }
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
    for (int i = 4; i < PATCHES; i++) {
        EXPECT_DOUBLE_EQ(entropy[i], 0.0);
    }
}

// 32 equally full bins are the maximum: 5 bits, scaled to 1.
WEIR_TEST(ArrCocReferenceRelevance, EntropyOfAllBinsIsOne)
{
    static double lightness[PLANE];
    double entropy[PATCHES];
    for (int i = 0; i < P * P; i++) {
        lightness[i / P * S + i % P] = (i % 32) / 31.0;
    }
    arr_coc_reference_entropy(&small, lightness, entropy);
    EXPECT_NEAR(entropy[0], 1.0, 1e-9);
    EXPECT_DOUBLE_EQ(entropy[1], 0.0);
}

// The weight is rounded to 1/256: a pixel just below a tie stays, one above moves.
WEIR_TEST(ArrCocReferenceRelevance, EntropySlackIsWhatATieIsWorth)
{
    static double lightness[PLANE];
    double entropy[PATCHES], slack[PATCHES];
    double tie = (100 + 0.5) / 256 / 31;
    fill_patch(lightness, 0, tie - 1e-7);
    fill_patch(lightness, 1, tie + 1e-7);
    fill_patch(lightness, 2, 100.0 / 256 / 31);
    arr_coc_reference_entropy(&small, lightness, entropy);
    arr_coc_reference_entropy_slack(&small, lightness, 2e-7, slack);
    EXPECT_DOUBLE_EQ(entropy[0], entropy[2]);
    EXPECT_DOUBLE_GT(entropy[1] - entropy[0], 1e-4);
    EXPECT_NEAR(slack[0], entropy[1] - entropy[0], 1e-15);
    EXPECT_NEAR(slack[1], entropy[1] - entropy[0], 1e-15);
    EXPECT_DOUBLE_EQ(slack[2], 0.0);
    EXPECT_DOUBLE_EQ(slack[3], 0.0);
}

WEIR_TEST(ArrCocReferenceRelevance, NormOfAConstantIsZero)
{
    double values[3] = {0.1, 0.1, 0.1};
    arr_coc_reference_norm(values, 3);
    for (int i = 0; i < 3; i++) {
        EXPECT_DOUBLE_EQ(values[i], 0.0);
    }
}

WEIR_TEST(ArrCocReferenceRelevance, PatchMeansKeepPatchesApart)
{
    static double plane[PLANE];
    double means[PATCHES];
    for (int i = 0; i < PATCHES; i++) {
        fill_patch(plane, i, i);
    }
    plane[0] = 256; // one pixel of the 256 of patch 0
    arr_coc_reference_patch_means(&small, plane, means);
    EXPECT_DOUBLE_EQ(means[0], 1.0);
    for (int i = 1; i < PATCHES; i++) {
        EXPECT_DOUBLE_EQ(means[i], (double)i);
    }
}

// Weights chosen by hand: the participatory layer passes m[9] (y) and m[10] (x) to
// f[0] and f[1]; the balancer passes three of its inputs to the softmax.
struct hand_weights {
    float p0w[64 * 13], p0b[64], p2w[D * 64], p2b[D];
    float b0w[128 * (9 + D)], b0b[128], b2w[128 * 128], b2b[128], b4w[3 * 128], b4b[3];
};

static struct hand_weights hand;

static struct arr_coc_reference_weights hand_weights(void)
{
    memset(&hand, 0, sizeof hand);
    hand.p0w[0 * 13 + 9] = 1;
    hand.p0w[1 * 13 + 10] = 1;
    hand.p0b[2] = -1; // set to 0 by the relu
    hand.p2w[0 * 64 + 0] = 1;
    hand.p2w[1 * 64 + 1] = 1;
    hand.p2w[2 * 64 + 2] = 1;
    return (struct arr_coc_reference_weights){
        hand.p0w, hand.p0b, hand.p2w, hand.p2b, hand.b0w,
        hand.b0b, hand.b2w, hand.b2b, hand.b4w, hand.b4b,
    };
}

static double scores[3 * PATCHES], balance[3], relevance[PATCHES];

static void relevance_of_flat(const struct arr_coc_reference_weights *weights, const float *query)
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
    struct arr_coc_reference_weights weights = hand_weights();
    relevance_of_flat(&weights, query);
    for (int i = 0; i < PATCHES; i++) {
        double y = (i / G + 0.5) / G, x = (i % G + 0.5) / G;
        EXPECT_DOUBLE_EQ(scores[i], 0.0);
        EXPECT_DOUBLE_EQ(scores[PATCHES + i], 0.0);
        EXPECT_NEAR(scores[2 * PATCHES + i], (1 + y / sqrt(x * x + y * y)) / 2, 1e-14);
    }
    for (int i = 0; i < 3; i++) {
        EXPECT_NEAR(balance[i], 1.0 / 3, 1e-15);
    }
}

WEIR_TEST(ArrCocReferenceRelevance, ZeroQueryScoresOneHalf)
{
    static const float query[D];
    struct arr_coc_reference_weights weights = hand_weights();
    relevance_of_flat(&weights, query);
    for (int i = 0; i < PATCHES; i++) {
        EXPECT_DOUBLE_EQ(scores[2 * PATCHES + i], 0.5);
    }
}

// The balancer's inputs are taken out one by one: a weight of 1 from input k
// through every layer makes a = softmax(z[k], 0, 0), so a0/a1 = exp(z[k]).
static double balancer_input(int k, const float *query)
{
    struct arr_coc_reference_weights weights = hand_weights();
    hand.b0w[3 * (9 + D) + k] = 1;
    hand.b2w[2 * 128 + 3] = 1;
    hand.b4w[0 * 128 + 2] = 1;
    relevance_of_flat(&weights, query);
    return log(balance[0] / balance[1]);
}

WEIR_TEST(ArrCocReferenceRelevance, BalancerSeesMeanMaximumDeviationThenQuery)
{
    static const float query[D] = {2, 0, 0, 0.25f, 0};
    double sum = 0, squares = 0, high = 0;
    for (int i = 0; i < PATCHES; i++) {
        double y = (i / G + 0.5) / G, x = (i % G + 0.5) / G;
        double score = (1 + 2 * y / sqrt((x * x + y * y) * (4 + 0.0625))) / 2;
        sum += score;
        squares += score * score;
        high = fmax(high, score);
    }
    double deviation = sqrt((squares - sum * sum / PATCHES) / (PATCHES - 1));
    for (int k = 0; k < 6; k++) { // the scores of a flat image are all 0
        EXPECT_DOUBLE_EQ(balancer_input(k, query), 0.0);
    }
    EXPECT_NEAR(balancer_input(6, query), sum / PATCHES, 1e-12);
    EXPECT_NEAR(balancer_input(7, query), high, 1e-12);
    EXPECT_NEAR(balancer_input(8, query), deviation, 1e-12);
    EXPECT_NEAR(balancer_input(9, query), 2.0, 1e-12);
    EXPECT_NEAR(balancer_input(12, query), 0.25, 1e-12);
}

// With all matrices zero only biases count: f = (3, 4, 0, 0, 0) makes a cosine of
// 3/5 with the first axis, and the softmax of logarithms is their proportion.
WEIR_TEST(ArrCocReferenceRelevance, BiasesAreAdded)
{
    static const float query[D] = {1, 0, 0, 0, 0};
    struct arr_coc_reference_weights weights = hand_weights();
    memset(&hand, 0, sizeof hand);
    hand.p2b[0] = 3;
    hand.p2b[1] = 4;
    hand.b4b[1] = logf(2);
    hand.b4b[2] = logf(5);
    relevance_of_flat(&weights, query);
    EXPECT_NEAR(scores[2 * PATCHES], 0.8, 1e-15);
    EXPECT_NEAR(balance[0], 1.0 / 8, 1e-7);
    EXPECT_NEAR(balance[1], 2.0 / 8, 1e-7);
    EXPECT_NEAR(balance[2], 5.0 / 8, 1e-7);
}

// Inner biases: 1 passes both layers, plus 2 on the way, and comes out as 3. -1
// must be set to 0 by the first relu, although -1 * -1 would pass the second, and
// -3 in the second.
WEIR_TEST(ArrCocReferenceRelevance, BalancerHasTwoRelus)
{
    static const float query[D] = {1, 0, 0, 0, 0};
    struct arr_coc_reference_weights weights = hand_weights();
    hand.b0b[0] = 1;
    hand.b2w[0 * 128 + 0] = 1;
    hand.b2b[0] = 2;
    hand.b4w[0 * 128 + 0] = 1;
    hand.b0b[1] = -1;
    hand.b2w[1 * 128 + 1] = -1;
    hand.b4w[1 * 128 + 1] = 1;
    hand.b2b[5] = -3;
    hand.b4w[2 * 128 + 5] = 1;
    relevance_of_flat(&weights, query);
    EXPECT_NEAR(log(balance[0] / balance[1]), 3.0, 1e-12);
    EXPECT_NEAR(log(balance[2] / balance[1]), 0.0, 1e-12);
}

// Each score is 0 but in one patch: patch 1 has an entropy, patch 2 a gradient,
// and patch 3 f = (0.75, 1), a cosine of 0.6 where the others have 0. Weighed 1 :
// 2 : 5, they exceed the others by 1/8, 1/4 and 0.3 * 5/8.
WEIR_TEST(ArrCocReferenceRelevance, ThreeScoresAreWeighed)
{
    static const float query[D] = {1, 0, 0, 0, 0};
    struct arr_coc_reference_weights weights = hand_weights();
    memset(&hand, 0, sizeof hand);
    hand.p0w[0] = 1;
    hand.p2w[0] = 1;
    hand.p2b[1] = 1;
    hand.b4b[1] = logf(2);
    hand.b4b[2] = logf(5);
    memset(texture, 0, sizeof texture);
    fill_patch(channel(3), 1, 10.5 / 31);
    fill_patch(channel(8), 2, 0.25);
    fill_patch(channel(0), 3, 0.75);
    arr_coc_reference_relevance(&small, &weights, texture, query, scores, balance, relevance);
    EXPECT_NEAR(scores[1], 1.0, 1e-7);
    EXPECT_DOUBLE_EQ(scores[2], 0.0);
    EXPECT_NEAR(scores[PATCHES + 2], 1.0, 1e-7);
    EXPECT_DOUBLE_EQ(scores[PATCHES + 1], 0.0);
    EXPECT_NEAR(scores[2 * PATCHES + 3], 0.8, 1e-15);
    EXPECT_DOUBLE_EQ(scores[2 * PATCHES + 1], 0.5);
    EXPECT_DOUBLE_EQ(relevance[0], 0.0);
    EXPECT_NEAR(relevance[1], 0.5, 1e-6);
    EXPECT_NEAR(relevance[2], 1.0, 1e-6);
    EXPECT_NEAR(relevance[3], 0.75, 1e-6);
}

WEIR_TEST(ArrCocReferenceAllocate, SideOfARelevance)
{
    EXPECT_INT_EQ(arr_coc_reference_side(0.0f), 8);
    EXPECT_INT_EQ(arr_coc_reference_side(1.0f), 20);
    EXPECT_INT_EQ(arr_coc_reference_side(0.5f), 14);
    EXPECT_INT_EQ(arr_coc_reference_side(0.125f), 10); // 1.5 + 0.5: a tie goes up
    EXPECT_INT_EQ(arr_coc_reference_side(nextafterf(0.125f, 0.0f)), 9);
}

// 400 + 400 of 4096 and so on: 10 patches of side 20, and of the 96 tokens left
// the eleventh gets 9 x 9. Equal relevance goes by ascending index.
WEIR_TEST(ArrCocReferenceAllocate, LastPatchTakesWhatIsLeft)
{
    struct arr_coc_reference_dims dims = {S, G, 4096, D};
    float equal[PATCHES];
    int32_t patches[3 * PATCHES];
    int tokens;
    for (int i = 0; i < PATCHES; i++) {
        equal[i] = 1.0f;
    }
    ASSERT_INT_EQ(arr_coc_reference_allocate(&dims, equal, patches, &tokens), 11);
    for (int i = 0; i < 10; i++) {
        EXPECT_INT_EQ(patches[3 * i], i);
        EXPECT_INT_EQ(patches[3 * i + 1], 20);
        EXPECT_INT_EQ(patches[3 * i + 2], 400 * i);
    }
    EXPECT_INT_EQ(patches[30], 10);
    EXPECT_INT_EQ(patches[31], 9);
    EXPECT_INT_EQ(patches[32], 4000);
    EXPECT_INT_EQ(tokens, 4081);
}

// 63 tokens are left, and a side of 7 is below the smallest: the list ends,
// although nothing was cut.
WEIR_TEST(ArrCocReferenceAllocate, LastPatchBelowTheSmallestIsNotTaken)
{
    struct arr_coc_reference_dims dims = {S, G, 400 + 63, D};
    float values[PATCHES] = {[3] = 1.0f};
    int32_t patches[3 * PATCHES];
    int tokens;
    ASSERT_INT_EQ(arr_coc_reference_allocate(&dims, values, patches, &tokens), 1);
    EXPECT_INT_EQ(patches[0], 3);
    EXPECT_INT_EQ(tokens, 400);
    dims.budget = 400 + 64;
    ASSERT_INT_EQ(arr_coc_reference_allocate(&dims, values, patches, &tokens), 2);
    EXPECT_INT_EQ(patches[3], 0);
    EXPECT_INT_EQ(patches[4], 8);
    EXPECT_INT_EQ(tokens, 464);
}

// 0.75 requests a side of 17, but the 214 tokens left allow only 14. A cut patch
// leaves at most 38 tokens, so nothing could follow it.
WEIR_TEST(ArrCocReferenceAllocate, FirstThatDoesNotFitIsCut)
{
    struct arr_coc_reference_dims dims = {S, G, 400 + 214, D};
    float values[PATCHES] = {[5] = 1.0f, [2] = 0.75f};
    int32_t patches[3 * PATCHES];
    int tokens;
    ASSERT_INT_EQ(arr_coc_reference_allocate(&dims, values, patches, &tokens), 2);
    EXPECT_INT_EQ(patches[3], 2);
    EXPECT_INT_EQ(patches[4], 14);
    EXPECT_INT_EQ(tokens, 596);
}

WEIR_TEST(ArrCocReferenceAllocate, BudgetsAtTheEdges)
{
    struct arr_coc_reference_dims dims = {S, G, 63, D};
    float values[PATCHES] = {0};
    int32_t patches[3 * PATCHES];
    int tokens;
    EXPECT_INT_EQ(arr_coc_reference_allocate(&dims, values, patches, &tokens), 0);
    EXPECT_INT_EQ(tokens, 0);
    dims.budget = 64 * PATCHES;
    EXPECT_INT_EQ(arr_coc_reference_allocate(&dims, values, patches, &tokens), PATCHES);
    EXPECT_INT_EQ(tokens, 64 * PATCHES);
    dims.budget = 1000000;
    EXPECT_INT_EQ(arr_coc_reference_allocate(&dims, values, patches, &tokens), PATCHES);
    EXPECT_INT_EQ(tokens, 64 * PATCHES);
}

WEIR_TEST(ArrCocReferenceAllocate, DescendingRelevance)
{
    struct arr_coc_reference_dims dims = {S, G, 1000000, D};
    float values[PATCHES];
    int32_t patches[3 * PATCHES];
    int tokens;
    for (int i = 0; i < PATCHES; i++) {
        values[i] = (float)(i / 2) / PATCHES; // pairs: ascending index within one
    }
    ASSERT_INT_EQ(arr_coc_reference_allocate(&dims, values, patches, &tokens), PATCHES);
    for (int i = 0; i < PATCHES; i++) {
        EXPECT_INT_EQ(patches[3 * i], (PATCHES - 1 - i) / 2 * 2 + i % 2);
    }
}

// A cell of whole pixels averages a linear ramp to its value at the centre.
// Sides 8 and 16 divide the 16 pixels of a patch.
WEIR_TEST(ArrCocReferenceCompress, RampIsExactAtCellCentres)
{
    enum {
        INDEX = 6
    };
    static double tokens[20 * 20 * 13];
    for (int i = 0; i < PLANE; i++) {
        channel(0)[i] = (i % S + 0.5) * 3 + (i / S + 0.5) * 7;
    }
    for (int side = 8; side <= 16; side += 8) {
        int32_t patch[3] = {INDEX, side, 0};
        arr_coc_reference_compress(&small, texture, patch, 1, tokens);
        for (int cell = 0; cell < side * side; cell++) {
            double y = INDEX / G * P + (cell / side + 0.5) * P / side;
            double x = INDEX % G * P + (cell % side + 0.5) * P / side;
            EXPECT_NEAR(tokens[13 * cell], 3 * x + 7 * y, 1e-12);
        }
    }
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

// Every pixel is covered once: the mean of the cells is the mean of the patch,
// also with more cells than pixels.
WEIR_TEST(ArrCocReferenceCompress, MeanIsKeptAtEverySide)
{
    static unsigned char rgb8[PLANE * 3];
    static double tokens[20 * 20 * 13];
    double means[PATCHES];
    made_image_noise(S, S, 2, rgb8);
    texture_of(rgb8, S, S);
    arr_coc_reference_patch_means(&small, channel(3), means);
    for (int side = 8; side <= 20; side++) {
        int32_t patch[3] = {9, side, 0};
        double sum = 0;
        arr_coc_reference_compress(&small, texture, patch, 1, tokens);
        for (int cell = 0; cell < side * side; cell++) {
            sum += tokens[13 * cell + 3];
        }
        EXPECT_NEAR(sum / (side * side), means[9], 1e-13);
    }
}

WEIR_TEST(ArrCocReferenceCompress, TokensStandWhereThePatchSays)
{
    static double tokens[(64 + 81) * 13];
    static const int32_t patches[6] = {3, 8, 0, 1, 9, 64};
    for (int i = 0; i < PATCHES; i++) {
        fill_patch(channel(12), i, i);
    }
    arr_coc_reference_compress(&small, texture, patches, 2, tokens);
    EXPECT_NEAR(tokens[12], 3.0, 1e-14);
    EXPECT_NEAR(tokens[63 * 13 + 12], 3.0, 1e-14);
    EXPECT_NEAR(tokens[64 * 13 + 12], 1.0, 1e-14);
    EXPECT_NEAR(tokens[144 * 13 + 12], 1.0, 1e-14);
}

// The rule of stage 3 that is used to check results, compared with the reference.

enum {
    GRID_MOST = 12,
    PATCHES_MOST = GRID_MOST * GRID_MOST,
    ROUNDS = 3000
};

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

// Few distinct values in some rounds, so that many patches are equal.
static void make_given(float *given, int count, uint32_t *state)
{
    const uint32_t values = next(state) % 2 ? 5 : 1u << 20;
    for (int i = 0; i < count; i++)
        given[i] = (float)(next(state) % (values + 1)) / (float)values;
}

WEIR_TEST(ArrCocPatches, AreThoseOfTheReference)
{
    uint32_t state = 7;
    int cut = 0; // rounds in which the last patch had to be smaller
    for (int round = 0; round < ROUNDS && !weir_test_has_failed(); round++) {
        float given[PATCHES_MOST];
        int32_t wanted[3 * PATCHES_MOST];
        int32_t patches[3 * PATCHES_MOST];
        struct arr_coc_reference_dims dims = {.grid = 1 + (int)(next(&state) % GRID_MOST)};
        dims.budget = (int)(next(&state) % (uint32_t)(500 * dims.grid * dims.grid));
        const int count = dims.grid * dims.grid;
        int wanted_tokens;
        uint32_t found;
        int64_t tokens;
        make_given(given, count, &state);
        const int wanted_count = arr_coc_reference_allocate(&dims, given, wanted, &wanted_tokens);
        weir_test_note("round %d", round);
        ASSERT_TRUE(weir_arr_coc_expect_patches(given, (uint32_t)count, dims.budget, patches,
                                                &found, &tokens));
        ASSERT_INT_EQ(found, wanted_count);
        EXPECT_INT_EQ(tokens, wanted_tokens);
        EXPECT_INT_EQ(memcmp(patches, wanted, found * 3 * sizeof *patches), 0);
        const int32_t *last = patches + 3 * (size_t)(found > 0 ? found - 1 : 0);
        cut += found > 0 && last[1] < arr_coc_reference_side(given[last[0]]);
    }
    EXPECT_INT_GT(cut, ROUNDS / 20);
}

WEIR_TEST(ArrCocPatches, NoneFitIntoASmallBudget)
{
    const float values[] = {0.5f, 1};
    int32_t patches[6];
    uint32_t count = 1;
    int64_t tokens = 1;
    ASSERT_TRUE(weir_arr_coc_expect_patches(values, 2, 63, patches, &count, &tokens));
    EXPECT_UINT_EQ(count, 0);
    EXPECT_INT_EQ(tokens, 0);
    ASSERT_TRUE(weir_arr_coc_expect_patches(values, 2, 64, patches, &count, &tokens));
    EXPECT_UINT_EQ(count, 1);
    EXPECT_INT_EQ(patches[0], 1);
    EXPECT_INT_EQ(patches[1], 8);
}
