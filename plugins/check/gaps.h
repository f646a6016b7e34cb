// The bytes of a buffer that nothing has written yet: disjoint spans in ascending order.
//
// Threads: the caller's lock.
#ifndef WEIR_PLUGINS_CHECK_GAPS_H
#define WEIR_PLUGINS_CHECK_GAPS_H

#include <stdbool.h>
#include <stddef.h>

#include "plugins/check/shape.h"

#ifdef __cplusplus
extern "C" {
#endif

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

// The bytes of the shape have been written. Its offsets are those of the buffer.
void check_gaps_fill(struct check_gaps *gaps, const struct check_shape *shape);

// The first bytes of the shape that nothing has written; empty if there are none.
struct check_span check_gaps_find(const struct check_gaps *gaps, const struct check_shape *shape);

#ifdef __cplusplus
}
#endif

#endif
