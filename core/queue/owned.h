// Queues that the library owns: the default queues of threads, and the legacy
// queue of a device.
#ifndef WEIR_CORE_QUEUE_OWNED_H
#define WEIR_CORE_QUEUE_OWNED_H

#include <weir/migration.h>

// The owner of a queue, which alone may destroy it.
enum weir__queue_owner {
    WEIR__OWNED_BY_USER = 0,
    WEIR__OWNED_BY_THREAD,
    WEIR__OWNED_BY_DEVICE, // the legacy queue
};

// Reports the error of weir_queue_destroy() for a queue that is not the user's.
void weir__queue_refuse_destroy(const weir_queue *queue);

// Destroys all threads' queues of the device.
void weir__thread_queues_close(weir_device *device);

// The order that the legacy queue keeps against all other queues of its device.

// Destroys the device's legacy queue.
void weir__legacy_close(weir_device *device);

// Orders the queue after the work that must come before its next operation: for the
// legacy queue all other queues, for another queue the legacy queue. The queue's submit
// lock is held at the call and at the return, but released meanwhile.
void weir__legacy_order(weir_queue *queue);

#endif
