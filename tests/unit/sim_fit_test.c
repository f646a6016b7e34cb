// The launches of traces, and the costs that are fitted to them.
#include <math.h>

#include "cli/common/own.h"
#include "cli/sim/fit.h"
#include "tests/support/test.h"

enum {
    LAUNCHES = 4096
};

static size_t added;
static struct made {
    struct weir_trace_queue queues[3]; // two of device 0, one of device 1
    struct weir_trace_operation operations[LAUNCHES];
    struct weir_trace trace;
    uint64_t now_ns;
} made;

static void begin(void)
{
    made = (struct made){.queues = {{.device = 0}, {.device = 0}, {.device = 1}}};
    made.trace.queues = made.queues;
    made.trace.queue_count = 3;
    made.trace.operations = made.operations;
}

static struct weir_trace_operation *launch(const char *name, uint32_t blocks, uint32_t block,
                                           double ns)
{
    struct weir_trace_operation *operation = &made.operations[made.trace.operation_count++];
    *operation = (struct weir_trace_operation){
        .kind = WEIR_TRACE_LAUNCH,
        .engine = WEIR_ENGINE_KERNELS,
        .name = name,
        .grid = {blocks, 1, 1},
        .block = {block, 1, 1},
        .timed = true,
        .start_ns = made.now_ns,
        .end_ns = made.now_ns + (uint64_t)(ns + 0.5),
    };
    made.now_ns = operation->end_ns + 10;
    return operation;
}

static struct sim_fit fit_first(void)
{
    struct sim_kernels kernels = {0};
    struct sim_fit fit = {0};
    added = sim_kernels_add(&kernels, &made.trace);
    EXPECT_INT_EQ(kernels.count, 1);
    if (kernels.count == 1)
        sim_fit(&kernels.items[0], &fit);
    cli_destroy_owned();
    return fit;
}

WEIR_TEST(SimFit, TellsItemsFromBlocks)
{
    begin();
    for (uint32_t i = 1; i <= 20; i++) {
        const uint32_t block = 32u << i % 4;
        launch("scale", i * 1000, block, 5000 + 70 * 1000.0 * i + 0.25 * 1000 * i * block);
    }
    const struct sim_fit fit = fit_first();
    EXPECT_NEAR(fit.factors[SIM_TERM_FIXED], 5000, 5);
    EXPECT_NEAR(fit.factors[SIM_TERM_ITEM], 0.25, 0.0003);
    EXPECT_NEAR(fit.factors[SIM_TERM_BLOCK], 70, 0.07);
    EXPECT_INT_EQ(fit.sizes, 20);
    EXPECT_TRUE(fit.worst < 1e-4);
}

// Launches of a kernel whose time depends on what is not in its grid.
static struct sim_fit fit_arguments(double fixed, double byte, double argument,
                                    double item_argument)
{
    struct weir_trace_scalar scalars[60][3];
    begin();
    for (uint32_t i = 0; i < 60; i++) {
        const uint32_t blocks = 10 + i % 7;
        const double bytes = 1000.0 * (1 + i % 5);
        const double n = 1 + i % 11;
        struct weir_trace_operation *operation =
            launch("product", blocks, 64,
                   fixed + byte * bytes + argument * n + item_argument * n * blocks * 64);
        scalars[i][0] = (struct weir_trace_scalar){4, -(double)i}; // negative: of no use
        scalars[i][1] = (struct weir_trace_scalar){20, n};         // beyond what a model has
        scalars[i][2] = (struct weir_trace_scalar){9, n};
        operation->argument_bytes = (uint64_t)bytes;
        operation->scalars = scalars[i];
        operation->scalar_count = 3;
    }
    return fit_first();
}

WEIR_TEST(SimFit, FindsBytesAndArguments)
{
    // Argument 9 is the second of those that are kept.
    const struct sim_fit sum = fit_arguments(100000, 200, 5000, 0);
    EXPECT_NEAR(sum.factors[SIM_TERM_FIXED], 100000, 10);
    EXPECT_NEAR(sum.factors[SIM_TERM_BYTE], 200, 0.01);
    EXPECT_NEAR(sum.factors[SIM_TERM_ARGUMENT + 1], 5000, 1);
    EXPECT_DOUBLE_EQ(sum.factors[SIM_TERM_ITEM], 0);
    const struct sim_fit product = fit_arguments(100000, 0, 0, 50);
    EXPECT_NEAR(product.factors[SIM_TERM_FIXED], 100000, 10);
    EXPECT_NEAR(product.factors[SIM_TERM_ITEM_ARGUMENT + 1], 50, 0.01);
    EXPECT_DOUBLE_EQ(product.factors[SIM_TERM_ARGUMENT + 1], 0);
    EXPECT_TRUE(product.worst < 1e-4);
}

// Work-items times a scalar that never changes are work-items.
WEIR_TEST(SimFit, OfTermsThatCannotBeToldApartTheFirstIsUsed)
{
    static struct weir_trace_scalar scalars[4000][4];
    begin();
    for (uint32_t i = 0; i < 4000; i++) {
        const uint64_t step = 50 * (uint64_t)i;
        const uint32_t blocks = 1 + (uint32_t)(step * 7919 % 1000);
        const double n = (double)(step * 104729 % 4096);
        struct weir_trace_operation *operation =
            launch("product", blocks, 64, 5000 + blocks * 64.0 + 10 * n);
        scalars[i][0] = (struct weir_trace_scalar){1, n};
        scalars[i][1] = (struct weir_trace_scalar){2, (double)step};
        scalars[i][2] = (struct weir_trace_scalar){3, 3};
        scalars[i][3] = (struct weir_trace_scalar){4, (double)(step % 13)};
        operation->argument_bytes = (uint64_t)blocks * 256;
        operation->scalars = scalars[i];
        operation->scalar_count = 4;
    }
    const struct sim_fit fit = fit_first();
    EXPECT_NEAR(fit.factors[SIM_TERM_FIXED], 5000, 1);
    EXPECT_NEAR(fit.factors[SIM_TERM_ITEM], 1, 1e-4);
    EXPECT_NEAR(fit.factors[SIM_TERM_ARGUMENT], 10, 1e-2);
}

// One size says nothing about others: its cost is fixed, whatever its terms are.
WEIR_TEST(SimFit, OneSizeIsFixed)
{
    begin();
    for (uint32_t i = 0; i < 9; i++)
        launch("scale", 640, 256, 1000 + 10 * (double)i);
    const struct sim_fit fit = fit_first();
    EXPECT_NEAR(fit.factors[SIM_TERM_FIXED], 1040, 1e-6);
    EXPECT_DOUBLE_EQ(fit.factors[SIM_TERM_ITEM], 0);
    EXPECT_DOUBLE_EQ(fit.factors[SIM_TERM_BLOCK], 0);
    EXPECT_INT_EQ(fit.sizes, 1);
    EXPECT_NEAR(fit.median, 20.0 / 1020, 1e-3);
    EXPECT_NEAR(fit.worst, 40.0 / 1000, 1e-9);
}

WEIR_TEST(SimFit, OfTwoMediansTheLowerCounts)
{
    begin();
    launch("scale", 640, 256, 5000);
    launch("scale", 640, 256, 1000);
    const struct sim_fit fit = fit_first();
    EXPECT_NEAR(fit.factors[SIM_TERM_FIXED], 1000, 1e-6);
    EXPECT_NEAR(fit.median, 0.4, 1e-9);
    EXPECT_NEAR(fit.worst, 0.8, 1e-9);
}

// Times that are on no line.
static struct sim_fit fit_often(uint32_t first_count)
{
    begin();
    for (uint32_t i = 0; i < first_count; i++)
        launch("scale", 100, 64, 4000);
    launch("scale", 400, 64, 9500);
    launch("scale", 1600, 64, 36000);
    launch("scale", 6400, 64, 130000);
    return fit_first();
}

WEIR_TEST(SimFit, ASizeCountsOnce)
{
    const struct sim_fit once = fit_often(1);
    const struct sim_fit often = fit_often(50);
    EXPECT_TRUE(once.factors[SIM_TERM_ITEM] > 0);
    for (int term = 0; term < SIM_TERM_COUNT; term++)
        EXPECT_NEAR(often.factors[term], once.factors[term], 1e-9);
}

// The first launch of a kernel is often slow.
WEIR_TEST(SimFit, ASlowLaunchChangesNothing)
{
    begin();
    launch("scale", 100, 64, 1e9);
    for (uint32_t i = 0; i < 60; i++)
        launch("scale", 100 * (1 + i % 6), 64, 3000 + 10 * 100.0 * (1 + i % 6));
    const struct sim_fit fit = fit_first();
    EXPECT_NEAR(fit.factors[SIM_TERM_FIXED], 3000, 1);
    EXPECT_NEAR(fit.factors[SIM_TERM_ITEM], 10.0 / 64, 1e-4);
    EXPECT_TRUE(fit.median < 1e-6);
    EXPECT_TRUE(fit.worst > 0.9);
}

// Least squares without the bound would make the fixed part negative.
WEIR_TEST(SimFit, FactorsAreNotNegative)
{
    begin();
    for (uint32_t i = 1; i <= 10; i++)
        launch("square", 10 * i, 32, 50.0 * i * i);
    const struct sim_fit fit = fit_first();
    EXPECT_DOUBLE_EQ(fit.factors[SIM_TERM_FIXED], 0);
    EXPECT_TRUE(fit.factors[SIM_TERM_ITEM] > 0 || fit.factors[SIM_TERM_BLOCK] > 0);
    EXPECT_TRUE(fit.worst > 0.3);
}

WEIR_TEST(SimFit, NoiseIsNoTerm)
{
    uint32_t state = 12345;
    begin();
    for (uint32_t i = 1; i <= 200; i++) {
        state = state * 1664525u + 1013904223u;
        const double noise = (double)(state >> 16) / 65535 - 0.5;
        launch("scale", i, 32u << i % 5, 10000 * (1 + 0.02 * noise));
    }
    const struct sim_fit fit = fit_first();
    EXPECT_NEAR(fit.factors[SIM_TERM_FIXED], 10000, 30);
    EXPECT_DOUBLE_EQ(fit.factors[SIM_TERM_ITEM], 0);
    EXPECT_DOUBLE_EQ(fit.factors[SIM_TERM_BLOCK], 0);
    EXPECT_TRUE(fit.worst < 0.015);
}

// Clocks that are too coarse tell 0.
WEIR_TEST(SimFit, TimesOfZeroAreFitted)
{
    begin();
    launch("none", 1, 1, 0);
    launch("none", 2, 1, 0);
    const struct sim_fit fit = fit_first();
    EXPECT_TRUE(fit.factors[SIM_TERM_FIXED] <= 1);
    EXPECT_TRUE(isfinite(fit.worst));
}

WEIR_TEST(SimLaunches, KernelsAreByName)
{
    struct sim_kernels kernels = {0};
    begin();
    launch("sum", 1, 1, 10);
    launch("add", 1, 1, 10);
    launch("sum", 1, 1, 10);
    launch("mul", 1, 1, 10)->timed = false;
    launch("copy", 1, 1, 10)->engine = WEIR_ENGINE_TO_HOST;
    launch("graph", 1, 1, 10)->kind = WEIR_TRACE_GRAPH;
    added = sim_kernels_add(&kernels, &made.trace);
    EXPECT_INT_EQ(added, 3);
    added = sim_kernels_add(&kernels, &made.trace);
    ASSERT_INT_EQ(kernels.count, 2);
    EXPECT_STR_EQ(kernels.items[0].name, "add");
    EXPECT_INT_EQ(kernels.items[0].count, 2);
    EXPECT_STR_EQ(kernels.items[1].name, "sum");
    EXPECT_INT_EQ(kernels.items[1].count, 4);
    cli_destroy_owned();
}

// Moves a launch to another queue and another time.
static void move(struct weir_trace_operation *operation, uint32_t queue, uint64_t start_ns)
{
    operation->queue_index = queue;
    operation->end_ns += start_ns - operation->start_ns;
    operation->start_ns = start_ns;
}

WEIR_TEST(SimLaunches, ThoseBesideOthersAreLeftOut)
{
    struct sim_kernels kernels = {0};
    begin();
    move(launch("scale", 1, 1, 1000), 0, 0);
    move(launch("scale", 1, 1, 10), 1, 100);  // inside the first
    move(launch("scale", 1, 1, 10), 1, 500);  // likewise
    move(launch("scale", 1, 1, 10), 1, 1000); // begins when the first ends
    move(launch("scale", 1, 1, 10), 2, 700);  // on another device
    move(launch("g", 1, 1, 30), 1, 2000);
    made.operations[5].kind = WEIR_TRACE_GRAPH;
    move(launch("scale", 1, 1, 10), 0, 2010);
    added = sim_kernels_add(&kernels, &made.trace);
    ASSERT_INT_EQ(kernels.count, 1);
    EXPECT_INT_EQ(kernels.items[0].count, 2);
    EXPECT_INT_EQ(kernels.items[0].beside, 4);
    cli_destroy_owned();
}

WEIR_TEST(SimLaunches, ThoseWithoutAStartAreLeftOut)
{
    struct sim_kernels kernels = {0};
    begin();
    launch("scale", 1, 1, 10)->start_is_earliest = true;
    launch("scale", 1, 1, 10);
    added = sim_kernels_add(&kernels, &made.trace);
    ASSERT_INT_EQ(kernels.count, 1);
    EXPECT_INT_EQ(kernels.items[0].count, 1);
    EXPECT_INT_EQ(kernels.items[0].inexact, 1);
    cli_destroy_owned();
}
