// Chains of plugins before the null backend, observed with the plugin `count`
// (count/count.c), whose links send their counts to the log when they close.

#include "core/object/device.h"
#include "tests/plugins/rig.h"

// One count of a link; 0 if its line does not have it, -1 for a link that was
// never closed.
static int64_t count_of(const char *label, unsigned link, const char *name)
{
    char key[128];
    snprintf(key, sizeof key, "label=%s link=%u ", label, link);
    const char *line = strstr(rig_logged(), key);
    if (!line)
        return -1;
    snprintf(key, sizeof key, " %s=", name);
    const char *found = strstr(line, key);
    return found && found < strchr(line, '\n') ? strtoll(found + strlen(key), NULL, 10) : 0;
}

// A fill, a copy and one of nothing, a launch, a host call, a record, a wait for an event of the same queue, a
// sync, which records, and one use by the host. All work is complete at the end.
static void work(struct rig *rig)
{
    weir_queue *queue = rig->up;
    weir_buffer *device = rig->memory;
    weir_buffer *host = rig->frame;
    const uint32_t pattern = 0x03020100u;
    void *pointer;

    EXPECT_OK(weir_queue_fill(queue, device, 0, 256, &pattern, sizeof pattern));
    EXPECT_OK(weir_queue_copy(queue, host, 0, device, 0, 256));
    EXPECT_OK(weir_queue_copy(queue, host, 128, device, 0, 0));
    EXPECT_OK(RIG_SPIN(queue, rig));
    EXPECT_OK(weir_queue_host_call(queue, rig_count_call, &rig->calls));
    EXPECT_OK(weir_queue_after(queue, queue));
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));

    ASSERT_OK(weir_host_begin(host, 0, 256, WEIR_ACCESS_READ, &pointer));
    EXPECT_INT_EQ(((const unsigned char *)pointer)[255], 3);
    EXPECT_OK(weir_host_end(host, 0, 256, WEIR_ACCESS_READ));
}

static void expect_work_counted(const char *label, unsigned link, int64_t times)
{
    static const struct {
        const char *name;
        int64_t once;
        int64_t each;
    } rows[] = {
        {"open", 1, 0},
        {"device_create", 1, 0},
        {"device_destroy", 1, 0},
        {"device_limits", 1, 0},
        {"queue_create", 2, 0},
        {"queue_destroy", 2, 0},
        {"buffer_create", 2, 0},
        {"buffer_destroy", 2, 0},
        {"program_create", 1, 0},
        {"program_destroy", 1, 0},
        {"kernel_create", 1, 0},
        {"kernel_destroy", 1, 0},
        {"implied", 0, 1},
        {"empty", 0, 1},
        {"queue_submit", 0, 8},
        {"mixed", 0, 0},
        // Begin and end of an access and of a host call, and the sync's event; the end of the queue that was used.
        {"host_note", 1, 5},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir_test_note("%s of link %u of chain '%s'", rows[i].name, link, label);
        EXPECT_INT_EQ(count_of(label, link, rows[i].name), rows[i].once + rows[i].each * times);
    }
    weir_test_note(NULL);
}

WEIR_TEST(Chain, TwoChainsAtOnce)
{
    struct rig first, second;

    ASSERT_TRUE(rig_begin(&first, "count", "[count]\nlabel = A"));
    ASSERT_TRUE(rig_begin(&second, "count, count, count", "[count]\nlabel = B"));
    for (size_t i = 0; i < 3; i++) {
        work(&first);
        work(&second);
        work(&second);
    }
    rig_finish(&first);
    work(&second);
    rig_finish(&second);
    EXPECT_UINT_EQ(rig_count_logged(" closed\n"), 4);
    expect_work_counted("A", 0, 3);
    for (unsigned link = 0; link < 3; link++)
        expect_work_counted("B", link, 7);
}

static weir_status create_objects(struct rig *rig)
{
    RIG_TRY(rig_create(rig));
    return rig_create_kernel(rig);
}

// The calls that each of three links has seen after the create of `what` failed
// in link 1.
static void expect_rolled_back(const char *what)
{
    char section[128];
    char create[64];
    char destroy[64];
    struct rig rig = {NULL};

    weir_test_note("the create of a %s fails", what);
    snprintf(section, sizeof section, "[count]\nfail_create = %s\nfail_link = 1", what);
    snprintf(create, sizeof create, "%s_create", what);
    snprintf(destroy, sizeof destroy, "%s_destroy", what);
    ASSERT_OK(rig_open("count, count, count", section, &rig.runtime));
    EXPECT_FAILURE(create_objects(&rig), WEIR_ERROR_DEVICE, "link 1 was asked to fail");
    EXPECT_CONTAINS(weir_last_error()->message, what);
    rig_finish(&rig);
    for (unsigned link = 0; link < 3; link++) {
        EXPECT_INT_EQ(count_of("", link, create), link < 2);
        EXPECT_INT_EQ(count_of("", link, destroy), link < 1);
        EXPECT_INT_EQ(count_of("", link, "mixed"), 0);
    }
    weir_test_note(NULL);
}

WEIR_TEST(Chain, RollsBackWhatALinkRefuses)
{
    static const char *const kinds[] = {"device", "queue", "buffer", "program", "kernel"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        expect_rolled_back(kinds[i]);
}

// The null backend refuses a signature that a macro makes, after both plugins have forwarded it.
RIG_TEST(Chain, RollsBackWhatTheBackendRefuses, "count, count", "")
{
    weir_program *program;
    EXPECT_INT_EQ(weir_program_create(rig->device,
                                      WEIR_PARAMS(weir_program, .source = "#define NONE (void)\n"
                                                                          "kernel void f NONE {}"),
                                      &program),
                  WEIR_ERROR_BUILD);
    EXPECT_NULL(program);
    rig_finish(rig);
    for (unsigned link = 0; link < 2; link++) {
        EXPECT_INT_EQ(count_of("", link, "program_create"), 2);
        EXPECT_INT_EQ(count_of("", link, "program_destroy"), 2);
        EXPECT_INT_EQ(count_of("", link, "mixed"), 0);
    }
}

// Chains open from the backend outwards: link 2 is open when link 1 fails.
WEIR_TEST(Chain, ClosesWhatWasOpenWhenAnOpenFails)
{
    weir_runtime *runtime;

    EXPECT_INT_EQ(rig_open("count, count, count", "[count]\nfail_create = open\nfail_link = 1",
                           &runtime),
                  WEIR_ERROR_DEVICE);
    EXPECT_NULL(runtime);
    EXPECT_CONTAINS(weir_last_error()->message, "link 1 was asked to fail its open");
    EXPECT_STR_EQ(rig_logged(), "label= link=2 open=1 closed\n");
}

RIG_TEST(Chain, WithoutPluginsThereIsNothingInTheWay, "", "")
{
    work(rig);
    EXPECT_UINT_EQ(rig->device->chain->count, 2); // core's own link and the backend
    EXPECT_FALSE(rig->device->chain->host_notes);
    EXPECT_UINT_EQ(weir_load_report_count(weir_runtime_report(rig->runtime)), 1);
}

// Plugins forward an operation of a kind that they do not know, and take it for nothing else; the backend refuses it,
// with a sentence, and so does the library while a host call holds the queue. The plugin `strange` makes one of a fill.
WEIR_TEST(Chain, AKindThatIsNotKnown)
{
    static const char sent[] = "still here";
    char back[sizeof sent] = "";
    own_rig rig = {0};

    ASSERT_TRUE(rig_begin(&rig, "strange, trace, count, perturb", "[trace]\nfile = /dev/null"));
    EXPECT_FAILURE(weir_queue_fill(rig.up, rig.memory, 0, 64, "x", 1), WEIR_ERROR_UNSUPPORTED,
                   "the backend 'null' does not know operations of kind 257");
    EXPECT_INT_EQ(weir_queue_sync(rig.up, GUARD_NS), WEIR_ERROR_UNSUPPORTED);
    EXPECT_OK(weir_upload(rig.down, rig.memory, 0, sent, sizeof sent));
    EXPECT_OK(weir_queue_recover(rig.up));
    EXPECT_OK(weir_download(rig.up, back, rig.memory, 0, sizeof sent));
    EXPECT_STR_EQ(back, sent);
    rig_finish(&rig);

    ASSERT_TRUE(rig_begin(&rig, "strange", ""));
    EXPECT_OK(weir_queue_host_call(rig.up, gate_pass, &rig.gate));
    EXPECT_FAILURE(weir_queue_fill(rig.up, rig.memory, 0, 64, "x", 1), WEIR_ERROR_UNSUPPORTED,
                   "a plugin made an operation of kind 257, which this library cannot hold");
    gate_open(&rig.gate);
    EXPECT_INT_EQ(weir_queue_sync(rig.up, GUARD_NS), WEIR_ERROR_UNSUPPORTED);
}
