// Pools: buffers that are allocated and freed in the order of a queue (stream-ordered
// allocation), without a driver call once the pool is warm.
//
//     weir_pool_allocate(pool, queue, bytes, &buffer);
//     weir_queue_launch(queue, ..., weir_out(buffer, 0, bytes));
//     weir_pool_free(queue, &buffer);     // after the launch; returns at once
//
// Memory that was freed on a queue can be allocated again on that queue at once. It can be
// allocated on another queue only after that queue has waited for an event recorded after
// the free, or when the free is known to be complete. A pool never makes one queue wait
// for another.
//
// Block sizes are rounded up by at most an eighth, and to 256 bytes. A block is an
// ordinary buffer of the backend, with the pool's label; each allocation from it is a new
// object with a new id. See docs/pools.md.
#ifndef WEIR_POOL_H
#define WEIR_POOL_H

#include <weir/buffer.h>
#include <weir/common.h>
#include <weir/status.h>

struct weir_pool_params {
    size_t struct_size;
    const char *label;
    weir_placement placement; // DEVICE or HOST
    size_t limit_bytes;       // for used and kept memory together; 0: the device's own limit
};

// Creates an empty pool; `params` may be NULL.
//
// Errors: WEIR_ERROR_INVALID; WEIR_ERROR_OUT_OF_MEMORY.
WEIR_CALL weir_status weir_pool_create_at(weir_device *device,
                                          const struct weir_pool_params *params,
                                          weir_pool **out_pool, const char *file, int line);
#define weir_pool_create(...) weir_pool_create_at(__VA_ARGS__, __FILE__, __LINE__)

// Destroys the pool. Its buffers that are not freed yet stay valid until they are. Never waits for
// the device.
WEIR_API void weir_pool_destroy_at(weir_pool **pool, const char *file, int line);
#define weir_pool_destroy(pool) weir_pool_destroy_at(pool, __FILE__, __LINE__)

// Stores a buffer of `size` bytes, contents undefined. Operations submitted to `queue`
// after this call may use it, and so may every queue that waits for an event recorded on
// `queue` after this call. Launches, copies and weir_buffer_size() see exactly `size`
// bytes, even if the block is larger. Before the host accesses the memory of a HOST
// buffer, sync with an event recorded after this call: earlier work of the queue may still
// be using the block. Never waits for the device.
//
// Ownership: the caller's, until weir_pool_free(). weir_buffer_destroy() frees it too, but
// takes the block out of the pool and, as for every buffer, frees it only after all work
// of the device so far.
// Errors: WEIR_ERROR_INVALID for 0 bytes, for more than `limits.max_buffer_bytes` and for
// a queue of another device; WEIR_ERROR_OUT_OF_MEMORY, with the bytes requested, in use
// and kept, and the limit; the queue's first failure.
WEIR_CALL weir_status weir_pool_allocate_at(weir_pool *pool, weir_queue *queue, size_t size,
                                            weir_buffer **out_buffer, const char *file, int line);
#define weir_pool_allocate(...) weir_pool_allocate_at(__VA_ARGS__, __FILE__, __LINE__)

// Frees the buffer after all work submitted to `queue` so far and sets `*buffer` to NULL;
// the call returns at once. If other queues use the buffer, `queue` must wait for that
// work first. A queue that has failed can still free buffers;
// other queues get that memory after its recovery, or its end, at the earliest.
//
// Calls that use the buffer through another copy of the pointer are refused until its
// memory is allocated again.
//
// Errors: WEIR_ERROR_INVALID for NULL, for a buffer that is not from a pool, was freed
// already or is used by a graph, and for a queue of another device or one that is
// capturing; nothing is freed then.
WEIR_CALL weir_status weir_pool_free_at(weir_queue *queue, weir_buffer **buffer, const char *file,
                                        int line);
#define weir_pool_free(queue, buffer) weir_pool_free_at(queue, buffer, __FILE__, __LINE__)

// Returns kept memory that is idle to the device until at most `keep_bytes` are kept;
// memory that queues may still use stays. May wait for the whole device, as
// weir_device_trim().
//
// Errors: WEIR_ERROR_INVALID in a host call; those of weir_device_trim().
WEIR_CALL weir_status weir_pool_trim(weir_pool *pool, size_t keep_bytes);

struct weir_pool_statistics {
    uint64_t in_use_bytes; // sum of the blocks that are allocated
    uint64_t kept_bytes;   // freed and not allocated again
    uint64_t high_bytes;   // the largest sum of the two so far
    uint64_t allocations;  // calls of weir_pool_allocate() that succeeded
    uint64_t reused;       // allocations that took a block that had been freed
    uint64_t blocked;      // allocations for which a kept block would have fit, but it was freed on
                           // a queue that theirs had not waited for
};

// Each figure is exact, but while other threads use the pool the figures may be from
// different moments.
WEIR_API void weir_pool_read_statistics_sized(const weir_pool *pool,
                                              struct weir_pool_statistics *out_statistics,
                                              size_t size);
#define weir_pool_read_statistics(pool, out_statistics) \
    weir_pool_read_statistics_sized(pool, out_statistics, sizeof(struct weir_pool_statistics))

#endif
