// The notes of a capture: branches, nodes and records. Each queue of a capture is a branch of
// the graph: a sequence of nodes. So the nodes before a point of the capture are given by one
// number for each branch, the number of its nodes that come before. Such a vector clock is kept
// with every branch, node and record, and implied edges are found by comparing clocks.
//
// Guarded by the capture's lock. Functions that return bool return false if out of memory, and
// have then noted nothing.
#ifndef WEIR_CORE_GRAPH_NOTES_H
#define WEIR_CORE_GRAPH_NOTES_H

#include "core/graph/graph.h"
#include "core/queue/queue.h"

// The result of a branch's last operation, if it is not a node.
#define WEIR__NO_NODE UINT32_MAX
#define WEIR__EMPTY_NODE (UINT32_MAX - 1)

// The number of nodes of each branch.
struct weir__branch_clock;

struct weir__branch {
    weir_queue *queue; // with a reference
    struct weir__branch_clock *clock;
    uint32_t *nodes; // their indexes
    uint32_t node_count;
    uint32_t node_capacity;
    uint32_t last; // the result of its last operation
};

// Zeroed before use.
struct weir__notes {
    struct weir__branch *branches;
    uint32_t branch_count;
    uint32_t branch_capacity;
    struct weir__graph_parts parts;
    struct weir__branch_clock **node_clocks;
    uint32_t clock_count; // one per node, until the graph takes the nodes over
    uint32_t node_capacity;
    struct weir__branch_clock **records; // their clocks
    uint32_t record_count;
    uint32_t record_capacity;
};

// The queue becomes the last branch. With its submit lock held.
bool weir__notes_add_branch(struct weir__notes *notes, weir_queue *queue);

// The branch of a queue that has one.
uint32_t weir__notes_branch(const struct weir__notes *notes, const weir_queue *queue);

// Adds a copy of the operation as the branch's next node.
bool weir__notes_add_node(struct weir__notes *notes, uint32_t branch,
                          const struct weir_operation *operation);

// Keeps the branch's clock as record number `*out_record`.
bool weir__notes_add_record(struct weir__notes *notes, uint32_t branch, uint32_t *out_record);

// From here on the branch comes after that record.
bool weir__notes_follow(struct weir__notes *notes, uint32_t branch, uint32_t record);

// A queue whose end the first branch has not waited for, or NULL.
const weir_queue *weir__notes_find_loose(const struct weir__notes *notes);

void weir__notes_finish(struct weir__notes *notes);

#endif
