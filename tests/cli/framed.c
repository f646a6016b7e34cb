// For sim_sweep_test.sh: a pipeline of three stages with buffers for each slot, up, run and down, 1 MiB
// each.
//
//     framed --slots N [--frames N]
//
// Without them, 2 slots and 8 frames.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "kernels/conformance/conformance.h"
#include "patterns/pipeline.h"

enum {
    BYTES = 1 << 20,
    BLOCKS = 16,
};

struct job {
    weir_kernel *kernel;
    unsigned delivered;
};

struct slot {
    weir_buffer *host;
    weir_buffer *memory;
};

static void slot_destroy(void *user, void *data)
{
    struct slot *slot = data;
    weir_buffer_destroy(&slot->host);
    weir_buffer_destroy(&slot->memory);
    free(slot);
}

static weir_status slot_create(void *user, weir_device *device, uint32_t index, void **out_slot)
{
    struct slot *slot = calloc(1, sizeof *slot);
    (void)user, (void)index;
    if (!slot)
        return WEIR_ERROR_OUT_OF_MEMORY;
    WEIR_CHECK(weir_buffer_pair(device, BYTES, &slot->memory, &slot->host));
    *out_slot = slot;
    return WEIR_OK;
}

static weir_status up(void *user, void *data, void *frame, weir_queue *queue)
{
    const struct slot *slot = data;
    (void)user, (void)frame;
    return weir_queue_copy(queue, slot->memory, 0, slot->host, 0, BYTES);
}

static weir_status run(void *user, void *data, void *frame, weir_queue *queue)
{
    const struct job *job = user;
    const struct slot *slot = data;
    return weir_queue_launch(queue, job->kernel, weir_dim(BLOCKS, 1, 1), weir_dim(1, 1, 1),
                             weir_out(slot->memory, 0, 256), 1u, UINT64_C(1));
}

static weir_status down(void *user, void *data, void *frame, weir_queue *queue)
{
    const struct slot *slot = data;
    (void)user, (void)frame;
    return weir_queue_copy(queue, slot->host, 0, slot->memory, 0, BYTES);
}

static void deliver(void *user, void *frame, void *slot, const struct weir_pipeline_result *result)
{
    struct job *job = user;
    (void)frame, (void)slot;
    WEIR_CHECK(result->status);
    job->delivered++;
}

static void run_frames(struct job *job, weir_device *device, uint32_t slots, unsigned frames)
{
    static const struct weir_pipeline_stage stages[] = {
        {.name = "up", .submit = up},
        {.name = "run", .depends_on = WEIR_PIPELINE_AFTER(0), .submit = run},
        {.name = "down", .depends_on = WEIR_PIPELINE_AFTER(1), .submit = down},
    };
    const struct weir_pipeline_params params = {
        .struct_size = sizeof params,
        .device = device,
        .label = "framed",
        .stages = stages,
        .stage_count = 3,
        .stage_size = sizeof stages[0],
        .slot_count = slots,
        .slot_create = slot_create,
        .slot_destroy = slot_destroy,
        .deliver = deliver,
        .user = job,
    };
    weir_pipeline *pipeline;
    WEIR_CHECK(weir_pipeline_create(&params, &pipeline));
    for (unsigned i = 0; i < frames; i++)
        WEIR_CHECK(weir_pipeline_submit(pipeline, job));
    WEIR_CHECK(weir_pipeline_drain(pipeline, WEIR_FOREVER));
    WEIR_CHECK(weir_pipeline_destroy(&pipeline));
}

static unsigned option(int argc, char **argv, const char *name, unsigned otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return (unsigned)strtoul(argv[i + 1], NULL, 10);
    return otherwise;
}

int main(int argc, char **argv)
{
    const unsigned slots = option(argc, argv, "--slots", 2);
    const unsigned frames = option(argc, argv, "--frames", 8);
    struct job job = {.delivered = 0};
    weir_device *device;
    WEIR_CHECK(weir_device_open(NULL, NULL, &device));
    WEIR_CHECK(weir_kernel_load(device, &conformance_kernels, "spin", &job.kernel));
    run_frames(&job, device, slots, frames);
    weir_kernel_destroy(&job.kernel);
    WEIR_CHECK(weir_device_close(&device));
    return job.delivered == frames ? 0 : 1;
}
