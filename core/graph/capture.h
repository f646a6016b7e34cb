// Captures: what a queue is given is noted for a graph and not submitted.
//
// A queue that captures points to its capture; the pointer changes under the queue's
// submit lock only. An event of a capture is told from others by its sequence: the
// highest bit is set, 31 bits below it name the capture, and the rest the record.
#ifndef WEIR_CORE_GRAPH_CAPTURE_H
#define WEIR_CORE_GRAPH_CAPTURE_H

#include <weir/module/operation.h>

#include "core/queue/queue.h"

static inline bool weir__is_capturing(const weir_queue *queue)
{
    return atomic_load_explicit(&queue->capture, memory_order_relaxed) != NULL;
}

// Whether there ever was a capture of the number that the event tells.
bool weir__capture_was(struct weir_event event);

static inline bool weir__is_captured(struct weir_event event)
{
    return event.sequence >> 63 && weir__capture_was(event);
}

// Notes the operation and stores what the call is to return. False: the capture has just
// ended, and the operation is to be submitted. With the submit lock held, on a queue that
// captures.
bool weir__capture_note(weir_queue *queue, const struct weir_operation *operation,
                        weir_status *out_status);

// The same for a record.
bool weir__capture_record(weir_queue *queue, struct weir_event *out_event, weir_status *out_status);

// The queue waits on an event of a capture, which it joins unless it is part of it.
weir_status weir__capture_wait(weir_queue *queue, struct weir_event event, const char *file,
                               int line);

// Refuses what a queue that captures cannot do. `why` is a clause that names the thing.
weir_status weir__capture_refuse(const weir_queue *queue, const char *file, int line,
                                 const char *why, const char *remedy);

// Refuses an event of a capture outside of it.
weir_status weir__capture_refuse_event(const char *function, const char *object, const char *file,
                                       int line);

// Ends the capture that the queue is part of, if there is one, and drops it.
void weir__capture_abandon(weir_queue *queue);

#endif
