// Blocks: an unordered list, since a program has few sizes of pinned buffers and rarely creates any.
#include <weir/kit/blocks.h>

#define SMALLEST_BLOCK 4096u

void weir_kit_blocks_init(struct weir_kit_blocks *blocks)
{
    blocks->first = NULL;
    pthread_mutex_init(&blocks->lock, NULL);
}

void weir_kit_blocks_finish(struct weir_kit_blocks *blocks)
{
    pthread_mutex_destroy(&blocks->lock);
}

size_t weir_kit_block_size(size_t size)
{
    size_t step = SMALLEST_BLOCK;
    while (step <= size / 16)
        step *= 2;
    return size <= SIZE_MAX - step ? (size + step - 1) / step * step : size;
}

struct weir_kit_block *weir_kit_block_take(struct weir_kit_blocks *blocks, size_t size,
                                           size_t limit)
{
    struct weir_kit_block **best = NULL;
    pthread_mutex_lock(&blocks->lock);
    for (struct weir_kit_block **at = &blocks->first; *at; at = &(*at)->next) {
        const size_t there = (*at)->size;
        if (there >= size && there <= limit && (!best || there < (*best)->size))
            best = at;
    }
    struct weir_kit_block *block = best ? *best : NULL;
    if (block)
        *best = block->next;
    pthread_mutex_unlock(&blocks->lock);
    return block;
}

void weir_kit_block_put(struct weir_kit_blocks *blocks, struct weir_kit_block *block)
{
    pthread_mutex_lock(&blocks->lock);
    block->next = blocks->first;
    blocks->first = block;
    pthread_mutex_unlock(&blocks->lock);
}

void weir_kit_blocks_empty(struct weir_kit_blocks *blocks,
                           void (*give_back)(void *device, struct weir_kit_block *block),
                           void *device)
{
    pthread_mutex_lock(&blocks->lock);
    struct weir_kit_block *block = blocks->first;
    blocks->first = NULL;
    pthread_mutex_unlock(&blocks->lock);
    while (block) {
        struct weir_kit_block *next = block->next;
        give_back(device, block);
        block = next;
    }
}
