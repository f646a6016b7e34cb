// Maps the time of one clock, a, to that of another, b, by pairs of readings: linear between neighbouring
// pairs, and extrapolated beyond the last one. Follows drift and slow changes of it.
//
// Threads: a map is used by one thread at a time.
#ifndef WEIR_BASE_CLOCK_MAP_H
#define WEIR_BASE_CLOCK_MAP_H

#include <stdint.h>

#define WEIR_CLOCK_MAP_PAIRS 64
// A pair that is nearer than this to the one before replaces it: over short distances the error of
// a reading exceeds the drift.
#define WEIR_CLOCK_MAP_DISTANCE_NS UINT64_C(100000000)

struct weir_clock_pair {
    uint64_t a_ns;
    uint64_t b_ns;
};

// Zeroed: no pairs, and the map is the identity.
struct weir_clock_map {
    struct weir_clock_pair pairs[WEIR_CLOCK_MAP_PAIRS]; // ring, oldest overwritten first
    uint64_t count;                                     // of all pairs so far
};

// Adds a reading. One that runs backwards in either clock is ignored.
void weir_clock_map_add(struct weir_clock_map *map, uint64_t a_ns, uint64_t b_ns);

// The time on clock b when a shows the given time.
uint64_t weir_clock_map_b(const struct weir_clock_map *map, uint64_t a_ns);

#endif
