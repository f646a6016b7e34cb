// Memory that is kept for the next buffers.
#include <weir/kit/blocks.h>

#include <stdlib.h>

#include "tests/support/test.h"

static void free_block(void *device, struct weir_kit_block *block)
{
    ++*(unsigned *)device;
    free(block);
}

static void put_block(struct weir_kit_blocks *blocks, size_t size)
{
    struct weir_kit_block *block = calloc(1, sizeof *block);
    ASSERT_NOT_NULL(block);
    block->size = size;
    weir_kit_block_put(blocks, block);
}

WEIR_TEST(KitBlocks, BlocksServeWhatTheyFit)
{
    struct weir_kit_blocks list;
    struct weir_kit_blocks *blocks = &list;
    unsigned freed = 0;
    weir_kit_blocks_init(blocks);
    put_block(blocks, 300);
    put_block(blocks, 100);
    put_block(blocks, 200);
    EXPECT_NULL(weir_kit_block_take(blocks, 301, 1000));
    EXPECT_NULL(weir_kit_block_take(blocks, 101, 199));
    struct weir_kit_block *block = weir_kit_block_take(blocks, 90, 300);
    ASSERT_NOT_NULL(block);
    EXPECT_UINT_EQ(block->size, 100); // the smallest
    EXPECT_NULL(weir_kit_block_take(blocks, 100, 100));
    weir_kit_block_put(blocks, block);
    weir_kit_blocks_empty(blocks, free_block, &freed);
    EXPECT_UINT_EQ(freed, 3);
    weir_kit_blocks_empty(blocks, free_block, &freed);
    EXPECT_UINT_EQ(freed, 3);
    weir_kit_blocks_finish(blocks);
}

WEIR_TEST(KitBlocks, BlockSizesGrowByAnEighthAtMost)
{
    EXPECT_UINT_EQ(weir_kit_block_size(1), 4096);
    EXPECT_UINT_EQ(weir_kit_block_size(4096), 4096);
    for (size_t size = 65536; size < (size_t)1 << 40; size = size * 5 / 4 + 1) {
        const size_t rounded = weir_kit_block_size(size);
        EXPECT_UINT_GE(rounded, size);
        EXPECT_UINT_LE(rounded - size, size / 8);
        EXPECT_UINT_EQ(weir_kit_block_size(rounded), rounded);
    }
    EXPECT_UINT_EQ(weir_kit_block_size(SIZE_MAX), SIZE_MAX);
}
