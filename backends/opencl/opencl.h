// What the files of the OpenCL backend share.
//
//   module.c     open: library, platforms, devices; the ops table
//   device.c     contexts and limits
//   queue.c      queues: submission, records and waits, flushes, wrapped queues; what a queue's next
//                command waits for, and the event of its last one
//   copy.c       copies and fills, by the kinds of memory
//   events.c     how commands ended, times of operations, and the device's clock
//   buffer.c     memory, also the caller's
//   program.c    building, and the cache of binaries
//   kernel.c     kernels, launches, and the sub-buffers (views) that are arguments
//
// docs/architecture.md has the locks, and what may be called with each of them held.
#ifndef WEIR_BACKENDS_OPENCL_OPENCL_H
#define WEIR_BACKENDS_OPENCL_OPENCL_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <weir/kit/blocks.h>
#include <weir/kit/cache.h>
#include <weir/kit/error.h>
#include <weir/kit/records.h>
#include <weir/kit/signature.h>
#include <weir/module/error.h>
#include <weir/module/module.h>

#include "backends/clc/clc.h"
#include "base/lock.h"
#include "base/try.h"

// Timed records that a queue keeps.
#define OCL_TIMING_HISTORY 4096
// The most views that a buffer keeps, and that it may have where none may be released before it.
#define OCL_VIEW_LIMIT 64
#define OCL_VIEW_KEPT_LIMIT 4096
// Kernel objects of a kernel. Pipelines have a few slots, and may launch a kernel more than once in each.
#define OCL_SETTINGS 16
// Events that the next command of a queue may wait for.
#define OCL_WAIT_LIMIT 16

// A device that a platform lists, opened or not.
struct ocl_listed {
    cl_platform_id platform;
    cl_device_id device;
    struct weir_device_info info;
};

// The state of a link.
struct ocl_module {
    const struct weir_host *host;
    struct ocl_symbols cl;
    struct ocl_listed *listed;
    size_t listed_count;
    const char *build_options;
    weir_kit_cache *cache; // NULL: off
    char driver[256];
};

// Relates the device's clock to the host's.
struct ocl_clock {
    pthread_mutex_t lock;
    cl_command_queue queue; // NULL until needed
    cl_event marker;        // under way; NULL: none
    uint64_t before_ns;     // of the host's clock, around its enqueueing
    uint64_t after_ns;
};

struct ocl_device {
    struct ocl_module *module;
    const struct ocl_listed *listed;
    cl_context context;
    cl_command_queue mapper; // maps HOST memory; never has work of the user
    uint32_t version;        // OpenCL, times ten
    bool svm;                // fine-grained shared memory
    bool svm_system;         // of any host memory
    bool in_place;           // the device is the host's processor: it has the host's addresses
    bool priorities;
    bool no_c_2; // PoCL 4 and later have OpenCL C 1.2 and 3.0, and refuse 2.0
    // PoCL 5 and 6 lack wait_group_events(), which they declare; PoCL 6 has a wrong work_group_all()
    bool bad_group_functions;
    bool keeps_views; // PoCL 7 ends the process if a buffer is used after a view of it was released
    bool late_finish; // see ocl_finish()
    bool errors_stay; // a launch that fails takes all later commands of the context with it
    pthread_mutex_t pending_lock; // guards the ocl_pending of all queues, and
    uint64_t questions;           // about them so far
    struct ocl_clock clock;
    struct weir_kit_blocks spares; // pinned memory; `native` is the buffer object
};

// A range of a buffer. Under the buffer's lock.
struct ocl_view {
    struct ocl_buffer *buffer;
    size_t offset;
    size_t size;
    cl_mem memory;
    uint64_t number; // not 0, and of no other view that the buffer ever had
    uint64_t used;   // the buffer's clock at its last use
    uint32_t users;  // the buffer, while it keeps the view, and launches under way
};

// DEVICE: `memory`, which lies at `address` if the device uses memory in place. HOST: `pointer`, which
// is shared memory if `svm`, else the permanent mapping of `memory` if there is a `block`, else memory
// of the caller, over which `memory` was created.
struct ocl_buffer {
    struct ocl_device *device;
    struct weir_kit_block *block; // pinned memory, which may be larger than the buffer
    size_t size;
    cl_mem memory;
    cl_mem whole;  // the buffer object of which `memory` is a sub-buffer; NULL: it is none
    size_t origin; // the offset of byte 0 in `whole`
    void *pointer;
    bool svm;
    void *address;        // shared memory; NULL: not known
    pthread_mutex_t lock; // guards what follows
    struct ocl_view **views;
    uint32_t view_count;
    uint64_t clock;
};

struct ocl_watch;   // events.c
struct ocl_pending; // events.c

// A command that is being submitted: what the driver is given beside its own arguments.
struct ocl_command {
    cl_uint wait_count;
    const cl_event *waits; // NULL: none
    cl_event *event;       // the place for its event; NULL: it needs none
    cl_event own;
    bool is_last; // expected before a record
};

struct ocl_commands {
    struct weir_lock lock; // guards what follows
    bool timing;           // records are markers
    bool shared;           // others submit to the command queue
    cl_uint wait_count;
    cl_event waits[OCL_WAIT_LIMIT]; // of waits after the last command
    cl_event last;                  // of the last command; NULL: not known
    uint64_t count;                 // commands since the last record
    uint64_t expected;              // commands between the two records before
    struct ocl_command command;
};

struct ocl_queue {
    struct ocl_device *device;
    cl_command_queue queue;
    struct ocl_commands commands;
    struct ocl_watch *watch;     // NULL unless times of operations are wanted
    struct ocl_pending *pending; // NULL where errors stay
    cl_mem staging;              // of the thread that submits; NULL until needed
    uint64_t sequence;           // of the operation that is submitted
    _Atomic uint64_t submitted;  // the last operation that was enqueued
    _Atomic uint64_t flushed;    // the last operation that was flushed
    atomic_bool failed;          // the front end was told of a failure since the last finish
    weir_kit_records *records;
};

struct ocl_program {
    struct ocl_device *device;
    cl_program program;
    struct weir_kit_signatures *signatures; // NULL for bundles
};

// The present value of an argument of a kernel object, so that it need not be set again: a buffer, by
// its id, or a scalar.
struct ocl_bound {
    weir_parameter_kind kind; // 0: unknown
    uint64_t
        part; // a scalar's size; of a buffer 0: the whole, or a view's number, or an offset + 1
    uint64_t bits; // the buffer's id, or the value
};

// An argument of a launch.
struct ocl_passed {
    cl_mem memory; // a buffer's; NULL: it is passed by `address`
    const char *address;
    struct ocl_view *view; // that `memory` is, until the launch was submitted
    struct ocl_bound wanted;
};

// A kernel object of the driver's, and the arguments that it has.
struct ocl_setting {
    cl_kernel kernel;
    struct ocl_bound *bound; // per argument, in the kernel's
    uint64_t key;            // of the ranges
    uint64_t used;           // the kernel's clock at its last use
};

struct ocl_kernel {
    struct ocl_device *device;
    cl_program program; // which the kernel objects retain
    const char *name;
    uint32_t parameter_count;
    // Guards what follows: clSetKernelArg is the one call that is not thread-safe.
    pthread_mutex_t lock;
    struct ocl_setting settings[OCL_SETTINGS];
    uint32_t setting_count;  // at least 1
    struct ocl_bound *bound; // of OCL_SETTINGS objects
    uint64_t clock;
    uint64_t seen[OCL_SETTINGS]; // keys that had no setting
    uint32_t seen_next;
    struct ocl_passed *passed; // of the launch under way, per argument
};

WEIR_STATE_OF(ocl_module_of, struct ocl_module)
WEIR_DATA_OF(ocl_device_of, struct ocl_device, weir_device)
WEIR_DATA_OF(ocl_queue_of, struct ocl_queue, weir_queue)
WEIR_DATA_OF(ocl_buffer_of, struct ocl_buffer, weir_buffer)
WEIR_DATA_OF(ocl_program_of, struct ocl_program, weir_program)
WEIR_DATA_OF(ocl_kernel_of, struct ocl_kernel, weir_kernel)

static inline bool ocl_is_pocl(const struct ocl_device *device)
{
    return strcmp(device->listed->info.platform, "Portable Computing Language") == 0;
}

// What is in the ops table, of the types that <weir/module/module.h> gives: ocl_open() is its `open`.
// clang-format off
#define OCL_SLOTS(X)                                                                             \
    X(open) X(close) X(device_count) X(device_describe) X(device_create) X(device_destroy)       \
    X(device_limits) X(device_trim) X(queue_create) X(queue_destroy) X(queue_submit)             \
    X(queue_flush) X(queue_finish) X(event_query) X(event_wait) X(event_time) X(queue_times)     \
    X(device_clock) X(buffer_create) X(buffer_destroy) X(buffer_address) X(program_create)       \
    X(program_destroy) X(program_signatures) X(kernel_create) X(kernel_destroy) X(device_native) \
    X(queue_native) X(buffer_native) X(kernel_occupancy)
// clang-format on

#define OCL_DECLARE(slot) WEIR_SLOT(slot) ocl_##slot;
OCL_SLOTS(OCL_DECLARE)

// device.c and module.c

// Fill `text` with a string property, or with "" if the driver does not have it.
void ocl_device_text(const struct ocl_symbols *cl, cl_device_id device, cl_device_info what,
                     char *text, size_t size);
void ocl_platform_text(const struct ocl_symbols *cl, cl_platform_id platform, cl_platform_info what,
                       char *text, size_t size);
// As clFinish(). PoCL 6 may use the queue for a moment after the one that began just before the last command ended, and
// ends the process if it has been released by then ("PTHREAD ERROR in pocl_update_event_finished"); there the last
// command is waited for by its event.
cl_int ocl_finish(const struct ocl_device *device, cl_command_queue queue);

// queue.c

// Begins a command: the driver is called with what is returned, and then ocl_command_end() with its answer.
const struct ocl_command *ocl_command_begin(struct ocl_queue *queue);
// Reports that `call` returned `code`, or that there is no memory for the command's event. `format` says what was
// attempted.
weir_status ocl_command_end(struct ocl_queue *queue, cl_int code, const char *call,
                            const char *format, ...) WEIR_PRINTF(4, 5);

// copy.c

// A copy or a fill, of any kind.
weir_status ocl_submit_copy(const struct weir_link *link, struct ocl_queue *queue,
                            const struct weir_operation *operation);

// events.c

// Reports that a command's event ended with `code`, and returns the corresponding status. `format` says what was
// attempted.
weir_status ocl_event_error(const struct ocl_module *module, const char *call, cl_int code,
                            const char *format, ...) WEIR_PRINTF(4, 5);
// Returns how a command stands: a positive number while it has not ended, CL_COMPLETE, or its error; or the driver's
// error, where it does not tell: not `*out_known`. Both errors are negative.
cl_int ocl_event_state(const struct ocl_module *module, cl_event event, bool *out_known);
// Waits until it has ended, at most so long. False: it has not.
bool ocl_event_await(const struct ocl_module *module, cl_event event, uint64_t limit_ns);
// Stores one of its times.
cl_int ocl_event_profile(const struct ocl_module *module, cl_event event, cl_profiling_info what,
                         uint64_t *out_time_ns);
// Creates what the queue keeps of commands, and with `times` of operations.
weir_status ocl_events_create(struct ocl_queue *queue, bool times);
// What was not created is passed by.
void ocl_events_finish(struct ocl_queue *queue);
// What the queue's operation `sequence` is: a command, whose event is released once it was read, or a wait for all
// commands of `producer` up to `until`.
struct ocl_entry {
    uint64_t sequence;
    uint64_t until;
    cl_event event; // NULL: a wait
    struct ocl_pending *producer;
};
// False: out of memory, and the event stays the caller's. The queue has a list.
bool ocl_pending_add(struct ocl_queue *queue, const struct ocl_entry *entry);
// Reports the first command that failed, up to `sequence`, here or in a queue that this one waited for. With
// `ended` all work up to `sequence` has; else commands under way are passed by. With `clear` the failure is
// forgotten.
weir_status ocl_pending_check(struct ocl_queue *queue, uint64_t sequence, bool ended, bool clear);

// Returns the place for the event of the next command of the operation that is being submitted.
cl_event *ocl_watch_event(const struct ocl_queue *queue);
// Ends the operation: its events are kept, or released if it was not submitted.
void ocl_watch_keep(struct ocl_queue *queue, uint64_t sequence, bool submitted);

// buffer.c

// Releases the pinned memory of destroyed buffers.
void ocl_spares_release(struct ocl_device *device);

// kernel.c

// Gives back one use of a view, under its buffer's lock or at the buffer's end.
void ocl_view_release(struct ocl_view *view);
weir_status ocl_submit_launch(const struct weir_link *link, struct ocl_queue *queue,
                              const struct weir_operation *operation);

#endif
