// What is known of a queue's progress: how far it has come, what it waits for,
// and its failures. All failure bookkeeping of Weir is here; drivers are never
// asked to propagate one.
//
// A failure of operation f makes every event with sequence >= f report it, up
// to the point of recovery. A wait carries it over: when operation w of queue B
// waits on event {A, s} and A has failed at or before s, then B has failed at w,
// with A's cause. That is worked out when completion of B is learned: by then
// everything A did before s is complete too, and its failures are booked.
#ifndef WEIR_CORE_QUEUE_COMPLETION_H
#define WEIR_CORE_QUEUE_COMPLETION_H

#include <pthread.h>
#include <stdatomic.h>

#include <weir/event.h>
#include <weir/status.h>

#include "base/cold.h"
#include "core/queue/wait_ring.h"
#include "core/support/locks.h"

struct weir__failure;

struct weir__completion {
    atomic_uint_fast64_t completed; // this and everything before it has finished
    atomic_bool failed;             // new submissions are refused
    atomic_bool has_failures;       // there are any, recovered ones included
    struct weir_lock lock;          // of the failures; a leaf
    struct weir__failure *failures;
    struct weir__failure *spare; // for the cause that there is no memory for
    struct weir__failure *kept;  // these and what follows them outlive the queue
    struct weir__wait_ring waits;
    // Of the walk over queues that learn of a completion; under its lock.
    uint64_t target;
    weir_queue *walk_next;
};

// Returns false when there is no memory; finishing it is legal then.
bool weir__completion_init(struct weir__completion *completion);

// Before the queue can no longer be found: its failures stay findable under its
// id until weir__completion_forget().
void weir__completion_keep_failures(weir_queue *queue);

void weir__completion_finish(struct weir__completion *completion);

// Forgets the failures of gone queues of this runtime.
void weir__completion_forget(weir_runtime *runtime);

// Notes that operation `own` waits on `event` of `producer`, or stores true in
// `*out_implied` and notes nothing where the queue is behind the event already.
// Under the queue's submit lock. Where the event turns out to have failed, so
// has the queue, and the cause is returned. `flags` are the operation's.
weir_status weir__completion_wait(weir_queue *queue, uint64_t own, struct weir_event event,
                                  weir_queue *producer, uint32_t flags, bool *out_implied);

// Books a failure at operation `first` with `cause` as its detail.
WEIR_COLD void weir__completion_fail(weir_queue *queue, uint64_t first,
                                     const struct weir_error *cause);

// Books that everything up to `sequence` has finished, here and in the queues
// that this implies.
void weir__completion_complete(weir_queue *queue, uint64_t sequence);

// The status of an event that is complete: WEIR_OK, or the first cause as the
// thread's error.
weir_status weir__completion_status(weir_queue *queue, uint64_t sequence);
weir_status weir__completion_status_gone(struct weir_event event);

// The first cause that makes a failed queue refuse submissions, as the thread's
// error.
WEIR_COLD weir_status weir__completion_refuse(weir_queue *queue);

// Ends the present failure: operations after `sequence` are free of it.
void weir__completion_recover(weir_queue *queue, uint64_t sequence);

#endif
