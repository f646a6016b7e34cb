// What the files of `weir bench submit` share. Each part measures two ways of doing the
// same work in turns, Weir and what stands below it, and makes a table.
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
    struct bench_samples other; // the same on what stands below
};

// The parts. What is not on this machine leaves a note.
bool submit_null(struct submit *submit);
bool submit_opencl(struct submit *submit);
bool submit_cuda(struct submit *submit);

// Puts the rows into a table of their own; `title` is copied. With `ratio` Weir's time
// is also told as a multiple of the other.
void submit_table(struct bench *bench, const char *key, const char *title, const char *other,
                  const struct submit_row *rows, size_t count, bool ratio);

#endif
