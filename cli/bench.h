// What the files of `weir bench submit` share.
//
// Two ways of doing the same work are run in turns: A, B, A, B … Each row keeps
// one time a call for every turn, so that noise hits both, and reports medians
// with the smallest and the largest.
#ifndef WEIR_CLI_BENCH_H
#define WEIR_CLI_BENCH_H

#include <weir/weir.h>

#include "cli/cli.h"

enum {
    BENCH_TURNS_MAX = 101,
    BENCH_ROWS_MAX = 16
};

struct bench_row {
    const char *name;  // in JSON
    const char *about; // in the table
    size_t turns;
    double weir_ns[BENCH_TURNS_MAX];  // a call
    double other_ns[BENCH_TURNS_MAX]; // the same on what stands below
};

struct bench {
    size_t turns;
    uint64_t operations; // in each turn
    struct bench_row rows[BENCH_ROWS_MAX];
    size_t row_count;
    char notes[4][256]; // what could not be measured, and why
    size_t note_count;
    char device[2][128]; // of the two OpenCL parts
};

// A row whose turns are filled in one by one. Never NULL.
struct bench_row *bench_row(struct bench *bench, const char *name, const char *about);

void bench_note(struct bench *bench, const char *format, ...) WEIR_PRINTF(2, 3);

struct bench_spread {
    double median;
    double minimum;
    double maximum;
};

struct bench_spread bench_spread(const double *values, size_t count);

// The parts. On failure an error was printed.
bool bench_null(struct bench *bench);
bool bench_opencl(struct bench *bench);

#endif
