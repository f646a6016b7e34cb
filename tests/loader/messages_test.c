// The messages for common mistakes, on any backend: the call that the user wrote, and the
// remedy, also for objects without a label.
#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

#include "core/module/loader.h"
#include "core/support/error.h"
#include "tests/support/own.h"
#include "tests/support/test.h"

struct fixture {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
};

static struct fixture start(void)
{
    struct fixture fixture = {0};
    EXPECT_OK(weir_open(WEIR_PARAMS(weir_open, .config_path = "", .backend = "null", .plugins = "",
                                    .module_path = weir_test_runfile("backends/null")),
                        &fixture.runtime));
    EXPECT_OK(weir_device_open(fixture.runtime, NULL, &fixture.device));
    EXPECT_OK(weir_queue_create(fixture.device, NULL, &fixture.queue));
    return fixture;
}

static void finish(struct fixture *fixture)
{
    weir_queue_destroy(&fixture->queue);
    EXPECT_OK(weir_device_close(&fixture->device));
    EXPECT_OK(weir_close(&fixture->runtime));
}

#define own_fixture OWN(finish) struct fixture

static weir_status fail(void *user)
{
    weir_error_set(NULL);
    return WEIR_ERROR_IO;
}

WEIR_TEST(Messages, ObjectsWithoutALabel)
{
    own_fixture fixture = start();
    EXPECT_FAILURE(weir_device_close(&fixture.device), WEIR_ERROR_INVALID,
                   "the queue without a label still exists (created at ");
    EXPECT_OK(weir_queue_host_call(fixture.queue, fail, NULL));
    EXPECT_FAILURE(weir_queue_sync(fixture.queue, WEIR_FOREVER), WEIR_ERROR_IO,
                   "of queue '(no label)', a host call, failed");
    EXPECT_OK(weir_queue_recover(fixture.queue));
}

static weir_queue *labelled(struct fixture *fixture, const char *label)
{
    weir_queue *queue = NULL;
    EXPECT_OK(weir_queue_create(fixture->device, WEIR_PARAMS(weir_queue, .label = label), &queue));
    return queue;
}

WEIR_TEST(Messages, ALongLabelLeavesRoomForTheReason)
{
    char label[2000];
    own_fixture fixture = start();
    memset(label, 'x', sizeof label - 1);
    label[sizeof label - 1] = '\0';
    own_queue queue = labelled(&fixture, label);
    EXPECT_OK(weir_queue_host_call(queue, fail, NULL));
    EXPECT_FAILURE(weir_queue_sync(queue, WEIR_FOREVER), WEIR_ERROR_IO,
                   "xxx...', a host call, failed: the function returned");
    EXPECT_OK(weir_queue_recover(queue));
    EXPECT_FAILURE(weir_device_close(&fixture.device), WEIR_ERROR_INVALID, "xxx...' still exists");
}

// Messages are printed, and labels are untrusted text.
WEIR_TEST(Messages, LabelsDoNotReachTheTerminalRaw)
{
    own_fixture fixture = start();
    own_queue queue = labelled(&fixture, "a\x1b]0;b\x07\nc\xe2\x80\xae");
    EXPECT_OK(weir_queue_host_call(queue, fail, NULL));
    EXPECT_FAILURE(weir_queue_sync(queue, WEIR_FOREVER), WEIR_ERROR_IO,
                   "of queue 'a\\x1b]0;b\\x07\\nc\\u202e'");
    EXPECT_STR_EQ(weir_last_error()->object, "a\\x1b]0;b\\x07\\nc\\u202e");
    EXPECT_OK(weir_queue_recover(queue));
}

// A label that no object has yet, and a device's: neither can add a line to what is printed.
WEIR_TEST(Messages, LabelsAddNoLine)
{
    own_fixture fixture = start();
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

// So do messages of modules and of programs; the lines of a compiler's log stay lines.
WEIR_TEST(Messages, WhatModulesSayIsEscapedToo)
{
    const struct weir_error error = {.status = WEIR_ERROR_BUILD,
                                     .message = "one\n\ttwo\x1b[2J",
                                     .remedy = "three\x9b"};
    EXPECT_INT_EQ(weir_error_set(&error), WEIR_ERROR_BUILD);
    EXPECT_STR_EQ(weir_last_error()->message, "one\n\ttwo\\x1b[2J");
    EXPECT_STR_EQ(weir_last_error()->remedy, "three\\x9b");
    weir_error_set(NULL);
}

static void keep_log(void *user, weir_log_level level, const char *source, const char *message)
{
    snprintf(user, 64, "%s", message);
}

WEIR_TEST(Messages, TheLogIsEscapedToo)
{
    char logged[64] = "";
    weir_log_set(keep_log, logged, WEIR_LOG_WARNING);
    weir__log(WEIR_LOG_WARNING, "core", "one\n\ttwo");
    EXPECT_STR_EQ(logged, "one\n\ttwo");
    weir__log(WEIR_LOG_WARNING, "core", "one\n\x1b[2J");
    EXPECT_STR_EQ(logged, "one\n\\x1b[2J");
    weir_log_set(NULL, NULL, WEIR_LOG_WARNING);
}

static void expect_range(weir_status status, const char *call, const char *range)
{
    EXPECT_INT_EQ(status, WEIR_ERROR_INVALID);
    EXPECT_CONTAINS(weir_last_error()->message, call);
    EXPECT_CONTAINS(weir_last_error()->message, range);
    EXPECT_CONTAINS(weir_last_error()->message, "do not lie in a buffer of 64 bytes (created at ");
    EXPECT_CONTAINS(weir_last_error()->message, "messages_test.c:");
    EXPECT_STR_EQ(weir_last_error()->remedy,
                  "offset and size count bytes; give less, or create a larger buffer");
}

WEIR_TEST(Messages, ARangeOutsideItsBufferNamesTheCallAndTheBuffer)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .size = 64,
                                              .placement = WEIR_PLACE_HOST};
    own_fixture fixture = start();
    own_buffer buffer = NULL, *other = NULL;
    void *pointer;
    char bytes[65] = "";
    EXPECT_OK(weir_buffer_create(fixture.device, &params, &buffer));
    EXPECT_OK(weir_buffer_create(fixture.device, &params, &other));
    expect_range(weir_download(fixture.queue, bytes, buffer, 0, 65),
                 "weir_download: src: ", "65 bytes at offset 0 ");
    expect_range(weir_upload(fixture.queue, buffer, 1, bytes, 64),
                 "weir_upload: dst: ", "64 bytes at offset 1 ");
    expect_range(weir_queue_copy(fixture.queue, buffer, 0, other, 60, 8),
                 "copy: src: ", "8 bytes at offset 60 ");
    expect_range(weir_queue_fill(fixture.queue, buffer, 0, 65, "", 1),
                 "fill: dst: ", "65 bytes at offset 0 ");
    expect_range(weir_host_begin(buffer, 65, 0, WEIR_ACCESS_READ, &pointer),
                 "weir_host_begin: ", "0 bytes at offset 65 ");
    weir_buffer_destroy(&other);
}

// The load report as data and as text.

static const struct weir_load_entry missing = {
    .module = "cuda",
    .path = "lib/weir/weir_cuda.so",
    .outcome = WEIR_LOAD_MISSING,
    .reason = "there is no such file",
    .abi_wanted = 1,
};

static const struct weir_load_entry used = {
    .module = "null",
    .path = "lib/weir/weir_null.so",
    .outcome = WEIR_LOAD_USED,
    .abi_wanted = 1,
    .abi_seen = 1,
    .version = "0.1.0",
};

WEIR_TEST(LoadReport, Text)
{
    own_load_report report = weir__load_report_create();

    weir__load_report_explain(report, "weir.ini:3", NULL);
    weir__load_report_add(report, &missing);
    weir__load_report_add(report, &used);
    weir__load_report_set_driver(report, "driver 7", 2);
    weir__load_report_explain(report, NULL, "install the CUDA module");
    EXPECT_STR_EQ(
        weir_load_report_text(report),
        "modules, requested by weir.ini:3:\n"
        "  cuda: missing, lib/weir/weir_cuda.so\n"
        "    there is no such file\n"
        "  null: used, lib/weir/weir_null.so\n"
        "    module ABI 1, this library's is 1; version 0.1.0; driver driver 7; 2 devices\n"
        "what to do: install the CUDA module\n");
    EXPECT_STR_EQ(weir_load_report_origin(report), "weir.ini:3");
    EXPECT_STR_EQ(weir_load_report_remedy(report), "install the CUDA module");
}

WEIR_TEST(LoadReport, WhatAModuleSaysAboutItself)
{
    static const char *const pairs[] = {"summary", "Runs nothing.", "needs", "libmade", NULL};
    static const char *const half[] = {"summary", NULL};
    own_load_report report = weir__load_report_create();
    struct weir_load_entry talks = used;

    talks.about = pairs;
    weir__load_report_add(report, &talks);
    talks.about = half;
    weir__load_report_add(report, &talks);
    EXPECT_STR_EQ(weir_load_report_entry(report, 0)->about[3], "libmade");
    EXPECT_STR_EQ(weir_load_report_text(report),
                  "modules:\n"
                  "  null: used, lib/weir/weir_null.so\n"
                  "    module ABI 1, this library's is 1; version 0.1.0\n"
                  "    summary: Runs nothing.\n"
                  "    needs: libmade\n"
                  "  null: used, lib/weir/weir_null.so\n"
                  "    module ABI 1, this library's is 1; version 0.1.0\n");
}
