// The second half of weir bench graph: graphs that fork, beside the same kernels on as many
// queues.
#ifndef WEIR_CLI_BENCH_GRAPH_FORKS_H
#define WEIR_CLI_BENCH_GRAPH_FORKS_H

#include "cli/bench/work.h"

enum {
    BENCH_FORKS_QUEUES = 4,
    BENCH_FORKS_CASES = 6
};

struct bench_forks_figures {
    struct bench_samples submit_us, complete_us;
};

// One number of nodes: half-way through a launch they are on all queues.
struct bench_forks_case {
    size_t nodes;
    weir_graph *graph;
    struct bench_forks_figures as_graph, one_by_one;
};

struct bench_forks {
    struct bench *bench;
    weir_kernel *increment; // the caller's
    uint64_t launches;
    weir_queue *queues[BENCH_FORKS_QUEUES];
    weir_buffer *values;
    struct bench_forks_case cases[BENCH_FORKS_CASES];
    size_t count;
};

// Captures a graph for each number of kernels that is large enough to use every queue.
// Closing accepts forks that were not opened, or only in part.
bool bench_forks_open(struct bench_forks *forks, const struct bench_list *nodes);
void bench_forks_close(struct bench_forks *forks);

// Compares the results with their expected values.
bool bench_forks_check(struct bench_forks *forks);

// Measures in the current turn, and the number of bench_keep() calls in each turn.
bool bench_forks_measure(struct bench_forks *forks);
uint64_t bench_forks_steps(const struct bench_forks *forks);

void bench_forks_report(struct bench_forks *forks);

#endif
