// The front end's communicator.
#ifndef WEIR_CORE_OBJECT_COMM_H
#define WEIR_CORE_OBJECT_COMM_H

#include <pthread.h>
#include <stdatomic.h>

#include <weir/module/transport.h>

#include "base/lock.h"
#include "core/object/object.h"
#include "core/support/thread.h"

// How delivery hands over collectives, and launches of graphs with some (WEIR_OPERATION_COLLECTIVES) to a backend that has
// the graph.
struct weir__comm_ops {
    // The first cause as the thread's error, or WEIR_OK.
    weir_status (*status)(weir_comm *comm);
    // Whether the engine of the device carries a collective out, after earlier work of the queue; else the
    // host does, when that has finished.
    bool (*takes)(const struct weir_operation *operation);
    // Whether a graph of the backend's can hold the collective.
    bool (*captures)(const struct weir_operation *node);
    // Whether it can be submitted at once: the engine takes it, all its turns have come, and none of its calls is
    // compared before.
    bool (*is_ready)(const struct weir_operation *operation);
    // Submits a collective that is ready. Under the submit lock of its queue.
    weir_status (*submit)(weir_queue *queue, const struct weir_operation *operation);
    // A collective or a launch, on the worker of its queue unless it is ready: submits it, or carries it out and
    // returns when it is done.
    weir_status (*run)(weir_queue *queue, const struct weir_operation *operation);
    // On the worker of the queue: runs one collective of a launch that is replayed, after earlier work of `lane`; a
    // node whose number there is its sequence.
    weir_status (*run_node)(weir_queue *queue, const struct weir_operation *launch,
                            weir_queue *lane, const struct weir_operation *node);
    // It will not run, or only in part: the thread's error is the reason.
    void (*skip)(const struct weir_operation *operation);
};

struct weir__pulse; // core/comm/pulse.c

struct weir_comm {
    struct weir__member member;
    const struct weir__comm_ops *ops;
    const struct weir_transport_ops *transport;
    void *group;                    // the transport's
    const struct weir_link *engine; // the backend's link; NULL: the transport carries all
    struct weir__pulse *pulse;      // of an engine
    uint32_t rank;
    uint32_t count;
    uint64_t timeout_ns;
    bool check;

    struct weir_lock submit_lock; // while a collective is submitted: numbers follow that
                                  // order, and nearly always one thread submits
    uint32_t next_turn;           // of the next call
    uint64_t number;              // of the last one that all ranks take part in

    _Atomic uint32_t turn; // of the call that may run; written by the call that has it
    atomic_uint waiting;   // threads that wait for theirs, or for the end of the running one
    atomic_bool running;   // a call that waited for its turn has it, and has not ended it
    atomic_bool failed;    // written under the lock
    atomic_bool shrinking; // a thread looks for the ranks that are left

    struct weir_lock lock; // of what follows, and for waiting
    pthread_cond_t changed;
    struct weir_error error; // the first cause

    // Pinned memory for bytes of the device. Used by the call whose turn it is.
    weir_buffer *staging;
};

// That of a collective, the first one of a launch with some.
static inline weir_comm *weir__comm_of(const struct weir_operation *operation)
{
    return operation->kind == WEIR_OPERATION_GRAPH ? operation->u.graph_comms.comms[0].comm
                                                   : operation->u.collective.comm;
}

#endif
