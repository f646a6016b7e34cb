// The front end's graph, and the parts that a capture makes it of.
#ifndef WEIR_CORE_GRAPH_GRAPH_H
#define WEIR_CORE_GRAPH_GRAPH_H

#include <weir/event.h>
#include <weir/module/operation.h>

#include "base/lock.h"
#include "core/object/object.h"
#include "core/queue/queue.h"

// Nodes, with the data that they point to. Each buffer and kernel in them counts as used
// once for every reference to it.
struct weir__graph_parts {
    struct weir_graph_node *nodes;
    uint32_t node_count;
    size_t node_capacity;
    uint32_t branch_count;
    bool without_buffers; // buffers no longer count as used
};

// The copy that the node points to.
static inline struct weir_operation *weir__graph_operation(const struct weir__graph_parts *parts,
                                                           uint32_t index)
{
    return (struct weir_operation *)(uintptr_t)parts->nodes[index].operation;
}

// What a graph's launches need for its collectives; constant but for the numbers and turns.
struct weir__graph_comms {
    const struct weir_operation **collectives; // in the order of nodes
    uint32_t collective_count;
    // By their ids, the order in which their locks are taken; with the numbers and turns of the last launch, under the
    // graph's lock.
    struct weir_graph_comm *comms;
    uint32_t count;
};

struct weir_graph {
    struct weir__member member;
    struct weir_lock lock; // launches and updates; taken before a submit lock
    struct weir__graph_parts parts;
    struct weir__graph_comms comms;
    struct weir_event launched; // the last launch; zero: none
};

// Makes a graph of the parts, and takes ownership of them unless it fails. Takes no lock of a graph.
weir_status weir__graph_create(weir_device *device, const char *label,
                               struct weir__graph_parts *parts, weir_graph **out_graph);

// Counts the buffers, the kernel and the communicator of an operation as used once more, or with -1 once less.
void weir__operation_count(const struct weir_operation *operation, int change);

// Adds a node of copies of the operation and its dependencies, and counts what it names as used. False: out of memory.
bool weir__graph_parts_add(struct weir__graph_parts *parts, const struct weir_graph_node *node);

// Frees the parts and their references.
void weir__graph_parts_finish(struct weir__graph_parts *parts);

// Captures: operations on a queue are noted for a graph and not submitted.
//
// A queue that captures points to its capture. An event of a capture is distinguished from others by its
// sequence number: the highest bit is set, the 31 bits below it identify the
// capture, and the rest the record.

// Whether a capture with the number in the event has existed.
bool weir__capture_was(struct weir_event event);

static inline bool weir__is_captured(struct weir_event event)
{
    return event.sequence >> 63 && weir__capture_was(event);
}

// Makes the queue wait for an event of a capture; it joins the capture unless it is part of it.
weir_status weir__capture_wait(weir_queue *queue, struct weir_event event, const char *file,
                               int line);

// Refuses an event of a capture that is used outside of it.
weir_status weir__capture_refuse_event(const char *function, const char *object, const char *file,
                                       int line);

#endif
