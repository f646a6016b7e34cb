// Normally distributed numbers from a seed, the same bits on any machine with IEEE
// doubles: for weights and queries used in place of real ones.
#ifndef WEIR_PIPELINES_ARR_COC_NORMAL_H
#define WEIR_PIPELINES_ARR_COC_NORMAL_H

#include <stdint.h>

// Fills `values` with normally distributed numbers of mean 0 from the state
// `state` of <base/random.h>.
void weir_arr_coc_fill_normal(float *values, uint64_t count, double deviation, uint64_t state);

#endif
