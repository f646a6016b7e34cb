// The costs that are fitted to launches; tests/cli/sim_test.sh has which launches count.
#include <math.h>

#include "cli/common/own.h"
#include "cli/sim/fit.h"
#include "tests/support/test.h"

enum {
    LAUNCHES = 4096
};

static size_t added;
static struct made {
    struct weir_trace_queue queue;
    struct weir_trace_operation operations[LAUNCHES];
    struct weir_trace trace;
    uint64_t now_ns;
} made;

static void begin(void)
{
    made = (struct made){.queue = {.device = 0}};
    made.trace.queues = &made.queue;
    made.trace.queue_count = 1;
    made.trace.operations = made.operations;
}

// Without launches before.
#define FIT_TEST(name) WEIR_TEST_BETWEEN(SimFit, name, begin(), (void)0)

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

FIT_TEST(TellsItemsFromBlocks)
{
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
FIT_TEST(OfTermsThatCannotBeToldApartTheFirstIsUsed)
{
    static struct weir_trace_scalar scalars[4000][4];
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
FIT_TEST(ASlowLaunchChangesNothing)
{
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
FIT_TEST(FactorsAreNotNegative)
{
    for (uint32_t i = 1; i <= 10; i++)
        launch("square", 10 * i, 32, 50.0 * i * i);
    const struct sim_fit fit = fit_first();
    EXPECT_DOUBLE_EQ(fit.factors[SIM_TERM_FIXED], 0);
    EXPECT_TRUE(fit.factors[SIM_TERM_ITEM] > 0 || fit.factors[SIM_TERM_BLOCK] > 0);
    EXPECT_TRUE(fit.worst > 0.3);
}

FIT_TEST(NoiseIsNoTerm)
{
    uint32_t state = 12345;
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
FIT_TEST(TimesOfZeroAreFitted)
{
    launch("none", 1, 1, 0);
    launch("none", 2, 1, 0);
    const struct sim_fit fit = fit_first();
    EXPECT_TRUE(fit.factors[SIM_TERM_FIXED] <= 1);
    EXPECT_TRUE(isfinite(fit.worst));
}
