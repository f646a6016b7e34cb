// Packs weights and one query into the `weights` buffer that the ARR-COC kernels
// read (kernels/arr_coc/README.md).
#ifndef WEIR_KERNELS_ARR_COC_PACK_H
#define WEIR_KERNELS_ARR_COC_PACK_H

#include <stddef.h>

#include "kernels/arr_coc/layout.cl.h"

#ifdef __cplusplus
extern "C" {
#endif

// The ten tensors as in the weights file: [out, in] matrices.
struct arr_coc_tensors {
    const float *participatory_0_weight, *participatory_0_bias; // [64, 13], [64]
    const float *participatory_2_weight, *participatory_2_bias; // [D, 64], [D]
    const float *balancer_0_weight, *balancer_0_bias;           // [128, 9 + D], [128]
    const float *balancer_2_weight, *balancer_2_bias;           // [128, 128], [128]
    const float *balancer_4_weight, *balancer_4_bias;           // [3, 128], [3]
};

// Fills `out_pack` for `query` of `query_size` = D numbers. Sums are in double
// and in a fixed order, so the result has the same bits on every machine with
// IEEE 754 doubles. Takes a few milliseconds for D = 1536.
//
// Threads: safe; no state, no allocation.
void arr_coc_pack(const struct arr_coc_tensors *tensors, const float *query, size_t query_size,
                  float out_pack[ARR_COC_PACK_FLOATS]);

#ifdef __cplusplus
}
#endif

#endif
