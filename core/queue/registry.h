// Finding the queue of an event. An event holds a queue's id and outlives the
// queue, so the id is looked up: without a lock, and safely against the queue
// being destroyed on another thread.
//
// An id is (generation << 16 | slot). Slots are never freed, so a stale id may
// read one; it then sees another id, or no references, and is told NULL.
#ifndef WEIR_CORE_QUEUE_REGISTRY_H
#define WEIR_CORE_QUEUE_REGISTRY_H

#include <weir/common.h>

// Gives the queue its id, under which it cannot be found yet. Returns false when
// 65,536 queues exist or memory is out.
bool weir__registry_reserve(weir_queue *queue);

// From here on the queue can be found; the caller has one reference.
void weir__registry_publish(weir_queue *queue);

// Gives back an id that was reserved and never published.
void weir__registry_cancel(weir_queue *queue);

// Takes a reference on the queue with this id; NULL when it is gone.
weir_queue *weir__registry_pin(uint64_t id);

// Whether a queue ever had this id. An event that was never written, and so
// names none, is told from one of a queue that is gone.
bool weir__registry_issued(uint64_t id);

// Drops a reference. The last one frees the slot and calls
// weir__queue_finalize() on this thread.
void weir__registry_unpin(weir_queue *queue);

#endif
