// See the header.
#include "tests/bench/peers/graph_job.h"

#include <stdio.h>

enum {
    // Launches that are timed together; fewer than a driver queues up.
    BATCH = 200
};

static const unsigned lengths[GRAPHS] = {1, 5, 20, 100};

// A graph whose kernels count, launched three times, counts to three times its length.
static bool check(const struct graph_calls *calls, void *user, unsigned graph)
{
    uint32_t counted = 0;
    bool fine = calls->capture(user, graph, lengths[graph], 1) && calls->set_counter(user, counted);
    for (int i = 0; fine && i < 3; i++)
        fine = calls->launch_graph(user, graph);
    fine = fine && calls->get_counter(user, &counted);
    calls->destroy(user, graph);
    if (fine && counted != 3 * lengths[graph])
        return peer_fail("three launches of a graph of %u counted to %u", lengths[graph], counted);
    peer_checked(1);
    return fine;
}

bool graph_open(const struct graph_calls *calls, void *user)
{
    for (unsigned i = 0; i < GRAPHS; i++)
        if (!check(calls, user, i) || !calls->capture(user, i, lengths[i], 0))
            return false;
    return true;
}

// Milliseconds a launch: until the last was submitted, and until all were done.
static bool time_batch(const struct graph_calls *calls, void *user, unsigned graph, bool as_graph,
                       double *out_submit, double *out_complete)
{
    // As many single kernels as a driver accepts without blocking.
    const unsigned batch = as_graph ? BATCH : BATCH / lengths[graph] + 1;
    const double began = peer_now_ms();
    for (unsigned i = 0; i < batch; i++) {
        bool fine = true;
        if (as_graph)
            fine = calls->launch_graph(user, graph);
        for (unsigned k = 0; !as_graph && fine && k < lengths[graph]; k++)
            fine = calls->launch(user, 0);
        if (!fine)
            return false;
    }
    const double submitted = peer_now_ms();
    if (!calls->finish(user))
        return false;
    *out_submit = (submitted - began) / batch;
    *out_complete = (peer_now_ms() - began) / batch;
    return true;
}

bool graph_round(const struct graph_calls *calls, void *user)
{
    for (unsigned i = 0; i < GRAPHS; i++)
        for (int as_graph = 1; as_graph >= 0; as_graph--) {
            const char *way = as_graph ? "graph" : "single";
            char name[64];
            double submit, complete;
            // The first round is a warm-up.
            for (int k = 0; k < 2; k++)
                if (!time_batch(calls, user, i, as_graph, &submit, &complete))
                    return false;
            snprintf(name, sizeof name, "%s_%u_submit", way, lengths[i]);
            peer_value(name, submit);
            snprintf(name, sizeof name, "%s_%u_complete", way, lengths[i]);
            peer_value(name, complete);
        }
    return true;
}

void graph_close(const struct graph_calls *calls, void *user)
{
    for (unsigned i = 0; i < GRAPHS; i++)
        calls->destroy(user, i);
}
