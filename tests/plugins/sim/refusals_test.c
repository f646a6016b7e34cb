// What is wrong with the keys of [sim], and with the chain: a sentence with the file and the line, as for
// all of the configuration.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "tests/support/test.h"

#define SIM "[weir]\nplugins = sim\n\n[sim]\n"

// The text is that of weir.ini; null is the backend.
static const char *refusal_of(const char *text)
{
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .config_path = "weir.ini",
                                            .config_text = text};
    weir_runtime *runtime = NULL;
    EXPECT_INT_EQ(weir_open(&params, &runtime), WEIR_ERROR_CONFIG);
    EXPECT_NULL(runtime);
    WEIR_IGNORE(weir_close(&runtime));
    return weir_last_error()->message;
}

static void expect_refused(const char *text, const char *message)
{
    EXPECT_STR_EQ(refusal_of(text), message);
}

// `key` in line 6 names a file with that text, whose name is in the middle of the message.
static void expect_file_refused(const char *key, const char *content, const char *end)
{
    static const char begin[] = "weir.ini:6: ";
    char path[512];
    char text[1024];
    snprintf(path, sizeof path, "%s/a.ini", weir_test_temp_dir());
    FILE *to = fopen(path, "w");
    ASSERT_NOT_NULL(to);
    fputs(content, to);
    fclose(to);
    snprintf(text, sizeof text, SIM "%s\n%s = %s\n",
             strcmp(key, "gpu") == 0 ? "host = none" : "gpu = h200", key, path);
    const char *message = refusal_of(text);
    EXPECT_INT_EQ(strncmp(message, begin, strlen(begin)), 0);
    EXPECT_CONTAINS(message, end);
}

WEIR_TEST(SimRefusals, Gpu)
{
    expect_refused(SIM, "weir.ini:2: the plugin sim has no GPU");
    expect_refused("[weir]\n\nplugins = sim\n", "weir.ini:3: the plugin sim has no GPU");
    expect_refused(SIM "gpu =\n", "weir.ini:5: the plugin sim has no GPU");
    EXPECT_STR_EQ(weir_last_error()->remedy,
                  "name one with `gpu` in [sim] or in WEIR_SIM_GPU, such as h200");
    expect_refused(SIM "gpu = h20\n",
                   "weir.ini:5: h20: no GPU of that name is known; did you mean 'h200'?");
    expect_file_refused("gpu", "[gpu]\nname = mine\nkernels = -1\n",
                        "a.ini:3: 'kernels' of [gpu] is a whole number from 1 to 4096, not '-1'");
    expect_file_refused("gpu", "[gpu]\nname = mine\n", "a.ini:1: [gpu] lacks 'copy_engines'");
}

WEIR_TEST(SimRefusals, Changes)
{
    expect_refused(SIM "gpu = h200\nchanges = kernels=2, copy_engine=1\n",
                   "weir.ini:6: copy_engine=1: [gpu] has no key 'copy_engine'; did you mean "
                   "'copy_engines'?");
    expect_refused(SIM "gpu = h200\nchanges = copy_engines\n",
                   "weir.ini:6: copy_engines: a change is KEY=VALUE");
    expect_refused(
        SIM "gpu = h200\nchanges = copy_engines=4\n",
        "weir.ini:6: copy_engines=4: 'copy_engines' of [gpu] is a whole number from 1 to "
        "3, not '4'");
}

WEIR_TEST(SimRefusals, Costs)
{
    expect_file_refused("costs", "[kernel a]\nfixed_ns = 1\nper_bock_ns = 2\n",
                        "a.ini:3: [kernel a] has no key 'per_bock_ns'");
    expect_file_refused("costs", "[kernel a]\nfixed_ns = -1\n",
                        "a.ini:2: 'fixed_ns' of [kernel a] is a number from 0");
    expect_file_refused("costs", "\n", "a.ini: there is no [kernel NAME]");
    const char *message = refusal_of(SIM "gpu = h200\ncosts = /no/such.ini\n");
    EXPECT_CONTAINS(message, "weir.ini:6: /no/such.ini: ");
}

WEIR_TEST(SimRefusals, OtherKeys)
{
    expect_refused(SIM "gpu = h200\nhost = fast\n", "weir.ini:6: 'host' of [sim] cannot be 'fast'");
    expect_refused(SIM "gpu = h200\nkernel_scale = 0\n",
                   "weir.ini:6: `kernel_scale` of [sim] is a number from 1e-06 to 1e+06, not '0'");
    expect_refused(SIM "gpu = h200\njitter = 91\n",
                   "weir.ini:6: 'jitter' of [sim] must be from 0 to 90, not 91");
    EXPECT_CONTAINS(refusal_of(SIM "gpus = h200\n"), "weir.ini:5: unknown key 'gpus' in [sim]");
}

WEIR_TEST(SimRefusals, TwoInAChain)
{
    expect_refused("[weir]\nbackend = null\nplugins = sim, trace, sim\n[sim]\ngpu = h200\n",
                   "weir.ini:3: the plugin sim is twice in the chain");
    EXPECT_STR_EQ(weir_last_error()->remedy, "list it once; two GPUs are compared in two runs");
}

// The environment's variable in place of the line.
WEIR_TEST(SimRefusals, Environment)
{
    setenv("WEIR_SIM_GPU", "h20", 1);
    expect_refused(SIM "gpu = h200\n",
                   "WEIR_SIM_GPU: h20: no GPU of that name is known; did you mean 'h200'?");
    unsetenv("WEIR_SIM_GPU");
    setenv("WEIR_PLUGINS", "sim", 1);
    expect_refused("[weir]\n", "WEIR_PLUGINS: the plugin sim has no GPU");
    unsetenv("WEIR_PLUGINS");
}
