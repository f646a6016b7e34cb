// The job with Weir.
#include "kernels/conformance/conformance.h"
#include "tests/bench/peers/start_job.h"
#include "tests/bench/peers/weir.h"

struct weir_start {
    struct start_job job;
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_program *program;
    weir_kernel *scale;
    weir_buffer *in, *out;
};

static bool open_device(void *user)
{
    struct weir_start *start = user;
    return weir_peer_open(&start->runtime, &start->device);
}

static bool load(void *user)
{
    struct weir_start *start = user;
    return weir_peer_fine(
               weir_program_create(start->device,
                                   WEIR_PARAMS(weir_program, .bundle = &conformance_kernels),
                                   &start->program)) &&
           weir_peer_fine(weir_kernel_create(start->program, "scale", &start->scale));
}

static bool make(void *user)
{
    struct weir_start *start = user;
    const size_t size = sizeof start->job.numbers;
    return weir_peer_queue(start->device, "first", &start->queue) &&
           weir_peer_buffer(start->device, "in", size, WEIR_PLACE_DEVICE, &start->in) &&
           weir_peer_buffer(start->device, "out", size, WEIR_PLACE_DEVICE, &start->out);
}

static bool compute(void *user)
{
    struct weir_start *start = user;
    const size_t size = sizeof start->job.numbers;
    return weir_peer_fine(weir_upload(start->queue, start->in, 0, start->job.numbers, size)) &&
           weir_peer_fine(weir_queue_launch(start->queue, start->scale,
                                            weir_dim(START_NUMBERS / 64, 1, 1), weir_dim(64, 1, 1),
                                            weir_whole_in(start->in), weir_whole_out(start->out),
                                            2.0f, (uint32_t)START_NUMBERS)) &&
           weir_peer_fine(weir_download(start->queue, start->job.results, start->out, 0, size));
}

static void end(void *user)
{
    struct weir_start *start = user;
    weir_buffer_destroy(&start->in);
    weir_buffer_destroy(&start->out);
    weir_queue_destroy(&start->queue);
    weir_kernel_destroy(&start->scale);
    weir_program_destroy(&start->program);
    weir_peer_close(&start->runtime, &start->device);
}

int main(int argc, char **argv)
{
    static struct weir_start start = {
        .job =
            {.name = "weir_start",
             .about = "Starts with Weir, until the first result.",
             .steps = {{"open", open_device}, {"load", load}, {"make", make}, {"first", compute}},
             .step_count = 4,
             .end = end,
             .user = &start},
    };
    return start_main(&start.job, argc, argv);
}
