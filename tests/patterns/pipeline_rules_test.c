// The pipeline's own rules on the steered rig: the graphs that it refuses, its waits, its figures for known device
// times, and its handling of failed queues and devices.

#include "base/sized.h"
#include "tests/patterns/steered.h"

// The behaviour of one test's pipeline. Frames are numbers, from 1.
static struct rules {
    struct recorder recorder;
    struct gate gate;
    unsigned submits; // calls of a stage's callback
    struct bad {
        uint64_t frame;      // which frame goes wrong, 0: none
        weir_status status;  // the status that its callback then returns
        const char *message; // the detail it leaves; NULL: none
        bool breaks_queue;   // and its queue with it
        bool reaches_first;  // and, later, that of the first stage
    } bad;
    weir_queue *first_queue;
    unsigned slots_made;
    unsigned slots_freed;
    unsigned failing_slot; // which slot_create fails, from 1
    unsigned free_order[8];
    bool meets; // frame 1 is submitted when frame 2 is prepared
    bool opens; // the gate, at a delivery
    weir_pipeline *pipeline;
    weir_status from_callback[3];
} rules;

static void *frame_of(uint64_t number)
{
    return (void *)(uintptr_t)number;
}

static weir_status go_wrong(weir_queue *queue)
{
    struct weir_error error = {.status = rules.bad.status};
    if (rules.bad.message)
        memcpy(error.message, rules.bad.message, strlen(rules.bad.message));
    if (rules.bad.breaks_queue)
        steered_break(queue, rules.bad.status, rules.bad.message, false);
    if (rules.bad.reaches_first)
        steered_break(rules.first_queue, rules.bad.status, rules.bad.message, true);
    if (rules.bad.message)
        weir_error_set(&error);
    return rules.bad.status;
}

static weir_status work(void *frame, weir_queue *queue, uint64_t duration_ns)
{
    rules.submits++;
    weir_status status = steered_work(queue, duration_ns);
    if (status == WEIR_OK && frame == frame_of(rules.bad.frame))
        return go_wrong(queue);
    return status;
}

static weir_status work_10(void *user, void *slot, void *frame, weir_queue *queue)
{
    rules.submits++;
    if (!rules.first_queue)
        rules.first_queue = queue;
    return steered_work(queue, 10);
}

static weir_status work_20(void *user, void *slot, void *frame, weir_queue *queue)
{
    return work(frame, queue, 20);
}

static weir_status bad_prepare(void *user, void *slot, void *frame)
{
    return frame == frame_of(rules.bad.frame) ? go_wrong(NULL) : WEIR_OK;
}

static weir_status gated_prepare(void *user, void *slot, void *frame)
{
    gate_pass(&rules.gate);
    return WEIR_OK;
}

static void record_delivery(void *user, void *frame, void *slot,
                            const struct weir_pipeline_result *result)
{
    recorder_add(&rules.recorder, frame, slot, result);
}

static weir_status make_slot(void *user, weir_device *device, uint32_t index, void **out_slot)
{
    if (index + 1 == rules.failing_slot)
        return go_wrong(NULL);
    rules.slots_made++;
    *out_slot = frame_of(index + 100);
    return WEIR_OK;
}

static void free_slot(void *user, void *slot)
{
    rules.free_order[rules.slots_freed++] = (unsigned)((uintptr_t)slot - 100);
}

static const struct weir_pipeline_stage two_stages[] = {
    {.name = "a", .submit = work_10},
    {.name = "b", .depends_on = WEIR_PIPELINE_AFTER(0), .submit = work_20},
};

static struct weir_pipeline_params begin(void)
{
    memset(&rules, 0, sizeof rules);
    recorder_init(&rules.recorder);
    return (struct weir_pipeline_params){
        .struct_size = sizeof(struct weir_pipeline_params),
        .device = steered_open(),
        .label = "p",
        .stages = two_stages,
        .stage_count = 2,
        .stage_size = sizeof(struct weir_pipeline_stage),
        .slot_count = 2,
        .slot_create = make_slot,
        .slot_destroy = free_slot,
        .deliver = record_delivery,
    };
}

static void end(void)
{
    EXPECT_OK(weir_pipeline_destroy(&rules.pipeline));
    EXPECT_NULL(rules.pipeline);
    EXPECT_UINT_EQ(rules.slots_freed, rules.slots_made);
    steered_close();
}

#define RULE_TEST(suite, name)                                       \
    WEIR_TEST_WITH(suite, name, struct weir_pipeline_params, params, \
                   (*params = begin(), !weir_test_has_failed()), end())

static void submit(uint64_t first, uint64_t last)
{
    for (uint64_t number = first; number <= last; number++)
        ASSERT_OK(weir_pipeline_submit(rules.pipeline, frame_of(number)));
}

static void drain(void)
{
    EXPECT_OK(weir_pipeline_drain(rules.pipeline, WEIR_FOREVER));
}

static void submit_and_drain(uint64_t first, uint64_t last)
{
    submit(first, last);
    drain();
}

static void run(const struct weir_pipeline_params *params, uint64_t first, uint64_t last)
{
    ASSERT_OK(weir_pipeline_create(params, &rules.pipeline));
    submit_and_drain(first, last);
}

// --- what is refused ---

static void expect_refused(struct weir_pipeline_params params, const char *sentence)
{
    weir_pipeline *pipeline = (weir_pipeline *)(void *)&params;

    weir_test_note("expecting: %s", sentence);
    weir_error_set(NULL);
    EXPECT_INT_EQ(weir_pipeline_create(&params, &pipeline), WEIR_ERROR_INVALID);
    EXPECT_NULL(pipeline);
    EXPECT_CONTAINS(weir_last_error()->message, sentence);
    EXPECT_INT_EQ(weir_last_error()->status, WEIR_ERROR_INVALID);
    EXPECT_UINT_EQ(steered.queues, 0);
    EXPECT_UINT_EQ(rules.slots_made, 0);
    weir_test_note(NULL);
}

RULE_TEST(Rules, GraphsThatCannotRunAreRefused)
{
    struct weir_pipeline_stage stages[3] = {
        {.name = "in", .submit = work_10},
        {.name = "middle", .submit = work_10},
        {.name = "out", .submit = work_10},
    };
    params->stages = stages;
    params->stage_count = 3;

    stages[1].depends_on = WEIR_PIPELINE_AFTER(0) | WEIR_PIPELINE_AFTER(1);
    expect_refused(*params, "stage 1 ('middle') depends on itself");
    stages[1].depends_on = WEIR_PIPELINE_AFTER(2);
    stages[2].depends_on = WEIR_PIPELINE_AFTER(1);
    expect_refused(*params, "stage 1 ('middle') depends on stage 2 ('out'), which comes after it");
    stages[1].depends_on = WEIR_PIPELINE_AFTER(63);
    expect_refused(*params, "stage 1 ('middle') depends on stage 63, but there are only 3 stages");
    stages[1].depends_on = 0;
    stages[2].name = "in";
    expect_refused(*params, "stages 0 and 2 are both named 'in'");
    stages[2].name = "";
    expect_refused(*params, "stage 2 has no name");
    stages[2].name = "a name of more than thirty-one bytes";
    expect_refused(*params, "has 36 bytes, but may have 31");
    stages[2].name = "out";
    stages[2].submit = NULL;
    expect_refused(*params, "stage 2 ('out') has no submit callback");
}

WEIR_TEST(Rules, ParamsOutOfRangeAreRefused)
{
    const struct weir_pipeline_params good = begin();
    struct weir_pipeline_params params;
#define REFUSED(field, value, part) \
    (params = good, params.field = (value), expect_refused(params, part))

    REFUSED(struct_size, 7, "struct_size is 7");
    REFUSED(stage_size, 8, "stage_size is 8");
    REFUSED(stage_size, WEIR_SIZED_BYTES_MAX + 1, "stage_size is 4097");
    REFUSED(device, NULL, "params->device is NULL");
    EXPECT_STR_EQ(weir_last_error()->remedy, "set it");
    REFUSED(stages, NULL, "params->stages is NULL");
    REFUSED(stage_count, 0, "stage_count is 0, but must be 1 to 64");
    REFUSED(stage_count, 65, "stage_count is 65");
    REFUSED(slot_count, 257, "slot_count is 257, but must be 0 to 256");
    REFUSED(prepare_threads, WEIR_PIPELINE_SLOTS_MAX + 1,
            "prepare_threads is 257, but must be 0 to 256");
    REFUSED(backlog, 65537, "backlog is 65537");
    REFUSED(dropped_backlog, 65537, "dropped_backlog is 65537");
    REFUSED(full, (weir_pipeline_full)4, "there is no policy 4");
    REFUSED(graphs, true, "cannot run as graphs");
    EXPECT_CONTAINS(weir_last_error()->remedy, "graphs = 0");

#undef REFUSED
    weir_pipeline *pipeline;
    EXPECT_INT_EQ(weir_pipeline_create(NULL, &pipeline), WEIR_ERROR_INVALID);
    EXPECT_NULL(pipeline);
    end();
}

// What only the program knows of a stage must be zero.
RULE_TEST(Rules, StagesOfNewerHeaders)
{
    struct newer_stage {
        struct weir_pipeline_stage known;
        uint64_t appended;
    } stages[] = {{two_stages[0], 0}, {two_stages[1], 0}};

    params->stages = &stages[0].known;
    params->stage_size = sizeof stages[0];
    stages[1].appended = 1;
    expect_refused(*params, "weir_pipeline_create: struct weir_pipeline_stage has");
    EXPECT_CONTAINS(weir_last_error()->message, "is not zero");
    stages[1].appended = 0;
    ASSERT_OK(weir_pipeline_create(params, &rules.pipeline));
}

WEIR_TEST(Rules, CallsOnNoPipelineAreRefused)
{
    EXPECT_FAILURE(weir_pipeline_submit(NULL, NULL), WEIR_ERROR_INVALID,
                   "weir_pipeline_submit: pipeline is NULL");
    EXPECT_CONTAINS(weir_last_error()->remedy, "create it first");
    EXPECT_INT_EQ(weir_pipeline_drain(NULL, 0), WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(weir_pipeline_cancel(NULL), WEIR_ERROR_INVALID);
    weir_pipeline *none = NULL;
    EXPECT_OK(weir_pipeline_destroy(NULL));
    EXPECT_OK(weir_pipeline_destroy(&none));
    const struct weir_pipeline_statistics figures = rig_figures(NULL);
    EXPECT_UINT_EQ(figures.accepted, 0);
}

RULE_TEST(Rules, FailedSlotRollsBackTheOthers)
{
    params->slot_count = 4;
    rules.failing_slot = 3;
    rules.bad = (struct bad){.status = WEIR_ERROR_OUT_OF_MEMORY, .message = "no buffer for you"};

    EXPECT_INT_EQ(weir_pipeline_create(params, &rules.pipeline), WEIR_ERROR_OUT_OF_MEMORY);
    EXPECT_NULL(rules.pipeline);
    EXPECT_STR_EQ(weir_last_error()->message, "no buffer for you");
    EXPECT_UINT_EQ(rules.slots_made, 2);
    EXPECT_UINT_EQ(rules.slots_freed, 2);
    EXPECT_UINT_EQ(rules.free_order[0], 1);
    EXPECT_UINT_EQ(rules.free_order[1], 0);
    EXPECT_UINT_EQ(recorder_count(&rules.recorder), 0);
}

RULE_TEST(Rules, FailedSlotWithoutDetailIsNamed)
{
    rules.failing_slot = 2;
    rules.bad = (struct bad){.status = WEIR_ERROR_IO};

    EXPECT_FAILURE(weir_pipeline_create(params, &rules.pipeline), WEIR_ERROR_IO,
                   "slot_create of slot 1 returned WEIR_ERROR_IO");
}

RULE_TEST(Rules, FailedQueueRollsBack)
{
    steered.refused_queue = 2;
    EXPECT_INT_EQ(weir_pipeline_create(params, &rules.pipeline), WEIR_ERROR_OUT_OF_MEMORY);
    EXPECT_STR_EQ(weir_last_error()->message, "no more queues");
    EXPECT_UINT_EQ(rules.slots_made, 0);
}

// --- waits and times ---

// 1 and 2 wait for 0 only, and run at the same time; 3 waits for both.
RULE_TEST(Rules, WaitsAreTheEdgesOfTheGraph)
{
    static const struct weir_pipeline_stage diamond[] = {
        {.name = "0", .submit = work_10},
        {.name = "1", .depends_on = WEIR_PIPELINE_AFTER(0), .submit = work_10},
        {.name = "2", .depends_on = WEIR_PIPELINE_AFTER(0), .submit = work_10},
        {.name = "3",
         .depends_on = WEIR_PIPELINE_AFTER(1) | WEIR_PIPELINE_AFTER(2),
         .submit = work_10},
    };
    params->stages = diamond;
    params->stage_count = 4;
    params->timing = true;
    run(params, 1, 5);
    const struct weir_pipeline_statistics figures = rig_figures(rules.pipeline);
    EXPECT_UINT_EQ(figures.busy_ns, 4 * 5 * 10);
    EXPECT_UINT_EQ(figures.covered_ns, (5 + 2) * 10);
}

RULE_TEST(Rules, FiguresFollowFromDeviceTimes)
{
    params->timing = true;
    run(params, 1, 100);
    const struct weir_pipeline_statistics figures = rig_figures(rules.pipeline);
    // a is busy from 0 to 1000, b from 10 to 2010, both without a gap.
    EXPECT_UINT_EQ(figures.timed_frames, 100);
    EXPECT_UINT_EQ(figures.stage_count, 2);
    EXPECT_STR_EQ(figures.stages[0].name, "a");
    EXPECT_UINT_EQ(figures.stages[0].busy_ns, 1000);
    EXPECT_UINT_EQ(figures.stages[0].wait_ns, 0);
    EXPECT_UINT_EQ(figures.stages[1].busy_ns, 2000);
    EXPECT_UINT_EQ(figures.stages[1].wait_ns, 0);
    EXPECT_UINT_EQ(figures.busy_ns, 3000);
    EXPECT_UINT_EQ(figures.covered_ns, 2010);
    EXPECT_UINT_EQ(figures.overlap_ns, 990);
    EXPECT_TRUE(recorder_at(&rules.recorder, 50)->timed);
}

RULE_TEST(Rules, AStageThatIsFasterWaits)
{
    static const struct weir_pipeline_stage stages[] = {
        {.name = "slow", .submit = work_20},
        {.name = "fast", .depends_on = WEIR_PIPELINE_AFTER(0), .submit = work_10},
    };
    params->stages = stages;
    params->timing = true;
    run(params, 1, 11);
    const struct weir_pipeline_statistics figures = rig_figures(rules.pipeline);
    EXPECT_UINT_EQ(figures.stages[0].wait_ns, 0);
    EXPECT_UINT_EQ(figures.stages[1].wait_ns, 100);
    EXPECT_UINT_EQ(figures.covered_ns, 230);
    EXPECT_UINT_EQ(figures.overlap_ns, 100);
}

RULE_TEST(Rules, TimesThatAreGoneAreLeftOut)
{
    params->timing = true;
    run(params, 1, 3);
    steered.times_expired = true;
    submit_and_drain(4, 9);
    const struct weir_pipeline_statistics figures = rig_figures(rules.pipeline);
    EXPECT_UINT_EQ(figures.succeeded, 9);
    EXPECT_UINT_EQ(figures.timed_frames, 3);
    EXPECT_UINT_EQ(figures.busy_ns, 90);
    EXPECT_TRUE(recorder_at(&rules.recorder, 2)->timed);
    EXPECT_FALSE(recorder_at(&rules.recorder, 3)->timed);
}

RULE_TEST(Rules, ADeviceWithoutTimesGivesNone)
{
    params->timing = true;
    steered_timing_history(0);
    run(params, 1, 3);
    const struct weir_pipeline_statistics figures = rig_figures(rules.pipeline);
    EXPECT_UINT_EQ(figures.succeeded, 3);
    EXPECT_UINT_EQ(figures.timed_frames, 0);
    EXPECT_UINT_EQ(figures.busy_ns, 0);
    EXPECT_FALSE(recorder_at(&rules.recorder, 0)->timed);
}

// --- failures ---

static void expect_failed(unsigned index, const char *stage, weir_status status,
                          const char *message)
{
    const struct delivery *delivery = recorder_at(&rules.recorder, index);
    weir_test_note("delivery %u", index);
    EXPECT_INT_EQ(delivery->status, status);
    EXPECT_TRUE(delivery->has_error);
    EXPECT_INT_EQ(delivery->error_status, status);
    EXPECT_CONTAINS(delivery->message, message);
    EXPECT_STR_EQ(delivery->stage, stage);
    weir_test_note(NULL);
}

// One frame of four goes wrong, and the others do not.
WEIR_TEST(Rules, AFailureIsItsFramesOwn)
{
    static const struct {
        bool prepares;    // it is `prepare` that fails
        uint32_t threads; // prepare_threads
        struct bad bad;
        weir_status status;
        const char *message;
        unsigned submits; // of four frames with two stages
        uint64_t recoveries;
    } rows[] = {
        {true, 0, {2, WEIR_ERROR_IO, "cut", 0, 0}, WEIR_ERROR_IO, "cut", 6, 0},
        {true, 3, {2, WEIR_ERROR_IO, "cut", 0, 0}, WEIR_ERROR_IO, "cut", 6, 0},
        {false, 0, {2, WEIR_ERROR_IO, "luck", 0, 0}, WEIR_ERROR_IO, "luck", 8, 0},
        {false, 0, {2, WEIR_ERROR_IO, 0, 0, 0}, WEIR_ERROR_IO, "'b' returned WEIR_ERROR_IO", 8, 0},
        // An answer is not an outcome.
        {false, 0, {2, WEIR_NOT_READY, 0, 0, 0}, WEIR_ERROR_INVALID, "'b' returned", 8, 0},
        {false, 0, {2, WEIR_ERROR_DEVICE, "a fault", 1, 0}, WEIR_ERROR_DEVICE, "a fault", 8, 1},
        // The recovery waits for failures that are under way.
        {false, 0, {2, WEIR_ERROR_DEVICE, "a fault", 1, 1}, WEIR_ERROR_DEVICE, "a fault", 8, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct weir_pipeline_params params = begin();
        params.prepare = rows[i].prepares ? bad_prepare : NULL;
        params.prepare_threads = rows[i].threads;
        rules.bad = rows[i].bad;
        run(&params, 1, 4);
        weir_test_note("row %zu", i);
        EXPECT_TRUE(recorder_is_in_order(&rules.recorder, 4));
        expect_failed(1, rows[i].prepares ? "prepare" : "b", rows[i].status, rows[i].message);
        EXPECT_NOT_NULL(recorder_at(&rules.recorder, 1)->slot);
        const struct weir_pipeline_statistics figures = rig_figures(rules.pipeline);
        EXPECT_UINT_EQ(figures.succeeded, 3);
        EXPECT_UINT_EQ(figures.failed, 1);
        EXPECT_UINT_EQ(figures.recoveries, rows[i].recoveries);
        EXPECT_UINT_EQ(rules.submits, rows[i].submits);
        end();
    }
}

RULE_TEST(Rules, AnEarlierDetailIsNotTold)
{
    rules.bad = (struct bad){.frame = 1, .status = WEIR_ERROR_IO, .message = "first detail"};
    run(params, 1, 1);
    rules.bad = (struct bad){.frame = 2, .status = WEIR_ERROR_IO};
    submit_and_drain(2, 2);
    expect_failed(0, "b", WEIR_ERROR_IO, "first detail");
    expect_failed(1, "b", WEIR_ERROR_IO, "the callback of 'b' returned WEIR_ERROR_IO");
}

RULE_TEST(Rules, RecoveringIsTriedAgain)
{
    params->slot_count = 1;
    rules.bad = (struct bad){2, WEIR_ERROR_DEVICE, "a fault", .breaks_queue = true};
    steered.recover_status = WEIR_ERROR_SYSTEM;
    steered.recover_times = 2;
    run(params, 1, 6);
    expect_failed(1, "b", WEIR_ERROR_DEVICE, "a fault");
    expect_failed(2, "", WEIR_ERROR_SYSTEM, "a fault");
    expect_failed(3, "", WEIR_ERROR_SYSTEM, "a fault");
    EXPECT_INT_EQ(recorder_at(&rules.recorder, 4)->status, WEIR_OK);
    EXPECT_INT_EQ(recorder_at(&rules.recorder, 5)->status, WEIR_OK);
}

RULE_TEST(Rules, ALostDeviceFailsEveryLaterFrame)
{
    params->slot_count = 1;
    rules.bad = (struct bad){2, WEIR_ERROR_DEVICE, "an illegal address", .breaks_queue = true};
    steered.recover_status = WEIR_ERROR_DEVICE_LOST;
    steered.recover_times = 100;
    run(params, 1, 3);
    unsigned submits = rules.submits;
    submit_and_drain(4, 9);
    EXPECT_TRUE(recorder_is_in_order(&rules.recorder, 9));
    expect_failed(1, "b", WEIR_ERROR_DEVICE, "an illegal address");
    for (unsigned i = 2; i < 9; i++)
        expect_failed(i, "", WEIR_ERROR_DEVICE_LOST, "an illegal address");
    EXPECT_NULL(recorder_at(&rules.recorder, 8)->slot);
    EXPECT_UINT_EQ(rules.submits, submits);
}

// Frame 2 loses the device of the second of two pipelines: that one's last frame fails, and the first
// gets all later ones. When both are lost, frames fail again.
RULE_TEST(Rules, AGroupLeavesALostDeviceOut)
{
    weir_pipeline *pipelines[2];
    struct weir_pipeline_statistics figures[2];
    weir_pipeline_group *group;
    params->slot_count = 1;
    rules.bad = (struct bad){2, WEIR_ERROR_DEVICE, .breaks_queue = true};
    steered.recover_status = WEIR_ERROR_DEVICE_LOST;
    steered.recover_times = 2;

    ASSERT_OK(weir_pipeline_group_create(NULL, &group));
    params->group = group;
    ASSERT_OK(weir_pipeline_create(params, &pipelines[0]));
    ASSERT_OK(weir_pipeline_create(params, &pipelines[1]));
    for (uint64_t i = 1; i <= 20; i++) {
        ASSERT_OK(weir_pipeline_group_submit(group, frame_of(i)));
        ASSERT_OK(weir_pipeline_group_drain(group, WEIR_FOREVER));
    }
    for (int i = 0; i < 2; i++)
        weir_pipeline_get_statistics(pipelines[i], &figures[i]);
    EXPECT_UINT_EQ(figures[1].failed, 2); // the one that broke it, and the one that noticed
    EXPECT_UINT_EQ(figures[1].accepted, 2);
    EXPECT_UINT_EQ(figures[0].succeeded, 18);
    rules.bad.frame = 21;
    steered.recover_times = 2;
    for (uint64_t i = 21; i <= 24; i++)
        ASSERT_OK(weir_pipeline_group_submit(group, frame_of(i)));
    ASSERT_OK(weir_pipeline_group_drain(group, WEIR_FOREVER));
    EXPECT_INT_EQ(recorder_at(&rules.recorder, 23)->status, WEIR_ERROR_DEVICE_LOST);
    for (int i = 0; i < 2; i++)
        ASSERT_OK(weir_pipeline_destroy(&pipelines[i]));
    ASSERT_OK(weir_pipeline_group_destroy(&group));
}

// --- calls from callbacks ---

static void call_from_deliver(void *user, void *frame, void *slot,
                              const struct weir_pipeline_result *result)
{
    record_delivery(user, frame, slot, result);
    if (result->sequence > 0)
        return;
    weir_pipeline *pipeline = rules.pipeline;
    rules.from_callback[0] = weir_pipeline_drain(pipeline, WEIR_FOREVER);
    rules.from_callback[1] = weir_pipeline_destroy(&pipeline);
    rules.from_callback[2] = weir_pipeline_submit(pipeline, frame_of(2));
}

static weir_status call_from_prepare(void *user, void *slot, void *frame)
{
    rules.from_callback[0] = weir_pipeline_drain(rules.pipeline, 0);
    return rules.from_callback[0];
}

WEIR_TEST(Rules, CallbacksMayNotWaitForThePipeline)
{
    struct weir_pipeline_params params = begin();
    params.deliver = call_from_deliver;
    run(&params, 1, 1);
    EXPECT_INT_EQ(rules.from_callback[0], WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(rules.from_callback[1], WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(rules.from_callback[2], WEIR_ERROR_INVALID);
    EXPECT_UINT_EQ(recorder_count(&rules.recorder), 1);
    end();

    for (uint32_t threads = 0; threads < 3; threads += 2) {
        params = begin();
        params.prepare = call_from_prepare;
        params.prepare_threads = threads;
        run(&params, 1, 1);
        expect_failed(0, "prepare", WEIR_ERROR_INVALID,
                      "weir_pipeline_drain was called from a callback of pipeline");
        end();
    }
}

RULE_TEST(Rules, DeliverMaySubmitWhereNothingBlocks)
{
    params->deliver = call_from_deliver;
    params->full = WEIR_PIPELINE_WOULD_BLOCK;
    run(params, 1, 1);
    EXPECT_INT_EQ(rules.from_callback[2], WEIR_OK);
    drain();
    EXPECT_PTR_EQ(recorder_at(&rules.recorder, 1)->frame, frame_of(2));
}

// --- room ---

// Room depends only on the params, not on the progress of the starter.
WEIR_TEST(Rules, RoomDoesNotDependOnThreads)
{
    for (unsigned round = 0; round < 50; round++) {
        struct weir_pipeline_params params = begin();
        params.full = WEIR_PIPELINE_WOULD_BLOCK;
        params.prepare = gated_prepare;
        params.backlog = 3;

        ASSERT_OK(weir_pipeline_create(&params, &rules.pipeline));
        submit(1, 5);
        ASSERT_INT_EQ(weir_pipeline_submit(rules.pipeline, frame_of(6)), WEIR_NOT_READY);
        ASSERT_INT_EQ(weir_pipeline_drain(rules.pipeline, 1000), WEIR_TIMEOUT);
        gate_open(&rules.gate);
        drain();
        EXPECT_UINT_EQ(recorder_count_of(&rules.recorder, WEIR_OK), 5);
        end();
    }
}

WEIR_TEST(Rules, DroppedFramesHaveABacklogOfTheirOwn)
{
    const weir_pipeline_full policies[] = {WEIR_PIPELINE_DROP_OLDEST, WEIR_PIPELINE_DROP_NEWEST};

    for (unsigned i = 0; i < 2; i++) {
        struct weir_pipeline_params params = begin();
        params.full = policies[i];
        params.prepare = gated_prepare;
        params.slot_count = 1;
        params.backlog = 1;
        params.dropped_backlog = 4;

        weir_test_note("policy %d", (int)policies[i]);
        ASSERT_OK(weir_pipeline_create(&params, &rules.pipeline));
        submit(1, 1);
        EXPECT_TRUE(gate_await(&rules.gate, 1));
        submit(2, 6);
        EXPECT_INT_EQ(weir_pipeline_submit(rules.pipeline, frame_of(7)), WEIR_NOT_READY);
        gate_open(&rules.gate);
        drain();
        EXPECT_TRUE(recorder_is_in_order(&rules.recorder, 6));
        EXPECT_UINT_EQ(recorder_count_of(&rules.recorder, WEIR_DROPPED), 4);
        // The frame that survives besides frame 1: the newest, or the one that
        // waited first.
        EXPECT_INT_EQ(recorder_at(&rules.recorder, i == 0 ? 5 : 1)->status, WEIR_OK);
        const struct weir_pipeline_statistics figures = rig_figures(rules.pipeline);
        EXPECT_UINT_EQ(figures.dropped, 4);
        EXPECT_UINT_EQ(figures.refused, 1);
        EXPECT_UINT_EQ(figures.accepted, 6);
        end();
    }
}

// --- waits with prepare_threads ---

// Frame 2 is prepared at the gate.
static weir_status prepare_at_gate(void *user, void *slot, void *frame)
{
    if (frame == frame_of(2))
        gate_pass(&rules.gate);
    return WEIR_OK;
}

static weir_status work_after_meeting(void *user, void *slot, void *frame, weir_queue *queue)
{
    if (rules.meets && frame == frame_of(1))
        EXPECT_TRUE(gate_await(&rules.gate, 1));
    return steered_work(queue, 10);
}

static void deliver_at_gate(void *user, void *frame, void *slot,
                            const struct weir_pipeline_result *result)
{
    record_delivery(user, frame, slot, result);
    if (rules.opens)
        gate_open(&rules.gate);
}

// While all threads prepare the device is asked now and then, and else the driver waits.
WEIR_TEST(Rules, WaitsInTheDriverWhereAThreadIsIdle)
{
    static const struct weir_pipeline_stage stage = {.name = "work", .submit = work_after_meeting};
    static const struct {
        unsigned frames;
        uint32_t threads;
        unsigned pending; // queries that find the first frame under way
        bool opens;
        unsigned early_syncs, queries;
    } rows[] = {
        {2, 1, 5, true, 0, 5},
        {2, 2, 5, true, 1, 0},
        {1, 1, 5, true, 1, 0},
        {2, 1, UINT_MAX, false, 1, 1}, // or more, until the thread is idle
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct weir_pipeline_params params = begin();
        params.stages = &stage;
        params.stage_count = 1;
        params.prepare = prepare_at_gate;
        params.prepare_threads = rows[i].threads;
        params.deliver = deliver_at_gate;
        rules.meets = rows[i].frames > 1;
        rules.opens = rows[i].opens;
        steered_pend(rows[i].pending);
        ASSERT_OK(weir_pipeline_create(&params, &rules.pipeline));
        submit(1, rows[i].frames);
        while (!rows[i].opens && steered_waits().queries == 0)
            rig_sleep_ns(100000);
        if (!rows[i].opens)
            gate_open(&rules.gate);
        drain();
        weir_test_note("row %zu", i);
        const struct steered_waits waits = steered_waits();
        EXPECT_UINT_EQ(waits.early_syncs, rows[i].early_syncs);
        EXPECT_TRUE(rows[i].opens ? waits.queries == rows[i].queries
                                  : waits.queries >= rows[i].queries);
        end();
    }
}
