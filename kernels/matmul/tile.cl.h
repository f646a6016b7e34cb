// How matmul() divides its product into blocks; shared by the kernel and its
// callers.

#ifndef WEIR_KERNELS_MATMUL_TILE_CL_H
#define WEIR_KERNELS_MATMUL_TILE_CL_H

enum {
    MATMUL_ROWS = 128, // of the product, computed by a block
    MATMUL_COLUMNS = 64,
    MATMUL_DEPTH = 16,  // of the factors, in local memory at a time
    MATMUL_BLOCK_X = 8, // work-items of a block
    MATMUL_BLOCK_Y = 16,

    MATMUL_ITEMS = MATMUL_BLOCK_X * MATMUL_BLOCK_Y,
    // A work-item computes 8 x 8 elements of the product: two groups of four
    // rows and two of four columns, half a tile apart, so that the work-items
    // of a row read consecutive addresses.
    MATMUL_ITEM = 8,
    MATMUL_GROUP = 4
};

#endif
