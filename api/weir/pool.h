// Pools: buffers handed out and taken back in the order of a queue, without a call
// of the driver once the pool is warm.
//
//     weir_pool_allocate(pool, queue, bytes, &buffer);
//     weir_queue_launch(queue, ..., weir_out(buffer, 0, bytes));
//     weir_pool_free(queue, &buffer);     // behind the launch, at once for the host
//
// What was freed on a queue can be had again on that queue at once, and on another
// only when that queue has waited on an event behind the free, or the free is known to be
// complete. A pool never makes one queue wait for another.
//
// Blocks are rounded up by an eighth at most, and to 256 bytes. A block is an ordinary
// buffer of the backend, with the pool's label; each time it is handed out it is a new
// object, with a new id. docs/pools.md tells more.
#ifndef WEIR_POOL_H
#define WEIR_POOL_H

#include <weir/buffer.h>
#include <weir/common.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_pool_params {
    size_t struct_size;
    const char *label;
    weir_placement placement;
    size_t limit_bytes; // of what is in use and kept together; 0: the device's own limit
};

// Creates an empty pool; `params` may be NULL.
//
// Ownership: the caller's, until weir_pool_destroy(). Outlived by `device`.
// Threads: safe.
// Errors: WEIR_ERROR_INVALID; WEIR_ERROR_OUT_OF_MEMORY.
WEIR_API weir_status weir_pool_create(weir_device *device, const struct weir_pool_params *params,
                                      weir_pool **out_pool);

// Destroys the pool and sets `*pool` to NULL. Buffers of it that are not freed yet stay
// valid until they are. Never waits for the device.
WEIR_API void weir_pool_destroy(weir_pool **pool);

// Stores a buffer of `size` bytes, contents undefined, that `queue` may use from here
// on, and every queue that waits on an event recorded on it behind this call. Its size is
// `size`; launches, copies and weir_buffer_size() see no more. The host is no queue:
// before it uses a HOST buffer's memory itself, sync with an event recorded behind this
// call, or earlier work of the queue may still be in it. Never waits for the device.
//
// Ownership: the caller's, until weir_pool_free(); weir_buffer_destroy() on it is a free
// that waits for all work of the device, as for every buffer, and takes it out of the
// pool.
// Errors: WEIR_ERROR_INVALID for 0 bytes, for more than `limits.max_buffer_bytes` and for
// a queue of another device; WEIR_ERROR_OUT_OF_MEMORY, with what was asked, what is in
// use, what is kept and the limit; the queue's first failure.
WEIR_API weir_status weir_pool_allocate_at(weir_pool *pool, weir_queue *queue, size_t size,
                                           weir_buffer **out_buffer, const char *file, int line);
#define weir_pool_allocate(pool, queue, size, out_buffer) \
    weir_pool_allocate_at(pool, queue, size, out_buffer, __FILE__, __LINE__)

// Gives the buffer back behind all work of `queue` so far and sets `*buffer` to NULL.
// Work of other queues that uses it must be waited for by `queue` first. A queue that
// has failed frees all the same.
//
// Who goes on using the buffer through another pointer is refused until its memory is
// handed out again.
//
// Errors: WEIR_ERROR_INVALID for a buffer that came out of no pool or was freed already,
// NULL among them, for one that a graph uses, and for a queue of another device or that
// captures; nothing is freed then.
WEIR_API weir_status weir_pool_free_at(weir_queue *queue, weir_buffer **buffer, const char *file,
                                       int line);
#define weir_pool_free(queue, buffer) weir_pool_free_at(queue, buffer, __FILE__, __LINE__)

// Gives memory that is kept and idle back to the device until at most `keep_bytes` are
// kept; what queues may still use stays. May wait where weir_device_trim() may.
//
// Errors: WEIR_ERROR_INVALID in a host call; those of weir_device_trim().
WEIR_API weir_status weir_pool_trim(weir_pool *pool, size_t keep_bytes);

struct weir_pool_statistics {
    uint64_t in_use_bytes; // handed out, as large as the blocks are
    uint64_t kept_bytes;   // freed and not handed out again
    uint64_t high_bytes;   // the most there ever was of both together
    uint64_t allocations;  // calls of weir_pool_allocate() that succeeded
    uint64_t reused;       // of them, those that took what had been freed
    uint64_t blocked;      // of the others, those that found a block that fits, freed on a
                           // queue that theirs had not waited for
};

// Each figure is exact; while other threads use the pool they may be of different moments.
WEIR_API void weir_pool_read_statistics(const weir_pool *pool,
                                        struct weir_pool_statistics *out_statistics);

#ifdef __cplusplus
}
#endif

#endif
