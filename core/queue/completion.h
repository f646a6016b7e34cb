// The known progress of a queue: its completed operations, its waits, and its
// failures. All failure bookkeeping of Weir is here; drivers never propagate a
// failure.
//
// A failure of operation f makes every event with sequence >= f report it, up to
// the point of recovery. A wait passes it on: if operation w of queue B waits
// for event {A, s} and A has failed at or before s, then B has failed at w, with
// A's cause. This is determined when B is found complete: by then everything in
// A before s is complete too, and its failures are booked.
#ifndef WEIR_CORE_QUEUE_COMPLETION_H
#define WEIR_CORE_QUEUE_COMPLETION_H

#include <pthread.h>
#include <stdatomic.h>

#include <weir/event.h>
#include <weir/status.h>

#include "base/cold.h"
#include "core/support/thread.h"

enum {
    WEIR__CAUSES_KEPT = 32
};

// Operations first..last of a queue report a failure.
struct weir__failure {
    uint64_t first;
    uint64_t last; // UINT64_MAX until recovered
    weir_status status;
    struct weir_error *cause; // NULL: no longer kept
};

// The failures of one queue, the oldest first; the last one may be open. They outlive the queue. What a queue
// recovers from ends the range. The causes of the latest WEIR__CAUSES_KEPT ranges are kept, and of older ones the range and
// the status, so that a queue that fails and recovers for days neither grows much nor gets slow.
struct weir__failures {
    struct weir__failures *next; // of a queue that has failed
    uint64_t queue;
    const weir_runtime *runtime;
    struct weir__failure *ranges;
    size_t count;
    size_t capacity;          // has room for the next range,
    struct weir_error *spare; // and here for its cause, unless memory ran out
};

// One wait: operation `own` of this queue waits for `event`.
struct weir__wait {
    uint64_t own;
    struct weir_event event;
    // `event` is another operation, such as a graph's launch; a backend only knows records
    bool no_record;
    // It only orders the queue (owned.c): it passes on no failure, and tells no progress.
    bool order;
};

// The waits of one queue that are not known to be over, oldest first: a ring with one writer, which
// holds the queue's submit lock, and one reader, which holds the walk lock. The two need no common lock.
struct weir__wait_ring {
    struct weir__wait *ring;
    uint32_t capacity; // 0 or a power of two; changes under both locks
    atomic_uint head;  // counts; the reader moves it
    atomic_uint tail;  // the writer moves it
};

// The place of a count, which is a count modulo the capacity.
static inline struct weir__wait *weir__wait_ring_at(const struct weir__wait_ring *waits,
                                                    unsigned count)
{
    return &waits->ring[count & (waits->capacity - 1)];
}

// Whether a wait in the list is for this event, or a later one of its queue, and passes on its failure.
static inline bool weir__wait_ring_covers(const struct weir__wait_ring *waits,
                                          struct weir_event event)
{
    unsigned head = atomic_load_explicit(&waits->head, memory_order_acquire);
    unsigned tail = atomic_load_explicit(&waits->tail, memory_order_relaxed);

    // Sequences of one queue rise, so its latest decides.
    while (tail-- != head)
        if (weir__wait_ring_at(waits, tail)->event.queue == event.queue &&
            !weir__wait_ring_at(waits, tail)->order)
            return weir__wait_ring_at(waits, tail)->event.sequence >= event.sequence;
    return false;
}

struct weir__completion {
    atomic_uint_fast64_t completed; // this and everything before it has finished
    atomic_bool failed;             // new submissions are refused
    atomic_bool has_failures;       // there are failures, recovered ones
                                    // included
    struct weir__failures *failures;
    struct weir__wait_ring waits;
    atomic_uint_fast32_t refused; // waits that the failed queue did not submit
    uint64_t recoveries;          // failures that have ended; under the submit lock
    // For the walk over queues whose completion is booked; under its lock.
    uint64_t target; // 0: it has not come to this one
    weir_queue *walk_next;
};

// Returns false if out of memory; finishing it is still legal.
bool weir__completion_init(struct weir__completion *completion);

// The queue's failures stay available under its id until weir__completion_forget().
void weir__completion_finish(struct weir__completion *completion);

// Frees the failures of this runtime's queues, which are all destroyed.
void weir__completion_forget(const weir_runtime *runtime);

// Stores the first wait from count `*at` on, which the next call goes on after, if it is of an operation up to `own`. A
// count begins at the ring's head. With no lock held.
bool weir__completion_next_wait(weir_queue *queue, unsigned *at, uint64_t own,
                                struct weir__wait *out_wait);

// Books a failure at operation `first` with `cause` as its detail.
WEIR_COLD void weir__completion_fail(weir_queue *queue, uint64_t first,
                                     const struct weir_error *cause);

// Books that everything up to `sequence` has finished, here and in the queues
// that this implies.
void weir__completion_complete(weir_queue *queue, uint64_t sequence);

// Whether the queue ever failed.
static inline bool weir__completion_has_failures(const struct weir__completion *completion)
{
    return atomic_load_explicit(&completion->has_failures, memory_order_acquire);
}

// The status of an event that is complete, whose queue is `producer`, or NULL if that is destroyed: WEIR_OK, or the
// first cause as the thread's error.
weir_status weir__event_status(const weir_queue *producer, struct weir_event event);

static inline weir_status weir__completion_status(const weir_queue *queue, uint64_t sequence)
{
    return weir__event_status(queue, (struct weir_event){.sequence = sequence});
}

// The first cause that makes a failed queue refuse submissions, as the thread's
// error.
WEIR_COLD weir_status weir__completion_refuse(weir_queue *queue);

// The first operation of the present failure; UINT64_MAX: none. What the queue freed from there on may be
// in use: see weir__refused_note().
uint64_t weir__completion_failed_from(weir_queue *queue);

// Ends the present failure: it does not cover operations after `sequence`. The producers of its waits
// have ended. With the submit lock held.
void weir__completion_recover(weir_queue *queue, uint64_t sequence);

// How many failures have ended so, in all queues.
uint64_t weir__completion_recoveries(void);

// The waits of a failed queue. The driver may have refused them, or never got them, so the queue's end
// says nothing about their producers. They are kept until the queue is recovered or gone, which comes
// after all that was submitted to any queue: until then what it freed may be in use.

// Notes a wait that a failed queue did not submit, for an event or for another operation of the producer's.
// With the submit lock held.
WEIR_COLD void weir__refused_note(weir_queue *queue, struct weir_event event, bool is_record);

// Whether the queue has failed and has such waits.
bool weir__refused_any(weir_queue *queue);

// Waits on the host for the records that the queue's operations before `sequence` wait for. Keeps the
// thread's error. With no lock held.
void weir__refused_await(weir_queue *queue, uint64_t sequence);

#endif
