#include "core/comm/known.h"

#include "core/support/memory.h"

enum {
    PROBES = 8 // past its own cell
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
    return (hash >> 32 ^ hash >> 1) % WEIR__KNOWN_CELLS;
}

bool weir__known_find(struct weir__known *known, uint64_t hash)
{
    for (uint64_t i = 0; i <= PROBES; i++)
        if (atomic_load_explicit(&known->cells[(cell_of(hash) + i) % WEIR__KNOWN_CELLS],
                                 memory_order_acquire) == hash) {
            atomic_store_explicit(&known->last, hash, memory_order_relaxed);
            return true;
        }
    return false;
}

void weir__known_add(struct weir__known *known, uint64_t hash)
{
    for (uint64_t i = 0; i <= PROBES; i++) {
        uint_fast64_t empty = 0;
        atomic_uint_fast64_t *cell = &known->cells[(cell_of(hash) + i) % WEIR__KNOWN_CELLS];
        if (atomic_compare_exchange_strong(cell, &empty, hash) || empty == hash)
            return;
    }
}
