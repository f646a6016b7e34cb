// One queue operation as it travels down a chain. All of them pass through one
// slot, `queue_submit`, so a plugin that cares about no kind in particular
// handles every kind, also those that are appended later.
#ifndef WEIR_MODULE_OPERATION_H
#define WEIR_MODULE_OPERATION_H

#include <weir/weir.h>

enum weir_operation_kind {
    WEIR_OPERATION_COPY = 1,
    WEIR_OPERATION_COPY_2D = 2,
    WEIR_OPERATION_FILL = 3,
    WEIR_OPERATION_LAUNCH = 4,
    WEIR_OPERATION_HOST_CALL = 5,
    WEIR_OPERATION_RECORD = 6,
    WEIR_OPERATION_WAIT = 7,
    // above: ABI 1
};

enum weir_operation_flags {
    // WAIT only: the queue is behind this event already. Plugins see it; the
    // last hop before the backend drops it.
    WEIR_OPERATION_IMPLIED = 1u << 0,
    // Made by the library, not by the user: a record behind a destroyed buffer.
    WEIR_OPERATION_INTERNAL = 1u << 1,
    // Nothing to do but to keep its place: a size of zero. The last hop drops it.
    WEIR_OPERATION_EMPTY = 1u << 2,
};

// Everything in it was validated: ranges lie in their buffers, arguments fit
// the signature, handles belong to one device. Valid during the call only.
struct weir_operation {
    enum weir_operation_kind kind;
    uint32_t flags;
    uint64_t sequence; // 1, 2, 3 … in the order of submission to its queue
    const char *file;  // the caller's; static storage
    int line;
    union {
        struct {
            weir_buffer *dst;
            weir_buffer *src;
            size_t dst_offset;
            size_t src_offset;
            size_t size;
        } copy;
        struct {
            struct weir_plane dst;
            struct weir_plane src;
            size_t width;
            size_t height;
        } copy_2d;
        struct {
            weir_buffer *dst;
            size_t dst_offset;
            size_t size;
            const void *pattern;
            size_t pattern_size;
        } fill;
        struct {
            weir_kernel *kernel;
            struct weir_extent grid;  // no zeros
            struct weir_extent block; // no zeros
            const struct weir_argument *arguments;
            size_t argument_count;
        } launch;
        struct {
            weir_host_function function;
            void *user;
        } host_call;
        // `producer` is the event's queue, alive during the call.
        struct {
            struct weir_event event;
            weir_queue *producer;
        } wait;
    } u;
};

#endif
