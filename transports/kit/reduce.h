// The arithmetic of reductions.
#ifndef WEIR_TRANSPORTS_REDUCE_H
#define WEIR_TRANSPORTS_REDUCE_H

#include <weir/comm.h>

// total[i] = total[i] (op) more[i], in the type of the elements; float16 and bfloat16 in float32,
// rounded to nearest even. AVERAGE adds. `total` is aligned for any element, `more` need not be.
void weir_reduce(weir_datatype element, weir_reduction reduction, void *total, const void *more,
                 size_t count);

// total[i] = total[i] / ranks, of integers towards zero: the end of an AVERAGE.
void weir_reduce_divide(weir_datatype element, void *total, size_t count, uint32_t ranks);

#endif
