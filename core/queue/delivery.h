// Delivery: passes operations from the front end to the backend.
//
// Plugins come first; operations that the last of them forwards, and without plugins all
// operations, are delivered by their queue. Delivery drops operations that need no driver
// (implied waits, empty operations), and it runs host calls, so that backends do not have to:
// a host call *holds* its queue. While a queue is held its later operations are kept in a
// list, and the queue's worker thread delivers them one after another after the host function
// has returned. A wait for an event that is itself still held, or that belongs to a device
// that is not a peer, holds the waiting queue too. A queue without host calls pays one load
// per submit for this, and has no thread.
//
// Delivery also replays graphs for a backend without graphs: replay.c.
//
// A collective is submitted by its communicator, which holds the queue as a host call does if it is not
// ready, or has no engine in the backend: core/object/comm.h.
//
// So a backend never gets a HOST_CALL or a WAIT for a record that it has not got yet, and a producer of
// another device only if that is a peer.
#ifndef WEIR_CORE_QUEUE_DELIVERY_H
#define WEIR_CORE_QUEUE_DELIVERY_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include <weir/module/host_note.h>
#include <weir/module/module.h>
#include <weir/module/operation.h>

#include "base/thread.h"
#include "core/module/chain.h"
#include "core/object/device.h"
#include "core/support/thread.h"

// Copies of operations: those that wait in a held queue, and those of graphs. A copy
// owns its arguments, values and pattern; one of a held queue also has a reference on a
// wait's producer. Nodes are kept for reuse, so that a loop with host calls allocates nothing
// once it is warm.

struct weir__held {
    STAILQ_ENTRY(weir__held) place;
    size_t capacity; // bytes after this structure
    struct weir_operation operation;
};

STAILQ_HEAD(weir__held_list, weir__held);

// A separate copy, to be freed with weir__release(); NULL if out of memory.
struct weir_operation *weir__operation_clone(const struct weir_operation *operation);

// A queue's part.
struct weir__delivery {
    const struct weir_link *link;    // of weir__delivery_ops
    const struct weir_link *backend; // the next one
    atomic_bool holding;             // later operations go to the list
    atomic_uint_fast64_t delivered;  // the backend has got everything up to here
    struct weir_lock lock;           // of what follows
    pthread_cond_t changed;          // a change of these, or of `delivered` while holding
    struct weir__held_list list; // the first one is what the worker carries out, or comes to next
    struct weir__held_list spare;
    uint64_t lost;       // the last operation that was given up; delivered when the hold ends
    atomic_bool in_call; // the function of a host call runs
    bool has_worker;
    bool stop;
    struct weir_thread worker;
};

// The link between the plugins and the backend: its slots pass plugins' calls back to the
// queue.
extern const struct weir_module_ops weir__delivery_ops;

// Ends the queue's worker. All work of the queue has finished.
void weir__delivery_finish(struct weir__delivery *delivery);

// Waits until operation `sequence` is delivered, or with WEIR__ALL_HELD until nothing is held and the worker no longer
// calls the backend: it may still be flushing when all work of the queue has finished. False: the deadline passed first.
#define WEIR__ALL_HELD UINT64_MAX
bool weir__delivery_await(struct weir__delivery *delivery, uint64_t sequence, uint64_t deadline_ns);

// Delivers an operation that the backend cannot simply get unchanged and at once: see
// weir__queue_deliver().
weir_status weir__deliver(weir_queue *queue, const struct weir_operation *operation);

// weir_host.fail: books the failure of an operation that a plugin's thread could not submit. What waits
// for its delivery goes on once everything before it is delivered.
void weir__delivery_lose(weir_queue *queue, const struct weir_operation *operation,
                         weir_status status);

// Call a function of the program's, which may not wait, and return its status, as an error or as WEIR_OK. Its own
// detail, if it set one, is more precise than its status. A host call gets `cause` as the thread's error; NULL: none,
// since the detail of an earlier function in this thread must not be mistaken for this one's. A native call that ends
// well leaves the thread's error as it was.
weir_status weir__call_host(weir_host_function function, void *user,
                            const struct weir_error *cause);
weir_status weir__call_native(weir_native_function function, void *user,
                              const struct weir_native_queue *native);

// Submits a NATIVE to the backend. The submit lock of `locked` is held, so the function may not call back.
weir_status weir__submit_native(const struct weir_link *backend, weir_queue *locked,
                                weir_queue *queue, const struct weir_operation *operation);

// Delivery of graphs.
//
// A backend with graph_create gets launches and updates as they come, except that an
// update after a launch that a host call holds waits for that launch: earlier launches
// keep their operands. For a backend without it, launches are replayed node by node.
//
// A graph of one branch is replayed on the queue that launches it. A graph that forks
// has an internal queue of the backend for each branch, with records and waits between
// them, so that branches overlap as on their own queues:
//
//     launching queue:  record ──────────────────────────────── wait
//     branch 0:            wait  node  record  node  wait  record
//     branch 1:                         wait  node  record
//
// A collective or a host call that no graph of the backend holds is run when all that comes before it is
// submitted: what does not come after it, on other branches, was submitted too, so that it overlaps.
//
// Launches of a graph are delivered one after another, also from several queues: the
// front end has put a wait between them. On the device the branches order them, or, with
// one branch, the record after each launch, which has the launch's number.

// The slots of the delivery's link.
weir_status weir__replay_create(const struct weir_link *link, weir_device *device,
                                weir_graph *graph, const struct weir_graph_setup *setup,
                                void **out_data);
void weir__replay_destroy(const struct weir_link *link, weir_graph *graph);
weir_status weir__replay_update(const struct weir_link *link, weir_graph *graph, uint32_t index,
                                const struct weir_graph_node *node);

// Delivers a launch to the backend.
weir_status weir__replay_launch(const struct weir_link *link, weir_queue *queue,
                                const struct weir_operation *operation);

// Whether the backend has the graph of a launch.
bool weir__replay_is_in_backend(const struct weir_link *link,
                                const struct weir_operation *operation);

// Whether a launch is held, so that the worker waits for other ranks in its collectives, or runs its host
// calls.
bool weir__replay_waits(const struct weir_link *link, const struct weir_operation *operation);

// Called when the hold of a launch begins, and when that was delivered or dropped.
void weir__replay_hold(const struct weir_link *link, const struct weir_operation *operation,
                       bool begins);

// Host calls that run after a failure too: weir_queue_host_call_always(). One is a HOST_CALL with the
// flag ALWAYS, so plugins treat it as any other, and delivery runs it in any case.
static inline bool weir__is_always(const struct weir_operation *operation)
{
    return operation->flags & WEIR_OPERATION_ALWAYS;
}

// Notes to plugins of what the host does (<weir/module/host_note.h>). Without a link that takes
// notes each costs a test.

// The call that a note is about.
struct weir__host_caller {
    const char *file;
    int line;
    uint32_t flags;       // enum weir_host_note_flags
    const char *function; // for messages, where the call may fail
};

static inline bool weir__takes_notes(const weir_device *device)
{
    return device->chain->host_notes;
}

weir_status weir__host_note_access(enum weir_host_note_kind kind, weir_buffer *buffer,
                                   size_t offset, size_t size, weir_access access,
                                   const struct weir__host_caller *caller);

// `status` is what the call about the event returns. The thread's error stays as it is.
void weir__host_note_complete(weir_queue *producer, struct weir_event event, weir_status status,
                              const struct weir__host_caller *caller);

// RAN, TIMES: operation `sequence` ran in that time of weir_clock_now_ns(). The thread's error stays as
// it is.
void weir__host_note_ran(enum weir_host_note_kind kind, weir_queue *queue, uint64_t sequence,
                         uint64_t begin_ns, uint64_t end_ns,
                         const struct weir__host_caller *caller);

#endif
