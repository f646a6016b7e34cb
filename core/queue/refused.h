// The waits of a failed queue. The driver may have refused them, or never got them, so the queue's end
// says nothing about their producers. They are kept until the queue is recovered or gone, which comes
// after the ends of the producers: until then what it freed may be in use.
//
// A producer may have failed too, and have such waits of its own; these count as waits of the queue.
// One that reports a failure to a wait or a query has ended.
#ifndef WEIR_CORE_QUEUE_REFUSED_H
#define WEIR_CORE_QUEUE_REFUSED_H

#include <weir/event.h>

#include "base/cold.h"
#include "core/queue/wait_ring.h"

// Notes a wait that a failed queue did not submit, for an event or for another operation of the producer's.
// With the submit lock held.
WEIR_COLD void weir__refused_note(weir_queue *queue, struct weir_event event, bool is_record);

// Waits for the producers. The caller holds no lock, and the queue has finished.
void weir__refused_await(weir_queue *queue);

// Whether there is a wait whose producer is not known to have ended.
bool weir__refused_any(weir_queue *queue);

// The same, with a query of the driver. The caller holds no lock.
bool weir__refused_are_over(weir_queue *queue);

// Stores the first wait for a record, after operation `after` and up to `own`, whose producer is not known to
// have ended; false: none. Waits without a record, for a launch, are passed over.
bool weir__refused_next(weir_queue *queue, uint64_t after, uint64_t own,
                        struct weir__wait *out_wait);
// It has ended.
void weir__refused_end(weir_queue *queue, const struct weir__wait *wait);

#endif
