// Operations of an unknown kind, which the plugin `strange` makes from each fill, are refused with
// a sentence, and nothing else is affected. Run once for each backend; the environment names it.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "tests/support/test.h"

#define GUARD_NS (UINT64_C(60) * 1000000000u)

struct rig {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_queue *other;
    weir_buffer *buffer;
};

static bool start(struct rig *rig, const char *plugins)
{
    const char *section = getenv("WEIR_TEST_SECTION");
    const struct weir_queue_params queue = {.struct_size = sizeof queue, .label = "queue"};
    const struct weir_buffer_params buffer = {.struct_size = sizeof buffer, .size = 64};
    *rig = (struct rig){NULL};
    if (weir_open(WEIR_PARAMS(weir_open, .config_path = "test.ini",
                              .config_text = section ? section : "", .plugins = plugins),
                  &rig->runtime) == WEIR_OK &&
        weir_device_open(rig->runtime, NULL, &rig->device) == WEIR_OK &&
        weir_queue_create(rig->device, &queue, &rig->queue) == WEIR_OK &&
        weir_queue_create(rig->device, &queue, &rig->other) == WEIR_OK &&
        weir_buffer_create(rig->device, &buffer, &rig->buffer) == WEIR_OK)
        return true;
    weir_test_fail(__FILE__, __LINE__, "%s", weir_last_error_text());
    return false;
}

static void finish(struct rig *rig)
{
    weir_buffer_destroy(&rig->buffer);
    weir_queue_destroy(&rig->other);
    weir_queue_destroy(&rig->queue);
    EXPECT_OK(weir_device_close(&rig->device));
    EXPECT_OK(weir_close(&rig->runtime));
}

static weir_status fill(struct rig *rig)
{
    const uint32_t pattern = 7;
    return weir_queue_fill(rig->queue, rig->buffer, 0, 64, &pattern, sizeof pattern);
}

static void expect_copies(struct rig *rig, weir_queue *queue)
{
    static const char sent[] = "still here";
    char back[sizeof sent] = "";
    EXPECT_OK(weir_upload(queue, rig->buffer, 0, sent, sizeof sent));
    EXPECT_OK(weir_download(queue, back, rig->buffer, 0, sizeof sent));
    EXPECT_STR_EQ(back, sent);
}

static void expect_refused_by_backend(const char *plugins)
{
    char message[128];
    struct rig rig;
    weir_test_note("plugins %s", plugins);
    ASSERT_TRUE(start(&rig, plugins));
    snprintf(message, sizeof message, "the backend '%s' does not know operations of kind 257",
             weir_runtime_backend(rig.runtime));
    expect_copies(&rig, rig.queue);
    EXPECT_FAILURE(fill(&rig), WEIR_ERROR_UNSUPPORTED, message);
    EXPECT_CONTAINS(weir_last_error()->remedy, "leave out the plugin that makes such operations");
    // The queue has failed, and no other.
    EXPECT_FAILURE(weir_queue_sync(rig.queue, GUARD_NS), WEIR_ERROR_UNSUPPORTED, message);
    expect_copies(&rig, rig.other);
    EXPECT_OK(weir_queue_recover(rig.queue));
    expect_copies(&rig, rig.queue);
    finish(&rig);
    weir_test_note(NULL);
}

WEIR_TEST(Kinds, TheBackendRefusesOneThatItDoesNotKnow)
{
    expect_refused_by_backend("strange");
}

static bool has_line(const char *path, const char *part, const char *other)
{
    char line[4096];
    bool found = false;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        found = found || (strstr(line, part) && strstr(line, other));
    if (file)
        fclose(file);
    return found;
}

// Plugins forward what they do not know, and take it for nothing else.
WEIR_TEST(Kinds, PluginsForwardOneThatTheyDoNotKnow)
{
    char path[512];
    snprintf(path, sizeof path, "%s/kinds.json", weir_test_temp_dir());
    setenv("WEIR_TRACE_FILE", path, 1);
    expect_refused_by_backend("strange, trace, count, perturb");
    unsetenv("WEIR_TRACE_FILE");
    EXPECT_TRUE(has_line(path, "\"weir.failed\":true", "\"weir.kind\":\"operation\""));
    EXPECT_FALSE(has_line(path, "\"weir.failed\":true", "\"weir.kind\":\"copy\""));
}

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void set_gate(bool open)
{
    pthread_mutex_lock(&gate.lock);
    gate.open = open;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static weir_status pass_gate(void *user)
{
    pthread_mutex_lock(&gate.lock);
    while (!gate.open)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
    return WEIR_OK;
}

// After a host call the library keeps operations until the backend can have them, and cannot
// keep one that may point to what it does not know.
WEIR_TEST(Kinds, AHeldQueueRefusesOneThatTheLibraryDoesNotKnow)
{
    struct rig rig;
    ASSERT_TRUE(start(&rig, "strange"));
    set_gate(false);
    EXPECT_OK(weir_queue_host_call(rig.queue, pass_gate, NULL));
    EXPECT_FAILURE(fill(&rig), WEIR_ERROR_UNSUPPORTED,
                   "a plugin made an operation of kind 257, which this library cannot hold");
    EXPECT_CONTAINS(weir_last_error()->remedy, "leave out the plugin, or update the library");
    expect_copies(&rig, rig.other);
    set_gate(true);
    EXPECT_INT_EQ(weir_queue_sync(rig.queue, GUARD_NS), WEIR_ERROR_UNSUPPORTED);
    EXPECT_OK(weir_queue_recover(rig.queue));
    expect_copies(&rig, rig.queue);
    finish(&rig);
}
