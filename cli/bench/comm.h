// `weir bench comm`, and what a job of tests/bench adds to it: the same collectives by other libraries.
#ifndef WEIR_CLI_BENCH_COMM_H
#define WEIR_CLI_BENCH_COMM_H

#include "cli/bench/bench.h"
#include "cli/bench/work.h"

enum {
    COMM_PEERS_MAX = 2
};

struct comm_row {
    weir_collective kind;
    size_t bytes;   // the larger one of what a rank reads and writes
    uint64_t count; // elements, as in <weir/comm.h>
    struct bench_samples ns;
    struct bench_samples algorithm; // GB/s
    struct bench_samples bus;
    struct bench_samples peer_ns[COMM_PEERS_MAX];
};

struct comm_bench {
    const char *config;
    struct bench_list sizes, kinds, memory;
    bool host_memory;
    uint64_t asked_ranks;
    uint64_t iterations;

    struct bench_ranks all;
    const struct comm_peer *const *asked_peers;
    size_t asked_peer_count;
    const struct comm_peer *peers[COMM_PEERS_MAX]; // those that are open
    size_t peer_count;
    struct comm_row *rows;
    size_t row_count;
    size_t largest; // bytes of a row
    float *numbers; // as many, on the host
};

// Another library with the same ranks.
struct comm_peer {
    struct bench_column columns[2]; // its time, and Weir's over its
    bool on_weirs_memory;           // so that results are compared
    // False, after a note, on all ranks if one of them cannot have it.
    bool (*open)(struct comm_bench *b);
    // The row's call on all ranks of this process, and the end of all such calls.
    void (*submit)(const struct comm_bench *b, const struct comm_row *row);
    void (*sync)(const struct comm_bench *b);
};

struct comm_with {
    const char *group, *about;
    const struct comm_peer *const *peers;
    size_t peer_count;
    struct cli_option option; // one more; without a name: none
};

int bench_comm_main(const struct comm_with *with, int argc, char **argv);

#endif
