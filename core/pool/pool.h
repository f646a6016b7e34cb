// The front end's pool: its blocks, and the lists of those that are kept.
//
// A block is an ordinary buffer of the chain, as large as its size class. While kept it is
// in the list of its class, in the order of frees. Of two frees on one queue the newer one is never
// complete before the older one.
#ifndef WEIR_CORE_POOL_POOL_H
#define WEIR_CORE_POOL_POOL_H

#include <weir/pool.h>

#include "base/lock.h"
#include "core/object/buffer.h"
#include "core/object/device.h"

struct weir__block {
    weir_buffer *buffer;
    weir_pool *pool;
    size_t capacity;
    uint32_t class_index;
    struct weir__block *previous; // the pool's list of all its blocks
    struct weir__block *next;
    // While kept.
    bool kept;
    struct weir_event freed;   // the point after which it was freed; not a record
    struct weir__block *newer; // of its class
    struct weir__block *older;
};

struct weir__kept {
    struct weir__block *oldest;
    struct weir__block *newest;
};

// 256 bytes, then eight classes from each power of two to the next.
#define WEIR__SMALLEST_BLOCK 256u
#define WEIR__BLOCK_CLASSES 449u

struct weir_pool {
    struct weir__member member;
    weir_placement placement;
    uint64_t limit;        // UINT64_MAX: none
    struct weir_lock lock; // of all members below; a leaf except for the registry
    bool destroyed;
    struct weir__block *blocks; // the last one of a destroyed pool frees it
    struct weir_pool_statistics counts;
    struct weir__kept kept[WEIR__BLOCK_CLASSES];
};

// With the pool's lock held.

// Keeps a block that was freed after `freed`. The blocks of one queue must come in order.
void weir__pool_keep(weir_pool *pool, struct weir__block *block, struct weir_event freed);

// Removes kept blocks, large ones first, until `bytes` are removed or there are no more; with `idle` those
// whose free is known to be complete. They are linked by `newer`.
struct weir__block *weir__pool_remove(weir_pool *pool, uint64_t bytes, bool idle);

// Without a lock held.

// Reads the counts.
struct weir_pool_statistics weir__pool_counts(weir_pool *pool);

// Returns blocks, linked by `newer`, to the device: at once if nothing uses them any more.
void weir__pool_give_back(struct weir__block *blocks, bool idle);

// Returns idle blocks to the device, up to `bytes` bytes. False: none.
bool weir__pool_shrink(weir_pool *pool, uint64_t bytes);

// weir_buffer.leave_pool
bool weir__pool_forget(weir_buffer *buffer);

#endif
