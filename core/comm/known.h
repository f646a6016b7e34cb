// A set of hashes that only grows, up to a limit; full, it takes no more.
//
// Threads: safe.
#ifndef WEIR_CORE_COMM_KNOWN_H
#define WEIR_CORE_COMM_KNOWN_H

#include <stdbool.h>
#include <stdint.h>

struct weir__known;

// NULL if out of memory.
struct weir__known *weir__known_create(void);
void weir__known_free(struct weir__known *known);

// A hash is never 0.
bool weir__known_has(const struct weir__known *known, uint64_t hash);
void weir__known_add(struct weir__known *known, uint64_t hash);

#endif
