// Sets of bytes as operations use them, `slices` slices of `rows` rows of `width` bytes, about which all questions are
// answered to the byte; and the uses of some memory that a later operation may still have to be ordered after, a tree
// of extents.
//
// Threads: the caller's lock.
#ifndef WEIR_PLUGINS_CHECK_HISTORY_H
#define WEIR_PLUGINS_CHECK_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Row r of slice s begins at begin + s * slice_pitch + r * pitch. Rows do not overlap, and neither
// do slices. Made by the functions below, so bytes that are adjacent are one row.
struct check_shape {
    uint64_t begin;
    uint64_t end; // after its last byte
    uint64_t width;
    uint64_t rows; // 1: contiguous
    uint64_t pitch;
    uint64_t slices; // 1: a plane
    uint64_t slice_pitch;
};

// Some adjacent bytes; empty if begin == end.
struct check_span {
    uint64_t begin;
    uint64_t end;
};

static inline struct check_shape check_shape_range(uint64_t begin, uint64_t size)
{
    return (struct check_shape){begin, begin + size, size, 1, size, 1, size};
}

// All counts and the width are at least 1, and `pitch` is at least `width`, `slice_pitch` what the
// rows of a slice take.
struct check_shape check_shape_box(uint64_t begin, uint64_t width, uint64_t rows, uint64_t pitch,
                                   uint64_t slices, uint64_t slice_pitch);

static inline bool check_shape_is_range(const struct check_shape *shape)
{
    return shape->rows == 1 && shape->slices == 1;
}

// The number of rows of all slices, and one of them.
static inline uint64_t check_shape_run_count(const struct check_shape *shape)
{
    return shape->rows * shape->slices;
}
struct check_span check_shape_run(const struct check_shape *shape, uint64_t index);

// The first bytes that the shape has in common with a span.
struct check_span check_shape_meet_span(const struct check_shape *shape, struct check_span span);

// The first bytes that two shapes have in common.
struct check_span check_shapes_common(const struct check_shape *a, const struct check_shape *b);

// Whether two shapes have a byte in common.
bool check_shapes_meet(const struct check_shape *a, const struct check_shape *b);

// Whether every byte of `inner` is in `outer`. May be false for two shapes of several rows with
// different pitches that do cover each other.
bool check_shape_covers(const struct check_shape *outer, const struct check_shape *inner);

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

struct check_use {
    struct check_shape shape;
    uint32_t actor;
    uint32_t access; // weir_access, and CHECK_ASSUMED
    uint64_t count;  // of the actor
    uint64_t serial; // of all uses, in the order of submission
    struct check_origin origin;
    struct check_use *left;
    struct check_use *right;
    uint64_t reach; // the largest end below this node
    uint32_t priority;
};

// Zeroed before use. check_history_clear() frees what it has.
struct check_history {
    size_t count;
    struct check_use *root;
    size_t limit;    // at which it is looked through for uses that are not needed any more
    uint64_t random; // the state of the priorities
};

// Nodes found by a search.
struct check_found {
    struct check_use **uses;
    size_t count;
    size_t capacity;
    bool lacking; // what found no memory is missing
};

// Finds the uses whose extents meet the span, in the order of their beginnings.
void check_history_find(const struct check_history *history, struct check_span span,
                        struct check_found *found);

// Returns a new use in the history, of which only the shape is set, or NULL if out of memory.
struct check_use *check_history_add(struct check_history *history, const struct check_shape *shape);
void check_history_remove(struct check_history *history, struct check_use *use);
void check_history_clear(struct check_history *history);

#endif
