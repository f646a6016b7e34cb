// Models of GPUs: what files mean, and what is wrong with them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", weir_test_temp_dir(), name);
    FILE *to = fopen(path, "w");
    EXPECT_NOT_NULL(to);
    if (to) {
        fputs(text, to);
        fclose(to);
    }
    return path;
}

static bool ends_in(const char *text, const char *end)
{
    const size_t length = strlen(text);
    return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

static void expect_end(const char *end)
{
    if (!ends_in(message, end))
        EXPECT_STR_EQ(message, end);
}

static struct sim_gpu *open_text(const char *text)
{
    struct sim_gpu *gpu = NULL;
    message[0] = '\0';
    if (!sim_gpu_open(file("gpu.ini", text), &gpu, message, sizeof message))
        EXPECT_NULL(gpu);
    return gpu;
}

static void expect_refused(const char *text, const char *end)
{
    own_gpu gpu = open_text(text);
    EXPECT_NULL(gpu);
    expect_end(end);
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

WEIR_TEST(SimModel, WrongFiguresAreRefused)
{
    expect_refused(GPU "channels = 129\n",
                   "gpu.ini:8: 'channels' of [gpu] is a whole number from 0 to 128, not '129'");
    expect_refused(GPU "channels = -1\n",
                   ":8: 'channels' of [gpu] is a whole number from 0 to 128, not '-1'");
    expect_refused(GPU "channels = 1.0\n",
                   ":8: 'channels' of [gpu] is a whole number from 0 to 128, not '1.0'");
    expect_refused(GPU "channels =\n",
                   ":8: 'channels' of [gpu] is a whole number from 0 to 128, not ''");
    expect_refused(GPU "d2d_gb_per_s = 1e3\n",
                   ":8: 'd2d_gb_per_s' of [gpu] is a number from 0.001 to 100000, not '1e3'");
    expect_refused(GPU "d2d_gb_per_s = 1.2.3\n",
                   ":8: 'd2d_gb_per_s' of [gpu] is a number from 0.001 to 100000, not '1.2.3'");
    expect_refused(GPU "d2d_gb_per_s = 0\n",
                   ":8: 'd2d_gb_per_s' of [gpu] is a number from 0.001 to 100000, not '0'");
    expect_refused(GPU "d2d_gb_per_s = nan\n",
                   ":8: 'd2d_gb_per_s' of [gpu] is a number from 0.001 to 100000, not 'nan'");
    expect_refused(GPU "wait_ns = 99999999999\n",
                   ":8: 'wait_ns' of [gpu] is a whole number from 0 to 1e+09, not '99999999999'");
    expect_refused(GPU "greatest_priority = --1\n",
                   ":8: 'greatest_priority' of [gpu] is a whole number from -1000 to 0, not '--1'");
    expect_refused("[gpu]\nqueues = both\n",
                   ":2: 'queues' of [gpu] is engine or stream, not 'both'");
    expect_refused("[gpu]\nname =\n",
                   ":2: 'name' of [gpu] is empty; write what the card is called");
}

WEIR_TEST(SimModel, FiguresThatDoNotGoTogetherAreRefused)
{
    expect_refused(GPU "h2d_both_gb_per_s = 13\n",
                   ":1: 'h2d_both_gb_per_s' is more than 'h2d_gb_per_s', that of a copy alone; one "
                   "of them is wrong");
    expect_refused(GPU "d2h_both_gb_per_s = 13\n",
                   ":1: 'd2h_both_gb_per_s' is more than 'd2h_gb_per_s', that of a copy alone; one "
                   "of them is wrong");
    expect_refused(GPU "d2h_both_gb_per_s = 0.0001\n",
                   ":1: 'h2d_both_gb_per_s' and 'd2h_both_gb_per_s' are 0 or at least 0.001");
    expect_refused(GPU "copy_latency_ns = 10\ncopy_both_latency_ns = 9\n",
                   ":1: 'copy_both_latency_ns' is 0 or at least 'copy_latency_ns', that of a copy "
                   "alone");
}

WEIR_TEST(SimModel, WrongLinesAreRefused)
{
    expect_refused(GPU "chanels = 8\n", ":8: [gpu] has no key 'chanels'; did you mean 'channels'?");
    expect_refused(GPU "xyzzy = 8\n",
                   ":8: [gpu] has no key 'xyzzy'; conf/gpus/reference.ini has all");
    expect_refused(GPU "kernels = 8\n",
                   ":8: 'kernels' is set twice in this section; keep one of them");
    expect_refused(GPU "[gpu]\n",
                   ":8: section [gpu] is already in line 1; keep its keys in one place");
    expect_refused("[card]\n", ":1: unknown section [card]; a model has [gpu] and [kernel NAME]");
    expect_refused("[gpu]\nqueues = stream\n",
                   ":1: [gpu] lacks 'name'; conf/gpus/reference.ini tells what it is");
    expect_refused("", "gpu.ini: there is no [gpu]; conf/gpus/reference.ini shows one");
    expect_refused("k = v\n", ":1: 'k' comes before the first section; put it under [gpu]");
    expect_refused(" [gpu]\n", ":1: the line is indented: '[gpu]'; start it in the first column");
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
    const struct sim_launch launch = {.kernel = "scale",
                                      .terms = {[SIM_TERM_FIXED] = 1, [SIM_TERM_ITEM] = 100}};
    EXPECT_TRUE(sim_kernel_ns(model, &launch, &ns));
    EXPECT_UINT_EQ(ns, 60);
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
    EXPECT_FALSE(sim_gpu_add_costs(gpu, file("costs.ini", costs), 0, message, sizeof message));
    EXPECT_CONTAINS(message,
                    "costs.ini:1: these costs were learnt on a processor, some CPU, and the model");
    EXPECT_UINT_EQ(gpu->model.cost_count, 0);
    EXPECT_TRUE(sim_gpu_add_costs(gpu, file("costs.ini", of_a_gpu), 0, message, sizeof message));
    EXPECT_TRUE(sim_gpu_add_costs(gpu, file("costs.ini", costs), 0.5, message, sizeof message));
    const struct sim_cost *cost = gpu->model.costs;
    EXPECT_DOUBLE_EQ(cost[0].factors[SIM_TERM_FIXED], 500);
    EXPECT_DOUBLE_EQ(cost[0].factors[SIM_TERM_ITEM], 10);
    EXPECT_DOUBLE_EQ(cost[0].factors[SIM_TERM_ARGUMENT + 1], 20);
    EXPECT_DOUBLE_EQ(cost[1].factors[SIM_TERM_FIXED], 1);
    sim_gpu_destroy(&gpu);

    gpu = open_text(GPU "kind = cpu\n");
    ASSERT_NOT_NULL(gpu);
    EXPECT_TRUE(sim_gpu_add_costs(gpu, file("costs.ini", costs), 0, message, sizeof message));
    EXPECT_DOUBLE_EQ(gpu->model.costs[0].factors[SIM_TERM_FIXED], 1000);
    EXPECT_FALSE(sim_gpu_add_costs(gpu, file("costs.ini", of_a_gpu), 0, message, sizeof message));
    EXPECT_CONTAINS(message, "costs.ini:3: these costs were learnt on a GPU, and the model");
    sim_gpu_destroy(&gpu);
}

WEIR_TEST(SimModel, WhatLearntHolds)
{
    static const struct {
        const char *text;
        const char *end;
    } refused[] = {
        {"[learnt]\nkind = tpu\n", "costs.ini:2: 'kind' of [learnt] is gpu or cpu, not 'tpu'"},
        {"[learnt]\nkinds = gpu\n",
         "costs.ini:2: [learnt] has no key 'kinds'; it has device and kind"},
        {"[learnt]\nkind = gpu\nkind = gpu\n",
         "costs.ini:3: 'kind' is set twice in this section; keep one of them"},
        {"[learnt]\nkind = gpu\n[learnt]\n",
         "costs.ini:3: section [learnt] is already in line 1: costs of two devices are two files"},
        {"[learnt]\nkind = gpu\n",
         "costs.ini: there is no [kernel NAME]; weir sim learn writes some"},
    };
    own_gpu gpu = open_text(GPU);
    ASSERT_NOT_NULL(gpu);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        EXPECT_FALSE(
            sim_gpu_add_costs(gpu, file("costs.ini", refused[i].text), 0, message, sizeof message));
        expect_end(refused[i].end);
    }
}

// Of a kernel that both have, the file's costs count.
WEIR_TEST(SimModel, CostsFromFilesOfTheirOwn)
{
    own_gpu gpu = open_text(GPU "[kernel b]\nfixed_ns = 1\n[kernel d]\nfixed_ns = 2\n");
    ASSERT_NOT_NULL(gpu);
    EXPECT_TRUE(sim_gpu_add_costs(
        gpu,
        file("costs.ini",
             "[kernel e]\nfixed_ns = 3\n[kernel d]\nfixed_ns = 4\n[kernel a]\nfixed_ns = 5\n"),
        0, message, sizeof message));
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
    EXPECT_FALSE(sim_gpu_add_costs(gpu, file("costs.ini", GPU), 0, message, sizeof message));
    expect_end("costs.ini:1: a file of costs has [kernel NAME] sections alone; a model with [gpu] "
               "is named as the GPU");
    EXPECT_FALSE(sim_gpu_add_costs(gpu, file("costs.ini", "; none\n"), 0, message, sizeof message));
    expect_end("costs.ini: there is no [kernel NAME]; weir sim learn writes some");
    EXPECT_FALSE(sim_gpu_add_costs(gpu, "./absent.ini", 0, message, sizeof message));
    EXPECT_UINT_EQ(gpu->model.cost_count, 4);
}

WEIR_TEST(SimModel, WrongCostsAreRefused)
{
    expect_refused(GPU "[kernel a]\nfixed_ns = -1\n",
                   ":9: 'fixed_ns' of [kernel a] is a number from 0 to 1e+15, not '-1'");
    expect_refused(GPU "[kernel a]\nfixed_ns = 1e400\n",
                   ":9: 'fixed_ns' of [kernel a] is a number from 0 to 1e+15, not '1e400'");
    expect_refused(GPU "[kernel a]\nfixed_ns = 1e\n",
                   ":9: 'fixed_ns' of [kernel a] is a number from 0 to 1e+15, not '1e'");
    expect_refused(GPU "[kernel a]\n[kernel b]\nfixed_ns = 1\n",
                   ":8: [kernel a] has no cost; write fixed_ns, or remove it");
    expect_refused(GPU "[kernel a]\n", ":8: [kernel a] has no cost; write fixed_ns, or remove it");
    expect_refused(GPU "[kernel a]\nfixed_ns = 1\n[kernel a]\nfixed_ns = 1\n",
                   ":10: section [kernel a] is already in line 8; keep one of them");
    expect_refused(GPU "[kernel a]\nfixed_ns = 1\nfixed_ns = 1\n",
                   ":10: 'fixed_ns' is set twice in this section; keep one of them");
    for (int i = 0; i < 4; i++) {
        static const char *const keys[] = {"per_argument_16_ns", "per_argument_01_ns", "ns",
                                           "per_item_argument_ns"};
        char text[256];
        snprintf(text, sizeof text, GPU "[kernel a]\n%s = 1\n", keys[i]);
        struct sim_gpu *gpu = open_text(text);
        EXPECT_NULL(gpu);
        EXPECT_CONTAINS(message, ":9: [kernel a] has no key '");
        EXPECT_CONTAINS(message, "per_argument_0_ns to per_argument_15_ns");
    }
}

WEIR_TEST(SimModel, TooManyKernelsAreRefused)
{
    const size_t size = 4200 * 32;
    char *text = malloc(size);
    size_t used = (size_t)snprintf(text, size, "%s", GPU);
    for (int i = 0; i <= SIM_MOST_KERNELS; i++)
        used += (size_t)snprintf(text + used, size - used, "[kernel k%d]\nfixed_ns = 1\n", i);
    expect_refused(text, "more than 4096 kernels; remove those that the program does not use");
    free(text);
}

WEIR_TEST(SimModel, ChangesOfKeys)
{
    struct sim_gpu *gpu = open_text(GPU);
    ASSERT_NOT_NULL(gpu);
    EXPECT_TRUE(sim_gpu_change(gpu, "", message, sizeof message));
    EXPECT_TRUE(sim_gpu_change(gpu, "copy_engines=1, h2d_gb_per_s = 25 ,queues=engine", message,
                               sizeof message));
    EXPECT_INT_EQ(gpu->model.copy_engines, 1);
    EXPECT_INT_EQ(gpu->model.queues, SIM_ENGINE_QUEUES);
    EXPECT_UINT_EQ(gpu->model.copies[SIM_H2D].bytes_per_s, 25000000000u);
    static const struct {
        const char *changes;
        const char *sentence;
    } wrong[] = {
        {"copy_engines=4",
         "copy_engines=4: 'copy_engines' of [gpu] is a whole number from 1 to 3, not '4'"},
        {"kernels=2,slots=2", "slots=2: [gpu] has no key 'slots'; conf/gpus/reference.ini has all"},
        {"copy_engine=1",
         "copy_engine=1: [gpu] has no key 'copy_engine'; did you mean 'copy_engines'?"},
        {"collective_gb_per_s=0.0001",
         "collective_gb_per_s=0.0001: 'collective_gb_per_s' is 0 or at least 0.001"},
        {"staging_all_gb_per_s=0.0001", "staging_all_gb_per_s=0.0001: 'staging_gb_per_s' and "
                                        "'staging_all_gb_per_s' are 0 or at least 0.001"},
        {"copy_engines", "copy_engines: a change is KEY=VALUE"},
        {",", ": a change is KEY=VALUE"},
        {"h2d_both_gb_per_s=26", "h2d_both_gb_per_s=26: 'h2d_both_gb_per_s' is more than "
                                 "'h2d_gb_per_s', that of a copy alone; one of them is wrong"},
    };
    sim_gpu_destroy(&gpu);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        gpu = open_text(GPU);
        EXPECT_FALSE(sim_gpu_change(gpu, wrong[i].changes, message, sizeof message));
        EXPECT_STR_EQ(message, wrong[i].sentence);
        sim_gpu_destroy(&gpu);
    }
    gpu = open_text(GPU);
    char text[200] = "name=";
    memset(text + 5, 'x', 150);
    EXPECT_FALSE(sim_gpu_change(gpu, text, message, sizeof message));
    expect_end(": a change is KEY=VALUE, and shorter");
    sim_gpu_destroy(&gpu);
}

WEIR_TEST(SimModel, NamesOfGpus)
{
    struct sim_gpu *gpu;
    EXPECT_FALSE(sim_gpu_open("hh200", &gpu, message, sizeof message));
    EXPECT_NULL(gpu);
    EXPECT_STR_EQ(message, "hh200: no GPU of that name is known; did you mean 'h200'?");
    EXPECT_FALSE(sim_gpu_open("xyzzy", &gpu, message, sizeof message));
    EXPECT_STR_EQ(message,
                  "xyzzy: no GPU of that name is known; choose one of c1060, c2050, "
                  "geforce_fermi, h100, h200, k20c, tegra_x2, or name a file, such as ./gpu.ini");
    EXPECT_FALSE(sim_gpu_open("absent.ini", &gpu, message, sizeof message));
    EXPECT_CONTAINS(message, "absent.ini");
}

WEIR_TEST(SimModel, CarriedModels)
{
    size_t count = 0;
    for (; sim_gpu_name(count); count++) {
        struct sim_gpu *gpu;
        EXPECT_TRUE(sim_gpu_open(sim_gpu_name(count), &gpu, message, sizeof message));
        sim_gpu_destroy(&gpu);
    }
    EXPECT_UINT_EQ(count, 7);
}

// The first key after which a blank line, the next section or the end comes before a comment; "" if
// there is none.
static void find_bare_key(FILE *from, char key[128])
{
    char line[256];
    key[0] = '\0';
    while (fgets(line, sizeof line, from)) {
        if (line[0] == ';')
            key[0] = '\0';
        else if ((line[0] == '\n' || line[0] == '[') && key[0])
            return;
        else if (line[0] != '\n' && line[0] != '[' && !key[0])
            snprintf(key, 128, "%.*s", (int)strcspn(line, " ="), line);
    }
}

// Each figure of a card has its source below it.
WEIR_TEST(SimModel, CarriedModelsHaveSources)
{
    for (size_t i = 0; sim_gpu_name(i); i++) {
        char name[64];
        char key[128];
        snprintf(name, sizeof name, "conf/gpus/%s.ini", sim_gpu_name(i));
        FILE *from = fopen(weir_test_runfile(name), "r");
        ASSERT_NOT_NULL(from);
        find_bare_key(from, key);
        fclose(from);
        weir_test_note("%s", name);
        EXPECT_STR_EQ(key, "");
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
