// Runs every program of the corpus, on the backend that WEIR_BACKEND names.
#include <stdlib.h>
#include <string.h>

#include "tests/races/marks.h"
#include "tests/support/test.h"

#define ASSERT_OK(call) ASSERT_INT_EQ(call, WEIR_OK)

enum {
    PAIRS_MAX = 256,
};

struct rig {
    weir_runtime *runtime;
    weir_device *device;
};

static bool rig_open(struct rig *rig)
{
    const struct weir_open_params params = {.struct_size = sizeof params, .config_path = ""};
    if (weir_open(&params, &rig->runtime) == WEIR_OK &&
        weir_device_open(rig->runtime, NULL, &rig->device) == WEIR_OK)
        return true;
    weir_test_fail(__FILE__, __LINE__, "%s", weir_last_error_text());
    return false;
}

static void rig_close(struct rig *rig)
{
    ASSERT_OK(weir_device_close(&rig->device));
    ASSERT_OK(weir_close(&rig->runtime));
}

// On null kernels do nothing, and there are no native calls.
static bool can_run(const struct race_pair *pair, const struct rig *rig)
{
    return !pair->native || weir_device_limits(rig->device)->native;
}

static bool has_result(const struct race_pair *pair, const struct rig *rig)
{
    return !pair->kernels || strcmp(weir_runtime_backend(rig->runtime), "null") != 0;
}

static void run_pair(void)
{
    const struct race_pair *pair = weir_test_data();
    struct marks marks;
    struct rig rig;

    ASSERT_TRUE(marks_read(pair, weir_test_runfile(pair->file), &marks));
    ASSERT_TRUE(rig_open(&rig));
    if (can_run(pair, &rig)) {
        race_run(pair, false, rig.device);
        const bool right = race_run(pair, true, rig.device);
        EXPECT_TRUE(right || !has_result(pair, &rig));
    }
    rig_close(&rig);
}

__attribute__((constructor)) static void add_tests(void)
{
    static struct weir_test tests[PAIRS_MAX];
    size_t count = 0;

    for (struct race_pair *pair = race_first(); pair && count < PAIRS_MAX; pair = pair->next) {
        tests[count] = (struct weir_test){.suite = "Races",
                                          .name = pair->name,
                                          .file = pair->file,
                                          .line = pair->line,
                                          .run = run_pair,
                                          .data = pair};
        weir_test_add(&tests[count++]);
    }
}
