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

static bool open_runtime(void *user)
{
    struct weir_start *start = user;
    return weir_peer_open_runtime(&start->runtime);
}

static bool open_device(void *user)
{
    struct weir_start *start = user;
    return weir_peer_open_device(start->runtime, &start->device);
}

static bool load(void *user)
{
    struct weir_start *start = user;
    return weir_peer_fine(weir_program_create(
        start->device, WEIR_PARAMS(weir_program, .bundle = &conformance_kernels), &start->program));
}

static bool find(void *user)
{
    struct weir_start *start = user;
    return weir_peer_fine(weir_kernel_create(start->program, "scale", &start->scale));
}

static bool make_queue(void *user)
{
    struct weir_start *start = user;
    return weir_peer_queue(start->device, "first", &start->queue);
}

static bool make_in(void *user)
{
    struct weir_start *start = user;
    return weir_peer_buffer(start->device, "in", sizeof start->job.numbers, WEIR_PLACE_DEVICE,
                            &start->in);
}

static bool make_out(void *user)
{
    struct weir_start *start = user;
    return weir_peer_buffer(start->device, "out", sizeof start->job.numbers, WEIR_PLACE_DEVICE,
                            &start->out);
}

static bool upload(void *user)
{
    struct weir_start *start = user;
    return weir_peer_fine(
        weir_upload(start->queue, start->in, 0, start->job.numbers, sizeof start->job.numbers));
}

static bool compute(void *user)
{
    struct weir_start *start = user;
    return weir_peer_fine(weir_queue_launch(start->queue, start->scale,
                                            weir_dim(START_NUMBERS / 64, 1, 1), weir_dim(64, 1, 1),
                                            weir_whole_in(start->in), weir_whole_out(start->out),
                                            2.0f, (uint32_t)START_NUMBERS)) &&
           weir_peer_fine(weir_download(start->queue, start->job.results, start->out, 0,
                                        sizeof start->job.results));
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
        .job = {.name = "weir_start",
                .about = "Starts with Weir, until the first result.",
                .steps = {{"runtime", open_runtime},
                          {"device", open_device},
                          {"program", load},
                          {"kernel", find},
                          {"queue", make_queue},
                          {"buffer", make_in},
                          {"next_buffer", make_out},
                          {"upload", upload},
                          {"compute", compute}},
                .step_count = 9,
                .end = end,
                .user = &start},
    };
    return start_main(&start.job, argc, argv);
}
