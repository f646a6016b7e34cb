// Copies between two devices of a chain, and a pipeline with stages on both: on the null backend,
// whose devices are peers, and on the drivers of OpenCL, whose devices are not.

#include "tests/patterns/line.h"

enum {
    BYTES = 2048,
    FRAMES = 40
};

// True with a link to a second device, if the chain has one.
static bool open_world(void)
{
    EXPECT_OK(line_open("[null]\ndevices = 2\n"));
    line.jitter = true;
    if (weir_device_count(rig.runtime) > 1 &&
        IS_OK(weir_device_open(rig.runtime, WEIR_PARAMS(weir_device, .select = "1"), &line.other)))
        EXPECT_OK(weir_device_link_create(WEIR_PARAMS(weir_device_link, .label = "between",
                                                      .from = rig.device, .to = line.other,
                                                      .bytes = BYTES),
                                          &line.link));
    else
        weir_test_skip(__FILE__, __LINE__, "this chain has one device");
    return line.link != NULL;
}

#define LINK_TEST(suite, name)               \
    static void test_##suite##_##name(void); \
    WEIR_TEST(suite, name)                   \
    {                                        \
        if (open_world())                    \
            test_##suite##_##name();         \
        line_close();                        \
    }                                        \
    static void test_##suite##_##name(void)

static weir_status copy(weir_queue *queue, weir_buffer *dst, weir_buffer *src, size_t at,
                        size_t size)
{
    return weir_device_link_copy(line.link, queue, dst, at, src, at, size);
}

// --- the link ---

// Copies on two queues in turn, with slow work before them: more than have a room. The link is direct between peers.
LINK_TEST(DeviceLink, CopiesInOrderOfItsQueues)
{
    enum {
        COPIES = 600,
        SIZE = COPIES * 4
    };
    own_queue filler = test_queue(rig.device, "filler");
    own_queue even = test_queue(line.other, "even");
    own_queue odd = test_queue(line.other, "odd");
    own_buffer in = test_buffer(rig.device, "in", SIZE, WEIR_PLACE_HOST);
    own_buffer src = test_buffer(rig.device, "src", SIZE, WEIR_PLACE_DEVICE);
    own_buffer dst = test_buffer(line.other, "dst", SIZE, WEIR_PLACE_DEVICE);
    own_buffer out = test_buffer(line.other, "out", SIZE, WEIR_PLACE_HOST);
    EXPECT_INT_EQ(weir_device_link_is_direct(line.link),
                  weir_device_can_peer(line.other, rig.device));
    EXPECT_FALSE(weir_device_link_is_direct(NULL));
    rig_write_words(in, 0, COPIES, 1000);

    ASSERT_OK(weir_queue_host_call(filler, rig_dawdle, (void *)(uintptr_t)2));
    ASSERT_OK(weir_queue_copy(filler, src, 0, in, 0, SIZE));
    const struct weir_event filled = test_record(filler);
    ASSERT_OK(weir_queue_wait(even, filled));
    ASSERT_OK(weir_queue_wait(odd, filled));
    for (size_t i = 0; i < COPIES; i++) {
        weir_queue *queue = i % 2 ? odd : even;
        if (i % 50 == 0)
            ASSERT_OK(weir_queue_host_call(queue, rig_dawdle, (void *)(uintptr_t)i));
        ASSERT_OK(copy(queue, dst, src, 4 * i, 4));
    }
    ASSERT_OK(copy(even, dst, src, 0, 0));
    ASSERT_OK(weir_queue_sync(even, WEIR_FOREVER));
    ASSERT_OK(weir_queue_copy(odd, out, 0, dst, 0, SIZE));
    ASSERT_OK(weir_queue_sync(odd, WEIR_FOREVER));
    EXPECT_UINT_EQ(rig_wrong_words(out, 0, COPIES, 1000), 0);
}

// A queue that fails, and copies that it refuses then, more than the link has rooms: once the queue is
// recovered the link copies again.
LINK_TEST(DeviceLink, SurvivesCopiesThatAreRefused)
{
    own_queue queue = test_queue(line.other, "queue");
    own_buffer src = test_buffer(rig.device, "src", 8, WEIR_PLACE_HOST);
    own_buffer dst = test_buffer(line.other, "dst", 8, WEIR_PLACE_HOST);
    rig_write_words(src, 0, 2, 7);
    line.gate.status = WEIR_ERROR_IO;
    ASSERT_OK(weir_queue_host_call(queue, gate_pass, &line.gate));
    ASSERT_OK(copy(queue, dst, src, 0, 8));
    gate_open(&line.gate);
    EXPECT_INT_EQ(weir_queue_sync(queue, WEIR_FOREVER), WEIR_ERROR_IO);
    for (int i = 0; i < 5; i++)
        EXPECT_INT_EQ(copy(queue, dst, src, 0, 8), WEIR_ERROR_IO);
    ASSERT_OK(weir_queue_recover(queue));
    for (int i = 0; i < 3; i++)
        EXPECT_OK(copy(queue, dst, src, 0, 8));
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
    EXPECT_UINT_EQ(rig_wrong_words(dst, 0, 2, 7), 0);
}

// A device of a runtime of its own.
static weir_device *open_foreign(weir_runtime **out_runtime)
{
    weir_device *device = NULL;
    EXPECT_OK(weir_open(NULL, out_runtime));
    EXPECT_OK(weir_device_open(*out_runtime, NULL, &device));
    return device;
}

LINK_TEST(DeviceLink, RefusesWrongUse)
{
    own_runtime runtime = NULL;
    own_device foreign = open_foreign(&runtime);
    own_queue near = test_queue(rig.device, NULL);
    own_queue queue = test_queue(line.other, "queue");
    struct weir_device_link_params params = {.struct_size = sizeof params, .bytes = 1};
    weir_device_link *link;
    rig_expect_refused(weir_device_link_create(NULL, &link), "params is NULL", "");
    rig_expect_refused(weir_device_link_create(&params, &link), "params->from is NULL", "set it");
    EXPECT_STR_EQ(weir_last_error()->object, "link");
    params.from = rig.device;
    rig_expect_refused(weir_device_link_create(&params, &link), "params->to is NULL", "set it");
    params.to = line.other;
    params.bytes = 0;
    rig_expect_refused(weir_device_link_create(&params, &link), "params->bytes is 0",
                       "largest copy");
    params.to = foreign;
    rig_expect_refused(weir_device_link_create(&params, &link), "two runtimes", "from one runtime");
    EXPECT_NULL(link);

    rig_expect_refused(copy(near, NULL, NULL, 0, 4), "queue '(no label)' belongs to",
                       "that the link leads to");
    rig_expect_refused(copy(NULL, NULL, NULL, 0, 4), "queue is NULL", "create it first");
    rig_expect_refused(weir_device_link_copy(NULL, near, NULL, 0, NULL, 0, 4), "link is NULL",
                       "create it first");
    rig_expect_refused(copy(queue, NULL, NULL, 0, BYTES + 1),
                       "2049 bytes, and the link is for at most 2048", "raise `bytes`");
    EXPECT_INT_EQ(copy(queue, NULL, NULL, 0, 4), WEIR_ERROR_INVALID);
    weir_device_link_destroy(NULL);
}

// --- a pipeline on two devices ---

static uint64_t same(void *user, void *slot, void *frame)
{
    return 0;
}

WEIR_TEST(PipelineOverDevices, StagesOnTwoDevices)
{
    for (uint32_t slots = 1; slots <= 4; slots++) {
        if (!open_world()) {
            line_close();
            return;
        }
        struct weir_pipeline_params params = line_params(slots);
        params.timing = true;
        line_run(params, FRAMES);
        line_expect_ok(FRAMES);
        const struct weir_pipeline_statistics figures = rig_figures(line.pipeline);
        EXPECT_UINT_EQ(figures.timed_frames, FRAMES);
        EXPECT_UINT_LE(figures.covered_ns, figures.busy_ns);
        EXPECT_UINT_GE(figures.covered_ns, figures.stages[0].busy_ns);
        line_close();
    }
}

// A failure on one device reaches the frame's stages on the other, and the frames after it run.
LINK_TEST(PipelineOverDevices, AFailureCrossesAndIsRecovered)
{
    static const uint32_t failing[] = {5, 6, 20};
    for (uint32_t i = 0; i < 3; i++)
        line.frames[failing[i]].fails_in_host_call = true;
    line_run(line_params(1), FRAMES); // other frames fail only with more slots
    line_expect_order(FRAMES);
    EXPECT_UINT_EQ(recorder_count_of(&line.recorder, WEIR_OK), FRAMES - 3);
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_STR_EQ(recorder_at(&line.recorder, failing[i])->stage, "left");
        EXPECT_INT_EQ(recorder_at(&line.recorder, failing[i])->error_status, WEIR_ERROR_IO);
    }
}

LINK_TEST(PipelineOverDevices, RefusesGraphsAndForeignDevices)
{
    struct weir_pipeline_stage stages[5];
    own_runtime runtime = NULL;
    own_device foreign = open_foreign(&runtime);
    struct weir_pipeline_params params = line_params(1);
    params.graphs = true;
    params.repeat = same;
    rig_expect_refused(line_create(params),
                       "stage 3 ('join') is on another device, and a graph has one", "graphs = 0");
    params.graphs = false;
    memcpy(stages, params.stages, sizeof stages);
    params.stages = stages;
    stages[4].device = foreign;
    rig_expect_refused(line_create(params),
                       "the device of stage 4 ('download') belongs to another runtime",
                       "from one runtime");
    EXPECT_NULL(line.pipeline);
}
