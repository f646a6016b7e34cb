// The plugin `perturb`: nothing hangs, though nothing asks for the work; and what its settings and
// variables say. Run once for each backend; the environment names it.
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/plugins/perturb_rig.h"
#include "tests/support/own.h"
#include "tests/support/test.h"

static void fill(struct rig *work, weir_queue *queue)
{
    const uint32_t pattern = 7;
    EXPECT_OK(weir_queue_fill(queue, work->frame, 0, 64, &pattern, sizeof pattern));
}

// The program waits for what a host call sets, and asks Weir for nothing.
WORK_TEST(PerturbIdle, HostCallRunsUnasked, "[perturb]\nidle = 5\n")
{
    fill(work, work->up);
    EXPECT_OK(weir_queue_host_call(work->up, rig_open_gate, &work->gate));
    EXPECT_OK(rig_pass_gate(&work->gate));
    rig_finish(work);
    EXPECT_CONTAINS(rig_logged(), "operations ran because the program asked for nothing");
}

WORK_TEST(PerturbIdle, DescriptorBecomesReadable, "[perturb]\nidle = 5\n")
{
    struct weir_event event;
    int fd = -1;
    fill(work, work->up);
    EXPECT_OK(weir_queue_record(work->up, &event));
    EXPECT_OK(weir_event_fd(event, &fd));
    EXPECT_INT_EQ(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 60000), 1);
    close(fd);
}

// A host call waits for what another queue's host call sets: each may be picked first.
WEIR_TEST(PerturbIdle, HostCallsThatWaitForEachOther)
{
    for (unsigned seed = 1; seed <= 4; seed++) {
        struct rig work;
        char text[64];
        snprintf(text, sizeof text, "[perturb]\nidle = 5\nseed = %u\n", seed);
        begin(&work, text);
        EXPECT_OK(weir_queue_host_call(work.up, rig_pass_gate, &work.gate));
        EXPECT_OK(weir_queue_host_call(work.down, rig_open_gate, &work.gate));
        EXPECT_OK(weir_queue_sync(work.up, GUARD_NS));
        EXPECT_OK(weir_queue_sync(work.down, GUARD_NS));
        rig_finish(&work);
    }
}

// The host call of a graph waits for what the program does after it has submitted: no submit waits for it.
WEIR_TEST(PerturbIdle, SubmitWaitsForNoHostCallOfAGraph)
{
    for (unsigned seed = 1; seed <= 16; seed++) {
        struct rig work;
        weir_graph *graph = NULL;
        char text[64];
        snprintf(text, sizeof text, "[perturb]\nidle = 60000\nseed = %u\n", seed);
        begin(&work, text);
        EXPECT_OK(weir_capture_begin(work.up));
        fill(&work, work.up);
        EXPECT_OK(weir_queue_host_call(work.up, rig_pass_gate, &work.gate));
        EXPECT_OK(weir_capture_end(work.up, NULL, &graph));
        EXPECT_OK(weir_queue_graph(work.up, graph));
        fill(&work, work.up);
        fill(&work, work.down);
        EXPECT_OK(rig_open_gate(&work.gate));
        EXPECT_OK(weir_queue_sync(work.up, GUARD_NS));
        weir_graph_destroy(&graph);
        rig_finish(&work);
    }
}

// A launch after a host call that has not ended is handed on by an update of its graph, and keeps no other
// operation waiting.
WORK_TEST(PerturbIdle, LaunchBehindAHostCallDelaysNoOtherQueue,
          "[perturb]\nidle = 1000\nmode = late\n")
{
    const uint32_t pattern = 8;
    own_graph graph = NULL;
    EXPECT_OK(weir_capture_begin(work->up));
    fill(work, work->up);
    EXPECT_OK(weir_capture_end(work->up, NULL, &graph));
    EXPECT_OK(weir_queue_host_call(work->up, rig_pass_gate, &work->gate));
    EXPECT_OK(weir_queue_graph(work->up, graph));
    EXPECT_OK(weir_graph_set_fill(graph, 0, work->frame, 0, 64, &pattern, sizeof pattern));
    fill(work, work->down);
    EXPECT_OK(weir_queue_sync(work->down, GUARD_NS / 4));
    EXPECT_OK(rig_open_gate(&work->gate));
    EXPECT_OK(weir_queue_sync(work->up, GUARD_NS));
}

WORK_TEST(PerturbIdle, TimeoutBeforeTheEnd, "")
{
    EXPECT_OK(weir_queue_host_call(work->up, rig_pass_gate, &work->gate));
    EXPECT_INT_EQ(weir_queue_sync(work->up, WEIR_MS(1)), WEIR_TIMEOUT);
    EXPECT_OK(rig_open_gate(&work->gate));
    EXPECT_OK(weir_queue_sync(work->up, GUARD_NS));
}

// Work that is not asked for is done when its queue is destroyed and the device is closed.
WORK_TEST(PerturbIdle, CloseWithPendingWork, "[perturb]\nidle = 60000\n")
{
    fill(work, work->up);
    EXPECT_OK(weir_queue_host_call(work->up, rig_open_gate, &work->gate));
    fill(work, work->down);
    rig_finish(work);
    EXPECT_TRUE(work->gate.open);
    EXPECT_UINT_EQ(rig_count_logged("\n"), 1); // that of the seed
}

// Whether the first fill of the buffer has run.
static bool is_filled(struct rig *work)
{
    void *memory = NULL;
    uint32_t word = 0;
    EXPECT_OK(weir_host_begin(work->frame, 0, sizeof word, WEIR_ACCESS_READ, &memory));
    if (memory)
        memcpy(&word, memory, sizeof word);
    EXPECT_OK(weir_host_end(work->frame, 0, sizeof word, WEIR_ACCESS_READ));
    return word == 7;
}

static void clear(struct rig *work)
{
    void *memory = NULL;
    EXPECT_OK(weir_host_begin(work->frame, 0, 64, WEIR_ACCESS_WRITE, &memory));
    if (memory)
        memset(memory, 0, 64);
    EXPECT_OK(weir_host_end(work->frame, 0, 64, WEIR_ACCESS_WRITE));
}

static void fill_often(const char *section, bool expect_filled)
{
    struct rig work;
    begin(&work, section);
    clear(&work);
    for (int i = 0; i < 4; i++)
        fill(&work, work.up);
    EXPECT_FALSE(is_filled(&work));
    fill(&work, work.up);
    EXPECT_TRUE(is_filled(&work) == expect_filled);
    // Of several host calls only the first could run, and a submit runs none.
    for (int i = 0; i < 16; i++)
        EXPECT_OK(weir_queue_host_call(work.down, rig_open_gate, &work.gate));
    EXPECT_FALSE(work.gate.open);
    rig_finish(&work);
    EXPECT_TRUE(work.gate.open);
}

// With a small limit operations run though nothing asks for them.
WEIR_TEST(PerturbIdle, LimitOfPendingOperations)
{
    fill_often("[perturb]\nmode = late\npending = 4\nidle = 60000\n", true);
    fill_often("[perturb]\nmode = late\nidle = 60000\n", false);
}

// A query runs what the event needs, step by step.
WORK_TEST(PerturbIdle, Query, "[perturb]\nmode = late\nidle = 60000\n")
{
    struct weir_event event;
    unsigned count = 0;
    for (int i = 0; i < 10; i++)
        fill(work, work->up);
    EXPECT_OK(weir_queue_record(work->up, &event));
    while (weir_event_query(event) == WEIR_NOT_READY && count < 1000)
        count++;
    EXPECT_INT_EQ(count, 10);
}

struct asked {
    struct weir_event event;
    weir_status statuses[2];
};

static weir_status ask(void *user)
{
    struct asked *asked = user;
    for (int i = 0; i < 2; i++)
        asked->statuses[i] = weir_event_query(asked->event);
    return WEIR_OK;
}

// A query in a host call runs nothing: that would wait for the host call's own end.
WORK_TEST(PerturbIdle, QueryInAHostCall, "[perturb]\nmode = late\nidle = 60000\n")
{
    struct asked asked = {.statuses = {WEIR_OK, WEIR_OK}};
    EXPECT_OK(weir_queue_host_call(work->up, ask, &asked));
    EXPECT_OK(weir_queue_record(work->up, &asked.event));
    fill(work, work->down);
    EXPECT_OK(weir_queue_sync(work->up, GUARD_NS / 4));
    for (int i = 0; i < 2; i++)
        EXPECT_INT_EQ(asked.statuses[i], WEIR_NOT_READY);
}

// Settings.

static void expect_refused(const char *section, const char *message, const char *remedy)
{
    weir_runtime *runtime = NULL;
    weir_test_note("%s", section);
    EXPECT_FAILURE(rig_open("perturb", section, &runtime), WEIR_ERROR_CONFIG, message);
    EXPECT_CONTAINS(weir_last_error()->remedy, remedy);
    WEIR_IGNORE(weir_close(&runtime));
    weir_test_note(NULL);
}

WEIR_TEST(PerturbSettings, AreRefused)
{
    static const char pair[] = "[perturb]\nmode = pair\n";
    expect_refused("[perturb]\nmode = radnom\n", "radnom", "random");
    expect_refused("[perturb]\nseed = x\n", "'x'", "");
    expect_refused(pair, "mode pair has no pair of lines: ''", "name two lines");
    expect_refused("[perturb]\nmode = pair\npair = a.c:1\n", "'a.c:1'", "name two lines");
    expect_refused("[perturb]\nmode = pair\npair = a.c:1, b.c\n", "'a.c:1, b.c'", "two lines");
    expect_refused("[perturb]\nmode = pair\npair = a.c:0, b.c:2\n", "'a.c:0", "two lines");
    expect_refused("[perturb]\nmode = pair\npair = a.c:1, b.c:2x\n", "b.c:2x", "two lines");
}

WEIR_TEST(PerturbSettings, TwiceIsRefused)
{
    weir_runtime *runtime = NULL;
    EXPECT_FAILURE(rig_open("perturb, perturb", "", &runtime), WEIR_ERROR_CONFIG,
                   "the plugin perturb is twice in the chain");
    EXPECT_CONTAINS(weir_last_error()->remedy, "list it once");
    WEIR_IGNORE(weir_close(&runtime));
}

WEIR_TEST(PerturbSettings, PluginsAfterItAreTold)
{
    weir_runtime *runtime = NULL;
    EXPECT_OK(rig_open("perturb, trace", "", &runtime));
    EXPECT_CONTAINS(rig_logged(), "trace comes after perturb in the chain and sees no waits");
    EXPECT_OK(weir_close(&runtime));
    EXPECT_OK(rig_open("trace, perturb", "", &runtime));
    EXPECT_STR_EQ(rig_logged(), "");
    EXPECT_OK(weir_close(&runtime));
}

WEIR_TEST(PerturbSettings, Report)
{
    char path[512];
    char text[512] = "";
    struct rig work;
    char section[600];
    snprintf(path, sizeof path, "%s/report", weir_test_temp_dir());
    snprintf(section, sizeof section, "[perturb]\nseed = 3\nreport = %s\n", path);
    begin(&work, section);
    fill(&work, work.up);
    rig_finish(&work);
    FILE *file = fopen(path, "r");
    ASSERT_TRUE(file != NULL);
    EXPECT_TRUE(fgets(text, sizeof text, file) != NULL);
    fclose(file);
    EXPECT_CONTAINS(text, "{\"mode\":\"random\",\"seed\":3,\"operations\":1,\"choices\":0,");

    begin(&work, "[perturb]\nreport = /no/such/folder/report\n");
    rig_finish(&work);
    EXPECT_CONTAINS(rig_logged(), "`report` of [perturb] names cannot be written");
}
