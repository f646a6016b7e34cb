// See the header. `holding` turns true under the queue's submit lock and false under the
// delivery's lock with an empty list, so a submitter that reads false may go to the backend
// directly: the worker has delivered everything before it. Only the worker delivers while the
// queue is held, so submits to one queue are never concurrent.
#include "core/queue/delivery.h"

#include <errno.h>

#include "base/clock.h"
#include "core/object/comm.h"
#include "core/queue/delivery_parts.h"
#include "core/queue/native_call.h"
#include "core/queue/replay.h"
#include "core/support/error.h"
#include "core/support/locks.h"

// Whether this backend, or every backend, can do without the operation, which has one of these
// flags.
static bool is_dropped(const struct weir_link *backend, const struct weir_operation *operation)
{
    return operation->flags & (WEIR_OPERATION_IMPLIED | WEIR_OPERATION_EMPTY) ||
           backend->ops->graph_create;
}

weir_status weir__delivery_submit(weir_queue *queue, const struct weir_operation *operation)
{
    const struct weir_link *backend = weir__delivery_backend(queue);

    if (operation->flags & WEIR__MAY_BE_DROPPED && is_dropped(backend, operation))
        return WEIR_OK;
    switch (operation->kind) {
    case WEIR_OPERATION_GRAPH:
        return weir__replay_launch(queue->delivery.link, queue, operation, NULL);
    case WEIR_OPERATION_NATIVE:
        return weir__native_submit(backend, queue, operation);
    case WEIR_OPERATION_COLLECTIVE:
        return operation->u.collective.comm->ops->submit(queue, operation);
    default:
        return backend->ops->queue_submit(backend, queue, operation);
    }
}

bool weir__is_ordered_by_device(const weir_queue *queue, const weir_queue *producer)
{
    const struct weir_link *backend = weir__delivery_backend(queue);
    weir_device *device = queue->member.device;
    weir_device *other = producer->member.device;

    bool peers = false;
    return device == other ||
           (backend->ops->device_peer(backend, device, other, &peers) == WEIR_OK && peers);
}

// Submission.

// Called with the lock held.
static weir_status hold(weir_queue *queue, const struct weir_operation *operation)
{
    struct weir__delivery *delivery = &queue->delivery;
    if (operation->kind >= WEIR_OPERATION_KINDS)
        return weir__fail(WEIR_ERROR_UNSUPPORTED, "leave out the plugin, or update the library",
                          "a plugin made an operation of kind %d, which this library cannot hold",
                          (int)operation->kind);
    if (!delivery->has_worker) {
        if (weir_thread_start_known(&delivery->worker, weir__delivery_work, queue) != 0)
            return weir__fail(WEIR_ERROR_SYSTEM, "raise the limit of threads",
                              "no thread for the host calls of queue '%s'",
                              weir__label_shown(weir_queue_label(queue)));
        delivery->has_worker = true;
    }
    if (!weir__held_push(&delivery->list, operation))
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory to hold an operation");
    if (operation->kind == WEIR_OPERATION_GRAPH)
        weir__replay_hold(queue->delivery.link, operation);
    atomic_store_explicit(&delivery->holding, true, memory_order_release);
    pthread_cond_broadcast(&delivery->changed);
    return WEIR_OK;
}

static bool starts_hold(const weir_queue *queue, const struct weir_operation *operation)
{
    if (operation->kind == WEIR_OPERATION_HOST_CALL)
        return true;
    if (operation->kind == WEIR_OPERATION_COLLECTIVE)
        return !operation->u.collective.comm->ops->is_ready(operation);
    if (operation->kind == WEIR_OPERATION_GRAPH)
        return weir__replay_waits(queue->delivery.link, operation);
    if (operation->kind != WEIR_OPERATION_WAIT || operation->flags & WEIR_OPERATION_IMPLIED)
        return false;
    const weir_queue *producer = operation->u.wait.producer;
    return !weir__is_delivered(producer, operation->u.wait.event.sequence) ||
           !weir__is_ordered_by_device(queue, producer);
}

static weir_status deliver_now(weir_queue *queue, const struct weir_operation *operation)
{
    weir_status status = weir__delivery_submit(queue, operation);
    weir__note_delivered(queue, operation);
    return status;
}

// Apart, so that a collective needs none of its frame.
WEIR_APART static weir_status deliver(weir_queue *queue, const struct weir_operation *operation)
{
    struct weir__delivery *delivery = &queue->delivery;
    const bool holding = atomic_load_explicit(&delivery->holding, memory_order_acquire);
    if (!holding && !starts_hold(queue, operation))
        return deliver_now(queue, operation);

    weir_lock_take(&delivery->lock);
    // The worker may have ended the hold since.
    bool keep = atomic_load_explicit(&delivery->holding, memory_order_relaxed) ||
                starts_hold(queue, operation);
    weir_status status = keep ? hold(queue, operation) : WEIR_OK;
    weir_lock_release(&delivery->lock);
    return keep ? status : deliver_now(queue, operation);
}

weir_status weir__deliver(weir_queue *queue, const struct weir_operation *operation)
{
    weir_status submitted;
    if (operation->kind == WEIR_OPERATION_COLLECTIVE &&
        !atomic_load_explicit(&queue->delivery.holding, memory_order_acquire) &&
        operation->u.collective.comm->ops->try_submit(queue, operation, &submitted)) {
        weir__note_delivered(queue, operation);
        return submitted;
    }
    return deliver(queue, operation);
}

void weir__delivery_lose(weir_queue *queue, const struct weir_operation *operation,
                         weir_status status)
{
    struct weir__delivery *delivery = &queue->delivery;
    weir__queue_fail(queue, operation, status);
    weir_lock_take(&delivery->lock);
    if (!atomic_load(&delivery->holding))
        weir__note_delivered(queue, operation);
    else if (!(operation->flags & WEIR_OPERATION_PART))
        delivery->lost = operation->sequence;
    pthread_cond_broadcast(&delivery->changed);
    weir_lock_release(&delivery->lock);
}

// The link's slots.

static weir_status queue_submit(const struct weir_link *link, weir_queue *queue,
                                const struct weir_operation *operation)
{
    (void)link;
    return weir__queue_deliver(queue, operation);
}

static weir_status queue_flush(const struct weir_link *link, weir_queue *queue)
{
    if (atomic_load(&queue->delivery.holding))
        return WEIR_OK;
    return link->next->ops->queue_flush(link->next, queue);
}

void weir__delivery_settle(struct weir__delivery *delivery)
{
    weir_lock_take(&delivery->lock);
    while (atomic_load(&delivery->holding))
        weir_lock_wait(&delivery->lock, &delivery->changed);
    weir_lock_release(&delivery->lock);
}

static weir_status queue_finish(const struct weir_link *link, weir_queue *queue)
{
    weir__delivery_settle(&queue->delivery);
    return link->next->ops->queue_finish(link->next, queue);
}

static weir_status event_query(const struct weir_link *link, weir_queue *queue, uint64_t sequence)
{
    if (!weir__is_delivered(queue, sequence))
        return WEIR_NOT_READY;
    return link->next->ops->event_query(link->next, queue, sequence);
}

// Returns false when the deadline passed first.
static bool wait_delivered_until(weir_queue *queue, uint64_t sequence, uint64_t deadline_ns)
{
    struct weir__delivery *delivery = &queue->delivery;
    const struct timespec deadline = weir_clock_timespec(deadline_ns);
    int error = 0;

    weir_lock_take(&delivery->lock);
    while (!weir__is_delivered(queue, sequence) && error != ETIMEDOUT)
        error = deadline_ns == WEIR_FOREVER
                    ? weir_lock_wait(&delivery->lock, &delivery->changed)
                    : weir_lock_wait_until(&delivery->lock, &delivery->changed, &deadline);
    bool delivered = weir__is_delivered(queue, sequence);
    weir_lock_release(&delivery->lock);
    return delivered;
}

static weir_status event_wait(const struct weir_link *link, weir_queue *queue, uint64_t sequence,
                              uint64_t timeout_ns)
{
    const struct weir_link *next = link->next;

    if (weir__is_delivered(queue, sequence))
        return next->ops->event_wait(next, queue, sequence, timeout_ns);
    uint64_t now = weir_clock_now_ns();
    uint64_t deadline = timeout_ns < WEIR_FOREVER - now ? now + timeout_ns : WEIR_FOREVER;
    if (!wait_delivered_until(queue, sequence, deadline))
        return WEIR_TIMEOUT;
    if (deadline == WEIR_FOREVER)
        return next->ops->event_wait(next, queue, sequence, WEIR_FOREVER);
    now = weir_clock_now_ns();
    return next->ops->event_wait(next, queue, sequence, now < deadline ? deadline - now : 0);
}

// Creation and destruction.

void weir__delivery_init(struct weir__delivery *delivery, const struct weir__chain *chain)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&delivery->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    weir_lock_init(&delivery->lock, &weir__locks[WEIR__LOCK_DELIVERY]);
    delivery->link = weir__chain_own(chain);
    delivery->backend = delivery->link->next;
}

void weir__delivery_finish(struct weir__delivery *delivery)
{
    weir_lock_take(&delivery->lock);
    delivery->stop = true;
    pthread_cond_broadcast(&delivery->changed);
    weir_lock_release(&delivery->lock);
    if (delivery->has_worker)
        weir_thread_join(&delivery->worker);
    weir__held_finish(&delivery->list);
    pthread_cond_destroy(&delivery->changed);
    weir_lock_finish(&delivery->lock);
}

const struct weir_module_ops weir__delivery_ops = {
    .queue_submit = queue_submit,
    .queue_flush = queue_flush,
    .queue_finish = queue_finish,
    .event_query = event_query,
    .event_wait = event_wait,
    .graph_create = weir__replay_create,
    .graph_destroy = weir__replay_destroy,
    .graph_update = weir__replay_update,
};
