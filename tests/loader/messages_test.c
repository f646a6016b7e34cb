// The messages for common mistakes, on any backend: the call that the user wrote, and the
// remedy, also for objects without a label.
#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

#include "core/support/log.h"
#include "tests/support/test.h"

struct fixture {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
};

static bool start(struct fixture *fixture)
{
    *fixture = (struct fixture){0};
    const struct weir_open_params params = {
        .struct_size = sizeof params,
        .config_path = "",
        .backend = "null",
        .plugins = "",
        .module_path = weir_test_runfile("backends/null"),
    };
    EXPECT_INT_EQ(weir_open(&params, &fixture->runtime), WEIR_OK);
    if (!fixture->runtime)
        return false;
    EXPECT_INT_EQ(weir_device_open(fixture->runtime, NULL, &fixture->device), WEIR_OK);
    EXPECT_INT_EQ(weir_queue_create(fixture->device, NULL, &fixture->queue), WEIR_OK);
    return fixture->queue != NULL;
}

static void finish(struct fixture *fixture)
{
    weir_queue_destroy(&fixture->queue);
    EXPECT_INT_EQ(weir_device_close(&fixture->device), WEIR_OK);
    EXPECT_INT_EQ(weir_close(&fixture->runtime), WEIR_OK);
}

static weir_status fail(void *user)
{
    (void)user;
    weir_error_set(NULL);
    return WEIR_ERROR_IO;
}

WEIR_TEST(Messages, ObjectsWithoutALabel)
{
    struct fixture fixture;
    if (!start(&fixture))
        return;
    EXPECT_INT_EQ(weir_device_close(&fixture.device), WEIR_ERROR_INVALID);
    EXPECT_CONTAINS(weir_last_error_text(), "a queue without a label still exists");
    EXPECT_INT_EQ(weir_queue_host_call(fixture.queue, fail, NULL), WEIR_OK);
    EXPECT_INT_EQ(weir_queue_sync(fixture.queue, WEIR_FOREVER), WEIR_ERROR_IO);
    EXPECT_CONTAINS(weir_last_error_text(), "of queue '(no label)', a host call, failed");
    EXPECT_INT_EQ(weir_queue_recover(fixture.queue), WEIR_OK);
    finish(&fixture);
}

static weir_queue *labelled(struct fixture *fixture, const char *label)
{
    const struct weir_queue_params params = {.struct_size = sizeof params, .label = label};
    weir_queue *queue = NULL;
    EXPECT_INT_EQ(weir_queue_create(fixture->device, &params, &queue), WEIR_OK);
    return queue;
}

WEIR_TEST(Messages, ALongLabelLeavesRoomForTheReason)
{
    char label[2000];
    struct fixture fixture;
    if (!start(&fixture))
        return;
    memset(label, 'x', sizeof label - 1);
    label[sizeof label - 1] = '\0';
    weir_queue *queue = labelled(&fixture, label);
    EXPECT_INT_EQ(weir_queue_host_call(queue, fail, NULL), WEIR_OK);
    EXPECT_INT_EQ(weir_queue_sync(queue, WEIR_FOREVER), WEIR_ERROR_IO);
    EXPECT_CONTAINS(weir_last_error_text(), "xxx...', a host call, failed: the function returned");
    EXPECT_INT_EQ(weir_queue_recover(queue), WEIR_OK);
    EXPECT_INT_EQ(weir_device_close(&fixture.device), WEIR_ERROR_INVALID);
    EXPECT_CONTAINS(weir_last_error_text(), "xxx...' still exists");
    weir_queue_destroy(&queue);
    finish(&fixture);
}

WEIR_TEST(Messages, AllThatIsLeftIsNamed)
{
    enum {
        MANY = 40
    };
    struct fixture fixture;
    weir_queue *many[MANY], *named = NULL;
    if (!start(&fixture))
        return;
    named = labelled(&fixture, "upload");
    EXPECT_INT_EQ(weir_device_close(&fixture.device), WEIR_ERROR_INVALID);
    EXPECT_CONTAINS(weir_last_error_text(), "the queue 'upload' still exists (created at ");
    EXPECT_CONTAINS(weir_last_error_text(), "); so do a queue without a label (");
    EXPECT_CONTAINS(weir_last_error_text(), "destroy them first");
    for (size_t i = 0; i < MANY; i++)
        many[i] = labelled(&fixture, "one of forty");
    EXPECT_INT_EQ(weir_device_close(&fixture.device), WEIR_ERROR_INVALID);
    EXPECT_CONTAINS(weir_last_error_text(), "the queue 'one of forty' (");
    EXPECT_CONTAINS(weir_last_error_text(), " more");
    for (size_t i = 0; i < MANY; i++)
        weir_queue_destroy(&many[i]);
    weir_queue_destroy(&named);
    finish(&fixture);
}

WEIR_TEST(Messages, AFailedQueueNamesItsRecovery)
{
    struct fixture fixture;
    if (!start(&fixture))
        return;
    EXPECT_INT_EQ(weir_queue_host_call(fixture.queue, fail, NULL), WEIR_OK);
    EXPECT_INT_EQ(weir_queue_sync(fixture.queue, WEIR_FOREVER), WEIR_ERROR_IO);
    EXPECT_INT_EQ(weir_queue_host_call(fixture.queue, fail, NULL), WEIR_ERROR_IO);
    EXPECT_CONTAINS(weir_last_error_text(), "a host call, failed: the function returned");
    EXPECT_CONTAINS(weir_last_error_text(), "weir_queue_recover() lets the queue take work again");
    EXPECT_INT_EQ(weir_queue_recover(fixture.queue), WEIR_OK);
    finish(&fixture);
}

// Messages are printed, and labels are untrusted text.
WEIR_TEST(Messages, LabelsDoNotReachTheTerminalRaw)
{
    struct fixture fixture;
    if (!start(&fixture))
        return;
    weir_queue *queue = labelled(&fixture, "a\x1b]0;b\x07\nc\xe2\x80\xae");
    EXPECT_INT_EQ(weir_queue_host_call(queue, fail, NULL), WEIR_OK);
    EXPECT_INT_EQ(weir_queue_sync(queue, WEIR_FOREVER), WEIR_ERROR_IO);
    EXPECT_CONTAINS(weir_last_error_text(), "of queue 'a\\x1b]0;b\\x07\\nc\\u202e'");
    EXPECT_STR_EQ(weir_last_error()->object, "a\\x1b]0;b\\x07\\nc\\u202e");
    EXPECT_INT_EQ(weir_queue_recover(queue), WEIR_OK);
    weir_queue_destroy(&queue);
    finish(&fixture);
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
    (void)level;
    (void)source;
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

WEIR_TEST(Messages, NameTheCallThatWasMade)
{
    const struct weir_event none = {0};
    struct fixture fixture;
    uint64_t time_ns;
    size_t index;
    if (!start(&fixture))
        return;
    EXPECT_INT_EQ(weir_event_time_ns(none, &time_ns), WEIR_ERROR_INVALID);
    EXPECT_CONTAINS(weir_last_error_text(), "weir_event_time_ns: the event is zero");
    EXPECT_INT_EQ(weir_event_error(none), WEIR_ERROR_INVALID);
    EXPECT_CONTAINS(weir_last_error_text(), "weir_event_error: the event is zero");
    EXPECT_INT_EQ(weir_event_sync_any(&none, 1, 0, &index), WEIR_ERROR_INVALID);
    EXPECT_CONTAINS(weir_last_error_text(), "weir_event_sync_any: the event is zero");
    EXPECT_INT_EQ(weir_queue_sync(NULL, 0), WEIR_ERROR_INVALID);
    EXPECT_CONTAINS(weir_last_error_text(), "weir_queue_sync: queue is NULL");
    finish(&fixture);
}

WEIR_TEST(Messages, ABufferThatIsGone)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params, .size = 64};
    struct fixture fixture;
    weir_buffer *buffer = NULL;
    if (!start(&fixture))
        return;
    EXPECT_INT_EQ(weir_buffer_create(fixture.device, &params, &buffer), WEIR_OK);
    weir_buffer_destroy(&buffer);
    EXPECT_INT_EQ(weir_queue_fill(fixture.queue, buffer, 0, 64, "", 1), WEIR_ERROR_INVALID);
    EXPECT_CONTAINS(weir_last_error_text(), "dst is no buffer (NULL); create it first; destroying "
                                            "it sets the pointer to NULL");
    finish(&fixture);
}
