// Host calls that run after a failure too: weir_queue_host_call_always(). One is a HOST_CALL with the
// flag ALWAYS, so plugins treat it as any other, and delivery runs it in any case.
#ifndef WEIR_CORE_QUEUE_HOST_CALL_H
#define WEIR_CORE_QUEUE_HOST_CALL_H

#include <weir/module/host_note.h>
#include <weir/module/module.h>

#include "core/module/chain.h"
#include "core/object/device.h"

static inline bool weir__is_always(const struct weir_operation *operation)
{
    return operation->flags & WEIR_OPERATION_ALWAYS;
}

// What the functions that run on this thread from now on are told.
void weir__always_tell(weir_status status);

// Delivery of the caller's own work on a native queue.

// Submits a NATIVE operation to the backend, with a wrapper around the caller's
// function that keeps it from waiting, and from calling back while the queue's lock
// is held.
weir_status weir__native_submit(const struct weir_link *backend, weir_queue *queue,
                                const struct weir_operation *operation);

// Notes to plugins of what the host does (<weir/module/host_note.h>). Without a link that takes
// notes each costs a test.

// The call that a note is about.
struct weir__host_caller {
    const char *file;
    int line;
    uint32_t flags; // enum weir_host_note_flags
};

static inline bool weir__takes_notes(const weir_device *device)
{
    return device->chain->host_notes;
}

weir_status weir__host_note_access(enum weir_host_note_kind kind, weir_buffer *buffer,
                                   size_t offset, size_t size, weir_access access,
                                   const struct weir__host_caller *caller);

// `status` is what the call about the event returns. The thread's error stays as it is.
void weir__host_note_complete(weir_queue *producer, struct weir_event event, weir_status status,
                              const struct weir__host_caller *caller);

// COLLECTIVE, TIMES: operation `sequence` ran in that time of weir_clock_now_ns(). The thread's error stays as
// it is.
void weir__host_note_ran(enum weir_host_note_kind kind, weir_queue *queue, uint64_t sequence,
                         uint64_t begin_ns, uint64_t end_ns,
                         const struct weir__host_caller *caller);

#endif
