// How many blocks of a kernel its device holds at once.
#ifndef WEIR_CORE_QUEUE_OCCUPANCY_H
#define WEIR_CORE_QUEUE_OCCUPANCY_H

#include <weir/module/module.h>

// Asks the chain; the block has no zeros, and like `local_bytes` it was checked.
weir_status weir__kernel_occupancy(weir_kernel *kernel, struct weir_extent block,
                                   size_t local_bytes, struct weir_occupancy *out_occupancy);

// The work-items of a block of one dimension: those that the kernel requires, else at most 256.
// 0 if it requires blocks of more than one dimension.
uint32_t weir__usual_block(const weir_kernel *kernel);

// The block for exactly these work-items, of which only `x` may be 0: the kernel's required one, else a row as
// long as can be, then rows, then slices. False if it does not divide them, or if it has fewer
// work-items than info.preferred_block_items and is not all of them.
bool weir__exact_block(const weir_kernel *kernel, struct weir_extent items,
                       struct weir_extent *out_block);

#endif
