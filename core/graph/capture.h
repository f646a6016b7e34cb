// Captures: operations on a queue are noted for a graph and not submitted.
//
// A queue that captures points to its capture; the pointer changes only under the
// queue's submit lock. An event of a capture is distinguished from others by its
// sequence number: the highest bit is set, the 31 bits below it identify the
// capture, and the rest the record.
#ifndef WEIR_CORE_GRAPH_CAPTURE_H
#define WEIR_CORE_GRAPH_CAPTURE_H

#include <weir/module/operation.h>

#include "core/queue/queue.h"

// Whether a capture with the number in the event has existed.
bool weir__capture_was(struct weir_event event);

static inline bool weir__is_captured(struct weir_event event)
{
    return event.sequence >> 63 && weir__capture_was(event);
}

// Makes the queue wait for an event of a capture; it joins the capture unless it is part of it.
weir_status weir__capture_wait(weir_queue *queue, struct weir_event event, const char *file,
                               int line);

// Refuses an event of a capture that is used outside of it.
weir_status weir__capture_refuse_event(const char *function, const char *object, const char *file,
                                       int line);

#endif
