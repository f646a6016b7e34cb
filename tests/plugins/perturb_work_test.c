// The plugin `perturb`: nothing hangs, though nothing asks for the work; and what its settings and
// variables say. Run once for each backend; the environment names it.
#include <poll.h>
#include <unistd.h>

#include "tests/plugins/rig.h"

static void fill(struct rig *rig, weir_queue *queue)
{
    const uint32_t pattern = 7;
    EXPECT_OK(weir_queue_fill(queue, rig->frame, 0, 64, &pattern, sizeof pattern));
}

// A host call that opens the gate, its `user`.
static weir_status open_gate(void *user)
{
    gate_open(user);
    return WEIR_OK;
}

// The program waits for what a host call sets, and asks Weir for nothing.
RIG_TEST(PerturbIdle, HostCallRunsUnasked, "perturb", "[perturb]\nidle = 5\n")
{
    fill(rig, rig->up);
    EXPECT_OK(weir_queue_host_call(rig->up, open_gate, &rig->gate));
    EXPECT_OK(gate_pass(&rig->gate));
    rig_finish(rig);
    EXPECT_CONTAINS(rig_logged(), "operations ran because the program asked for nothing");
}

RIG_TEST(PerturbIdle, DescriptorBecomesReadable, "perturb", "[perturb]\nidle = 5\n")
{
    int fd = -1;
    fill(rig, rig->up);
    const struct weir_event event = test_record(rig->up);
    EXPECT_OK(weir_event_fd(event, &fd));
    EXPECT_INT_EQ(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 60000), 1);
    close(fd);
}

// A host call waits for what another queue's host call sets: each may be picked first.
WEIR_TEST(PerturbIdle, HostCallsThatWaitForEachOther)
{
    for (unsigned seed = 1; seed <= 4; seed++) {
        own_rig rig = {0};
        char text[64];
        snprintf(text, sizeof text, "[perturb]\nidle = 5\nseed = %u\n", seed);
        EXPECT_TRUE(rig_begin(&rig, "perturb", text));
        EXPECT_OK(weir_queue_host_call(rig.up, gate_pass, &rig.gate));
        EXPECT_OK(weir_queue_host_call(rig.down, open_gate, &rig.gate));
        EXPECT_OK(weir_queue_sync(rig.up, GUARD_NS));
        EXPECT_OK(weir_queue_sync(rig.down, GUARD_NS));
    }
}

// The host call of a graph waits for what the program does after it has submitted: no submit waits for it.
WEIR_TEST(PerturbIdle, SubmitWaitsForNoHostCallOfAGraph)
{
    for (unsigned seed = 1; seed <= 16; seed++) {
        own_rig rig = {0};
        own_graph graph = NULL;
        char text[64];
        snprintf(text, sizeof text, "[perturb]\nidle = 60000\nseed = %u\n", seed);
        EXPECT_TRUE(rig_begin(&rig, "perturb", text));
        EXPECT_OK(weir_capture_begin(rig.up));
        fill(&rig, rig.up);
        EXPECT_OK(weir_queue_host_call(rig.up, gate_pass, &rig.gate));
        EXPECT_OK(weir_capture_end(rig.up, NULL, &graph));
        EXPECT_OK(weir_queue_graph(rig.up, graph));
        fill(&rig, rig.up);
        fill(&rig, rig.down);
        gate_open(&rig.gate);
        EXPECT_OK(weir_queue_sync(rig.up, GUARD_NS));
    }
}

// A launch after a host call that has not ended is handed on by an update of its graph, and keeps no other
// operation waiting.
RIG_TEST(PerturbIdle, LaunchBehindAHostCallDelaysNoOtherQueue, "perturb",
         "[perturb]\nidle = 1000\nmode = late\n")
{
    const uint32_t pattern = 8;
    own_graph graph = NULL;
    EXPECT_OK(weir_capture_begin(rig->up));
    fill(rig, rig->up);
    EXPECT_OK(weir_capture_end(rig->up, NULL, &graph));
    EXPECT_OK(weir_queue_host_call(rig->up, gate_pass, &rig->gate));
    EXPECT_OK(weir_queue_graph(rig->up, graph));
    EXPECT_OK(weir_graph_set_fill(graph, 0, rig->frame, 0, 64, &pattern, sizeof pattern));
    fill(rig, rig->down);
    EXPECT_OK(weir_queue_sync(rig->down, GUARD_NS / 4));
    gate_open(&rig->gate);
    EXPECT_OK(weir_queue_sync(rig->up, GUARD_NS));
}

RIG_TEST(PerturbIdle, TimeoutBeforeTheEnd, "perturb", "")
{
    EXPECT_OK(weir_queue_host_call(rig->up, gate_pass, &rig->gate));
    EXPECT_INT_EQ(weir_queue_sync(rig->up, WEIR_MS(1)), WEIR_TIMEOUT);
    gate_open(&rig->gate);
    EXPECT_OK(weir_queue_sync(rig->up, GUARD_NS));
}

// Work that is not asked for is done when its queue is destroyed and the device is closed.
RIG_TEST(PerturbIdle, CloseWithPendingWork, "perturb", "[perturb]\nidle = 60000\n")
{
    fill(rig, rig->up);
    EXPECT_OK(weir_queue_host_call(rig->up, open_gate, &rig->gate));
    fill(rig, rig->down);
    rig_finish(rig);
    EXPECT_TRUE(rig->gate.is_open);
    EXPECT_UINT_EQ(rig_count_logged("\n"), 1); // that of the seed
}

// Whether the first fill of the buffer has run.
static bool is_filled(struct rig *rig)
{
    void *memory = NULL;
    uint32_t word = 0;
    EXPECT_OK(weir_host_begin(rig->frame, 0, sizeof word, WEIR_ACCESS_READ, &memory));
    if (memory)
        memcpy(&word, memory, sizeof word);
    EXPECT_OK(weir_host_end(rig->frame, 0, sizeof word, WEIR_ACCESS_READ));
    return word == 7;
}

static void clear(struct rig *rig)
{
    void *memory = NULL;
    EXPECT_OK(weir_host_begin(rig->frame, 0, 64, WEIR_ACCESS_WRITE, &memory));
    if (memory)
        memset(memory, 0, 64);
    EXPECT_OK(weir_host_end(rig->frame, 0, 64, WEIR_ACCESS_WRITE));
}

static void fill_often(const char *section, bool expect_filled)
{
    struct rig rig;
    EXPECT_TRUE(rig_begin(&rig, "perturb", section));
    clear(&rig);
    for (int i = 0; i < 4; i++)
        fill(&rig, rig.up);
    EXPECT_FALSE(is_filled(&rig));
    fill(&rig, rig.up);
    EXPECT_TRUE(is_filled(&rig) == expect_filled);
    // Of several host calls only the first could run, and a submit runs none.
    for (int i = 0; i < 16; i++)
        EXPECT_OK(weir_queue_host_call(rig.down, open_gate, &rig.gate));
    EXPECT_FALSE(rig.gate.is_open);
    rig_finish(&rig);
    EXPECT_TRUE(rig.gate.is_open);
}

// With a small limit operations run though nothing asks for them.
WEIR_TEST(PerturbIdle, LimitOfPendingOperations)
{
    fill_often("[perturb]\nmode = late\npending = 4\nidle = 60000\n", true);
    fill_often("[perturb]\nmode = late\nidle = 60000\n", false);
}

// A query runs what the event needs, step by step.
RIG_TEST(PerturbIdle, Query, "perturb", "[perturb]\nmode = late\nidle = 60000\n")
{
    unsigned count = 0;
    for (int i = 0; i < 10; i++)
        fill(rig, rig->up);
    const struct weir_event event = test_record(rig->up);
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
RIG_TEST(PerturbIdle, QueryInAHostCall, "perturb", "[perturb]\nmode = late\nidle = 60000\n")
{
    struct asked asked = {.statuses = {WEIR_OK, WEIR_OK}};
    EXPECT_OK(weir_queue_host_call(rig->up, ask, &asked));
    EXPECT_OK(weir_queue_record(rig->up, &asked.event));
    fill(rig, rig->down);
    EXPECT_OK(weir_queue_sync(rig->up, GUARD_NS / 4));
    for (int i = 0; i < 2; i++)
        EXPECT_INT_EQ(asked.statuses[i], WEIR_NOT_READY);
}

// Settings.

static void expect_refused(const char *plugins, const char *section, const char *message,
                           const char *remedy)
{
    rig_expect_refused(plugins, section, WEIR_ERROR_CONFIG, message, remedy);
}

WEIR_TEST(PerturbSettings, AreRefused)
{
    static const char pair[] = "[perturb]\nmode = pair\n";
    expect_refused("perturb", "[perturb]\nmode = radnom\n", "radnom", "random");
    expect_refused("perturb", "[perturb]\nseed = x\n", "'x'", "");
    expect_refused("perturb", pair, "mode pair has no pair of lines: ''", "name two lines");
    expect_refused("perturb", "[perturb]\nmode = pair\npair = a.c:1\n", "'a.c:1'",
                   "name two lines");
    expect_refused("perturb", "[perturb]\nmode = pair\npair = a.c:1, b.c\n", "'a.c:1, b.c'",
                   "two lines");
    expect_refused("perturb", "[perturb]\nmode = pair\npair = a.c:0, b.c:2\n", "'a.c:0",
                   "two lines");
    expect_refused("perturb", "[perturb]\nmode = pair\npair = a.c:1, b.c:2x\n", "b.c:2x",
                   "two lines");
}

WEIR_TEST(PerturbSettings, TwiceIsRefused)
{
    expect_refused("perturb, perturb", "", "the plugin perturb is twice in the chain",
                   "list it once");
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
    const char *path = weir_test_path("report");
    char text[512] = "";
    struct rig rig;
    char section[600];
    snprintf(section, sizeof section, "[perturb]\nseed = 3\nreport = %s\n", path);
    EXPECT_TRUE(rig_begin(&rig, "perturb", section));
    fill(&rig, rig.up);
    rig_finish(&rig);
    FILE *file = fopen(path, "r");
    ASSERT_TRUE(file != NULL);
    EXPECT_TRUE(fgets(text, sizeof text, file) != NULL);
    fclose(file);
    EXPECT_CONTAINS(text, "{\"mode\":\"random\",\"seed\":3,\"operations\":1,\"choices\":0,");

    EXPECT_TRUE(rig_begin(&rig, "perturb", "[perturb]\nreport = /no/such/folder/report\n"));
    rig_finish(&rig);
    EXPECT_CONTAINS(rig_logged(), "`report` of [perturb] names cannot be written");
}
