// <weir/check.h>: findings as data, with the plugin and without it.
#include <stdio.h>
#include <string.h>

#include <weir/check.h>
#include <weir/weir.h>

#include "tests/support/test.h"

// What WEIR_EXPECT_NO_RACES() reports.
static char failed[4096];

#undef WEIR_CHECK_FAILED
#define WEIR_CHECK_FAILED(text) ((void)snprintf(failed, sizeof failed, "%s", (text)))

struct rig {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *a;
    weir_queue *b;
    weir_buffer *buffer;
};

static void open_rig(struct rig *rig, const char *plugins, const char *config)
{
    const struct weir_queue_params a = {.struct_size = sizeof a, .label = "a"};
    const struct weir_queue_params b = {.struct_size = sizeof b, .label = "b"};
    const struct weir_buffer_params memory = {.struct_size = sizeof memory,
                                              .label = "memory",
                                              .size = 64};
    memset(rig, 0, sizeof *rig);
    failed[0] = '\0';
    ASSERT_OK(weir_open(WEIR_PARAMS(weir_open, .backend = "null", .plugins = plugins,
                                    .config_path = "rig.ini", .config_text = config),
                        &rig->runtime));
    ASSERT_OK(weir_device_open(rig->runtime, NULL, &rig->device));
    ASSERT_OK(weir_queue_create(rig->device, &a, &rig->a));
    ASSERT_OK(weir_queue_create(rig->device, &b, &rig->b));
    ASSERT_OK(weir_buffer_create(rig->device, &memory, &rig->buffer));
}

static void close_rig(struct rig *rig)
{
    weir_buffer_destroy(&rig->buffer);
    weir_queue_destroy(&rig->a);
    weir_queue_destroy(&rig->b);
    EXPECT_OK(weir_device_close(&rig->device));
    EXPECT_OK(weir_close(&rig->runtime));
}

#define API_TEST(suite, name, plugins, config)                                                  \
    WEIR_TEST_WITH(suite, name, struct rig, rig, (open_rig(rig, plugins, config), rig->buffer), \
                   close_rig(rig))

// Two fills that nothing orders. Returns the line of the second one, the first is before it.
static int race(struct rig *rig)
{
    const unsigned char zero = 0;
    EXPECT_OK(weir_queue_fill(rig->a, rig->buffer, 0, 64, &zero, 1));
    EXPECT_OK(weir_queue_fill(rig->b, rig->buffer, 8, 8, &zero, 1));
    return __LINE__ - 1;
}

API_TEST(CheckApi, FindingsAreData, "check", "")
{
    struct weir_check_finding finding;
    EXPECT_TRUE(weir_check_is_on(rig->runtime));
    EXPECT_UINT_EQ(weir_check_count(rig->runtime), 0);
    WEIR_EXPECT_NO_RACES(rig->runtime);
    EXPECT_STR_EQ(failed, "");
    EXPECT_FAILURE(weir_check_get(rig->runtime, 0, &finding), WEIR_ERROR_NOT_FOUND,
                   "there is no finding 0, only 0");
    EXPECT_STR_EQ(finding.message, "");
    EXPECT_STR_EQ(finding.second.file, "");

    const int line = race(rig);
    EXPECT_UINT_EQ(weir_check_count(rig->runtime), 1);
    EXPECT_UINT_EQ(weir_check_error_count(rig->runtime), 1);
    ASSERT_OK(weir_check_get(rig->runtime, 0, &finding));
    EXPECT_INT_EQ(finding.kind, WEIR_CHECK_WRITE_AFTER_WRITE);
    EXPECT_STR_EQ(weir_check_kind_name(finding.kind), "write-after-write");
    EXPECT_INT_EQ(finding.count, 1);
    EXPECT_STR_EQ(finding.buffer, "memory");
    EXPECT_UINT_EQ(finding.offset, 8);
    EXPECT_UINT_EQ(finding.size, 8);
    EXPECT_STR_EQ(finding.first.queue, "a");
    EXPECT_STR_EQ(finding.first.operation, "fill");
    EXPECT_INT_EQ(finding.first.line, line - 1);
    EXPECT_STR_EQ(finding.second.queue, "b");
    EXPECT_INT_EQ(finding.second.line, line);
    EXPECT_STR_EQ(finding.second.file, __FILE__);
    EXPECT_INT_EQ(finding.second.access, WEIR_ACCESS_WRITE);
    EXPECT_CONTAINS(finding.remedy, "record on 'a' after ");
    EXPECT_TRUE(finding.suppression == NULL);
    WEIR_EXPECT_NO_RACES(rig->runtime);
    EXPECT_CONTAINS(failed, ": 1 finding of the plugin check\nwrite-after-write: the fill on 'b'");
    EXPECT_CONTAINS(failed, "\n    to do: record on 'a' after ");
    EXPECT_TRUE(weir_check_describe(rig->runtime, __FILE__, __LINE__, NULL, 0));
}

API_TEST(CheckApi, WithoutThePlugin, "", "")
{
    struct weir_check_finding finding;
    char text[64];
    race(rig);
    EXPECT_FALSE(weir_check_is_on(rig->runtime));
    EXPECT_FALSE(weir_check_is_on(NULL));
    EXPECT_UINT_EQ(weir_check_count(rig->runtime), 0);
    EXPECT_UINT_EQ(weir_check_error_count(rig->runtime), 0);
    EXPECT_FAILURE(weir_check_get(rig->runtime, 0, &finding), WEIR_ERROR_NOT_FOUND,
                   "the plugin check is not in the runtime's chain");
    EXPECT_INT_EQ(weir_check_get(rig->runtime, 0, NULL), WEIR_ERROR_INVALID);
    weir_check_release(rig->runtime, rig);
    weir_check_acquire(rig->runtime, rig);
    WEIR_EXPECT_NO_RACES(rig->runtime);
    EXPECT_CONTAINS(failed, "nothing was checked: the plugin check is not in the runtime's chain");
    EXPECT_TRUE(weir_check_describe(rig->runtime, "a.c", 3, text, sizeof text));
    EXPECT_CONTAINS(text, "a.c:3: nothing was checked");
    EXPECT_STR_EQ(weir_check_kind_name((weir_check_kind)77), "unknown");
}

// What a newer program's structure has more is zero.
WEIR_TEST(CheckApi, LargerStructures)
{
    struct rig rig;
    struct {
        struct weir_check_finding finding;
        uint64_t more;
    } larger;
    open_rig(&rig, "check", "");
    race(&rig);
    memset(&larger, 0x5a, sizeof larger);
    EXPECT_OK(weir_check_get_sized(rig.runtime, 0, &larger.finding, sizeof larger));
    EXPECT_INT_EQ(larger.more, 0);
    EXPECT_STR_EQ(larger.finding.first.queue, "a");
    close_rig(&rig);
}

// Twice in a chain: both find it, and the outermost one answers.
API_TEST(CheckApi, TwiceInAChain, "check, check", "")
{
    race(rig);
    EXPECT_UINT_EQ(weir_check_count(rig->runtime), 1);
}

// The settings of a file, and wrong ones.
WEIR_TEST(CheckApi, WrongSettings)
{
    static const struct {
        const char *config, *message;
    } cases[] = {
        {"[check]\nreport = loud\n", "rig.ini:2: "},
        {"[check]\nreprot = log\n", "report"},
        {"[check]\nsuppressions = /nowhere/at/all.json\n", "/nowhere/at/all.json"},
        {"[check]\nsarif = /nowhere/at/all.sarif\n", "/nowhere/at/all.sarif"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weir_runtime *runtime;
        EXPECT_TRUE(weir_open(WEIR_PARAMS(weir_open, .backend = "null", .plugins = "check",
                                          .config_path = "rig.ini", .config_text = cases[i].config),
                              &runtime) < 0);
        EXPECT_CONTAINS(weir_last_error_text(), cases[i].message);
    }
}
