// Queues that the library owns: those of threads, and the legacy queue with its order. See the header.
#include "core/queue/queue.h"

static weir_status create_owned(weir_device *device, const char *label,
                                enum weir__queue_owner owner, weir_queue **out_queue)
{
    struct weir_queue_setup setup = {.struct_size = sizeof setup, .timing = device->default_timing};
    return weir__queue_open(device, label, owner, &setup, out_queue);
}

// A device has a key, whose value for a thread is the id of the thread's queue, and whose destructor runs at
// the thread's exit. No driver is called there: a driver in C++ may have lost its variables of the thread by then. The
// next create, destroy, sync or trim on another thread destroys the queue.

// One of the thread's end and the device's retires it.
static bool takes(weir_queue *queue)
{
    return queue->owner == WEIR__OWNED_BY_THREAD && !atomic_exchange(&queue->ends, true);
}

static void end_thread(void *value)
{
    weir_queue *queue = weir__is_forked() ? NULL : weir__registry_pin((uint64_t)(uintptr_t)value);
    if (!queue)
        return;
    if (takes(queue))
        weir__queue_retire(queue, true);
    weir__registry_unpin(queue);
}

static bool has_key(weir_device *device)
{
    weir_lock_take(&device->lock);
    if (!device->has_thread_key)
        device->has_thread_key = pthread_key_create(&device->thread_key, end_thread) == 0;
    const bool has = device->has_thread_key;
    weir_lock_release(&device->lock);
    return has;
}

weir_status weir_thread_queue_at(weir_device *device, weir_queue **out_queue, const char *file,
                                 int line)
{
    WEIR_ENTER_FOR(file, line, out_queue, device);
    if (weir__in_host_call())
        return weir__fail_at(
            file, line, NULL, WEIR_ERROR_INVALID, "hand the queue to the host call",
            "weir_thread_queue: a host call runs on a thread of the library's, which "
            "has no queue of its own");
    if (!has_key(device))
        return weir__fail_at(file, line, NULL, WEIR_ERROR_SYSTEM, "create a queue instead",
                             "the system has no key for values of threads left");
    weir_queue *queue =
        weir__registry_pin((uint64_t)(uintptr_t)pthread_getspecific(device->thread_key));
    if (queue) {
        weir__registry_unpin(queue); // the thread's end destroys it
        *out_queue = queue;
        return WEIR_OK;
    }
    weir_status status = create_owned(device, "thread queue", WEIR__OWNED_BY_THREAD, &queue);
    if (status < 0)
        return weir__placed(status, file, line);
    if (pthread_setspecific(device->thread_key, (void *)(uintptr_t)queue->member.object.id) != 0) {
        weir__queue_retire(queue, false);
        return weir__fail_at(file, line, NULL, WEIR_ERROR_SYSTEM, "create a queue instead",
                             "the system has no room for a value of this thread's");
    }
    *out_queue = queue;
    return WEIR_OK;
}

// The legacy queue's order is made of records and waits that the library inserts, flagged
// INTERNAL. An operation on it first raises `turn`, then records the end of every other queue
// and waits for these records. A queue that sees a turn later than its own first waits for the
// legacy queue's end. It checks while it holds its submit lock, and the record takes that lock
// after the turn was raised: so an operation that is submitted at the same time either is
// covered by the record or waits for the legacy queue's operation.
// Locks: `lock`, then one submit lock at a time. A thread that holds a submit lock and has
// to wait releases it first. The legacy queue's own submit lock is taken before `lock` is
// released, so a thread that then records its end finds the operation there.
// The legacy queue's waits are noted like all waits, so it fails with the work that it waits
// for. A queue's wait for the legacy queue only orders it: it is noted as such, so no failure is
// passed on, and a failed queue still comes after the legacy queue's work: see weir__refused_note().

static bool has_failed(const weir_queue *queue)
{
    return atomic_load_explicit(&queue->completion.failed, memory_order_acquire);
}

// Unless the legacy queue already comes after the end of the other one. If it cannot be ordered after all of them, it
// has failed.
static void wait_for_new_work(weir_queue *legacy, weir_queue *producer)
{
    struct weir_event event;
    weir_lock_take(&producer->submit_lock);
    const bool is_new = producer->sequence > producer->saw;
    const bool recorded = is_new && weir__queue_record_end_locked(producer, &event);
    if (recorded)
        producer->saw = producer->sequence;
    else // the reason is the thread's error
        event = (struct weir_event){producer->member.object.id, producer->sequence};
    weir_lock_release(&producer->submit_lock);
    if (!is_new)
        return;
    weir_lock_take(&legacy->submit_lock);
    if (recorded) {
        (void)weir__queue_wait_locked(legacy, event, producer, WEIR_OPERATION_INTERNAL, __FILE__,
                                      __LINE__);
    } else {
        if (!has_failed(legacy))
            weir__completion_fail(legacy, legacy->sequence + 1, weir_last_error());
        weir__refused_note(legacy, event, false);
    }
    weir_lock_release(&legacy->submit_lock);
}

// Returns with the submit lock held. A recovery on another thread meanwhile waits for what was skipped. If the queue
// had failed before that, its operation has no turn yet, for which other queues would wait: then all begins anew.
static void order_legacy(weir_queue *legacy)
{
    weir_device *device = legacy->member.device;
    struct weir__legacy *order = &device->legacy;

    for (;;) {
        weir_lock_take(&order->lock);
        // One that has failed notes what it would wait for: memory may be freed on it.
        const bool failed = has_failed(legacy);
        if (!failed)
            atomic_fetch_add_explicit(&order->turn, 1, memory_order_relaxed);
        for (weir_queue *queue = NULL; (queue = weir__queue_next(device, queue));)
            if (queue != legacy)
                wait_for_new_work(legacy, queue);
        weir_lock_take(&legacy->submit_lock);
        weir_lock_release(&order->lock);
        if (!failed || has_failed(legacy))
            return;
        weir_lock_release(&legacy->submit_lock);
    }
}

// The end of the legacy queue, and the turn that it belongs to.
static bool record_legacy_end(struct weir__legacy *order, weir_queue **out_legacy,
                              struct weir_event *out_event, uint64_t *out_turn)
{
    weir_lock_take(&order->lock);
    weir_queue *legacy = order->queue;
    *out_legacy = legacy;
    *out_turn = atomic_load_explicit(&order->turn, memory_order_relaxed);
    weir_lock_take(&legacy->submit_lock);
    const bool recorded = weir__queue_record_end_locked(legacy, out_event);
    if (!recorded)
        *out_event = (struct weir_event){legacy->member.object.id, legacy->sequence};
    weir_lock_release(&legacy->submit_lock);
    weir_lock_release(&order->lock);
    return recorded;
}

// Another operation may begin on the legacy queue meanwhile, hence the loop; it ends since
// each round orders the queue after one more.
static void order_after_legacy(weir_queue *queue)
{
    struct weir__legacy *order = &queue->member.device->legacy;
    weir_queue *legacy;
    struct weir_event event;
    uint64_t turn;

    do {
        weir_lock_release(&queue->submit_lock);
        const bool recorded = record_legacy_end(order, &legacy, &event, &turn);
        weir_lock_take(&queue->submit_lock);
        // A failed queue accepts no operation; it comes here again after its recovery.
        if (!recorded && !has_failed(queue))
            weir__completion_fail(queue, queue->sequence + 1, weir_last_error());
        if (has_failed(queue)) {
            weir__refused_note(queue, event, recorded);
            return;
        }
        if (queue->turn < turn) {
            const bool was_seen = queue->saw == queue->sequence;
            if (weir__queue_wait_locked(queue, event, legacy,
                                        WEIR_OPERATION_INTERNAL | WEIR__WAIT_ORDERS, __FILE__,
                                        __LINE__) == WEIR_OK)
                queue->legacy_end = event;
            if (was_seen) // the legacy queue need not wait for a wait for itself
                queue->saw = queue->sequence;
            queue->turn = turn;
        }
    } while (atomic_load_explicit(&order->turn, memory_order_relaxed) != queue->turn);
}

void weir__legacy_order(weir_queue *queue)
{
    if (queue->owner != WEIR__OWNED_BY_DEVICE) {
        order_after_legacy(queue);
        return;
    }
    weir_lock_release(&queue->submit_lock);
    order_legacy(queue);
}

// Creation and destruction.

// Makes it the device's legacy queue unless there is one; returns that, or with NULL the one there is.
static weir_queue *install(struct weir__legacy *order, weir_queue *queue)
{
    weir_lock_take(&order->lock);
    if (!order->queue)
        order->queue = queue;
    weir_queue *legacy = order->queue;
    weir_lock_release(&order->lock);
    return legacy;
}

weir_status weir_legacy_queue_at(weir_device *device, weir_queue **out_queue, const char *file,
                                 int line)
{
    WEIR_ENTER_FOR(file, line, out_queue, device);
    *out_queue = install(&device->legacy, NULL);
    if (*out_queue)
        return WEIR_OK;

    weir_queue *queue;
    weir_status status = create_owned(device, "legacy queue", WEIR__OWNED_BY_DEVICE, &queue);
    if (status < 0)
        return weir__placed(status, file, line);
    queue->turn = UINT64_MAX; // no turn: it always checks all other queues
    *out_queue = install(&device->legacy, queue);
    if (*out_queue != queue)
        weir__queue_retire(queue, false);
    return WEIR_OK;
}

void weir__owned_queues_close(weir_device *device)
{
    struct weir__legacy *order = &device->legacy;
    for (weir_queue *queue = NULL; (queue = weir__queue_next(device, queue));)
        if (takes(queue))
            weir__queue_retire(queue, false);
    if (device->has_thread_key)
        pthread_key_delete(device->thread_key);
    if (order->queue)
        weir__queue_retire(order->queue, false);
    order->queue = NULL;
}
