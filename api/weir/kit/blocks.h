// Memory of destroyed buffers, kept for the next buffers of about the same size until trim, close,
// or a lack of memory. Some drivers wait for the whole device where they free memory, and a destroy
// must not wait.
//
// Threads: safe.
#ifndef WEIR_KIT_BLOCKS_H
#define WEIR_KIT_BLOCKS_H

#include <pthread.h>
#include <weir/module/module.h>

#ifdef __cplusplus
extern "C" {
#endif

// Only the kit uses the members.
struct weir_kit_block;
struct weir_kit_blocks {
    pthread_mutex_t lock;
    struct weir_kit_block *first;
};

// A piece of such memory, allocated by the backend.
struct weir_kit_block {
    struct weir_kit_block *next;
    void *pointer;
    size_t size;
    void *native; // the driver's object, or NULL
};

// An empty list, and the end of one, which must be empty again.
void weir_kit_blocks_init(struct weir_kit_blocks *blocks);
void weir_kit_blocks_finish(struct weir_kit_blocks *blocks);

// Returns `size` rounded up to a multiple of 4 KiB, and by at most an eighth from 64 KiB on, so
// that buffers of similar sizes can share blocks.
size_t weir_kit_block_size(size_t size);
// Removes and returns the smallest kept block of at least `size` and at most `limit` bytes, or
// NULL.
//
// Ownership: the caller's, until it is put.
struct weir_kit_block *weir_kit_block_take(struct weir_kit_blocks *blocks, size_t size,
                                           size_t limit);
void weir_kit_block_put(struct weir_kit_blocks *blocks, struct weir_kit_block *block);
// Removes every block and calls `give_back` for it, which frees the memory and the structure and
// may wait for the device.
void weir_kit_blocks_empty(struct weir_kit_blocks *blocks,
                           void (*give_back)(void *device, struct weir_kit_block *block),
                           void *device);

#ifdef __cplusplus
}
#endif

#endif
