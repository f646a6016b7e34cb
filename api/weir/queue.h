// Queues: each is exactly one native stream or command queue, in order and non-blocking. For
// concurrency create more queues. No queue waits for another unless the caller asks for it; the
// one exception is the legacy queue (<weir/migration.h>).
//
// Every operation is asynchronous and remembers its caller's file:line.
//
// A queue fails when one of its operations, or an operation that it waits for, fails: a host
// call returns an error, the driver refuses an operation at submit, or the device faults. Every
// operation after the failure, in the queue and in the queues that wait for it, reports the
// first cause. New submissions are then refused with that cause until weir_queue_recover(). It
// is unspecified whether work that was submitted before the failure was noticed still runs, and
// its outputs are undefined. A refused argument (WEIR_ERROR_INVALID) submits nothing and does
// not fail the queue.
//
// Threads: several threads may submit to one queue; they are responsible for the order.
#ifndef WEIR_QUEUE_H
#define WEIR_QUEUE_H

#include <weir/buffer.h>
#include <weir/common.h>
#include <weir/event.h>
#include <weir/launch.h>
#include <weir/program.h>
#include <weir/status.h>

struct weir_queue_params {
    size_t struct_size;
    const char *label; // for messages and traces, which have at most 127 bytes of it; see below
    int32_t priority;  // between limits.priority_lowest and _highest; 0: normal
    bool timing;       // weir_event_time_ns() works on its events
};

// Errors: WEIR_ERROR_INVALID; WEIR_ERROR_OUT_OF_MEMORY; WEIR_ERROR_DEVICE.
WEIR_CALL weir_status weir_queue_create_at(weir_device *device,
                                           const struct weir_queue_params *params,
                                           weir_queue **out_queue, const char *file, int line);
#define weir_queue_create(...) weir_queue_create_at(__VA_ARGS__, __FILE__, __LINE__)

// Destroys the queue. Work that was submitted still runs to completion, and events of the queue
// stay valid. Never waits for the device.
WEIR_API void weir_queue_destroy_at(weir_queue **queue, const char *file, int line);
#define weir_queue_destroy(queue) weir_queue_destroy_at(queue, __FILE__, __LINE__)

// The queue's label, "" if it has none; the queue's device, NULL for NULL. Labels of all objects are
// kept as they are shown: a control character as "\n" or "\x1b", and "..." in place of what is over 127 bytes.
WEIR_API const char *weir_queue_label(const weir_queue *queue);
WEIR_API weir_device *weir_queue_device(const weir_queue *queue);

// Copies `size` bytes. Either buffer may be on the device or the host. One of the two may belong
// to another device of the runtime if weir_device_can_peer() returns true for the two devices.
//
// Errors: WEIR_ERROR_INVALID for a range outside its buffer, overlapping ranges of one buffer,
// or buffers of another device that cannot be reached; the queue's first failure. A copy of zero
// bytes keeps its place in the queue's order but copies nothing.
WEIR_CALL weir_status weir_queue_copy_at(weir_queue *queue, weir_buffer *dst, size_t dst_offset,
                                         weir_buffer *src, size_t src_offset, size_t size,
                                         const char *file, int line);
#define weir_queue_copy(...) weir_queue_copy_at(__VA_ARGS__, __FILE__, __LINE__)

// One side of a 2-D copy: row r starts at offset + r * pitch. Closed.
struct weir_plane {
    weir_buffer *buffer;
    size_t offset;
    size_t pitch; // bytes, >= the width of the copy
};

// Copies `height` rows of `width` bytes.
//
// Errors: as weir_queue_copy(); WEIR_ERROR_INVALID for a pitch below the width.
WEIR_CALL weir_status weir_queue_copy_2d_at(weir_queue *queue, struct weir_plane dst,
                                            struct weir_plane src, size_t width, size_t height,
                                            const char *file, int line);
#define weir_queue_copy_2d(queue, ...) weir_queue_copy_2d_at(queue, __VA_ARGS__, __FILE__, __LINE__)

// One side of a 3-D copy: a plane for each slice. Row r of slice s starts at
// offset + s * slice_pitch + r * pitch. Closed.
struct weir_volume {
    weir_buffer *buffer;
    size_t offset;
    size_t pitch;       // bytes, >= the width of the copy
    size_t slice_pitch; // bytes, >= what the rows of a slice take; unused for a single slice
};

// Copies `depth` slices of `height` rows of `width` bytes:
//
//     struct weir_volume whole = {field, 0, 512, 512 * 512}; // 512 x 512 x 512 bytes
//     struct weir_volume cut = {tile, 0, 64, 64 * 64};       // 64 x 64 x 64
//     whole.offset = (z * 512 + y) * 512 + x;
//     weir_queue_copy_3d(queue, cut, whole, 64, 64, 64);
//
// Drivers copy a box in one command if slice_pitch is a multiple of pitch on both sides; else Weir
// copies slice by slice.
//
// Errors: as weir_queue_copy_2d(); WEIR_ERROR_INVALID for slices that run into each other.
WEIR_CALL weir_status weir_queue_copy_3d_at(weir_queue *queue, struct weir_volume dst,
                                            struct weir_volume src, size_t width, size_t height,
                                            size_t depth, const char *file, int line);
#define weir_queue_copy_3d(queue, ...) weir_queue_copy_3d_at(queue, __VA_ARGS__, __FILE__, __LINE__)

// Fills `size` bytes with a pattern of 1, 2, 4, 8 or 16 bytes, which is read before the call
// returns. `dst_offset` and `size` must be multiples of `pattern_size`.
//
// Errors: as weir_queue_copy().
WEIR_CALL weir_status weir_queue_fill_at(weir_queue *queue, weir_buffer *dst, size_t dst_offset,
                                         size_t size, const void *pattern, size_t pattern_size,
                                         const char *file, int line);
#define weir_queue_fill(queue, ...) weir_queue_fill_at(queue, __VA_ARGS__, __FILE__, __LINE__)

// Fills `height` rows of `width` bytes; the bytes between the rows stay as they are. The offset and
// `width` must be multiples of `pattern_size`, and so must the pitch if there is more than one row.
// OpenCL has no command for it: there a fill takes one command for the first row and one for each
// doubling of the filled rows, eleven for 1024 rows, and in a HOST buffer one for each row.
//
// Errors: as weir_queue_fill(); WEIR_ERROR_INVALID for a pitch below the width.
WEIR_CALL weir_status weir_queue_fill_2d_at(weir_queue *queue, struct weir_plane dst, size_t width,
                                            size_t height, const void *pattern, size_t pattern_size,
                                            const char *file, int line);
#define weir_queue_fill_2d(queue, ...) weir_queue_fill_2d_at(queue, __VA_ARGS__, __FILE__, __LINE__)

// Launches `grid` blocks of `block` work-items. A grid of no blocks (x is 0) keeps its
// place in the queue's order but runs nothing, so that a computed size may be 0; a y or z of 0
// counts as 1. Arguments (<weir/launch.h>) are read before the call returns, and checked against
// the kernel's signature in count, kind, type and access.
//
//     weir_queue_launch(queue, scale, weir_dim(n / 256, 1, 1), weir_dim(256, 1, 1),
//                       weir_in(src, 0, bytes), weir_out(dst, 0, bytes), 2.0f);
//
// Both macros call weir_queue_launch_at(), which <weir/launch.h> declares. In C, pass the
// extents of weir_queue_launch() as variables or with weir_dim(), not as compound literals.
//
// Errors: WEIR_ERROR_INVALID, with the parameter's name, its type and the argument that was
// passed, and for a kernel that calls weir_grid_barrier() or, in source at run time, is in a text whose
// code names it; the queue's first failure.
#define weir_queue_launch_array(...) weir_queue_launch_at(__VA_ARGS__, __FILE__, __LINE__)

// The same for kernels whose blocks wait for each other at weir_grid_barrier() (docs/kernels.md): all
// blocks run at once. The grid has at most weir_kernel_cooperative_blocks() blocks, which is 1 on
// a device whose blocks cannot wait for each other. Both macros call
// weir_queue_launch_cooperative_at().
//
// Errors: as weir_queue_launch(); WEIR_ERROR_UNSUPPORTED for a larger grid.
#define weir_queue_launch_cooperative_array(queue, ...) \
    weir_queue_launch_cooperative_at(queue, __VA_ARGS__, __FILE__, __LINE__)

// The same with at least `count` work-items in one dimension, for kernels that compare
// get_global_id(0) with a count of their own: the last block may reach beyond it. Blocks are of the
// kernel's required size, or else of 256 work-items, or fewer where the device's or the kernel's limit
// is lower. A count of 0 runs nothing. Both macros call weir_queue_launch_count_at().
//
//     weir_queue_launch_count(queue, scale, n, weir_whole_in(src), weir_whole_out(dst), 2.0f, n);
//
// Errors: as weir_queue_launch(); WEIR_ERROR_INVALID for a kernel that requires blocks of more than
// one dimension.
#define weir_queue_launch_count_array(queue, ...) \
    weir_queue_launch_count_at(queue, __VA_ARGS__, __FILE__, __LINE__)

// The same with exactly `items` work-items, in one dimension, two or three, for kernels that compare
// get_global_id() with nothing: OpenCL's global size with a local size of NULL. An x of 0 runs nothing;
// a y or z of 0 counts as 1. Blocks are the kernel's required ones, or else divide `items`: rows as long
// as can be, of at most 256 work-items in a block, or more where that gives too few. Both macros call
// weir_queue_launch_global_at().
//
//     weir_queue_launch_global(queue, blur, weir_dim(width, height, 1), weir_whole_in(src),
//                              weir_whole_out(dst));
//
// Errors: as weir_queue_launch(); WEIR_ERROR_INVALID if no such block has as many work-items as
// info.preferred_block_items, as with a large prime number: the device would leave most of itself
// idle. The kernel then needs a comparison, and weir_queue_launch_count().
#define weir_queue_launch_global_array(queue, ...) \
    weir_queue_launch_global_at(queue, __VA_ARGS__, __FILE__, __LINE__)

// Runs `function(user)` on a library thread after all earlier work of the queue has finished;
// later work of the queue waits until it has returned. The function may submit work, also to its
// own queue (after the work that is already there), but must not wait. A slow function delays no
// other queue. A negative return fails the queue; a detail that the function has set for it by
// weir_error_set() is then the failure's, with the line of this call. `user` must live until the
// function has returned.
//
// Errors: WEIR_ERROR_INVALID in a capture; WEIR_ERROR_OUT_OF_MEMORY, or WEIR_ERROR_SYSTEM if no
// thread can be created; the queue's first failure. After an error the function never runs.
typedef weir_status (*weir_host_function)(void *user);
WEIR_CALL weir_status weir_queue_host_call_at(weir_queue *queue, weir_host_function function,
                                              void *user, const char *file, int line);
#define weir_queue_host_call(...) weir_queue_host_call_at(__VA_ARGS__, __FILE__, __LINE__)

// The same for what must be freed: the function runs once, also if the queue has failed or fails
// before it, or its device is lost, and is told so. `status` is WEIR_OK, or the first failure that the
// call depends on, of which weir_last_error() has the detail. A failed queue takes it too.
//
//     weir_queue_copy(queue, dst, 0, staging, 0, bytes);
//     weir_queue_host_call_always(queue, give_back, staging); // whatever becomes of the copy
//
// Errors: WEIR_ERROR_INVALID in a capture; WEIR_ERROR_OUT_OF_MEMORY; WEIR_ERROR_SYSTEM if no thread
// can be created. After an error the function never runs.
typedef void (*weir_always_function)(void *user, weir_status status);
WEIR_CALL weir_status weir_queue_host_call_always_at(weir_queue *queue,
                                                     weir_always_function function, void *user,
                                                     const char *file, int line);
#define weir_queue_host_call_always(queue, function, user) \
    weir_queue_host_call_always_at(queue, function, user, __FILE__, __LINE__)

// What a note says of some bytes: `rows` rows of `size` bytes, which begin `pitch` bytes apart, in each of
// `slices` slices, which begin `slice_pitch` bytes apart. With one row or one slice, or 0 for one, that pitch
// is unused. Closed.
struct weir_note_range {
    weir_buffer *buffer;
    size_t offset;
    size_t size;
    weir_access access;
    // A guess: the work may use fewer of these bytes, or only read what it is said to write. Findings of the
    // plugin `check` that rest on it say so.
    bool assumed;
    size_t rows;
    size_t pitch;
    size_t slices;
    size_t slice_pitch;
};

// Where the work runs, for traces.
enum weir_note_work {
    WEIR_NOTE_KERNEL = 0,
    WEIR_NOTE_TO_DEVICE = 1, // copies
    WEIR_NOTE_TO_HOST = 2,
    WEIR_NOTE_ON_DEVICE = 3,
    WEIR_NOTE_ON_HOST = 4,
};

struct weir_note_params {
    size_t struct_size;
    const char *name; // what does the work: "cublasSgemm"; kept for the process, each once
    const struct weir_note_range *ranges;
    size_t range_count;
    enum weir_note_work work;
    bool timed; // weir_queue_note_times() follows
};

// Says that work of the queue, which Weir did not submit, uses these bytes at this place of its order: that of
// a library that was given the native queue, or of another API that the program mirrors. Nothing is
// done, on any backend. Plugins see it as work: `check` examines its ranges, `trace` lists it.
//
//     const struct weir_note_range ranges[] = {{.buffer = a, .size = bytes, .access = WEIR_ACCESS_READ},
//                                              {.buffer = c, .size = bytes, .access = WEIR_ACCESS_WRITE}};
//     library_multiply(native.queue, ...);
//     weir_queue_note(queue, WEIR_PARAMS(weir_note, .name = "multiply", .ranges = ranges,
//                                        .range_count = 2), NULL);
//
// Stores the note's number for weir_queue_note_times() in `*out_note`, which may be NULL; 0 in a capture, of
// whose graph the note becomes a node.
//
// Errors: WEIR_ERROR_INVALID for a range outside its buffer, slices or rows that run into each other, and
// buffers of another device; the queue's first failure.
WEIR_CALL weir_status weir_queue_note_at(weir_queue *queue, const struct weir_note_params *params,
                                         uint64_t *out_note, const char *file, int line);
#define weir_queue_note(queue, ...) weir_queue_note_at(queue, __VA_ARGS__, __FILE__, __LINE__)

// Says when the work of a note with `timed` ran, in nanoseconds of CLOCK_MONOTONIC, once it is known. In any
// order, by any thread, until the queue is destroyed. What is not said is not known in traces.
//
// Errors: WEIR_ERROR_INVALID for 0, and for a begin after the end.
WEIR_CALL weir_status weir_queue_note_times(weir_queue *queue, uint64_t note, uint64_t begin_ns,
                                            uint64_t end_ns);

// Stores an event that names the current end of the queue, or a zeroed event on error. The event
// is complete when everything submitted to the queue before this call has finished.
//
// Errors: the queue's first failure.
WEIR_CALL weir_status weir_queue_record_at(weir_queue *queue, struct weir_event *out_event,
                                           const char *file, int line);
#define weir_queue_record(...) weir_queue_record_at(__VA_ARGS__, __FILE__, __LINE__)

// Makes later work of the queue wait for the event, on the device; the host does not wait. The
// event may belong to any queue of any device of the same runtime.
//
// Errors: WEIR_ERROR_INVALID for a zeroed event; the queue's first failure; the event's failure, with which
// the queue then fails too.
WEIR_CALL weir_status weir_queue_wait_at(weir_queue *queue, struct weir_event event,
                                         const char *file, int line);
#define weir_queue_wait(queue, ...) weir_queue_wait_at(queue, __VA_ARGS__, __FILE__, __LINE__)

// Hands all submitted work to the device (clFlush()). Weir does this itself before a queue or
// the host waits for the work, so only work that nothing waits for needs this call.
//
// Errors: WEIR_ERROR_DEVICE, _DEVICE_LOST.
WEIR_CALL weir_status weir_queue_flush_at(weir_queue *queue, const char *file, int line);
#define weir_queue_flush(...) weir_queue_flush_at(__VA_ARGS__, __FILE__, __LINE__)

// Waits on the host for everything submitted so far.
//
// Errors: as weir_event_sync(); WEIR_ERROR_INVALID in a host call and in a capture.
WEIR_CALL weir_status weir_queue_sync_at(weir_queue *queue, uint64_t timeout_ns, const char *file,
                                         int line);
#define weir_queue_sync(queue, timeout_ns) weir_queue_sync_at(queue, timeout_ns, __FILE__, __LINE__)

// Waits for the rest of a failed queue's work and clears the failure; events recorded before
// keep reporting it. Does nothing if the queue has not failed.
//
// If the queue was to wait for other work since the failure, the call waits, without a limit, for all work of
// the runtime's queues: the driver may not have ordered the queue after that work, and what was freed on the
// queue may be in use by it. Waits are events of weir_queue_wait(), also those of refused calls, launches of a
// graph before one on this queue, and work that the order of the legacy queue puts before an operation here.
//
// A collective whose abort has no effect is waited for until a second after its communicator's timeout; the
// device is lost then.
//
// Errors: WEIR_ERROR_DEVICE_LOST if the device was lost with the failure and must be reopened;
// WEIR_ERROR_INVALID in a host call and in a capture.
WEIR_CALL weir_status weir_queue_recover_at(weir_queue *queue, const char *file, int line);
#define weir_queue_recover(queue) weir_queue_recover_at(queue, __FILE__, __LINE__)

#endif
