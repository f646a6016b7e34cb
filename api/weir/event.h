// An event is a value that names one point in the order of one queue. It is not
// created or destroyed and is never recorded again: every weir_queue_record()
// returns a new event.
//
// An event of a destroyed queue reads as complete, or as that queue's first
// failure. A zeroed event is an error in every call. An event "depends on" a
// failure if the failed operation comes before it in its queue, or in a queue that
// its queue waited for.
#ifndef WEIR_EVENT_H
#define WEIR_EVENT_H

#include <weir/common.h>
#include <weir/status.h>

// Closed.
struct weir_event {
    uint64_t queue;    // id of the queue, which no later queue gets
    uint64_t sequence; // number of the record among the queue's operations, from 1
};

// Returns WEIR_OK if everything before the event has finished, WEIR_NOT_READY if
// it has not, or the first failure that the event depends on. Never blocks.
//
// Errors: WEIR_ERROR_INVALID for an event that no queue recorded, and for one that
// was recorded in a capture. The functions below return these errors too.
WEIR_CALL weir_status weir_event_query_at(struct weir_event event, const char *file, int line);
#define weir_event_query(...) weir_event_query_at(__VA_ARGS__, __FILE__, __LINE__)

// Waits on the host until the event is complete. A `timeout_ns` of 0 polls once;
// WEIR_FOREVER waits without a time limit.
//
// Threads: safe, but not allowed inside a host call, which must not wait.
// Errors: WEIR_TIMEOUT (not an error), after which weir_last_error_text() says what has not ended:
// the queue, the queues that it waits for, the host call that has not returned; the first failure that
// the event depends on, with operation, queue, file:line and native error in the detail.
WEIR_CALL weir_status weir_event_sync_at(struct weir_event event, uint64_t timeout_ns,
                                         const char *file, int line);
#define weir_event_sync(...) weir_event_sync_at(__VA_ARGS__, __FILE__, __LINE__)

// Waits until any, or all, of `count` events are complete. weir_event_sync_any()
// stores the index of a complete event in `*out_index`.
//
// Errors: as weir_event_sync(). A failed event counts as complete, and its failure
// is returned; weir_event_sync_all() returns it once all events are complete, and WEIR_TIMEOUT
// before that.
WEIR_CALL weir_status weir_event_sync_any_at(const struct weir_event *events, size_t count,
                                             uint64_t timeout_ns, size_t *out_index,
                                             const char *file, int line);
WEIR_CALL weir_status weir_event_sync_all_at(const struct weir_event *events, size_t count,
                                             uint64_t timeout_ns, const char *file, int line);
#define weir_event_sync_any(...) weir_event_sync_any_at(__VA_ARGS__, __FILE__, __LINE__)
#define weir_event_sync_all(...) weir_event_sync_all_at(__VA_ARGS__, __FILE__, __LINE__)

// Returns the first failure that the event depends on, WEIR_OK if it completed
// without one, or WEIR_NOT_READY.
WEIR_CALL weir_status weir_event_error_at(struct weir_event event, const char *file, int line);
#define weir_event_error(...) weir_event_error_at(__VA_ARGS__, __FILE__, __LINE__)

// Stores the time at which the device reached a complete event, in nanoseconds on
// a timeline that all queues of its device share. The queue must have been created
// with `timing`.
//
// Errors: WEIR_NOT_READY; WEIR_ERROR_INVALID without timing; WEIR_ERROR_EXPIRED
// for an event older than the queue's last `limits.timing_history` timed records.
WEIR_CALL weir_status weir_event_time_ns_at(struct weir_event event, uint64_t *out_time_ns,
                                            const char *file, int line);
#define weir_event_time_ns(...) weir_event_time_ns_at(__VA_ARGS__, __FILE__, __LINE__)

// Stores the time from `begin` to `end` on the device, in nanoseconds, negative if `end` came first.
// Both are records on queues of one device.
//
// Errors: as weir_event_time_ns(); WEIR_ERROR_INVALID for events of two devices.
WEIR_CALL weir_status weir_event_elapsed_ns_at(struct weir_event begin, struct weir_event end,
                                               int64_t *out_elapsed_ns, const char *file, int line);
#define weir_event_elapsed_ns(...) weir_event_elapsed_ns_at(__VA_ARGS__, __FILE__, __LINE__)

// Stores a new eventfd that becomes readable when the event is complete or has
// failed, for poll() and epoll loops.
//
// Ownership: the descriptor is the caller's, to be closed at any time, before or
// after it became readable.
// Errors: WEIR_ERROR_SYSTEM if there are no descriptors left.
WEIR_CALL weir_status weir_event_fd_at(struct weir_event event, int *out_fd, const char *file,
                                       int line);
#define weir_event_fd(...) weir_event_fd_at(__VA_ARGS__, __FILE__, __LINE__)

#endif
