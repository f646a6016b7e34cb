// The messages for common mistakes, on any backend: the call that the user wrote, and the
// remedy, also for objects without a label.
#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

#include "core/support/error.h"
#include "tests/support/device.h"

static struct test_device start(void)
{
    struct test_device fixture;
    EXPECT_TRUE(test_device_open_by(
        &fixture, WEIR_PARAMS(weir_open, .config_path = "", .backend = "null", .plugins = "",
                              .module_path = weir_test_runfile("backends/null"))));
    return fixture;
}

static weir_status fail(void *user)
{
    weir_error_set(NULL);
    return WEIR_ERROR_IO;
}

WEIR_TEST(Messages, ObjectsWithoutALabel)
{
    own_test_device fixture = start();
    EXPECT_FAILURE(weir_device_close(&fixture.device), WEIR_ERROR_INVALID,
                   "the queue without a label (created at ");
    EXPECT_OK(weir_queue_host_call(fixture.queue, fail, NULL));
    EXPECT_FAILURE(weir_queue_sync(fixture.queue, WEIR_FOREVER), WEIR_ERROR_IO,
                   "of queue '(no label)', a host call, failed");
    EXPECT_OK(weir_queue_recover(fixture.queue));
}

// Messages are printed, and labels are untrusted text; a long one leaves room for the reason.
WEIR_TEST(Messages, LabelsDoNotReachTheTerminalRaw)
{
    char long_label[2000] = "";
    memset(long_label, 'x', sizeof long_label - 1);
    const struct {
        const char *label, *failed;
    } rows[] = {
        {long_label, "xxx...', a host call, failed: the function returned"},
        {"a\x1b]0;b\x07\nc\xe2\x80\xae", "of queue 'a\\x1b]0;b\\x07\\nc\\u202e'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        own_test_device fixture = start();
        own_queue queue = NULL;
        EXPECT_OK(weir_queue_create(fixture.device, WEIR_PARAMS(weir_queue, .label = rows[i].label),
                                    &queue));
        EXPECT_OK(weir_queue_host_call(queue, fail, NULL));
        EXPECT_FAILURE(weir_queue_sync(queue, WEIR_FOREVER), WEIR_ERROR_IO, rows[i].failed);
        EXPECT_NULL(strpbrk(weir_last_error()->object, "\x1b\x07\n"));
        EXPECT_OK(weir_queue_recover(queue));
        EXPECT_FAILURE(weir_device_close(&fixture.device), WEIR_ERROR_INVALID,
                       " still exist: the queue '");
    }
}

// A label that no object has yet, and a device's: neither can add a line to what is printed.
WEIR_TEST(Messages, LabelsAddNoLine)
{
    own_test_device fixture = start();
    weir_queue *queue = NULL;
    own_device device = NULL;
    EXPECT_INT_EQ(weir_queue_create(fixture.device,
                                    WEIR_PARAMS(weir_queue, .label = "a\nb", .priority = 1000),
                                    &queue),
                  WEIR_ERROR_INVALID);
    EXPECT_STR_EQ(weir_last_error()->object, "a\\nb");
    ASSERT_OK(
        weir_device_open(fixture.runtime, WEIR_PARAMS(weir_device, .label = "c\nd"), &device));
    EXPECT_FAILURE(weir_close(&fixture.runtime), WEIR_ERROR_INVALID, "'c\\nd'");
    EXPECT_NULL(strchr(weir_last_error_text(), '\n'));
}

static void keep_log(void *user, weir_log_level level, const char *source, const char *message)
{
    snprintf(user, 64, "%s", message);
}

// So do messages of modules and of programs, and the log; the lines of a compiler's log stay lines.
WEIR_TEST(Messages, WhatModulesSayIsEscapedToo)
{
    char logged[64] = "";
    const struct weir_error error = {.status = WEIR_ERROR_BUILD,
                                     .message = "one\n\ttwo\x1b[2J",
                                     .remedy = "three\x9b"};
    EXPECT_INT_EQ(weir_error_set(&error), WEIR_ERROR_BUILD);
    EXPECT_STR_EQ(weir_last_error()->message, "one\n\ttwo\\x1b[2J");
    EXPECT_STR_EQ(weir_last_error()->remedy, "three\\x9b");
    weir_error_set(NULL);
    weir_log_set(keep_log, logged, WEIR_LOG_WARNING);
    weir__log(WEIR_LOG_WARNING, "core", "one\n\ttwo\x1b[2J");
    EXPECT_STR_EQ(logged, "one\n\ttwo\\x1b[2J");
    weir_log_set(NULL, NULL, WEIR_LOG_WARNING);
}
