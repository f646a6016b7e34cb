#include "core/queue/host_note.h"

#include "core/object/buffer.h"
#include "core/queue/queue.h"
#include "core/support/error.h"
#include "core/support/file_name.h"

static struct weir_host_note note_from(enum weir_host_note_kind kind,
                                       const struct weir__host_caller *caller)
{
    return (struct weir_host_note){
        .struct_size = sizeof(struct weir_host_note),
        .kind = kind,
        .flags = caller->flags,
        .line = caller->line,
        .file = weir__file_name(caller->file),
    };
}

weir_status weir__host_note_access(enum weir_host_note_kind kind, weir_buffer *buffer,
                                   size_t offset, size_t size, weir_access access,
                                   const struct weir__host_caller *caller)
{
    const struct weir_link *first = buffer->member.device->first;
    struct weir_host_note note = note_from(kind, caller);
    note.u.access.buffer = buffer;
    note.u.access.offset = offset;
    note.u.access.size = size;
    note.u.access.access = access;
    return first->ops->host_note(first, &note);
}

void weir__host_note_collective(weir_queue *queue, const struct weir_operation *operation,
                                uint64_t begin_ns, uint64_t end_ns)
{
    const struct weir_link *first = queue->first;
    const struct weir_error saved = *weir_last_error();
    struct weir_host_note note =
        note_from(WEIR_HOST_NOTE_COLLECTIVE,
                  &(struct weir__host_caller){operation->file, operation->line,
                                              WEIR_HOST_NOTE_INTERNAL});
    note.u.collective.queue = queue;
    note.u.collective.sequence = operation->sequence;
    note.u.collective.begin_ns = begin_ns;
    note.u.collective.end_ns = end_ns;
    (void)first->ops->host_note(first, &note);
    weir__error_set(&saved);
}

void weir__host_note_complete(weir_queue *producer, struct weir_event event, weir_status status,
                              const struct weir__host_caller *caller)
{
    const struct weir_link *first = producer->first;
    const struct weir_error saved = *weir_last_error();
    struct weir_host_note note = note_from(WEIR_HOST_NOTE_COMPLETE, caller);
    note.u.complete.event = event;
    note.u.complete.producer = producer;
    note.u.complete.status = status;
    (void)first->ops->host_note(first, &note);
    weir__error_set(&saved);
}
