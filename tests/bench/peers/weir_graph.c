// The graph job with Weir's graphs and Weir's launches.
#include "kernels/conformance/conformance.h"
#include "tests/bench/peers/graph_job.h"
#include "tests/bench/peers/weir.h"

struct job {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_program *program;
    weir_kernel *increment;
    weir_buffer *counter;
    weir_graph *graphs[GRAPHS];
};

// The calls of the job.

static bool launch(void *user, uint32_t count)
{
    struct job *job = user;
    return weir_peer_fine(
        weir_queue_launch(job->queue, job->increment, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                          weir_inout(job->counter, 0, weir_buffer_size(job->counter)), 1u, count));
}

static bool capture(void *user, unsigned graph, unsigned length, uint32_t count)
{
    struct job *job = user;
    bool fine = weir_peer_fine(weir_capture_begin(job->queue));
    for (unsigned i = 0; fine && i < length; i++)
        fine = launch(job, count);
    return fine && weir_peer_fine(weir_capture_end(job->queue, NULL, &job->graphs[graph]));
}

static void destroy(void *user, unsigned graph)
{
    struct job *job = user;
    weir_graph_destroy(&job->graphs[graph]);
}

static bool launch_graph(void *user, unsigned graph)
{
    struct job *job = user;
    return weir_peer_fine(weir_queue_graph(job->queue, job->graphs[graph]));
}

static bool finish(void *user)
{
    struct job *job = user;
    return weir_peer_fine(weir_queue_sync(job->queue, WEIR_FOREVER));
}

static bool set_counter(void *user, uint32_t value)
{
    struct job *job = user;
    return weir_peer_fine(weir_upload(job->queue, job->counter, 0, &value, sizeof value));
}

static bool get_counter(void *user, uint32_t *out_value)
{
    struct job *job = user;
    return weir_peer_fine(weir_download(job->queue, out_value, job->counter, 0, sizeof *out_value));
}

static const struct graph_calls calls = {
    .launch = launch,
    .capture = capture,
    .destroy = destroy,
    .launch_graph = launch_graph,
    .finish = finish,
    .set_counter = set_counter,
    .get_counter = get_counter,
};

// The peer.

static bool open_job(void *user)
{
    struct job *job = user;
    const struct weir_program_params program = {.struct_size = sizeof program,
                                                .label = "peer",
                                                .bundle = &conformance_kernels};
    return weir_peer_open(&job->runtime, &job->device) &&
           weir_peer_queue(job->device, "graphs", &job->queue) &&
           weir_peer_fine(weir_program_create(job->device, &program, &job->program)) &&
           weir_peer_fine(weir_kernel_create(job->program, "increment", &job->increment)) &&
           weir_peer_buffer(job->device, "counter", 256, WEIR_PLACE_DEVICE, &job->counter) &&
           graph_open(&calls, job);
}

static bool round_job(void *user)
{
    return graph_round(&calls, user);
}

static void close_job(void *user)
{
    struct job *job = user;
    graph_close(&calls, job);
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
