// What the files of the CUDA backend share: structures and functions.
//
//   module.c       open: library, driver, devices; the ops table
//   symbols.c      the driver's functions
//   error.c        errors, the operations that a fault may be caused by, and the contexts that calls enter
//   device.c       devices, limits, which ones reach each other and which were given up
//   buffer.c       memory, also the caller's; frees that are deferred until the device is idle
//   queue.c        queues: submission, records and waits, wrapped streams, histories
//   copy.c         copies and fills, by the kinds of memory
//   program.c      programs, kernels, the arguments of launches
//   compile.c      CUDA C++ and OpenCL C at run time
//   graph.c        graphs
//   nodes.c        the driver's nodes for the nodes of a graph
//   timeline.c     times of records, on the one timeline of a device, and its clock
//   times.c        times of operations, by CUPTI or by events
//   nccl_comm.c    NCCL's library and communicators
//   nccl_call.c    collectives
//
// docs/architecture.md has the locks, and what may be called with each of them held. Nothing that
// may wait for the device is.
#ifndef WEIR_BACKENDS_CUDA_CU_H
#define WEIR_BACKENDS_CUDA_CU_H

#include <pthread.h>
#include <stdatomic.h>
#include <weir/kit/blocks.h>
#include <weir/kit/cache.h>
#include <weir/kit/error.h>
#include <weir/kit/records.h>
#include <weir/kit/signature.h>
#include <weir/module/error.h>
#include <weir/module/module.h>

#include "backends/cuda/libraries.h"
#include "backends/kit/box.h"
#include "base/clock_map.h"
#include "base/cold.h"
#include "base/try.h"

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

// Libraries that are loaded when they are first needed.

struct cu_compiler {
    pthread_mutex_t lock;
    bool loaded;
    struct nvrtc_symbols nvrtc;
    int major;
    int minor;
};

struct cu_nccl {
    pthread_mutex_t lock; // while it is loaded
    const char *setting;  // "auto", "off", or a path
    bool loaded;
    int version; // 22809 is 2.28.9
    char engine[32];
    struct nccl_symbols api;
};

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
    struct cu_compiler compiler;
    struct cu_nccl nccl;
    atomic_uint comms; // of NCCL that exist, whose work may have no end
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
    CUevent pending;                           // recorded, not known to be complete; NULL: none
    uint64_t last_ns; // of the host's clock, when the last anchor was recorded
};

struct cu_history;      // history.h
struct cu_comm;         // nccl.h
struct cu_comm_threads; // nccl_comm.c

struct cu_attributes {
#define CU_ATTRIBUTE(member, attribute, number) unsigned member;
    CU_ATTRIBUTES(CU_ATTRIBUTE)
#undef CU_ATTRIBUTE
};

// Relates the device's timeline (b) to the host's clock (a).
struct cu_clock {
    pthread_mutex_t lock;
    struct weir_clock_map map;
    uint64_t paired_ns; // when the last pair was taken
};

// Progress words of queues: history.h.
struct cu_words {
    void *page; // pinned; NULL: there are none yet
    CUdeviceptr address;
    atomic_bool off; // the device writes none
    bool used[CU_WORD_COUNT];
};

struct cu_device {
    struct cu_module *module;
    CUcontext context;
    atomic_bool lost;     // a fault has destroyed the context, or it was given up
    atomic_bool given_up; // work of it may never end: no call that waits for work may be made
    const struct cu_listed *listed;
    struct cu_device *next_open; // under a lock of device.c
    // The GPUs that were asked whether they can access this memory, and those that can.
    _Atomic uint64_t asked_by;
    _Atomic uint64_t reached_by;
    CUmemoryPool pool;
    CUstream memory_stream; // allocates, frees and records anchors; no work of the user's
    unsigned architecture;  // 90: compute capability 9.0
    int priority_least;     // as CUDA counts: the numerically largest
    int priority_greatest;
    struct cu_attributes attributes;
    struct cu_timeline timeline;
    struct cu_clock clock;
    atomic_size_t deferred;         // frees: see cu_settle()
    struct weir_kit_blocks blocks;  // pinned memory of destroyed buffers
    struct weir_kit_blocks managed; // managed memory of destroyed buffers
    struct weir_kit_blocks plain;   // plain memory of destroyed buffers
    _Atomic size_t plain_bytes;     // of all plain memory
    pthread_mutex_t lock;           // guards what follows
    struct cu_program *unloads;     // destroyed programs, whose modules are still loaded
    struct weir_error first_fault;
    struct cu_words words;
    struct cu_queue *queues;
    struct cu_comm *comms;
    struct cu_comm_threads *comm_threads; // not guarded
};

// DEVICE: `address`, in a block if it is plain memory. MANAGED: the same, in a block. HOST: `pointer`, in a block, in
// registered memory or in memory that the caller has pinned; kernels access it at `address`.
struct cu_buffer {
    struct cu_device *device;
    size_t size;
    CUdeviceptr address;
    char *pointer;
    struct weir_kit_block *block;
    struct cu_registration *registration; // buffer.c
    bool adopted;                         // the memory stays the caller's
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
    CUevent event;      // recorded after it; of the place in the ring, NULL with CUPTI
    bool is_wait;       // no operation: when a wait was over
    // With CUPTI, under times.c's lock of the records: the records so far, on the host's clock.
    uint32_t seen;
    uint64_t start_ns;
    uint64_t end_ns;
    atomic_uint commands; // calls of the driver that it took; 0: not known yet
};

// Times of a queue's operations, until they are fetched: times.c.
struct cu_watch {
    bool exact; // times are CUPTI's
    // Used by the thread that submits only.
    struct cu_timed *now;  // the operation that is being submitted; NULL: it is not timed
    unsigned commands;     // of it
    _Atomic uint64_t head; // of the ring; the submitter moves it
    uint64_t number;       // with CUPTI: the queue's, among all that are watched
    pthread_mutex_t lock;  // held by the thread that fetches; guards what follows
    _Atomic uint64_t tail; // moved by the thread that fetches
    uint64_t end_ns;       // of the last one
    struct cu_timed ring[CU_WATCH_ENTRIES];
};

struct cu_builder; // graph.h
struct cu_graph;   // graph.h

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
    CUevent end;  // of the last record of one that was left; NULL: nothing is under way
    struct cu_queue *next; // in the device's list
    uint64_t id;           // the front end's
    const char *label;     // likewise; lives as long as the queue
};

struct cu_program {
    struct cu_device *device;
    struct cu_program *next; // in the device's list of unloads
    CUmodule module;
    struct weir_kit_signatures *signatures; // NULL for bundles
};

struct cu_kernel {
    struct cu_device *device;
    CUfunction function;
    unsigned own_local_bytes;
    unsigned registers; // of a work-item
};

WEIR_STATE_OF(cu_module_of, struct cu_module)
WEIR_DATA_OF(cu_device_of, struct cu_device, weir_device)
WEIR_DATA_OF(cu_queue_of, struct cu_queue, weir_queue)
WEIR_DATA_OF(cu_buffer_of, struct cu_buffer, weir_buffer)
WEIR_DATA_OF(cu_program_of, struct cu_program, weir_program)
WEIR_DATA_OF(cu_graph_of, struct cu_graph, weir_graph)
WEIR_DATA_OF(cu_kernel_of, struct cu_kernel, weir_kernel)

// Questions to the driver, waits and allocations that do not spoil what others capture.
//
// While a thread captures a stream in the mode GLOBAL, as cudaStreamBeginCapture() does unless told
// otherwise, the driver refuses these calls on other threads, and the capture is lost. The library asks on
// threads of its own, and when it submits, so a program would not expect it:
// https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__STREAM.html, cuThreadExchangeStreamCaptureMode.
// What is asked about here is never captured, so the thread is RELAXED meanwhile: two calls that change
// a variable of the thread, beside one that takes a microsecond.

// The thread is RELAXED until cu_unrelax() with what this returns.
static inline CUstreamCaptureMode cu_relax(const struct cu_symbols *cu)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)cu->cuThreadExchangeStreamCaptureMode(&mode);
    return mode;
}

static inline void cu_unrelax(const struct cu_symbols *cu, CUstreamCaptureMode before)
{
    (void)cu->cuThreadExchangeStreamCaptureMode(&before);
}

// One call with the thread RELAXED.
#define CU_ASK(name, call, type)                                           \
    static inline CUresult name(const struct cu_symbols *cu, type subject) \
    {                                                                      \
        const CUstreamCaptureMode before = cu_relax(cu);                   \
        const CUresult code = cu->call(subject);                           \
        cu_unrelax(cu, before);                                            \
        return code;                                                       \
    }
CU_ASK(cu_ask_event, cuEventQuery, CUevent)
CU_ASK(cu_ask_stream, cuStreamQuery, CUstream)
CU_ASK(cu_await_event, cuEventSynchronize, CUevent)
CU_ASK(cu_await_stream, cuStreamSynchronize, CUstream)
#undef CU_ASK

// error.c

// A sequence of driver calls, which ends with the first that fails.
struct cu_trial {
    struct cu_device *device;
    const struct cu_module *module; // without a device
    CUresult code;
    const char *call;
};

static inline const struct cu_symbols *cu_of(const struct cu_trial *trial)
{
    return trial->device ? &trial->device->module->cu : &trial->module->cu;
}

#define CU_TRY_AS(trial, name, result)       \
    do {                                     \
        if ((trial)->code == CUDA_SUCCESS) { \
            (trial)->call = (name);          \
            (trial)->code = (result);        \
        }                                    \
    } while (0)

#define CU_TRY(trial, function, ...) \
    CU_TRY_AS(trial, #function, cu_of(trial)->function(__VA_ARGS__))

#define CU_TRY_AWAIT(trial, stream) \
    CU_TRY_AS(trial, "cuStreamSynchronize", cu_await_stream(cu_of(trial), stream))

// Reports the failure, if there is one, and returns the corresponding status. `format` says what was
// attempted. The first code that means the end of the context is kept with the device, and is
// reported from then on in place of every other code.
WEIR_COLD weir_status cu_tried(const struct cu_trial *trial, const char *format, ...)
    WEIR_PRINTF(2, 3);

// Reports that one call failed: its name, the code and what was attempted, as above.
#define CU_FAIL(device, call, code, ...) \
    cu_tried(&(struct cu_trial){device, NULL, code, call}, __VA_ARGS__)

// Reports the first fault of a device that is lost.
WEIR_COLD weir_status cu_report_lost(struct cu_device *device);

static inline bool cu_is_given_up(const struct cu_device *device)
{
    return atomic_load_explicit(&device->given_up, memory_order_acquire);
}

// Returns the queue with this id of the front end, or NULL: it is gone. Under the device's lock.
const struct cu_queue *cu_find_queue(const struct cu_device *device, uint64_t id);

// The context that was current before a call.
struct cu_scope {
    CUcontext before;
    bool changed;
};

// Called by cu_enter() if the device's context is not current; `asked` is what the question returned.
weir_status cu_change_context(struct cu_device *device, struct cu_scope *scope, CUresult asked);

// Makes the device's context current, and restores the caller's. Reading the current context costs
// less than setting it, and on threads that use the CUDA runtime it usually is the device's
// already.
//
// Errors: the first fault, after the device was lost; cu_leave() must not be called then.
static inline weir_status cu_enter(struct cu_device *device, struct cu_scope *scope)
{
    scope->changed = false;
    if (atomic_load_explicit(&device->lost, memory_order_relaxed))
        return cu_report_lost(device);
    const CUresult code = device->module->cu.cuCtxGetCurrent(&scope->before);
    if (code == CUDA_SUCCESS && scope->before == device->context)
        return WEIR_OK;
    return cu_change_context(device, scope, code);
}

static inline void cu_leave(const struct cu_device *device, const struct cu_scope *scope)
{
    if (scope->changed)
        device->module->cu.cuCtxSetCurrent(scope->before);
}

// The same for calls that must be tried even if the device is lost.
void cu_enter_to_destroy(struct cu_device *device, struct cu_scope *scope);

// What is in the ops table, of the types that <weir/module/module.h> gives: cu_open() is its `open`.
// clang-format off
#define CU_SLOTS(X)                                                                             \
    X(open) X(close) X(device_count) X(device_describe) X(device_create) X(device_destroy)      \
    X(device_limits) X(device_trim) X(queue_create) X(queue_destroy) X(queue_submit)            \
    X(queue_finish) X(queue_leave) X(event_query) X(event_wait) X(event_time) X(queue_times)    \
    X(device_clock) X(buffer_create) X(buffer_destroy) X(buffer_address) X(program_create)      \
    X(program_destroy) X(program_signatures) X(kernel_create) X(kernel_destroy) X(graph_create) \
    X(graph_destroy) X(graph_update) X(device_native) X(queue_native) X(buffer_native)          \
    X(device_peer) X(device_reach) X(kernel_occupancy) X(comm_create) X(comm_destroy)           \
    X(comm_takes) X(comm_abort) X(comm_query) X(comm_give_up) X(comm_engine) X(comm_captures)   \
    X(graph_takes)
// clang-format on

#define CU_DECLARE(slot) WEIR_SLOT(slot) cu_##slot;
CU_SLOTS(CU_DECLARE)

// device.c

// Whether work of a device can access memory of another one; cu_device_peer() was called for the
// two.
bool cu_reaches_peer(const struct cu_device *device, const struct cu_device *other);
static inline bool cu_reaches(const struct cu_device *device, const struct cu_buffer *buffer)
{
    return buffer->device == device || buffer->managed || cu_reaches_peer(device, buffer->device);
}

// queue.c

static inline struct weir_native_queue cu_describe_queue(const struct cu_queue *queue)
{
    return (struct weir_native_queue){
        .struct_size = sizeof(struct weir_native_queue),
        .api = WEIR_NATIVE_CUDA,
        .context = queue->device->context,
        .queue = queue->stream,
    };
}

// Calls the function of a NATIVE.
static inline weir_status cu_call_native(const struct cu_queue *queue,
                                         const struct weir_operation *operation)
{
    const struct weir_native_queue native = cu_describe_queue(queue);
    return operation->u.native.function(&native, operation->u.native.user);
}

// graph.c

weir_status cu_submit_graph(const struct weir_link *link, struct cu_queue *queue,
                            const struct weir_operation *operation);

// copy.c

// A copy or a fill, or a part of one.
struct cu_box {
    const struct cu_buffer *to;
    const struct cu_buffer *from; // a copy's
    struct weir_box shape;
};

// What the commands of a copy or a fill go to: a stream, or the nodes of a graph. A graph holds no copies between
// devices.
struct cu_target {
    struct cu_device *device;
    struct cu_queue *queue;     // a stream's
    struct cu_builder *builder; // nodes'
};

// Splits a copy or a fill into commands.
weir_status cu_split_copy(const struct weir_link *link, const struct cu_target *target,
                          const struct weir_operation *operation);

// Whether it is a launch, a copy or the like: no record and no wait.
static inline bool cu_is_work(int kind)
{
    return kind != WEIR_OPERATION_RECORD && kind != WEIR_OPERATION_WAIT;
}

// timeline.c

weir_status cu_timeline_init(struct cu_device *device);
void cu_timeline_finish(struct cu_device *device);
// Records an anchor if the last one is old. Cheap when it is not.
void cu_timeline_advance(struct cu_device *device);
// Stores the time of a complete event.
CUresult cu_timeline_convert(struct cu_device *device, CUevent event, uint64_t *out_time_ns);

// Returns the device's time at a time of the host's clock.
uint64_t cu_clock_convert(struct cu_device *device, uint64_t host_ns);
// Relates the two clocks anew if that was long ago. Within the device's context.
void cu_clock_keep(struct cu_device *device);

// times.c

weir_status cu_watch_init(struct cu_queue *queue);
// Within the device's context. Accepts a queue without a watch.
void cu_watch_finish(struct cu_queue *queue);
// Around the submit of an operation, on a queue with a watch.
void cu_watch_begin(struct cu_queue *queue, const struct weir_operation *operation);
void cu_watch_end(struct cu_queue *queue, bool submitted);
// The driver has accepted a command of the operation that is being submitted.
static inline void cu_watch_command(const struct cu_queue *queue)
{
    if (queue->watch)
        queue->watch->commands++;
}
// Switches CUPTI off if no queue needs it.
void cu_activity_rest(void);

// buffer.c

// Carry out the deferred frees, where there are any and no queue of the device has work; and at once, with the pinned,
// managed and plain memory that is kept, which waits for the device. Within its context.
void cu_settle(struct cu_device *device);
void cu_free_kept(struct cu_device *device);

// program.c

// Whether a LAUNCH needs the driver's cooperative launch. Where the device has none there is one block,
// which does not.
static inline bool cu_is_cooperative(const struct cu_device *device,
                                     const struct weir_operation *operation)
{
    return (operation->flags & WEIR_OPERATION_COOPERATIVE) && device->attributes.cooperative;
}

// The arguments of a launch as the driver expects them. Values are read in place; addresses, and
// offsets of local memory, are stored here.
struct cu_packed {
    void *pointers[CU_PARAMETER_LIMIT];
    uint64_t places[CU_PARAMETER_LIMIT];
    size_t local_bytes;
};

// Packs the arguments of a LAUNCH into a structure, which need not be initialised.
void cu_pack(const struct weir_link *link, const struct weir_operation *operation,
             struct cu_packed *packed);

// compile.c

// A program of the caller's source, compiled.
struct cu_compiled {
    void *image;                            // the caller's, to be freed with free()
    struct weir_kit_signatures *signatures; // the caller's, to be freed with host->release
};

// Compiles the source, CUDA C++ or OpenCL C, for the device, or reads the result from the cache. OpenCL C makes
// no call of libcuda.
weir_status cu_compile(struct cu_device *device, const struct weir_program_params *params,
                       struct cu_compiled *out);

// nccl_comm.c

// The threads that end communicators of a device. NULL if out of memory.
struct cu_comm_threads *cu_comm_threads_create(const struct weir_host *host);
// Waits for them, five seconds at most. False: some still use the device's context.
bool cu_comm_threads_leave(struct cu_comm_threads *comm_threads);

// nccl_call.c

// Before the queue gets other work than collectives: what was submitted until now is timed without it.
void cu_comms_mark_queue(struct cu_queue *queue);
// The queue's work has finished, and its stream goes.
void cu_comms_forget_queue(struct cu_queue *queue);

weir_status cu_submit_collective(const struct weir_link *link, struct cu_queue *queue,
                                 const struct weir_operation *operation);

#endif
