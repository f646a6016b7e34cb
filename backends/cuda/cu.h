// What the files of the CUDA backend share: their functions. The structures are in objects.h.
//
//   module.c       open: library, driver, devices; the ops table
//   device.c       contexts, limits, and entering a context and leaving it again
//   queue.c        streams, and submit
//   copy.c         copies and fills, by the kinds of memory
//   graph.c        graphs
//   nodes.c        the driver's nodes for the nodes of a graph
//   event.c        records and waits
//   fault.c        histories of queues, and the operations that a fault may be caused by
//   timeline.c     times of records on the one timeline of a device
//   times.c        times of operations, by events; the device's clock
//   activity*.c    times of operations, by CUPTI
//   buffer.c       DEVICE memory, mostly from a pool, HOST memory that is kept for reuse
//   idle.c         frees that are deferred until the device is idle
//   native.c       native handles, wrapped streams and adopted memory
//   peer.c         copies between devices
//   print.c        what kernels print
//   print_format.c text of it
//   image.c        which image of a bundle a device takes
//   program.c      programs and kernels
//   occupancy.c    how many blocks of a kernel the device holds at once
//   source.c       OpenCL C at run time, and the cache of its results
//   driver_cl.c    the driver's OpenCL compiler
//   compile.c      CUDA C++ at run time
//   nccl*.c        collectives, by NCCL
//   give_up.c      devices whose work may never end, and waits that end with them
//   error.c        status and remedy of CUDA's errors
//
// docs/architecture.md has the locks, and what may be called with each of them held. Nothing that
// may wait for the device is, except that peer.c enables peer access under its lock.
#ifndef WEIR_BACKENDS_CUDA_CU_H
#define WEIR_BACKENDS_CUDA_CU_H

#include <weir/kit/error.h>
#include <weir/module/error.h>

#include "backends/cuda/objects.h"
#include "base/cold.h"

// error.c

// Reports that `call` returned `code`, and returns the corresponding status. `format` says what was
// attempted. The first code that means the end of the context is kept with the device, and is
// reported from then on in place of every other code.
WEIR_COLD weir_status cu_native_error(struct cu_device *device, const char *call, CUresult code,
                                      const char *format, ...) WEIR_PRINTF(4, 5);

// The same without a device.
WEIR_COLD weir_status cu_module_error(const struct cu_module *module, const char *call,
                                      CUresult code, const char *format, ...) WEIR_PRINTF(4, 5);

// Reports the first fault of a device that is lost.
WEIR_COLD weir_status cu_report_lost(struct cu_device *device);

// give_up.c

// The device is lost with this cause, although nothing faulted: work of it may never end. So are all others
// of this process that are open on the same GPU, in any runtime.
void cu_give_up(const struct cu_device *device, const struct weir_error *cause);

static inline bool cu_is_given_up(const struct cu_device *device)
{
    return atomic_load_explicit(&device->given_up, memory_order_acquire);
}

// Refuses to open a device that was given up in this process; else cu_give_up() finds it, until it is
// delisted. One that was refused may be delisted too.
weir_status cu_enlist_open(struct cu_device *device);
void cu_delist_open(const struct cu_device *device);

// Wait for the program's work. CUDA_ERROR_LAUNCH_TIMEOUT: the device was given up meanwhile.
CUresult cu_await_work(const struct cu_device *device, CUstream stream);
CUresult cu_await_record(const struct cu_device *device, CUevent event);

// device.c

// The context that was current before a call.
struct cu_scope {
    CUcontext before;
    bool changed;
};

// Makes the device's context current, and restores the caller's. Reading the current context costs
// less than setting it, and on threads that use the CUDA runtime it usually is the device's
// already.
//
// Errors: the first fault, after the device was lost; cu_leave() must not be called then.
static inline weir_status cu_enter(struct cu_device *device, struct cu_scope *scope);
static inline void cu_leave(const struct cu_device *device, const struct cu_scope *scope);
// The same for calls that must be tried even if the device is lost.
void cu_enter_to_destroy(struct cu_device *device, struct cu_scope *scope);

// Called by cu_enter() if the device's context is not current.
weir_status cu_change_context(struct cu_device *device, struct cu_scope *scope);
WEIR_COLD weir_status cu_refuse_to_enter(struct cu_device *device, CUresult code);

static inline weir_status cu_enter(struct cu_device *device, struct cu_scope *scope)
{
    scope->changed = false;
    if (atomic_load_explicit(&device->lost, memory_order_relaxed))
        return cu_report_lost(device);
    CUresult code = device->module->cu.cuCtxGetCurrent(&scope->before);
    if (code != CUDA_SUCCESS)
        return cu_refuse_to_enter(device, code);
    return scope->before == device->context ? WEIR_OK : cu_change_context(device, scope);
}

static inline void cu_leave(const struct cu_device *device, const struct cu_scope *scope)
{
    if (scope->changed)
        device->module->cu.cuCtxSetCurrent(scope->before);
}

weir_status cu_device_create(const struct weir_link *link, weir_device *object,
                             const struct weir_device_setup *setup, void **out_data);
void cu_device_destroy(const struct weir_link *link, weir_device *object);
void cu_device_limits(const struct weir_link *link, weir_device *object,
                      struct weir_limits *limits);
weir_status cu_device_trim(const struct weir_link *link, weir_device *object);

// queue.c

weir_status cu_queue_create(const struct weir_link *link, weir_device *device_object,
                            weir_queue *object, const struct weir_queue_setup *setup,
                            void **out_data);
void cu_queue_destroy(const struct weir_link *link, weir_queue *object);
weir_status cu_queue_submit(const struct weir_link *link, weir_queue *object,
                            const struct weir_operation *operation);
weir_status cu_queue_finish(const struct weir_link *link, weir_queue *object);
void cu_queue_leave(const struct weir_link *link, weir_queue *object);

// The arguments of a launch as the driver expects them. Values are read in place; addresses, and
// offsets of local memory, are stored here.
struct cu_packed {
    void *pointers[CU_PARAMETER_LIMIT];
    uint64_t places[CU_PARAMETER_LIMIT];
    size_t local_bytes;
};

// Packs the arguments of a LAUNCH into a structure, which need not be initialised.
//
// Errors: WEIR_ERROR_INVALID for more local memory than the kernel can have.
weir_status cu_pack(const struct weir_link *link, const struct weir_operation *operation,
                    struct cu_packed *packed);

// graph.c

weir_status cu_graph_create(const struct weir_link *link, weir_device *device_object,
                            weir_graph *object, const struct weir_graph_setup *setup,
                            void **out_data);
void cu_graph_destroy(const struct weir_link *link, weir_graph *object);
// The label that it was created with; the device's.
const char *cu_graph_name(const struct cu_graph *graph);
bool cu_graph_takes(const struct weir_link *link, weir_device *device,
                    const struct weir_operation *operation);
weir_status cu_graph_update(const struct weir_link *link, weir_graph *object, uint32_t index,
                            const struct weir_graph_node *node);
weir_status cu_submit_graph(const struct weir_link *link, struct cu_queue *queue,
                            const struct weir_operation *operation);

// copy.c, fill.c

// Of a box: bytes, rows, slices.
struct cu_size {
    size_t width;
    size_t height;
    size_t depth;
};

// What the commands of a copy or a fill go to: a stream (copy.c), or the nodes of a graph (nodes.c).
struct cu_target {
    struct cu_device *device;
    const struct cu_commands *commands;
    struct cu_queue *queue;     // a stream's
    struct cu_builder *builder; // nodes'
};

struct cu_commands {
    // Between HOST memory and DEVICE memory, and within the latter.
    weir_status (*write)(const struct cu_target *target, CUdeviceptr dst, const char *src,
                         size_t size);
    weir_status (*read)(const struct cu_target *target, char *dst, CUdeviceptr src, size_t size);
    weir_status (*copy)(const struct cu_target *target, CUdeviceptr dst, CUdeviceptr src,
                        size_t size);
    weir_status (*box)(const struct cu_target *target, const CUDA_MEMCPY3D *box);
    weir_status (*set)(const struct cu_target *target, const CUDA_MEMSET_NODE_PARAMS *set);
    // Between devices. NULL for nodes: a graph holds no such copies.
    weir_status (*peer)(const struct cu_target *target, const struct cu_buffer *dst,
                        size_t dst_offset, const struct cu_buffer *src, size_t src_offset,
                        size_t size);
    weir_status (*peer_box)(const struct cu_target *target, const struct cu_buffer *dst,
                            const struct weir_volume *dst_volume, const struct cu_buffer *src,
                            const struct weir_volume *src_volume, const struct cu_size *size);
    // Temporary memory of the operation's. `drop_staging` returns `status`, which is that of what used the
    // memory, if it is an error.
    weir_status (*take_staging)(const struct cu_target *target, size_t size,
                                CUdeviceptr *out_staging);
    weir_status (*drop_staging)(const struct cu_target *target, CUdeviceptr staging,
                                weir_status status);
};

// Splits a copy or a fill into commands. cu_submit_copy() does so for the queue's stream.
weir_status cu_split_copy(const struct weir_link *link, const struct cu_target *target,
                          const struct weir_operation *operation);
weir_status cu_submit_copy(const struct weir_link *link, struct cu_queue *queue,
                           const struct weir_operation *operation);

// event.c

weir_status cu_records_init(struct cu_queue *queue);
weir_status cu_submit_record(struct cu_queue *queue, uint64_t sequence);
weir_status cu_submit_wait(struct cu_queue *queue, struct cu_queue *producer, uint64_t sequence);
weir_status cu_event_query(const struct weir_link *link, weir_queue *object, uint64_t sequence);
weir_status cu_event_wait(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                          uint64_t timeout_ns);
weir_status cu_event_time(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                          uint64_t *out_time_ns);

// history.c

// Creates the data for a device's reports of faults. Within its context.
weir_status cu_words_init(struct cu_device *device);
// Within the device's context, when it has no queues. Accepts a device without this data.
void cu_words_finish(struct cu_device *device);

weir_status cu_history_init(struct cu_queue *queue, const weir_queue *object);
// Accepts a queue without a history. The queue is on no list any more.
void cu_history_finish(struct cu_queue *queue);

// Notes an operation before it is submitted; before some records also makes the stream write its
// progress. Within the device's context.
void cu_history_note(const struct weir_link *link, struct cu_queue *queue,
                     const struct weir_operation *operation);
// If faults are to be attributed, makes the stream write that it has passed the operation. Called
// after its submission, within the device's context.
void cu_history_mark(struct cu_queue *queue, const struct weir_operation *operation);

// Returns a copy of the name that lives as long as the device, the same for equal names. NULL if
// out of memory.
const char *cu_keep_name(struct cu_device *device, const char *name);

// fault.c

// Adds the operations that may be the cause to the detail of a device's first fault, and logs a
// line for each queue that had work. Under the device's lock, which is one reason why a log
// callback must not call Weir. Makes no driver call and allocates nothing.
void cu_fault_explain(struct cu_device *device, struct weir_error *detail);

// timeline.c

weir_status cu_timeline_init(struct cu_device *device);
void cu_timeline_finish(struct cu_device *device);
// Records an anchor if the last one is old. Cheap when it is not.
void cu_timeline_advance(struct cu_device *device);
// Stores the time of a complete event. `near` is an event whose time is `near_ns`, or NULL; it is
// used if it is nearer than every anchor.
CUresult cu_timeline_convert(struct cu_device *device, CUevent event, CUevent near,
                             uint64_t near_ns, uint64_t *out_time_ns);

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
weir_status cu_queue_times(const struct weir_link *link, weir_queue *object,
                           struct weir_operation_time *times, size_t time_size, size_t capacity,
                           size_t *out_count);
weir_status cu_device_clock(const struct weir_link *link, weir_device *object,
                            uint64_t *out_host_ns, uint64_t *out_device_ns);
// Returns the device's time at a time of the host's clock.
uint64_t cu_clock_convert(struct cu_device *device, uint64_t host_ns);

// activity.c

// Returns whether CUPTI times the queue's operations from now on. Opens CUPTI at the first call in
// the process.
bool cu_activity_enlist(struct cu_queue *queue);
void cu_activity_delist(struct cu_queue *queue);
// Switches CUPTI off if no queue needs it.
void cu_activity_rest(void);
// Around the calls of the driver that an operation consists of.
void cu_activity_push(const struct cu_queue *queue, uint64_t sequence);
void cu_activity_pop(void);

// activity.c

// No times are stored while the lock is held.
void cu_activity_lock(void);
void cu_activity_unlock(void);
// Makes CUPTI deliver its records, unless it has just done so. Takes locks of its own.
void cu_activity_flush(const struct cu_queue *queue);
// With the watch's lock held.
size_t cu_activity_fetch(struct cu_queue *queue, struct weir_operation_time *times,
                         size_t time_size, size_t capacity);

// buffer.c

weir_status cu_buffer_create(const struct weir_link *link, weir_device *object,
                             weir_buffer *buffer_object, const struct weir_buffer_setup *setup,
                             void **out_data, void **out_pointer);
void cu_buffer_destroy(const struct weir_link *link, weir_buffer *object);
weir_status cu_buffer_address(const struct weir_link *link, weir_buffer *object,
                              uint64_t *out_address);
// Frees the pinned, managed and plain memory that is kept; waits for the device. Within its context.
void cu_blocks_release(struct cu_device *device);

// idle.c

weir_status cu_idle_init(struct cu_device *device);
// Registers memory of the user, or shares a registration that covers it, or stores NULL if other
// code has pinned the memory. Within the device's context. May wait for the device, as
// weir_kit_registration_share() does.
weir_status cu_registration_get(struct cu_device *device, void *pointer, size_t size,
                                struct weir_kit_registration **out_registration);

// native.c

weir_status cu_device_native(const struct weir_link *link, weir_device *object,
                             struct weir_native_device *out_native);
weir_status cu_queue_native(const struct weir_link *link, weir_queue *object,
                            struct weir_native_queue *out_native);
weir_status cu_buffer_native(const struct weir_link *link, weir_buffer *object,
                             struct weir_native_buffer *out_native);
weir_status cu_submit_native(const struct cu_queue *queue, const struct weir_operation *operation);
// Wraps a stream of the caller. Within the device's context.
weir_status cu_wrap_stream(struct cu_queue *queue, void *native);
// Adopts memory of the caller: device memory or, for a HOST buffer, pinned memory of the host.
// Within the device's context.
weir_status cu_adopt(struct cu_buffer *buffer, CUdeviceptr native, weir_placement placement);

// peer.c

weir_status cu_device_peer(const struct weir_link *link, weir_device *object,
                           weir_device *other_object, bool *out_peers);
weir_status cu_device_reach(const struct weir_link *link, weir_device *object,
                            weir_device *other_object, weir_buffer *buffer_object,
                            bool *out_reaches);
void cu_peers_finish(struct cu_device *device);
// Whether work of a device can access memory of another one; cu_device_peer() was called for the
// two.
bool cu_reaches_peer(const struct cu_device *device, const struct cu_device *other);
static inline bool cu_reaches(const struct cu_device *device, const struct cu_buffer *buffer)
{
    return buffer->device == device || buffer->managed || cu_reaches_peer(device, buffer->device);
}
// Whether the buffers belong to different devices. Every device has managed memory at its address.
static inline bool cu_is_peer_copy(const struct cu_buffer *dst, const struct cu_buffer *src)
{
    return !dst->pointer && !src->pointer && !dst->managed && !src->managed &&
           dst->device->context != src->device->context;
}
// Commands of a stream.
weir_status cu_copy_peer(const struct cu_target *target, const struct cu_buffer *dst,
                         size_t dst_offset, const struct cu_buffer *src, size_t src_offset,
                         size_t size);
// A box of slices; each slice pitch is a multiple of its pitch.
weir_status cu_copy_peer_3d(const struct cu_target *target, const struct cu_buffer *dst,
                            const struct weir_volume *dst_volume, const struct cu_buffer *src,
                            const struct weir_volume *src_volume, const struct cu_size *size);

// print.c

// Gives a loaded module the ring, if its kernels print. Within the device's context.
weir_status cu_prints_attach(struct cu_device *device, CUmodule loaded);
void cu_prints_finish(struct cu_device *device);
// Sends what has been printed since the last time to the log; of a device that is lost also what
// follows a record that is not whole. Makes no call of the driver.
void cu_prints_read(struct cu_device *device);
static inline void cu_prints_take(struct cu_device *device)
{
    if (atomic_load_explicit(&device->prints.ring, memory_order_acquire))
        cu_prints_read(device);
}

// program.c

weir_status cu_program_create(const struct weir_link *link, weir_device *device,
                              weir_program *object, const struct weir_program_params *params,
                              void **out_data);
void cu_program_destroy(const struct weir_link *link, weir_program *object);
weir_status cu_program_signatures(const struct weir_link *link, weir_program *object,
                                  const struct weir_kernel_signature **out_signatures,
                                  uint32_t *out_count);
weir_status cu_kernel_create(const struct weir_link *link, weir_program *program_object,
                             weir_kernel *object, const struct weir_kernel_signature *signature,
                             struct weir_kernel_info *info, void **out_data);
void cu_kernel_destroy(const struct weir_link *link, weir_kernel *object);

// occupancy.c

// Whether a LAUNCH needs the driver's cooperative launch. Where the device has none there is one block,
// which does not.
static inline bool cu_is_cooperative(const struct cu_device *device,
                                     const struct weir_operation *operation)
{
    return (operation->flags & WEIR_OPERATION_COOPERATIVE) && device->attributes.cooperative;
}

weir_status cu_kernel_occupancy(const struct weir_link *link, weir_kernel *object,
                                struct weir_extent block, size_t local_bytes,
                                struct weir_occupancy *occupancy);

// A program of the caller's source, compiled.
struct cu_compiled {
    void *memory; // the caller's, to be freed with free()
    const void *image;
    struct weir_kit_signatures *signatures; // the caller's, to be freed with host->release
};

// source.c

// Compiles OpenCL C for the device, or reads the result from the cache. Makes no call of libcuda.
weir_status cu_compile_opencl(const struct cu_device *device, const char *source,
                              const char *options, struct cu_compiled *out);

// compile.c

struct cu_compiler *cu_compiler_create(const struct weir_host *host);
void cu_compiler_destroy(struct cu_compiler *compiler, const struct weir_host *host);

// The same for CUDA C++.
weir_status cu_compile_cuda(struct cu_device *device, const char *source, const char *options,
                            struct cu_compiled *out);

// nccl.c

// `setting` is [cuda] nccl. NULL if out of memory.
struct cu_nccl *cu_nccl_create(const struct weir_host *host, const char *setting);
void cu_nccl_destroy(struct cu_nccl *nccl, const struct weir_host *host);
bool cu_nccl_is_off(const struct cu_nccl *nccl);

// Whether a communicator may have work whose end nothing is sure of.
bool cu_nccl_is_used(const struct cu_nccl *nccl);

// nccl_task.c

// The threads that end communicators of a device. NULL if out of memory.
struct cu_comm_threads *cu_comm_threads_create(const struct weir_host *host);
// Waits for them, five seconds at most. False: some still use the device's context.
bool cu_comm_threads_leave(struct cu_comm_threads *comm_threads, const struct weir_host *host);

// nccl_comm.c

weir_status cu_comm_create(const struct weir_link *link, weir_device *object,
                           weir_comm *comm_object, const struct weir_comm_setup *setup,
                           void **out_data);
void cu_comm_destroy(const struct weir_link *link, weir_comm *object);
bool cu_comm_takes(const struct weir_link *link, weir_comm *object,
                   const struct weir_operation *operation);
void cu_comm_abort(const struct weir_link *link, weir_comm *object);
void cu_comm_give_up(const struct weir_link *link, weir_comm *object,
                     const struct weir_error *cause);
const char *cu_comm_engine(const struct weir_link *link, weir_comm *object);
bool cu_comm_captures(const struct weir_link *link, weir_comm *comm,
                      const struct weir_operation *operation);

// nccl_progress.c

weir_status cu_comm_query(const struct weir_link *link, weir_comm *object,
                          struct weir_comm_progress *progress);
// Before the queue gets other work than collectives: what was submitted until now is timed without it.
void cu_comms_mark_queue(struct cu_queue *queue);
// The queue's work has finished, and its stream goes.
void cu_comms_forget_queue(struct cu_queue *queue);

// nccl_call.c
weir_status cu_submit_collective(const struct weir_link *link, struct cu_queue *queue,
                                 const struct weir_operation *operation);

#endif
