// How matmul() cuts its product into blocks, shared by the kernel and by who
// launches it.

#ifndef WEIR_KERNELS_MATMUL_TILE_CL_H
#define WEIR_KERNELS_MATMUL_TILE_CL_H

enum {
    MATMUL_ROWS = 128, // of the product, that a block makes
    MATMUL_COLUMNS = 64,
    MATMUL_DEPTH = 16,  // of the factors, that is in local memory at a time
    MATMUL_BLOCK_X = 8, // work-items of a block
    MATMUL_BLOCK_Y = 16,

    MATMUL_ITEMS = MATMUL_BLOCK_X * MATMUL_BLOCK_Y,
    // A work-item makes 8 x 8 of the product: two groups of four rows and two of
    // four columns, half a tile apart, so that the items of a row read one after
    // the other.
    MATMUL_ITEM = 8,
    MATMUL_GROUP = 4
};

#endif
