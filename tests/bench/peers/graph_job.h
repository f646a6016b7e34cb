// The graph job: chains of empty kernels as graphs, and as single launches. How long a launch
// takes to submit, and to complete when launches follow one another. The lengths, the checks
// and the timing are here; a peer provides the calls.
#ifndef WEIR_TESTS_BENCH_PEERS_GRAPH_JOB_H
#define WEIR_TESTS_BENCH_PEERS_GRAPH_JOB_H

#include "tests/bench/peers/peer.h"

enum {
    GRAPHS = 4 // of one length each, numbered from 0
};

// The calls that a peer provides. The launches return at once.
// Errors: false, after peer_fail().
struct graph_calls {
    // A kernel of one work-item, which adds `count`, 0 or 1, to the peer's counter.
    bool (*launch)(void *user, uint32_t count);
    // Makes `graph` of `length` such launches.
    bool (*capture)(void *user, unsigned graph, unsigned length, uint32_t count);
    // Also accepts a graph that was never made.
    void (*destroy)(void *user, unsigned graph);
    bool (*launch_graph)(void *user, unsigned graph);
    bool (*finish)(void *user);
    bool (*set_counter)(void *user, uint32_t value);
    bool (*get_counter)(void *user, uint32_t *out_value);
};

// Makes every graph, first of kernels that count, which is checked, then of those that do not.
bool graph_open(const struct graph_calls *calls, void *user);

// Measures every length both ways, with two peer_value() each.
bool graph_round(const struct graph_calls *calls, void *user);

void graph_close(const struct graph_calls *calls, void *user);

#endif
