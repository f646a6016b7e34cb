// Which patches stage 3 must make of the relevance that stage 2 left, by docs/arr-coc.md: for
// whoever checks results. It is exact, so a backend's patches are compared with those that its
// own relevance asks for.
#ifndef WEIR_PIPELINES_ARR_COC_PATCHES_H
#define WEIR_PIPELINES_ARR_COC_PATCHES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WEIR_ARR_COC_SIDE_LEAST = 8,
    WEIR_ARR_COC_PATCH_NUMBERS = 3 // index, side, first token
};

// `relevance` has `count` numbers, all of them finite; `budget` is in tokens. `patches` has
// room for three numbers of each of `count` patches. Stores how many there are, and how many
// tokens they have. False without memory.
bool weir_arr_coc_expect_patches(const float *relevance, uint32_t count, int64_t budget,
                                 int32_t *patches, uint32_t *out_count, int64_t *out_tokens);

#endif
