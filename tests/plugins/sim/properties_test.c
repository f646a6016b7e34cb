// What must hold for every program and every GPU.
#include <stdlib.h>
#include <string.h>

#include "tests/plugins/sim/program.h"
#include "tests/support/test.h"

enum {
    PROGRAMS = 2000,
    CHUNKS_MOST = 12
};

static uint64_t seed;

static uint64_t up_to(uint64_t most)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % (most + 1);
}

// Everything is submitted at once, without host waits.
static void random_program(struct program *program, const struct sim_model *model)
{
    static const enum sim_kind kinds[] = {SIM_KERNEL, SIM_H2D, SIM_D2H, SIM_PEER, SIM_MARK};
    *program = (struct program){.models = {model}, .device_count = 1};
    program->queue_count = 1 + (uint32_t)up_to(7);
    for (int i = 0; i < 120; i++) {
        const int step = add_step(program, (uint32_t)up_to(program->queue_count - 1),
                                  kinds[up_to(4)], 2 * up_to(50));
        if (i > 0 && up_to(3) == 0)
            program->steps[step].waits[0] = (int)up_to((uint64_t)i - 1);
    }
}

static uint64_t time_on(struct program *program, const struct sim_model *model)
{
    program->models[0] = model;
    run_engine(program);
    return makespan(program);
}

static struct sim_model random_engines(enum sim_queues queues)
{
    struct sim_model model = plain_model();
    model.queues = queues;
    model.late_signals = queues == SIM_ENGINE_QUEUES && up_to(1);
    model.copy_engines = 1;
    model.kernels = 1 + (uint32_t)up_to(3);
    model.channels = (uint32_t)up_to(3);
    return model;
}

// Only engine queues: with stream queues another engine can change which of two kernels is ready
// first, and for some programs the other order is slower (as on a real GPU).
WEIR_TEST(Properties, MoreEnginesAreNeverSlower)
{
    static struct program program;
    for (seed = 1; seed < PROGRAMS; seed++) {
        const uint64_t kept = seed;
        struct sim_model model = random_engines(SIM_ENGINE_QUEUES);
        random_program(&program, &model);
        const uint64_t one = time_on(&program, &model);
        model.copy_engines = 2;
        const uint64_t two = time_on(&program, &model);
        model.peer_engine = true;
        const uint64_t three = time_on(&program, &model);
        model.kernels++;
        const uint64_t four = time_on(&program, &model);
        EXPECT_TRUE(two <= one);
        EXPECT_TRUE(three <= two);
        EXPECT_TRUE(four <= three);
        seed = kept;
    }
}

WEIR_TEST(Properties, TwiceTheBandwidthNeverMoreThanHalves)
{
    static struct program program;
    for (seed = 1; seed < PROGRAMS; seed++) {
        const uint64_t kept = seed;
        struct sim_model model = random_engines(SIM_ENGINE_QUEUES);
        random_program(&program, &model);
        const uint64_t once = time_on(&program, &model);
        for (int kind = 0; kind < SIM_KINDS; kind++)
            model.copies[kind].bytes_per_s *= 2;
        const uint64_t twice = time_on(&program, &model);
        EXPECT_TRUE(twice <= once);
        EXPECT_TRUE(2 * twice >= once);
        seed = kept;
    }
}

// A chunked job: uploads, kernels and downloads of one length each.
static void chunked(struct program *program, int chunks, const uint64_t lengths[3], bool breadth)
{
    static const enum sim_kind kinds[] = {SIM_H2D, SIM_KERNEL, SIM_D2H};
    *program = (struct program){.device_count = 1};
    for (int i = 0; i < 3 * chunks; i++) {
        const int part = breadth ? i / chunks : i % 3;
        add_step(program, (uint32_t)(breadth ? i % chunks : i / 3), kinds[part], lengths[part]);
    }
}

// Chunked jobs, with stream queues too.
WEIR_TEST(Properties, ChunkedJobs)
{
    static struct program program;
    for (seed = 1; seed < PROGRAMS; seed++) {
        const uint64_t kept = seed;
        const uint64_t lengths[3] = {2 * up_to(40), 2 * up_to(40), 2 * up_to(40)};
        struct sim_model model = random_engines(up_to(1) ? SIM_STREAM_QUEUES : SIM_ENGINE_QUEUES);
        model.channels = 0;
        chunked(&program, 1 + (int)up_to(CHUNKS_MOST - 1), lengths, up_to(1));
        const uint64_t one = time_on(&program, &model);
        model.copy_engines = 2;
        const uint64_t two = time_on(&program, &model);
        for (int kind = 0; kind < SIM_KINDS; kind++)
            model.copies[kind].bytes_per_s *= 2;
        const uint64_t faster = time_on(&program, &model);
        EXPECT_TRUE(two <= one);
        EXPECT_TRUE(faster <= two);
        EXPECT_TRUE(2 * faster >= two);
        seed = kept;
    }
}

// Nothing starts before what it waits for.
static void expect_order(const struct program *program)
{
    uint64_t ends[QUEUES] = {0};
    for (int i = 0; i < program->step_count; i++) {
        const struct step *step = &program->steps[i];
        const struct slot *slot = &program->slots[i];
        EXPECT_TRUE(slot->start_ns <= slot->end_ns);
        EXPECT_TRUE(slot->start_ns >= ends[step->queue]);
        if (step->waits[0] >= 0)
            EXPECT_TRUE(slot->start_ns >= program->slots[step->waits[0]].end_ns);
        ends[step->queue] = slot->end_ns;
    }
}

static int running_at(const struct program *program, uint64_t at_ns, enum sim_kind kind)
{
    int count = 0;
    for (int i = 0; i < program->step_count; i++)
        count += program->steps[i].kind == kind && program->slots[i].start_ns <= at_ns &&
                 at_ns < program->slots[i].end_ns;
    return count;
}

// Engines do not overlap themselves: at each start no more runs than there is room for.
static void expect_room(const struct program *program, const struct sim_model *model)
{
    for (int i = 0; i < program->step_count; i++) {
        const uint64_t at_ns = program->slots[i].start_ns;
        const int up = running_at(program, at_ns, SIM_H2D);
        const int down = running_at(program, at_ns, SIM_D2H) + running_at(program, at_ns, SIM_PEER);
        EXPECT_TRUE(running_at(program, at_ns, SIM_KERNEL) <= (int)model->kernels);
        EXPECT_TRUE(up <= 1 && down <= 1);
        EXPECT_TRUE(model->copy_engines == 2 || up + down <= 1);
    }
}

WEIR_TEST(Properties, OrderAndRoom)
{
    static struct program program;
    for (seed = 1; seed < PROGRAMS; seed += 4) {
        const uint64_t kept = seed;
        struct sim_model model = random_engines(up_to(1) ? SIM_STREAM_QUEUES : SIM_ENGINE_QUEUES);
        model.copy_engines = 1 + (uint32_t)up_to(1);
        random_program(&program, &model);
        time_on(&program, &model);
        expect_order(&program);
        expect_room(&program, &model);
        seed = kept;
    }
}

// An upload and a download of 1000 bytes each, a byte a nanosecond alone and half of that at once;
// the download begins after 400 ns: 400 alone, 1200 at once for the other 600, and what is then
// left of the download alone.
WEIR_TEST(Properties, BothDirections)
{
    struct sim_model model = plain_model();
    struct program program = {.models = {&model}, .device_count = 1};
    model.copies[SIM_H2D].both_bytes_per_s = model.copies[SIM_D2H].both_bytes_per_s = 500000000;
    add_step(&program, 0, SIM_H2D, 1000);
    add_step(&program, 1, SIM_D2H, 1000);
    program.steps[1].host_ns = 400;
    run_engine(&program);
    EXPECT_UINT_EQ(program.slots[0].end_ns, 1600);
    EXPECT_UINT_EQ(program.slots[1].start_ns, 400);
    EXPECT_UINT_EQ(program.slots[1].end_ns, 2000);
}

// Kernels of different sizes: one of all places waits until the others have ended, and holds up
// those after it.
WEIR_TEST(Properties, Places)
{
    struct sim_model model = plain_model();
    struct program program = {.models = {&model}, .device_count = 1};
    for (uint32_t queue = 0; queue < 4; queue++)
        program.steps[add_step(&program, queue, SIM_KERNEL, 10)].places = queue == 2 ? 16 : 8;
    run_engine(&program);
    EXPECT_UINT_EQ(program.slots[1].start_ns, 0);
    EXPECT_UINT_EQ(program.slots[2].start_ns, 10);
    EXPECT_UINT_EQ(program.slots[3].start_ns, 20);
}

WEIR_TEST(Properties, Priorities)
{
    struct sim_model model = plain_model();
    struct program program = {.models = {&model}, .device_count = 1};
    model.kernels = 1;
    for (uint32_t queue = 0; queue < 3; queue++)
        add_step(&program, queue, SIM_KERNEL, 10);
    program.queues[2].priority = -5;
    run_engine(&program);
    EXPECT_UINT_EQ(program.slots[2].start_ns, 10);
    EXPECT_UINT_EQ(program.slots[1].start_ns, 20);
}

// Costs.

WEIR_TEST(Cost, Kernels)
{
    const struct sim_cost costs[] = {
        {.kernel = "add", .fixed_ns = 100, .per_item_ns = 0.25, .per_byte_ns = 0.5},
        {.kernel = "loop",
         .per_block_ns = 10,
         .per_argument_ns = {[2] = 3},
         .per_item_argument_ns = {[1] = 2}},
    };
    struct sim_model model = plain_model();
    struct sim_launch launch = {"add", 4, 256, 1024, {0, 7, 5}};
    uint64_t ns = 0;
    EXPECT_FALSE(sim_kernel_ns(&model, &launch, &ns));
    model.costs = costs;
    model.cost_count = 2;
    ASSERT_TRUE(sim_kernel_ns(&model, &launch, &ns));
    EXPECT_UINT_EQ(ns, 100 + 64 + 512);
    launch.kernel = "loop";
    ASSERT_TRUE(sim_kernel_ns(&model, &launch, &ns));
    EXPECT_UINT_EQ(ns, 40 + 15 + 2 * 256 * 7);
    launch.arguments[1] = -1e9;
    ASSERT_TRUE(sim_kernel_ns(&model, &launch, &ns));
    EXPECT_UINT_EQ(ns, 0);
    launch.arguments[1] = 1e30;
    ASSERT_TRUE(sim_kernel_ns(&model, &launch, &ns));
    EXPECT_UINT_EQ(ns, UINT64_C(31536000000000000));
    launch.kernel = "other";
    EXPECT_FALSE(sim_kernel_ns(&model, &launch, &ns));
}

WEIR_TEST(Cost, Places)
{
    struct sim_model model = plain_model();
    model.kernels = 128;
    EXPECT_UINT_EQ(sim_kernel_places(&model, 1), 128);
    model.multiprocessors = 132;
    EXPECT_UINT_EQ(sim_kernel_places(&model, 1), 1);
    EXPECT_UINT_EQ(sim_kernel_places(&model, 66), 64);
    EXPECT_UINT_EQ(sim_kernel_places(&model, 132), 128);
    EXPECT_UINT_EQ(sim_kernel_places(&model, 1e12), 128);
}

WEIR_TEST(Cost, Copies)
{
    struct sim_model model = plain_model();
    model.copies[SIM_H2D] = (struct sim_link){.bytes_per_s = 3000000000, .latency_ns = 50};
    EXPECT_UINT_EQ(sim_copy_ns(&model, SIM_H2D, 0), 50);
    EXPECT_UINT_EQ(sim_copy_ns(&model, SIM_H2D, 3000), 1050);
    EXPECT_UINT_EQ(sim_copy_ns(&model, SIM_H2D, 3001), 1051);
}

// Queues that end.

static void forget(void *user, const struct sim_done *done)
{
    (void)user;
    (void)done;
}

// A queue's number is given out again when its work is complete, and its points stay complete.
WEIR_TEST(Queues, EndWhenTheirWorkIsComplete)
{
    const struct sim_model model = plain_model();
    const struct sim_work kernel = {.kind = SIM_KERNEL, .duration_ns = 10};
    const struct sim_queue_params params = {0};
    struct sim_engine *engine = sim_engine_create(forget, NULL);
    struct sim_point points[2];
    uint32_t device;
    uint32_t queues[3];
    ASSERT_TRUE(engine && sim_engine_add_device(engine, &model, &device));
    ASSERT_TRUE(sim_engine_add_queue(engine, &params, &queues[0]));
    ASSERT_TRUE(sim_engine_submit(engine, queues[0], 0, &kernel, &points[0]));
    sim_engine_end_queue(engine, queues[0]);
    ASSERT_TRUE(sim_engine_add_queue(engine, &params, &queues[1]));
    EXPECT_TRUE(queues[1] != queues[0]);
    sim_engine_advance(engine, 10);
    EXPECT_TRUE(sim_engine_complete(engine, points[0]));
    ASSERT_TRUE(sim_engine_add_queue(engine, &params, &queues[2]));
    EXPECT_UINT_EQ(queues[2], queues[0]);
    ASSERT_TRUE(sim_engine_submit(engine, queues[2], 10, &kernel, &points[1]));
    EXPECT_TRUE(sim_engine_complete(engine, points[0]));
    EXPECT_FALSE(sim_engine_complete(engine, points[1]));
    EXPECT_TRUE(sim_engine_complete(engine, (struct sim_point){0, 0}));
    sim_engine_destroy(&engine);
    sim_engine_destroy(&engine);
}
