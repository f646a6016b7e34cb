// The order that the legacy queue keeps against all other queues of its device.
#ifndef WEIR_CORE_QUEUE_LEGACY_H
#define WEIR_CORE_QUEUE_LEGACY_H

#include <weir/event.h>

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
