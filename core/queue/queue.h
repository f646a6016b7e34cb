// The front end's queue.
#ifndef WEIR_CORE_QUEUE_QUEUE_H
#define WEIR_CORE_QUEUE_QUEUE_H

#include "base/biased_lock.h"
#include "base/cold.h"
#include "core/object/device.h"
#include "core/queue/completion.h"
#include "core/support/thread.h"

struct weir__capture;

// What an operation reads is in the member's first line and in the two behind the member.
struct weir_queue {
    struct weir__member member;
    struct weir_biased_lock submit_lock;   // one thread nearly always has a queue to itself
    uint64_t last_record;                  // number of the last record; under the lock
    const struct weir_link *first;         // of the chain
    uint64_t sequence;                     // of the last operation submitted; under the lock
    atomic_uint_fast64_t seen;             // `sequence`, for reading without the lock
    struct weir__capture *_Atomic capture; // that it is part of; changes under the lock
    uint64_t turn;         // of the legacy queue, that this one is behind of; under the lock
    atomic_bool wrapped;   // the caller may submit to the native queue: until it is destroyed
    atomic_bool in_native; // a native call of it runs
    bool foreign;          // the native queue is the caller's
    bool timing;
    struct weir__progress progress;
    enum weir__queue_owner owner;
    struct weir__legacy_view legacy; // under the lock
    weir_queue *previous;            // the device's list of queues
    weir_queue *next;
};

// Creates a queue of checked parameters. `setup->times` is filled in.
weir_status weir__queue_open(weir_device *device, const char *label, struct weir_queue_setup *setup,
                             weir_queue **out_queue);

// Frees a queue that has finished and that nothing refers to any more.
void weir__queue_finalize(weir_queue *queue);

// Names the present end of the queue by an event: its last record if nothing
// came after it, else a new internal one, also on a failed queue. What came after the
// last record of a wrapped queue is not known, so that gets a new one always. Stores
// sequence 0 when everything is known to be complete, or the device is lost. Returns false
// when the record was refused, by the driver or for want of memory.
bool weir__queue_mark(weir_queue *queue, struct weir_event *out_event);

// The same with the submit lock held, whether or not anything is complete. A refusal is
// the thread's error.
bool weir__queue_mark_locked(weir_queue *queue, struct weir_event *out_event);

// Waits for an event whose producer the caller keeps alive. With the submit lock held, on a
// queue that has not failed.
weir_status weir__queue_wait_locked(weir_queue *queue, struct weir_event event,
                                    weir_queue *producer, uint32_t flags, const char *file,
                                    int line);

// Takes the queue's submit lock for a call of the user's. What the legacy queue's order
// needs to come first is in the queue then; where it could not be, the queue has failed.
static inline void weir__queue_enter(weir_queue *queue)
{
    weir_biased_lock_take(&queue->submit_lock);
    if (atomic_load_explicit(&queue->member.device->migration.turn, memory_order_relaxed) !=
        queue->turn)
        weir__migration_order(queue);
}

// Whether a native call of the queue calls back into it, on this thread, which has the
// submit lock then; and the sentence for that.
static inline bool weir__queue_is_called_back(const weir_queue *queue)
{
    return atomic_load_explicit(&queue->in_native, memory_order_relaxed) && weir__in_native_call();
}
WEIR_COLD weir_status weir__queue_refuse_callback(const weir_queue *queue);

// Gives the operation its number and sends it down the chain. With the submit lock
// held, on a queue that has not failed.
weir_status weir__queue_submit_locked(weir_queue *queue, struct weir_operation *operation);

// The same with the lock taken here; refuses on a failed queue, and notes on one that
// captures.
weir_status weir__queue_submit(weir_queue *queue, struct weir_operation *operation);

// Submits the launch of a graph, behind the launch `before` of the same graph, which is
// named as if it were a record; zero: there is none.
weir_status weir__queue_submit_launch(weir_queue *queue, struct weir_operation *operation,
                                      struct weir_event before);

// Waits for everything and books it as complete.
weir_status weir__queue_finish(weir_queue *queue);

// Books a failure of operation `sequence`, made at file:line, from the thread's
// error detail, and leaves the first cause in that detail.
WEIR_COLD weir_status weir__queue_fail(weir_queue *queue, const struct weir_operation *operation,
                                       weir_status status);

#endif
