// Queues: exactly one native stream or command queue each, in order and
// non-blocking. Concurrency means more queues. No queue orders itself against
// another behind the caller's back.
//
// Every operation is asynchronous and remembers its caller's file:line; the
// macros add it, and the functions with `_at` are what they call. Those that take
// structures or arrays are variadic, so that a compound literal can be passed.
//
// A queue fails when an operation of it, or one it waits for, fails: a host
// call that returns an error, an error at submit, a fault of the driver.
// Everything behind the failure, in the queue and in queues that wait on it,
// reports the first cause. New submissions are then refused with that cause
// until weir_queue_recover(). Whether work that was already submitted still ran
// is unspecified, and so are its outputs. A refused argument
// (WEIR_ERROR_INVALID) submits nothing and fails nothing.
//
// Threads: several threads may submit to one queue; the order is theirs.
#ifndef WEIR_QUEUE_H
#define WEIR_QUEUE_H

#include <weir/buffer.h>
#include <weir/common.h>
#include <weir/event.h>
#include <weir/launch.h>
#include <weir/program.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_queue_params {
    size_t struct_size;
    const char *label;
    int32_t priority; // between limits.priority_lowest and _highest; 0: normal
    bool timing;      // records can be asked for their time
};

// Ownership: the caller's, until weir_queue_destroy(). Outlived by `device`.
// Errors: WEIR_ERROR_INVALID; WEIR_ERROR_OUT_OF_MEMORY; WEIR_ERROR_DEVICE.
WEIR_API weir_status weir_queue_create(weir_device *device, const struct weir_queue_params *params,
                                       weir_queue **out_queue);

// Destroys the queue and sets `*queue` to NULL. Work that was submitted still
// runs to its end; its events stay valid. Never waits for the device.
WEIR_API void weir_queue_destroy(weir_queue **queue);

// Its label, "" without one; its device, NULL for NULL.
//
// Ownership: the queue's.
WEIR_API const char *weir_queue_label(const weir_queue *queue);
WEIR_API weir_device *weir_queue_device(const weir_queue *queue);

// Copies `size` bytes. Either buffer may be on the device or the host. One of the two may
// belong to another device of the runtime, where weir_device_can_peer() says so.
//
// Errors: WEIR_ERROR_INVALID for a range outside its buffer, overlapping ranges
// of one buffer, or buffers of another device that cannot be reached; the queue's first
// failure. A size of zero orders but does nothing.
WEIR_API weir_status weir_queue_copy_at(weir_queue *queue, weir_buffer *dst, size_t dst_offset,
                                        weir_buffer *src, size_t src_offset, size_t size,
                                        const char *file, int line);
#define weir_queue_copy(queue, dst, dst_offset, src, src_offset, size) \
    weir_queue_copy_at(queue, dst, dst_offset, src, src_offset, size, __FILE__, __LINE__)

// One side of a 2-D copy: row r starts at offset + r * pitch.
struct weir_plane {
    weir_buffer *buffer;
    size_t offset;
    size_t pitch; // bytes, >= the width of the copy
};

// Copies `height` rows of `width` bytes.
//
// Errors: as weir_queue_copy(); WEIR_ERROR_INVALID for a pitch below the width.
WEIR_API weir_status weir_queue_copy_2d_at(weir_queue *queue, struct weir_plane dst,
                                           struct weir_plane src, size_t width, size_t height,
                                           const char *file, int line);
#define weir_queue_copy_2d(queue, ...) weir_queue_copy_2d_at(queue, __VA_ARGS__, __FILE__, __LINE__)

// Fills `size` bytes with a pattern of 1, 2, 4, 8 or 16 bytes, which is read
// before the call returns. `dst_offset` and `size` are multiples of its size.
//
// Errors: as weir_queue_copy().
WEIR_API weir_status weir_queue_fill_at(weir_queue *queue, weir_buffer *dst, size_t dst_offset,
                                        size_t size, const void *pattern, size_t pattern_size,
                                        const char *file, int line);
#define weir_queue_fill(queue, ...) weir_queue_fill_at(queue, __VA_ARGS__, __FILE__, __LINE__)

// Launches `grid` blocks of `block` work-items; a grid of no blocks orders but
// does nothing. Arguments (<weir/launch.h>) are read before the call returns, and
// checked against the kernel's signature in count, kind, type and access.
//
//     weir_queue_launch(queue, scale, weir_dim(n / 256, 1, 1), weir_dim(256, 1, 1),
//                       weir_in(src, 0, bytes), weir_out(dst, 0, bytes), 2.0f);
//
// Both macros call weir_queue_launch_at(), which <weir/launch.h> declares. The
// extents of weir_queue_launch() come from weir_dim() or a variable.
//
// Errors: WEIR_ERROR_INVALID, naming the parameter, what it is and what it got;
// the queue's first failure.
#define weir_queue_launch_array(queue, ...) \
    weir_queue_launch_at(queue, __VA_ARGS__, __FILE__, __LINE__)

// Runs `function(user)` on a thread of the library's when all earlier work of
// the queue has finished; later work of the queue waits for it. The function may
// submit work, to its own queue too (behind what is there), and may not wait. A
// slow one delays no other queue. A negative return fails the queue. `user` must
// live until the function has returned.
//
// Errors: WEIR_ERROR_INVALID in a capture; WEIR_ERROR_OUT_OF_MEMORY, or
// WEIR_ERROR_SYSTEM without a thread; the queue's first failure. Then the function
// never runs.
typedef weir_status (*weir_host_function)(void *user);
WEIR_API weir_status weir_queue_host_call_at(weir_queue *queue, weir_host_function function,
                                             void *user, const char *file, int line);
#define weir_queue_host_call(queue, function, user) \
    weir_queue_host_call_at(queue, function, user, __FILE__, __LINE__)

// Stores the event that names this point of the queue, or a zeroed one.
//
// Errors: the queue's first failure.
WEIR_API weir_status weir_queue_record_at(weir_queue *queue, struct weir_event *out_event,
                                          const char *file, int line);
#define weir_queue_record(queue, out_event) \
    weir_queue_record_at(queue, out_event, __FILE__, __LINE__)

// Later work of the queue waits, on the device, for the event; the host does
// not. The event may be of another queue of any device of the same runtime.
//
// Errors: WEIR_ERROR_INVALID for a zeroed event; the event's failure, which then is the queue's.
WEIR_API weir_status weir_queue_wait_at(weir_queue *queue, struct weir_event event,
                                        const char *file, int line);
#define weir_queue_wait(queue, ...) weir_queue_wait_at(queue, __VA_ARGS__, __FILE__, __LINE__)

// Hands what was submitted to the device. Weir does so itself before anything
// waits for it; this is for work whose end nobody waits for.
//
// Errors: WEIR_ERROR_DEVICE, _DEVICE_LOST.
WEIR_API weir_status weir_queue_flush(weir_queue *queue);

// Waits on the host for everything submitted so far.
//
// Errors: as weir_event_sync(); WEIR_ERROR_INVALID in a host call and in a capture.
WEIR_API weir_status weir_queue_sync_at(weir_queue *queue, uint64_t timeout_ns, const char *file,
                                        int line);
#define weir_queue_sync(queue, timeout_ns) weir_queue_sync_at(queue, timeout_ns, __FILE__, __LINE__)

// Waits for the rest of a failed queue's work and clears the failure; events
// recorded before keep reporting it. Does nothing to a healthy queue.
//
// Errors: WEIR_ERROR_DEVICE_LOST where the failure took the device with it;
// WEIR_ERROR_INVALID in a host call and in a capture.
WEIR_API weir_status weir_queue_recover(weir_queue *queue);

#ifdef __cplusplus
}
#endif

#endif
