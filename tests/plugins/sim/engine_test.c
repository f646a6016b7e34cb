// The engine: its end with work in flight, what kernels and copies cost, and the numbers of queues that end.
#define _GNU_SOURCE // clock_gettime
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "plugins/sim/engine.h"
#include "tests/plugins/sim/program.h"
#include "tests/support/test.h"

static void drop(const struct sim_done *done)
{
    (void)done;
}

// Kernels of closed and of open runs, one of which is complete, and others that are not there yet. What is
// freed twice, or not, the sanitizers tell.
WEIR_TEST(Engine, AnEngineIsDestroyedWithWorkInFlight)
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
    struct sim_engine *engine = sim_engine_create(drop);
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

// Costs.

WEIR_TEST(Cost, Kernels)
{
    const struct sim_cost costs[] = {
        {.kernel = "add",
         .factors = {[SIM_TERM_FIXED] = 100, [SIM_TERM_ITEM] = 0.25, [SIM_TERM_BYTE] = 0.5}},
        {.kernel = "loop",
         .factors = {[SIM_TERM_BLOCK] = 10,
                     [SIM_TERM_ARGUMENT + 2] = 3,
                     [SIM_TERM_ITEM_ARGUMENT + 1] = 2}},
    };
    struct sim_model model = plain_model();
    struct sim_launch launch = {.kernel = "add",
                                .terms = {[SIM_TERM_FIXED] = 1,
                                          [SIM_TERM_BLOCK] = 4,
                                          [SIM_TERM_ITEM] = 256,
                                          [SIM_TERM_BYTE] = 1024,
                                          [SIM_TERM_ARGUMENT + 2] = 5,
                                          [SIM_TERM_ITEM_ARGUMENT + 1] = 256 * 7}};
    uint64_t ns = 0;
    EXPECT_FALSE(sim_kernel_ns(&model, &launch, &ns));
    model.costs = costs;
    model.cost_count = 2;
    ASSERT_TRUE(sim_kernel_ns(&model, &launch, &ns));
    EXPECT_UINT_EQ(ns, 100 + 64 + 512);
    launch.kernel = "loop";
    ASSERT_TRUE(sim_kernel_ns(&model, &launch, &ns));
    EXPECT_UINT_EQ(ns, 40 + 15 + 2 * 256 * 7);
    launch.terms[SIM_TERM_ITEM_ARGUMENT + 1] = -1e9;
    ASSERT_TRUE(sim_kernel_ns(&model, &launch, &ns));
    EXPECT_UINT_EQ(ns, 0);
    launch.terms[SIM_TERM_ITEM_ARGUMENT + 1] = 1e30;
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
    static const uint64_t rows[][2] = {{0, 50}, {3000, 1050}, {3001, 1051}};
    struct sim_model model = plain_model();
    model.copies[SIM_H2D] = (struct sim_link){.bytes_per_s = 3000000000, .latency_ns = 50};
    for (size_t i = 0; i < 3; i++) {
        struct program program = {.models = {&model}, .device_count = 1};
        add_step(&program, 0, SIM_H2D, rows[i][0]);
        run_engine(&program);
        EXPECT_UINT_EQ(makespan(&program), rows[i][1]);
    }
}

// Queues that end.

// A queue's number is given out again when its work is complete, and its points stay complete.
WEIR_TEST(Queues, EndWhenTheirWorkIsComplete)
{
    const struct sim_model model = plain_model();
    const struct sim_work kernel = {.kind = SIM_KERNEL, .duration_ns = 10};
    const struct sim_queue_params params = {0};
    struct sim_engine *engine = sim_engine_create(drop);
    struct sim_point points[2];
    uint32_t device;
    uint32_t queues[3];
    ASSERT_TRUE(engine && sim_engine_add_device(engine, &model, &device));
    ASSERT_TRUE(sim_engine_add_queue(engine, &params, &queues[0]));
    ASSERT_TRUE(program_submit(engine, queues[0], 0, &kernel, &points[0]));
    sim_engine_end_queue(engine, queues[0]);
    ASSERT_TRUE(sim_engine_add_queue(engine, &params, &queues[1]));
    EXPECT_TRUE(queues[1] != queues[0]);
    sim_engine_advance(engine, 10);
    EXPECT_TRUE(sim_engine_complete(engine, points[0]));
    ASSERT_TRUE(sim_engine_add_queue(engine, &params, &queues[2]));
    EXPECT_UINT_EQ(queues[2], queues[0]);
    ASSERT_TRUE(program_submit(engine, queues[2], 10, &kernel, &points[1]));
    EXPECT_TRUE(sim_engine_complete(engine, points[0]));
    EXPECT_FALSE(sim_engine_complete(engine, points[1]));
    EXPECT_TRUE(sim_engine_complete(engine, (struct sim_point){0, 0}));
    sim_engine_destroy(&engine);
    sim_engine_destroy(&engine);
}

// The engine's time grows in proportion to the operations, and not with the queues.

static const struct sim_link pcie = {.bytes_per_s = 55000000000,
                                     .both_bytes_per_s = 50000000000,
                                     .latency_ns = 1000};

static void must(bool done)
{
    if (!done)
        fprintf(stderr, "out of memory\n"), exit(1);
}

// Each queue in turn: upload, kernel, download, with a wait for another queue's last operation.
static void run(struct sim_engine *engine, uint32_t queue_count, int operations)
{
    static const enum sim_kind kinds[] = {SIM_H2D, SIM_MARK, SIM_KERNEL, SIM_MARK, SIM_D2H};
    struct sim_point last = {0};
    for (int i = 0; i < operations; i++) {
        const struct sim_work work = {
            .kind = kinds[i % 5],
            .bytes = 1 << 20,
            .duration_ns = 20000,
            .waits = &last,
            .wait_count = i % 5 == 1 && i % 3 == 0,
        };
        must(program_submit(engine, (uint32_t)(i / 5) % queue_count, (uint64_t)i * 9000, &work,
                            &last));
    }
    sim_engine_wait(engine, last);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Seconds of processor time for that many operations.
static double load_seconds(uint32_t queue_count, int operations)
{
    struct sim_model model = {.queues = SIM_STREAM_QUEUES,
                              .channels = 8,
                              .copy_engines = 2,
                              .kernels = 128,
                              .copies = {[SIM_H2D] = pcie, [SIM_D2H] = pcie}};
    struct sim_engine *engine = sim_engine_create(drop);
    uint32_t index;
    must(engine && sim_engine_add_device(engine, &model, &index));
    for (uint32_t i = 0; i < queue_count; i++)
        must(sim_engine_add_queue(engine, &(struct sim_queue_params){0}, &index));
    const double begin = seconds();
    run(engine, queue_count, operations);
    const double end = seconds();
    sim_engine_destroy(&engine);
    return end - begin;
}

enum {
    TRIES = 5,
    FEW = 20000,
    MANY = 8 * FEW,
};

// Processor time of an operation: the least of some tries, since other load only adds to it.
static double each(uint32_t queues, int operations)
{
    double least = 0;
    for (int i = 0; i < TRIES; i++) {
        const double seconds = load_seconds(queues, operations) / operations;
        least = i == 0 || seconds < least ? seconds : least;
    }
    return least;
}

// With a search of all operations that are kept it would be eight times as long, and of all queues 64 times.
WEIR_TEST(Growth, WithOperationsAndQueues)
{
    const double few = each(8, FEW);
    EXPECT_TRUE(few > 0);
    EXPECT_TRUE(each(8, MANY) < 3 * few);
    EXPECT_TRUE(each(512, FEW) < 8 * few);
}

// Random programs on random GPUs: the engine's times are those of the slow simulation, to the
// nanosecond.

static uint64_t seed;

static uint64_t up_to(uint64_t most)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % (most + 1);
}

static struct sim_model random_model(void)
{
    static const uint32_t channels[] = {0, 0, 1, 2, 3, 4, 8, 32};
    struct sim_model model = plain_model();
    model.queues = up_to(1) ? SIM_STREAM_QUEUES : SIM_ENGINE_QUEUES;
    model.late_signals = up_to(2) == 0;
    model.channels = channels[up_to(sizeof channels / sizeof *channels - 1)];
    model.copy_engines = 1 + (uint32_t)up_to(2);
    model.kernels = 1 + (uint32_t)up_to(3);
    model.host_call_ns = up_to(3);
    model.signal_ns = up_to(1) ? 0 : up_to(4);
    model.kernel_gap_ns = up_to(1) ? 0 : up_to(4);
    model.pull_latency_ns = up_to(1) ? 0 : up_to(4);
    model.copy_channels = up_to(1) ? 0 : (uint32_t)up_to(3);
    for (int kind = 0; kind < SIM_KINDS; kind++) {
        model.copies[kind].bytes_per_s = 400000000 + up_to(3) * 170000000;
        model.copies[kind].both_bytes_per_s = up_to(1) * (300000000 + up_to(3) * 70000000);
        model.copies[kind].latency_ns = up_to(2);
        if (up_to(1))
            model.copies[kind].both_latency_ns = model.copies[kind].latency_ns + up_to(2);
    }
    return model;
}

static void random_step(struct program *program)
{
    static const enum sim_kind kinds[] = {SIM_KERNEL, SIM_KERNEL,     SIM_KERNEL, SIM_H2D,
                                          SIM_H2D,    SIM_D2H,        SIM_D2H,    SIM_MARK,
                                          SIM_MARK,   SIM_D2D,        SIM_PEER,   SIM_PEER,
                                          SIM_HOST,   SIM_COLLECTIVE, SIM_PAUSE};
    const int i = add_step(program, (uint32_t)up_to(program->queue_count - 1),
                           kinds[up_to(sizeof kinds / sizeof *kinds - 1)], up_to(9));
    struct step *step = &program->steps[i];
    for (int wait = 0; wait < STEP_WAITS; wait++)
        if (i > 0 && up_to(8) == 0)
            step->waits[wait] = (int)up_to((uint64_t)i - 1);
    if (i > 0 && up_to(9) == 0)
        step->host_wait = (int)up_to((uint64_t)i - 1);
    step->places = (uint32_t)up_to(4);
    step->pulls = step->kind == SIM_PEER && program->device_count > 1 && up_to(1);
    step->first = up_to(5) == 0;
    step->node = up_to(3) == 0;
    step->yield_ns = up_to(1) ? 0 : up_to(4);
    step->host_ns = up_to(3) ? 0 : up_to(6);
}

static void random_program(struct program *program, struct sim_model models[2],
                           uint32_t most_queues, int most_steps)
{
    *program = (struct program){.device_count = 1 + (uint32_t)up_to(1)};
    for (int i = 0; i < 2; i++) {
        models[i] = random_model();
        program->models[i] = &models[i];
    }
    program->queue_count = 1 + (uint32_t)up_to(most_queues - 1);
    for (uint32_t i = 0; i < program->queue_count; i++)
        program->queues[i] = (struct sim_queue_params){
            .device = (uint32_t)up_to(program->device_count - 1),
            .priority = up_to(2) ? 0 : -(int32_t)up_to(3),
            .legacy = up_to(12) == 0,
        };
    const int steps = 1 + (int)up_to((uint64_t)most_steps - 1);
    for (int i = 0; i < steps; i++)
        random_step(program);
}

static bool differs(const struct program *a, const struct program *b)
{
    for (int i = 0; i < a->step_count; i++)
        if (a->slots[i].start_ns != b->slots[i].start_ns ||
            a->slots[i].end_ns != b->slots[i].end_ns)
            return true;
    return false;
}

static void expect_in_order_of_ends(const struct program *program)
{
    for (int i = 1; i < program->done_count; i++)
        EXPECT_TRUE(program->slots[program->done[i - 1]].end_ns <=
                    program->slots[program->done[i]].end_ns);
}

static void compare(uint64_t programs, uint32_t most_queues, int most_steps)
{
    static struct program engine;
    static struct program oracle;
    struct sim_model models[2];
    for (uint64_t i = 1; i <= programs; i++) {
        seed = i;
        random_program(&engine, models, most_queues, most_steps);
        oracle = engine;
        run_engine(&engine);
        run_oracle(&oracle);
        expect_in_order_of_ends(&engine);
        if (differs(&engine, &oracle))
            WEIR_FAIL("program %llu differs", (unsigned long long)i);
    }
}

static uint64_t programs_or(uint64_t otherwise)
{
    const char *count = getenv("SIM_PROGRAMS");
    return count ? strtoull(count, NULL, 10) : otherwise;
}

WEIR_TEST(Oracle, RandomPrograms)
{
    compare(programs_or(1500), 7, 51);
}

// The order of the calls does not matter, only that of the times.
WEIR_TEST(Oracle, PostedInAnotherOrder)
{
    static struct program engine;
    static struct program posted;
    struct sim_model models[2];
    for (uint64_t i = 1; i <= programs_or(700); i++) {
        seed = i;
        random_program(&engine, models, 7, 51);
        for (uint32_t queue = 0; queue < engine.queue_count; queue++)
            engine.queues[queue].legacy = false;
        for (int step = 0; step < engine.step_count; step++) {
            engine.steps[step].host_wait = -1;
            engine.steps[step].host_ns++; // no two at one time
        }
        posted = engine;
        run_engine(&engine);
        run_engine_posted(&posted, i);
        expect_in_order_of_ends(&posted);
        if (differs(&engine, &posted))
            WEIR_FAIL("program %llu differs", (unsigned long long)i);
    }
}

// More queues than the most channels that a context has.
WEIR_TEST(Oracle, ManyQueues)
{
    compare(programs_or(150), QUEUES, 130);
}
