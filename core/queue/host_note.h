// Notes to plugins of what the host does (<weir/module/host_note.h>). Without a link that takes
// notes each costs a test.
#ifndef WEIR_CORE_QUEUE_HOST_NOTE_H
#define WEIR_CORE_QUEUE_HOST_NOTE_H

#include <weir/module/host_note.h>

#include "core/module/chain.h"
#include "core/object/device.h"

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

// The library carried out `operation`, a collective, in that time of weir_clock_now_ns(). The thread's
// error stays as it is.
void weir__host_note_collective(weir_queue *queue, const struct weir_operation *operation,
                                uint64_t begin_ns, uint64_t end_ns);

#endif
