// The steady state, by counting calls of the driver: once warm, a pipeline makes a fixed number of calls per
// frame, and none that allocates, creates, frees, loads, or waits for a stream or the whole device.
#include <string.h>

#include "patterns/pipeline.h"
#include "tests/cuda/rig.h"

enum {
    NUMBERS = 1024,
    BYTES = NUMBERS * 4,
    SLOTS = 3,
    WARM = 3000, // queues have all of the events that they keep
    FRAMES = 1000,
    NAMES_MOST = 256
};

// The calls of ordinary work, and of the trail that names the suspects of a fault.
// Waiting for one event, querying the thread's context, and its mode beside captures wait for no other work.
static const char *const allowed[] = {
    "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync",    "cuLaunchKernel",
    "cuEventRecord",     "cuStreamWaitEvent",    "cuEventSynchronize",
    "cuEventQuery",      "cuStreamQuery",        "cuCtxGetCurrent",
    "cuCtxSetCurrent",   "cuStreamWriteValue32", "cuThreadExchangeStreamCaptureMode",
};

struct calls {
    long counts[NAMES_MOST];
};

static void count(struct calls *calls)
{
    const struct weir_test_cuda *fake = rig_fake();
    for (size_t i = 0; i < NAMES_MOST && fake->name(i); i++)
        calls->counts[i] = fake->calls(fake->name(i));
}

static long made(const struct calls *from, const struct calls *to, const char *name)
{
    const struct weir_test_cuda *fake = rig_fake();
    for (size_t i = 0; i < NAMES_MOST && fake->name(i); i++)
        if (strcmp(fake->name(i), name) == 0)
            return to->counts[i] - from->counts[i];
    return -1;
}

static bool is_allowed(const char *name)
{
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (strcmp(allowed[i], name) == 0)
            return true;
    return false;
}

static void expect_only_work(const struct calls *from, const struct calls *to)
{
    const struct weir_test_cuda *fake = rig_fake();
    for (size_t i = 0; i < NAMES_MOST && fake->name(i); i++) {
        if (is_allowed(fake->name(i)) || to->counts[i] == from->counts[i])
            continue;
        weir_test_fail(__FILE__, __LINE__, "%ld calls of %s in the steady state",
                       to->counts[i] - from->counts[i], fake->name(i));
    }
}

struct slot {
    weir_buffer *in, *values, *out;
};

struct work {
    struct rig rig;
    weir_program *program;
    weir_kernel *increment;
    struct slot slots[SLOTS];
};

static weir_status create_slot(void *user, weir_device *device, uint32_t index, void **out_slot)
{
    struct work *work = user;
    struct slot *slot = &work->slots[index];
    slot->in = rig_buffer(&work->rig, BYTES, WEIR_PLACE_HOST);
    slot->values = rig_buffer(&work->rig, BYTES, WEIR_PLACE_DEVICE);
    slot->out = rig_buffer(&work->rig, BYTES, WEIR_PLACE_HOST);
    *out_slot = slot;
    return WEIR_OK;
}

static void destroy_slot(void *user, void *slot_pointer)
{
    struct slot *slot = slot_pointer;
    weir_buffer_destroy(&slot->in);
    weir_buffer_destroy(&slot->values);
    weir_buffer_destroy(&slot->out);
}

static weir_status upload(void *user, void *slot_pointer, void *frame, weir_queue *queue)
{
    const struct slot *slot = slot_pointer;
    return weir_queue_copy(queue, slot->values, 0, slot->in, 0, BYTES);
}

static weir_status compute(void *user, void *slot_pointer, void *frame, weir_queue *queue)
{
    const struct work *work = user;
    const struct slot *slot = slot_pointer;
    return weir_queue_launch(queue, work->increment, weir_dim(NUMBERS / 64, 1, 1),
                             weir_dim(64, 1, 1), weir_inout(slot->values, 0, BYTES), 1u,
                             (uint32_t)NUMBERS);
}

static weir_status download(void *user, void *slot_pointer, void *frame, weir_queue *queue)
{
    const struct slot *slot = slot_pointer;
    return weir_queue_copy(queue, slot->out, 0, slot->values, 0, BYTES);
}

static bool start(struct work *work)
{
    *work = (struct work){0};
    if (!rig_start(&work->rig))
        return false;
    work->program = rig_program(&work->rig);
    work->increment = rig_kernel(work->program, "increment");
    return work->increment != NULL;
}

static void finish(struct work *work)
{
    weir_kernel_destroy(&work->increment);
    weir_program_destroy(&work->program);
    rig_finish(&work->rig);
}

static void run_frames(weir_pipeline *pipeline, int frames)
{
    static int frame;
    for (int i = 0; i < frames; i++)
        EXPECT_OK(weir_pipeline_submit(pipeline, &frame));
    EXPECT_OK(weir_pipeline_drain(pipeline, GUARD_NS));
}

WEIR_TEST(CudaSteady, APipelineMakesNothingButItsWork)
{
    static const struct weir_pipeline_stage stages[] = {
        {.name = "upload", .submit = upload},
        {.name = "compute", .depends_on = WEIR_PIPELINE_AFTER(0), .submit = compute},
        {.name = "download", .depends_on = WEIR_PIPELINE_AFTER(1), .submit = download},
    };
    struct work work;
    struct calls from = {{0}}, to = {{0}};
    struct weir_pipeline_statistics statistics;
    weir_pipeline *pipeline;
    ASSERT_TRUE(start(&work));
    ASSERT_OK(
        weir_pipeline_create(WEIR_PARAMS(weir_pipeline, .device = work.rig.device,
                                         .label = "steady", .stages = stages, .stage_count = 3,
                                         .stage_size = sizeof(struct weir_pipeline_stage),
                                         .slot_count = SLOTS, .slot_create = create_slot,
                                         .slot_destroy = destroy_slot, .user = &work),
                             &pipeline));
    run_frames(pipeline, WARM);
    count(&from);
    run_frames(pipeline, FRAMES);
    count(&to);

    expect_only_work(&from, &to);
    EXPECT_INT_EQ(made(&from, &to, "cuMemcpyHtoDAsync"), FRAMES);
    EXPECT_INT_EQ(made(&from, &to, "cuLaunchKernel"), FRAMES);
    EXPECT_INT_EQ(made(&from, &to, "cuMemcpyDtoHAsync"), FRAMES);
    EXPECT_INT_EQ(made(&from, &to, "cuEventRecord"), 3 * FRAMES);
    // A wait for a point that is known to be complete needs no call.
    EXPECT_INT_LE(made(&from, &to, "cuStreamWaitEvent"), 2 * FRAMES);
    weir_pipeline_get_statistics(pipeline, &statistics);
    EXPECT_UINT_EQ(statistics.succeeded, WARM + FRAMES);
    WEIR_IGNORE(weir_pipeline_destroy(&pipeline));
    finish(&work);
}
