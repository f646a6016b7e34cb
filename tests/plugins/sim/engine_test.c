// The engine: the times of random programs, and tables of programs on the cards that are delivered.
#include <stdio.h>
#include <stdlib.h>

#include "plugins/sim/model.h"
#include "tests/plugins/sim/program.h"
#include "tests/support/test.h"

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

// More queues than the most channels that a context has.
WEIR_TEST(Oracle, ManyQueues)
{
    compare(programs_or(150), QUEUES, 130);
}

// What NVIDIA and others explained of overlap: chunked jobs in three orders, and kernels of several queues, on the
// cards of conf/gpus as they are delivered. The milliseconds of three Teslas: tests/cli/sim_seeds_test.sh.

enum order {
    SEQUENTIAL,
    DEPTH_FIRST,
    BREADTH_FIRST,
    STAGGERED, // K_i, H_i+1, D_i
};

enum {
    UNIT = 1000 // nanoseconds
};

// The GPU of conf/gpus, read from the file that is delivered, with keys changed. Without its name.
static struct sim_model card(const char *name, const char *changes)
{
    char path[64];
    char message[512] = "";
    struct sim_gpu *gpu = NULL;
    struct sim_model model = plain_model();
    snprintf(path, sizeof path, "conf/gpus/%s.ini", name);
    if (sim_gpu_open(weir_test_runfile(path), &gpu, message, sizeof message) &&
        sim_gpu_change(gpu, changes, message, sizeof message))
        model = gpu->model;
    EXPECT_STR_EQ(message, "");
    EXPECT_UINT_EQ(model.cost_count, 0);
    sim_gpu_destroy(&gpu);
    model.name = NULL;
    model.costs = NULL;
    return model;
}

// A byte takes a nanosecond, and nothing else any time; the engines are the file's, but for more changes.
static struct sim_model units_of(const char *name, const char *more)
{
    char changes[256];
    snprintf(changes, sizeof changes,
             "h2d_both_gb_per_s=0, d2h_both_gb_per_s=0, h2d_gb_per_s=1, d2h_gb_per_s=1, "
             "copy_both_latency_ns=0, copy_latency_ns=0, signal_ns=0, kernel_gap_ns=0%s",
             more);
    return card(name, changes);
}

static void add_part(struct program *program, int chunk, int part, bool one_queue)
{
    static const enum sim_kind kinds[3] = {SIM_H2D, SIM_KERNEL, SIM_D2H};
    const int step = add_step(program, one_queue ? 0 : (uint32_t)chunk, kinds[part], UNIT);
    program->steps[step].places = UINT32_MAX; // the kernel fills the GPU
}

static void add_staggered(struct program *program, int chunks)
{
    add_part(program, 0, 0, false);
    for (int i = 0; i < chunks; i++) {
        add_part(program, i, 1, false);
        if (i + 1 < chunks)
            add_part(program, i + 1, 0, false);
        add_part(program, i, 2, false);
    }
}

static void add_job(struct program *program, enum order order, int chunks)
{
    if (order == STAGGERED)
        add_staggered(program, chunks);
    else if (order == BREADTH_FIRST)
        for (int n = 0; n < 3 * chunks; n++)
            add_part(program, n % chunks, n / chunks, false);
    else
        for (int n = 0; n < 3 * chunks; n++)
            add_part(program, n / 3, n % 3, order == SEQUENTIAL);
}

// How long the program takes.
static uint64_t units_of_program(struct program *program)
{
    run_engine(program);
    EXPECT_UINT_EQ(makespan(program) % UNIT, 0);
    return makespan(program) / UNIT;
}

static uint64_t units(const struct sim_model *model, enum order order, int chunks)
{
    struct program program = {.models = {model}, .device_count = 1};
    add_job(&program, order, chunks);
    return units_of_program(&program);
}

// Jobs of so many chunks, in units; 0: not told.
WEIR_TEST(Tables, Chunks)
{
    static const int chunks[] = {1, 2, 3, 4, 8, 16};
    static const struct {
        const char *card;
        bool early; // without late signals
        enum order order;
        uint64_t units[6];
    } rows[] = {
        {"c1060", false, DEPTH_FIRST, {3, 6, 9, 12, 24, 48}},
        {"c1060", false, BREADTH_FIRST, {3, 4, 6, 8, 16, 32}},
        {"c1060", false, STAGGERED, {[3] = 8}},
        {"c2050", false, DEPTH_FIRST, {3, 4, 5, 6, 10, 18}},
        {"c2050", false, BREADTH_FIRST, {3, 5, 7, 9, 17, 33}},
        {"c2050", false, STAGGERED, {[3] = 6}},
        {"c2050", true, DEPTH_FIRST, {[3] = 6}},
        {"c2050", true, BREADTH_FIRST, {[3] = 6}},
        {"c2050", true, STAGGERED, {[3] = 6}},
        {"geforce_fermi", false, DEPTH_FIRST, {[3] = 12}},
        {"geforce_fermi", false, BREADTH_FIRST, {[3] = 9}},
        {"geforce_fermi", false, STAGGERED, {[3] = 8}},
        {"k20c", false, DEPTH_FIRST, {3, 4, 5, 6, 10, 18}},
        {"k20c", false, BREADTH_FIRST, {3, 4, 5, 6, 10, 18}},
        {"k20c", false, STAGGERED, {[3] = 6}},
        {"h200", false, DEPTH_FIRST, {3, 4, 5, 6, 10, 18}},
        {"h200", false, BREADTH_FIRST, {3, 4, 5, 6, 10, 18}},
        {"h200", false, STAGGERED, {[3] = 6}},
        {"tegra_x2", false, DEPTH_FIRST, {[3] = 8}},
        {"tegra_x2", false, BREADTH_FIRST, {[3] = 8}},
        {"tegra_x2", false, STAGGERED, {[3] = 8}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sim_model model = units_of(rows[i].card, "");
        model.late_signals = model.late_signals && !rows[i].early;
        weir_test_note("%s, row %zu", rows[i].card, i);
        EXPECT_UINT_EQ(units(&model, SEQUENTIAL, 4), 12);
        for (size_t k = 0; k < 6; k++)
            if (rows[i].units[k])
                EXPECT_UINT_EQ(units(&model, rows[i].order, chunks[k]), rows[i].units[k]);
    }
}

// Queues of so many kernels each, which are submitted queue by queue: simpleHyperQ, and more queues than channels.
static uint64_t kernels_of_queues(const struct sim_model *model, uint32_t queues, uint32_t each)
{
    struct program program = {.models = {model}, .device_count = 1};
    for (uint32_t i = 0; i < queues * each; i++)
        add_step(&program, i / each, SIM_KERNEL, UNIT);
    return units_of_program(&program);
}

WEIR_TEST(Tables, HyperQAndChannels)
{
    static const struct {
        const char *card, *more;
        uint32_t queues, each;
        uint64_t units;
    } rows[] = {
        {"c1060", "", 8, 2, 16},           {"c2050", "", 8, 2, 9},
        {"geforce_fermi", "", 8, 2, 9},    {"k20c", "", 8, 2, 2},
        {"tegra_x2", "", 8, 2, 2},         {"h200", "", 8, 2, 2},
        {"k20c", ", channels=8", 9, 4, 7}, {"k20c", ", channels=9", 9, 4, 4},
        {"k20c", ", channels=0", 9, 4, 4}, {"k20c", "", 9, 4, 4}, // it has 32
        {"tegra_x2", "", 9, 4, 7},         {"tegra_x2", ", channels=9", 9, 4, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct sim_model model = units_of(rows[i].card, rows[i].more);
        weir_test_note("%s%s", rows[i].card, rows[i].more);
        EXPECT_UINT_EQ(kernels_of_queues(&model, rows[i].queues, rows[i].each), rows[i].units);
    }
}

// Breadth-first on more queues than channels, a kernel waits for the upload of another queue.
WEIR_TEST(Tables, ChunksOnSharedChannels)
{
    struct sim_model model = units_of("k20c", "");
    EXPECT_UINT_EQ(model.channels, 32);
    EXPECT_UINT_EQ(units(&model, BREADTH_FIRST, 32), 34);
    model.channels = 8; // CUDA's default
    EXPECT_UINT_EQ(units(&model, BREADTH_FIRST, 8), 10);
    EXPECT_UINT_EQ(units(&model, BREADTH_FIRST, 16), 28);
    EXPECT_UINT_EQ(units(&model, DEPTH_FIRST, 16), 18);
}

// oclCopyComputeOverlap: two queues, each with an upload, a kernel and a download of half the
// length; a cycle is one of each in both queues, and the host waits for neither.
static uint64_t cycles(const struct sim_model *model, int count)
{
    static struct program program;
    program = (struct program){.models = {model}, .device_count = 1};
    for (int i = 0; i < count; i++) {
        for (uint32_t queue = 0; queue < 2; queue++)
            add_step(&program, queue, SIM_H2D, 2 * UNIT);
        for (uint32_t queue = 0; queue < 2; queue++)
            program.steps[add_step(&program, queue, SIM_KERNEL, 2 * UNIT)].places = UINT32_MAX;
        for (uint32_t queue = 0; queue < 2; queue++)
            add_step(&program, queue, SIM_D2H, UNIT);
    }
    return units_of_program(&program);
}

WEIR_TEST(Tables, OclCopyComputeOverlap)
{
    static const struct {
        const char *card;
        int cycles;
        uint64_t units;
    } rows[] = {
        {"c1060", 1, 7}, {"tegra_x2", 1, 7}, {"k20c", 1, 7}, {"k20c", 10, 52}, {"k20c", 100, 502}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct sim_model model = units_of(rows[i].card, "");
        EXPECT_UINT_EQ(cycles(&model, rows[i].cycles), rows[i].units);
    }
}
