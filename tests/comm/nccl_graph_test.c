// Collectives in graphs of the CUDA backend: how often NCCL and the driver are called, and what each of
// these calls does when it fails.

#include "tests/comm/nccl.h"

enum {
    RANKS = 2
};

#define TWO_TEST(suite, name) \
    COMM_RIG_TEST_BY(suite, name, comm_rig_open(rig, "", RANKS, WEIR_PLACE_DEVICE), nccl_close(rig))

static uint32_t filling; // a node of the last graph

// A fill, and two all-reduces of it.
static void capture(struct comm_rig *rig)
{
    const int32_t one = 1;
    for (uint32_t i = 0; i < RANKS; i++) {
        ASSERT_OK(weir_capture_begin(rig->queues[i]));
        EXPECT_OK(weir_queue_fill(rig->queues[i], rig->dst[i], 0, 16, &one, sizeof one));
        EXPECT_OK(weir_capture_node(rig->queues[i], &filling));
        for (int n = 0; n < 2; n++)
            EXPECT_OK(weir_queue_all_reduce(rig->queues[i], rig->comms[i], rig->dst[i], 0,
                                            rig->dst[i], 0, 4, WEIR_I32, WEIR_SUM));
        ASSERT_OK(weir_capture_end(rig->queues[i], NULL, &rig->graphs[i]));
    }
}

// NCCL is called for the first launch only, and each launch is one call of the driver.
TWO_TEST(CommNcclGraph, IsCapturedOnce)
{
    capture(rig);
    const long calls = nccl()->calls("ncclAllReduce");
    const long launches = cuda()->calls("cuGraphLaunch");
    const long captures = cuda()->calls("cuStreamBeginCapture");
    for (int i = 0; i < 5; i++)
        comm_rig_launch(rig);
    comm_rig_expect_number(rig, 4);
    EXPECT_INT_EQ((int)(nccl()->calls("ncclAllReduce") - calls), 2 * RANKS);
    EXPECT_INT_EQ((int)(cuda()->calls("cuGraphLaunch") - launches), 5 * RANKS);
    EXPECT_INT_EQ((int)(cuda()->calls("cuStreamBeginCapture") - captures), RANKS);
}

// An update in place leaves the capture; one that the driver cannot make has the next launch repeat it.
TWO_TEST(CommNcclGraph, Updates)
{
    const int32_t two = 2;
    const uint8_t zero = 0;
    capture(rig);
    comm_rig_launch(rig);
    comm_rig_expect_number(rig, 4);
    const long captures = cuda()->calls("cuStreamBeginCapture");
    for (uint32_t i = 0; i < RANKS; i++)
        EXPECT_OK(
            weir_graph_set_fill(rig->graphs[i], filling, rig->dst[i], 0, 16, &two, sizeof two));
    comm_rig_launch(rig);
    comm_rig_expect_number(rig, 8);
    EXPECT_INT_EQ((int)(cuda()->calls("cuStreamBeginCapture") - captures), 0);
    for (uint32_t i = 0; i < RANKS; i++)
        EXPECT_OK(
            weir_graph_set_fill(rig->graphs[i], filling, rig->dst[i], 0, 16, &zero, sizeof zero));
    comm_rig_launch(rig);
    comm_rig_launch(rig);
    comm_rig_expect_number(rig, 0);
    EXPECT_INT_EQ((int)(cuda()->calls("cuStreamBeginCapture") - captures), RANKS);
}

// The driver's memory that it needs is none of a graph's, so the nodes are replayed: NCCL still carries them
// out.
TWO_TEST(CommNcclGraph, AnAllToAllInPlace)
{
    static const int32_t expected[][2] = {{10, 20}, {11, 21}};
    for (uint32_t i = 0; i < RANKS; i++) {
        const int32_t own[] = {10 * ((int32_t)i + 1), 10 * ((int32_t)i + 1) + 1};
        comm_rig_write(rig, i, rig->dst[i], 0, own, 2);
        ASSERT_OK(weir_capture_begin(rig->queues[i]));
        EXPECT_OK(weir_queue_all_to_all(rig->queues[i], rig->comms[i], rig->dst[i], 0, rig->dst[i],
                                        0, 1, WEIR_I32));
        ASSERT_OK(weir_capture_end(rig->queues[i], NULL, &rig->graphs[i]));
    }
    const long before = nccl()->calls("ncclSend");
    comm_rig_launch(rig);
    comm_rig_launch(rig);
    comm_rig_launch(rig);
    for (uint32_t i = 0; i < RANKS; i++)
        comm_rig_expect(rig, i, rig->dst[i], 0, expected[i], 2);
    EXPECT_INT_EQ((int)(nccl()->calls("ncclSend") - before), 3 * RANKS);
}

static void expect_failure(struct comm_rig *rig, const char *name)
{
    uint32_t named = 0;
    comm_rig_launch(rig);
    for (uint32_t i = 0; i < RANKS; i++) {
        EXPECT_INT_LT(weir_queue_sync(rig->queues[i], GUARD_NS), 0);
        named += weir_last_error()->native_call[0] != '\0' &&
                 strcmp(weir_last_error()->native_call, name) == 0;
        EXPECT_OK(weir_queue_recover(rig->queues[i]));
        EXPECT_INT_LT(weir_comm_error(rig->comms[i]), 0);
        EXPECT_INT_LT(weir_queue_graph(rig->queues[i], rig->graphs[i]), 0);
    }
    EXPECT_UINT_EQ(named, 1);
}

// What NCCL puts into a capture may end in several nodes.
TWO_TEST(CommNcclGraph, SeveralLastNodes)
{
    cuda()->fork_captures(1);
    capture(rig);
    const long joins = cuda()->calls("cuGraphAddEmptyNode");
    comm_rig_launch(rig);
    comm_rig_expect_number(rig, 4);
    EXPECT_INT_EQ((int)(cuda()->calls("cuGraphAddEmptyNode") - joins), 2 * RANKS);
    cuda()->fork_captures(0);
}

// NCCL puts nothing into a capture for a rank that is alone, and what comes after comes after the fill.
COMM_RIG_TEST_BY(CommNcclGraph, ARankThatIsAlone, comm_rig_open(rig, "", 1, WEIR_PLACE_DEVICE),
                 nccl_close(rig))
{
    const int32_t one = 1, two = 2;
    const int32_t expected[] = {1, 2};
    ASSERT_OK(weir_capture_begin(rig->queues[0]));
    EXPECT_OK(weir_queue_fill(rig->queues[0], rig->dst[0], 0, 8, &one, sizeof one));
    for (int n = 0; n < 2; n++)
        EXPECT_OK(weir_queue_all_reduce(rig->queues[0], rig->comms[0], rig->dst[0], 0, rig->dst[0],
                                        0, 2, WEIR_I32, WEIR_SUM));
    EXPECT_OK(weir_queue_barrier(rig->queues[0], rig->comms[0]));
    EXPECT_OK(weir_queue_fill(rig->queues[0], rig->dst[0], 4, 4, &two, sizeof two));
    ASSERT_OK(weir_capture_end(rig->queues[0], NULL, &rig->graphs[0]));
    comm_rig_launch(rig);
    comm_rig_launch(rig);
    comm_rig_expect_all(rig, rig->dst, 0, expected, 2);
}

// The call of that number fails on one rank; the other one hears of it.
static void expect_call_fails(const char *name, int number)
{
    own_nccl rig = {0};
    weir_test_note("%s, %d", name, number);
    comm_rig_open(&rig, "", RANKS, WEIR_PLACE_DEVICE);
    capture(&rig);
    if (strncmp(name, "nccl", 4) == 0)
        nccl()->fail(name, number, 5);
    else
        cuda()->fail(name, number, 0);
    expect_failure(&rig, name);
    cuda()->fail(NULL, 0, 0);
    nccl()->fail(NULL, 0, 0);
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
    cuda()->fork_captures(1);
    expect_call_fails("cuGraphAddEmptyNode", 1);
    cuda()->fork_captures(0);
}
