// An unordered list, since a program has few sizes of pinned buffers and rarely creates any.
#include "tests/abi/frozen/opencl/api/weir/kit/idle.h"

#include <weir/module/error.h>

#define SMALLEST_BLOCK 4096u

struct weir_kit_blocks {
    const struct weir_host *host;
    pthread_mutex_t lock;
    struct weir_kit_block *first;
};

weir_status weir_kit_blocks_create(const struct weir_host *host, weir_kit_blocks **out_blocks)
{
    weir_kit_blocks *blocks = host->allocate(sizeof *blocks);
    *out_blocks = blocks;
    if (!blocks)
        return weir_host_no_memory(host, "a device");
    blocks->host = host;
    pthread_mutex_init(&blocks->lock, NULL);
    return WEIR_OK;
}

void weir_kit_blocks_destroy(weir_kit_blocks **blocks)
{
    if (!*blocks)
        return;
    pthread_mutex_destroy(&(*blocks)->lock);
    (*blocks)->host->release(*blocks);
    *blocks = NULL;
}

size_t weir_kit_block_size(size_t size)
{
    size_t step = SMALLEST_BLOCK;
    while (step <= size / 16)
        step *= 2;
    return size <= SIZE_MAX - step ? (size + step - 1) / step * step : size;
}

struct weir_kit_block *weir_kit_block_take(weir_kit_blocks *blocks, size_t size, size_t limit)
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

void weir_kit_block_put(weir_kit_blocks *blocks, struct weir_kit_block *block)
{
    pthread_mutex_lock(&blocks->lock);
    block->next = blocks->first;
    blocks->first = block;
    pthread_mutex_unlock(&blocks->lock);
}

void weir_kit_blocks_empty(weir_kit_blocks *blocks,
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
