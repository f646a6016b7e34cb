// What must hold for every program and every GPU.
#include <stdio.h>
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
static void random_program_of(struct program *program, const struct sim_model *model,
                              uint32_t queues, int operations)
{
    static const enum sim_kind kinds[] = {SIM_KERNEL, SIM_H2D, SIM_D2H, SIM_PEER, SIM_MARK};
    *program = (struct program){.models = {model}, .device_count = 1};
    program->queue_count = 1 + (uint32_t)up_to(queues - 1);
    for (int i = 0; i < operations; i++) {
        const int step = add_step(program, (uint32_t)up_to(program->queue_count - 1),
                                  kinds[up_to(4)], 2 * up_to(50));
        if (i > 0 && up_to(3) == 0)
            program->steps[step].waits[0] = (int)up_to((uint64_t)i - 1);
    }
}

static void random_program(struct program *program, const struct sim_model *model)
{
    random_program_of(program, model, 8, 120);
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
        model.copy_engines = 3;
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

static void drop(void *user, const struct sim_done *done)
{
    (void)user, (void)done;
}

// Kernels of closed and of open runs, one of which is complete, and others that are not there yet. What is
// freed twice, or not, the sanitizers tell.
WEIR_TEST(Properties, AnEngineIsDestroyedWithWorkInFlight)
{
    static const struct {
        uint32_t queue;
        enum sim_kind kind;
        uint64_t issue_ns;
        uint64_t length;
    } works[] = {{0, SIM_KERNEL, 0, 100},   {1, SIM_KERNEL, 0, 5000}, {2, SIM_H2D, 0, 10},
                 {0, SIM_KERNEL, 0, 100},   {2, SIM_H2D, 500, 10},    {0, SIM_KERNEL, 500, 100},
                 {1, SIM_KERNEL, 900, 100}, {2, SIM_KERNEL, 900, 10}};
    struct sim_model model = plain_model();
    struct sim_engine *engine = sim_engine_create(drop, NULL);
    uint32_t queues[3], device;
    model.queues = SIM_ENGINE_QUEUES;
    model.late_signals = true;
    ASSERT_TRUE(engine && sim_engine_add_device(engine, &model, &device));
    for (int i = 0; i < 3; i++)
        ASSERT_TRUE(
            sim_engine_add_queue(engine, &(struct sim_queue_params){.device = device}, &queues[i]));
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        const struct sim_work work = {.kind = works[i].kind,
                                      .bytes = works[i].length,
                                      .duration_ns = works[i].length};
        struct sim_point point;
        ASSERT_TRUE(
            sim_engine_post(engine, queues[works[i].queue], works[i].issue_ns, &work, &point));
        if (i == 3)
            sim_engine_advance(engine, 400);
    }
    sim_engine_advance(engine, 700);
    EXPECT_UINT_EQ(sim_engine_posted(engine), 2);
    sim_engine_destroy(&engine);
    EXPECT_TRUE(engine == NULL);
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

// With stream queues few programs are slower, and none is slower than all of its operations one after the
// other. Short programs, of which the most are: in long ones an order that is worse comes and goes.

struct change {
    const char *what;
    int slower;
    double worst;
};

static void compare(struct change *change, uint64_t before_ns, uint64_t after_ns, uint64_t sum_ns)
{
    EXPECT_TRUE(before_ns <= sum_ns && after_ns <= sum_ns);
    change->slower += after_ns > before_ns;
    if (before_ns > 0 && (double)after_ns / (double)before_ns > change->worst)
        change->worst = (double)after_ns / (double)before_ns;
}

static void compare_changes(struct change changes[4], struct program *program,
                            struct sim_model model)
{
    uint64_t times[5], sum = 0;
    for (int i = 0; i < program->step_count; i++)
        sum += program->steps[i].kind == SIM_MARK ? 0 : program->steps[i].length;
    for (int change = 0; change < 5; change++) {
        if (change == 1)
            model.copy_engines = 2;
        if (change == 2)
            model.copy_engines = 3;
        if (change == 3)
            model.kernels++;
        for (int kind = 0; kind < SIM_KINDS && change == 4; kind++)
            model.copies[kind].bytes_per_s *= 2;
        times[change] = time_on(program, &model);
        if (change > 0)
            compare(&changes[change - 1], times[change - 1], times[change], sum);
    }
}

WEIR_TEST(Properties, StreamQueues)
{
    static const uint32_t channels[] = {1, 8, 32};
    static struct program program;
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        struct change changes[] = {{"copy engine", 0, 1},
                                   {"peer engine", 0, 1},
                                   {"place", 0, 1},
                                   {"bandwidth", 0, 1}};
        for (seed = 1; seed < PROGRAMS; seed++) {
            const uint64_t kept = seed;
            struct sim_model model = random_engines(SIM_STREAM_QUEUES);
            model.channels = channels[i];
            random_program_of(&program, &model, 40, 24);
            compare_changes(changes, &program, model);
            seed = kept;
        }
        for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
            printf("%u channels, more %s: of %d programs %d are slower, by at most %.1f %%\n",
                   channels[i], changes[k].what, PROGRAMS - 1, changes[k].slower,
                   100 * (changes[k].worst - 1));
            EXPECT_TRUE(changes[k].slower < PROGRAMS / 50 && changes[k].worst < 1.4);
            EXPECT_TRUE(channels[i] > 1 || changes[k].slower == 0);
        }
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
