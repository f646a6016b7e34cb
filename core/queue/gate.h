// The last hop: the link of core's own between the plugins and the backend.
//
// It drops what needs no driver (implied waits, empty operations), and it runs
// host calls, so that no backend has to: a host call *holds* its queue. While a
// queue is held, its later operations are kept in a list, and the queue's worker
// thread hands them to the backend one after another once the host function has
// returned. A wait on an event that is itself still held, or that belongs to
// a device that is no peer, holds the waiting queue too. A queue that never sees a host
// call pays one load a submit for all this, and has no thread.
//
// It also stands in for the graphs of a backend that has none: replay.h.
//
// So a backend never gets a HOST_CALL, never a WAIT on something that it has
// not been given yet, and a producer of another device only from a peer.
#ifndef WEIR_CORE_QUEUE_GATE_H
#define WEIR_CORE_QUEUE_GATE_H

#include <weir/module/module.h>

extern const struct weir_module_ops weir__last_hop_ops;

// Waits until the queue's worker has left the backend for good. All work of the
// queue has finished, but the worker may still be flushing behind the last of it.
void weir__last_hop_settle(const struct weir_link *link, const weir_queue *queue);

#endif
