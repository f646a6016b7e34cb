// The structures of the CUDA backend, and their accessors.
#ifndef WEIR_BACKENDS_CUDA_OBJECTS_H
#define WEIR_BACKENDS_CUDA_OBJECTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <weir/kit/cache.h>
#include <weir/kit/idle.h>
#include <weir/kit/records.h>
#include <weir/kit/signature.h>
#include <weir/module/module.h>

#include "backends/cuda/symbols.h"
#include "base/clock_map.h"

enum {
    CU_TIMING_HISTORY = 4096, // timed records of a queue that are kept
    CU_ANCHOR_COUNT = 64,     // anchors of a timeline that are kept
    CU_PARAMETER_LIMIT = 256, // of a kernel
    CU_ALIGNMENT = 16,        // of an argument: the most that one instruction loads
    CU_WORD_COUNT = 1024,     // queues of a device that can have a progress word
    CU_PLAIN_LIMIT = 1 << 25, // bytes of DEVICE memory that are not from the pool
};

// A device that the driver lists, opened or not.
struct cu_listed {
    CUdevice native;
    struct weir_device_info info;
};

struct cu_compiler; // compile.c
struct cu_nccl;     // nccl.h

// The state of a link.
struct cu_module {
    const struct weir_host *host;
    bool attribute_faults; // write a progress word after every operation
    struct cu_symbols cu;
    int version; // the CUDA version that the driver supports: 13000 is 13.0
    struct cu_listed *listed;
    size_t listed_count;
    bool spin;             // host waits spin
    const char *cupti;     // "auto", "off", or a path
    weir_kit_cache *cache; // NULL: off
    struct cu_compiler *compiler;
    struct cu_nccl *nccl;
    size_t printf_bytes; // of a device's ring, a power of two
    char driver[64];
};

// A point of the timeline whose time is known.
struct cu_anchor {
    CUevent event;
    uint64_t time_ns;
};

// The times of a device. Guarded by its lock.
struct cu_timeline {
    pthread_mutex_t lock;
    struct cu_anchor anchors[CU_ANCHOR_COUNT]; // ring; the newest is count - 1
    uint64_t count;                            // of all anchors so far
    CUevent pending;                           // recorded, not known to be complete
    bool is_pending;
    uint64_t last_ns; // of the host's clock, when the last anchor was recorded
};

// What kernels print. Guarded by its lock.
struct cu_prints {
    pthread_mutex_t lock;
    struct cu_ring *_Atomic ring; // print.h; NULL: no program of the device prints
    CUdeviceptr address;          // the ring's, for kernels
    unsigned char *record;        // the one that is being read
    uint64_t told;                // how many lost ones were reported
};

struct cu_words;        // fault_parts.h
struct cu_history;      // fault_parts.h
struct cu_peer;         // peer.c
struct cu_comm;         // nccl.h
struct cu_comm_threads; // nccl_task.c

// Attributes of a device, by their names in cu_api.h. X(member, attribute).
#define CU_ATTRIBUTES(X)                                                          \
    X(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)                        \
    X(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)                        \
    X(unified_addressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING)                 \
    X(memory_pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)                   \
    X(integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED)                                 \
    X(concurrent_managed, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)          \
    X(warp_size, CU_DEVICE_ATTRIBUTE_WARP_SIZE)                                   \
    X(max_pitch, CU_DEVICE_ATTRIBUTE_MAX_PITCH)                                   \
    X(max_local_bytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)     \
    X(max_block_items, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)                 \
    X(max_block_x, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)                           \
    X(max_block_y, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)                           \
    X(max_block_z, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)                           \
    X(max_grid_x, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)                             \
    X(max_grid_y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)                             \
    X(max_grid_z, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)                             \
    X(multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)                  \
    X(concurrent_kernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS)                 \
    X(engines, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT)                            \
    X(cooperative, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)                        \
    X(unit_items, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)             \
    X(unit_blocks, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)             \
    X(unit_registers, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)       \
    X(unit_local_bytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) \
    X(reserved_local_bytes, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)

struct cu_attributes {
#define CU_ATTRIBUTE(member, attribute) unsigned member;
    CU_ATTRIBUTES(CU_ATTRIBUTE)
#undef CU_ATTRIBUTE
};

// Relates the device's timeline (b) to the host's clock (a).
struct cu_clock {
    pthread_mutex_t lock;
    struct weir_clock_map map;
    uint64_t paired_ns; // when the last pair was taken
};

struct cu_device {
    struct cu_module *module;
    CUcontext context;
    atomic_bool lost;     // a fault has destroyed the context, or it was given up
    atomic_bool given_up; // work of it may never end: no call that waits for work may be made
    const struct cu_listed *listed;
    struct cu_device *next_open; // under a lock of give_up.c
    uint64_t id;                 // the front end's
    struct cu_peer *peers;       // under a lock of peer.c
    CUmemoryPool pool;
    CUstream memory_stream; // allocates, frees and records anchors; no work of the user's
    unsigned architecture;  // 90: compute capability 9.0
    int priority_least;     // as CUDA counts: the numerically largest
    int priority_greatest;
    struct cu_attributes attributes;
    struct cu_timeline timeline;
    struct cu_clock clock;
    struct cu_prints prints;
    weir_kit_idle *idle;        // deferred frees
    weir_kit_blocks *blocks;    // pinned memory of destroyed buffers
    weir_kit_blocks *managed;   // managed memory of destroyed buffers
    weir_kit_blocks *plain;     // plain memory of destroyed buffers
    _Atomic size_t plain_bytes; // of all plain memory
    pthread_mutex_t lock;       // guards what follows
    struct weir_error first_fault;
    struct cu_words *words;
    struct cu_queue *queues;
    struct cu_comm *comms;
    struct cu_comm_threads *comm_threads; // has a lock of its own
};

// DEVICE: `address`, in a block if it is plain memory. MANAGED: the same, in a block. HOST: `pointer`, in a block, in registered memory
// or in memory that the caller has pinned; kernels access it at `address`.
struct cu_buffer {
    struct cu_device *device;
    size_t size;
    CUdeviceptr address;
    char *pointer;
    struct weir_kit_block *block;
    struct weir_kit_registration *registration;
    bool adopted; // the memory stays the caller's
    bool managed;
    bool plain;
};

enum {
    CU_WATCH_ENTRIES = 4096, // operations whose times have not been fetched
    CU_NO_COMMANDS = 1 << 30,
    CU_FOREIGN_COMMANDS, // of a native call: as many as it likes
};

// An operation that is timed.
struct cu_timed {
    uint64_t sequence;
    uint64_t submit_ns; // of the host's clock
    CUevent event;      // recorded after it; NULL with CUPTI
    bool is_wait;       // no operation: when a wait was over
    // With CUPTI, under activity.c's lock: the records so far, on the host's clock.
    uint32_t seen;
    uint64_t start_ns;
    uint64_t end_ns;
    atomic_uint commands; // calls of the driver that it took; 0: not known yet
};

// Times of a queue's operations, until they are fetched: times.c.
struct cu_watch {
    bool exact; // times are CUPTI's
    // Used by the thread that submits only.
    struct cu_timed *now; // the operation that is being submitted; NULL: it is not timed
    unsigned commands;    // of it
    uint64_t free_tail;
    CUevent spare; // one that could not be recorded
    size_t event_count;
    CUevent events[CU_WATCH_ENTRIES];
    _Atomic uint64_t head; // of the ring; the submitter moves it
    _Atomic uint64_t free_head;
    CUevent free[CU_WATCH_ENTRIES];
    uint64_t number;       // with CUPTI: the queue's, among all that are watched
    pthread_mutex_t lock;  // held by the thread that fetches; guards what follows
    _Atomic uint64_t tail; // moved by the thread that fetches
    CUevent near;          // the last event that was converted
    uint64_t end_ns;       // of the last one
    // With CUPTI: an entry that was complete before older ones, and when that was noticed.
    uint64_t passed_by;
    uint64_t passed_ns;
    struct cu_timed ring[CU_WATCH_ENTRIES];
};

struct cu_builder; // nodes.c
struct cu_graph;

struct cu_queue {
    struct cu_device *device;
    CUstream stream;
    struct cu_history *history;
    struct cu_watch *watch;        // NULL unless times of operations are wanted
    const struct cu_comm *carried; // whose collective was its last work; NULL: it was other work
    weir_kit_records *records;
    bool timing;
    bool wrapped; // the stream stays the caller's
    bool left;    // the stream may be destroyed by now; under the device's lock, as `end` is
    CUevent end;  // of the last record of one that was left; NULL: it had none
    struct cu_queue *next; // in the device's list
    struct cu_queue **link;
    uint64_t id;       // the front end's
    const char *label; // likewise; lives as long as the queue
};

struct cu_program {
    struct weir_kit_idle_entry idle; // first; unloading the module is deferred
    struct cu_device *device;
    CUmodule module;
    struct weir_kit_signatures *signatures; // NULL for bundles
};

struct cu_kernel {
    struct cu_device *device;
    CUfunction function;
    const char *name; // the device's
    unsigned max_dynamic_bytes;
    unsigned own_local_bytes;
    unsigned registers; // of a work-item
};

static inline struct cu_module *cu_module_of(const struct weir_link *link)
{
    return link->state;
}

static inline struct cu_device *cu_device_of(const struct weir_link *link,
                                             const weir_device *device)
{
    return weir_device_data(link, device);
}

static inline struct cu_queue *cu_queue_of(const struct weir_link *link, const weir_queue *queue)
{
    return weir_queue_data(link, queue);
}

static inline struct cu_buffer *cu_buffer_of(const struct weir_link *link,
                                             const weir_buffer *buffer)
{
    return weir_buffer_data(link, buffer);
}

static inline struct cu_program *cu_program_of(const struct weir_link *link,
                                               const weir_program *program)
{
    return weir_program_data(link, program);
}

static inline struct cu_graph *cu_graph_of(const struct weir_link *link, const weir_graph *graph)
{
    return weir_graph_data(link, graph);
}

static inline struct cu_kernel *cu_kernel_of(const struct weir_link *link,
                                             const weir_kernel *kernel)
{
    return weir_kernel_data(link, kernel);
}

#endif
