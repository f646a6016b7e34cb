// Delivery: how an operation leaves the front end for the backend.
//
// Plugins come first; what the last of them forwards, and without plugins every operation,
// is delivered by its queue. Delivery drops what needs no driver (implied waits, empty
// operations), and it runs host calls, so that no backend has to: a host call *holds* its
// queue. While a queue is held its later operations are kept in a list, and the queue's
// worker thread delivers them one after another once the host function has returned. A wait
// on an event that is itself still held, or that belongs to a device that is no peer, holds
// the waiting queue too. A queue that never sees a host call pays one load a submit for this,
// and has no thread.
//
// Delivery also replays the graphs of a backend that has none: replay.h.
//
// So a backend never gets a HOST_CALL, never a WAIT on something that it has not been given
// yet, and a producer of another device only if that is a peer.
#ifndef WEIR_CORE_QUEUE_DELIVERY_H
#define WEIR_CORE_QUEUE_DELIVERY_H

#include <pthread.h>
#include <stdatomic.h>

#include <weir/module/module.h>

#include "core/module/chain.h"
#include "core/queue/held.h"
#include "core/support/locks.h"

// A queue's part.
struct weir__delivery {
    const struct weir_link *link;    // of weir__delivery_ops
    const struct weir_link *backend; // the next one
    atomic_bool holding;             // operations go to the list
    atomic_uint_fast64_t delivered;  // the backend was given everything up to here
    struct weir_lock lock;           // of what follows
    pthread_cond_t changed;          // any of it, or `delivered` while holding
    struct weir__held_list list;
    bool has_worker;
    bool stop;
    pthread_t worker;
    struct weir__held *current; // what the worker is at; its own
};

// The link between the plugins and the backend: its slots bring plugins' calls back to the
// queue.
extern const struct weir_module_ops weir__delivery_ops;

void weir__delivery_init(struct weir__delivery *delivery, const struct weir__chain *chain);

// Ends the queue's worker. All work of the queue has finished.
void weir__delivery_finish(struct weir__delivery *delivery);

// Waits until the worker has left the backend for good. All work of the queue has finished,
// but the worker may still be flushing after the last of it.
void weir__delivery_settle(struct weir__delivery *delivery);

// Delivers what is not as simple as an operation that the backend gets as it is, at once:
// see weir__queue_deliver().
weir_status weir__deliver(weir_queue *queue, const struct weir_operation *operation);

#endif
