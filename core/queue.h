// The front end's queue.
#ifndef WEIR_CORE_QUEUE_H
#define WEIR_CORE_QUEUE_H

#include "core/device.h"
#include "core/progress.h"

struct weir__hold;

struct weir_queue {
    struct weir__member member;
    const struct weir_link *first; // of the chain
    bool timing;
    pthread_mutex_t submit_lock;
    uint64_t sequence;         // of the last operation submitted; under the lock
    uint64_t last_record;      // of the last record
    atomic_uint_fast64_t seen; // `sequence`, for reading without the lock
    struct weir__progress progress;
    weir_queue *previous; // the device's list of queues
    weir_queue *next;
};

// Frees a queue that has finished and that nothing refers to any more.
void weir__queue_finalize(weir_queue *queue);

// Names the present end of the queue by an event: its last record if nothing
// came after it, else a new internal one, also on a failed queue. Stores
// sequence 0 when everything is known to be complete. Returns false when the
// record was refused, by the driver or for want of memory.
bool weir__queue_mark(weir_queue *queue, struct weir_event *out_event);

// Waits for everything and books it as complete.
weir_status weir__queue_finish(weir_queue *queue);

// Books a failure of operation `sequence`, made at file:line, from the thread's
// error detail, and leaves the first cause in that detail.
weir_status weir__queue_fail(weir_queue *queue, const struct weir_operation *operation,
                             weir_status status);

#endif
