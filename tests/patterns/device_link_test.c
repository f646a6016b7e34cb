// Copies between two devices of a chain, and a pipeline with stages on both: on the null backend,
// whose devices are peers, and on the drivers of OpenCL, whose devices are not.
#include <string.h>

#include "tests/patterns/line.h"

enum {
    BYTES = 2048,
    FRAMES = 40
};

// True if the chain has two devices.
static bool open_world(void)
{
    EXPECT_OK(line_open("[null]\ndevices = 2\n"));
    line.jitter = true;
    return weir_device_count(rig.runtime) > 1 &&
           weir_device_open(rig.runtime, WEIR_PARAMS(weir_device, .select = "1"), &line.other) ==
               WEIR_OK;
}

static weir_status open_link(size_t bytes)
{
    return weir_device_link_create(WEIR_PARAMS(weir_device_link, .label = "between",
                                               .from = rig.device, .to = line.other,
                                               .bytes = bytes),
                                   &line.link);
}

#define OPEN_WORLD()                                \
    do {                                            \
        if (!open_world()) {                        \
            line_close();                           \
            WEIR_SKIP("this chain has one device"); \
        }                                           \
    } while (0)

// --- the link ---

// Copies on two queues in turn, with slow work before them: more than have a room. The link is direct between peers.
WEIR_TEST(DeviceLink, CopiesInOrderOfItsQueues)
{
    enum {
        COPIES = 600
    };
    weir_queue *queues[2], *filler;
    weir_buffer *in, *src, *dst, *out;
    OPEN_WORLD();
    ASSERT_OK(open_link(BYTES));
    EXPECT_INT_EQ(weir_device_link_is_direct(line.link),
                  weir_device_can_peer(line.other, rig.device));
    EXPECT_FALSE(weir_device_link_is_direct(NULL));
    ASSERT_OK(weir_queue_create(rig.device, NULL, &filler));
    ASSERT_OK(weir_queue_create(line.other, NULL, &queues[0]));
    ASSERT_OK(weir_queue_create(line.other, NULL, &queues[1]));
    ASSERT_OK(rig_buffer_on(rig.device, (size_t)COPIES * 4, WEIR_PLACE_HOST, &in));
    ASSERT_OK(rig_buffer_on(rig.device, (size_t)COPIES * 4, WEIR_PLACE_DEVICE, &src));
    ASSERT_OK(rig_buffer_on(line.other, (size_t)COPIES * 4, WEIR_PLACE_DEVICE, &dst));
    ASSERT_OK(rig_buffer_on(line.other, (size_t)COPIES * 4, WEIR_PLACE_HOST, &out));
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
        ASSERT_OK(weir_device_link_copy(line.link, queues[i % 2], dst, 4 * i, src, 4 * i, 4));
    }
    ASSERT_OK(weir_device_link_copy(line.link, queues[0], dst, 0, src, 0, 0));
    ASSERT_OK(weir_queue_sync(queues[0], WEIR_FOREVER));
    ASSERT_OK(weir_queue_copy(queues[1], out, 0, dst, 0, (size_t)COPIES * 4));
    ASSERT_OK(weir_queue_sync(queues[1], WEIR_FOREVER));
    EXPECT_UINT_EQ(rig_wrong_words(out, 0, COPIES, 1000), 0);

    weir_buffer_destroy(&in), weir_buffer_destroy(&src), weir_buffer_destroy(&dst);
    weir_buffer_destroy(&out), weir_queue_destroy(&filler);
    weir_queue_destroy(&queues[0]), weir_queue_destroy(&queues[1]);
    line_close();
}

// A queue that fails, and copies that it refuses then, more than the link has rooms: once the queue is
// recovered the link copies again.
WEIR_TEST(DeviceLink, SurvivesCopiesThatAreRefused)
{
    weir_queue *queue;
    weir_buffer *src, *dst;
    enum {
        SIZE = 2 * 4
    };
    OPEN_WORLD();
    ASSERT_OK(open_link(BYTES));
    ASSERT_OK(weir_queue_create(line.other, NULL, &queue));
    ASSERT_OK(rig_buffer_on(rig.device, SIZE, WEIR_PLACE_HOST, &src));
    ASSERT_OK(rig_buffer_on(line.other, SIZE, WEIR_PLACE_HOST, &dst));
    rig_write_words(src, 0, 2, 7);
    ASSERT_OK(weir_queue_host_call(queue, gate_call_that_fails, &line.gate));
    ASSERT_OK(weir_device_link_copy(line.link, queue, dst, 0, src, 0, SIZE));
    gate_open(&line.gate);
    EXPECT_INT_EQ(weir_queue_sync(queue, WEIR_FOREVER), WEIR_ERROR_IO);
    for (int i = 0; i < 5; i++)
        EXPECT_INT_EQ(weir_device_link_copy(line.link, queue, dst, 0, src, 0, SIZE), WEIR_ERROR_IO);
    ASSERT_OK(weir_queue_recover(queue));
    for (int i = 0; i < 3; i++)
        EXPECT_OK(weir_device_link_copy(line.link, queue, dst, 0, src, 0, SIZE));
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
    EXPECT_UINT_EQ(rig_wrong_words(dst, 0, 2, 7), 0);
    weir_buffer_destroy(&src), weir_buffer_destroy(&dst), weir_queue_destroy(&queue);
    line_close();
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
    params.to = line.other;
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
    rig_expect_refused(weir_device_link_copy(line.link, queue, NULL, 0, NULL, 0, 4),
                       "queue '(no label)' belongs to", "that the link leads to");
    rig_expect_refused(weir_device_link_copy(line.link, NULL, NULL, 0, NULL, 0, 4), "queue is NULL",
                       "create it first");
    rig_expect_refused(weir_device_link_copy(NULL, queue, NULL, 0, NULL, 0, 4), "link is NULL",
                       "create it first");
    weir_queue_destroy(&queue);
    ASSERT_OK(weir_queue_create(line.other, NULL, &queue));
    rig_expect_refused(weir_device_link_copy(line.link, queue, NULL, 0, NULL, 0, BYTES + 1),
                       "2049 bytes, and the link is for at most 2048", "raise `bytes`");
    EXPECT_INT_EQ(weir_device_link_copy(line.link, queue, NULL, 0, NULL, 0, 4), WEIR_ERROR_INVALID);
    weir_queue_destroy(&queue);
    weir_device_link_destroy(NULL);
    line_close();
}

// --- a pipeline on two devices ---

static uint64_t same(void *user, void *slot, void *frame)
{
    (void)user, (void)slot, (void)frame;
    return 0;
}

WEIR_TEST(PipelineOverDevices, StagesOnTwoDevices)
{
    struct weir_pipeline_statistics figures;
    struct frame frames[FRAMES];

    for (uint32_t slots = 1; slots <= 4; slots++) {
        weir_test_note("%u slots", slots);
        OPEN_WORLD();
        ASSERT_OK(open_link(BYTES));
        number_frames(frames, FRAMES);
        struct weir_pipeline_params params = line_params(slots);
        params.timing = true;
        line_run(&params, frames, FRAMES);
        EXPECT_TRUE(recorder_is_in_order(&line.recorder, FRAMES));
        figures = rig_figures(line.pipeline);
        EXPECT_UINT_EQ(figures.succeeded, FRAMES);
        EXPECT_UINT_EQ(figures.timed_frames, FRAMES);
        EXPECT_UINT_LE(figures.covered_ns, figures.busy_ns);
        EXPECT_UINT_GE(figures.covered_ns, figures.stages[0].busy_ns);
        line_close();
    }
}

// A failure on one device reaches the frame's stages on the other, and the frames after it run.
WEIR_TEST(PipelineOverDevices, AFailureCrossesAndIsRecovered)
{
    struct frame frames[FRAMES];

    OPEN_WORLD();
    ASSERT_OK(open_link(BYTES));
    number_frames(frames, FRAMES);
    frames[5].fails_in_host_call = frames[6].fails_in_host_call = true;
    frames[20].fails_in_host_call = true;
    const struct weir_pipeline_params params = line_params(1); // other frames fail only with more
    line_run(&params, frames, FRAMES);
    EXPECT_TRUE(recorder_is_in_order(&line.recorder, FRAMES));
    EXPECT_UINT_EQ(recorder_count_of(&line.recorder, WEIR_OK), FRAMES - 3);
    for (uint32_t i = 5; i <= 6; i++) {
        EXPECT_STR_EQ(recorder_at(&line.recorder, i)->stage, "left");
        EXPECT_INT_EQ(recorder_at(&line.recorder, i)->error_status, WEIR_ERROR_IO);
    }
    line_close();
}

WEIR_TEST(PipelineOverDevices, RefusesGraphsAndForeignDevices)
{
    struct weir_pipeline_stage stages[5];
    weir_runtime *runtime = NULL;
    weir_device *foreign = NULL;
    OPEN_WORLD();
    struct weir_pipeline_params params = line_params(1);
    params.graphs = true;
    params.repeat = same;
    rig_expect_refused(weir_pipeline_create(&params, &line.pipeline),
                       "stage 3 ('join') is on another device, and a graph has one", "graphs = 0");
    params.graphs = false;
    ASSERT_OK(weir_open(NULL, &runtime));
    ASSERT_OK(weir_device_open(runtime, NULL, &foreign));
    memcpy(stages, params.stages, sizeof stages);
    params.stages = stages;
    stages[4].device = foreign;
    rig_expect_refused(weir_pipeline_create(&params, &line.pipeline),
                       "the device of stage 4 ('download') belongs to another runtime",
                       "from one runtime");
    EXPECT_NULL(line.pipeline);
    ASSERT_OK(weir_device_close(&foreign));
    ASSERT_OK(weir_close(&runtime));
    line_close();
}
