// How a pipeline with prepare_threads waits for the device: without keeping a processor busy while all of these
// threads are at work, on the steered rig, where events are pending on command; and when it wakes what waits for room.
#include <limits.h>
#include <stdatomic.h>
#include <time.h>

#include "tests/patterns/steered.h"

// Frames are numbers, from 1. The second one's preparation waits at the gate.
static struct wait {
    struct recorder recorder;
    struct gate gate;
    unsigned frames;
    bool opens; // the gate, when the first frame is delivered
    weir_pipeline *pipeline;
} waited;

static void *frame_of(uintptr_t number)
{
    return (void *)number;
}

static weir_status prepare(void *user, void *slot, void *frame)
{
    (void)user, (void)slot;
    if (frame == frame_of(2))
        gate_pass(&waited.gate);
    return WEIR_OK;
}

// The first frame is submitted when the second one is at the gate.
static weir_status submit(void *user, void *slot, void *frame, weir_queue *queue)
{
    (void)user, (void)slot;
    if (frame == frame_of(1) && waited.frames > 1)
        gate_await(&waited.gate, 1);
    return steered_work(queue, 10);
}

static void deliver(void *user, void *frame, void *slot, const struct weir_pipeline_result *result)
{
    recorder_add(&waited.recorder, frame, slot, result);
    if (waited.opens)
        gate_open(&waited.gate);
}

static struct weir_pipeline_params params_of(uint32_t threads)
{
    static const struct weir_pipeline_stage stage = {.name = "work", .submit = submit};
    return (struct weir_pipeline_params){.struct_size = sizeof(struct weir_pipeline_params),
                                         .device = steered_open(),
                                         .stages = &stage,
                                         .stage_count = 1,
                                         .stage_size = sizeof stage,
                                         .slot_count = 2,
                                         .prepare = prepare,
                                         .prepare_threads = threads,
                                         .deliver = deliver};
}

static void begin(unsigned frames, uint32_t threads, unsigned pending)
{
    waited.frames = frames;
    recorder_init(&waited.recorder);
    gate_init(&waited.gate);
    const struct weir_pipeline_params params = params_of(threads);
    steered_pend(pending);
    ASSERT_OK(weir_pipeline_create(&params, &waited.pipeline));
    for (unsigned i = 1; i <= frames; i++)
        EXPECT_OK(weir_pipeline_submit(waited.pipeline, frame_of(i)));
}

static void end(unsigned early_syncs)
{
    EXPECT_OK(weir_pipeline_drain(waited.pipeline, WEIR_FOREVER));
    EXPECT_UINT_EQ(recorder_count_of(&waited.recorder, WEIR_OK), waited.frames);
    EXPECT_UINT_EQ(steered_early_sync_count(), early_syncs);
    EXPECT_OK(weir_pipeline_destroy(&waited.pipeline));
    steered_close();
    recorder_finish(&waited.recorder);
    gate_finish(&waited.gate);
}

WEIR_TEST(PipelineWait, NapsWhileAllThreadsPrepare)
{
    waited.opens = true;
    begin(2, 1, 5);
    end(0);
    EXPECT_UINT_EQ(steered_query_count(), 5);
}

WEIR_TEST(PipelineWait, WaitsInTheDriverWhereAThreadIsIdle)
{
    waited.opens = true;
    begin(2, 2, 5);
    end(1);
    EXPECT_UINT_EQ(steered_query_count(), 0);
    begin(1, 1, 5);
    end(1);
    EXPECT_UINT_EQ(steered_query_count(), 0);
}

WEIR_TEST(PipelineWait, WaitsInTheDriverOnceAThreadIsIdle)
{
    waited.opens = false;
    begin(2, 1, UINT_MAX);
    while (steered_query_count() == 0)
        ;
    gate_open(&waited.gate);
    end(1);
}

// Of 2 slots and 8 frames that may wait.
enum {
    ALIVE = 10,
    MANY = 60
};

static atomic_uint submitted;
static unsigned submitted_by_then[MANY]; // at the delivery of that frame

// The first delivery ends when the pipeline is full; each leaves a caller that was woken time to submit.
static void deliver_slowly(void *user, void *frame, void *slot,
                           const struct weir_pipeline_result *result)
{
    const struct timespec some = {.tv_nsec = 20000000};
    while (atomic_load(&submitted) < ALIVE)
        ;
    nanosleep(&some, NULL);
    submitted_by_then[result->sequence] = atomic_load(&submitted);
    recorder_add(&waited.recorder, frame, slot, result);
}

static void fill(uint32_t threads)
{
    waited.frames = 1;
    atomic_store(&submitted, 0);
    recorder_init(&waited.recorder);
    struct weir_pipeline_params params = params_of(threads);
    params.backlog = ALIVE - 2;
    params.deliver = deliver_slowly;
    ASSERT_OK(weir_pipeline_create(&params, &waited.pipeline));
    for (unsigned i = 0; i < MANY; i++) {
        EXPECT_OK(weir_pipeline_submit(waited.pipeline, frame_of(3)));
        atomic_fetch_add(&submitted, 1);
    }
    EXPECT_OK(weir_pipeline_drain(waited.pipeline, WEIR_FOREVER));
    EXPECT_TRUE(recorder_is_in_order(&waited.recorder, MANY));
    EXPECT_OK(weir_pipeline_destroy(&waited.pipeline));
    steered_close();
    recorder_finish(&waited.recorder);
}

WEIR_TEST(PipelineWait, ABlockedCallerIsWokenForSeveralFrames)
{
    fill(1);
    // 8 wait, and half of them is enough for one thread.
    EXPECT_UINT_EQ(submitted_by_then[2], ALIVE);
    EXPECT_TRUE(submitted_by_then[12] > ALIVE);
}

WEIR_TEST(PipelineWait, WithoutThreadsThatPrepareABlockedCallerIsWokenForEach)
{
    fill(0);
    EXPECT_TRUE(submitted_by_then[2] > ALIVE);
}
