// `weir bench comm`: its ranks, which other benchmarks of collectives have too, and what a job of tests/bench
// adds: the same collectives by other libraries.
#ifndef WEIR_CLI_BENCH_COMM_H
#define WEIR_CLI_BENCH_COMM_H

#include "cli/bench/bench.h"

// The ranks of a benchmark that measures collectives: the one that a launcher started, or several in
// this process.

enum {
    BENCH_RANKS_MAX = 16, // in one process
};

struct bench_rank {
    weir_device *device; // may be that of another rank
    weir_comm *comm;
    weir_queue *queue;
    weir_buffer *value;     // 8 bytes
    weir_buffer *src, *dst; // the benchmark's, if it makes them
};

struct bench_ranks {
    struct bench_rank ranks[BENCH_RANKS_MAX];
    uint32_t local_count; // of `ranks`
    uint32_t first;       // the rank of the first of them
    uint32_t count;       // of all ranks
};

// Opens devices of the benchmark's runtime, communicators and queues: of the rank that the environment tells,
// else of `asked` ranks in this process. With as many devices as ranks each has its own. The other ranks measure
// the same, and rank 0 tells it.
void bench_ranks_open(uint64_t asked, struct bench_ranks *out_ranks);

// Of all queues of this process: their end, and a barrier after which all are idle.
void bench_ranks_sync(const struct bench_ranks *ranks);
void bench_ranks_meet(const struct bench_ranks *ranks);
// The largest value that any rank gives.
double bench_ranks_slowest(const struct bench_ranks *ranks, double value);

enum {
    COMM_WAYS_MAX = 3
};

struct comm_row {
    weir_collective kind;
    size_t bytes;   // the larger one of what a rank reads and writes
    uint64_t count; // elements, as in <weir/comm.h>
    struct bench_samples ns[COMM_WAYS_MAX];
};

struct comm_bench {
    const struct comm_with *with; // NULL: Weir alone
    struct bench_list sizes, kinds, memory;
    uint64_t asked_ranks;
    uint64_t iterations;

    struct bench_ranks all;
    const struct comm_way
        *ways[COMM_WAYS_MAX]; // Weir's, and those of other libraries that are open
    size_t way_count;
    struct comm_row *rows;
    size_t row_count;
    size_t largest; // bytes of a row
    float *numbers; // as many, on the host
};

// Weir, or another library, with the same ranks.
struct comm_way {
    const char *name;     // in columns of its time, and of Weir's over its
    unsigned kinds;       // a bit for each that it has
    bool on_weirs_memory; // so that results are compared
    // False, after a note, on all ranks if one of them cannot have it.
    bool (*open)(struct comm_bench *b);
    // The row's call on all ranks of this process, and the end of all such calls.
    void (*submit)(const struct comm_bench *b, const struct comm_row *row);
    void (*sync)(const struct comm_bench *b);
};

struct comm_with {
    const struct comm_way *others[COMM_WAYS_MAX]; // up to NULL
    struct cli_option option;                     // one more
};

int bench_comm_main(const struct comm_with *with, int argc, char **argv);

#endif
