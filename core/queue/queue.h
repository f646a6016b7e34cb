// The front end's queue.
#ifndef WEIR_CORE_QUEUE_QUEUE_H
#define WEIR_CORE_QUEUE_QUEUE_H

#include <weir/common.h>
#include <weir/migration.h>
#include <weir/module/module.h>

#include "base/cold.h"
#include "base/lock.h"
#include "core/object/device.h"
#include "core/object/object.h"
#include "core/queue/completion.h"
#include "core/queue/delivery.h"
#include "core/support/debug.h"
#include "core/support/thread.h"

// The capture to which a capturing queue passes its operations (core/graph/capture.c).
struct weir__capture_ops {
    // Notes the operation, gives a record the number of its event, and stores the status for the call. False: the
    // capture has just ended, and the operation has to be submitted. With the submit lock held, on a queue that captures.
    bool (*note)(weir_queue *queue, struct weir_operation *operation, weir_status *out_status);
    // Ends the capture that the queue is part of and drops it. With no lock held.
    void (*abandon)(weir_queue *queue);
};

// The owner of a queue, which alone may destroy it.
enum weir__queue_owner {
    WEIR__OWNED_BY_USER = 0,
    WEIR__OWNED_BY_THREAD,
    WEIR__OWNED_BY_DEVICE, // the legacy queue
};

// The latest operations of a queue, in debug mode; NULL before the first.
struct weir__history;

// The members that an operation reads are in the first cache line of the member and in the two
// after it.
struct weir_queue {
    struct weir__member member;
    struct weir_lock submit_lock;  // almost always only one thread uses a queue
    uint64_t last_record;          // number of the last one that was accepted; under the lock
    const struct weir_link *first; // of the chain
    atomic_uint_fast64_t sequence; // of the last operation submitted; changes under the lock
    struct weir__capture *_Atomic capture;       // that it is part of
    const struct weir__capture_ops *capture_ops; // since its first one
    uint64_t turn;         // of the legacy queue, that this one comes after; under the lock
    atomic_bool wrapped;   // the caller may submit to the native queue, until this queue is
                           // destroyed
    atomic_bool in_native; // a native call of this queue is running
    bool foreign;          // wraps the caller's native queue
    bool timing;
    struct weir__completion completion;
    struct weir__delivery delivery;
    enum weir__queue_owner owner;
    atomic_bool ends;             // with its thread, or its device
    struct weir_event legacy_end; // of the legacy queue, that it waited for last; under the lock
    uint64_t saw;               // the legacy queue comes after this one up to here; under the lock
    bool has_ended;             // it was destroyed, and its work has finished
    atomic_uint_fast64_t asked; // its record that a pool asked for last; 0: none
    struct weir__history *history; // in debug mode; under the delivery's lock
};

// Creates a queue of checked parameters. `setup->times` is filled in. One that is not the user's does not keep its device
// from closing.
weir_status weir__queue_open(weir_device *device, const char *label, enum weir__queue_owner owner,
                             struct weir_queue_setup *setup, weir_queue **out_queue);

extern const struct weir__class weir__queue_class;

static inline bool weir__is_capturing(const weir_queue *queue)
{
    return atomic_load_explicit(&queue->capture, memory_order_relaxed) != NULL;
}

// Refuses a call that a capturing queue does not allow. `why` is a clause that names it.
weir_status weir__queue_refuse_capturing(const weir_queue *queue, const char *file, int line,
                                         const char *why, const char *remedy);

// Destroys a queue on behalf of its owner, and drops the capture that it is part of. `later`: without a call of
// the chain, so the next check of the list finds out whether work uses it.
void weir__queue_retire(weir_queue *queue, bool later);

// Stores an event for the present end of the queue: its last record if nothing came after it,
// else a new internal one, also on a failed queue. A wrapped queue always gets a new one, since
// work after its last record is not known. Stores sequence 0 if everything is known to be
// complete, or the device is lost. Returns false if the record was refused, by the driver or
// for lack of memory.
bool weir__queue_record_end(weir_queue *queue, struct weir_event *out_event);

// The same with the submit lock held, whether or not anything is complete. A refusal is
// the thread's error.
bool weir__queue_record_end_locked(weir_queue *queue, struct weir_event *out_event);

// Waits for an event whose producer the caller keeps alive; NULL: it was destroyed, so only its failure matters. With the
// submit lock held. If the event has failed, the queue fails, unless it has before. A failed queue does not wait, and
// notes that: see weir__refused_note(). With the flag WEIR__WAIT_ORDERS the wait only orders the queue after the
// event, as the legacy queue's order requires, and passes on no failure.
#define WEIR__WAIT_ORDERS (1u << 31)
weir_status weir__queue_wait_locked(weir_queue *queue, struct weir_event event,
                                    weir_queue *producer, uint32_t flags, const char *file,
                                    int line);

// Orders the queue after the work that must come before its next operation: for the
// legacy queue all other queues, for another queue the legacy queue. The queue's submit
// lock is held at the call and at the return, but released meanwhile.
void weir__legacy_order(weir_queue *queue);

// Takes the queue's submit lock for a call of the user. The waits that the legacy queue's order
// requires were submitted before; if that was not possible, the queue has failed.
static inline void weir__queue_enter(weir_queue *queue)
{
    weir_lock_take(&queue->submit_lock);
    if (atomic_load_explicit(&queue->member.device->legacy.turn, memory_order_relaxed) !=
        queue->turn)
        weir__legacy_order(queue);
}

// Whether a native call of the queue calls back into it, on this thread, which then has the
// submit lock; and the message for that.
static inline bool weir__queue_is_called_back(const weir_queue *queue)
{
    return atomic_load_explicit(&queue->in_native, memory_order_relaxed) && weir__in_native_call();
}
#define WEIR_REFUSE_CALLBACK(queue, file, line)                                                \
    do {                                                                                       \
        if (weir__queue_is_called_back(queue))                                                 \
            return weir__fail_at(file, line, (queue)->member.object.label, WEIR_ERROR_INVALID, \
                                 "submit it after weir_queue_native()",                        \
                                 "a native call may not call Weir");                           \
    } while (0)

// Waits for everything and books it as complete.
weir_status weir__queue_finish(weir_queue *queue);

// Whether everything up to `sequence`, which is a record, is known to be complete.
static inline bool weir__queue_is_past(const weir_queue *queue, uint64_t sequence)
{
    return atomic_load_explicit(&queue->completion.completed, memory_order_acquire) >= sequence;
}

// Whether work of the queue is not known to be complete.
static inline bool weir__queue_is_busy(const weir_queue *queue)
{
    return atomic_load(&queue->sequence) > atomic_load(&queue->completion.completed);
}

// Queries the chain for a record, or waits for it, and books the answer. Returns the record's
// status: WEIR_OK, WEIR_NOT_READY or WEIR_TIMEOUT, or the first cause.
weir_status weir__queue_query(weir_queue *queue, uint64_t sequence);
weir_status weir__queue_await(weir_queue *queue, uint64_t sequence, uint64_t timeout_ns);

// The same for an event that the library has made. An event of a destroyed queue is complete.
bool weir__event_is_complete(struct weir_event event);

// Books a failure of the operation from the thread's error detail, and leaves the first cause in that detail. NULL: it is
// not known which operation failed in the driver, only that it comes after the completed ones. A driver that knows more
// says so in its own message.
WEIR_COLD weir_status weir__queue_fail(weir_queue *queue, const struct weir_operation *operation,
                                       weir_status status);

// The flags of operations that a backend may not need.
#define WEIR__MAY_BE_DROPPED \
    (WEIR_OPERATION_IMPLIED | WEIR_OPERATION_EMPTY | WEIR_OPERATION_RELAUNCH)

// What a wait on the host waits for, in words: the queue, the queues that it waits for, and at the end
// of that chain a host call that has not returned, a collective, or work of the device. A wait that times
// out leaves them as the thread's error, of status WEIR_TIMEOUT; in debug mode the log is told too, also
// of a wait without a limit once it has lasted some seconds.
//
// Only debug mode keeps the latest operations of a queue, so only there each is named with its line.

// After this time debug mode tells of a wait, once.
#define WEIR__AWAITED_TOLD_NS UINT64_C(3000000000)

// The limit of a wait for operation `sequence` of the queue has passed. With no lock held, as the next.
WEIR_COLD void weir__awaited_end(weir_queue *queue, uint64_t sequence, uint64_t timeout_ns,
                                 const struct weir__host_caller *caller);

// The wait goes on for longer than WEIR__AWAITED_TOLD_NS.
WEIR_COLD void weir__awaited_tell(weir_queue *queue, uint64_t sequence,
                                  const struct weir__host_caller *caller);

// Notes an operation that has got its number. With the queue's submit lock held.
WEIR_COLD void weir__awaited_note(weir_queue *queue, const struct weir_operation *operation);

// Whether the backend gets the operation as it is, at once, unless the queue is held: a copy, a
// fill, a launch, a record, or a wait for a record of the same device that its backend has.
static inline bool weir__operation_is_plain(const weir_queue *queue,
                                            const struct weir_operation *operation)
{
    if (operation->flags & WEIR__MAY_BE_DROPPED)
        return false;
    if (operation->kind == WEIR_OPERATION_WAIT) {
        const weir_queue *producer = operation->u.wait.producer;
        return producer->member.device == queue->member.device &&
               atomic_load_explicit(&producer->delivery.delivered, memory_order_acquire) >=
                   operation->u.wait.event.sequence;
    }
    return operation->kind <= WEIR_OPERATION_LAUNCH || operation->kind == WEIR_OPERATION_RECORD;
}

// Submits the operation to the backend, or holds it. This is the fast path of most operations;
// weir__deliver() handles the others.
static inline weir_status weir__queue_deliver(weir_queue *queue,
                                              const struct weir_operation *operation)
{
    struct weir__delivery *delivery = &queue->delivery;
    const struct weir_link *backend = delivery->backend;

    if (atomic_load_explicit(&delivery->holding, memory_order_acquire) ||
        !weir__operation_is_plain(queue, operation))
        return weir__deliver(queue, operation);
    weir_status status = backend->ops->queue_submit(backend, queue, operation);
    atomic_store_explicit(&delivery->delivered, operation->sequence, memory_order_release);
    return status;
}

// Gives the operation its number and sends it down the chain. With the submit lock held. A failed
// queue only gets records of its end, frees to pools and host calls that always run: the caller has
// refused the others.
static inline weir_status weir__queue_submit_locked(weir_queue *queue,
                                                    struct weir_operation *operation)
{
    operation->sequence = atomic_load_explicit(&queue->sequence, memory_order_relaxed) + 1;
    atomic_store_explicit(&queue->sequence, operation->sequence, memory_order_release);
    if (weir__is_unusual())
        weir__awaited_note(queue, operation);
    // Without plugins delivery comes next.
    weir_status status = queue->first == queue->delivery.link
                             ? weir__queue_deliver(queue, operation)
                             : queue->first->ops->queue_submit(queue->first, queue, operation);
    if (status < 0)
        return weir__queue_fail(queue, operation, status);
    if (operation->kind == WEIR_OPERATION_RECORD)
        queue->last_record = operation->sequence;
    return WEIR_OK;
}

// The same with the lock taken here; refuses on a failed queue, and notes on one that captures.
weir_status weir__queue_submit(weir_queue *queue, struct weir_operation *operation);

// Destruction of objects that work may still use.
//
// It needs no bookkeeping on the submit path. When an object is destroyed, its frontier is
// made: every busy queue of its device, and of the device's peers, gets a record, unless its
// last operation is one. When all of these are complete, nothing can use the object any more.
// Until then the object stays on the device's list of retired objects, which is checked at
// every create, destroy, sync and trim.
//
// An object that a graph uses gets its frontier after the graph was destroyed.

// Removes the object from its device's list of live objects and finalizes it as soon as no
// work uses it: at once if the device is idle. Never waits for the device.
//
// Threads: safe; the caller holds no lock.
void weir__member_retire(struct weir__member *member);

// Finalizes retired objects of the device that nothing uses any more. It stops at the eighth
// object that is still used, so that no call pays for a long list; each checked object moves
// to the end of the list.
void weir__device_reap(weir_device *device);

// The same, but checks every object.
void weir__device_reap_all(weir_device *device);

// References on queues, which are found by the ids of events.

// Takes a reference to the queue with this id; NULL if it was destroyed.
weir_queue *weir__registry_pin(uint64_t id);

// The next queue of the device, or with NULL of all, with a reference taken, or NULL; drops the reference on
// `queue`. NULL starts.
weir_queue *weir__queue_next(const weir_device *device, weir_queue *queue);

// Whether a queue has had this id: distinguishes an uninitialised event from one of a destroyed
// queue.
bool weir__registry_issued(uint64_t id);

// Drops a reference; accepts NULL. The caller may hold locks: a destroyed queue without references is finalized,
// which joins its worker and calls the driver, by the next check of its device's retired objects.
void weir__registry_unpin(weir_queue *queue);

// Queues that the library owns: the default queues of threads, and the legacy queue of a device: owned.c.

// Destroys those of the device.
void weir__owned_queues_close(weir_device *device);

#endif
