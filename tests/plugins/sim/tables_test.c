// What NVIDIA and others measured or explained of overlap: chunked jobs in three orders, kernels of
// several queues, and the milliseconds of three Teslas; on the cards of conf/gpus as they are delivered.
#include <stdio.h>

#include "plugins/sim/model.h"
#include "tests/plugins/sim/program.h"
#include "tests/support/test.h"

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

// A byte takes a nanosecond, and nothing else any time; the engines are the file's.
static struct sim_model units_of(const char *name)
{
    return card(name, "h2d_both_gb_per_s=0, d2h_both_gb_per_s=0, h2d_gb_per_s=1, d2h_gb_per_s=1, "
                      "copy_both_latency_ns=0, copy_latency_ns=0, signal_ns=0, kernel_gap_ns=0");
}

// H, K and D of chunk `i` are steps 3i, 3i + 1 and 3i + 2 of `at`.
struct job {
    struct program program;
    int at[3 * 64];
};

static void add_part(struct job *job, const uint64_t lengths[3], int i, int part, bool one_queue)
{
    static const enum sim_kind kinds[3] = {SIM_H2D, SIM_KERNEL, SIM_D2H};
    job->at[3 * i + part] =
        add_step(&job->program, one_queue ? 0 : (uint32_t)i, kinds[part], lengths[part]);
    job->program.steps[job->at[3 * i + part]].places = UINT32_MAX; // the kernel fills the GPU
}

static void add_staggered(struct job *job, int chunks, const uint64_t lengths[3])
{
    add_part(job, lengths, 0, 0, false);
    for (int i = 0; i < chunks; i++) {
        add_part(job, lengths, i, 1, false);
        if (i + 1 < chunks)
            add_part(job, lengths, i + 1, 0, false);
        add_part(job, lengths, i, 2, false);
    }
}

static void add_job(struct job *job, enum order order, int chunks, const uint64_t lengths[3])
{
    if (order == STAGGERED)
        add_staggered(job, chunks, lengths);
    else if (order == BREADTH_FIRST)
        for (int n = 0; n < 3 * chunks; n++)
            add_part(job, lengths, n % chunks, n / chunks, false);
    else
        for (int n = 0; n < 3 * chunks; n++)
            add_part(job, lengths, n / 3, n % 3, order == SEQUENTIAL);
}

static struct job run_job(const struct sim_model *model, enum order order, int chunks,
                          const uint64_t lengths[3])
{
    struct job job = {.program = {.models = {model}, .device_count = 1}};
    add_job(&job, order, chunks, lengths);
    run_engine(&job.program);
    return job;
}

static uint64_t units(const struct sim_model *model, enum order order, int chunks)
{
    static const uint64_t lengths[3] = {UNIT, UNIT, UNIT};
    const struct job job = run_job(model, order, chunks, lengths);
    EXPECT_UINT_EQ(makespan(&job.program) % UNIT, 0);
    return makespan(&job.program) / UNIT;
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
        struct sim_model model = units_of(rows[i].card);
        model.late_signals = model.late_signals && !rows[i].early;
        weir_test_note("%s, row %zu", rows[i].card, i);
        EXPECT_UINT_EQ(units(&model, SEQUENTIAL, 4), 12);
        for (size_t k = 0; k < 6; k++)
            if (rows[i].units[k])
                EXPECT_UINT_EQ(units(&model, rows[i].order, chunks[k]), rows[i].units[k]);
    }
}

// Slots.

static void expect_slot(const struct job *job, int chunk, int part, uint64_t start)
{
    const struct slot *slot = &job->program.slots[job->at[3 * chunk + part]];
    EXPECT_UINT_EQ(slot->start_ns, start * UNIT);
    EXPECT_UINT_EQ(slot->end_ns, (start + 1) * UNIT);
}

static void expect_slots(const struct sim_model *model, enum order order, const uint64_t starts[12])
{
    static const uint64_t lengths[3] = {UNIT, UNIT, UNIT};
    const struct job job = run_job(model, order, 4, lengths);
    for (int i = 0; i < 12; i++)
        expect_slot(&job, i / 3, i % 3, starts[i]);
}

WEIR_TEST(Tables, Slots)
{
    static const uint64_t one_by_one[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    static const uint64_t c1060_breadth[12] = {0, 1, 4, 1, 2, 5, 2, 3, 6, 3, 4, 7};
    static const uint64_t overlapped[12] = {0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 5};
    static const uint64_t c2050_breadth[12] = {0, 1, 5, 1, 2, 6, 2, 3, 7, 3, 4, 8};
    struct sim_model model = units_of("c1060");
    expect_slots(&model, DEPTH_FIRST, one_by_one);
    expect_slots(&model, BREADTH_FIRST, c1060_breadth);
    model = units_of("c2050");
    expect_slots(&model, DEPTH_FIRST, overlapped);
    expect_slots(&model, BREADTH_FIRST, c2050_breadth);
    model = units_of("k20c");
    expect_slots(&model, DEPTH_FIRST, overlapped);
    expect_slots(&model, BREADTH_FIRST, overlapped);
}

// Kernels of several queues: simpleHyperQ.

static uint64_t pairs_of_kernels(const struct sim_model *model)
{
    struct program program = {.models = {model}, .device_count = 1};
    for (uint32_t queue = 0; queue < 8; queue++) {
        add_step(&program, queue, SIM_KERNEL, UNIT);
        add_step(&program, queue, SIM_KERNEL, UNIT);
    }
    run_engine(&program);
    return makespan(&program) / UNIT;
}

WEIR_TEST(Tables, HyperQ)
{
    static const struct {
        const char *name;
        uint64_t units;
    } cards[] = {{"c1060", 16}, {"c2050", 9},    {"geforce_fermi", 9},
                 {"k20c", 2},   {"tegra_x2", 2}, {"h200", 2}};
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
        const struct sim_model model = units_of(cards[i].name);
        EXPECT_UINT_EQ(pairs_of_kernels(&model), cards[i].units);
    }
}

// Nine queues of four kernels each.
static uint64_t nine_queues(const char *name, const char *changes)
{
    struct sim_model model = card(name, changes);
    struct program program = {.models = {&model}, .device_count = 1};
    for (uint32_t i = 0; i < 36; i++)
        add_step(&program, i / 4, SIM_KERNEL, UNIT);
    run_engine(&program);
    return makespan(&program) / UNIT;
}

WEIR_TEST(Tables, Channels)
{
    EXPECT_UINT_EQ(nine_queues("k20c", "channels=8"), 7);
    EXPECT_UINT_EQ(nine_queues("k20c", "channels=9"), 4);
    EXPECT_UINT_EQ(nine_queues("k20c", "channels=0"), 4);
    EXPECT_UINT_EQ(nine_queues("k20c", ""), 4); // it has 32
    EXPECT_UINT_EQ(nine_queues("tegra_x2", ""), 7);
    EXPECT_UINT_EQ(nine_queues("tegra_x2", "channels=9"), 4);
}

// Breadth-first on more queues than channels, a kernel waits for the upload of another queue.
WEIR_TEST(Tables, ChunksOnSharedChannels)
{
    struct sim_model model = units_of("k20c");
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
    run_engine(&program);
    return makespan(&program) / UNIT;
}

WEIR_TEST(Tables, OclCopyComputeOverlap)
{
    struct sim_model model = units_of("c1060");
    EXPECT_UINT_EQ(cycles(&model, 1), 7);
    model = units_of("tegra_x2");
    EXPECT_UINT_EQ(cycles(&model, 1), 7);
    model = units_of("k20c");
    EXPECT_UINT_EQ(cycles(&model, 1), 7);
    EXPECT_UINT_EQ(cycles(&model, 10), 52);
    EXPECT_UINT_EQ(cycles(&model, 100), 502);
}

// Milliseconds.

// A chunk of the published program is 4 MiB, which the file's bandwidths make as long as fits its
// milliseconds; the kernel is what is left of them.
#define CHUNK (UINT64_C(4) << 20)

// What the article measured for a copy of a chunk.
WEIR_TEST(Tables, Copies)
{
    static const struct {
        const char *card;
        enum sim_kind kind;
        double ns;
    } copies[] = {{"c1060", SIM_H2D, 1105735}, {"c1060", SIM_D2H, 1105735},
                  {"c2050", SIM_H2D, 795509},  {"c2050", SIM_D2H, 620800},
                  {"k20c", SIM_H2D, 732000},   {"k20c", SIM_D2H, 732000}};
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        const struct sim_model model = card(copies[i].card, "");
        struct program program = {.models = {&model}, .device_count = 1};
        add_step(&program, 0, copies[i].kind, CHUNK);
        run_engine(&program);
        EXPECT_NEAR((double)makespan(&program), copies[i].ns, 2);
    }
}

struct measured {
    const char *card;
    uint64_t kernel_ns;
    uint64_t whole_ns[3]; // measured: sequential, depth-first, breadth-first
    uint64_t model_ns[3]; // what the fitted chunks give
};

// The C1060's depth-first is slower than its sequential version, which no model of engines shows.
static void expect_measured(const struct measured *row, bool depth_too)
{
    static const enum order orders[3] = {SEQUENTIAL, DEPTH_FIRST, BREADTH_FIRST};
    const struct sim_model model = card(row->card, "");
    const uint64_t lengths[3] = {CHUNK, row->kernel_ns, CHUNK};
    for (int i = 0; i < 3; i++) {
        const struct job job = run_job(&model, orders[i], 4, lengths);
        const double got = (double)makespan(&job.program);
        EXPECT_NEAR(got, (double)row->model_ns[i], 500);
        if (i != 1 || depth_too)
            EXPECT_NEAR(got, (double)row->whole_ns[i], 0.002 * (double)row->whole_ns[i]);
    }
}

WEIR_TEST(Tables, Milliseconds)
{
    const struct measured c1060 = {
        "c1060",
        1019483,
        {12923810, 13636900, 8845880},
        {12924000, 12924000, 8846000},
    };
    const struct measured c2050 = {
        "c2050",
        1079819,
        {9984512, 5735584, 7597984},
        {9985000, 5736000, 7598000},
    };
    const struct measured k20c = {
        "k20c",
        311400,
        {7101760, 3974144, 3967616},
        {7102000, 3971000, 3971000},
    };
    expect_measured(&c1060, false);
    expect_measured(&c2050, true);
    expect_measured(&k20c, true);
}
