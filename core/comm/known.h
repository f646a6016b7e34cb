// A set of hashes that only grows, up to a limit; full, it takes no more.
//
// Threads: safe.
#ifndef WEIR_CORE_COMM_KNOWN_H
#define WEIR_CORE_COMM_KNOWN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    WEIR__KNOWN_CELLS = 1024 // a power of two
};

struct weir__known {
    atomic_uint_fast64_t last; // one of the cells, the last that was looked for
    atomic_uint_fast64_t cells[WEIR__KNOWN_CELLS];
};

// A hash is never 0.
bool weir__known_find(struct weir__known *known, uint64_t hash);

static inline bool weir__known_has(struct weir__known *known, uint64_t hash)
{
    return atomic_load_explicit(&known->last, memory_order_relaxed) == hash ||
           weir__known_find(known, hash);
}

#endif
