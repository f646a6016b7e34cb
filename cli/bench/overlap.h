// What the files of `weir bench overlap` share.
//
//   overlap.c         the command line, and the list of ways
//   overlap_run.c     what is made, checked and timed
//   overlap_report.c  tables and the plot
#ifndef WEIR_CLI_BENCH_OVERLAP_H
#define WEIR_CLI_BENCH_OVERLAP_H

#include "cli/bench/work.h"
#include "patterns/chunks.h"

enum {
    OVERLAP_CASES_MAX = 8,
};

enum {
    OVERLAP_AUTO,
    OVERLAP_DEPTH,
    OVERLAP_BREADTH,
    OVERLAP_INTERLEAVED
};

// Words of the command line.
extern const char *const overlap_orders[];
extern const char *const overlap_kernels[];

// What one way runs.
struct overlap_job {
    const struct overlap *overlap;
    uint32_t rounds;
    weir_chunks *chunks;
};

// What all ways of a size and a kernel are compared with.
struct overlap_reference {
    size_t size;
    uint64_t kernel; // as on the command line
    uint32_t rounds;
    struct overlap_job job; // one queue, one piece
    char kernel_name[24];
    struct bench_samples up;   // one way alone
    struct bench_samples down; // the other
    struct bench_samples both; // at once: the limit
    struct bench_samples kernel_alone;
    struct bench_samples one_queue; // in one piece
};

struct overlap_way {
    size_t reference;
    uint64_t order, queues, chunks; // as on the command line
    struct overlap_job job;
    struct weir_chunks_plan plan;
    struct bench_samples ns;
};

struct overlap {
    const char *asked_sizes, *asked_chunks, *asked_orders, *asked_queues, *asked_kernels;
    struct bench *bench;
    struct bench_work work;
    struct bench_list sizes, kernels, orders, queues, chunks;
    size_t size_most;
    weir_buffer *src, *dst;     // HOST
    weir_buffer *values, *rest; // DEVICE; `rest` is for bare copies alone
    weir_queue *up, *down;
    struct overlap_reference references[OVERLAP_CASES_MAX];
    size_t reference_count;
    struct overlap_way *ways;
    size_t way_count;
    uint32_t queue_count; // of all ways
};

// Creates what all ways share.
bool overlap_make(struct overlap *o);
void overlap_destroy(struct overlap *o);
// Creates each way, and runs it once to check its results.
bool overlap_check(struct overlap *o);
bool overlap_measure(struct overlap *o);
void overlap_report(struct overlap *o);

#endif
