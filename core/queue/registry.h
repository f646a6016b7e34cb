// Finding the queue of an event. An event holds a queue's id and outlives the
// queue, so the id is looked up: without a lock, and safely against the queue
// being destroyed on another thread.
//
// An id is (generation << 16 | slot). Slots are never freed, so a lookup with a stale id may
// read one; it then finds another id, or no references, and returns NULL.
#ifndef WEIR_CORE_QUEUE_REGISTRY_H
#define WEIR_CORE_QUEUE_REGISTRY_H

#include <weir/common.h>

// Gives the queue its id, under which it cannot be found yet. Returns false when
// 65,536 queues exist or memory is out.
bool weir__registry_reserve(weir_queue *queue);

// From here on the queue can be found; the caller has one reference.
void weir__registry_publish(weir_queue *queue);

// Frees an id that was reserved and never published.
void weir__registry_cancel(weir_queue *queue);

// Takes a reference to the queue with this id; NULL if it was destroyed.
weir_queue *weir__registry_pin(uint64_t id);

// The first queue that exists in slot `*index` or after it, with a reference, and the slot after its own in
// `*index`; NULL: none.
weir_queue *weir__registry_next(uint32_t *index);

// Whether a queue has had this id: distinguishes an uninitialised event from one of a destroyed
// queue.
bool weir__registry_issued(uint64_t id);

// Drops a reference. The last one finalizes the queue on this thread, which joins its worker
// and calls the driver: the caller holds no lock.
void weir__registry_unpin(weir_queue *queue);

// The same for a caller that may hold locks: a queue whose last reference is dropped here is
// finalized by the next weir__registry_finalize_ended() of its device.
void weir__registry_unpin_later(weir_queue *queue);

// Finalizes such queues of the device. The caller holds no lock, and is in no host call.
void weir__registry_finalize_ended(weir_device *device);

#endif
