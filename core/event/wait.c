// Waits on events, on the device and on the host.
#include <weir/event.h>

#include <inttypes.h>

#include "core/graph/capture.h"
#include "core/queue/queue.h"
#include "core/queue/refused.h"
#include "core/queue/registry.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/thread.h"

static weir_status refuse_outside_event(const weir_queue *queue, const char *file, int line)
{
    return weir__queue_refuse_capturing(
        queue, file, line, "weir_queue_wait got an event that was recorded outside of it",
        "wait on it before the capture, or before the graph's launch");
}

// A wait for an event that has already failed fails the waiting queue, unless that queue has
// failed before. The cause is the thread's error.
static weir_status inherit(weir_queue *queue)
{
    const struct weir_error cause = *weir_last_error();
    if (!atomic_load(&queue->completion.failed))
        weir__completion_fail(queue, queue->sequence + 1, &cause);
    return weir__completion_refuse(queue);
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
        return weir__fail_at(file, line, label, WEIR_ERROR_INVALID,
                             "pass the event as weir_queue_record() gave it",
                             "weir_queue_wait: queue '%s' has no operation %" PRIu64,
                             weir__label_shown(producer->member.object.label), event.sequence);
    return WEIR_OK;
}

// What the program frees on the failed queue must still come after the event.
WEIR_COLD static weir_status refuse_wait(weir_queue *queue, struct weir_event event,
                                         weir_status status)
{
    weir__refused_note(queue, event, true);
    return status;
}

static weir_status wait_for_live(weir_queue *queue, weir_queue *producer, struct weir_event event,
                                 const char *file, int line)
{
    weir_status status = check_producer(queue, producer, event, file, line);
    if (status < 0)
        return status;
    if (weir__completion_has_failures(&producer->completion) &&
        weir__completion_status(producer, event.sequence) < 0)
        return refuse_wait(queue, event, inherit(queue));
    if (atomic_load_explicit(&queue->completion.failed, memory_order_acquire))
        return refuse_wait(queue, event, weir__completion_refuse(queue));
    return weir__queue_wait_locked(queue, event, producer, 0, file, line);
}

// A destroyed queue has finished, so only its failure matters.
static weir_status wait_for_gone(weir_queue *queue, struct weir_event event, const char *file,
                                 int line)
{
    if (weir__registry_issued(event.queue))
        return weir__completion_status_gone(event) < 0 ? inherit(queue) : WEIR_OK;
    return weir__fail_at(file, line, queue->member.object.label, WEIR_ERROR_INVALID,
                         "record first: weir_queue_record() returns the event",
                         "weir_queue_wait: the event belongs to no queue");
}

// With the submit lock held.
static weir_status wait_for(weir_queue *queue, struct weir_event event, const char *file, int line)
{
    if (weir__is_capturing(queue))
        return refuse_outside_event(queue, file, line);
    weir_queue *producer = weir__registry_borrow(queue, event.queue);
    if (!producer)
        return wait_for_gone(queue, event, file, line);
    weir_status status = wait_for_live(queue, producer, event, file, line);
    weir__registry_return(queue);
    return status;
}

weir_status weir_queue_wait_at(weir_queue *queue, struct weir_event event, const char *file,
                               int line)
{
    WEIR_ENTER_AT(file, line, queue);
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    if (event.queue == 0 || event.sequence == 0)
        return weir__fail_at(file, line, queue->member.object.label, WEIR_ERROR_INVALID,
                             "record first: weir_queue_record() returns the event",
                             "weir_queue_wait: the event is zero; it was never recorded");
    if (weir__queue_is_called_back(queue))
        return weir__queue_refuse_callback(queue);
    if (weir__is_captured(event))
        return weir__capture_wait(queue, event, file, line);
    weir__queue_enter(queue);
    weir_status status = wait_for(queue, event, file, line);
    weir_biased_lock_release(&queue->submit_lock);
    return status;
}

weir_status weir_queue_sync_at(weir_queue *queue, uint64_t timeout_ns, const char *file, int line)
{
    struct weir_event event = {0};
    WEIR_ENTER_AT(file, line, queue);
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    if (weir__in_host_call())
        return weir__fail_at(file, line, queue->member.object.label, WEIR_ERROR_INVALID,
                             "submit a wait to the queue instead",
                             "weir_queue_sync: a host call may submit work, and may not wait");
    if (weir__is_capturing(queue))
        return weir__queue_refuse_capturing(queue, file, line,
                                            "weir_queue_sync has nothing to wait for",
                                            "end or cancel the capture first");
    weir_status status = weir_queue_record_at(queue, &event, file, line);
    return status < 0 ? status : weir_event_sync_at(event, timeout_ns, file, line);
}
