// The uses of some memory that a later operation may still have to be ordered after, a tree of extents; and the
// memory for its nodes.
//
// Threads: the caller's lock.
#ifndef WEIR_PLUGINS_CHECK_HISTORY_H
#define WEIR_PLUGINS_CHECK_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plugins/check/shape.h"

#ifdef __cplusplus
extern "C" {
#endif

// The operation that uses bytes, for reports. Texts outlive the use.
struct check_origin {
    const char *file;
    const char *kernel; // LAUNCH, or what a NOTE is about; else NULL
    const char *region;
    uint64_t region_number;
    int line;
    uint32_t operation; // enum weir_operation_kind; 0: the host
};

// A bit beside those of weir_access: the use is a guess.
#define CHECK_ASSUMED 4u

// What is read and written for every operation is in the first two cache lines.
struct check_use {
    _Alignas(64) struct check_shape shape;
    uint32_t actor;
    uint32_t access; // weir_access, and CHECK_ASSUMED
    uint64_t count;  // of the actor
    uint64_t serial; // of all uses, in the order of submission
    struct check_origin origin;
    struct check_use *left; // also the next one of the spare ones
    struct check_use *right;
    uint64_t reach; // the largest end below this node
    uint32_t priority;
};

// Nodes of all histories of a link.
struct check_uses {
    struct check_use *spare;
    void *blocks;
    uint64_t random;
};

void check_uses_finish(struct check_uses *uses);

struct check_history {
    size_t count;
    struct check_use *root;
    size_t limit; // at which it is looked through for uses that are not needed any more
};

// Nodes found by a search.
struct check_found {
    struct check_use **uses;
    size_t count;
    size_t capacity;
};

// Finds the uses whose extents meet the span. What finds no memory is missing.
void check_history_find(const struct check_history *history, struct check_span span,
                        struct check_found *found);

// Returns a new use in the history, of which only the shape is set, or NULL if out of memory.
struct check_use *check_history_add(struct check_uses *uses, struct check_history *history,
                                    const struct check_shape *shape);
void check_history_remove(struct check_uses *uses, struct check_history *history,
                          struct check_use *use);
void check_history_clear(struct check_uses *uses, struct check_history *history);

#ifdef __cplusplus
}
#endif

#endif
