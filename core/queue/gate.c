// See the header. `holding` turns true under the queue's submit lock and false
// under the hold's lock with an empty list, so a submitter that reads false may
// go to the backend directly: the worker has handed over everything before it.
// Only the worker hands over while the queue is held, so submits to one queue
// are never concurrent.
#include "core/queue/gate.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "core/interop/native.h"
#include "core/queue/held.h"
#include "core/queue/queue.h"
#include "core/queue/registry.h"
#include "core/queue/replay.h"
#include "core/support/error.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

struct hold {
    const struct weir_link *link;
    weir_queue *queue;
    atomic_bool holding;
    atomic_uint_fast64_t handed; // the backend was given everything up to here
    pthread_mutex_t lock;        // of what follows; a leaf
    pthread_cond_t changed;      // any of it, or `handed` while holding
    struct weir__held_list list;
    bool has_worker;
    bool stop;
    pthread_t worker;
};

static struct hold *hold_of(const struct weir_link *link, const weir_queue *queue)
{
    return weir_queue_data(link, queue);
}

static bool is_handed(const struct hold *hold, uint64_t sequence)
{
    return atomic_load_explicit(&hold->handed, memory_order_acquire) >= sequence;
}

// Whether no backend, or not this one, needs the operation, which has one of these flags.
static bool is_dropped(const struct weir_link *next, const struct weir_operation *operation)
{
    return operation->flags & (WEIR_OPERATION_IMPLIED | WEIR_OPERATION_EMPTY) ||
           next->ops->graph_create;
}

static weir_status hand_over(const struct hold *hold, const struct weir_operation *operation)
{
    const struct weir_link *next = hold->link->next;
    const uint32_t droppable =
        WEIR_OPERATION_IMPLIED | WEIR_OPERATION_EMPTY | WEIR_OPERATION_RELAUNCH;

    if (operation->flags & droppable && is_dropped(next, operation))
        return WEIR_OK;
    switch (operation->kind) {
    case WEIR_OPERATION_GRAPH:
        return weir__replay_launch(hold->link, hold->queue, operation);
    case WEIR_OPERATION_NATIVE:
        return weir__native_submit(next, hold->queue, operation);
    default:
        return next->ops->queue_submit(next, hold->queue, operation);
    }
}

// Whether the device orders the wait once the producer's record is with its driver; of
// devices that are no peers only the host can.
static bool is_ordered_by_device(const struct hold *hold, weir_queue *producer)
{
    const struct weir_link *next = hold->link->next;
    weir_device *device = weir_queue_device(hold->queue);
    weir_device *other = weir_queue_device(producer);

    return device == other || next->ops->device_peer(next, device, other);
}

static void note_handed(struct hold *hold, const struct weir_operation *operation)
{
    atomic_store_explicit(&hold->handed, operation->sequence, memory_order_release);
}

// The worker.

static weir_status run_host_call(struct hold *hold, const struct weir_operation *operation)
{
    const struct weir_link *next = hold->link->next;
    weir_status status = next->ops->queue_finish(next, hold->queue);
    if (status < 0)
        return status;

    // What an earlier one left in this thread must not pass for this one's detail.
    weir_error_set(NULL);
    weir__set_in_host_call(true);
    status = operation->u.host_call.function(operation->u.host_call.user);
    weir__set_in_host_call(false);
    if (status >= 0)
        return WEIR_OK;
    // The function's own detail, if it left one, says more than its status.
    if (weir_last_error()->status != status)
        weir__report(status, NULL, "the function returned %s (%d)", weir_status_name(status),
                     (int)status);
    return status;
}

static void wait_until_handed(struct hold *producer, uint64_t sequence)
{
    pthread_mutex_lock(&producer->lock);
    while (!is_handed(producer, sequence))
        pthread_cond_wait(&producer->changed, &producer->lock);
    pthread_mutex_unlock(&producer->lock);
}

static weir_status run_wait(struct hold *hold, const struct weir_operation *operation)
{
    const struct weir_link *link = hold->link;
    weir_queue *producer = operation->u.wait.producer;
    uint64_t sequence = operation->u.wait.event.sequence;

    // Nobody else flushes while this blocks.
    link->next->ops->queue_flush(link->next, hold->queue);
    wait_until_handed(hold_of(link, producer), sequence);
    if (is_ordered_by_device(hold, producer))
        return hand_over(hold, operation);
    return link->next->ops->event_wait(link->next, producer, sequence, WEIR_FOREVER);
}

static weir_status run_held(struct hold *hold, const struct weir_operation *operation)
{
    // Behind a failure only what others wait for is still handed over. The failure
    // may also lie behind this operation, when a later wait was refused.
    bool failed = atomic_load(&hold->queue->progress.failed) &&
                  weir__progress_status(hold->queue, operation->sequence) < 0;
    switch (operation->kind) {
    case WEIR_OPERATION_HOST_CALL:
        return failed ? WEIR_OK : run_host_call(hold, operation);
    case WEIR_OPERATION_WAIT:
        if (operation->flags & WEIR_OPERATION_IMPLIED || !operation->u.wait.producer)
            return WEIR_OK;
        return run_wait(hold, operation);
    case WEIR_OPERATION_RECORD:
        return hand_over(hold, operation);
    default:
        return failed ? WEIR_OK : hand_over(hold, operation);
    }
}

// Called with the lock held, which is released meanwhile.
static void work_on(struct hold *hold, struct weir__held *held)
{
    const struct weir_operation *operation = &held->operation;

    pthread_mutex_unlock(&hold->lock);
    weir_status status = run_held(hold, operation);
    if (status < 0)
        weir__queue_fail(hold->queue, operation, status);
    if (operation->kind == WEIR_OPERATION_WAIT && operation->u.wait.producer)
        weir__registry_unpin(operation->u.wait.producer);
    if (operation->kind == WEIR_OPERATION_GRAPH)
        weir__replay_let_go(hold->link, operation);
    pthread_mutex_lock(&hold->lock);
    note_handed(hold, operation); // behind the booking: an event must not read complete before it
    weir__held_recycle(&hold->list, held);
    pthread_cond_broadcast(&hold->changed);
}

// The caller of weir_queue_flush() may be gone by now, so the worker flushes
// what it handed over.
static void let_go(struct hold *hold)
{
    const struct weir_link *next = hold->link->next;

    pthread_mutex_unlock(&hold->lock);
    next->ops->queue_flush(next, hold->queue);
    pthread_mutex_lock(&hold->lock);
    if (hold->list.first)
        return;
    atomic_store_explicit(&hold->holding, false, memory_order_release);
    pthread_cond_broadcast(&hold->changed);
}

static void *run_worker(void *argument)
{
    struct hold *hold = argument;

    pthread_mutex_lock(&hold->lock);
    for (;;) {
        struct weir__held *held = weir__held_pop(&hold->list);
        if (held)
            work_on(hold, held);
        else if (atomic_load(&hold->holding))
            let_go(hold);
        else if (hold->stop)
            break;
        else
            pthread_cond_wait(&hold->changed, &hold->lock);
    }
    pthread_mutex_unlock(&hold->lock);
    return NULL;
}

// Submitting.

// Called with the lock held.
static weir_status push(struct hold *hold, const struct weir_operation *operation)
{
    if (!hold->has_worker) {
        if (!weir__thread_create(&hold->worker, run_worker, hold))
            return weir__fail(WEIR_ERROR_SYSTEM, "raise the limit of threads",
                              "no thread for the host calls of queue '%s'",
                              weir_queue_label(hold->queue));
        hold->has_worker = true;
    }
    if (!weir__held_push(&hold->list, operation))
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory to hold an operation");
    if (operation->kind == WEIR_OPERATION_GRAPH)
        weir__replay_hold(hold->link, operation);
    atomic_store_explicit(&hold->holding, true, memory_order_release);
    pthread_cond_broadcast(&hold->changed);
    return WEIR_OK;
}

static bool starts_hold(const struct hold *hold, const struct weir_operation *operation)
{
    if (operation->kind == WEIR_OPERATION_HOST_CALL)
        return true;
    if (operation->kind != WEIR_OPERATION_WAIT || operation->flags & WEIR_OPERATION_IMPLIED)
        return false;
    weir_queue *producer = operation->u.wait.producer;
    return !is_handed(hold_of(hold->link, producer), operation->u.wait.event.sequence) ||
           !is_ordered_by_device(hold, producer);
}

static weir_status pass_on(struct hold *hold, const struct weir_operation *operation)
{
    weir_status status = hand_over(hold, operation);
    note_handed(hold, operation);
    return status;
}

static weir_status queue_submit(const struct weir_link *link, weir_queue *queue,
                                const struct weir_operation *operation)
{
    struct hold *hold = hold_of(link, queue);
    bool holding = atomic_load_explicit(&hold->holding, memory_order_acquire);

    if (!holding && !starts_hold(hold, operation))
        return pass_on(hold, operation);

    pthread_mutex_lock(&hold->lock);
    // The worker may have let go since.
    bool keep =
        atomic_load_explicit(&hold->holding, memory_order_relaxed) || starts_hold(hold, operation);
    weir_status status = keep ? push(hold, operation) : WEIR_OK;
    pthread_mutex_unlock(&hold->lock);
    return keep ? status : pass_on(hold, operation);
}

static weir_status queue_flush(const struct weir_link *link, weir_queue *queue)
{
    if (atomic_load(&hold_of(link, queue)->holding))
        return WEIR_OK;
    return link->next->ops->queue_flush(link->next, queue);
}

void weir__last_hop_settle(const struct weir_link *link, const weir_queue *queue)
{
    struct hold *hold = hold_of(link, queue);
    pthread_mutex_lock(&hold->lock);
    while (atomic_load(&hold->holding))
        pthread_cond_wait(&hold->changed, &hold->lock);
    pthread_mutex_unlock(&hold->lock);
}

static weir_status queue_finish(const struct weir_link *link, weir_queue *queue)
{
    weir__last_hop_settle(link, queue);
    return link->next->ops->queue_finish(link->next, queue);
}

// Events.

static weir_status event_query(const struct weir_link *link, weir_queue *queue, uint64_t sequence)
{
    if (!is_handed(hold_of(link, queue), sequence))
        return WEIR_NOT_READY;
    return link->next->ops->event_query(link->next, queue, sequence);
}

// Returns false when the deadline passed first.
static bool wait_handed_until(struct hold *hold, uint64_t sequence, uint64_t deadline_ns)
{
    const struct timespec deadline = weir_clock_timespec(deadline_ns);
    int error = 0;

    pthread_mutex_lock(&hold->lock);
    while (!is_handed(hold, sequence) && error != ETIMEDOUT)
        error = deadline_ns == WEIR_FOREVER
                    ? pthread_cond_wait(&hold->changed, &hold->lock)
                    : pthread_cond_timedwait(&hold->changed, &hold->lock, &deadline);
    bool handed = is_handed(hold, sequence);
    pthread_mutex_unlock(&hold->lock);
    return handed;
}

static weir_status event_wait(const struct weir_link *link, weir_queue *queue, uint64_t sequence,
                              uint64_t timeout_ns)
{
    struct hold *hold = hold_of(link, queue);
    const struct weir_link *next = link->next;

    if (is_handed(hold, sequence))
        return next->ops->event_wait(next, queue, sequence, timeout_ns);
    uint64_t now = weir_clock_now_ns();
    uint64_t deadline = timeout_ns < WEIR_FOREVER - now ? now + timeout_ns : WEIR_FOREVER;
    if (!wait_handed_until(hold, sequence, deadline))
        return WEIR_TIMEOUT;
    if (deadline == WEIR_FOREVER)
        return next->ops->event_wait(next, queue, sequence, WEIR_FOREVER);
    now = weir_clock_now_ns();
    return next->ops->event_wait(next, queue, sequence, now < deadline ? deadline - now : 0);
}

// Life.

static weir_status queue_create(const struct weir_link *link, weir_device *device,
                                weir_queue *queue, const struct weir_queue_setup *setup,
                                void **out_data)
{
    (void)device;
    (void)setup;
    struct hold *hold = weir__allocate(sizeof *hold);
    if (!hold)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a queue");
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&hold->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&hold->lock, NULL);
    hold->link = link;
    hold->queue = queue;
    *out_data = hold;
    return WEIR_OK;
}

static void queue_destroy(const struct weir_link *link, weir_queue *queue)
{
    struct hold *hold = hold_of(link, queue);
    pthread_mutex_lock(&hold->lock);
    hold->stop = true;
    pthread_cond_broadcast(&hold->changed);
    pthread_mutex_unlock(&hold->lock);
    if (hold->has_worker)
        pthread_join(hold->worker, NULL);
    weir__held_finish(&hold->list);
    pthread_cond_destroy(&hold->changed);
    pthread_mutex_destroy(&hold->lock);
    weir__release(hold);
}

const struct weir_module_ops weir__last_hop_ops = {
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .queue_submit = queue_submit,
    .queue_flush = queue_flush,
    .queue_finish = queue_finish,
    .event_query = event_query,
    .event_wait = event_wait,
    .graph_create = weir__replay_create,
    .graph_destroy = weir__replay_destroy,
    .graph_update = weir__replay_update,
};
