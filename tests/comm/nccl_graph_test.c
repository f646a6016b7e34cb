// Collectives in graphs of the CUDA backend: how often NCCL and the driver are called, and what each of
// these calls does when it fails.
#include <string.h>

#include "tests/comm/nccl.h"

enum {
    RANKS = 2
};

struct graphs {
    struct comm_rig rig;
    weir_graph *graphs[RANKS];
    uint32_t fill; // a node
};

static void open_two(struct graphs *g)
{
    *g = (struct graphs){.graphs = {NULL}};
    comm_rig_open(&g->rig, "", RANKS, WEIR_PLACE_DEVICE);
}

static void close_two(struct graphs *g)
{
    for (uint32_t i = 0; i < RANKS; i++)
        weir_graph_destroy(&g->graphs[i]);
    nccl_close(&g->rig);
}

// A fill, and two all-reduces of it.
static void capture(struct graphs *g)
{
    const int32_t one = 1;
    for (uint32_t i = 0; i < RANKS; i++) {
        struct comm_rig *rig = &g->rig;
        ASSERT_OK(weir_capture_begin(rig->queues[i]));
        EXPECT_OK(weir_queue_fill(rig->queues[i], rig->dst[i], 0, 16, &one, sizeof one));
        EXPECT_OK(weir_capture_node(rig->queues[i], &g->fill));
        for (int n = 0; n < 2; n++)
            EXPECT_OK(weir_queue_all_reduce(rig->queues[i], rig->comms[i], rig->dst[i], 0,
                                            rig->dst[i], 0, 4, WEIR_I32, WEIR_SUM));
        ASSERT_OK(weir_capture_end(rig->queues[i], NULL, &g->graphs[i]));
    }
}

static void launch(struct graphs *g)
{
    for (uint32_t i = 0; i < RANKS; i++)
        EXPECT_OK(weir_queue_graph(g->rig.queues[i], g->graphs[i]));
}

static void expect_all(struct graphs *g, int32_t number)
{
    const int32_t numbers[] = {number, number, number, number};
    for (uint32_t i = 0; i < RANKS; i++)
        comm_rig_expect(&g->rig, i, g->rig.dst[i], 0, numbers, 4);
}

// NCCL is called for the first launch only, and each launch is one call of the driver.
WEIR_TEST(CommNcclGraph, IsCapturedOnce)
{
    struct graphs g;
    open_two(&g);
    capture(&g);
    const long calls = nccl()->calls("ncclAllReduce");
    const long launches = cuda()->calls("cuGraphLaunch");
    const long captures = cuda()->calls("cuStreamBeginCapture");
    for (int i = 0; i < 5; i++)
        launch(&g);
    expect_all(&g, 4);
    EXPECT_INT_EQ((int)(nccl()->calls("ncclAllReduce") - calls), 2 * RANKS);
    EXPECT_INT_EQ((int)(cuda()->calls("cuGraphLaunch") - launches), 5 * RANKS);
    EXPECT_INT_EQ((int)(cuda()->calls("cuStreamBeginCapture") - captures), RANKS);
    close_two(&g);
}

// An update in place leaves the capture; one that the driver cannot make has the next launch repeat it.
WEIR_TEST(CommNcclGraph, Updates)
{
    const int32_t two = 2;
    const uint8_t zero = 0;
    struct graphs g;
    open_two(&g);
    capture(&g);
    launch(&g);
    expect_all(&g, 4);
    const long captures = cuda()->calls("cuStreamBeginCapture");
    for (uint32_t i = 0; i < RANKS; i++)
        EXPECT_OK(weir_graph_set_fill(g.graphs[i], g.fill, g.rig.dst[i], 0, 16, &two, sizeof two));
    launch(&g);
    expect_all(&g, 8);
    EXPECT_INT_EQ((int)(cuda()->calls("cuStreamBeginCapture") - captures), 0);
    for (uint32_t i = 0; i < RANKS; i++)
        EXPECT_OK(
            weir_graph_set_fill(g.graphs[i], g.fill, g.rig.dst[i], 0, 16, &zero, sizeof zero));
    launch(&g);
    launch(&g);
    expect_all(&g, 0);
    EXPECT_INT_EQ((int)(cuda()->calls("cuStreamBeginCapture") - captures), RANKS);
    close_two(&g);
}

// The driver's memory that it needs is none of a graph's, so the nodes are replayed: NCCL still carries them
// out.
WEIR_TEST(CommNcclGraph, AnAllToAllInPlace)
{
    static const int32_t expected[][2] = {{10, 20}, {11, 21}};
    struct graphs g;
    open_two(&g);
    for (uint32_t i = 0; i < RANKS; i++) {
        struct comm_rig *rig = &g.rig;
        const int32_t own[] = {10 * ((int32_t)i + 1), 10 * ((int32_t)i + 1) + 1};
        comm_rig_write(rig, i, rig->dst[i], 0, own, 2);
        ASSERT_OK(weir_capture_begin(rig->queues[i]));
        EXPECT_OK(weir_queue_all_to_all(rig->queues[i], rig->comms[i], rig->dst[i], 0, rig->dst[i],
                                        0, 1, WEIR_I32));
        ASSERT_OK(weir_capture_end(rig->queues[i], NULL, &g.graphs[i]));
    }
    const long before = nccl()->calls("ncclSend");
    launch(&g);
    launch(&g);
    launch(&g);
    for (uint32_t i = 0; i < RANKS; i++)
        comm_rig_expect(&g.rig, i, g.rig.dst[i], 0, expected[i], 2);
    EXPECT_INT_EQ((int)(nccl()->calls("ncclSend") - before), 3 * RANKS);
    close_two(&g);
}

static void expect_failure(struct graphs *g, const char *name)
{
    uint32_t named = 0;
    launch(g);
    for (uint32_t i = 0; i < RANKS; i++) {
        EXPECT_INT_LT(weir_queue_sync(g->rig.queues[i], GUARD_NS), 0);
        named += weir_last_error()->native_call[0] != '\0' &&
                 strcmp(weir_last_error()->native_call, name) == 0;
        EXPECT_OK(weir_queue_recover(g->rig.queues[i]));
        EXPECT_INT_LT(weir_comm_error(g->rig.comms[i]), 0);
        EXPECT_INT_LT(weir_queue_graph(g->rig.queues[i], g->graphs[i]), 0);
    }
    EXPECT_UINT_EQ(named, 1);
}

// What NCCL puts into a capture may end in several nodes.
WEIR_TEST(CommNcclGraph, SeveralLastNodes)
{
    struct graphs g;
    open_two(&g);
    cuda()->fork_captures(1);
    capture(&g);
    const long joins = cuda()->calls("cuGraphAddEmptyNode");
    launch(&g);
    expect_all(&g, 4);
    EXPECT_INT_EQ((int)(cuda()->calls("cuGraphAddEmptyNode") - joins), 2 * RANKS);
    close_two(&g);

    open_two(&g);
    capture(&g);
    cuda()->fail("cuGraphAddEmptyNode", 1, 0);
    expect_failure(&g, "cuGraphAddEmptyNode");
    cuda()->fail(NULL, 0, 0);
    close_two(&g);
    cuda()->fork_captures(0);
}

// The call of that number fails on one rank; the other one hears of it.
static void expect_call_fails(const char *name, int number)
{
    struct graphs g;
    weir_test_note("%s, %d", name, number);
    open_two(&g);
    capture(&g);
    if (strncmp(name, "nccl", 4) == 0) {
        nccl()->fail(name, number, 5);
    } else {
        cuda()->fail(name, number, 0);
    }
    expect_failure(&g, name);
    cuda()->fail(NULL, 0, 0);
    nccl()->fail(NULL, 0, 0);
    close_two(&g);
}

WEIR_TEST(CommNcclGraph, EachCallFails)
{
    static const struct {
        const char *name;
        int count; // of calls that fail in turn
    } calls[] = {
        {"cuStreamCreateWithPriority", 1},
        {"cuStreamBeginCapture", 1},
        {"cuStreamGetCaptureInfo", 6},
        {"cuStreamUpdateCaptureDependencies", 6},
        {"cuGraphAddMemsetNode", 1},
        {"cuStreamEndCapture", 1},
        {"cuGraphInstantiateWithFlags", 1},
        {"cuGraphUpload", 1},
        {"cuGraphLaunch", 1},
        {"ncclAllReduce", 2},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int number = 1; number <= calls[i].count; number++)
            expect_call_fails(calls[i].name, number);
}
