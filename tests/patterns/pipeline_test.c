// The pipeline on a real chain: null by default, or what WEIR_BACKEND names.

#include "tests/patterns/line.h"

static void expect_statuses(const weir_status *statuses, unsigned count)
{
    EXPECT_TRUE(recorder_is_in_order(&line.recorder, count));
    for (unsigned i = 0; i < count; i++) {
        weir_test_note("delivery %u", i);
        EXPECT_INT_EQ(recorder_at(&line.recorder, i)->status, statuses[i]);
    }
    weir_test_note(NULL);
}

// --- data and order ---

enum {
    FRAMES = 60
};

WEIR_TEST(Pipeline, DeliversEveryFrameInOrderWithItsData)
{
    for (uint32_t slots = 1; slots <= 4; slots++) {
        ASSERT_OK(line_open(NULL));
        line.jitter = true;
        line.deliver_ns = 200000;
        line_run(line_params(slots), FRAMES);
        EXPECT_UINT_EQ(line.slots_alive, slots);
        line_expect_ok(FRAMES);
        line_close();
    }
}

// The last frames are delivered although no further frames follow, and an earlier
// frame does not wait for a later one that is held.
LINE_TEST(Pipeline, FramesDoNotWaitForLaterOnes)
{
    line.frames[2].gated = true;
    ASSERT_OK(line_create(line_params(3)));
    line_submit(0, 3);
    EXPECT_TRUE(gate_await(&line.gate, 1));
    while (recorder_count(&line.recorder) < 2)
        rig_sleep_ns(1000000);
    EXPECT_INT_EQ(weir_pipeline_drain(line.pipeline, 1000000), WEIR_TIMEOUT);
    EXPECT_UINT_EQ(recorder_count(&line.recorder), 2);
    gate_open(&line.gate);
    line_drain();
}

// --- the full ring ---

// A pipeline of one slot and a backlog of two, with frame 0 held in its slot.
static void open_full(weir_pipeline_full full)
{
    blocked_begin();
    ASSERT_OK(line_open(NULL));
    line.frames[0].gated = true;
    struct weir_pipeline_params params = line_params(1);
    params.full = full;
    params.backlog = 2;
    ASSERT_OK(line_create(params));
    line_submit(0, 1);
    EXPECT_TRUE(gate_await(&line.gate, 1));
}

static void open_gate_and_drain(void)
{
    gate_open(&line.gate);
    line_drain();
}

// A thread that submits frames until one is not accepted.
struct submitter {
    pthread_t thread;
    struct frame *frames;
    unsigned count;
    weir_status status;
    _Atomic unsigned submitted;
};

static void *submit_all(void *argument)
{
    struct submitter *submitter = argument;
    blocked_watch();
    for (unsigned i = 0; i < submitter->count; i++) {
        submitter->status = weir_pipeline_submit(line.pipeline, &submitter->frames[i]);
        if (submitter->status != WEIR_OK)
            break;
        submitter->submitted++;
    }
    return NULL;
}

static void submit_on_thread(struct submitter *submitter, uint32_t first, uint32_t count)
{
    *submitter = (struct submitter){.frames = line.frames + first, .count = count};
    ASSERT_INT_EQ(pthread_create(&submitter->thread, NULL, submit_all, submitter), 0);
}

// With a thread that is blocked, with the third of `count` frames.
static void open_blocked(struct submitter *submitter, uint32_t count)
{
    open_full(WEIR_PIPELINE_BLOCK);
    submit_on_thread(submitter, 1, count);
    blocked_await();
    EXPECT_UINT_EQ(submitter->submitted, 2);
}

static void expect_cancelled(struct submitter *submitter)
{
    pthread_join(submitter->thread, NULL);
    EXPECT_INT_EQ(submitter->status, WEIR_CANCELLED);
    EXPECT_UINT_EQ(submitter->submitted, 2);
}

WEIR_TEST(Pipeline, BlockWaitsForRoom)
{
    struct submitter submitter;
    open_blocked(&submitter, 5);
    gate_open(&line.gate);
    pthread_join(submitter.thread, NULL);
    EXPECT_UINT_EQ(submitter.submitted, 5);
    line_drain();
    line_expect_ok(6);
    line_close();
}

WEIR_TEST(Pipeline, WouldBlockSaysSo)
{
    open_full(WEIR_PIPELINE_WOULD_BLOCK);
    line_submit(1, 2);
    EXPECT_INT_EQ(weir_pipeline_submit(line.pipeline, &line.frames[4]), WEIR_NOT_READY);
    open_gate_and_drain();
    line_submit(3, 1);
    line_drain();
    line_expect_ok(4);
    line_close();
}

// Three of six frames fit: the held one and a backlog of two.
WEIR_TEST(Pipeline, DropsByItsPolicy)
{
    static const struct {
        weir_pipeline_full full;
        unsigned first; // of three that are dropped
    } rows[] = {{WEIR_PIPELINE_DROP_OLDEST, 1}, {WEIR_PIPELINE_DROP_NEWEST, 3}};
    for (unsigned k = 0; k < 2; k++) {
        weir_status statuses[6] = {WEIR_OK};
        for (unsigned i = 0; i < 3; i++)
            statuses[rows[k].first + i] = WEIR_DROPPED;
        open_full(rows[k].full);
        line_submit(1, 5);
        open_gate_and_drain();
        line_expect_order(6);
        expect_statuses(statuses, 6);
        const struct delivery *dropped = recorder_at(&line.recorder, rows[k].first);
        EXPECT_NULL(dropped->slot);
        EXPECT_FALSE(dropped->has_error);
        line_close();
    }
}

// --- cancelling and ending ---

WEIR_TEST(Pipeline, CancelLetsStartedFramesFinish)
{
    struct submitter submitter;
    open_blocked(&submitter, 5);
    ASSERT_OK(weir_pipeline_cancel(line.pipeline));
    expect_cancelled(&submitter);
    // The cancelled frames keep their place after the one that is held.
    EXPECT_UINT_EQ(recorder_count(&line.recorder), 0);
    open_gate_and_drain();
    line_submit(7, 1);
    line_drain();
    expect_statuses((weir_status[]){WEIR_OK, WEIR_CANCELLED, WEIR_CANCELLED, WEIR_OK}, 4);
    EXPECT_NULL(recorder_at(&line.recorder, 1)->slot);
    line_close();
}

// Deliveries may make room before the caller that is blocked has seen the cancel.
WEIR_TEST(Pipeline, CancelReleasesABlockedSubmitThatFindsRoom)
{
    for (unsigned turn = 0; turn < 50; turn++) {
        struct submitter submitter;
        open_blocked(&submitter, 3);
        ASSERT_OK(weir_pipeline_cancel(line.pipeline));
        gate_open(&line.gate);
        expect_cancelled(&submitter);
        line_drain();
        line_close();
    }
}

WEIR_TEST(Pipeline, DestroyDeliversEveryFrameFirst)
{
    for (unsigned accepted = 0; accepted <= 40; accepted += 8) {
        ASSERT_OK(line_open(NULL));
        line.jitter = true;
        struct weir_pipeline_params params = line_params(3);
        params.backlog = 40;
        ASSERT_OK(line_create(params));
        line_submit(0, accepted);
        ASSERT_OK(weir_pipeline_destroy(&line.pipeline));
        line_expect_order(accepted);
        EXPECT_UINT_EQ(recorder_count_of(&line.recorder, WEIR_OK) +
                           recorder_count_of(&line.recorder, WEIR_CANCELLED),
                       accepted);
        line_close();
    }
}

static void *open_gate_behind(void *argument)
{
    const struct submitter *submitter = argument;
    pthread_join(submitter->thread, NULL);
    gate_open(&line.gate);
    return NULL;
}

WEIR_TEST(Pipeline, DestroyReleasesABlockedSubmit)
{
    struct submitter submitter;
    pthread_t opener;
    open_blocked(&submitter, 3);
    pthread_create(&opener, NULL, open_gate_behind, &submitter);
    ASSERT_OK(weir_pipeline_destroy(&line.pipeline));
    pthread_join(opener, NULL);
    EXPECT_INT_EQ(submitter.status, WEIR_CANCELLED);
    line_expect_order(3);
    expect_statuses((weir_status[]){WEIR_OK, WEIR_CANCELLED, WEIR_CANCELLED}, 3);
    line_close();
}

// --- failures ---

static void keep_error(void *user, void *frame, void *slot,
                       const struct weir_pipeline_result *result)
{
    struct weir_error *error = user;
    if (result->error && error->status == WEIR_OK)
        *error = *result->error;
    line_deliver(NULL, frame, slot, result);
}

LINE_TEST(Pipeline, FramesAfterAFailureReportItsCause)
{
    struct weir_error error = {.status = WEIR_OK};

    line.jitter = true;
    line.frames[4].fails_in_host_call = true;
    struct weir_pipeline_params params = line_params(4);
    params.deliver = keep_error;
    params.user = &error;
    line_run(params, FRAMES);
    line_expect_order(FRAMES);
    for (unsigned i = 0; i < 4; i++)
        EXPECT_INT_EQ(recorder_at(&line.recorder, i)->status, WEIR_OK);
    EXPECT_INT_LT(recorder_at(&line.recorder, 4)->status, 0);
    EXPECT_INT_EQ(error.line, line.failing_line);
    EXPECT_CONTAINS(error.file ? error.file : "", "line.c");
    // At most the slots that were in work, and one that was being submitted.
    EXPECT_UINT_LE(FRAMES - recorder_count_of(&line.recorder, WEIR_OK), 5);
    for (unsigned i = 5; i < FRAMES; i++) {
        const struct delivery *delivery = recorder_at(&line.recorder, i);
        if (delivery->status != WEIR_OK)
            EXPECT_STR_EQ(delivery->message, recorder_at(&line.recorder, 4)->message);
    }

    line_submit(FRAMES, FRAMES);
    line_drain();
    for (unsigned i = FRAMES; i < 2 * FRAMES; i++)
        EXPECT_INT_EQ(recorder_at(&line.recorder, i)->status, WEIR_OK);
    // Once for all of them, not once for each.
    EXPECT_UINT_EQ(rig_figures(line.pipeline).recoveries, 1);
}

// A frame whose host call failed is delivered while its other stages may still be
// running; the slots must outlive them.
WEIR_TEST(Pipeline, DestroyWaitsForWorkAfterAFailure)
{
    for (unsigned round = 0; round < 10; round++) {
        ASSERT_OK(line_open(NULL));
        line.jitter = true;
        line.frames[0].number = round * 2 + 1;
        line.frames[0].fails_in_host_call = true;
        ASSERT_OK(line_create(line_params(2)));
        line_submit(0, 2);
        ASSERT_OK(weir_pipeline_destroy(&line.pipeline));
        EXPECT_UINT_EQ(recorder_count(&line.recorder), 2);
        line_close();
    }
}

// --- threads, figures, allocations, configuration ---

LINE_TEST(Pipeline, SeveralThreadsMaySubmit)
{
    enum {
        SUBMITTERS = 4,
        EACH = 100
    };
    struct submitter submitters[SUBMITTERS];
    unsigned next[SUBMITTERS] = {0};

    ASSERT_OK(line_create(line_params(3)));
    for (unsigned t = 0; t < SUBMITTERS; t++)
        submit_on_thread(&submitters[t], t * EACH, EACH);
    for (unsigned t = 0; t < SUBMITTERS; t++)
        pthread_join(submitters[t].thread, NULL);
    line_drain();
    EXPECT_TRUE(recorder_is_in_order(&line.recorder, SUBMITTERS * EACH));
    for (unsigned i = 0; i < SUBMITTERS * EACH; i++) {
        const struct frame *frame = recorder_at(&line.recorder, i)->frame;
        const unsigned t = (unsigned)(frame - line.frames) / EACH;
        ASSERT_UINT_LT(t, SUBMITTERS);
        EXPECT_PTR_EQ(frame, &submitters[t].frames[next[t]++]);
    }
}

LINE_TEST(Pipeline, FiguresAddUp)
{
    line.jitter = true;
    line.frames[10].fails_in_submit = true;
    struct weir_pipeline_params params = line_params(3);
    params.timing = true;
    line_run(params, FRAMES);
    const struct weir_pipeline_statistics figures = rig_figures(line.pipeline);
    EXPECT_UINT_EQ(figures.accepted, FRAMES);
    EXPECT_UINT_EQ(figures.succeeded, FRAMES - 1);
    EXPECT_UINT_EQ(figures.failed, 1);
    EXPECT_UINT_EQ(figures.dropped + figures.cancelled + figures.refused, 0);
    EXPECT_UINT_GE(figures.in_flight_max, 1);
    EXPECT_UINT_LE(figures.in_flight_max, 3);
    EXPECT_UINT_LE(figures.latency_min_ns, figures.latency_p50_ns);
    EXPECT_UINT_LE(figures.latency_p50_ns, figures.latency_p99_ns);
    EXPECT_UINT_LE(figures.latency_p99_ns, figures.latency_max_ns);
    EXPECT_UINT_LE(figures.latency_min_ns, figures.latency_mean_ns);
    EXPECT_UINT_LE(figures.latency_max_ns, figures.wall_ns);
    if (weir_device_limits(rig.device)->timing_history > 0) {
        // The clocks of device and host may run apart by a little.
        uint64_t wall = figures.wall_ns + figures.wall_ns / 100;
        uint64_t longest = 0;
        EXPECT_UINT_EQ(figures.timed_frames, FRAMES - 1);
        for (unsigned i = 0; i < figures.stage_count; i++) {
            const struct weir_pipeline_stage_statistics *stage = &figures.stages[i];
            weir_test_note("stage %s", stage->name);
            EXPECT_UINT_LE(stage->busy_ns + stage->wait_ns, wall);
            // Each takes 200 µs in its queue on average.
            EXPECT_UINT_GT(stage->busy_ns, FRAMES / 2 * UINT64_C(100000));
            longest = longest > stage->busy_ns ? longest : stage->busy_ns;
        }
        weir_test_note(NULL);
        EXPECT_UINT_LE(figures.covered_ns, wall);
        EXPECT_UINT_GE(figures.covered_ns, longest);
        EXPECT_UINT_EQ(figures.overlap_ns, figures.busy_ns - figures.covered_ns);
        EXPECT_UINT_GT(figures.overlap_ns, 0);
    }
}

LINE_TEST(Pipeline, TheLoopAllocatesNothing)
{
    line_expect_flat(line_params(3), FRAMES_MAX, 10);
}

WEIR_TEST(Pipeline, SettingsReachTheParams)
{
    ASSERT_OK(line_open("[pipeline]\nslots = 7\nfull = drop-newest\nbacklog = 5\ntiming = 1\n"
                        "graphs = 1\n"));
    struct weir_pipeline_params params = line_params(1);
    ASSERT_OK(weir_pipeline_params_from_settings(rig.runtime, NULL, &params));
    EXPECT_UINT_EQ(params.slot_count, 7);
    EXPECT_INT_EQ(params.full, WEIR_PIPELINE_DROP_NEWEST);
    EXPECT_UINT_EQ(params.backlog, 5);
    EXPECT_TRUE(params.timing);
    EXPECT_TRUE(params.graphs);
    EXPECT_FAILURE(weir_pipeline_params_from_settings(rig.runtime, "other", &params),
                   WEIR_ERROR_NOT_FOUND, "[other]");
    line_close();

    ASSERT_OK(line_open(NULL));
    params = line_params(1);
    ASSERT_OK(weir_pipeline_params_from_settings(rig.runtime, "pipeline", &params));
    EXPECT_UINT_EQ(params.slot_count, 0);
    EXPECT_INT_EQ(params.full, WEIR_PIPELINE_BLOCK);
    EXPECT_FALSE(params.timing);
    EXPECT_FALSE(params.graphs);
    // The defaults make a pipeline of six slots for five stages, and one for each thread that prepares.
    ASSERT_OK(line_create(params));
    EXPECT_UINT_EQ(line.slots_alive, 6 + 2 * params.prepare_threads);
    line_close();

    EXPECT_FAILURE(line_open("[pipeline]\nfull = drop-latest\n"), WEIR_ERROR_CONFIG, "drop-oldest");
}

// --- frames as graphs ---

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
    for (uint32_t slots = 1; slots <= 4; slots++) {
        ASSERT_OK(line_open(NULL));
        line.deliver_ns = 100000;
        struct weir_pipeline_params params = graph_params(slots);
        params.timing = true; // of which there is none
        line_run(params, FRAMES);
        line_expect_ok(FRAMES);
        EXPECT_UINT_EQ(atomic_load(&captures), slots);
        EXPECT_UINT_EQ(rig_figures(line.pipeline).timed_frames, 0);
        line_close();
    }
}

// `left` and `right`, and the queues on which they were captured last.
static weir_pipeline_submit_function side_submits[2];
static weir_queue *sides[2];

static weir_status left_submit(void *user, void *slot, void *frame, weir_queue *queue)
{
    sides[0] = queue;
    return side_submits[0](user, slot, frame, queue);
}

static weir_status right_submit(void *user, void *slot, void *frame, weir_queue *queue)
{
    sides[1] = queue;
    return side_submits[1](user, slot, frame, queue);
}

LINE_TEST(PipelineGraphs, BranchesAreCapturedSideBySide)
{
    const struct weir_pipeline_params params = graph_params(2);
    for (int i = 0; i < 2; i++)
        side_submits[i] = stages[1 + i].submit;
    stages[1].submit = left_submit;
    stages[2].submit = right_submit;
    line_run(params, FRAMES);
    line_expect_ok(FRAMES);
    EXPECT_NOT_NULL(sides[0]);
    EXPECT_NOT_NULL(sides[1]);
    EXPECT_TRUE(sides[0] != sides[1]);
}

// A frame that does not repeat the previous frame of its slot is captured again.
LINE_TEST(PipelineGraphs, OtherFramesAreCapturedAnew)
{
    const struct weir_pipeline_params params = graph_params(2);
    alike = 10;
    line_run(params, FRAMES);
    line_expect_ok(FRAMES);
    EXPECT_UINT_EQ(atomic_load(&captures), 2 * FRAMES / alike);
}

// A stage with what cannot be captured fails with a message that says so, in every frame, and
// nothing is left of the capture.
LINE_TEST(PipelineGraphs, AStageThatCannotBeCapturedIsNamed)
{
    for (unsigned i = 0; i < 3; i++)
        line.frames[i].calls_always = true; // stage `left` submits such a call
    line_run(graph_params(2), 5);
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
    line.frames[0].fails_in_submit = true;
    line_run(graph_params(1), 8);
    EXPECT_STR_EQ(recorder_at(&line.recorder, 0)->stage, "left");
    EXPECT_UINT_EQ(recorder_count_of(&line.recorder, WEIR_OK), 7);
    EXPECT_UINT_EQ(atomic_load(&captures), 2);
}

LINE_TEST(PipelineGraphs, AllocateNothingOnceWarm)
{
    struct weir_pipeline_params params = graph_params(3);
    params.deliver = NULL;
    line_expect_flat(params, 400, 200);
}

// --- frames that several threads prepare ---

enum {
    PREPARED = 40,
    THREADS = 4
};

static struct gate meeting;  // open; calls of `prepare` that have begun are those that entered
static unsigned first_waits; // the first frame is ready when so many have

static weir_status (*fill)(void *user, void *slot, void *frame);

// Returns once as many threads are inside as there are, the first frame last of all: frames become
// ready in another order than theirs.
static weir_status prepare_together(void *user, void *slot, void *data_frame)
{
    const struct frame *frame = data_frame;
    EXPECT_OK(gate_pass(&meeting));
    EXPECT_TRUE(gate_await(&meeting, frame->number == 1 ? first_waits : THREADS));
    return fill(user, slot, data_frame);
}

// The threads prepare as many frames as there are slots while the first one takes long, and frames are delivered in
// order. A slot_count of 0 has two for each thread.
WEIR_TEST(PipelinePrepare, PreparesSeveralFramesAtOnceAndDeliversInOrder)
{
    static const struct {
        uint32_t asked, slots;
    } rows[] = {{PREPARED, PREPARED}, {0, 5 + 1 + 2 * THREADS}}; // 5 stages
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ASSERT_OK(line_open(NULL));
        gate_shut(&meeting);
        gate_open(&meeting);
        first_waits = rows[i].slots;
        struct weir_pipeline_params params = line_params(rows[i].asked);
        fill = params.prepare;
        params.prepare = prepare_together;
        params.prepare_threads = THREADS;
        line_run(params, PREPARED);
        line_expect_ok(PREPARED);
        EXPECT_UINT_EQ(rig_figures(line.pipeline).in_flight_max, rows[i].slots);
        line_close();
    }
}
