// A pool of queues: work without a dedicated queue gets the next queue of its class,
// round-robin. Each queue is an ordinary weir_queue; two pieces of work that get
// different queues are not ordered against each other.
//
//     const struct weir_queue_pool_params params = {
//         .struct_size = sizeof params, .device = device, .label = "requests",
//         .queue_counts = {[WEIR_QUEUE_NORMAL] = 4, [WEIR_QUEUE_HIGH] = 1},
//     };
//     weir_queue_pool_create(&params, &pool);
//     weir_queue_pool_get(pool, WEIR_QUEUE_NORMAL, &queue);
//     weir_queue_launch(queue, …);
//
// Classes. Priorities are numbers whose range depends on the device; classes mean the
// same everywhere: HIGH is the device's highest priority, LOW its lowest, NORMAL is 0. On
// a device without priorities the three classes differ only in having separate queues.
//
// Channels. More queues do not always give more overlap: a device maps its queues to a
// limited number of channels, and work of queues that share a channel may wait for each
// other without need. The statistics report when the pool holds more queues than there
// are channels.
#ifndef WEIR_PATTERNS_QUEUE_POOL_H
#define WEIR_PATTERNS_QUEUE_POOL_H

#include <weir/weir.h>

typedef struct weir_queue_pool weir_queue_pool;

#define WEIR_QUEUE_POOL_MAX 256 // queues of a class

typedef enum weir_queue_class {
    WEIR_QUEUE_NORMAL = 0,
    WEIR_QUEUE_HIGH = 1,
    WEIR_QUEUE_LOW = 2,
} weir_queue_class;

#define WEIR_QUEUE_CLASSES 3

struct weir_queue_pool_params {
    size_t struct_size;
    weir_device *device;
    const char *label; // copied; names queues ("LABEL/high/0") and errors
    // By class, up to WEIR_QUEUE_POOL_MAX each. All 0: as many NORMAL ones as there are
    // channels, at most WEIR_QUEUE_POOL_MAX.
    uint32_t queue_counts[WEIR_QUEUE_CLASSES];
    bool timing; // of the queues
    // How many queues the device can keep independent. 0: as many operations as it can
    // run at once by its limits (kernels, and one copy for each copy engine), but at most
    // 8, the default number of channels of a CUDA context. If CUDA_DEVICE_MAX_CONNECTIONS
    // is set to another number, set this too.
    uint32_t channel_count;
};

// Creates a pool with its queues.
//
// Errors: WEIR_ERROR_INVALID, naming what is wrong; WEIR_ERROR_OUT_OF_MEMORY; those of
// weir_queue_create().
WEIR_CALL weir_status weir_queue_pool_create_at(const struct weir_queue_pool_params *params,
                                                weir_queue_pool **out_pool, const char *file,
                                                int line);
#define weir_queue_pool_create(...) weir_queue_pool_create_at(__VA_ARGS__, __FILE__, __LINE__)

// Destroys the queues. Never waits: submitted work runs to completion. No other call on the pool
// may be running.
WEIR_API void weir_queue_pool_destroy(weir_queue_pool **pool);

// Stores the next queue of the class in `*out_queue`. Other users of the pool, also in
// other threads, may be using the same queue. Work that must be in order has to go to one
// queue, obtained once.
//
// Ownership: the pool's.
// Threads: safe; takes no lock.
// Errors: with NULL stored. WEIR_ERROR_INVALID for a class that has no queues.
WEIR_CALL weir_status weir_queue_pool_get(weir_queue_pool *pool, weir_queue_class kind,
                                          weir_queue **out_queue);

// Waits on the host for everything that was submitted to any queue of the pool, even if
// some have failed.
//
// Threads: safe.
// Errors: the first failure, in the order of classes and queues; WEIR_TIMEOUT (not an
// error) if there was none.
WEIR_CALL weir_status weir_queue_pool_sync_all(weir_queue_pool *pool, uint64_t timeout_ns);

// Figures of one class. Closed.
struct weir_queue_pool_class_statistics {
    int32_t priority;
    uint32_t queue_count;
    uint64_t gets; // calls that returned a queue
};

struct weir_queue_pool_statistics {
    uint32_t queue_count; // of all classes
    uint32_t channel_count;
    // Advice if there are more queues than channels; else "".
    char advice[320];
    struct weir_queue_pool_class_statistics classes[WEIR_QUEUE_CLASSES];
};

// Threads: safe.
WEIR_API void weir_queue_pool_get_statistics_sized(
    weir_queue_pool *pool, struct weir_queue_pool_statistics *out_statistics, size_t size);
#define weir_queue_pool_get_statistics(pool, out_statistics)   \
    weir_queue_pool_get_statistics_sized(pool, out_statistics, \
                                         sizeof(struct weir_queue_pool_statistics))

// "normal", "high", "low", or "unknown class".
WEIR_API const char *weir_queue_class_name(weir_queue_class kind);

#endif
