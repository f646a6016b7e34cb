// The rule of stage 3 that is used to check results, compared with the reference.
#include <stdlib.h>
#include <string.h>

#include "pipelines/arr_coc/patches.h"
#include "tests/support/arr_coc_reference.h"
#include "tests/support/test.h"

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
static void make_relevance(float *relevance, int count, uint32_t *state)
{
    const uint32_t values = next(state) % 2 ? 5 : 1u << 20;
    for (int i = 0; i < count; i++)
        relevance[i] = (float)(next(state) % (values + 1)) / (float)values;
}

WEIR_TEST(ArrCocPatches, AreThoseOfTheReference)
{
    uint32_t state = 7;
    int cut = 0; // rounds in which the last patch had to be smaller
    for (int round = 0; round < ROUNDS && !weir_test_has_failed(); round++) {
        float relevance[PATCHES_MOST];
        int32_t wanted[3 * PATCHES_MOST];
        int32_t patches[3 * PATCHES_MOST];
        struct arr_coc_reference_dims dims = {.grid = 1 + (int)(next(&state) % GRID_MOST)};
        dims.budget = (int)(next(&state) % (uint32_t)(500 * dims.grid * dims.grid));
        const int count = dims.grid * dims.grid;
        int wanted_tokens;
        uint32_t found;
        int64_t tokens;
        make_relevance(relevance, count, &state);
        const int wanted_count =
            arr_coc_reference_allocate(&dims, relevance, wanted, &wanted_tokens);
        weir_test_note("round %d", round);
        ASSERT_TRUE(weir_arr_coc_expect_patches(relevance, (uint32_t)count, dims.budget, patches,
                                                &found, &tokens));
        ASSERT_INT_EQ(found, wanted_count);
        EXPECT_INT_EQ(tokens, wanted_tokens);
        EXPECT_INT_EQ(memcmp(patches, wanted, found * 3 * sizeof *patches), 0);
        const int32_t *last = patches + 3 * (size_t)(found > 0 ? found - 1 : 0);
        cut += found > 0 && last[1] < arr_coc_reference_side(relevance[last[0]]);
    }
    EXPECT_INT_GT(cut, ROUNDS / 20);
}

WEIR_TEST(ArrCocPatches, NoneFitIntoASmallBudget)
{
    const float relevance[] = {0.5f, 1};
    int32_t patches[6];
    uint32_t count = 1;
    int64_t tokens = 1;
    ASSERT_TRUE(weir_arr_coc_expect_patches(relevance, 2, 63, patches, &count, &tokens));
    EXPECT_UINT_EQ(count, 0);
    EXPECT_INT_EQ(tokens, 0);
    ASSERT_TRUE(weir_arr_coc_expect_patches(relevance, 2, 64, patches, &count, &tokens));
    EXPECT_UINT_EQ(count, 1);
    EXPECT_INT_EQ(patches[0], 1);
    EXPECT_INT_EQ(patches[1], 8);
}
