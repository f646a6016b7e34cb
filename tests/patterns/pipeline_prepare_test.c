// Frames that several threads prepare at once (prepare_threads). What pipeline_test.c expects of a
// pipeline holds with them too: pipeline_prepared_*_test.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/patterns/line.h"

enum {
    FRAMES = 40,
    THREADS = 4
};

static struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned inside;      // calls of `prepare` that have begun
    unsigned first_waits; // the first frame is ready when so many have
} meeting;

static weir_status (*fill)(void *user, void *slot, void *frame);

static void create(weir_pipeline_prepare_function prepare, uint32_t slots)
{
    struct weir_pipeline_params params = line_params(slots);
    fill = params.prepare;
    params.prepare = prepare;
    params.prepare_threads = THREADS;
    ASSERT_OK(weir_pipeline_create(&params, &line.pipeline));
}

// Returns once as many threads are inside as there are, the first frame last of all: frames become
// ready in another order than theirs.
static weir_status prepare_together(void *user, void *slot, void *data_frame)
{
    const struct frame *frame = data_frame;
    pthread_mutex_lock(&meeting.lock);
    meeting.inside++;
    pthread_cond_broadcast(&meeting.changed);
    while (meeting.inside < (frame->number == 1 ? meeting.first_waits : THREADS))
        pthread_cond_wait(&meeting.changed, &meeting.lock);
    pthread_mutex_unlock(&meeting.lock);
    return fill(user, slot, data_frame);
}

static void submit_all(struct frame *frames)
{
    for (int i = 0; i < FRAMES; i++)
        ASSERT_OK(weir_pipeline_submit(line.pipeline, &frames[i]));
    ASSERT_OK(weir_pipeline_drain(line.pipeline, WEIR_FOREVER));
}

static void open_line(struct frame *frames)
{
    ASSERT_OK(line_open(NULL));
    memset(&meeting, 0, sizeof meeting);
    meeting.first_waits = FRAMES;
    pthread_mutex_init(&meeting.lock, NULL);
    pthread_cond_init(&meeting.changed, NULL);
    number_frames(frames, FRAMES);
}

WEIR_TEST(PipelinePrepare, PreparesSeveralFramesAtOnceAndDeliversInOrder)
{
    struct frame frames[FRAMES];
    open_line(frames);
    create(prepare_together, FRAMES);
    submit_all(frames);
    EXPECT_TRUE(recorder_is_in_order(&line.recorder, FRAMES));
    EXPECT_UINT_EQ(recorder_count_of(&line.recorder, WEIR_OK), FRAMES);
    const struct weir_pipeline_statistics figures = rig_figures(line.pipeline);
    EXPECT_UINT_EQ(figures.in_flight_max, FRAMES); // all others were ready before the first
    line_close();
}

// While the first frame takes long, the other threads prepare as many as there are slots.
WEIR_TEST(PipelinePrepare, ASlotCountOfZeroHasTwoForEachThread)
{
    struct frame frames[FRAMES];
    const unsigned slots = 5 + 1 + 2 * THREADS; // 5 stages
    open_line(frames);
    meeting.first_waits = slots;
    create(prepare_together, 0);
    submit_all(frames);
    EXPECT_TRUE(recorder_is_in_order(&line.recorder, FRAMES));
    const struct weir_pipeline_statistics figures = rig_figures(line.pipeline);
    EXPECT_UINT_EQ(figures.in_flight_max, slots);
    line_close();
}
