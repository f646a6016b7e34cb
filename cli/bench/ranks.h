// The ranks of a benchmark that measures collectives: the one that a launcher started, or several in
// this process.
#ifndef WEIR_CLI_BENCH_RANKS_H
#define WEIR_CLI_BENCH_RANKS_H

#include "cli/bench/bench.h"

enum {
    BENCH_RANKS_MAX = 16, // in one process
};

struct bench_rank {
    weir_device *device; // may be that of another rank
    bool opened;         // it is this one's to close
    weir_comm *comm;
};

struct bench_ranks {
    struct bench_rank ranks[BENCH_RANKS_MAX];
    uint32_t local_count; // of `ranks`
    uint32_t first;       // the rank of the first of them
    uint32_t count;       // of all ranks
};

// Opens devices of the benchmark's runtime, and communicators: of the rank that the environment tells,
// else of `asked` ranks in this process. With as many devices as ranks each has its own.
//
// Errors: false after a sentence; bench_ranks_close() frees what was made.
bool bench_ranks_open(struct bench *bench, uint64_t asked, struct bench_ranks *out_ranks);
void bench_ranks_close(struct bench *bench, struct bench_ranks *ranks);

#endif
