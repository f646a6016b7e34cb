// Arrays that grow.
//
// Threads: safe; the function keeps no state.
#ifndef WEIR_BASE_GROW_H
#define WEIR_BASE_GROW_H

#include <stddef.h>

// Returns an array with room for one more than its `count` items of `size` bytes: `items`, or a
// reallocated one of twice the capacity, which replaces it. NULL: no memory, and `items` stays.
// An array of capacity 0 is NULL.
void *weir_grow(void *items, size_t count, size_t *capacity, size_t size);

// Texts of others' in such an array.
struct weir_words {
    const char **items;
    size_t count, capacity;
};

#endif
