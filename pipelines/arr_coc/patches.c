#include "pipelines/arr_coc/patches.h"

#include <math.h>
#include <stdlib.h>

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

static int32_t whole_root(int64_t value)
{
    int32_t root = 0;
    while ((int64_t)(root + 1) * (root + 1) <= value)
        root++;
    return root;
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
            side = whole_root(budget - used);
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
