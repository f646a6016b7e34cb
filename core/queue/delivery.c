// See the header. `holding` turns true under the queue's submit lock and false under the
// delivery's lock with an empty list, so a submitter that reads false may go to the backend
// directly: the worker has delivered everything before it. Only the worker delivers while the
// queue is held, so submits to one queue are never concurrent.
#include "core/queue/delivery.h"

#include <errno.h>

#include "core/object/buffer.h"
#include "core/object/comm.h"
#include "core/queue/operation.h"
#include "core/queue/queue.h"

// See the header. The data that an operation points to is stored after its node.

#define MINIMUM_CAPACITY (16 * sizeof(struct weir_argument) + 256)

static struct weir__held *take_node(struct weir__held_list *spare, size_t needed)
{
    for (struct weir__held *held = STAILQ_FIRST(spare); held; held = STAILQ_NEXT(held, place))
        if (held->capacity >= needed) {
            STAILQ_REMOVE(spare, held, weir__held, place);
            return held;
        }
    size_t capacity = needed > MINIMUM_CAPACITY ? needed : MINIMUM_CAPACITY;
    struct weir__held *held = weir__allocate(sizeof *held + capacity);
    if (held)
        held->capacity = capacity;
    return held;
}

// Appends a copy of the operation; false when there is no memory. With the lock held.
static bool push(struct weir__delivery *delivery, const struct weir_operation *operation)
{
    struct weir__held *held = take_node(&delivery->spare, weir_operation_bytes(operation));
    if (!held)
        return false;
    weir__operation_take(&held->operation, operation);
    weir_operation_own(&held->operation, held + 1);
    // The caller has the producer pinned, so this finds it.
    if (operation->kind == WEIR_OPERATION_WAIT)
        held->operation.u.wait.producer = weir__registry_pin(operation->u.wait.event.queue);
    STAILQ_INSERT_TAIL(&delivery->list, held, place);
    return true;
}

struct weir_operation *weir__operation_clone(const struct weir_operation *operation)
{
    struct weir_operation *clone = weir__allocate(sizeof *clone + weir_operation_bytes(operation));
    if (!clone)
        return NULL;
    weir__operation_take(clone, operation);
    weir_operation_own(clone, clone + 1);
    return clone;
}

// Calls that always run, and native calls.

// A plugin may put its own function before the one here, which gets the status from
// its thread: the queue's worker.

struct always {
    weir_always_function function;
    void *user;
};

// What the functions that run on this thread from now on are told.
static _Thread_local weir_status told;

static weir_status call_always(void *user)
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
    WEIR_REQUIRE_AT(file, line, queue->member.object.label, function);
    struct always *always = weir__allocate(sizeof *always);
    if (!always)
        return weir__fail_at(file, line, queue->member.object.label, WEIR_ERROR_OUT_OF_MEMORY, NULL,
                             "no memory for a host call");
    *always = (struct always){function, user};
    struct weir_operation operation;
    weir__operation_begin(&operation, WEIR_OPERATION_HOST_CALL, WEIR_OPERATION_ALWAYS, file, line);
    operation.u.host_call.function = call_always;
    operation.u.host_call.user = always;
    const weir_status status = weir__queue_submit(queue, &operation);
    if (status < 0)
        weir__release(always);
    return status;
}

static weir_status end_function(weir_status status, enum weir__call outer)
{
    (void)weir__enter_call(outer);
    if (status < 0 && weir_last_error()->status != status)
        weir__report(status, NULL, "the function returned %s (%d)", weir_status_name(status),
                     (int)status);
    return status < 0 ? status : WEIR_OK;
}

weir_status weir__call_host(weir_host_function function, void *user, const struct weir_error *cause)
{
    weir_error_set(cause);
    const enum weir__call outer = weir__enter_call(WEIR__HOST_CALL);
    return end_function(function(user), outer);
}

weir_status weir__call_native(weir_native_function function, void *user,
                              const struct weir_native_queue *native)
{
    const struct weir_error before = *weir_last_error();
    weir_error_set(NULL);
    const enum weir__call outer = weir__enter_call(WEIR__NATIVE_CALL);
    const weir_status status = end_function(function(native, user), outer);
    if (status == WEIR_OK)
        weir_error_set(&before);
    return status;
}

// `user` is the operation as it was submitted.
static weir_status call_native(const struct weir_native_queue *native, void *user)
{
    const struct weir_operation *operation = user;
    return weir__call_native(operation->u.native.function, operation->u.native.user, native);
}

weir_status weir__submit_native(const struct weir_link *backend, weir_queue *locked,
                                weir_queue *queue, const struct weir_operation *operation)
{
    struct weir_operation guarded;
    weir__operation_take(&guarded, operation);
    guarded.u.native.function = call_native;
    guarded.u.native.user = (void *)(uintptr_t)operation; // read only, by call_native()
    atomic_store_explicit(&locked->in_native, true, memory_order_relaxed);
    const weir_status status = backend->ops->queue_submit(backend, queue, &guarded);
    atomic_store_explicit(&locked->in_native, false, memory_order_relaxed);
    return status;
}

// The link of the backend of the queue's chain.
static inline const struct weir_link *backend_of(const weir_queue *queue)
{
    return queue->delivery.backend;
}

static inline bool is_delivered(const weir_queue *queue, uint64_t sequence)
{
    return atomic_load_explicit(&queue->delivery.delivered, memory_order_acquire) >= sequence;
}

// More follow with the number of a PART.
static inline void note_delivered(weir_queue *queue, const struct weir_operation *operation)
{
    if (operation->flags & WEIR_OPERATION_PART)
        return;
    atomic_store_explicit(&queue->delivery.delivered, operation->sequence, memory_order_release);
}

// Hands the operation to the backend, which can take it now.
static weir_status submit(weir_queue *queue, const struct weir_operation *operation)
{
    const struct weir_link *backend = backend_of(queue);

    // What every backend can do without, or one that has graphs.
    if (operation->flags & (WEIR_OPERATION_IMPLIED | WEIR_OPERATION_EMPTY) ||
        (operation->flags & WEIR_OPERATION_RELAUNCH && backend->ops->graph_create))
        return WEIR_OK;
    switch (operation->kind) {
    case WEIR_OPERATION_GRAPH:
        return weir__replay_launch(queue->delivery.link, queue, operation);
    case WEIR_OPERATION_NATIVE:
        return weir__submit_native(backend, queue, queue, operation);
    case WEIR_OPERATION_COLLECTIVE:
        return operation->u.collective.comm->ops->submit(queue, operation);
    case WEIR_OPERATION_NOTE:
        return WEIR_OK;
    default:
        return backend->ops->queue_submit(backend, queue, operation);
    }
}

// Whether the device orders the wait once the producer's record is with its driver; for devices
// that are not peers only the host can.
static bool is_ordered_by_device(const weir_queue *queue, const weir_queue *producer)
{
    return weir__peer_can(queue->member.device, producer->member.device);
}

// At exit: host calls whose threads the process ends are told, since what they were to do is missing.

static void tell_left(weir_queue *queue)
{
    const struct weir_operation *first = NULL;
    unsigned count = 0;
    weir_lock_take(&queue->delivery.lock);
    const struct weir__held *held = STAILQ_FIRST(&queue->delivery.list);
    if (held && atomic_load(&queue->delivery.in_call)) // it runs
        held = STAILQ_NEXT(held, place);
    for (; held; held = STAILQ_NEXT(held, place))
        if (held->operation.kind == WEIR_OPERATION_HOST_CALL)
            first = count++ > 0 ? first : &held->operation;
    const char *file = first && first->file ? first->file : "";
    const int line = first ? first->line : 0;
    weir_lock_release(&queue->delivery.lock);
    char text[512];
    snprintf(text, sizeof text,
             "queue '%.100s': %u host call%s had not run when the process ended, the first of "
             "%.200s:%d; weir_device_sync() waits for all",
             weir__label_or_none(weir_queue_label(queue)), count, count == 1 ? "" : "s", file,
             line);
    if (count > 0)
        weir__log(WEIR_LOG_WARNING, "core", text);
}

static void tell_all_left(void)
{
    for (weir_queue *queue = NULL; !weir__is_forked() && (queue = weir__queue_next(NULL, queue));)
        tell_left(queue);
}

static void watch_exit(void)
{
    (void)atexit(tell_all_left);
}

bool weir__delivery_await(struct weir__delivery *delivery, uint64_t sequence, uint64_t deadline_ns)
{
    int error = 0;
    bool reached = false;

    weir_lock_take(&delivery->lock);
    for (;;) {
        reached = sequence == WEIR__ALL_HELD ? !atomic_load(&delivery->holding)
                                             : atomic_load(&delivery->delivered) >= sequence;
        if (reached || error == ETIMEDOUT)
            break;
        error = weir_lock_wait_until(&delivery->lock, &delivery->changed, deadline_ns);
    }
    weir_lock_release(&delivery->lock);
    return reached;
}

// A queue's worker: it delivers the operations that are held, one after another, and runs those that the
// host carries out or waits for.

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
        weir__replay_hold(queue->delivery.link, operation, false);
    weir_lock_take(&delivery->lock);
    STAILQ_REMOVE_HEAD(&delivery->list, place);
    note_delivered(queue, operation); // after the failure is booked: events read complete now
    STAILQ_INSERT_HEAD(&delivery->spare, held, place);
    pthread_cond_broadcast(&delivery->changed);
}

// Tells plugins what the library does for the operation. Nodes of a graph have the number of its launch, and are not told.
static void note_ran(enum weir_host_note_kind kind, weir_queue *queue,
                     const struct weir_operation *operation, uint64_t begin_ns, uint64_t end_ns)
{
    struct weir__host_caller caller = {.file = operation->file, .line = operation->line};
    if (operation->kind == WEIR_OPERATION_COLLECTIVE)
        caller.flags = WEIR_HOST_NOTE_INTERNAL | WEIR_HOST_NOTE_COLLECTIVE;
    else if (operation->flags & WEIR_OPERATION_INTERNAL)
        caller.flags = WEIR_HOST_NOTE_INTERNAL;
    if (weir__takes_notes(queue->member.device) && !(operation->flags & WEIR_OPERATION_PART))
        weir__host_note_ran(kind, queue, operation->sequence, begin_ns, end_ns, &caller);
}

static weir_status call_on_worker(weir_queue *queue, const struct weir_operation *operation,
                                  const struct weir_error *cause)
{
    atomic_store(&queue->delivery.in_call, true);
    note_ran(WEIR_HOST_NOTE_CALL, queue, operation, 0, 0);
    const uint64_t begin_ns = weir_clock_now_ns();
    const weir_status status =
        weir__call_host(operation->u.host_call.function, operation->u.host_call.user, cause);
    note_ran(WEIR_HOST_NOTE_RAN, queue, operation, begin_ns, weir_clock_now_ns());
    atomic_store(&queue->delivery.in_call, false);
    if (!(operation->flags & WEIR_OPERATION_INTERNAL)) // a plugin's own submits no work
        atomic_fetch_add(&queue->member.device->calls_ended, 1);
    return status;
}

static weir_status run_host_call(weir_queue *queue, const struct weir_operation *operation)
{
    const struct weir_link *backend = backend_of(queue);
    const weir_status status = backend->ops->queue_finish(backend, queue);
    return status < 0 ? status : call_on_worker(queue, operation, NULL);
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
    const struct weir_link *backend = backend_of(queue);
    weir_status status = backend->ops->queue_finish(backend, queue);
    if (status < 0)
        return with_detail(status);
    weir__completion_complete(queue, operation->sequence - 1);
    return WEIR_OK;
}

// A call that runs whatever became of the operations before it, and is told. The failure that it is told
// of is booked already if one of them has it, and is otherwise the driver's answer.
static weir_status run_always(weir_queue *queue, const struct weir_operation *operation,
                              bool failed)
{
    if (failed)
        weir__refused_await(queue, operation->sequence);
    const weir_status finished = finish_earlier(queue, operation);
    if (finished < 0)
        weir__refused_await(queue, operation->sequence);
    const bool booked = failed || finished == WEIR_OK;
    const weir_status before =
        booked ? weir__completion_status(queue, operation->sequence) : finished;
    const struct weir_error cause = weir__error_of(before);
    told = before;
    const weir_status status = call_on_worker(queue, operation, before < 0 ? &cause : NULL);
    if (before == WEIR_OK)
        return status;
    return booked ? WEIR_OK : weir__error_set(&cause);
}

static weir_status run_wait(weir_queue *queue, const struct weir_operation *operation)
{
    const struct weir_link *backend = backend_of(queue);
    weir_queue *producer = operation->u.wait.producer;
    uint64_t sequence = operation->u.wait.event.sequence;

    // Nothing else flushes while this blocks.
    backend->ops->queue_flush(backend, queue);
    (void)weir__delivery_await(&producer->delivery, sequence, WEIR_FOREVER);
    // The failure of a host call is known by now. A collective that the device carries out has no later chance to
    // learn of it. The legacy queue's order passes no failures on.
    if (!(operation->flags & WEIR_OPERATION_INTERNAL) &&
        weir__completion_status(producer, sequence) < 0)
        weir__completion_fail(queue, operation->sequence, weir_last_error());
    if (is_ordered_by_device(queue, producer))
        return submit(queue, operation);
    return backend->ops->event_wait(backend, producer, sequence, WEIR_FOREVER);
}

// A collective, or a launch with some. One that runs after a failure would hand undefined bytes to the other ranks, as if
// all were well. What the device carries out it orders after earlier work itself.
static weir_status run_collectives(weir_queue *queue, const struct weir_operation *operation,
                                   bool failed)
{
    const bool launch = operation->kind == WEIR_OPERATION_GRAPH;
    const struct weir__comm_ops *ops =
        launch ? operation->u.graph_comms.comms[0].comm->ops : operation->u.collective.comm->ops;
    const bool by_device = launch ? weir__replay_is_in_backend(queue->delivery.link, operation)
                                  : ops->takes(operation);
    weir_status status = failed || by_device ? WEIR_OK : finish_earlier(queue, operation);
    failed = failed || status < 0 ||
             (!by_device && weir__completion_status(queue, operation->sequence) < 0);
    if (failed) {
        ops->skip(operation);
        return status;
    }
    const uint64_t begin_ns = weir_clock_now_ns();
    status = launch ? weir__replay_launch(queue->delivery.link, queue, operation)
                    : ops->run(queue, operation);
    if (!launch && !by_device)
        note_ran(WEIR_HOST_NOTE_RAN, queue, operation, begin_ns, weir_clock_now_ns());
    if (launch && status < 0) {
        status = with_detail(status);
        ops->skip(operation); // a replay has run in part
    }
    return status;
}

static weir_status run_held(weir_queue *queue, const struct weir_operation *operation)
{
    // After a failure only records are delivered, since others wait for them. The failure
    // may also come later than this operation, when a later wait was refused.
    bool failed = atomic_load(&queue->completion.failed) &&
                  weir__completion_status(queue, operation->sequence) < 0;
    switch (operation->kind) {
    case WEIR_OPERATION_HOST_CALL:
        if (weir__is_always(operation))
            return run_always(queue, operation, failed);
        return failed ? WEIR_OK : run_host_call(queue, operation);
    case WEIR_OPERATION_COLLECTIVE:
        return run_collectives(queue, operation, failed);
    case WEIR_OPERATION_GRAPH:
        if (operation->flags & WEIR_OPERATION_COLLECTIVES)
            return run_collectives(queue, operation, failed);
        return failed ? WEIR_OK : weir__replay_launch(queue->delivery.link, queue, operation);
    case WEIR_OPERATION_WAIT:
        if (operation->flags & WEIR_OPERATION_IMPLIED || !operation->u.wait.producer)
            return WEIR_OK;
        return run_wait(queue, operation);
    case WEIR_OPERATION_RECORD:
        return submit(queue, operation);
    default:
        return failed ? WEIR_OK : submit(queue, operation);
    }
}

// Ends the hold unless an operation was added meanwhile. weir_queue_flush() may have returned
// by now, so the worker flushes the operations that it delivered.
static void stop_holding(weir_queue *queue)
{
    struct weir__delivery *delivery = &queue->delivery;
    const struct weir_link *backend = backend_of(queue);

    weir_lock_release(&delivery->lock);
    backend->ops->queue_flush(backend, queue);
    weir_lock_take(&delivery->lock);
    if (!STAILQ_EMPTY(&delivery->list))
        return;
    if (delivery->lost > atomic_load(&delivery->delivered))
        atomic_store(&delivery->delivered, delivery->lost);
    atomic_store_explicit(&delivery->holding, false, memory_order_release);
    pthread_cond_broadcast(&delivery->changed);
}

// The worker of a queue, `argument`: delivers what is held until the delivery is to stop.
static void work(void *argument)
{
    weir_queue *queue = argument;
    struct weir__delivery *delivery = &queue->delivery;

    weir_lock_take(&delivery->lock);
    for (;;) {
        struct weir__held *held = STAILQ_FIRST(&delivery->list);
        if (held) {
            weir_lock_release(&delivery->lock);
            end_held(queue, held, run_held(queue, &held->operation));
        } else if (atomic_load(&delivery->holding)) {
            stop_holding(queue);
        } else if (delivery->stop) {
            break;
        } else {
            weir_lock_wait(&delivery->lock, &delivery->changed);
        }
    }
    weir_lock_release(&delivery->lock);
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
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!delivery->has_worker) {
        pthread_once(&once, watch_exit);
        if (weir_thread_start(&delivery->worker, work, queue) != 0)
            return weir__fail(WEIR_ERROR_SYSTEM, "raise the limit of threads",
                              "no thread for the host calls of queue '%s'",
                              weir__label_or_none(weir_queue_label(queue)));
        delivery->has_worker = true;
    }
    if (!push(delivery, operation))
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory to hold an operation");
    if (operation->kind == WEIR_OPERATION_GRAPH)
        weir__replay_hold(queue->delivery.link, operation, true);
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
    return !is_delivered(producer, operation->u.wait.event.sequence) ||
           !is_ordered_by_device(queue, producer);
}

weir_status weir__deliver(weir_queue *queue, const struct weir_operation *operation)
{
    struct weir__delivery *delivery = &queue->delivery;
    if (atomic_load_explicit(&delivery->holding, memory_order_acquire) ||
        starts_hold(queue, operation)) {
        weir_lock_take(&delivery->lock);
        // The worker may have ended the hold since.
        const bool keep = atomic_load_explicit(&delivery->holding, memory_order_relaxed) ||
                          starts_hold(queue, operation);
        const weir_status status = keep ? hold(queue, operation) : WEIR_OK;
        weir_lock_release(&delivery->lock);
        if (keep)
            return status;
    }
    const weir_status status = submit(queue, operation);
    note_delivered(queue, operation);
    return status;
}

void weir__delivery_lose(weir_queue *queue, const struct weir_operation *operation,
                         weir_status status)
{
    struct weir__delivery *delivery = &queue->delivery;
    weir__queue_fail(queue, operation, status);
    weir_lock_take(&delivery->lock);
    if (!atomic_load(&delivery->holding))
        note_delivered(queue, operation);
    else if (!(operation->flags & WEIR_OPERATION_PART))
        delivery->lost = operation->sequence;
    pthread_cond_broadcast(&delivery->changed);
    weir_lock_release(&delivery->lock);
}

// The link's slots.

static weir_status queue_submit(const struct weir_link *link, weir_queue *queue,
                                const struct weir_operation *operation)
{
    return weir__queue_deliver(queue, operation);
}

static weir_status queue_flush(const struct weir_link *link, weir_queue *queue)
{
    if (atomic_load(&queue->delivery.holding))
        return WEIR_OK;
    return link->next->ops->queue_flush(link->next, queue);
}

static weir_status queue_finish(const struct weir_link *link, weir_queue *queue)
{
    if (weir__debugging() && !weir__delivery_await(&queue->delivery, WEIR__ALL_HELD,
                                                   weir_clock_deadline(WEIR__AWAITED_TOLD_NS)))
        weir__awaited_tell(queue, atomic_load(&queue->sequence),
                           &(struct weir__host_caller){.function =
                                                           "a destroy, close or recover call"});
    weir__delivery_await(&queue->delivery, WEIR__ALL_HELD, WEIR_FOREVER);
    return link->next->ops->queue_finish(link->next, queue);
}

static weir_status event_query(const struct weir_link *link, weir_queue *queue, uint64_t sequence)
{
    if (!is_delivered(queue, sequence))
        return WEIR_NOT_READY;
    return link->next->ops->event_query(link->next, queue, sequence);
}

static weir_status event_wait(const struct weir_link *link, weir_queue *queue, uint64_t sequence,
                              uint64_t timeout_ns)
{
    const struct weir_link *next = link->next;

    if (is_delivered(queue, sequence))
        return next->ops->event_wait(next, queue, sequence, timeout_ns);
    const uint64_t deadline_ns = weir_clock_deadline(timeout_ns);
    if (!weir__delivery_await(&queue->delivery, sequence, deadline_ns))
        return WEIR_TIMEOUT;
    return next->ops->event_wait(next, queue, sequence, weir_clock_left(deadline_ns));
}

// Notes to plugins.

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

static void tell(const weir_queue *queue, const struct weir_host_note *note)
{
    const struct weir_error saved = *weir_last_error();
    (void)queue->first->ops->host_note(queue->first, note);
    weir__error_set(&saved);
}

void weir__host_note_ran(enum weir_host_note_kind kind, weir_queue *queue, uint64_t sequence,
                         uint64_t begin_ns, uint64_t end_ns, const struct weir__host_caller *caller)
{
    struct weir_host_note note = note_from(kind, caller);
    note.u.ran.queue = queue;
    note.u.ran.sequence = sequence;
    note.u.ran.begin_ns = begin_ns;
    note.u.ran.end_ns = end_ns;
    tell(queue, &note);
}

void weir__host_note_complete(weir_queue *producer, struct weir_event event, weir_status status,
                              const struct weir__host_caller *caller)
{
    struct weir_host_note note = note_from(WEIR_HOST_NOTE_COMPLETE, caller);
    note.u.complete.event = event;
    note.u.complete.producer = producer;
    note.u.complete.status = status;
    tell(producer, &note);
}

// Destruction.

void weir__delivery_finish(struct weir__delivery *delivery)
{
    weir_lock_take(&delivery->lock);
    delivery->stop = true;
    pthread_cond_broadcast(&delivery->changed);
    weir_lock_release(&delivery->lock);
    if (delivery->has_worker)
        weir_thread_join(&delivery->worker);
    for (struct weir__held *held = STAILQ_FIRST(&delivery->spare), *next; held; held = next) {
        next = STAILQ_NEXT(held, place);
        weir__release(held);
    }
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
