// Models of GPUs: what files mean, and what is wrong with them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "plugins/sim/model.h"
#include "tests/support/own.h"
#include "tests/support/test.h"

#define own_gpu OWN(sim_gpu_destroy) struct sim_gpu *

#define GPU                                                                  \
    "[gpu]\nname = a card\nqueues = stream\ncopy_engines = 2\nkernels = 4\n" \
    "h2d_gb_per_s = 12.5\nd2h_gb_per_s = 6\n"

static char message[512];

// Writes a file and returns its path, which has no directory in messages.
static const char *file(const char *name, const char *text)
{
    char error[512];
    const char *path = weir_test_path(name);
    EXPECT_TRUE(weir_file_write(path, text, strlen(text), error, sizeof error));
    return path;
}

static struct sim_gpu *open_text(const char *text)
{
    struct sim_gpu *gpu = NULL;
    message[0] = '\0';
    if (!sim_gpu_open(file("gpu.ini", text), &gpu, message, sizeof message))
        EXPECT_NULL(gpu);
    return gpu;
}

static bool add_costs(struct sim_gpu *gpu, const char *text, double scale)
{
    return sim_gpu_add_costs(gpu, file("costs.ini", text), scale, message, sizeof message);
}

// What is refused, the line, and what the sentence must name.
struct refusal {
    const char *text;
    const char *at; // ":8: "
    const char *facts[3];
};

static void expect_message(const struct refusal *row)
{
    weir_test_note("%s", row->text);
    EXPECT_CONTAINS(message, row->at);
    for (int i = 0; i < 3 && row->facts[i]; i++)
        EXPECT_CONTAINS(message, row->facts[i]);
    weir_test_note(NULL);
}

WEIR_TEST(SimModel, KeysAndDefaults)
{
    struct sim_gpu *gpu = open_text("; x\n" GPU "late_signals = 1\ngreatest_priority = -5\n"
                                    "h2d_both_gb_per_s = 10\nsubmit_copy_ns = 7\n");
    ASSERT_NOT_NULL(gpu);
    const struct sim_model *model = &gpu->model;
    EXPECT_STR_EQ(model->name, "a card");
    EXPECT_INT_EQ(model->queues, SIM_STREAM_QUEUES);
    EXPECT_TRUE(model->late_signals);
    EXPECT_INT_EQ(model->copy_engines, 2);
    EXPECT_INT_EQ(model->kernels, 4);
    EXPECT_INT_EQ(model->greatest_priority, -5);
    EXPECT_UINT_EQ(model->copies[SIM_H2D].bytes_per_s, 12500000000u);
    EXPECT_UINT_EQ(model->copies[SIM_H2D].both_bytes_per_s, 10000000000u);
    EXPECT_UINT_EQ(model->copies[SIM_D2H].bytes_per_s, 6000000000u);
    EXPECT_UINT_EQ(model->copies[SIM_D2H].both_bytes_per_s, 0);
    EXPECT_UINT_EQ(model->copies[SIM_D2D].bytes_per_s, 100000000000000u);
    EXPECT_UINT_EQ(model->submit_ns[SIM_H2D], 7);
    EXPECT_UINT_EQ(model->submit_ns[SIM_D2D], 7);
    EXPECT_UINT_EQ(model->submit_ns[SIM_PEER], 7);
    EXPECT_UINT_EQ(model->submit_ns[SIM_KERNEL], 0);
    EXPECT_INT_EQ(model->channels, 0);
    EXPECT_UINT_EQ(model->cost_count, 0);
    sim_gpu_destroy(&gpu);
    sim_gpu_destroy(&gpu);
}

WEIR_TEST(SimModel, WrongLinesAreRefused)
{
    static const char whole[] = "whole number", number[] = "from 0.001 to 100000";
    static const struct refusal rows[] = {
        {GPU "channels = 129\n", "gpu.ini:8: ", {"'channels' of [gpu]", "from 0 to 128", "'129'"}},
        {GPU "channels = -1\n", ":8: ", {"from 0 to 128", "'-1'"}},
        {GPU "channels =\n", ":8: ", {whole, "not ''"}},
        {GPU "d2d_gb_per_s = 1e3\n", ":8: ", {"'d2d_gb_per_s'", number, "'1e3'"}},
        {GPU "d2d_gb_per_s = 1.2.3\n", ":8: ", {number, "'1.2.3'"}},
        {GPU "d2d_gb_per_s = nan\n", ":8: ", {number, "'nan'"}},
        {GPU "wait_ns = 99999999999\n", ":8: ", {"'wait_ns'", "from 0 to 1e+09"}},
        {GPU "greatest_priority = --1\n", ":8: ", {whole, "from -1000 to 0", "'--1'"}},
        {"[gpu]\nqueues = both\n", ":2: ", {"'queues'", "engine or stream", "'both'"}},
        {"[gpu]\nname =\n", ":2: ", {"'name'", "empty"}},
        // Figures that do not go together.
        {GPU "h2d_both_gb_per_s = 13\n", ":1: ", {"'h2d_both_gb_per_s'", "'h2d_gb_per_s'"}},
        {GPU "d2h_both_gb_per_s = 13\n", ":1: ", {"'d2h_both_gb_per_s'", "'d2h_gb_per_s'"}},
        {GPU "d2h_both_gb_per_s = 0.0001\n", ":8: ", {"'d2h_both_gb_per_s'", "at least 0.001"}},
        {GPU "copy_latency_ns = 10\ncopy_both_latency_ns = 9\n",
         ":1: ",
         {"'copy_both_latency_ns'", "at least 'copy_latency_ns'"}},
        // Keys and sections.
        {GPU "chanels = 8\n", ":8: ", {"'chanels'", "did you mean 'channels'?"}},
        {GPU "xyzzy = 8\n", ":8: ", {"'xyzzy'", "conf/gpus/reference.ini has all"}},
        {GPU "kernels = 8\n", ":8: ", {"'kernels' of [gpu] is already set in line"}},
        {GPU "[gpu]\n", ":8: ", {"[gpu] is already in line 1"}},
        {"[card]\n", ":1: ", {"unknown section [card]"}},
        {"[gpu]\nqueues = stream\n", ":1: ", {"lacks 'name'"}},
        {"", "gpu.ini: ", {"there is no [gpu]"}},
        {"k = v\n", ":1: ", {"'k' comes before the first section"}},
        {" [gpu]\n", ":1: ", {"indented"}},
        // Costs.
        {GPU "[kernel a]\nfixed_ns = -1\n",
         ":9: ",
         {"'fixed_ns' of [kernel a]", "from 0 to", "'-1'"}},
        {GPU "[kernel a]\nfixed_ns = 1e400\n", ":9: ", {"'1e400'"}},
        {GPU "[kernel a]\n[kernel b]\nfixed_ns = 1\n", ":8: ", {"[kernel a] has no cost"}},
        {GPU "[kernel a]\n", ":8: ", {"[kernel a] has no cost"}},
        {GPU "[kernel a]\nfixed_ns = 1\n[kernel a]\nfixed_ns = 1\n",
         ":10: ",
         {"[kernel a] is already in line 8"}},
        {GPU "[kernel a]\nfixed_ns = 1\nfixed_ns = 1\n",
         ":10: ",
         {"'fixed_ns' of [kernel a] is already set in line 9"}},
        {GPU "[kernel a]\nper_argument_16_ns = 1\n",
         ":9: ",
         {"per_argument_0_ns to per_argument_15_ns"}},
        {GPU "[kernel a]\nper_argument_01_ns = 1\n", ":9: ", {"has no key"}},
        {GPU "[kernel a]\nns = 1\n", ":9: ", {"has no key"}},
        {GPU "[kernel a]\nper_item_argument_ns = 1\n", ":9: ", {"has no key"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        own_gpu gpu = open_text(rows[i].text);
        EXPECT_NULL(gpu);
        expect_message(&rows[i]);
    }
}

WEIR_TEST(SimModel, CostsOfKernels)
{
    static const char text[] = GPU "[kernel scale]\nfixed_ns = 10\nper_item_ns = 0.5\n"
                                   "[kernel f<a, b>(int)]\nper_block_ns = 1e-3\n"
                                   "per_byte_ns = 2\nper_argument_15_ns = 3\n"
                                   "per_item_argument_0_ns = 4\n";
    own_gpu gpu = open_text(text);
    ASSERT_NOT_NULL(gpu);
    const struct sim_model *model = &gpu->model;
    ASSERT_UINT_EQ(model->cost_count, 2);
    EXPECT_STR_EQ(model->costs[0].kernel, "f<a, b>(int)");
    EXPECT_DOUBLE_EQ(model->costs[0].factors[SIM_TERM_BLOCK], 1e-3);
    EXPECT_DOUBLE_EQ(model->costs[0].factors[SIM_TERM_BYTE], 2);
    EXPECT_DOUBLE_EQ(model->costs[0].factors[SIM_TERM_ARGUMENT + 15], 3);
    EXPECT_DOUBLE_EQ(model->costs[0].factors[SIM_TERM_ITEM_ARGUMENT], 4);
    EXPECT_STR_EQ(model->costs[1].kernel, "scale");
    EXPECT_DOUBLE_EQ(model->costs[1].factors[SIM_TERM_FIXED], 10);
    uint64_t ns;
    struct sim_launch launch = {.kernel = "scale",
                                .terms = {[SIM_TERM_FIXED] = 1,
                                          [SIM_TERM_BLOCK] = 4000,
                                          [SIM_TERM_ITEM] = 100,
                                          [SIM_TERM_BYTE] = 8,
                                          [SIM_TERM_ARGUMENT + 15] = 5,
                                          [SIM_TERM_ITEM_ARGUMENT] = 2}};
    EXPECT_TRUE(sim_kernel_ns(model, &launch, &ns));
    EXPECT_UINT_EQ(ns, 10 + 50);
    launch.kernel = "f<a, b>(int)";
    EXPECT_TRUE(sim_kernel_ns(model, &launch, &ns));
    EXPECT_UINT_EQ(ns, 4 + 16 + 15 + 8);
    launch.terms[SIM_TERM_ITEM_ARGUMENT] = -1e9;
    EXPECT_TRUE(sim_kernel_ns(model, &launch, &ns));
    EXPECT_UINT_EQ(ns, 0);
    launch.terms[SIM_TERM_ITEM_ARGUMENT] = 1e30;
    EXPECT_TRUE(sim_kernel_ns(model, &launch, &ns));
    EXPECT_UINT_EQ(ns, UINT64_C(31536000000000000));
    launch.kernel = "other";
    EXPECT_FALSE(sim_kernel_ns(model, &launch, &ns));
}

// Costs of a processor are none of a GPU's, unless someone says how much of them.
WEIR_TEST(SimModel, CostsOfAnotherKindOfDevice)
{
    static const char costs[] = "[learnt]\ndevice = some CPU\nkind = cpu\n"
                                "[kernel a]\nfixed_ns = 1000\nper_item_ns = 20\n"
                                "per_argument_1_ns = 40\n";
    static const char of_a_gpu[] = "[kernel b]\nfixed_ns = 1\n[learnt]\nkind = gpu\n";
    struct sim_gpu *gpu = open_text(GPU);
    ASSERT_NOT_NULL(gpu);
    EXPECT_FALSE(add_costs(gpu, costs, 0));
    EXPECT_CONTAINS(message,
                    "costs.ini:1: these costs were learnt on a processor, some CPU, and the model");
    EXPECT_UINT_EQ(gpu->model.cost_count, 0);
    EXPECT_TRUE(add_costs(gpu, of_a_gpu, 0));
    EXPECT_TRUE(add_costs(gpu, costs, 0.5));
    const struct sim_cost *cost = gpu->model.costs;
    EXPECT_DOUBLE_EQ(cost[0].factors[SIM_TERM_FIXED], 500);
    EXPECT_DOUBLE_EQ(cost[0].factors[SIM_TERM_ITEM], 10);
    EXPECT_DOUBLE_EQ(cost[0].factors[SIM_TERM_ARGUMENT + 1], 20);
    EXPECT_DOUBLE_EQ(cost[1].factors[SIM_TERM_FIXED], 1);
    sim_gpu_destroy(&gpu);

    gpu = open_text(GPU "kind = cpu\n");
    ASSERT_NOT_NULL(gpu);
    EXPECT_TRUE(add_costs(gpu, costs, 0));
    EXPECT_DOUBLE_EQ(gpu->model.costs[0].factors[SIM_TERM_FIXED], 1000);
    EXPECT_FALSE(add_costs(gpu, of_a_gpu, 0));
    EXPECT_CONTAINS(message, "costs.ini:3: these costs were learnt on a GPU, and the model");
    sim_gpu_destroy(&gpu);
}

WEIR_TEST(SimModel, WrongFilesOfCostsAreRefused)
{
    static const struct refusal rows[] = {
        {"[learnt]\nkind = tpu\n", "costs.ini:2: ", {"gpu or cpu, not 'tpu'"}},
        {"[learnt]\nkinds = gpu\n", "costs.ini:2: ", {"no key 'kinds'"}},
        {"[learnt]\nkind = gpu\nkind = gpu\n",
         "costs.ini:3: ",
         {"'kind' of [learnt] is already set in line 2"}},
        {"[learnt]\nkind = gpu\n[learnt]\n", "costs.ini:3: ", {"already in line 1"}},
        {"[learnt]\nkind = gpu\n", "costs.ini: ", {"no [kernel NAME]"}},
        {"; none\n", "costs.ini: ", {"no [kernel NAME]"}},
        {GPU, "costs.ini:1: ", {"[kernel NAME] sections alone"}},
    };
    own_gpu gpu = open_text(GPU);
    ASSERT_NOT_NULL(gpu);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        EXPECT_FALSE(add_costs(gpu, rows[i].text, 0));
        expect_message(&rows[i]);
    }
    EXPECT_FALSE(sim_gpu_add_costs(gpu, "./absent.ini", 0, message, sizeof message));
    EXPECT_UINT_EQ(gpu->model.cost_count, 0);
}

// Of a kernel that both have, the file's costs count.
WEIR_TEST(SimModel, CostsFromFilesOfTheirOwn)
{
    own_gpu gpu = open_text(GPU "[kernel b]\nfixed_ns = 1\n[kernel d]\nfixed_ns = 2\n");
    ASSERT_NOT_NULL(gpu);
    EXPECT_TRUE(add_costs(
        gpu, "[kernel e]\nfixed_ns = 3\n[kernel d]\nfixed_ns = 4\n[kernel a]\nfixed_ns = 5\n", 0));
    const struct sim_model *model = &gpu->model;
    static const struct {
        const char *name;
        double ns;
    } wanted[] = {{"a", 5}, {"b", 1}, {"d", 4}, {"e", 3}};
    ASSERT_UINT_EQ(model->cost_count, 4);
    for (size_t i = 0; i < 4; i++) {
        EXPECT_STR_EQ(model->costs[i].kernel, wanted[i].name);
        EXPECT_DOUBLE_EQ(model->costs[i].factors[SIM_TERM_FIXED], wanted[i].ns);
    }
}

WEIR_TEST(SimModel, TooManyKernelsAreRefused)
{
    const size_t size = 4200 * 32;
    OWN_MEMORY char *text = malloc(size);
    size_t used = (size_t)snprintf(text, size, "%s", GPU);
    for (int i = 0; i <= SIM_MOST_KERNELS; i++)
        used += (size_t)snprintf(text + used, size - used, "[kernel k%d]\nfixed_ns = 1\n", i);
    EXPECT_NULL(open_text(text));
    EXPECT_CONTAINS(message, "more than 4096 kernels");
}

WEIR_TEST(SimModel, ChangesOfKeys)
{
    own_gpu gpu = open_text(GPU);
    ASSERT_NOT_NULL(gpu);
    EXPECT_TRUE(sim_gpu_change(gpu, "", message, sizeof message));
    EXPECT_TRUE(sim_gpu_change(gpu, "copy_engines=1, h2d_gb_per_s = 25 ,queues=engine", message,
                               sizeof message));
    EXPECT_INT_EQ(gpu->model.copy_engines, 1);
    EXPECT_INT_EQ(gpu->model.queues, SIM_ENGINE_QUEUES);
    EXPECT_UINT_EQ(gpu->model.copies[SIM_H2D].bytes_per_s, 25000000000u);
}

// What goes together at the end may not do so between two changes.
WEIR_TEST(SimModel, ChangesAreOfAnyOrder)
{
    own_gpu gpu = open_text(GPU "h2d_both_gb_per_s = 5\ncopy_both_latency_ns = 6\n");
    ASSERT_NOT_NULL(gpu);
    EXPECT_TRUE(sim_gpu_change(gpu,
                               "h2d_gb_per_s=3, h2d_both_gb_per_s=2, copy_latency_ns=7, "
                               "copy_both_latency_ns=8",
                               message, sizeof message));
}

WEIR_TEST(SimModel, WrongChangesAreRefused)
{
    char longest[200] = "name=";
    const struct refusal rows[] = {
        {"copy_engines=4", "copy_engines=4: ", {"'copy_engines'", "from 1 to 3", "'4'"}},
        {"kernels=2,slots=2", "slots=2: ", {"no key 'slots'"}},
        {"copy_engine=1", "copy_engine=1: ", {"did you mean 'copy_engines'?"}},
        {"collective_gb_per_s=0.0001", "collective_gb_per_s=0.0001: ", {"at least 0.001"}},
        {"staging_all_gb_per_s=0.0001", "staging_all_gb_per_s=0.0001: ", {"at least 0.001"}},
        {"copy_engines", "copy_engines: ", {"KEY=VALUE"}},
        {",", ": ", {"KEY=VALUE"}},
        {"h2d_both_gb_per_s=26", "h2d_both_gb_per_s=26: ", {"more than 'h2d_gb_per_s'"}},
        {longest, ": ", {"shorter"}},
    };
    memset(longest + 5, 'x', 150);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        own_gpu gpu = open_text(GPU);
        EXPECT_FALSE(sim_gpu_change(gpu, rows[i].text, message, sizeof message));
        expect_message(&rows[i]);
    }
}

WEIR_TEST(SimModel, NamesOfGpus)
{
    struct sim_gpu *gpu;
    EXPECT_FALSE(sim_gpu_open("xyzzy", &gpu, message, sizeof message));
    EXPECT_NULL(gpu);
    EXPECT_CONTAINS(message,
                    "choose one of c1060, c2050, geforce_fermi, h100, h200, k20c, tegra_x2");
    EXPECT_FALSE(sim_gpu_open("absent.ini", &gpu, message, sizeof message));
    EXPECT_CONTAINS(message, "absent.ini");
}

WEIR_TEST(SimModel, CarriedModels)
{
    static const char *const names[] = {"c1060", "c2050", "geforce_fermi", "h100",
                                        "h200",  "k20c",  "tegra_x2"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        own_gpu gpu = NULL;
        EXPECT_TRUE(sim_gpu_open(names[i], &gpu, message, sizeof message));
    }
}

// The reference has every key once, and where one may be left out its default.
WEIR_TEST(SimModel, ReferenceHasEveryKey)
{
    const char *path = weir_test_runfile("conf/gpus/reference.ini");
    struct sim_gpu *gpu = NULL;
    ASSERT_TRUE(sim_gpu_open(path, &gpu, message, sizeof message));
    EXPECT_UINT_EQ(gpu->model.cost_count, 1);
    sim_gpu_destroy(&gpu);
    char text[16384] = "\n";
    FILE *from = fopen(path, "r");
    ASSERT_NOT_NULL(from);
    text[1 + fread(text + 1, 1, sizeof text - 2, from)] = '\0';
    fclose(from);
    for (size_t i = 0; sim_key_name(i); i++) {
        char line[128];
        const char *fallback = sim_key_default(i);
        snprintf(line, sizeof line, "\n%s = %s%s", sim_key_name(i), fallback ? fallback : "",
                 fallback ? "\n" : "");
        if (!strstr(text, line))
            EXPECT_STR_EQ(line, "in conf/gpus/reference.ini");
    }
}
