// Operations of an unknown kind, which the plugin `strange` makes from each fill, are refused with
// a sentence, and nothing else is affected. Run once for each backend; the environment names it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/plugins/rig.h"

static bool start(struct rig *rig, const char *plugins)
{
    *rig = (struct rig){NULL};
    EXPECT_OK(rig_open(plugins, "", &rig->runtime));
    return rig->runtime && IS_OK(rig_create(rig));
}

static weir_status fill(struct rig *rig)
{
    const uint32_t pattern = 7;
    return weir_queue_fill(rig->up, rig->memory, 0, 64, &pattern, sizeof pattern);
}

static void expect_copies(struct rig *rig, weir_queue *queue)
{
    static const char sent[] = "still here";
    char back[sizeof sent] = "";
    EXPECT_OK(weir_upload(queue, rig->memory, 0, sent, sizeof sent));
    EXPECT_OK(weir_download(queue, back, rig->memory, 0, sizeof sent));
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
    expect_copies(&rig, rig.up);
    EXPECT_FAILURE(fill(&rig), WEIR_ERROR_UNSUPPORTED, message);
    EXPECT_CONTAINS(weir_last_error()->remedy, "leave out the plugin that makes such operations");
    // The queue has failed, and no other.
    EXPECT_FAILURE(weir_queue_sync(rig.up, GUARD_NS), WEIR_ERROR_UNSUPPORTED, message);
    expect_copies(&rig, rig.down);
    EXPECT_OK(weir_queue_recover(rig.up));
    expect_copies(&rig, rig.up);
    rig_finish(&rig);
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

// After a host call the library keeps operations until the backend can have them, and cannot
// keep one that may point to what it does not know.
WEIR_TEST(Kinds, AHeldQueueRefusesOneThatTheLibraryDoesNotKnow)
{
    struct rig_gate gate = RIG_GATE_CLOSED;
    struct rig rig;
    ASSERT_TRUE(start(&rig, "strange"));
    EXPECT_OK(weir_queue_host_call(rig.up, rig_pass_gate, &gate));
    EXPECT_FAILURE(fill(&rig), WEIR_ERROR_UNSUPPORTED,
                   "a plugin made an operation of kind 257, which this library cannot hold");
    EXPECT_CONTAINS(weir_last_error()->remedy, "leave out the plugin, or update the library");
    expect_copies(&rig, rig.down);
    rig_open_gate(&gate);
    EXPECT_INT_EQ(weir_queue_sync(rig.up, GUARD_NS), WEIR_ERROR_UNSUPPORTED);
    EXPECT_OK(weir_queue_recover(rig.up));
    expect_copies(&rig, rig.up);
    rig_finish(&rig);
}
