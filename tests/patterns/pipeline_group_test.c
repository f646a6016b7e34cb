// A group of pipelines on several devices of a chain: three of the null backend, or as many as the
// driver has. Each is a line.

#include "tests/patterns/line.h"

enum {
    LANES = 3
};

// One of the pipelines.
struct lane {
    weir_device *device;
    weir_pipeline *pipeline;
    unsigned delivered;
};

// One at a time.
static struct {
    weir_pipeline_group *group;
    struct lane lanes[LANES];
    uint32_t count;
    atomic_uint delivering;
    unsigned met; // deliveries that met another one
    bool submits; // `deliver` submits to the group, once
    weir_status submitted;
} world;

// --- the pipelines ---

static void deliver(void *user, void *frame, void *slot, const struct weir_pipeline_result *result)
{
    struct lane *lane = user;
    world.met += atomic_fetch_add(&world.delivering, 1) != 0;
    lane->delivered++;
    if (world.submits) {
        world.submits = false;
        world.submitted = weir_pipeline_group_submit(world.group, frame);
    }
    line_deliver(NULL, frame, slot, result);
    atomic_fetch_sub(&world.delivering, 1);
}

// Of one slot and a backlog of one.
static struct weir_pipeline_params params_of(struct lane *lane, weir_pipeline_full full)
{
    struct weir_pipeline_params params = line_params_on(lane->device, 1);
    params.label = "lane";
    params.backlog = 1;
    params.deliver = deliver;
    params.user = lane;
    params.full = full;
    params.group = world.group;
    return params;
}

static weir_status open_device(struct lane *lane, uint32_t index)
{
    const char digits[] = {(char)('0' + index), '\0'};
    lane->device = rig.device;
    return index == 0 ? WEIR_OK
                      : weir_device_open(rig.runtime, WEIR_PARAMS(weir_device, .select = digits),
                                         &lane->device);
}

// Devices and an empty group.
static void open_devices(void)
{
    memset(&world, 0, sizeof world);
    ASSERT_OK(line_open("[null]\ndevices = 3\n"));
    line.in_group = line.jitter = true;
    const size_t devices = weir_device_count(rig.runtime);
    world.count = devices < LANES ? (uint32_t)devices : LANES;
    for (uint32_t i = 0; i < world.count; i++)
        ASSERT_OK(open_device(&world.lanes[i], i));
    ASSERT_OK(weir_pipeline_group_create(NULL, &world.group));
}

// With a pipeline on each.
static void open_world(weir_pipeline_full full)
{
    open_devices();
    for (uint32_t i = 0; i < world.count; i++) {
        const struct weir_pipeline_params params = params_of(&world.lanes[i], full);
        ASSERT_OK(weir_pipeline_create(&params, &world.lanes[i].pipeline));
    }
}

static void close_world(void)
{
    for (uint32_t i = 0; i < world.count; i++)
        EXPECT_OK(weir_pipeline_destroy(&world.lanes[i].pipeline));
    EXPECT_OK(weir_pipeline_group_destroy(&world.group));
    EXPECT_NULL(world.group);
    for (uint32_t i = 1; i < world.count; i++)
        EXPECT_OK(weir_device_close(&world.lanes[i].device));
    line_close();
    EXPECT_UINT_EQ(world.met, 0);
}

// A test of pipelines with that policy.
#define GROUP_TEST(name, full) \
    WEIR_TEST_BETWEEN(PipelineGroup, name, open_world(full), close_world())

static void submit_frames(uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++)
        ASSERT_OK(weir_pipeline_group_submit(world.group, &line.frames[i]));
}

static void drain(void)
{
    ASSERT_OK(weir_pipeline_group_drain(world.group, WEIR_FOREVER));
}

// --- order ---

GROUP_TEST(DeliversInTheOrderOfSubmission, WEIR_PIPELINE_BLOCK)
{
    enum {
        FRAMES = 90
    };
    struct weir_pipeline_statistics all;

    submit_frames(0, FRAMES);
    drain();
    line_expect_ok(FRAMES);
    weir_pipeline_group_get_statistics(world.group, &all);
    EXPECT_UINT_EQ(all.accepted, FRAMES);
    EXPECT_UINT_EQ(all.succeeded, FRAMES);
    EXPECT_UINT_EQ(all.stage_count, 5);
    EXPECT_STR_EQ(all.stages[0].name, "upload");
    EXPECT_UINT_LE(all.latency_min_ns, all.latency_p50_ns);
    EXPECT_UINT_LE(all.latency_p99_ns, all.latency_max_ns);
    EXPECT_UINT_GT(all.latency_min_ns, 0);
    uint64_t accepted = 0;
    for (uint32_t i = 0; i < world.count; i++) {
        const struct weir_pipeline_statistics one = rig_figures(world.lanes[i].pipeline);
        EXPECT_UINT_EQ(one.succeeded, world.lanes[i].delivered);
        EXPECT_UINT_GT(one.succeeded, 0);
        EXPECT_UINT_LE(one.wall_ns, all.wall_ns);
        EXPECT_UINT_LE(one.latency_max_ns, all.latency_max_ns);
        accepted += one.accepted;
    }
    EXPECT_UINT_EQ(accepted, FRAMES);
}

// Frame by frame each device gets one in turn.
GROUP_TEST(DealsInTurn, WEIR_PIPELINE_BLOCK)
{
    for (uint32_t i = 0; i < 2 * world.count; i++) {
        submit_frames(i, 1);
        drain();
        EXPECT_UINT_EQ(world.lanes[i % world.count].delivered, i / world.count + 1);
    }
}

// A frame on another device is done, and is delivered after the one that is held. What is submitted
// meanwhile goes to the devices with fewer frames.
GROUP_TEST(AFrameWaitsForThoseBeforeIt, WEIR_PIPELINE_WOULD_BLOCK)
{
    const uint32_t frames = world.count > 1 ? 2 : 1;
    line.frames[0].gated = true;
    submit_frames(0, frames);
    EXPECT_TRUE(gate_await(&line.gate, 1));
    EXPECT_INT_EQ(weir_pipeline_group_drain(world.group, 20000000), WEIR_TIMEOUT);
    EXPECT_UINT_EQ(recorder_count(&line.recorder), 0);
    gate_open(&line.gate);
    drain();
    line_expect_order(frames);
}

// All pipelines are full: a frame is held in each, and those after them wait.
GROUP_TEST(DropOldestDropsTheOldestOfAll, WEIR_PIPELINE_DROP_OLDEST)
{
    for (uint32_t i = 0; i < world.count; i++)
        line.frames[i].gated = true;
    submit_frames(0, world.count);
    EXPECT_TRUE(gate_await(&line.gate, world.count));
    submit_frames(world.count, world.count + 2);
    gate_open(&line.gate);
    drain();
    line_expect_order(2 * world.count + 2);
    for (uint32_t i = 0; i < 2 * world.count + 2; i++) {
        const bool dropped = i == world.count || i == world.count + 1;
        EXPECT_INT_EQ(recorder_at(&line.recorder, i)->status, dropped ? WEIR_DROPPED : WEIR_OK);
    }
}

// --- failures, and the end ---

GROUP_TEST(AFailureStaysOnItsDevice, WEIR_PIPELINE_BLOCK)
{
    line.frames[4].fails_in_host_call = line.frames[17].fails_in_host_call = true;
    submit_frames(0, 30);
    drain();
    line_expect_order(30);
    EXPECT_UINT_EQ(recorder_count_of(&line.recorder, WEIR_ERROR_IO), 2);
    EXPECT_UINT_EQ(recorder_count_of(&line.recorder, WEIR_OK), 28);
    EXPECT_STR_EQ(recorder_at(&line.recorder, 4)->stage, "left");
}

// With one pipeline after the other, while frames of all of them are under way.
GROUP_TEST(DestroyDeliversEveryFrameFirst, WEIR_PIPELINE_BLOCK)
{
    submit_frames(0, 2 * world.count);
    for (uint32_t i = world.count; i-- > 0;)
        EXPECT_OK(weir_pipeline_destroy(&world.lanes[i].pipeline));
    line_expect_order(2 * world.count);
}

// A pipeline that joins while frames of another are under way.
WEIR_TEST_BETWEEN(PipelineGroup, APipelineMayJoinLater, open_devices(), close_world())
{
    weir_pipeline *second = NULL;
    line.frames[0].gated = true;
    struct weir_pipeline_params params = params_of(&world.lanes[0], WEIR_PIPELINE_BLOCK);
    ASSERT_OK(weir_pipeline_create(&params, &world.lanes[0].pipeline));
    submit_frames(0, 2);
    params = params_of(&world.lanes[world.count - 1], WEIR_PIPELINE_BLOCK);
    ASSERT_OK(weir_pipeline_create(&params, &second));
    submit_frames(2, 2);
    gate_open(&line.gate);
    drain();
    line_expect_order(4);
    EXPECT_OK(weir_pipeline_destroy(&second));
}

// --- refusals ---

GROUP_TEST(RefusesWrongUse, WEIR_PIPELINE_BLOCK)
{
    const struct weir_pipeline_group_params zero = {.label = "zero"};
    struct frame frame = {.number = 1};
    weir_pipeline_group *group;
    weir_pipeline *other;

    rig_expect_refused(weir_pipeline_group_submit(NULL, &frame), "group is NULL",
                       "create it first");
    rig_expect_refused(weir_pipeline_group_create(&zero, &group), "struct_size", "");
    EXPECT_NULL(group);
    ASSERT_OK(
        weir_pipeline_group_create(WEIR_PARAMS(weir_pipeline_group, .label = "dealt"), &group));
    rig_expect_refused(weir_pipeline_group_submit(group, &frame), "the group has no pipelines",
                       "create pipelines with this group");
    EXPECT_STR_EQ(weir_last_error()->object, "dealt");
    EXPECT_OK(weir_pipeline_group_drain(group, WEIR_FOREVER));
    EXPECT_OK(weir_pipeline_group_destroy(&group));
    EXPECT_OK(weir_pipeline_group_destroy(&group));
    EXPECT_OK(weir_pipeline_group_destroy(NULL));
    rig_expect_refused(weir_pipeline_group_destroy(&world.group), "one of them 'lane'",
                       "destroy its pipelines first");
    const struct weir_pipeline_params params =
        params_of(&world.lanes[0], WEIR_PIPELINE_DROP_OLDEST);
    rig_expect_refused(weir_pipeline_create(&params, &other), "its policy for a full pipeline is 2",
                       "the same `full`");
}

WEIR_TEST_BETWEEN(PipelineGroup, HoldsNoMoreThanItCan, open_devices(), close_world())
{
    weir_pipeline *pipelines[WEIR_PIPELINE_GROUP_MAX], *one_more;
    const struct weir_pipeline_params params = params_of(&world.lanes[0], WEIR_PIPELINE_BLOCK);
    for (uint32_t i = 0; i < WEIR_PIPELINE_GROUP_MAX; i++)
        ASSERT_OK(weir_pipeline_create(&params, &pipelines[i]));
    rig_expect_refused(weir_pipeline_create(&params, &one_more), "has 64 pipelines already", "");
    EXPECT_NULL(one_more);
    for (uint32_t i = 0; i < WEIR_PIPELINE_GROUP_MAX; i++)
        EXPECT_OK(weir_pipeline_destroy(&pipelines[i]));
}

GROUP_TEST(ACallbackMayNotSubmitWhereItCouldBlock, WEIR_PIPELINE_BLOCK)
{
    world.submits = true;
    submit_frames(0, 1);
    drain();
    EXPECT_INT_EQ(world.submitted, WEIR_ERROR_INVALID);
}
