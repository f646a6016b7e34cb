// The order that the legacy queue keeps against all other queues of its device.
#ifndef WEIR_CORE_QUEUE_LEGACY_H
#define WEIR_CORE_QUEUE_LEGACY_H

#include <weir/event.h>

struct weir__legacy;

// A queue's part: how it and the legacy queue stand to each other.
struct weir__legacy_view {
    struct weir_event end; // of the legacy queue, that it waited for last
    uint64_t saw;          // the legacy queue is behind this one up to here,
    uint64_t epoch;        // unless it has another epoch now
};

void weir__legacy_init(struct weir__legacy *order);
void weir__legacy_finish(struct weir__legacy *order);

// Destroys the device's legacy queue.
void weir__legacy_close(weir_device *device);

// Brings the queue behind what must come before its next operation: on the legacy queue
// everything else, on another queue the legacy one. Called and left with the queue's
// submit lock held; meanwhile it is not.
void weir__legacy_order(weir_queue *queue);

// A queue has finished and its failure is cleared. With its submit lock held.
void weir__legacy_recovered(weir_queue *queue);

#endif
