// Queues that belong to a thread or to the device, and the order that the legacy queue
// keeps against all others.
#ifndef WEIR_CORE_QUEUE_LEGACY_H
#define WEIR_CORE_QUEUE_LEGACY_H

#include <pthread.h>
#include <stdatomic.h>

#include <weir/event.h>
#include <weir/migration.h>

struct weir__thread_queue;

// Who destroys a queue.
enum weir__queue_owner {
    WEIR__OWNED_BY_USER = 0,
    WEIR__OWNED_BY_THREAD,
    WEIR__OWNED_BY_DEVICE, // the legacy queue
};

// A queue's part: how it and the legacy queue stand to each other.
struct weir__legacy_view {
    struct weir_event end; // of the legacy queue, that it waited for last
    uint64_t saw;          // the legacy queue is behind this one up to here,
    uint64_t epoch;        // unless it has another epoch now
};

// A device's part.
struct weir__migration {
    // Operations begun on the legacy queue. Each queue has the number that it is behind
    // of, and looks at this one at every operation.
    atomic_uint_fast64_t turn;
    // Recoveries of the legacy queue, behind each of which it waits for everything anew:
    // when it failed it may have left out waits. Changes under its submit lock.
    atomic_uint_fast64_t epoch;
    pthread_mutex_t lock; // taken before any submit lock, never inside one
    weir_queue *legacy;
    struct weir__thread_queue *thread_queues; // under the lock of all threads' lists
};

void weir__migration_init(struct weir__migration *migration);
void weir__migration_finish(struct weir__migration *migration);

// Destroys the device's legacy queue and all threads' queues of it.
void weir__migration_close(weir_device *device);

// Brings the queue behind what must come before its next operation: on the legacy queue
// everything else, on another queue the legacy one. Called and left with the queue's
// submit lock held; meanwhile it is not.
void weir__migration_order(weir_queue *queue);

// A queue has finished and its failure is cleared. With its submit lock held.
void weir__migration_recovered(weir_queue *queue);

// What weir_queue_destroy() says to who destroys a queue that is not theirs.
void weir__migration_refuse_destroy(const weir_queue *queue);

#endif
