// verify = 1: what kernels do with bytes that their launches do not declare, one by one and in graphs.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <weir/check.h>
#include <weir/weir.h>

#include "tests/plugins/check/verify.h"
#include "tests/plugins/rig.h"

enum {
    WORDS = 2048, // of each buffer
    PART = 1024,  // what launches declare, from the start or the middle
    BYTES = WORDS * 4,
    HALF = PART * 4,
};

// A runtime with the plugin, three buffers and a kernel of verify.cl.
struct verified {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_buffer *in;  // word i is i
    weir_buffer *out; // zeros
    weir_buffer *host;
    weir_program *program;
    weir_kernel *kernel;
    int line; // of the launch
};

// A launch of `rig`'s kernel, on its queue.
#define LAUNCH(...) \
    (rig->line = __LINE__, EXPECT_OK(weir_queue_launch(rig->queue, rig->kernel, __VA_ARGS__)))

// A test with such a `rig`; the section is the text of [check]. And one with more plugins, and sections.
#define VERIFY_TEST(suite, name, section, kernel) \
    VERIFY_CHAIN_TEST(suite, name, "check", section, kernel)
#define VERIFY_CHAIN_TEST(suite, name, plugins, section, kernel_) \
    WEIR_TEST_WITH(suite, name, struct verified, rig,             \
                   (start(rig, plugins, section, kernel_), rig->kernel), finish(rig))

// Blocks of 64 work-items.
static const struct weir_extent block = {64, 1, 1};

static void set_contents(struct verified *rig)
{
    uint32_t words[WORDS];
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = i;
    EXPECT_OK(weir_upload(rig->queue, rig->in, 0, words, BYTES));
    EXPECT_OK(weir_upload(rig->queue, rig->host, 0, words, BYTES));
    memset(words, 0, BYTES);
    EXPECT_OK(weir_upload(rig->queue, rig->out, 0, words, BYTES));
}

static void start(struct verified *rig, const char *plugins, const char *section,
                  const char *kernel)
{
    char text[1024];
    *rig = (struct verified){NULL};
    snprintf(text, sizeof text, "[check]\n%s\n", section);
    ASSERT_OK(rig_open(plugins, text, &rig->runtime));
    ASSERT_OK(weir_device_open(rig->runtime, NULL, &rig->device));
    rig->queue = test_queue(rig->device, "work");
    rig->in = test_buffer(rig->device, "in", BYTES, WEIR_PLACE_DEVICE);
    rig->out = test_buffer(rig->device, "out", BYTES, WEIR_PLACE_DEVICE);
    rig->host = test_buffer(rig->device, "host", BYTES, WEIR_PLACE_HOST);
    const struct weir_program_params program = {.struct_size = sizeof program,
                                                .bundle = &verify_kernels};
    ASSERT_OK(weir_program_create(rig->device, &program, &rig->program));
    ASSERT_OK(weir_kernel_create(rig->program, kernel, &rig->kernel));
    set_contents(rig);
}

static void finish(struct verified *rig)
{
    weir_kernel_destroy(&rig->kernel);
    weir_program_destroy(&rig->program);
    weir_buffer_destroy(&rig->in);
    weir_buffer_destroy(&rig->out);
    weir_buffer_destroy(&rig->host);
    weir_queue_destroy(&rig->queue);
    EXPECT_OK(weir_device_close(&rig->device));
    EXPECT_OK(weir_close(&rig->runtime));
}

static struct weir_extent items(size_t count)
{
    return (struct weir_extent){count / 64, 1, 1};
}

// The only finding is that of the last LAUNCH(), and says `text`; "": there is none.
static void expect_finding(const struct verified *rig, const char *text)
{
    struct weir_check_finding found = {0};
    if (!*text) {
        EXPECT_UINT_EQ(weir_check_count(rig->runtime), 0);
        EXPECT_UINT_EQ(rig_count_logged("verify:"), 0);
        return;
    }
    ASSERT_UINT_EQ(weir_check_count(rig->runtime), 1);
    ASSERT_OK(weir_check_get(rig->runtime, 0, &found));
    EXPECT_STR_EQ(weir_check_kind_name(found.kind), "outside");
    EXPECT_INT_EQ(found.second.line, rig->line);
    EXPECT_UINT_EQ(found.count, 1);
    if (!strstr(found.message, text))
        weir_test_fail(__FILE__, __LINE__, "'%s' is not in '%s'", text, found.message);
}

static uint32_t word_of(struct verified *rig, weir_buffer *buffer, size_t index)
{
    uint32_t word = 0;
    EXPECT_OK(weir_download(rig->queue, &word, buffer, index * 4, 4));
    return word;
}

VERIFY_TEST(Verify, KernelThatKeepsItsRanges, "verify = 1", "add_some")
{
    LAUNCH(items(WORDS), block, weir_in(rig->in, 0, HALF), weir_out(rig->out, HALF, HALF), 3u,
           (unsigned)PART);
    expect_finding(rig, "");
    EXPECT_INT_EQ(word_of(rig, rig->out, PART + 5), 8);
    EXPECT_INT_EQ(word_of(rig, rig->out, PART - 1), 0);
}

// The grid is rounded up, and the kernel has no test for it.
VERIFY_TEST(Verify, WriteOnePast, "verify = 1", "add")
{
    LAUNCH(items(PART), block, weir_in(rig->in, 0, HALF), weir_out(rig->out, 0, HALF - 4), 3u);
    expect_finding(rig, " writes bytes 4092 to 4095 of buffer 'out', and declares only bytes 0 to "
                        "4091 to be written");
}

VERIFY_TEST(Verify, WritePastTheBuffer, "verify = 1\nreport = fail", "add_some")
{
    const weir_status status =
        weir_queue_launch(rig->queue, rig->kernel, items(WORDS), block, weir_in(rig->in, 0, BYTES),
                          weir_out(rig->out, HALF, HALF), 3u, (unsigned)PART + 16);
    EXPECT_FAILURE(status, WEIR_ERROR_INVALID,
                   "buffer 'out', and declares only bytes 4096 to "
                   "8191 to be written");
}

VERIFY_TEST(Verify, WriteInFrontOfTheBuffer, "verify = 1\nreport = fail", "write_before")
{
    WEIR_IGNORE(
        weir_queue_launch(rig->queue, rig->kernel, items(64), block, weir_out(rig->out, 0, 256)));
    EXPECT_CONTAINS(weir_last_error_text(), "writes in front of buffer 'out'");
}

// With `report = log` the launch runs: where it does no harm.
VERIFY_TEST(Verify, WriteInFrontOfTheRange, "verify = 1", "write_before")
{
    LAUNCH(items(64), block, weir_out(rig->out, HALF, 256));
    expect_finding(rig, "writes bytes 4092 to 4095 of buffer 'out', and declares only bytes "
                        "4096 to 4351 to be written");
}

VERIFY_TEST(Verify, WriteToWhatIsDeclaredAsRead, "verify = 1", "move")
{
    LAUNCH(items(PART), block, weir_in(rig->in, 0, HALF), weir_out(rig->out, 0, HALF));
    // Word 0 is 0 before, too.
    expect_finding(rig,
                   "writes bytes 4 to 4093 of buffer 'in', and declares none of it to be written");
}

// A pointer that is not const may be passed by weir_in(): what the launch says is tested here.
VERIFY_TEST(Verify, WriteThroughAPointerPassedToBeRead, "verify = 1", "add_some")
{
    LAUNCH(items(WORDS), block, weir_in(rig->in, 0, HALF), weir_in(rig->out, HALF, HALF), 3u,
           (unsigned)PART);
    expect_finding(rig, "of buffer 'out', and declares none of it to be written");
}

VERIFY_TEST(Verify, ReadOfTheNeighbour, "verify = 1", "halo")
{
    LAUNCH(items(PART), block, weir_in(rig->in, HALF / 2, HALF), weir_out(rig->out, 0, HALF));
    expect_finding(rig, "reads byte 2044 of buffer 'in', and declares only bytes 2048 to "
                        "6143 to be read");
    EXPECT_INT_EQ(word_of(rig, rig->out, 0), 3 * 512);
}

VERIFY_TEST(Verify, ReadPastTheBuffer, "verify = 1\nreport = fail", "halo")
{
    const weir_status status =
        weir_queue_launch(rig->queue, rig->kernel, items(PART), block, weir_in(rig->in, HALF, HALF),
                          weir_out(rig->out, 0, HALF));
    EXPECT_INT_EQ(status, WEIR_ERROR_INVALID);
}

// What a launch only writes, its kernel may not read.
VERIFY_TEST(Verify, ReadOfWhatIsDeclaredAsWritten, "verify = 1", "bump")
{
    LAUNCH(items(PART), block, weir_out(rig->out, 0, HALF));
    expect_finding(rig, "reads byte 0 of buffer 'out', and declares none of it to be read");
}

VERIFY_TEST(Verify, ReadAndWriteOfWhatIsDeclaredAsBoth, "verify = 1", "bump")
{
    LAUNCH(items(PART), block, weir_inout(rig->out, 0, HALF));
    expect_finding(rig, "");
    EXPECT_INT_EQ(word_of(rig, rig->out, 9), 1);
}

// A kernel need not write all that it may.
VERIFY_TEST(Verify, WriteOfAPart, "verify = 1", "thirds")
{
    LAUNCH(items(PART), block, weir_out(rig->out, 0, HALF));
    expect_finding(rig, "");
}

VERIFY_TEST(Verify, HostBuffers, "verify = 1", "halo")
{
    if (!weir_device_limits(rig->device)->host_in_kernels)
        WEIR_SKIP("the device uses no HOST buffers in kernels");
    LAUNCH(items(PART), block, weir_in(rig->host, HALF / 2, HALF), weir_out(rig->out, 0, HALF));
    expect_finding(rig, "reads byte 2044 of buffer 'host'");
}

// A launch on two queues at a time, which use parts of the same buffers.
static void *launch_many(void *user)
{
    struct verified *rig = user;
    own_queue queue = test_queue(rig->device, "other");
    for (int i = 0; i < 20; i++)
        EXPECT_OK(weir_queue_launch(queue, rig->kernel, items(WORDS), block,
                                    weir_in(rig->in, HALF, HALF), weir_out(rig->out, HALF, HALF),
                                    2u, (unsigned)PART));
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
    return NULL;
}

VERIFY_TEST(Verify, TwoQueuesAndThreads, "verify = 1", "add_some")
{
    pthread_t thread;
    ASSERT_INT_EQ(pthread_create(&thread, NULL, launch_many, rig), 0);
    for (int i = 0; i < 20; i++)
        LAUNCH(items(WORDS), block, weir_in(rig->in, 0, HALF), weir_out(rig->out, 0, HALF), 1u,
               (unsigned)PART);
    pthread_join(thread, NULL);
    expect_finding(rig, "");
    EXPECT_INT_EQ(word_of(rig, rig->out, 7), 8);
    EXPECT_INT_EQ(word_of(rig, rig->out, PART + 7), PART + 9);
}

// What it writes depends on which of its work-items come first, and on nothing that is not declared.
VERIFY_TEST(Verify, OtherResultsInEveryRun, "verify = 1", "race_for_it")
{
    for (int i = 0; i < 20; i++)
        LAUNCH(items(PART), block, weir_inout(rig->in, 0, 4), weir_out(rig->out, 0, HALF));
    EXPECT_UINT_EQ(weir_check_count(rig->runtime), 0);
    EXPECT_UINT_EQ(rig_count_logged("verify:"),
                   rig_count_logged("gives other results in every run"));
}

VERIFY_TEST(Verify, OffByDefault, "", "add")
{
    LAUNCH(items(PART), block, weir_in(rig->in, 0, HALF), weir_out(rig->out, 0, HALF - 4), 3u);
    EXPECT_UINT_EQ(weir_check_count(rig->runtime), 0);
}

// What is not verified is said once.

static void launch_bump(struct verified *rig)
{
    EXPECT_OK(weir_queue_launch(rig->queue, rig->kernel, items(PART), block,
                                weir_inout(rig->out, 0, HALF)));
}

VERIFY_TEST(Unverified, KnownAddresses, "verify = 1", "bump")
{
    uint64_t address = 0;
    WEIR_IGNORE(weir_buffer_address(rig->out, &address));
    launch_bump(rig);
    launch_bump(rig);
    EXPECT_UINT_EQ(rig_count_logged("after weir_buffer_address()"), address ? 1 : 0);
    EXPECT_INT_EQ(word_of(rig, rig->out, 9), 2);
}

// Buffers of the plugin's own that are refused: the launch is not.
static void expect_copies_refused(struct verified *rig)
{
    launch_bump(rig);
    EXPECT_UINT_EQ(rig_count_logged("cannot be run on copies"), 1);
    EXPECT_UINT_EQ(weir_check_count(rig->runtime), 0);
    EXPECT_INT_EQ(word_of(rig, rig->out, 9), 1);
}

#define NO_MEMORY "verify = 1\n[fault]\nfault = memory\nkinds = new-buffer\nlabel = check: verify\n"

VERIFY_CHAIN_TEST(Unverified, FirstCopyThatCannotBeMade, "check, fault", NO_MEMORY "at = 1", "bump")
{
    expect_copies_refused(rig);
}

VERIFY_CHAIN_TEST(Unverified, SecondCopyThatCannotBeMade, "check, fault", NO_MEMORY "at = 2",
                  "bump")
{
    expect_copies_refused(rig);
}

// The call waits for what the thread does after the launch.
VERIFY_TEST(Unverified, CallThatWaits, "verify = 1", "bump")
{
    struct gate gate = {0};
    EXPECT_OK(weir_queue_host_call(rig->queue, gate_pass, &gate));
    launch_bump(rig);
    launch_bump(rig);
    gate_open(&gate);
    EXPECT_OK(weir_queue_sync(rig->queue, WEIR_FOREVER));
    EXPECT_UINT_EQ(rig_count_logged("while one waits for the program"), 1);
    EXPECT_INT_EQ(word_of(rig, rig->out, 9), 2);
    launch_bump(rig); // verified again
    EXPECT_INT_EQ(word_of(rig, rig->out, 9), 3);
}

static weir_status launch_in_call(void *user)
{
    launch_bump(user);
    return WEIR_OK;
}

VERIFY_TEST(Unverified, LaunchInACall, "verify = 1", "bump")
{
    EXPECT_OK(weir_queue_host_call(rig->queue, launch_in_call, rig));
    EXPECT_OK(weir_queue_sync(rig->queue, WEIR_FOREVER));
    EXPECT_UINT_EQ(rig_count_logged("in a host call"), 1);
    EXPECT_INT_EQ(word_of(rig, rig->out, 9), 1);
}

// Graphs, whose launches are verified one by one.

static weir_graph *end_capture(weir_queue *queue)
{
    weir_graph *graph = NULL;
    EXPECT_OK(weir_capture_end(queue, WEIR_PARAMS(weir_graph, .label = "graph"), &graph));
    return graph;
}

// Each launch of the graph finds what the one before left.
VERIFY_TEST(VerifyGraphs, KernelThatKeepsItsRanges, "verify = 1", "bump")
{
    ASSERT_OK(weir_capture_begin(rig->queue));
    for (int i = 0; i < 2; i++)
        LAUNCH(items(PART), block, weir_inout(rig->out, 0, HALF));
    own_graph graph = end_capture(rig->queue);
    for (int i = 0; i < 3; i++)
        EXPECT_OK(weir_queue_graph(rig->queue, graph));
    expect_finding(rig, "");
    EXPECT_INT_EQ(word_of(rig, rig->out, 9), 6);
    EXPECT_INT_EQ(word_of(rig, rig->out, PART), 0);
}

static void add_in_a_graph(struct verified *rig, size_t declared, const char *finding)
{
    ASSERT_OK(weir_capture_begin(rig->queue));
    EXPECT_OK(weir_queue_copy(rig->queue, rig->host, 0, rig->in, 0, BYTES));
    LAUNCH(items(PART), block, weir_in(rig->in, 0, HALF), weir_out(rig->out, 0, declared), 3u);
    own_graph graph = end_capture(rig->queue);
    EXPECT_OK(weir_queue_graph(rig->queue, graph));
    expect_finding(rig, finding);
    EXPECT_INT_EQ(word_of(rig, rig->out, 9), 12);
}

VERIFY_TEST(VerifyGraphs, WriteOutsideOfWhatIsDeclared, "verify = 1", "add")
{
    add_in_a_graph(
        rig, HALF - 4,
        " writes bytes 4092 to 4095 of buffer 'out', and declares only bytes 0 to 4091 to "
        "be written");
}

VERIFY_TEST(VerifyGraphs, WriteOfWhatIsDeclared, "verify = 1", "add")
{
    add_in_a_graph(rig, HALF, "");
}

// The words beside what it may read are those that the node before has copied there.
static void copy_and_launch(struct verified *rig, const char *finding, int word)
{
    ASSERT_OK(weir_capture_begin(rig->queue));
    EXPECT_OK(weir_queue_copy(rig->queue, rig->in, 0, rig->host, 4, BYTES - 4));
    LAUNCH(items(PART), block, weir_in(rig->in, HALF / 2, HALF), weir_out(rig->out, 0, HALF));
    own_graph graph = end_capture(rig->queue);
    EXPECT_OK(weir_queue_graph(rig->queue, graph));
    expect_finding(rig, finding);
    EXPECT_INT_EQ(word_of(rig, rig->out, 0), word);
}

VERIFY_TEST(VerifyGraphs, ReadOutsideOfWhatIsDeclared, "verify = 1", "halo")
{
    copy_and_launch(rig,
                    "reads byte 2044 of buffer 'in', and declares only bytes 2048 to 6143 to be "
                    "read",
                    512 + 513 + 514);
}

VERIFY_TEST(VerifyGraphs, ReadOfWhatIsDeclared, "verify = 1", "same")
{
    copy_and_launch(rig, "", 513);
}

// Two branches, of which one reads what the other wrote, launched on two queues in turns.
VERIFY_TEST(VerifyGraphs, BranchesAndQueues, "verify = 1", "add")
{
    own_queue other = test_queue(rig->device, "other");
    ASSERT_OK(weir_capture_begin(rig->queue));
    LAUNCH(items(PART), block, weir_in(rig->in, 0, HALF), weir_out(rig->out, 0, HALF), 1u);
    EXPECT_OK(weir_queue_after(other, rig->queue));
    EXPECT_OK(weir_queue_launch(other, rig->kernel, items(PART), block, weir_in(rig->out, 0, HALF),
                                weir_out(rig->in, 0, HALF), 1u));
    EXPECT_OK(weir_queue_after(rig->queue, other));
    own_graph graph = end_capture(rig->queue);
    for (int i = 0; i < 4; i++)
        EXPECT_OK(weir_queue_graph(i % 2 == 0 ? rig->queue : other, graph));
    EXPECT_OK(weir_queue_sync(other, WEIR_FOREVER));
    expect_finding(rig, "");
    EXPECT_INT_EQ(word_of(rig, rig->in, 5), 5 + 8);
}

// The nodes before the finding have run, the others have not.
VERIFY_TEST(VerifyGraphs, ReportFail, "verify = 1\nreport = fail", "add")
{
    own_queue other = test_queue(rig->device, "other");
    ASSERT_OK(weir_capture_begin(other));
    EXPECT_OK(weir_queue_copy(other, rig->out, HALF, rig->in, 4, 4));
    EXPECT_OK(weir_queue_launch(other, rig->kernel, items(PART), block, weir_in(rig->in, 0, HALF),
                                weir_out(rig->out, 0, HALF - 4), 3u));
    own_graph graph = end_capture(other);
    const weir_status status = weir_queue_graph(other, graph);
    EXPECT_FAILURE(status, WEIR_ERROR_INVALID, "writes bytes 4092 to 4095 of buffer 'out'");
    EXPECT_INT_EQ(weir_queue_sync(other, WEIR_FOREVER), WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(word_of(rig, rig->out, PART), 1);
    EXPECT_INT_EQ(word_of(rig, rig->out, 9), 0);
}

// A node that is refused is the launch's failure, as without the plugin.
VERIFY_CHAIN_TEST(VerifyGraphs, NodeThatIsRefused, "check, strange", "verify = 1", "bump")
{
    own_queue other = test_queue(rig->device, "other");
    ASSERT_OK(weir_capture_begin(other));
    EXPECT_OK(weir_queue_fill(other, rig->in, 0, BYTES, "", 1)); // of a kind that none knows
    EXPECT_OK(
        weir_queue_launch(other, rig->kernel, items(PART), block, weir_inout(rig->out, 0, HALF)));
    own_graph graph = end_capture(other);
    EXPECT_INT_EQ(weir_queue_graph(other, graph), WEIR_ERROR_UNSUPPORTED);
    EXPECT_INT_EQ(weir_queue_sync(other, WEIR_FOREVER), WEIR_ERROR_UNSUPPORTED);
    EXPECT_INT_EQ(word_of(rig, rig->out, 9), 0);
}

// What the plugin submits, and the nodes that it submits one by one, have numbers of other operations.

static const char *traced(void)
{
    static char section[700];
    snprintf(section, sizeof section, "verify = 1\n[trace]\nfile = %s\n",
             weir_test_path("verify.json"));
    return section;
}

static void expect_none_unfinished(void)
{
    own_trace trace = rig_read(weir_test_path("verify.json"));
    ASSERT_NOT_NULL(trace);
    EXPECT_UINT_EQ(trace->meta.unfinished, 0);
}

VERIFY_CHAIN_TEST(VerifyTraced, LaunchesAfterOperationsOfEachKind, "check, trace", traced(), "bump")
{
    own_queue other = test_queue(rig->device, "other");
    int calls = 0;
    launch_bump(rig);
    launch_bump(rig);
    EXPECT_OK(weir_queue_fill(other, rig->in, 0, BYTES, "\7", 1));
    EXPECT_OK(weir_queue_wait(rig->queue, test_record(other)));
    launch_bump(rig);
    EXPECT_OK(weir_queue_host_call(rig->queue, rig_count_call, &calls));
    launch_bump(rig);
    EXPECT_OK(weir_queue_sync(rig->queue, WEIR_FOREVER));
    weir_queue_destroy(&other);
    finish(rig);
    expect_none_unfinished();
}

VERIFY_CHAIN_TEST(VerifyTraced, NodesOfAGraph, "check, trace", traced(), "bump")
{
    int calls = 0;
    ASSERT_OK(weir_capture_begin(rig->queue));
    EXPECT_OK(weir_queue_host_call(rig->queue, rig_count_call, &calls));
    EXPECT_OK(weir_queue_copy(rig->queue, rig->host, 0, rig->in, 0, BYTES));
    launch_bump(rig);
    own_graph graph = end_capture(rig->queue);
    EXPECT_OK(weir_queue_graph(rig->queue, graph));
    EXPECT_OK(weir_graph_set_enabled(graph, 1, false)); // the copy, which then has no times
    EXPECT_OK(weir_queue_graph(rig->queue, graph));
    EXPECT_OK(weir_queue_sync(rig->queue, WEIR_FOREVER));
    weir_graph_destroy(&graph);
    finish(rig);
    expect_none_unfinished();
}
