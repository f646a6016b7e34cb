// `weir bench overlap`, and what a job of tests/bench adds to it: the same work by the driver's own calls.
#ifndef WEIR_CLI_BENCH_OVERLAP_H
#define WEIR_CLI_BENCH_OVERLAP_H

#include "cli/bench/work.h"

enum {
    OVERLAP_SEED = 20261, // of the numbers
    OVERLAP_RAW_BOTH = 2, // the first ways are bare copies: up, down, both at once
    OVERLAP_RAW_COPIES,
    OVERLAP_RAW_MOST = 32
};

// Memory, queues and events of its own; a number of rounds of the kernel, as bench_work_launch().
struct overlap_raw {
    // For this many bytes each way. Returns how many ways there are; 0 where the device's backend has none, with the
    // reason in a note.
    size_t (*open)(size_t size);
    const char *(*name)(size_t way);
    // Runs the way twice on new queues, for the milliseconds of the second time; with `checks` once, and compares
    // its results.
    double (*run)(size_t way, bool checks);
};

// `raw`, of the first size, or NULL for none.
int bench_overlap_main(const struct overlap_raw *raw, int argc, char **argv);

#endif
