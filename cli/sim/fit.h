// The launches of each kernel in traces, and the time that they take as a sum of terms: a fixed
// part, and parts in proportion to the work-items, to the blocks of the grid, to the bytes of the
// buffers and to scalar arguments.
//
//   launches.c  the launches of traces, by kernel
//   fit.c       least squares
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
    SIM_TERM_COUNT = 3,
};

struct sim_launch {
    double terms[SIM_TERM_COUNT];
    double ns;
};

struct sim_kernel {
    const char *name;            // the list's
    struct sim_launch *launches; // those that tell what the kernel takes
    size_t count;
    size_t capacity;
    size_t beside;  // left out: another kernel of the device ran at the same time
    size_t inexact; // left out: the trace does not have its start
};

// By name. Zeroed before use.
struct sim_kernels {
    struct sim_kernel *items;
    size_t count;
    size_t capacity;
};

// Adds the launches of a trace that ran and were timed, and counts them.
//
// Errors: false if out of memory.
bool sim_kernels_add(struct sim_kernels *kernels, const struct weir_trace *trace,
                     size_t *out_launches);

void sim_kernels_finish(struct sim_kernels *kernels);

struct sim_fit {
    double factors[SIM_TERM_COUNT]; // none is negative
    size_t sizes;                   // different launches
    // Of all launches: |time told - time measured| / time measured.
    double median;
    double worst;
};

// Fits the factors to the launches of a kernel, which has at least one, and sorts these: those that
// make the relative errors' squares least, with the median time of launches of the same size in
// place of their times. A term is used only if it explains more than chance would (Schwarz's
// criterion); of terms that cannot be told apart the first is used.
//
// Errors: false if out of memory.
bool sim_fit(struct sim_kernel *kernel, struct sim_fit *out_fit);

#endif
