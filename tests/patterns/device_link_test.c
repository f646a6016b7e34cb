// Copies between two devices of a chain, and a pipeline with stages on both: on the null backend,
// whose devices are peers, and on the drivers of OpenCL, whose devices are not.
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "patterns/device_link.h"
#include "patterns/pipeline.h"
#include "tests/patterns/rig.h"

enum {
    WORDS = 512,
    BYTES = WORDS * 4,
    FRAMES = 40
};

struct frame {
    uint32_t number;
    bool fails; // its work on the first device
};

struct slot {
    weir_buffer *in, *first, *second, *out;
};

// One at a time.
static struct {
    weir_device *other;
    weir_device_link *link;
    struct recorder recorder;
    unsigned wrong;
} world;

// True if the chain has two devices.
static bool open_world(void)
{
    memset(&world, 0, sizeof world);
    recorder_init(&world.recorder);
    EXPECT_OK(rig_open_with("[null]\ndevices = 2\n"));
    return weir_device_count(rig.runtime) > 1 &&
           weir_device_open(rig.runtime, WEIR_PARAMS(weir_device, .select = "1"), &world.other) ==
               WEIR_OK;
}

static weir_status open_link(size_t bytes)
{
    return weir_device_link_create(WEIR_PARAMS(weir_device_link, .label = "between",
                                               .from = rig.device, .to = world.other,
                                               .bytes = bytes),
                                   &world.link);
}

static void close_world(void)
{
    weir_device_link_destroy(&world.link);
    EXPECT_NULL(world.link);
    EXPECT_UINT_EQ(world.wrong, 0);
    if (world.other)
        EXPECT_OK(weir_device_close(&world.other));
    rig_close();
    recorder_finish(&world.recorder);
}

#define OPEN_WORLD()                                \
    do {                                            \
        if (!open_world()) {                        \
            close_world();                          \
            WEIR_SKIP("this chain has one device"); \
        }                                           \
    } while (0)

// --- the link ---

WEIR_TEST(DeviceLink, IsDirectBetweenPeers)
{
    OPEN_WORLD();
    ASSERT_OK(open_link(BYTES));
    EXPECT_INT_EQ(weir_device_link_is_direct(world.link),
                  weir_device_can_peer(world.other, rig.device));
    EXPECT_FALSE(weir_device_link_is_direct(NULL));
    close_world();
}

// Copies of many sizes on two queues in turn, with slow work before them: more than have a room.
WEIR_TEST(DeviceLink, CopiesInOrderOfItsQueues)
{
    enum {
        COPIES = 600
    };
    weir_queue *queues[2], *filler;
    weir_buffer *in, *src, *dst, *out;
    OPEN_WORLD();
    ASSERT_OK(open_link(BYTES));
    ASSERT_OK(weir_queue_create(rig.device, NULL, &filler));
    ASSERT_OK(weir_queue_create(world.other, NULL, &queues[0]));
    ASSERT_OK(weir_queue_create(world.other, NULL, &queues[1]));
    ASSERT_OK(rig_buffer_on(rig.device, (size_t)COPIES * 4, WEIR_PLACE_HOST, &in));
    ASSERT_OK(rig_buffer_on(rig.device, (size_t)COPIES * 4, WEIR_PLACE_DEVICE, &src));
    ASSERT_OK(rig_buffer_on(world.other, (size_t)COPIES * 4, WEIR_PLACE_DEVICE, &dst));
    ASSERT_OK(rig_buffer_on(world.other, (size_t)COPIES * 4, WEIR_PLACE_HOST, &out));
    rig_write_words(in, 0, COPIES, 1000);

    struct weir_event filled;
    ASSERT_OK(weir_queue_host_call(filler, rig_dawdle, (void *)(uintptr_t)2));
    ASSERT_OK(weir_queue_copy(filler, src, 0, in, 0, (size_t)COPIES * 4));
    ASSERT_OK(weir_queue_record(filler, &filled));
    ASSERT_OK(weir_queue_wait(queues[0], filled));
    ASSERT_OK(weir_queue_wait(queues[1], filled));
    for (size_t i = 0; i < COPIES; i++) {
        if (i % 50 == 0)
            ASSERT_OK(weir_queue_host_call(queues[i % 2], rig_dawdle, (void *)(uintptr_t)i));
        ASSERT_OK(weir_device_link_copy(world.link, queues[i % 2], dst, 4 * i, src, 4 * i, 4));
    }
    ASSERT_OK(weir_device_link_copy(world.link, queues[0], dst, 0, src, 0, 0));
    ASSERT_OK(weir_queue_sync(queues[0], WEIR_FOREVER));
    ASSERT_OK(weir_queue_copy(queues[1], out, 0, dst, 0, (size_t)COPIES * 4));
    ASSERT_OK(weir_queue_sync(queues[1], WEIR_FOREVER));
    EXPECT_UINT_EQ(rig_wrong_words(out, 0, COPIES, 1000), 0);

    weir_buffer_destroy(&in), weir_buffer_destroy(&src), weir_buffer_destroy(&dst);
    weir_buffer_destroy(&out), weir_queue_destroy(&filler);
    weir_queue_destroy(&queues[0]), weir_queue_destroy(&queues[1]);
    close_world();
}

static weir_status fail_at_gate(void *user)
{
    while (sem_wait(user) != 0)
        continue;
    return WEIR_ERROR_IO;
}

// A queue that fails, and copies that it refuses then, more than the link has rooms: once the queue is
// recovered the link copies again.
WEIR_TEST(DeviceLink, SurvivesCopiesThatAreRefused)
{
    weir_queue *queue;
    weir_buffer *src, *dst;
    sem_t gate;
    enum {
        SIZE = 2 * 4
    };
    OPEN_WORLD();
    ASSERT_INT_EQ(sem_init(&gate, 0, 0), 0);
    ASSERT_OK(open_link(BYTES));
    ASSERT_OK(weir_queue_create(world.other, NULL, &queue));
    ASSERT_OK(rig_buffer_on(rig.device, SIZE, WEIR_PLACE_HOST, &src));
    ASSERT_OK(rig_buffer_on(world.other, SIZE, WEIR_PLACE_HOST, &dst));
    rig_write_words(src, 0, 2, 7);
    ASSERT_OK(weir_queue_host_call(queue, fail_at_gate, &gate));
    ASSERT_OK(weir_device_link_copy(world.link, queue, dst, 0, src, 0, SIZE));
    ASSERT_INT_EQ(sem_post(&gate), 0);
    EXPECT_INT_EQ(weir_queue_sync(queue, WEIR_FOREVER), WEIR_ERROR_IO);
    for (int i = 0; i < 5; i++)
        EXPECT_INT_EQ(weir_device_link_copy(world.link, queue, dst, 0, src, 0, SIZE),
                      WEIR_ERROR_IO);
    ASSERT_OK(weir_queue_recover(queue));
    for (int i = 0; i < 3; i++)
        EXPECT_OK(weir_device_link_copy(world.link, queue, dst, 0, src, 0, SIZE));
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
    EXPECT_UINT_EQ(rig_wrong_words(dst, 0, 2, 7), 0);
    weir_buffer_destroy(&src), weir_buffer_destroy(&dst), weir_queue_destroy(&queue);
    close_world();
    sem_destroy(&gate);
}

WEIR_TEST(DeviceLink, RefusesWrongUse)
{
    weir_queue *queue;
    weir_runtime *runtime = NULL;
    weir_device *foreign = NULL;
    struct weir_device_link_params params = {.struct_size = sizeof params, .bytes = 1};
    weir_device_link *link;
    OPEN_WORLD();
    rig_expect_refused(weir_device_link_create(NULL, &link), "params is NULL", "");
    rig_expect_refused(weir_device_link_create(&params, &link), "params->from is NULL", "set it");
    EXPECT_STR_EQ(weir_last_error()->object, "link");
    params.from = rig.device;
    rig_expect_refused(weir_device_link_create(&params, &link), "params->to is NULL", "set it");
    params.to = world.other;
    params.bytes = 0;
    rig_expect_refused(weir_device_link_create(&params, &link), "params->bytes is 0",
                       "largest copy");
    ASSERT_OK(weir_open(NULL, &runtime));
    ASSERT_OK(weir_device_open(runtime, NULL, &foreign));
    params.to = foreign;
    rig_expect_refused(weir_device_link_create(&params, &link), "two runtimes", "from one runtime");
    EXPECT_NULL(link);
    ASSERT_OK(weir_device_close(&foreign));
    ASSERT_OK(weir_close(&runtime));

    ASSERT_OK(open_link(BYTES));
    ASSERT_OK(weir_queue_create(rig.device, NULL, &queue));
    rig_expect_refused(weir_device_link_copy(world.link, queue, NULL, 0, NULL, 0, 4),
                       "queue '(no label)' belongs to", "that the link leads to");
    rig_expect_refused(weir_device_link_copy(world.link, NULL, NULL, 0, NULL, 0, 4),
                       "queue is NULL", "create it first");
    rig_expect_refused(weir_device_link_copy(NULL, queue, NULL, 0, NULL, 0, 4), "link is NULL",
                       "create it first");
    weir_queue_destroy(&queue);
    ASSERT_OK(weir_queue_create(world.other, NULL, &queue));
    rig_expect_refused(weir_device_link_copy(world.link, queue, NULL, 0, NULL, 0, BYTES + 1),
                       "2049 bytes, and the link is for at most 2048", "raise `bytes`");
    EXPECT_INT_EQ(weir_device_link_copy(world.link, queue, NULL, 0, NULL, 0, 4),
                  WEIR_ERROR_INVALID);
    weir_queue_destroy(&queue);
    weir_device_link_destroy(NULL);
    close_world();
}

// --- a pipeline on two devices ---

static void free_slot(void *user, void *data)
{
    struct slot *slot = data;
    weir_buffer_destroy(&slot->in);
    weir_buffer_destroy(&slot->first);
    weir_buffer_destroy(&slot->second);
    weir_buffer_destroy(&slot->out);
    free(slot);
}

static weir_status make_slot(void *user, weir_device *device, uint32_t index, void **out_slot)
{
    struct slot *slot = calloc(1, sizeof *slot);
    weir_status status;
    (void)user, (void)index;
    EXPECT_PTR_EQ(device, rig.device);
    *out_slot = slot;
    if ((status = rig_buffer_on(device, BYTES, WEIR_PLACE_HOST, &slot->in)) == WEIR_OK &&
        (status = rig_buffer_on(device, BYTES, WEIR_PLACE_DEVICE, &slot->first)) == WEIR_OK &&
        (status = rig_buffer_on(world.other, BYTES, WEIR_PLACE_DEVICE, &slot->second)) == WEIR_OK)
        status = rig_buffer_on(world.other, BYTES, WEIR_PLACE_HOST, &slot->out);
    return status;
}

static weir_status prepare(void *user, void *data, void *frame)
{
    struct slot *slot = data;
    rig_write_words(slot->in, 0, WORDS, ((struct frame *)frame)->number * 1000);
    return WEIR_OK;
}

static weir_status on_first(void *user, void *data, void *data_frame, weir_queue *queue)
{
    struct slot *slot = data;
    const struct frame *frame = data_frame;
    EXPECT_PTR_EQ(weir_queue_device(queue), rig.device);
    weir_status status = weir_queue_host_call(queue, rig_dawdle, (void *)(uintptr_t)frame->number);
    if (status == WEIR_OK && frame->fails)
        status = weir_queue_host_call(queue, rig_fail, NULL);
    return status == WEIR_OK ? weir_queue_copy(queue, slot->first, 0, slot->in, 0, BYTES) : status;
}

static weir_status across(void *user, void *data, void *frame, weir_queue *queue)
{
    struct slot *slot = data;
    (void)user, (void)frame;
    EXPECT_PTR_EQ(weir_queue_device(queue), world.other);
    return weir_device_link_copy(world.link, queue, slot->second, 0, slot->first, 0, BYTES);
}

static weir_status on_second(void *user, void *data, void *frame, weir_queue *queue)
{
    struct slot *slot = data;
    (void)user, (void)frame;
    return weir_queue_copy(queue, slot->out, 0, slot->second, 0, BYTES);
}

static void deliver(void *user, void *data_frame, void *data,
                    const struct weir_pipeline_result *result)
{
    const struct frame *frame = data_frame;
    struct slot *slot = data;
    if (result->status == WEIR_OK)
        world.wrong += (unsigned)rig_wrong_words(slot->out, 0, WORDS, frame->number * 1000);
    recorder_add(&world.recorder, data_frame, data, result);
}

static uint64_t same(void *user, void *slot, void *frame)
{
    (void)user, (void)slot, (void)frame;
    return 0;
}

static void fill_stages(struct weir_pipeline_stage stages[3])
{
    const struct weir_pipeline_stage all[3] = {
        {.name = "first", .submit = on_first},
        {.name = "across",
         .depends_on = WEIR_PIPELINE_AFTER(0),
         .submit = across,
         .device = world.other},
        {.name = "second",
         .depends_on = WEIR_PIPELINE_AFTER(1),
         .submit = on_second,
         .device = world.other},
    };
    memcpy(stages, all, sizeof all);
}

static struct weir_pipeline_params params_of(const struct weir_pipeline_stage *stages)
{
    return (struct weir_pipeline_params){
        .struct_size = sizeof(struct weir_pipeline_params),
        .device = rig.device,
        .label = "both",
        .stages = stages,
        .stage_count = 3,
        .stage_size = sizeof *stages,
        .slot_create = make_slot,
        .slot_destroy = free_slot,
        .prepare = prepare,
        .deliver = deliver,
    };
}

static void run(const struct weir_pipeline_params *params, struct frame *frames, uint32_t count,
                struct weir_pipeline_statistics *out_figures)
{
    weir_pipeline *pipeline;
    ASSERT_OK(weir_pipeline_create(params, &pipeline));
    for (uint32_t i = 0; i < count; i++)
        ASSERT_OK(weir_pipeline_submit(pipeline, &frames[i]));
    ASSERT_OK(weir_pipeline_drain(pipeline, WEIR_FOREVER));
    weir_pipeline_get_statistics(pipeline, out_figures);
    EXPECT_OK(weir_pipeline_destroy(&pipeline));
    EXPECT_TRUE(recorder_is_in_order(&world.recorder, count));
}

static void number_frames(struct frame *frames)
{
    for (uint32_t i = 0; i < FRAMES; i++)
        frames[i] = (struct frame){.number = i + 1};
}

WEIR_TEST(PipelineOverDevices, StagesOnTwoDevices)
{
    struct weir_pipeline_stage stages[3];
    struct weir_pipeline_statistics figures = {.accepted = 0};
    struct frame frames[FRAMES];

    for (uint32_t slots = 1; slots <= 4; slots++) {
        weir_test_note("%u slots", slots);
        OPEN_WORLD();
        ASSERT_OK(open_link(BYTES));
        number_frames(frames);
        fill_stages(stages);
        struct weir_pipeline_params params = params_of(stages);
        params.slot_count = slots;
        params.timing = true;
        run(&params, frames, FRAMES, &figures);
        EXPECT_UINT_EQ(figures.succeeded, FRAMES);
        EXPECT_UINT_EQ(figures.timed_frames, FRAMES);
        EXPECT_UINT_LE(figures.covered_ns, figures.busy_ns);
        EXPECT_UINT_GE(figures.covered_ns, figures.stages[0].busy_ns);
        close_world();
    }
}

// A failure on one device reaches the frame's stages on the other, and the frames after it run.
WEIR_TEST(PipelineOverDevices, AFailureCrossesAndIsRecovered)
{
    struct weir_pipeline_stage stages[3];
    struct weir_pipeline_statistics figures = {.accepted = 0};
    struct frame frames[FRAMES];

    OPEN_WORLD();
    ASSERT_OK(open_link(BYTES));
    number_frames(frames);
    frames[5].fails = frames[6].fails = frames[20].fails = true;
    fill_stages(stages);
    struct weir_pipeline_params params = params_of(stages);
    params.slot_count = 1; // other frames fail only with more
    run(&params, frames, FRAMES, &figures);
    EXPECT_UINT_EQ(figures.failed, 3);
    EXPECT_UINT_EQ(figures.succeeded, FRAMES - 3);
    for (uint32_t i = 5; i <= 6; i++) {
        EXPECT_STR_EQ(recorder_at(&world.recorder, i)->stage, "first");
        EXPECT_INT_EQ(recorder_at(&world.recorder, i)->error_status, WEIR_ERROR_IO);
    }
    close_world();
}

WEIR_TEST(PipelineOverDevices, RefusesGraphsAndForeignDevices)
{
    struct weir_pipeline_stage stages[3];
    weir_runtime *runtime = NULL;
    weir_device *foreign = NULL;
    weir_pipeline *pipeline;
    OPEN_WORLD();
    fill_stages(stages);
    struct weir_pipeline_params params = params_of(stages);
    params.graphs = true;
    params.repeat = same;
    rig_expect_refused(weir_pipeline_create(&params, &pipeline),
                       "stage 1 ('across') is on another device, and a graph has one",
                       "graphs = 0");
    params.graphs = false;
    ASSERT_OK(weir_open(NULL, &runtime));
    ASSERT_OK(weir_device_open(runtime, NULL, &foreign));
    stages[2].device = foreign;
    rig_expect_refused(weir_pipeline_create(&params, &pipeline),
                       "the device of stage 2 ('second') belongs to another runtime",
                       "from one runtime");
    EXPECT_NULL(pipeline);
    ASSERT_OK(weir_device_close(&foreign));
    ASSERT_OK(weir_close(&runtime));
    close_world();
}
