// Copies of operations: those that wait in a held queue, and those of graphs. A copy
// owns its arguments, values and pattern; one in a list also has a reference on a
// wait's producer. A list keeps its nodes for reuse, so that a loop with host calls
// allocates nothing once it is warm.
#ifndef WEIR_CORE_QUEUE_HELD_H
#define WEIR_CORE_QUEUE_HELD_H

#include <weir/module/operation.h>

struct weir__held {
    struct weir__held *next;
    size_t capacity; // bytes behind this structure
    struct weir_operation operation;
};

// A list, first in first out, with its spare nodes. Not thread-safe.
struct weir__held_list {
    struct weir__held *first;
    struct weir__held *last;
    struct weir__held *spare;
};

// Appends a copy of the operation; false when there is no memory.
bool weir__held_push(struct weir__held_list *list, const struct weir_operation *operation);

// Takes the first node off the list, or returns NULL.
struct weir__held *weir__held_pop(struct weir__held_list *list);

// Keeps a node for reuse. Its producer, if any, was unpinned by the caller, who
// does that outside of its locks.
void weir__held_recycle(struct weir__held_list *list, struct weir__held *held);

// Frees all nodes.
void weir__held_finish(struct weir__held_list *list);

// A copy of its own, to be given to weir__release(); NULL when there is no memory.
struct weir_operation *weir__operation_clone(const struct weir_operation *operation);

#endif
