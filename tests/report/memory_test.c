// Allocations fail once in turn, those of zlib included: writing, reading and
// measuring must then end with an error, without leaks.

#include "report/report.h"
#include "tests/report/made.h"
#include "tests/support/memory.h"

enum {
    MOST_ALLOCATIONS = 20000
};

static long failing; // the allocation of the action that fails
static struct made made;
static const char *path;
static char message[1024];

static bool write_trace(void)
{
    return made_try_write(&made, path, message, sizeof message);
}

// A trace that is read although an allocation failed may lack texts or lines, but has
// nothing additional.
static bool read_trace(void)
{
    own_trace trace = NULL;
    if (!weir_trace_read(path, NULL, &trace, message, sizeof message)) {
        EXPECT_NULL(trace);
        return false;
    }
    EXPECT_UINT_LE(trace->operation_count, made.operation_count);
    return true;
}

static bool make_report(void)
{
    struct weir_report_overlap overlap;
    struct weir_trace *trace = NULL;
    own_report report = NULL;
    weir_test_fail_allocation(-1);
    if (!weir_trace_read(path, NULL, &trace, message, sizeof message))
        weir_test_fail(__FILE__, __LINE__, "%s", message);
    weir_test_fail_allocation(failing);
    if (weir__report_make(trace, NULL, &report) != WEIR_OK) {
        EXPECT_NULL(report);
        snprintf(message, sizeof message, "%s", weir_last_error()->message);
        return false;
    }
    char *text = weir_report_text(report);
    char *json = weir_report_json(report);
    const bool ok =
        text && json && weir_report_get_overlap(report, "copy", "compute", &overlap) == WEIR_OK;
    if (!ok)
        snprintf(message, sizeof message, "%s", weir_last_error()->message);
    weir_report_free_text(&text);
    weir_report_free_text(&json);
    return ok;
}

// Runs the action with each of its first allocations failing, and then one of five, until it has none left to fail.
static void fail_each(bool (*action)(void), bool may_succeed)
{
    for (failing = 0; failing < MOST_ALLOCATIONS; failing += failing < 300 ? 1 : 5) {
        message[0] = '\0';
        weir_test_fail_allocation(failing);
        const bool ok = action();
        const bool all_used = weir_test_allocation_failed();
        weir_test_fail_allocation(-1);
        if (!all_used)
            break;
        weir_test_note("allocation %ld", failing);
        if (!may_succeed)
            EXPECT_FALSE(ok);
        if (!ok)
            EXPECT_STR_NE(message, "");
        weir_test_note(NULL);
    }
    EXPECT_INT_GT(failing, 10);
    EXPECT_INT_LT(failing, MOST_ALLOCATIONS);
    failing = -1;
    EXPECT_TRUE(action());
}

static void begin(const char *name)
{
    made_random(&made, 77, 1000);
    made.operation_count = 12; // of more than that
    path = weir_test_path(name);
    made_write(&made, path);
}

WEIR_TEST(Memory, WritingATraceFailsCleanly)
{
    begin("memory.json.gz");
    fail_each(write_trace, false);
}

WEIR_TEST(Memory, ReadingATraceFailsCleanly)
{
    begin("memory.json");
    fail_each(read_trace, true);
}

WEIR_TEST(Memory, MakingAReportFailsCleanly)
{
    begin("memory.json");
    fail_each(make_report, false);
}
