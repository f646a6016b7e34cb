// The pipeline with its frames as graphs: null by default, or what WEIR_BACKEND names.
#include <stdatomic.h>
#include <string.h>

#include "tests/patterns/line.h"

// How often the stages were called; and how many frames in a row are alike.
static atomic_uint captures;
static uint32_t alike;

static weir_pipeline_submit_function first_submit;

static weir_status counted_submit(void *user, void *slot, void *frame, weir_queue *queue)
{
    atomic_fetch_add(&captures, 1);
    return first_submit(user, slot, frame, queue);
}

static uint64_t number_of(void *user, void *slot, void *data_frame)
{
    const struct frame *frame = data_frame;
    return alike ? (frame->number - 1) / alike : 0;
}

static struct weir_pipeline_stage stages[5];

static struct weir_pipeline_params graph_params(uint32_t slots)
{
    struct weir_pipeline_params params = line_params(slots);
    memcpy(stages, params.stages, sizeof stages);
    first_submit = stages[0].submit;
    stages[0].submit = counted_submit;
    params.stages = stages;
    params.graphs = true;
    params.repeat = number_of;
    atomic_store(&captures, 0);
    alike = 0;
    return params;
}

WEIR_TEST(PipelineGraphs, EveryFrameWithItsData)
{
    enum {
        FRAMES = 60
    };
    struct frame frames[FRAMES];

    for (uint32_t slots = 1; slots <= 4; slots++) {
        weir_test_note("%u slots", slots);
        ASSERT_OK(line_open(NULL));
        line.deliver_ns = 100000;
        number_frames(frames, FRAMES);
        const struct weir_pipeline_params params = graph_params(slots);
        line_run(&params, frames, FRAMES);
        EXPECT_TRUE(recorder_is_in_order(&line.recorder, FRAMES));
        EXPECT_UINT_EQ(recorder_count_of(&line.recorder, WEIR_OK), FRAMES);
        EXPECT_UINT_EQ(atomic_load(&captures), slots);
        line_close();
    }
}

// A frame that does not repeat the previous frame of its slot is captured again.
LINE_TEST(PipelineGraphs, OtherFramesAreCapturedAnew)
{
    enum {
        FRAMES = 40
    };
    struct frame frames[FRAMES];

    number_frames(frames, FRAMES);
    const struct weir_pipeline_params params = graph_params(2);
    alike = 10;
    line_run(&params, frames, FRAMES);
    EXPECT_UINT_EQ(recorder_count_of(&line.recorder, WEIR_OK), FRAMES);
    EXPECT_UINT_EQ(atomic_load(&captures), 2 * FRAMES / alike);
}

LINE_TEST(PipelineGraphs, NeedToKnowWhatRepeats)
{
    struct weir_pipeline_params params = graph_params(2);
    params.repeat = NULL;
    EXPECT_FAILURE(weir_pipeline_create(&params, &line.pipeline), WEIR_ERROR_INVALID,
                   "cannot run as graphs");
    EXPECT_CONTAINS(weir_last_error_text(), "graphs = 0");
}

// A stage with what cannot be captured fails with a message that says so, in every frame, and
// nothing is left of the capture.
LINE_TEST(PipelineGraphs, AStageThatCannotBeCapturedIsNamed)
{
    enum {
        FRAMES = 5
    };
    struct frame frames[FRAMES];

    number_frames(frames, FRAMES);
    for (unsigned i = 0; i < FRAMES; i++)
        frames[i].calls_always = i < 3; // stage `left` submits such a call
    const struct weir_pipeline_params params = graph_params(2);
    line_run(&params, frames, FRAMES);
    for (unsigned i = 0; i < 3; i++) {
        const struct delivery *delivery = recorder_at(&line.recorder, i);
        EXPECT_INT_EQ(delivery->status, WEIR_ERROR_INVALID);
        EXPECT_STR_EQ(delivery->stage, "left");
        EXPECT_CONTAINS(delivery->message, "a host call that always runs cannot be part of one");
        EXPECT_CONTAINS(delivery->remedy, "graphs = 0");
    }
    EXPECT_UINT_EQ(recorder_count_of(&line.recorder, WEIR_OK), 2);
}

// A stage that fails while it is captured only fails its frame.
LINE_TEST(PipelineGraphs, AFailedCaptureIsTriedAgain)
{
    enum {
        FRAMES = 8
    };
    struct frame frames[FRAMES];

    number_frames(frames, FRAMES);
    frames[0].fails_in_submit = true;
    const struct weir_pipeline_params params = graph_params(1);
    line_run(&params, frames, FRAMES);
    EXPECT_STR_EQ(recorder_at(&line.recorder, 0)->stage, "left");
    EXPECT_UINT_EQ(recorder_count_of(&line.recorder, WEIR_OK), FRAMES - 1);
    EXPECT_UINT_EQ(atomic_load(&captures), 2);
}

LINE_TEST(PipelineGraphs, HaveNoTimesOfStages)
{
    struct frame frames[4];

    number_frames(frames, 4);
    struct weir_pipeline_params params = graph_params(2);
    params.timing = true;
    line_run(&params, frames, 4);
    const struct weir_pipeline_statistics statistics = rig_figures(line.pipeline);
    EXPECT_UINT_EQ(statistics.succeeded, 4);
    EXPECT_UINT_EQ(statistics.timed_frames, 0);
}

LINE_TEST(PipelineGraphs, AllocateNothingOnceWarm)
{
    enum {
        FRAMES = 400
    };
    static struct frame frames[FRAMES];

    number_frames(frames, FRAMES);
    struct weir_pipeline_params params = graph_params(3);
    params.deliver = NULL;
    line_expect_flat(&params, frames, FRAMES, FRAMES / 2);
}
