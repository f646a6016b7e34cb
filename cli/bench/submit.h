// What the files of `weir bench submit` share. Each part measures the same work in turns
// through Weir and through the layer below it, and makes a table.
#ifndef WEIR_CLI_BENCH_SUBMIT_H
#define WEIR_CLI_BENCH_SUBMIT_H

#include "cli/bench/bench.h"

struct submit {
    struct bench *bench;
    uint64_t operations; // in each turn
};

struct submit_row {
    const char *name;
    const char *about;
    struct bench_samples weir;  // nanoseconds a call
    struct bench_samples other; // the same through the layer below
};

// The parts. One that this machine lacks the device or driver for leaves a note.
bool submit_null(struct submit *submit);
bool submit_opencl(struct submit *submit);
bool submit_cuda(struct submit *submit);

// Puts the rows into a table of their own; `title` is copied. With `ratio` Weir's time
// is also told as a multiple of the other.
void submit_table(struct bench *bench, const char *key, const char *title, const char *other,
                  const struct submit_row *rows, size_t count, bool ratio);

#endif
