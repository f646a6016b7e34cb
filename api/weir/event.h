// An event is a value: it names one point of one queue's past. There is nothing
// to create or destroy, and it is never recorded again; weir_queue_record()
// returns a new one each time.
//
// An event of a queue that is gone reads complete, or as that queue's first
// failure. A zeroed event is an error everywhere.
#ifndef WEIR_EVENT_H
#define WEIR_EVENT_H

#include <weir/common.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_event {
    uint64_t queue;    // id of the queue; never used again
    uint64_t sequence; // number of the record among the queue's operations, from 1
};

// Returns WEIR_OK if everything up to the event has finished, WEIR_NOT_READY if
// not, or the first failure that the event is behind. Never blocks.
//
// Errors: WEIR_ERROR_INVALID for an event that no queue recorded, and for one that
// was recorded in a capture; they hold for the functions below too.
WEIR_API weir_status weir_event_query(struct weir_event event);

// Waits on the host until the event is complete. A `timeout_ns` of 0 asks once;
// WEIR_FOREVER waits without end.
//
// Threads: safe, but not from inside a host call, where nothing may wait.
// Errors: WEIR_TIMEOUT (not an error); the first failure that the event is
// behind, with operation, queue, file:line and native error in the detail.
WEIR_API weir_status weir_event_sync(struct weir_event event, uint64_t timeout_ns);

// Waits until any, or all, of `count` events are complete. weir_event_sync_any
// stores the index of a complete event in `*out_index`.
//
// Errors: as weir_event_sync(); a failed event counts as complete and its
// failure is returned.
WEIR_API weir_status weir_event_sync_any(const struct weir_event *events, size_t count,
                                         uint64_t timeout_ns, size_t *out_index);
WEIR_API weir_status weir_event_sync_all(const struct weir_event *events, size_t count,
                                         uint64_t timeout_ns);

// Returns the first failure that the event is behind, WEIR_OK if it completed
// without one, or WEIR_NOT_READY.
WEIR_API weir_status weir_event_error(struct weir_event event);

// Stores when a complete event was reached, in nanoseconds on a timeline that
// all queues of its device share. The queue must have been created with
// `timing`.
//
// Errors: WEIR_NOT_READY; WEIR_ERROR_INVALID without timing;
// WEIR_ERROR_EXPIRED behind the last `limits.timing_history` timed records.
WEIR_API weir_status weir_event_time_ns(struct weir_event event, uint64_t *out_time_ns);

// Stores a new eventfd that becomes readable when the event is complete or has
// failed, for poll() and epoll loops.
//
// Ownership: of the descriptor the caller's, who closes it after it became
// readable, or at any time.
// Errors: WEIR_ERROR_SYSTEM if there are no descriptors left.
WEIR_API weir_status weir_event_fd(struct weir_event event, int *out_fd);

#ifdef __cplusplus
}
#endif

#endif
