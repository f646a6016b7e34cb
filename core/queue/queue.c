// Queues: validation, and the one path on which every operation goes down the
// chain. A refused argument leaves before the submit lock is taken; behind it
// only a number is assigned and the chain is called.
#include "core/queue/queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/graph/capture.h"
#include "core/queue/operation.h"
#include "core/queue/registry.h"
#include "core/support/error.h"
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

// The device's list of queues, which who destroys a buffer must see whole: also a
// queue that is being destroyed is on it until nothing of it runs any more.
static void enlist(weir_queue *queue)
{
    weir_device *device = queue->member.device;
    pthread_mutex_lock(&device->lock);
    queue->next = device->queues;
    if (queue->next)
        queue->next->previous = queue;
    device->queues = queue;
    pthread_mutex_unlock(&device->lock);
    atomic_fetch_add(&device->queue_count, 1);
}

static void delist(weir_queue *queue)
{
    weir_device *device = queue->member.device;
    pthread_mutex_lock(&device->lock);
    if (queue->previous)
        queue->previous->next = queue->next;
    else
        device->queues = queue->next;
    if (queue->next)
        queue->next->previous = queue->previous;
    pthread_mutex_unlock(&device->lock);
}

weir_status weir__queue_open(weir_device *device, const char *label, struct weir_queue_setup *setup,
                             weir_queue **out_queue)
{
    weir_status status;
    weir__device_reap(device);
    weir_queue *queue = weir__member_allocate(device, WEIR__QUEUE, sizeof *queue, label);
    if (!queue)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a queue");
    queue->first = device->first;
    queue->timing = setup->timing;
    queue->foreign = setup->native != NULL;
    queue->wrapped = queue->foreign;
    weir_biased_lock_init(&queue->submit_lock);
    if (!weir__progress_init(&queue->progress) || !weir__registry_reserve(queue)) {
        status = weir__fail(WEIR_ERROR_OUT_OF_MEMORY, "destroy queues that are no longer used",
                            "no room for a queue: 65,536 of them can exist at once");
        goto fail;
    }

    setup->times = device->chain->times;
    status =
        weir__chain_queue_create(device->chain, device, queue, setup, queue->member.object.data);
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
    weir__error_place(label, NULL, 0);
    weir__progress_finish(&queue->progress);
    weir_biased_lock_finish(&queue->submit_lock);
    weir__member_free(&queue->member);
    return status;
}

weir_status weir_queue_create(weir_device *device, const struct weir_queue_params *params,
                              weir_queue **out_queue)
{
    static const struct weir_queue_params defaults = {.struct_size = sizeof defaults};
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, out_queue);
    *out_queue = NULL;
    WEIR_REQUIRE(NULL, device);
    params = params ? params : &defaults;
    WEIR_REQUIRE_PARAMS(params);
    weir_status status = check_params(device, params);
    if (status < 0)
        return status;
    struct weir_queue_setup setup = {.priority = params->priority, .timing = params->timing};
    return weir__queue_open(device, params->label, &setup, out_queue);
}

// The caller may destroy the native queue as soon as its work is done. So what is under
// way gets its last record now, and after that the native queue is never touched.
static void leave_native(weir_queue *queue)
{
    struct weir_event end;
    const bool busy = atomic_load(&queue->seen) > atomic_load(&queue->progress.completed);
    // A driver that refuses a record can still be waited for.
    if (busy && !weir__queue_mark(queue, &end) && !weir__queue_is_called_back(queue)) {
        struct weir_error saved = *weir_last_error();
        weir__queue_finish(queue);
        weir__error_set(&saved);
    }
    atomic_store(&queue->wrapped, false);
    weir__chain_queue_leave(queue->member.device->chain, queue);
}

void weir_queue_destroy(weir_queue **queue)
{
    if (!queue || !*queue || atomic_load(&weir__forked))
        return;
    weir_queue *gone = *queue;
    *queue = NULL;
    if (gone->owner != WEIR__OWNED_BY_USER) {
        weir__migration_refuse_destroy(gone);
        return;
    }
    if (gone->foreign)
        leave_native(gone);
    weir__member_retire(&gone->member);
}

void weir__queue_finalize(weir_queue *queue)
{
    weir_device *device = queue->member.device;

    delist(queue);
    weir__chain_queue_destroy(device->chain, queue);
    weir__progress_finish(&queue->progress);
    weir_biased_lock_finish(&queue->submit_lock);
    weir__member_free(&queue->member);
    // Last: closing the device waits for it.
    atomic_fetch_sub(&device->queue_count, 1);
}

const char *weir_queue_label(const weir_queue *queue)
{
    return queue ? queue->member.object.label : "";
}

weir_device *weir_queue_device(const weir_queue *queue)
{
    return queue ? queue->member.device : NULL;
}

weir_status weir__queue_fail(weir_queue *queue, const struct weir_operation *operation,
                             weir_status status)
{
    // A module that fails without a detail must not be given an older one.
    struct weir_error cause = *weir_last_error();
    struct weir_error detail = cause.status == status ? cause : (struct weir_error){0};

    cause = detail;
    cause.status = status;
    cause.file = operation->file;
    cause.line = operation->line;
    snprintf(cause.object, sizeof cause.object, "%s", queue->member.object.label);
    snprintf(cause.message, sizeof cause.message,
             "operation %" PRIu64 " of queue '%s', a %s, failed: %.600s", operation->sequence,
             weir__label_shown(cause.object), weir__operation_name(operation->kind),
             detail.message[0] ? detail.message : weir_status_text(status));
    weir__progress_fail(queue, operation->sequence, &cause);
    return weir__error_set(&cause);
}

weir_status weir__queue_submit_locked(weir_queue *queue, struct weir_operation *operation)
{
    operation->sequence = ++queue->sequence;
    atomic_store_explicit(&queue->seen, operation->sequence, memory_order_release);
    weir_status status = queue->first->ops->queue_submit(queue->first, queue, operation);
    return status < 0 ? weir__queue_fail(queue, operation, status) : WEIR_OK;
}

weir_status weir__queue_refuse_callback(const weir_queue *queue)
{
    return weir__fail_at(NULL, 0, queue->member.object.label, WEIR_ERROR_INVALID,
                         "submit it behind weir_queue_native()", "a native call may not call Weir");
}

weir_status weir__queue_submit(weir_queue *queue, struct weir_operation *operation)
{
    weir_status status;
    if (weir__queue_is_called_back(queue))
        return weir__queue_refuse_callback(queue);
    weir__queue_enter(queue);
    if (!weir__is_capturing(queue) || !weir__capture_note(queue, operation, &status))
        status = atomic_load_explicit(&queue->progress.failed, memory_order_acquire)
                     ? weir__progress_refuse(queue)
                     : weir__queue_submit_locked(queue, operation);
    weir_biased_lock_release(&queue->submit_lock);
    return status;
}

static struct weir__asker asker_of(const weir_queue *queue, const char *file, int line)
{
    return (struct weir__asker){queue->member.device, queue->member.object.label, file, line,
                                !weir__is_capturing(queue)};
}

weir_status weir_queue_copy_at(weir_queue *queue, weir_buffer *dst, size_t dst_offset,
                               weir_buffer *src, size_t src_offset, size_t size, const char *file,
                               int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    struct weir_operation operation;
    const struct weir__asker asker = asker_of(queue, file, line);
    weir_status status =
        weir__operation_copy(&asker, dst, dst_offset, src, src_offset, size, &operation);
    return status < 0 ? status : weir__queue_submit(queue, &operation);
}

weir_status weir_queue_copy_2d_at(weir_queue *queue, struct weir_plane dst, struct weir_plane src,
                                  size_t width, size_t height, const char *file, int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    struct weir_operation operation;
    const struct weir__asker asker = asker_of(queue, file, line);
    weir_status status = weir__operation_copy_2d(&asker, &dst, &src, width, height, &operation);
    return status < 0 ? status : weir__queue_submit(queue, &operation);
}

weir_status weir_queue_fill_at(weir_queue *queue, weir_buffer *dst, size_t dst_offset, size_t size,
                               const void *pattern, size_t pattern_size, const char *file, int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue), pattern);
    struct weir_operation operation;
    const struct weir__asker asker = asker_of(queue, file, line);
    weir_status status =
        weir__operation_fill(&asker, dst, dst_offset, size, pattern, pattern_size, &operation);
    return status < 0 ? status : weir__queue_submit(queue, &operation);
}

weir_status weir_queue_launch_at(weir_queue *queue, weir_kernel *kernel, struct weir_extent grid,
                                 struct weir_extent block, const struct weir_argument *arguments,
                                 size_t argument_count, const char *file, int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue), kernel);
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue), arguments || argument_count == 0);
    struct weir_operation operation;
    const struct weir__asker asker = asker_of(queue, file, line);
    weir_status status =
        weir__operation_launch(&asker, kernel, grid, block, arguments, argument_count, &operation);
    return status < 0 ? status : weir__queue_submit(queue, &operation);
}

weir_status weir_queue_host_call_at(weir_queue *queue, weir_host_function function, void *user,
                                    const char *file, int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    WEIR_REQUIRE_AT(file, line, queue->member.object.label, function);
    struct weir_operation operation = {
        .kind = WEIR_OPERATION_HOST_CALL,
        .file = file,
        .line = line,
        .u.host_call = {function, user},
    };
    return weir__queue_submit(queue, &operation);
}

weir_status weir_queue_record_at(weir_queue *queue, struct weir_event *out_event, const char *file,
                                 int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, out_event);
    *out_event = (struct weir_event){0};
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    struct weir_operation operation;
    weir__operation_begin(&operation, WEIR_OPERATION_RECORD, 0, file, line);

    if (weir__queue_is_called_back(queue))
        return weir__queue_refuse_callback(queue);
    weir__queue_enter(queue);
    weir_status status;
    if (weir__is_capturing(queue) && weir__capture_record(queue, out_event, &status)) {
        // noted
    } else if (atomic_load_explicit(&queue->progress.failed, memory_order_acquire)) {
        status = weir__progress_refuse(queue);
    } else {
        status = weir__queue_submit_locked(queue, &operation);
        if (status == WEIR_OK) {
            queue->last_record = operation.sequence;
            *out_event = (struct weir_event){queue->member.object.id, operation.sequence};
        }
    }
    weir_biased_lock_release(&queue->submit_lock);
    return status;
}

weir_status weir__queue_wait_locked(weir_queue *queue, struct weir_event event,
                                    weir_queue *producer, uint32_t flags, const char *file,
                                    int line)
{
    bool implied = false;
    weir_status status =
        weir__progress_wait(queue, queue->sequence + 1, event, producer, flags, &implied);
    if (status < 0)
        return status;
    struct weir_operation operation;
    weir__operation_begin(&operation, WEIR_OPERATION_WAIT,
                          flags | (implied ? WEIR_OPERATION_IMPLIED : 0u), file, line);
    operation.u.wait.event = event;
    operation.u.wait.producer = producer;
    return weir__queue_submit_locked(queue, &operation);
}

static weir_status refuse_outside_event(const weir_queue *queue, const char *file, int line)
{
    return weir__capture_refuse(queue, file, line,
                                "weir_queue_wait got an event that was recorded outside of it",
                                "wait on it before the capture, or before the graph's launch");
}

// The wait itself, with the producer kept alive by the caller.
static weir_status submit_wait(weir_queue *queue, struct weir_event event, weir_queue *producer,
                               const char *file, int line)
{
    weir_status status;
    if (weir__queue_is_called_back(queue))
        return weir__queue_refuse_callback(queue);
    weir__queue_enter(queue);
    if (weir__is_capturing(queue))
        status = refuse_outside_event(queue, file, line);
    else if (atomic_load_explicit(&queue->progress.failed, memory_order_acquire))
        status = weir__progress_refuse(queue);
    else
        status = weir__queue_wait_locked(queue, event, producer, 0, file, line);
    weir_biased_lock_release(&queue->submit_lock);
    return status;
}

// A wait on what has failed already is the failure of the waiting queue, unless
// that has one of its own.
static weir_status inherit(weir_queue *queue)
{
    struct weir_error cause = *weir_last_error();

    weir_biased_lock_take(&queue->submit_lock);
    if (!atomic_load(&queue->progress.failed))
        weir__progress_fail(queue, queue->sequence + 1, &cause);
    weir_status status = weir__progress_refuse(queue);
    weir_biased_lock_release(&queue->submit_lock);
    return status;
}

static weir_status check_producer(const weir_queue *queue, const weir_queue *producer,
                                  struct weir_event event, const char *file, int line)
{
    const char *label = queue->member.object.label;
    if (producer->member.device->runtime != queue->member.device->runtime)
        return weir__fail_at(file, line, label, WEIR_ERROR_INVALID,
                             "sync with it on the host instead",
                             "weir_queue_wait: the event belongs to another runtime");
    if (event.sequence > atomic_load(&producer->seen))
        return weir__fail_at(file, line, label, WEIR_ERROR_INVALID, NULL,
                             "weir_queue_wait: queue '%s' has no operation %" PRIu64,
                             producer->member.object.label, event.sequence);
    return WEIR_OK;
}

weir_status weir_queue_wait_at(weir_queue *queue, struct weir_event event, const char *file,
                               int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    if (event.queue == 0 || event.sequence == 0)
        return weir__fail_at(file, line, queue->member.object.label, WEIR_ERROR_INVALID,
                             "record first: weir_queue_record() returns the event",
                             "weir_queue_wait: the event is zero; it was never recorded");
    if (weir__is_captured(event))
        return weir__capture_wait(queue, event, file, line);
    if (weir__is_capturing(queue))
        return refuse_outside_event(queue, file, line);

    weir_queue *producer = weir__registry_pin(event.queue);
    if (!producer && !weir__registry_issued(event.queue))
        return weir__fail_at(file, line, queue->member.object.label, WEIR_ERROR_INVALID,
                             "record first: weir_queue_record() returns the event",
                             "weir_queue_wait: the event is of no queue that ever was");
    if (!producer) // gone, and so is everything to wait for
        return weir__progress_status_gone(event) < 0 ? inherit(queue) : WEIR_OK;
    weir_status status = check_producer(queue, producer, event, file, line);
    if (status == WEIR_OK)
        status = weir__progress_status(producer, event.sequence) < 0
                     ? inherit(queue)
                     : submit_wait(queue, event, producer, file, line);
    weir__registry_unpin(producer);
    return status;
}

// With the submit lock held. A launch that is known to be over is no cause any more,
// however it ended.
static weir_status wait_for_launch(weir_queue *queue, weir_queue *producer,
                                   struct weir_event launch, const char *file, int line)
{
    if (!producer || producer == queue ||
        atomic_load_explicit(&producer->progress.completed, memory_order_acquire) >=
            launch.sequence)
        return WEIR_OK;
    if (weir__progress_status(producer, launch.sequence) < 0) {
        const struct weir_error cause = *weir_last_error();
        weir__progress_fail(queue, queue->sequence + 1, &cause);
        return weir__progress_refuse(queue);
    }
    return weir__queue_wait_locked(queue, launch, producer,
                                   WEIR_OPERATION_RELAUNCH | WEIR_OPERATION_INTERNAL, file, line);
}

// Under one hold of the lock: what others submit must not come between the two, since a
// driver that keeps launches apart by itself orders the launch alone.
weir_status weir__queue_submit_launch(weir_queue *queue, struct weir_operation *operation,
                                      struct weir_event before)
{
    weir_queue *producer = before.queue ? weir__registry_pin(before.queue) : NULL;
    weir_status status;
    weir__queue_enter(queue);
    if (!weir__is_capturing(queue) || !weir__capture_note(queue, operation, &status)) {
        status = atomic_load_explicit(&queue->progress.failed, memory_order_acquire)
                     ? weir__progress_refuse(queue)
                     : wait_for_launch(queue, producer, before, operation->file, operation->line);
        if (status == WEIR_OK)
            status = weir__queue_submit_locked(queue, operation);
    }
    weir_biased_lock_release(&queue->submit_lock);
    if (producer)
        weir__registry_unpin(producer);
    return status;
}

weir_status weir_queue_flush(weir_queue *queue)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, queue);
    weir_status status = queue->first->ops->queue_flush(queue->first, queue);
    if (status < 0)
        weir__error_place(queue->member.object.label, NULL, 0);
    return status;
}

weir_status weir_queue_sync_at(weir_queue *queue, uint64_t timeout_ns, const char *file, int line)
{
    struct weir_event event = {0};
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    if (weir__in_host_call())
        return weir__fail_at(file, line, queue->member.object.label, WEIR_ERROR_INVALID,
                             "submit a wait to the queue instead",
                             "weir_queue_sync: a host call may submit work, and may not wait");
    if (weir__is_capturing(queue))
        return weir__capture_refuse(queue, file, line, "weir_queue_sync has nothing to wait for",
                                    "end or cancel the capture first");
    weir_status status = weir_queue_record_at(queue, &event, file, line);
    return status < 0 ? status : weir_event_sync(event, timeout_ns);
}

bool weir__queue_mark_locked(weir_queue *queue, struct weir_event *out_event)
{
    *out_event = (struct weir_event){0};
    if (queue->foreign && !queue->wrapped) { // the native queue may be gone
        *out_event = (struct weir_event){queue->member.object.id, queue->last_record};
        return true;
    }
    if (queue->wrapped || queue->last_record != queue->sequence) {
        struct weir_operation operation = {.kind = WEIR_OPERATION_RECORD,
                                           .flags = WEIR_OPERATION_INTERNAL,
                                           .file = __FILE__,
                                           .line = __LINE__};
        if (weir__queue_submit_locked(queue, &operation) < 0)
            return false;
        queue->last_record = operation.sequence;
    }
    *out_event = (struct weir_event){queue->member.object.id, queue->sequence};
    return true;
}

bool weir__queue_mark(weir_queue *queue, struct weir_event *out_event)
{
    bool marked = true;
    struct weir_error saved = *weir_last_error();
    *out_event = (struct weir_event){0};

    // Within a native call the lock is held; what asks tries again later.
    if (weir__queue_is_called_back(queue))
        return false;
    weir_biased_lock_take(&queue->submit_lock);
    if (queue->wrapped || queue->sequence > atomic_load(&queue->progress.completed))
        marked = weir__queue_mark_locked(queue, out_event);
    weir_biased_lock_release(&queue->submit_lock);
    // What is lost runs nothing any more, and takes no record ever again.
    if (!marked && weir_last_error()->status == WEIR_ERROR_DEVICE_LOST)
        marked = true;
    weir__error_set(&saved);
    return marked;
}

weir_status weir__queue_finish(weir_queue *queue)
{
    uint64_t sequence = atomic_load(&queue->seen);
    const struct weir_link *first = queue->first;
    weir_status status = WEIR_OK;
    if (!queue->foreign || atomic_load(&queue->wrapped))
        status = first->ops->queue_finish(first, queue);
    else if (queue->last_record)
        status = first->ops->event_wait(first, queue, queue->last_record, WEIR_FOREVER);
    if (status == WEIR_OK)
        weir__progress_complete(queue, sequence);
    return status;
}

weir_status weir_queue_recover(weir_queue *queue)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, queue);
    if (weir__in_host_call())
        return weir__fail_at(NULL, 0, queue->member.object.label, WEIR_ERROR_INVALID,
                             "call it on a thread of the program's",
                             "weir_queue_recover waits, and a host call may not wait");
    if (weir__is_capturing(queue))
        return weir__capture_refuse(queue, NULL, 0, "weir_queue_recover would mix with it",
                                    "end or cancel the capture first");
    if (!atomic_load(&queue->progress.failed))
        return WEIR_OK;
    weir_status status = weir__progress_refuse(queue);
    if (status == WEIR_ERROR_DEVICE_LOST)
        return status;
    // Behind the lock nobody submits any more: who comes later sees the failure.
    // The wait itself is outside, since a host call under way may want the lock.
    weir_biased_lock_take(&queue->submit_lock);
    weir_biased_lock_release(&queue->submit_lock);
    status = weir__queue_finish(queue);
    if (status < 0)
        return status;
    weir_biased_lock_take(&queue->submit_lock);
    weir__progress_recover(queue, queue->sequence);
    weir__migration_recovered(queue);
    weir_biased_lock_release(&queue->submit_lock);
    return status;
}
