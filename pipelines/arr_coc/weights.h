// The weights of the ARR-COC pipeline, and the rule by which its results are checked. Weights are
// read from one safetensors file, whose tensors are named as those of struct arr_coc_tensors:
// "participatory.0.weight" and so on.
#ifndef WEIR_PIPELINES_ARR_COC_WEIGHTS_H
#define WEIR_PIPELINES_ARR_COC_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/safetensors.h"
#include "kernels/arr_coc/layout.cl.h"

enum {
    WEIR_ARR_COC_TENSORS = 10
};

// The ten tensors as in the weights file: [out, in] matrices.
struct arr_coc_tensors {
    const float *participatory_0_weight, *participatory_0_bias; // [64, 13], [64]
    const float *participatory_2_weight, *participatory_2_bias; // [D, 64], [D]
    const float *balancer_0_weight, *balancer_0_bias;           // [128, 9 + D], [128]
    const float *balancer_2_weight, *balancer_2_bias;           // [128, 128], [128]
    const float *balancer_4_weight, *balancer_4_bias;           // [3, 128], [3]
};

// Sets the names and shapes of the tensors, in the order of that structure, for D = `query_size`; all else is zero.
void weir_arr_coc_weights_describe(uint64_t query_size,
                                   struct weir_io_tensor tensors[WEIR_ARR_COC_TENSORS]);

// Fills `values` with normally distributed numbers of mean 0 from the state `state` of <base/random.h>, the same bits on
// any machine with IEEE doubles: for weights and queries used in place of real ones.
void weir_arr_coc_fill_normal(float *values, uint64_t count, double deviation, uint64_t state);

typedef struct weir_arr_coc_weights {
    weir_io_safetensors *file; // has the tensors
    size_t query_size;         // D, the number of elements of a query
    struct arr_coc_tensors tensors;
} weir_arr_coc_weights;

// Reads and checks a weights file. Other tensors in it are ignored.
//
// Ownership: `*out_weights` is the caller's, until weir_arr_coc_weights_destroy().
// Threads: safe; any number of threads may use the weights, which never change.
// Errors: false, `*out_weights` is NULL; the message names the file and the
// tensor, with the expected and the actual shape. NaN and infinity are refused.
bool weir_arr_coc_weights_load(const char *path, weir_arr_coc_weights **out_weights,
                               struct weir_io_error *error);

void weir_arr_coc_weights_destroy(weir_arr_coc_weights **weights);

// The patches that stage 3 must make of the relevance that stage 2 computed, by
// docs/arr-coc.md; for checking results. It is exact, so a backend's patches can be compared
// with those that follow from the backend's own relevance.

enum {
    WEIR_ARR_COC_SIDE_LEAST = 8,
    WEIR_ARR_COC_PATCH_NUMBERS = 3 // index, side, first token
};

// `relevance` has `count` numbers, all of them finite; `budget` is in tokens. `patches` has
// room for three numbers for each of `count` patches. Stores the number of patches and the
// number of their tokens. Returns false if out of memory.
bool weir_arr_coc_expect_patches(const float *relevance, uint32_t count, int64_t budget,
                                 int32_t *patches, uint32_t *out_count, int64_t *out_tokens);
// Whether all of the relevance are finite numbers, and these the patches and the tokens. False also if out of memory.
bool weir_arr_coc_follows(const float *relevance, uint32_t count, int64_t budget,
                          const int32_t *patches, uint32_t patch_count, int64_t tokens);

// Packs the tensors and one query into the `weights` buffer that the kernels read (kernels/arr_coc/README.md).
// Fills `out_pack` for `query` of `query_size` = D numbers. Sums are in double
// and in a fixed order, so the result has the same bits on every machine with
// IEEE 754 doubles. Takes a few milliseconds for D = 1536.
//
// Threads: safe; no state, no allocation.
void arr_coc_pack(const struct arr_coc_tensors *tensors, const float *query, size_t query_size,
                  float out_pack[ARR_COC_PACK_FLOATS]);

#endif
