// A queue's worker: it delivers the operations that are held, one after another, and runs those that the
// host carries out or waits for.
#include "base/clock.h"
#include "core/object/comm.h"
#include "core/queue/always.h"
#include "core/queue/delivery_parts.h"
#include "core/queue/host_note.h"
#include "core/queue/node_call.h"
#include "core/queue/registry.h"
#include "core/queue/replay.h"
#include "core/support/error.h"
#include "core/support/thread.h"

// Books the status of the operation, and drops it. Returns with the lock held.
static void end_held(weir_queue *queue, struct weir__held *held, weir_status status)
{
    struct weir__delivery *delivery = &queue->delivery;
    const struct weir_operation *operation = &held->operation;

    if (status < 0)
        weir__queue_fail(queue, operation, status);
    if (operation->kind == WEIR_OPERATION_WAIT && operation->u.wait.producer)
        weir__registry_unpin(operation->u.wait.producer);
    if (operation->kind == WEIR_OPERATION_GRAPH)
        weir__replay_unhold(queue->delivery.link, operation);
    weir_lock_take(&delivery->lock);
    weir__note_delivered(queue, operation); // after the failure is booked: events read complete now
    weir__held_recycle(&delivery->list, held);
    pthread_cond_broadcast(&delivery->changed);
}

// A host call, on its way.
struct host_call {
    weir_queue *queue;
    struct weir__held *held;
    weir_status status;
};

static void call_function(void *user)
{
    struct host_call *call = user;
    const struct weir_operation *operation = &call->held->operation;
    call->status = operation->u.host_call.function(operation->u.host_call.user);
}

// A function ended its thread: the operation ends, and another worker goes on, since a program may do this at
// every call, and each would be deeper on the stack of one worker. Without a thread to be had this one goes
// on. The queue is held until then, so nothing joins the worker.
static void go_on(const struct host_call *call)
{
    end_held(call->queue, call->held, WEIR_ERROR_HOST_CALL);
    const bool renewed = weir_thread_renew() == 0;
    weir_lock_release(&call->queue->delivery.lock);
    if (!renewed)
        weir__delivery_work(call->queue);
}

static void survive_function(void *user)
{
    (void)weir__function_ended();
    go_on(user);
}

// Calls the function, with `cause` as the thread's error; NULL: none, since the detail of an earlier
// function in this thread must not be mistaken for this one's.
static weir_status call_on_worker(weir_queue *queue, struct weir__held *held,
                                  const struct weir_error *cause)
{
    struct host_call call = {.queue = queue, .held = held};
    weir_error_set(cause);
    const struct weir__call_scope outer = weir__enter_host_call();
    weir_thread_call(call_function, survive_function, &call);
    weir__leave_call(outer);
    return weir__function_status(call.status);
}

static weir_status run_host_call(weir_queue *queue, struct weir__held *held)
{
    const struct weir_link *backend = weir__delivery_backend(queue);
    const weir_status status = backend->ops->queue_finish(backend, queue);
    return status < 0 ? status : call_on_worker(queue, held, NULL);
}

// Other ranks are told the thread's detail, and a module may fail without one.
static weir_status with_detail(weir_status status)
{
    const struct weir_error cause = weir__error_of(status);
    return weir__error_set(&cause);
}

// Waits for the operations before this one. A failure that came through one of their waits is
// booked only now.
static weir_status finish_earlier(weir_queue *queue, const struct weir_operation *operation)
{
    const struct weir_link *backend = weir__delivery_backend(queue);
    weir_status status = backend->ops->queue_finish(backend, queue);
    if (status < 0)
        return with_detail(status);
    weir__completion_complete(queue, operation->sequence - 1);
    return WEIR_OK;
}

// A call that runs whatever became of the operations before it, and is told. The failure that it is told
// of is booked already if one of them has it, and is otherwise the driver's answer.
static weir_status run_always(weir_queue *queue, struct weir__held *held, bool failed)
{
    const struct weir_operation *operation = &held->operation;
    if (failed)
        weir__always_await(queue, operation->sequence);
    const weir_status finished = finish_earlier(queue, operation);
    if (finished < 0)
        weir__always_await(queue, operation->sequence);
    const bool booked = failed || finished == WEIR_OK;
    const weir_status before =
        booked ? weir__completion_status(queue, operation->sequence) : finished;
    const struct weir_error cause = weir__error_of(before);
    weir__always_tell(before);
    const weir_status status = call_on_worker(queue, held, before < 0 ? &cause : NULL);
    if (before == WEIR_OK)
        return status;
    return booked ? WEIR_OK : weir__error_set(&cause);
}

static void wait_until_delivered(weir_queue *producer, uint64_t sequence)
{
    struct weir__delivery *delivery = &producer->delivery;
    weir_lock_take(&delivery->lock);
    while (!weir__is_delivered(producer, sequence))
        weir_lock_wait(&delivery->lock, &delivery->changed);
    weir_lock_release(&delivery->lock);
}

// The failure of a host call is known by now. A collective that the device carries out has no later
// chance to learn of it. The legacy queue's order passes no failures on.
static void inherit(weir_queue *queue, const struct weir_operation *wait)
{
    if (wait->flags & WEIR_OPERATION_INTERNAL ||
        weir__completion_status(wait->u.wait.producer, wait->u.wait.event.sequence) == WEIR_OK)
        return;
    const struct weir_error cause = *weir_last_error();
    weir__completion_fail(queue, wait->sequence, &cause);
}

static weir_status run_wait(weir_queue *queue, const struct weir_operation *operation)
{
    const struct weir_link *backend = weir__delivery_backend(queue);
    weir_queue *producer = operation->u.wait.producer;
    uint64_t sequence = operation->u.wait.event.sequence;

    // Nothing else flushes while this blocks.
    backend->ops->queue_flush(backend, queue);
    wait_until_delivered(producer, sequence);
    inherit(queue, operation);
    if (weir__is_ordered_by_device(queue, producer))
        return weir__delivery_submit(queue, operation);
    return backend->ops->event_wait(backend, producer, sequence, WEIR_FOREVER);
}

// One that runs after a failure would hand undefined bytes to the other ranks, as if all were well.
static weir_status run_collective(weir_queue *queue, const struct weir_operation *operation,
                                  bool failed)
{
    const struct weir__comm_ops *ops = operation->u.collective.comm->ops;
    if (!failed && ops->takes(operation))
        return ops->run(queue, operation);
    weir_status status = failed ? WEIR_OK : finish_earlier(queue, operation);
    if (failed || status < 0 || weir__completion_status(queue, operation->sequence) < 0) {
        ops->skip(operation);
        return status;
    }
    const uint64_t begin_ns = weir_clock_now_ns();
    status = ops->run(queue, operation);
    if (weir__takes_notes(queue->member.device))
        weir__host_note_collective(queue, operation, begin_ns, weir_clock_now_ns());
    return status;
}

static void survive_launch(void *user)
{
    const struct host_call *call = user;
    const struct weir_operation *operation = &call->held->operation;
    if (operation->flags & WEIR_OPERATION_COLLECTIVES)
        operation->u.graph_comms.comms[0].comm->ops->skip_launch(operation);
    go_on(call);
}

static weir_status submit_launch(weir_queue *queue, struct weir__held *held)
{
    struct host_call call = {.queue = queue, .held = held};
    const struct weir__replay_end end = {survive_launch, &call};
    return weir__replay_launch(queue->delivery.link, queue, &held->operation, &end);
}

// The same as for a collective, for a launch with some. A backend that has the graph orders it after earlier
// work itself.
static weir_status run_launch(weir_queue *queue, struct weir__held *held, bool failed)
{
    const struct weir_operation *operation = &held->operation;
    weir_status status = WEIR_OK;
    if (!failed && !weir__replay_is_in_backend(queue->delivery.link, operation)) {
        status = finish_earlier(queue, operation);
        failed = status < 0 || weir__completion_status(queue, operation->sequence) < 0;
    }
    if (!failed) {
        status = submit_launch(queue, held);
        status = status < 0 ? with_detail(status) : status;
    }
    if (failed || status < 0)
        operation->u.graph_comms.comms[0].comm->ops->skip_launch(operation);
    return status;
}

static weir_status run_held(weir_queue *queue, struct weir__held *held)
{
    const struct weir_operation *operation = &held->operation;
    // After a failure only records are delivered, since others wait for them. The failure
    // may also come later than this operation, when a later wait was refused.
    bool failed = atomic_load(&queue->completion.failed) &&
                  weir__completion_status(queue, operation->sequence) < 0;
    switch (operation->kind) {
    case WEIR_OPERATION_HOST_CALL:
        if (weir__is_always(operation))
            return run_always(queue, held, failed);
        return failed ? WEIR_OK : run_host_call(queue, held);
    case WEIR_OPERATION_COLLECTIVE:
        return run_collective(queue, operation, failed);
    case WEIR_OPERATION_GRAPH:
        if (operation->flags & WEIR_OPERATION_COLLECTIVES)
            return run_launch(queue, held, failed);
        return failed ? WEIR_OK : submit_launch(queue, held);
    case WEIR_OPERATION_WAIT:
        if (operation->flags & WEIR_OPERATION_IMPLIED || !operation->u.wait.producer)
            return WEIR_OK;
        return run_wait(queue, operation);
    case WEIR_OPERATION_RECORD:
        return weir__delivery_submit(queue, operation);
    default:
        return failed ? WEIR_OK : weir__delivery_submit(queue, operation);
    }
}

// Called with the lock held, which is released meanwhile.
static void deliver_held(weir_queue *queue, struct weir__held *held)
{
    weir_lock_release(&queue->delivery.lock);
    end_held(queue, held, run_held(queue, held));
}

// Ends the hold unless an operation was added meanwhile. weir_queue_flush() may have returned
// by now, so the worker flushes the operations that it delivered.
static void stop_holding(weir_queue *queue)
{
    struct weir__delivery *delivery = &queue->delivery;
    const struct weir_link *backend = weir__delivery_backend(queue);

    weir_lock_release(&delivery->lock);
    backend->ops->queue_flush(backend, queue);
    weir_lock_take(&delivery->lock);
    if (delivery->list.first)
        return;
    if (delivery->lost > atomic_load(&delivery->delivered))
        atomic_store(&delivery->delivered, delivery->lost);
    atomic_store_explicit(&delivery->holding, false, memory_order_release);
    pthread_cond_broadcast(&delivery->changed);
}

void weir__delivery_work(void *argument)
{
    weir_queue *queue = argument;
    struct weir__delivery *delivery = &queue->delivery;

    weir_lock_take(&delivery->lock);
    for (;;) {
        struct weir__held *held = weir__held_pop(&delivery->list);
        if (held)
            deliver_held(queue, held);
        else if (atomic_load(&delivery->holding))
            stop_holding(queue);
        else if (delivery->stop)
            break;
        else
            weir_lock_wait(&delivery->lock, &delivery->changed);
    }
    weir_lock_release(&delivery->lock);
}
