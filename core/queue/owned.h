// Queues that the library owns: the default queues of threads, and the legacy
// queue of a device.
#ifndef WEIR_CORE_QUEUE_OWNED_H
#define WEIR_CORE_QUEUE_OWNED_H

#include <weir/event.h>
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

struct weir__legacy;

// A queue's part: its order relative to the legacy queue.
struct weir__legacy_view {
    struct weir_event end; // of the legacy queue, that it waited for last
    uint64_t saw;          // the legacy queue comes after this one up to here,
    uint64_t epoch;        // unless it has another epoch now
};

void weir__legacy_init(struct weir__legacy *order);
void weir__legacy_finish(struct weir__legacy *order);

// Destroys the device's legacy queue.
void weir__legacy_close(weir_device *device);

// Orders the queue after the work that must come before its next operation: for the
// legacy queue all other queues, for another queue the legacy queue. The queue's submit
// lock is held at the call and at the return, but released meanwhile.
void weir__legacy_order(weir_queue *queue);

// A queue has finished and its failure is cleared. With its submit lock held.
void weir__legacy_recovered(weir_queue *queue);

#endif
