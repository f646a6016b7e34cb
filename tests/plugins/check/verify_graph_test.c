// verify = 1: the launches of graphs, which are verified one by one.
#include <stdlib.h>

#include <weir/check.h>

#include "tests/plugins/check/verify_rig.h"
#include "tests/support/test.h"

#define EXPECT_OK(call) EXPECT_INT_EQ(call, WEIR_OK)
#define ASSERT_OK(call) ASSERT_INT_EQ(call, WEIR_OK)

static weir_graph *end_capture(weir_queue *queue)
{
    const struct weir_graph_params params = {.struct_size = sizeof params, .label = "graph"};
    weir_graph *graph = NULL;
    EXPECT_OK(weir_capture_end(queue, &params, &graph));
    return graph;
}

// Each launch of the graph finds what the one before left.
WEIR_TEST(VerifyGraphs, KernelThatKeepsItsRanges)
{
    struct rig rig;
    rig_open(&rig, "verify = 1", "bump");
    ASSERT_OK(weir_capture_begin(rig.queue));
    for (int i = 0; i < 2; i++)
        LAUNCH(items(PART), block, weir_inout(rig.out, 0, HALF));
    weir_graph *graph = end_capture(rig.queue);
    for (int i = 0; i < 3; i++)
        EXPECT_OK(weir_queue_graph(rig.queue, graph));
    expect_finding(&rig, "");
    EXPECT_INT_EQ(word_of(&rig, rig.out, 9), runs_kernels(&rig) ? 6 : 0);
    EXPECT_INT_EQ(word_of(&rig, rig.out, PART), 0);
    weir_graph_destroy(&graph);
    rig_close(&rig);
}

static void add_in_a_graph(size_t declared, const char *finding)
{
    struct rig rig;
    rig_open(&rig, "verify = 1", "add");
    ASSERT_OK(weir_capture_begin(rig.queue));
    EXPECT_OK(weir_queue_copy(rig.queue, rig.host, 0, rig.in, 0, BYTES));
    LAUNCH(items(PART), block, weir_in(rig.in, 0, HALF), weir_out(rig.out, 0, declared), 3u);
    weir_graph *graph = end_capture(rig.queue);
    EXPECT_OK(weir_queue_graph(rig.queue, graph));
    expect_finding(&rig, finding);
    EXPECT_INT_EQ(word_of(&rig, rig.out, 9), runs_kernels(&rig) ? 12 : 0);
    weir_graph_destroy(&graph);
    rig_close(&rig);
}

WEIR_TEST(VerifyGraphs, WriteOutsideOfWhatIsDeclared)
{
    add_in_a_graph(HALF - 4, " writes bytes 4092 to 4095 of buffer 'out', and declares only bytes "
                             "0 to 4091 to be written");
    add_in_a_graph(HALF, "");
}

// The words beside what it may read are those that the node before has copied there.
static void copy_and_launch(const char *kernel, const char *finding, int word)
{
    struct rig rig;
    rig_open(&rig, "verify = 1", kernel);
    ASSERT_OK(weir_capture_begin(rig.queue));
    EXPECT_OK(weir_queue_copy(rig.queue, rig.in, 0, rig.host, 4, BYTES - 4));
    LAUNCH(items(PART), block, weir_in(rig.in, HALF / 2, HALF), weir_out(rig.out, 0, HALF));
    weir_graph *graph = end_capture(rig.queue);
    EXPECT_OK(weir_queue_graph(rig.queue, graph));
    expect_finding(&rig, finding);
    EXPECT_INT_EQ(word_of(&rig, rig.out, 0), runs_kernels(&rig) ? word : 0);
    weir_graph_destroy(&graph);
    rig_close(&rig);
}

WEIR_TEST(VerifyGraphs, ReadOutsideOfWhatIsDeclared)
{
    copy_and_launch("halo",
                    "reads byte 2044 of buffer 'in', and declares only bytes 2048 to 6143 to be "
                    "read",
                    512 + 513 + 514);
    copy_and_launch("same", "", 513);
}

// Two branches, of which one reads what the other wrote, launched on two queues in turns.
WEIR_TEST(VerifyGraphs, BranchesAndQueues)
{
    struct rig rig;
    struct weir_event event;
    rig_open(&rig, "verify = 1", "add");
    weir_queue *other = make_queue(&rig, "other");
    ASSERT_OK(weir_capture_begin(rig.queue));
    LAUNCH(items(PART), block, weir_in(rig.in, 0, HALF), weir_out(rig.out, 0, HALF), 1u);
    EXPECT_OK(weir_queue_record(rig.queue, &event));
    EXPECT_OK(weir_queue_wait(other, event));
    EXPECT_OK(weir_queue_launch(other, rig.kernel, items(PART), block, weir_in(rig.out, 0, HALF),
                                weir_out(rig.in, 0, HALF), 1u));
    EXPECT_OK(weir_queue_record(other, &event));
    EXPECT_OK(weir_queue_wait(rig.queue, event));
    weir_graph *graph = end_capture(rig.queue);
    for (int i = 0; i < 4; i++)
        EXPECT_OK(weir_queue_graph(i % 2 == 0 ? rig.queue : other, graph));
    EXPECT_OK(weir_queue_sync(other, WEIR_FOREVER));
    expect_finding(&rig, "");
    EXPECT_INT_EQ(word_of(&rig, rig.in, 5), runs_kernels(&rig) ? 5 + 8 : 5);
    weir_graph_destroy(&graph);
    weir_queue_destroy(&other);
    rig_close(&rig);
}

// The nodes before the finding have run, the others have not.
WEIR_TEST(VerifyGraphs, ReportFail)
{
    struct rig rig;
    rig_open(&rig, "verify = 1\nreport = fail", "add");
    weir_queue *other = make_queue(&rig, "other");
    ASSERT_OK(weir_capture_begin(other));
    EXPECT_OK(weir_queue_copy(other, rig.out, HALF, rig.in, 4, 4));
    EXPECT_OK(weir_queue_launch(other, rig.kernel, items(PART), block, weir_in(rig.in, 0, HALF),
                                weir_out(rig.out, 0, HALF - 4), 3u));
    weir_graph *graph = end_capture(other);
    const weir_status status = weir_queue_graph(other, graph);
    EXPECT_INT_EQ(status, runs_kernels(&rig) ? WEIR_ERROR_INVALID : WEIR_OK);
    if (runs_kernels(&rig)) {
        EXPECT_CONTAINS(weir_last_error_text(), "writes bytes 4092 to 4095 of buffer 'out'");
        EXPECT_INT_EQ(weir_queue_sync(other, WEIR_FOREVER), WEIR_ERROR_INVALID);
        EXPECT_INT_EQ(word_of(&rig, rig.out, PART), 1);
        EXPECT_INT_EQ(word_of(&rig, rig.out, 9), 0);
    }
    weir_graph_destroy(&graph);
    weir_queue_destroy(&other);
    rig_close(&rig);
}

// A graph that cannot be verified is launched as it is.
WEIR_TEST(VerifyGraphs, KnownAddresses)
{
    struct rig rig;
    uint64_t address = 0;
    rig_open(&rig, "verify = 1", "bump");
    (void)weir_buffer_address(rig.out, &address);
    ASSERT_OK(weir_capture_begin(rig.queue));
    LAUNCH(items(PART), block, weir_inout(rig.out, 0, HALF));
    weir_graph *graph = end_capture(rig.queue);
    for (int i = 0; i < 2; i++)
        EXPECT_OK(weir_queue_graph(rig.queue, graph));
    EXPECT_SIZE_EQ(count_notes("after weir_buffer_address()"), address ? 1 : 0);
    EXPECT_INT_EQ(word_of(&rig, rig.out, 9), runs_kernels(&rig) ? 2 : 0);
    weir_graph_destroy(&graph);
    rig_close(&rig);
}

// A node that is refused is the launch's failure, as without the plugin.
WEIR_TEST(VerifyGraphs, NodeThatIsRefused)
{
    struct rig rig;
    setenv("WEIR_PLUGINS", "check, strange", 1);
    rig_open(&rig, "verify = 1", "bump");
    unsetenv("WEIR_PLUGINS");
    weir_queue *other = make_queue(&rig, "other");
    ASSERT_OK(weir_capture_begin(other));
    EXPECT_OK(weir_queue_fill(other, rig.in, 0, BYTES, "", 1)); // of a kind that none knows
    EXPECT_OK(
        weir_queue_launch(other, rig.kernel, items(PART), block, weir_inout(rig.out, 0, HALF)));
    weir_graph *graph = end_capture(other);
    EXPECT_INT_EQ(weir_queue_graph(other, graph), WEIR_ERROR_UNSUPPORTED);
    EXPECT_INT_EQ(weir_queue_sync(other, WEIR_FOREVER), WEIR_ERROR_UNSUPPORTED);
    EXPECT_INT_EQ(word_of(&rig, rig.out, 9), 0);
    weir_graph_destroy(&graph);
    weir_queue_destroy(&other);
    rig_close(&rig);
}
