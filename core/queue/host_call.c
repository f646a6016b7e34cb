// What the host does for a queue: see the header.
#include "core/queue/host_call.h"

#include "core/object/buffer.h"
#include "core/queue/node_call.h"
#include "core/queue/operation.h"
#include "core/queue/queue.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

// A plugin may put its own function before the one here, which gets the status from
// its thread: the queue's worker.

struct always {
    weir_always_function function;
    void *user;
};

static _Thread_local weir_status told;

void weir__always_tell(weir_status status)
{
    told = status;
}

static weir_status call(void *user)
{
    const struct always always = *(const struct always *)user;
    weir__release(user);
    always.function(always.user, told);
    return WEIR_OK;
}

weir_status weir_queue_host_call_always_at(weir_queue *queue, weir_always_function function,
                                           void *user, const char *file, int line)
{
    WEIR_ENTER_AT(file, line, queue);
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    WEIR_REQUIRE_AT(file, line, queue->member.object.label, function);
    struct always *always = weir__allocate(sizeof *always);
    if (!always)
        return weir__fail_at(file, line, queue->member.object.label, WEIR_ERROR_OUT_OF_MEMORY, NULL,
                             "no memory for a host call");
    *always = (struct always){function, user};
    struct weir_operation operation;
    weir__operation_begin(&operation, WEIR_OPERATION_HOST_CALL, WEIR_OPERATION_ALWAYS, file, line);
    operation.u.host_call.function = call;
    operation.u.host_call.user = always;
    const weir_status status = weir__queue_submit(queue, &operation);
    if (status < 0)
        weir__release(always);
    return status;
}

// `user` is the operation as it was submitted.
static weir_status call_native(const struct weir_native_queue *native, void *user)
{
    const struct weir_operation *operation = user;
    // The detail of an earlier failure in this thread must not be mistaken for
    // this one's.
    weir_error_set(NULL);
    const struct weir__call_scope outer = weir__enter_native_call();
    weir_status status = operation->u.native.function(native, operation->u.native.user);
    weir__leave_call(outer);
    return weir__function_status(status);
}

weir_status weir__native_submit(const struct weir_link *backend, weir_queue *queue,
                                const struct weir_operation *operation)
{
    struct weir_operation guarded;
    weir__operation_take(&guarded, operation);
    const struct weir_error before = *weir_last_error();
    guarded.u.native.function = call_native;
    guarded.u.native.user = (void *)(uintptr_t)operation; // read only, by call_native()
    atomic_store_explicit(&queue->in_native, true, memory_order_relaxed);
    weir_status status = backend->ops->queue_submit(backend, queue, &guarded);
    atomic_store_explicit(&queue->in_native, false, memory_order_relaxed);
    // On success the thread's detail is not changed.
    if (status >= 0)
        weir_error_set(&before);
    return status;
}

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

void weir__host_note_ran(enum weir_host_note_kind kind, weir_queue *queue, uint64_t sequence,
                         uint64_t begin_ns, uint64_t end_ns, const struct weir__host_caller *caller)
{
    const struct weir_link *first = queue->first;
    const struct weir_error saved = *weir_last_error();
    struct weir_host_note note = note_from(kind, caller);
    note.u.ran.queue = queue;
    note.u.ran.sequence = sequence;
    note.u.ran.begin_ns = begin_ns;
    note.u.ran.end_ns = end_ns;
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
