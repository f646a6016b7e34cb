// Creation and destruction of queues, the records of their end, and the library's own
// queries.
#include "core/queue/queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/thread.h"
#include "base/wait.h"
#include "core/queue/host_call.h"
#include "core/queue/operation.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/locks.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

static weir_status check_params(weir_device *device, const struct weir_queue_params *params)
{
    const struct weir_limits *limits = &device->limits;
    const char *label = params->label;

    int32_t low = limits->priority_lowest;
    int32_t high = limits->priority_highest;
    int32_t least = low < high ? low : high;
    int32_t most = low < high ? high : low;
    if (params->priority < least || params->priority > most)
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_INVALID, "0 is always valid",
                             "weir_queue_create: priority %" PRId32 " is outside %" PRId32
                             " … %" PRId32,
                             params->priority, least, most);
    if (params->timing && limits->timing_history == 0)
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_UNSUPPORTED, "create it without timing",
                             "weir_queue_create: this device cannot time operations");
    return WEIR_OK;
}

// The device's list of queues. The destruction of a buffer must see all of them: a
// queue that is being destroyed also stays on the list until none of its work runs any
// more.
static void enlist(weir_queue *queue)
{
    weir_device *device = queue->member.device;
    weir_lock_take(&device->lock);
    queue->next = device->queues;
    if (queue->next)
        queue->next->previous = queue;
    device->queues = queue;
    weir_lock_release(&device->lock);
    atomic_fetch_add(&device->queue_count, 1);
}

static void delist(weir_queue *queue)
{
    weir_device *device = queue->member.device;
    weir_lock_take(&device->lock);
    if (queue->previous)
        queue->previous->next = queue->next;
    else
        device->queues = queue->next;
    if (queue->next)
        queue->next->previous = queue->previous;
    weir_lock_release(&device->lock);
}

weir_status weir__queue_open(weir_device *device, const char *label, struct weir_queue_setup *setup,
                             weir_queue **out_queue)
{
    weir_status status;
    weir__device_reap(device);
    weir_queue *queue = weir__member_allocate(device, &weir__queue_class, sizeof *queue, label);
    if (!queue)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a queue");
    queue->first = device->first;
    queue->timing = setup->timing;
    queue->foreign = setup->native != NULL;
    queue->wrapped = queue->foreign;
    weir_lock_init(&queue->submit_lock, &weir__locks[WEIR__LOCK_SUBMIT]);
    weir__delivery_init(&queue->delivery, device->chain);
    if (!weir__completion_init(&queue->completion) || !weir__registry_reserve(queue)) {
        status = weir__fail(WEIR_ERROR_OUT_OF_MEMORY, "destroy queues that are no longer used",
                            "no room for a queue: 65,536 of them can exist at once");
        goto fail;
    }

    setup->times = device->chain->times;
    sigset_t before;
    weir_thread_hold_signals(&before);
    status =
        weir__chain_queue_create(device->chain, device, queue, setup, queue->member.object.data);
    weir_thread_release_signals(&before);
    if (status < 0) {
        weir__registry_cancel(queue);
        goto fail;
    }
    enlist(queue);
    weir__registry_publish(queue);
    weir__member_enlist(&queue->member);
    *out_queue = queue;
    return WEIR_OK;

fail:
    weir__error_place(status, label, NULL, 0);
    weir__delivery_finish(&queue->delivery);
    weir__completion_finish(&queue->completion);
    weir_lock_finish(&queue->submit_lock);
    weir__member_free(&queue->member);
    return status;
}

weir_status weir_queue_create_at(weir_device *device, const struct weir_queue_params *params,
                                 weir_queue **out_queue, const char *file, int line)
{
    struct weir_queue_params known;
    static const struct weir_queue_params defaults = {.struct_size = sizeof defaults};
    WEIR_REQUIRE_AT(file, line, NULL, out_queue);
    *out_queue = NULL;
    WEIR_ENTER_AT(file, line, device);
    WEIR_REQUIRE_AT(file, line, NULL, device);
    params = params ? params : &defaults;
    WEIR_READ_PARAMS(file, line, weir_queue_params, params, &known);
    weir_status status = check_params(device, params);
    if (status < 0)
        return weir__placed(status, file, line);
    struct weir_queue_setup setup = {.struct_size = sizeof setup,
                                     .priority = params->priority,
                                     .timing = params->timing};
    status = weir__queue_open(device, params->label, &setup, out_queue);
    if (status == WEIR_OK)
        weir__member_place(&(*out_queue)->member, file, line);
    return weir__placed(status, file, line);
}

// The caller may destroy the native queue as soon as its work is done. So the last
// record is submitted now, and after that the native queue is never used.
static void leave_native(weir_queue *queue)
{
    struct weir_event end;
    // A driver that refuses a record can still be waited for.
    if (weir__queue_is_busy(queue) && !weir__queue_record_end(queue, &end) &&
        !weir__queue_is_called_back(queue)) {
        struct weir_error saved = *weir_last_error();
        weir__queue_finish(queue);
        weir__error_set(&saved);
    }
    atomic_store(&queue->wrapped, false);
    weir__chain_queue_leave(queue->member.device->chain, queue);
}

void weir_queue_destroy_at(weir_queue **queue, const char *file, int line)
{
    if (!queue || !*queue || !WEIR_MAY_END(*queue, file, line))
        return;
    weir_queue *gone = *queue;
    *queue = NULL;
    if (gone->owner != WEIR__OWNED_BY_USER) {
        weir__queue_refuse_destroy(gone);
        return;
    }
    weir__debug_end(gone, file, line);
    if (gone->foreign)
        leave_native(gone);
    weir__queue_retire(gone);
}

static void abandon_capture(weir_queue *queue)
{
    struct weir__capture *capture = atomic_load_explicit(&queue->capture, memory_order_relaxed);
    if (capture)
        capture->ops->abandon(queue);
}

void weir__queue_retire(weir_queue *queue)
{
    abandon_capture(queue);
    weir__member_retire(&queue->member);
}

void weir__queue_retire_later(weir_queue *queue)
{
    abandon_capture(queue);
    weir__member_retire_later(&queue->member);
}

// All work has finished. Without the queue no plugin learns of a call about one of its events, so
// they are told before it goes.
static void note_end(weir_queue *queue)
{
    const struct weir_event last = {queue->member.object.id, atomic_load(&queue->seen)};
    const struct weir__host_caller library = {.flags = WEIR_HOST_NOTE_INTERNAL};
    if (last.sequence > 0 && weir__takes_notes(queue->member.device))
        weir__host_note_complete(queue, last, WEIR_OK, &library);
}

// The failures stay available, and the last reference finalizes the queue.
static void finalize_member(struct weir__member *member)
{
    weir_queue *queue = (weir_queue *)(void *)member;
    weir__completion_keep_failures(queue);
    note_end(queue);
    weir__registry_unpin(queue);
}

const struct weir__class weir__queue_class = {.name = "queue", .finalize = finalize_member};

void weir__queue_finalize(weir_queue *queue)
{
    weir_device *device = queue->member.device;

    delist(queue);
    // The backend's part is destroyed first, so the worker must no longer be inside the
    // backend.
    weir__delivery_settle(&queue->delivery, WEIR_FOREVER);
    weir__chain_queue_destroy(device->chain, queue);
    weir__delivery_finish(&queue->delivery);
    weir__completion_finish(&queue->completion);
    weir__release(queue->history);
    weir_lock_finish(&queue->submit_lock);
    weir__member_free(&queue->member);
    // Last: closing the device waits for it.
    atomic_fetch_sub(&device->queue_count, 1);
}

const char *weir_queue_label(const weir_queue *queue)
{
    return WEIR_IS_ALIVE(queue) ? queue->member.object.label : "";
}

weir_device *weir_queue_device(const weir_queue *queue)
{
    return WEIR_IS_ALIVE(queue) ? queue->member.device : NULL;
}

weir_status weir__queue_fail(weir_queue *queue, const struct weir_operation *operation,
                             weir_status status)
{
    const struct weir_error detail = weir__error_of(status);
    struct weir_error cause = detail;
    cause.file = operation->file;
    cause.line = operation->line;
    snprintf(cause.object, sizeof cause.object, "%s", queue->member.object.label);
    snprintf(cause.message, sizeof cause.message,
             "operation %" PRIu64 " of queue '%s', a %s, failed: %.560s", operation->sequence,
             weir__label_or_none(cause.object), weir__operation_name(operation->kind),
             detail.message);
    weir__completion_fail(queue, operation->sequence, &cause);
    weir__error_set(&cause);
    weir__tell();
    return cause.status;
}

weir_status weir__queue_refuse_callback(const weir_queue *queue, const char *file, int line)
{
    return weir__fail_at(file, line, queue->member.object.label, WEIR_ERROR_INVALID,
                         "submit it after weir_queue_native()", "a native call may not call Weir");
}

weir_status weir__queue_wait_locked(weir_queue *queue, struct weir_event event,
                                    weir_queue *producer, uint32_t flags, const char *file,
                                    int line)
{
    const struct weir__wait wait = {.own = queue->sequence + 1,
                                    .event = event,
                                    .no_record = flags & WEIR_OPERATION_RELAUNCH};
    bool implied = false;
    weir_status status = weir__completion_wait(queue, &wait, producer, &implied);
    if (status < 0)
        return status;
    struct weir_operation operation;
    weir__operation_begin(&operation, WEIR_OPERATION_WAIT,
                          flags | (implied ? WEIR_OPERATION_IMPLIED : 0u), file, line);
    operation.u.wait.event = event;
    operation.u.wait.producer = producer;
    return weir__queue_submit_locked(queue, &operation);
}

bool weir__queue_record_end_locked(weir_queue *queue, struct weir_event *out_event)
{
    *out_event = (struct weir_event){0};
    if (queue->foreign && !queue->wrapped) { // the native queue may be destroyed
        *out_event = (struct weir_event){queue->member.object.id, queue->last_record};
        return true;
    }
    if (queue->wrapped || queue->last_record != queue->sequence) {
        struct weir_operation operation;
        weir__operation_begin(&operation, WEIR_OPERATION_RECORD, WEIR_OPERATION_INTERNAL, __FILE__,
                              __LINE__);
        if (weir__queue_submit_locked(queue, &operation) < 0)
            return false;
        queue->last_record = operation.sequence;
    }
    *out_event = (struct weir_event){queue->member.object.id, queue->sequence};
    return true;
}

bool weir__queue_record_end(weir_queue *queue, struct weir_event *out_event)
{
    bool recorded = true;
    struct weir_error saved = *weir_last_error();
    *out_event = (struct weir_event){0};

    // In a native call the thread holds a submit lock, and takes no other: two such threads
    // could wait for each other. The caller tries again later.
    if (weir__in_native_call())
        return false;
    weir_lock_take(&queue->submit_lock);
    if (queue->wrapped || weir__queue_is_busy(queue))
        recorded = weir__queue_record_end_locked(queue, out_event);
    weir_lock_release(&queue->submit_lock);
    // A lost device runs nothing any more, and accepts no record.
    if (!recorded && weir_last_error()->status == WEIR_ERROR_DEVICE_LOST)
        recorded = true;
    weir__error_set(&saved);
    return recorded;
}

weir_status weir__queue_finish(weir_queue *queue)
{
    uint64_t sequence = atomic_load(&queue->seen);
    const struct weir_link *first = queue->first;
    weir_status status = WEIR_OK;
    const int cancel = weir_cancel_disable();
    if (!queue->foreign || atomic_load(&queue->wrapped))
        status = first->ops->queue_finish(first, queue);
    else if (queue->last_record)
        status = first->ops->event_wait(first, queue, queue->last_record, WEIR_FOREVER);
    weir_cancel_restore(cancel);
    if (status == WEIR_OK)
        weir__completion_complete(queue, sequence);
    return status;
}

// It is not known which operation failed in the driver, only that it comes after the
// completed ones. A driver that knows more says so in its own message.
static void fail_somewhere(weir_queue *queue, weir_status status)
{
    const struct weir_error detail = weir__error_of(status);
    const uint64_t first = atomic_load(&queue->completion.completed) + 1;
    struct weir_error cause = detail;
    snprintf(cause.object, sizeof cause.object, "%s", queue->member.object.label);
    snprintf(cause.message, sizeof cause.message,
             "queue '%s' failed at operation %" PRIu64 " or after it: %.560s",
             weir__label_or_none(cause.object), first, detail.message);
    weir__completion_fail(queue, first, &cause);
    weir__error_set(&cause);
    weir__tell();
}

// Books the chain's answer and returns the record's status.
static weir_status book(weir_queue *queue, uint64_t sequence, weir_status answer)
{
    if (answer > 0)
        return answer;
    if (answer == WEIR_OK)
        weir__completion_complete(queue, sequence);
    else
        fail_somewhere(queue, answer);
    return weir__completion_status(queue, sequence);
}

weir_status weir__queue_query(weir_queue *queue, uint64_t sequence)
{
    const struct weir_link *first = queue->first;
    if (weir__queue_is_past(queue, sequence))
        return weir__completion_status(queue, sequence);
    return book(queue, sequence, first->ops->event_query(first, queue, sequence));
}

weir_status weir__queue_await(weir_queue *queue, uint64_t sequence, uint64_t timeout_ns)
{
    const struct weir_link *first = queue->first;
    if (weir__queue_is_past(queue, sequence))
        return weir__completion_status(queue, sequence);
    const int cancel = weir_cancel_disable();
    const weir_status answer = first->ops->event_wait(first, queue, sequence, timeout_ns);
    weir_cancel_restore(cancel);
    const weir_status status = book(queue, sequence, answer);
    return status == WEIR_NOT_READY ? WEIR_TIMEOUT : status;
}

bool weir__event_is_complete(struct weir_event event)
{
    weir_queue *queue = weir__registry_pin(event.queue);
    if (!queue)
        return true;
    const bool complete = weir__queue_query(queue, event.sequence) != WEIR_NOT_READY;
    weir__registry_unpin(queue);
    return complete;
}

weir_status weir__queue_refuse_capturing(const weir_queue *queue, const char *file, int line,
                                         const char *why, const char *remedy)
{
    const char *label = queue->member.object.label;
    return weir__fail_at(file, line, label, WEIR_ERROR_INVALID, remedy,
                         "queue '%s' captures a graph, and %s", weir__label_or_none(label), why);
}
