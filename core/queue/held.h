// Copies of operations: those that wait in a held queue, and those of graphs. A copy
// owns its arguments, values and pattern; one in a list also has a reference on a
// wait's producer. A list keeps its nodes for reuse, so that a loop with host calls
// allocates nothing once it is warm.
#ifndef WEIR_CORE_QUEUE_HELD_H
#define WEIR_CORE_QUEUE_HELD_H

#include <weir/module/operation.h>

struct weir__held {
    struct weir__held *next;
    size_t capacity; // bytes after this structure
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

// Removes the first node from the list, or returns NULL.
struct weir__held *weir__held_pop(struct weir__held_list *list);

// Keeps a node for reuse. The caller has unpinned its producer, if any, without a
// lock held.
void weir__held_recycle(struct weir__held_list *list, struct weir__held *held);

// Frees all nodes.
void weir__held_finish(struct weir__held_list *list);

// A separate copy, to be freed with weir__release(); NULL if out of memory.
struct weir_operation *weir__operation_clone(const struct weir_operation *operation);

#endif
