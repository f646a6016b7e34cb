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
    uint32_t random;
};

void check_uses_init(struct check_uses *uses);
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
void check_found_finish(struct check_found *found);

// Finds the uses whose extents meet the span. What finds no memory is missing.
void check_history_find(const struct check_history *history, struct check_span span,
                        struct check_found *found);

// Returns a new use in the history, of which only the shape is set, or NULL if out of memory.
struct check_use *check_history_add(struct check_uses *uses, struct check_history *history,
                                    const struct check_shape *shape);
void check_history_remove(struct check_uses *uses, struct check_history *history,
                          struct check_use *use);
void check_history_clear(struct check_uses *uses, struct check_history *history);

// The bytes of a buffer that nothing has written yet: disjoint spans in ascending order.
//
// Threads: the caller's lock.

enum {
    CHECK_GAPS_MOST = 4096
}; // with more of them, all bytes count as written

struct check_gaps {
    struct check_span *spans;
    size_t count;
    size_t capacity;
};

// Makes one gap of `size` bytes. If out of memory, all of it counts as written.
void check_gaps_reset(struct check_gaps *gaps, uint64_t size);
// All bytes count as written.
void check_gaps_forget(struct check_gaps *gaps);

// Whether some of the bytes from `begin` to before `end` may be in a gap.
static inline bool check_gaps_near(const struct check_gaps *gaps, uint64_t begin, uint64_t end)
{
    return gaps->count && begin < gaps->spans[gaps->count - 1].end && gaps->spans[0].begin < end;
}

// Whether nothing has written any byte from the shape's first to its last.
static inline bool check_gaps_cover(const struct check_gaps *gaps, const struct check_shape *shape)
{
    for (size_t i = 0; i < gaps->count; i++)
        if (gaps->spans[i].begin <= shape->begin && shape->end <= gaps->spans[i].end)
            return true;
    return false;
}

// The bytes of the shape have been written. Its offsets are those of the buffer.
void check_gaps_fill(struct check_gaps *gaps, const struct check_shape *shape);

// The first bytes of the shape that nothing has written; empty if there are none.
struct check_span check_gaps_find(const struct check_gaps *gaps, const struct check_shape *shape);

#ifdef __cplusplus
}
#endif

#endif
