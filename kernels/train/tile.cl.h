// How product() divides its result into blocks; shared by the kernel and its callers.

#ifndef WEIR_KERNELS_TRAIN_TILE_CL_H
#define WEIR_KERNELS_TRAIN_TILE_CL_H

enum {
    TRAIN_TILE = 64, // rows and columns that a block computes
    TRAIN_DEPTH = 16,
    TRAIN_BLOCK = 16, // work-items of a block along each side
    TRAIN_ITEM = TRAIN_TILE / TRAIN_BLOCK,

    TRAIN_SUM_COLUMNS = 16, // of a block of column_sums()
    TRAIN_SUM_ROWS = 16,

    TRAIN_RESULT_ITEMS = 64,

    // Bits of `turned`: the factor is stored as its transpose.
    TRAIN_TURNED_A = 1,
    TRAIN_TURNED_B = 2
};

#endif
