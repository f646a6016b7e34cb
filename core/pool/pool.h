// The front end's pool: its blocks, and where those are kept that nobody has.
//
// A block is an ordinary buffer of the chain, as large as its size class. While kept
// it stands in a lane: the blocks of one class that were freed on one queue, oldest
// first. What is true of the oldest free of a lane is true of no newer one before it,
// so one look at a lane says whether it has something for a queue.
#ifndef WEIR_CORE_POOL_POOL_H
#define WEIR_CORE_POOL_POOL_H

#include <weir/pool.h>

#include "base/biased_lock.h"
#include "core/object/buffer.h"
#include "core/object/device.h"

struct weir__lane;

struct weir__block {
    weir_buffer *buffer;
    weir_pool *pool;
    size_t capacity;
    uint32_t class_index;
    struct weir__block *previous; // the pool's list of all its blocks
    struct weir__block *next;
    // While kept.
    bool kept;
    struct weir_event freed; // the point behind which it was freed; no record
    const char *file;        // who freed it
    int line;
    struct weir__block *newer; // of its lane
    struct weir__block *older;
};

struct weir__lane {
    uint64_t queue;
    struct weir__block *oldest;
    struct weir__block *newest;
    struct weir_event mark; // a record behind some of the frees, or zero
    struct weir__lane *next;
};

// 256 bytes, then eight classes from each power of two to the next.
#define WEIR__SMALLEST_BLOCK 256u
#define WEIR__BLOCK_CLASSES 449u

struct weir_pool {
    struct weir__member member;
    weir_placement placement;
    uint64_t limit;               // UINT64_MAX: none
    struct weir_biased_lock lock; // of all that follows; a leaf but for the registry
    bool destroyed;
    uint32_t references; // the user's and one for each block
    struct weir__block *blocks;
    // The counts are written under the lock and read without it.
    atomic_uint_fast64_t in_use_bytes;
    atomic_uint_fast64_t kept_bytes;
    atomic_uint_fast64_t high_bytes;
    atomic_uint_fast64_t allocations;
    atomic_uint_fast64_t reused;
    atomic_uint_fast64_t blocked;
    struct weir__lane *spare_lanes; // with those in use one for each block
    struct weir__lane *lanes[WEIR__BLOCK_CLASSES];
};

// Counting, for who holds the lock; everybody may read.

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

// The class of blocks that serves `size` bytes, and how large these are: at most an
// eighth more than `size`, or WEIR__SMALLEST_BLOCK.
uint32_t weir__block_class(size_t size, size_t *out_capacity);

// For who holds the pool's lock.

// Takes a block out of `class_index` for the queue, whose submit lock the caller holds;
// NULL if there is none that it may have yet.
struct weir__block *weir__pool_take(weir_pool *pool, uint32_t class_index, weir_queue *queue);

// Keeps a block that was freed behind `freed`. Of one queue these must come in order.
void weir__pool_keep(weir_pool *pool, struct weir__block *block, struct weir_event freed);

// Takes out blocks whose free is known to be complete, the large ones first, until
// `bytes` of them are out or there are no more. They are linked by `newer`.
struct weir__block *weir__pool_take_idle(weir_pool *pool, uint64_t bytes);

// Takes out every block.
struct weir__block *weir__pool_take_all(weir_pool *pool);

// For who holds no lock.

// Adds `capacity` to what is in use unless the limit forbids it, and stores by how much it
// does.
bool weir__pool_reserve(weir_pool *pool, size_t capacity, uint64_t *out_excess);
void weir__pool_unreserve(weir_pool *pool, size_t capacity);

// Makes a block, of memory that is reserved.
weir_status weir__pool_make_block(weir_pool *pool, uint32_t class_index, size_t capacity,
                                  struct weir__block **out_block);

// Takes the block off the pool's list and makes an ordinary buffer of what it held. A pool
// that was destroyed goes with its last block.
weir_buffer *weir__pool_dissolve(struct weir__block *block);

// Gives blocks, linked by `newer`, back to the device: at once where nothing uses them any
// more.
void weir__pool_give_back(struct weir__block *blocks, bool idle);

// Gives idle blocks back to the device, `bytes` of them if there are so many. False: none.
bool weir__pool_shrink(weir_pool *pool, uint64_t bytes);

// Drops a reference; the last one frees the pool.
void weir__pool_drop(weir_pool *pool);

// Asks the driver whether frees of this class are complete by now, so that
// weir__pool_take() knows. A queue without a record behind them gets one. False:
// nothing is to be hoped for. `*out_any`: blocks of this class are kept.
bool weir__pool_ask(weir_pool *pool, uint32_t class_index, bool *out_any);

extern const struct weir__lender weir__pool_lender;

#endif
