#include "core/comm/known.h"

#include <stdatomic.h>

#include "core/support/memory.h"

enum {
    CELLS = 1024, // a power of two
    PROBES = 8    // past its own cell
};

struct weir__known {
    atomic_uint_fast64_t cells[CELLS];
};

struct weir__known *weir__known_create(void)
{
    return weir__allocate(sizeof(struct weir__known));
}

void weir__known_free(struct weir__known *known)
{
    weir__release(known);
}

static uint64_t cell_of(uint64_t hash)
{
    return (hash >> 32 ^ hash >> 1) % CELLS;
}

bool weir__known_has(const struct weir__known *known, uint64_t hash)
{
    for (uint64_t i = 0; i <= PROBES; i++)
        if (atomic_load_explicit(&known->cells[(cell_of(hash) + i) % CELLS],
                                 memory_order_acquire) == hash)
            return true;
    return false;
}

void weir__known_add(struct weir__known *known, uint64_t hash)
{
    for (uint64_t i = 0; i <= PROBES; i++) {
        uint_fast64_t empty = 0;
        atomic_uint_fast64_t *cell = &known->cells[(cell_of(hash) + i) % CELLS];
        if (atomic_compare_exchange_strong(cell, &empty, hash) || empty == hash)
            return;
    }
}
