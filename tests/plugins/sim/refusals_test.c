// What is wrong with the keys of [sim], and with the chain: a sentence with the file and the line, as for
// all of the configuration.
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

#include "tests/support/test.h"

#define SIM "[weir]\nplugins = sim\n\n[sim]\n"

// The text is that of weir.ini; null is the backend.
static const char *refusal_of(const char *text)
{
    weir_runtime *runtime = NULL;
    EXPECT_INT_EQ(weir_open(WEIR_PARAMS(weir_open, .config_path = "weir.ini", .config_text = text),
                            &runtime),
                  WEIR_ERROR_CONFIG);
    EXPECT_NULL(runtime);
    WEIR_IGNORE(weir_close(&runtime));
    return weir_last_error()->message;
}

// The sentences about models and costs themselves: model_test.c; of keys in general: tests/unit/config_test.c.
WEIR_TEST(SimRefusals, NameTheirLine)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {SIM, "weir.ini:2: the plugin sim has no GPU"},
        {"[weir]\n\nplugins = sim\n", "weir.ini:3: the plugin sim has no GPU"},
        {SIM "gpu = h20\n", "weir.ini:5: h20: no GPU of that name is known; did you mean 'h200'?"},
        {SIM "gpu = h200\nchanges = copy_engines\n",
         "weir.ini:6: copy_engines: a change is KEY=VALUE"},
        {SIM "gpu = h200\ncosts = /no/such.ini\n",
         "weir.ini:6: /no/such.ini: there is no such file; check the path"},
        {"[weir]\nbackend = null\nplugins = sim, trace, sim\n[sim]\ngpu = h200\n",
         "weir.ini:3: the plugin sim is twice in the chain"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        EXPECT_STR_EQ(refusal_of(rows[i].text), rows[i].message);
    EXPECT_STR_EQ(weir_last_error()->remedy, "list it once; two GPUs are compared in two runs");
    EXPECT_STR_EQ(refusal_of(SIM "gpu =\n"), "weir.ini:5: the plugin sim has no GPU");
    EXPECT_STR_EQ(weir_last_error()->remedy,
                  "name one with `gpu` in [sim] or in WEIR_SIM_GPU, such as h200");
}

WEIR_TEST(SimRefusals, FactorsOfKernels)
{
    static const char *const factors[] = {"0", "-1", "fast", "", "1e-7", "1e7", "nan"};
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        char text[128];
        snprintf(text, sizeof text, SIM "gpu = h200\nkernel_scale = %s\n", factors[i]);
        EXPECT_CONTAINS(refusal_of(text),
                        "`kernel_scale` of [sim] is a number from 1e-06 to 1e+06");
    }
}

// A variable of the environment in place of the line.
WEIR_TEST(SimRefusals, NameTheirVariable)
{
    setenv("WEIR_SIM_GPU", "h20", 1);
    EXPECT_STR_EQ(refusal_of(SIM "gpu = h200\n"),
                  "WEIR_SIM_GPU: h20: no GPU of that name is known; did you mean 'h200'?");
    unsetenv("WEIR_SIM_GPU");
}
