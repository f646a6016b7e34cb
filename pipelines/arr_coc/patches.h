// The patches that stage 3 must make of the relevance that stage 2 computed, by
// docs/arr-coc.md; for checking results. It is exact, so a backend's patches can be compared
// with those that follow from the backend's own relevance.
#ifndef WEIR_PIPELINES_ARR_COC_PATCHES_H
#define WEIR_PIPELINES_ARR_COC_PATCHES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WEIR_ARR_COC_SIDE_LEAST = 8,
    WEIR_ARR_COC_PATCH_NUMBERS = 3 // index, side, first token
};

// `relevance` has `count` numbers, all of them finite; `budget` is in tokens. `patches` has
// room for three numbers for each of `count` patches. Stores the number of patches and the
// number of their tokens. Returns false if out of memory.
bool weir_arr_coc_expect_patches(const float *relevance, uint32_t count, int64_t budget,
                                 int32_t *patches, uint32_t *out_count, int64_t *out_tokens);

#endif
