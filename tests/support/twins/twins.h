// The kernels of kernels/conformance, kernels/bench and kernels/matmul in C, for the drivers made
// for tests.
#ifndef WEIR_TESTS_SUPPORT_TWINS_TWINS_H
#define WEIR_TESTS_SUPPORT_TWINS_TWINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TWIN_PARAMETERS = 12,
    TWIN_PARAMETER_BYTES = 16,
};

struct twin_launch {
    uint32_t grid[3];
    uint32_t block[3];
    // An address, a value, or, for local memory, its offset in 64 bits: 0 or a multiple of 16.
    unsigned char values[TWIN_PARAMETERS][TWIN_PARAMETER_BYTES];
};

struct twin {
    const char *name;
    unsigned max_threads;
    void (*run)(const struct twin_launch *launch); // the whole launch at once
    unsigned char sizes[TWIN_PARAMETERS];          // of the parameters; ends with 0
};

// NULL: there is none of that name.
const struct twin *twin_find(const char *name);

// Whether its blocks wait for each other.
bool twin_has_grid_barrier(const struct twin *twin);

// What the driver defines: whether a kernel may write there. Where not, it does nothing.
bool twin_may_write(const void *pointer, size_t size);

#endif
