// Shared by the files of the delivery: delivery.c has submission and the link's slots,
// delivery_worker.c what a queue's worker does while the queue is held.
#ifndef WEIR_CORE_QUEUE_DELIVERY_PARTS_H
#define WEIR_CORE_QUEUE_DELIVERY_PARTS_H

#include <stdatomic.h>

#include <weir/module/module.h>

#include "core/queue/queue.h"

// The link of the backend of the queue's chain.
static inline const struct weir_link *weir__delivery_backend(const weir_queue *queue)
{
    return queue->delivery.backend;
}

static inline bool weir__is_delivered(const weir_queue *queue, uint64_t sequence)
{
    return atomic_load_explicit(&queue->delivery.delivered, memory_order_acquire) >= sequence;
}

// More follow with the number of a PART.
static inline void weir__note_delivered(weir_queue *queue, const struct weir_operation *operation)
{
    if (operation->flags & WEIR_OPERATION_PART)
        return;
    atomic_store_explicit(&queue->delivery.delivered, operation->sequence, memory_order_release);
}

// delivery.c

// Hands the operation to the backend, which can take it now.
weir_status weir__delivery_submit(weir_queue *queue, const struct weir_operation *operation);

// Whether the device orders the wait once the producer's record is with its driver; for devices
// that are not peers only the host can.
bool weir__is_ordered_by_device(const weir_queue *queue, const weir_queue *producer);

// delivery_worker.c

// The worker of a queue, `argument`: delivers what is held until the delivery is to stop.
void weir__delivery_work(void *argument);

#endif
