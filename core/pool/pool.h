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
    struct weir_event freed; // the point after which it was freed; not a record
    const char *file;        // the queue that freed it
    int line;
    struct weir_event record;  // of that queue, after the free, or zero
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
    uint32_t references; // one of the user and one for each block
    struct weir__block *blocks;
    // The counts are written under the lock and read without it.
    atomic_uint_fast64_t in_use_bytes;
    atomic_uint_fast64_t kept_bytes;
    atomic_uint_fast64_t high_bytes;
    atomic_uint_fast64_t allocations;
    atomic_uint_fast64_t reused;
    atomic_uint_fast64_t blocked;
    struct weir__kept kept[WEIR__BLOCK_CLASSES];
};

// Counters, written with the lock held and read without it.

static inline uint64_t weir__pool_count(const atomic_uint_fast64_t *count)
{
    return atomic_load_explicit(count, memory_order_relaxed);
}

static inline void weir__pool_add(atomic_uint_fast64_t *count, uint64_t value)
{
    atomic_store_explicit(count, weir__pool_count(count) + value, memory_order_relaxed);
}

static inline void weir__pool_subtract(atomic_uint_fast64_t *count, uint64_t value)
{
    atomic_store_explicit(count, weir__pool_count(count) - value, memory_order_relaxed);
}

// With the pool's lock held.

// Keeps a block that was freed after `freed`. The blocks of one queue must come in order.
void weir__pool_keep(weir_pool *pool, struct weir__block *block, struct weir_event freed);

// Removes kept blocks, large ones first, until `bytes` are removed or there are no more; with `idle` those
// whose free is known to be complete. They are linked by `newer`.
struct weir__block *weir__pool_remove(weir_pool *pool, uint64_t bytes, bool idle);

// Without a lock held.

// Returns blocks, linked by `newer`, to the device: at once if nothing uses them any more.
void weir__pool_give_back(struct weir__block *blocks, bool idle);

// Returns idle blocks to the device, up to `bytes` bytes. False: none.
bool weir__pool_shrink(weir_pool *pool, uint64_t bytes);

extern const struct weir__lender weir__pool_lender;

#endif
