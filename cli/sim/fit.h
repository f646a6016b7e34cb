// The launches of each kernel in traces, and the time that they take as a sum of terms: a fixed
// part, and parts in proportion to the work-items, to the blocks of the grid, to the bytes of the
// buffers, to scalar arguments, and to the work-items times a scalar argument.
#ifndef WEIR_CLI_SIM_FIT_H
#define WEIR_CLI_SIM_FIT_H

#include <stdbool.h>
#include <stddef.h>

#include "report/trace.h"

// The terms. A kernel's factors are nanoseconds for each.
enum sim_term {
    SIM_TERM_FIXED = 0, // 1
    SIM_TERM_ITEM = 1,  // work-items of the grid
    SIM_TERM_BLOCK = 2, // blocks of the grid
    SIM_TERM_BYTE = 3,  // bytes of the ranges of all its buffers
    SIM_TERM_ARGUMENT = 4,
    // For each of the scalar arguments, and after them each times the work-items.
    SIM_SCALARS = 6,
    SIM_TERM_ITEM_ARGUMENT = SIM_TERM_ARGUMENT + SIM_SCALARS,
    SIM_TERM_COUNT = SIM_TERM_ITEM_ARGUMENT + SIM_SCALARS,
    // More terms than this are not used together.
    SIM_TERMS_AT_ONCE = 4,
};

struct sim_launch {
    double terms[SIM_TERM_COUNT];
    double ns;
};

struct sim_kernel {
    const char *name;            // the trace's
    struct sim_launch *launches; // those that tell what the kernel takes
    size_t count;
    size_t capacity;
    uint32_t arguments[SIM_SCALARS]; // the places of the scalar arguments, from 0
    size_t argument_count;
    size_t beside;  // left out: another kernel of the device ran at the same time
    size_t inexact; // left out: the trace does not have its start
};

// By name. Zeroed before use.
struct sim_kernels {
    struct sim_kernel *items;
    size_t count;
    size_t capacity;
};

// Adds the launches of a trace that ran and were timed, and counts them. The trace lives as long as the list.
size_t sim_kernels_add(struct sim_kernels *kernels, const struct weir_trace *trace);

struct sim_fit {
    double factors[SIM_TERM_COUNT]; // none is negative
    size_t sizes;                   // different launches
    // Of all launches: |time told - time measured| / time measured.
    double median;
    double worst;
};

// Fits the factors to the launches of a kernel, which has at least one, and sorts these: those that
// make the relative errors' squares least, with the median time of launches of the same size in
// place of their times; each size counts once, however often it was launched. A term is used only if it explains more
// than chance would (Schwarz's criterion); of terms that cannot be told apart the first is used.
void sim_fit(struct sim_kernel *kernel, struct sim_fit *out_fit);

#endif
