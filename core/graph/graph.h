// The front end's graph, and the parts that a capture makes it of.
#ifndef WEIR_CORE_GRAPH_GRAPH_H
#define WEIR_CORE_GRAPH_GRAPH_H

#include <weir/event.h>

#include "base/biased_lock.h"
#include "core/object/object.h"

// Nodes, with the data that they point to. Each buffer and kernel in them counts as used
// once for every reference to it.
struct weir__graph_parts {
    struct weir_graph_node *nodes;
    struct weir_operation **owned; // the copies that the nodes point to
    uint32_t node_count;
    uint32_t branch_count;
    bool without_buffers; // buffers no longer count as used
};

struct weir_graph {
    struct weir__member member;
    const struct weir_link *first; // of the chain
    struct weir_biased_lock lock;  // launches and updates; taken before a submit lock
    struct weir__graph_parts parts;
    struct weir_event launched; // the last launch; zero: none
};

// Makes a graph of the parts, and takes ownership of them unless it fails.
weir_status weir__graph_create(weir_device *device, const char *label,
                               struct weir__graph_parts *parts, weir_graph **out_graph);

// Counts the buffers and the kernel of an operation as used, or as no longer used.
void weir__operation_use(const struct weir_operation *operation);
void weir__operation_unuse(const struct weir_operation *operation);

// Frees the parts and their references.
void weir__graph_parts_finish(struct weir__graph_parts *parts);

#endif
