// Lengths of unions and intersections of intervals of time, in whole nanoseconds. An
// interval holds its begin and not its end.
#ifndef WEIR_REPORT_INTERVALS_H
#define WEIR_REPORT_INTERVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A union that grows by intervals in the order of their begins. Zeroed before use.
struct weir__cover {
    uint64_t covered; // so far
    uint64_t end;     // of the covered stretch
    bool any;
};

// Adds an interval whose begin is not before that of the one before. Empty ones add nothing.
void weir__cover_add(struct weir__cover *it, uint64_t begin, uint64_t end);

// An interval of one of two sets, or of both.
struct weir__member {
    uint64_t begin;
    uint64_t end;
    bool first;
    bool second;
};

// The time in which a member of the first set and another member of the second overlap. False if
// out of memory.
bool weir__intersection(const struct weir__member *members, size_t count, uint64_t *out_length);

#endif
