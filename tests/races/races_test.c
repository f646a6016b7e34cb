// Runs every program of the corpus under the plugin `check`, on the backend that WEIR_BACKEND names:
// a broken one has the findings that it marks and no others, a mended one has none.
#include <stdlib.h>
#include <string.h>

#include <weir/check.h>

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
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .config_path = "",
                                            .plugins = "check"};
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

// A line that is not marked is in another file, or there is no such use.
static bool is_marked(const struct race_pair *pair, const struct weir_check_use *use, int line)
{
    return line == 0 ? strcmp(use->file, pair->file) != 0
                     : use->line == line && strcmp(use->file, pair->file) == 0;
}

static bool is_expected(const struct race_pair *pair, const struct marks *marks,
                        const struct weir_check_finding *finding)
{
    for (size_t i = 0; i < marks->count; i++)
        if (finding->kind == pair->kind && is_marked(pair, &finding->first, marks->list[i].first) &&
            is_marked(pair, &finding->second, marks->list[i].second))
            return true;
    return false;
}

// Each pair of lines is one finding, so as many expected ones as marks are all of them.
static void expect_findings(const struct race_pair *pair, const struct marks *marks,
                            const weir_runtime *runtime)
{
    struct weir_check_finding finding;

    EXPECT_SIZE_EQ(weir_check_error_count(runtime), marks->count);
    for (size_t i = 0; weir_check_get(runtime, i, &finding) == WEIR_OK; i++)
        if (finding.kind < WEIR_CHECK_FIRST_HINT && !is_expected(pair, marks, &finding))
            weir_test_fail(pair->file, pair->line, "not expected: %s; %s:%d, %s:%d: %s",
                           weir_check_kind_name(finding.kind), finding.first.file,
                           finding.first.line, finding.second.file, finding.second.line,
                           finding.message);
}

static void run_broken(const struct race_pair *pair, const struct marks *marks)
{
    struct rig rig;
    ASSERT_TRUE(rig_open(&rig));
    if (can_run(pair, &rig)) {
        race_run(pair, false, rig.device);
        expect_findings(pair, marks, rig.runtime);
    }
    rig_close(&rig);
}

static void run_mended(const struct race_pair *pair)
{
    const struct marks none = {.count = 0};
    struct rig rig;
    ASSERT_TRUE(rig_open(&rig));
    if (can_run(pair, &rig)) {
        const bool right = race_run(pair, true, rig.device);
        EXPECT_TRUE(right || !has_result(pair, &rig));
        weir_test_note("mended");
        expect_findings(pair, &none, rig.runtime);
        weir_test_note(NULL);
    }
    rig_close(&rig);
}

static void run_pair(void)
{
    const struct race_pair *pair = weir_test_data();
    struct marks marks;

    ASSERT_TRUE(marks_read(pair, weir_test_runfile(pair->file), &marks));
    run_broken(pair, &marks);
    run_mended(pair);
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
