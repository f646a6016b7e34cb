// What raw_cuda_graph.c measures, with Weir's graphs and Weir's launches.
#include <stdio.h>

#include "kernels/conformance/conformance.h"
#include "tests/bench/peers/weir.h"

enum {
    // Launches that are timed together; fewer than a driver queues up.
    BATCH = 200
};

static const unsigned lengths[] = {1, 5, 20, 100};

enum {
    LENGTHS = sizeof lengths / sizeof *lengths
};

struct job {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_program *program;
    weir_kernel *increment;
    weir_buffer *counter;
    weir_graph *graphs[LENGTHS];
};

// One work-item; with `count` 0 it does nothing.
static bool launch(struct job *job, uint32_t count)
{
    return weir_peer_fine(
        weir_queue_launch(job->queue, job->increment, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                          weir_inout(job->counter, 0, weir_buffer_size(job->counter)), 1u, count));
}

static bool capture(struct job *job, unsigned length, uint32_t count, weir_graph **out_graph)
{
    bool fine = weir_peer_fine(weir_capture_begin(job->queue));
    for (unsigned i = 0; fine && i < length; i++)
        fine = launch(job, count);
    return fine && weir_peer_fine(weir_capture_end(job->queue, NULL, out_graph));
}

// A graph whose kernels count, launched three times, counts to three times its length.
static bool check(struct job *job, unsigned length)
{
    weir_graph *graph = NULL;
    uint32_t counted = 0;
    bool fine = capture(job, length, 1, &graph) &&
                weir_peer_fine(weir_upload(job->queue, job->counter, 0, &counted, sizeof counted));
    for (int i = 0; fine && i < 3; i++)
        fine = weir_peer_fine(weir_queue_graph(job->queue, graph));
    fine = fine &&
           weir_peer_fine(weir_download(job->queue, &counted, job->counter, 0, sizeof counted));
    weir_graph_destroy(&graph);
    if (fine && counted != 3 * length)
        return peer_fail("three launches of a graph of %u counted to %u", length, counted);
    peer_checked(1);
    return fine;
}

static bool open_job(void *user)
{
    struct job *job = user;
    const struct weir_program_params program = {.struct_size = sizeof program,
                                                .label = "peer",
                                                .bundle = &conformance_kernels};
    if (!weir_peer_open(&job->runtime, &job->device) ||
        !weir_peer_queue(job->device, "graphs", &job->queue) ||
        !weir_peer_fine(weir_program_create(job->device, &program, &job->program)) ||
        !weir_peer_fine(weir_kernel_create(job->program, "increment", &job->increment)) ||
        !weir_peer_buffer(job->device, "counter", 256, WEIR_PLACE_DEVICE, &job->counter))
        return false;
    for (unsigned i = 0; i < LENGTHS; i++)
        if (!check(job, lengths[i]) || !capture(job, lengths[i], 0, &job->graphs[i]))
            return false;
    return true;
}

// Milliseconds a launch: until the last was submitted, and until all were done.
static bool time_batch(struct job *job, unsigned index, bool as_graph, double *out_submit,
                       double *out_complete)
{
    // As many kernels as a driver takes without waiting, when they are single.
    const unsigned batch = as_graph ? BATCH : BATCH / lengths[index] + 1;
    const double began = peer_now_ms();
    for (unsigned i = 0; i < batch; i++) {
        bool fine = true;
        if (as_graph)
            fine = weir_peer_fine(weir_queue_graph(job->queue, job->graphs[index]));
        for (unsigned k = 0; !as_graph && fine && k < lengths[index]; k++)
            fine = launch(job, 0);
        if (!fine)
            return false;
    }
    const double submitted = peer_now_ms();
    if (!weir_peer_fine(weir_queue_sync(job->queue, WEIR_FOREVER)))
        return false;
    *out_submit = (submitted - began) / batch;
    *out_complete = (peer_now_ms() - began) / batch;
    return true;
}

static bool round_job(void *user)
{
    struct job *job = user;
    for (unsigned i = 0; i < LENGTHS; i++)
        for (int as_graph = 1; as_graph >= 0; as_graph--) {
            char name[64];
            double submit, complete;
            // The first warms up.
            for (int k = 0; k < 2; k++)
                if (!time_batch(job, i, as_graph, &submit, &complete))
                    return false;
            snprintf(name, sizeof name, "%s_%u_submit", as_graph ? "graph" : "single", lengths[i]);
            peer_value(name, submit);
            snprintf(name, sizeof name, "%s_%u_complete", as_graph ? "graph" : "single",
                     lengths[i]);
            peer_value(name, complete);
        }
    return true;
}

static void close_job(void *user)
{
    struct job *job = user;
    for (unsigned i = 0; i < LENGTHS; i++)
        weir_graph_destroy(&job->graphs[i]);
    weir_buffer_destroy(&job->counter);
    weir_kernel_destroy(&job->increment);
    weir_program_destroy(&job->program);
    weir_queue_destroy(&job->queue);
    weir_peer_close(&job->runtime, &job->device);
}

int main(int argc, char **argv)
{
    static struct job job;
    const struct peer peer = {
        .name = "weir_graph",
        .about = "Launches chains of empty kernels as Weir's graphs and one by one.",
        .open = open_job,
        .round = round_job,
        .close = close_job,
    };
    return peer_main(&peer, &job, argc, argv);
}
