// Graphs of the CUDA backend: the driver calls that they make, and their order as far as
// a fake driver can show it.
#include <stdio.h>
#include <string.h>

#include "tests/cuda/rig.h"

#define SIZE ((size_t)4096)

static void fill(weir_queue *queue, weir_buffer *buffer, unsigned char value)
{
    EXPECT_OK(weir_queue_fill(queue, buffer, 0, SIZE, &value, 1));
}

static weir_graph *end(weir_queue *queue)
{
    weir_graph *graph = NULL;
    const struct weir_graph_params params = {.struct_size = sizeof params, .label = "graph"};
    EXPECT_OK(weir_capture_end(queue, &params, &graph));
    return graph;
}

// A fill and a copy to `host`.
static weir_graph *make_row(weir_queue *queue, weir_buffer *memory, weir_buffer *host,
                            unsigned char value)
{
    EXPECT_OK(weir_capture_begin(queue));
    fill(queue, memory, value);
    EXPECT_OK(weir_queue_copy(queue, host, 0, memory, 0, SIZE));
    return end(queue);
}

static long count_calls(const struct weir_test_cuda *fake)
{
    long calls = 0;
    for (size_t i = 0; fake->name(i); i++)
        calls += fake->calls(fake->name(i));
    return calls;
}

// A launch queries the thread's context and launches.
WEIR_TEST(CudaGraph, ALaunchIsOneCall)
{
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig));
    const struct weir_test_cuda *fake = rig_fake();
    weir_buffer *memory = rig_buffer(&rig, SIZE, WEIR_PLACE_DEVICE);
    weir_buffer *host = rig_buffer(&rig, SIZE, WEIR_PLACE_HOST);
    weir_graph *graph = make_row(rig.queue, memory, host, 3);
    const long launches = fake->calls("cuGraphLaunch");
    EXPECT_INT_EQ(launches, 0);
    EXPECT_OK(weir_queue_graph(rig.queue, graph));
    const long before = count_calls(fake);
    EXPECT_OK(weir_queue_graph(rig.queue, graph));
    const long current = fake->calls("cuCtxGetCurrent");
    const long set = fake->calls("cuCtxSetCurrent");
    EXPECT_OK(weir_queue_graph(rig.queue, graph));
    EXPECT_INT_EQ(fake->calls("cuGraphLaunch"), 3);
    // Two launches: all other calls concern the context.
    const long context =
        fake->calls("cuCtxGetCurrent") - current + (fake->calls("cuCtxSetCurrent") - set);
    EXPECT_INT_EQ(count_calls(fake) - before, 2 * (1 + context));
    EXPECT_OK(weir_queue_sync(rig.queue, GUARD_NS));
    EXPECT_UINT_EQ(rig_bytes(host)[SIZE - 1], 3);
    weir_graph_destroy(&graph);
    weir_buffer_destroy(&memory);
    weir_buffer_destroy(&host);
    rig_finish(&rig);
}

// The graph is uploaded when it is created, so that the first launch costs as much as
// others.
WEIR_TEST(CudaGraph, IsUploadedAtTheEndOfTheCapture)
{
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig));
    const struct weir_test_cuda *fake = rig_fake();
    weir_buffer *memory = rig_buffer(&rig, SIZE, WEIR_PLACE_DEVICE);
    weir_buffer *host = rig_buffer(&rig, SIZE, WEIR_PLACE_HOST);
    const long uploads = fake->calls("cuGraphUpload");
    weir_graph *graph = make_row(rig.queue, memory, host, 3);
    EXPECT_INT_EQ(fake->calls("cuGraphUpload"), uploads + 1);
    weir_graph_destroy(&graph);
    weir_buffer_destroy(&memory);
    weir_buffer_destroy(&host);
    rig_finish(&rig);
}

// Capturing, creating, launching, updating and destroying do not wait: the device is
// stopped meanwhile.
WEIR_TEST(CudaGraph, NothingWaits)
{
    struct rig rig;
    const uint32_t word = 5;
    const unsigned char pattern[16] = {9, 8, 7};
    ASSERT_TRUE(rig_start(&rig));
    const struct weir_test_cuda *fake = rig_fake();
    weir_buffer *memory = rig_buffer(&rig, SIZE, WEIR_PLACE_DEVICE);
    weir_buffer *host = rig_buffer(&rig, SIZE, WEIR_PLACE_HOST);
    weir_queue *other = rig_queue(&rig, false);
    fake->hold(1);
    weir_graph *graph = make_row(rig.queue, memory, host, 3);
    EXPECT_OK(weir_queue_graph(rig.queue, graph));
    const long made = fake->calls("cuGraphInstantiateWithFlags");
    EXPECT_OK(weir_graph_set_copy(graph, 1, host, 0, memory, 0, SIZE / 2)); // in place
    EXPECT_INT_EQ(fake->calls("cuGraphInstantiateWithFlags"), made);
    EXPECT_OK(weir_graph_set_fill(graph, 0, memory, 0, SIZE, &word, 4)); // built again
    EXPECT_INT_EQ(fake->calls("cuGraphInstantiateWithFlags"), made + 1);
    EXPECT_OK(weir_queue_graph(other, graph));
    EXPECT_OK(weir_graph_set_fill(graph, 0, memory, 0, SIZE, pattern, 16));
    EXPECT_OK(weir_graph_set_fill(graph, 0, memory, 0, SIZE, pattern, 8));
    EXPECT_OK(weir_queue_graph(rig.queue, graph));
    weir_graph_destroy(&graph);
    fake->hold(0);
    EXPECT_OK(weir_queue_sync(rig.queue, GUARD_NS));
    for (size_t i = 0; i < SIZE / 2; i++)
        ASSERT_UINT_EQ(rig_bytes(host)[i], pattern[i % 8]);
    for (size_t i = SIZE / 2; i < SIZE; i++)
        ASSERT_UINT_EQ(rig_bytes(host)[i], 3);
    EXPECT_OK(weir_queue_sync(other, GUARD_NS));
    weir_queue_destroy(&other);
    weir_buffer_destroy(&memory);
    weir_buffer_destroy(&host);
    rig_finish(&rig);
}

// A graph that was built again is a new graph for the driver, whose launches could
// overlap those of the old one; on another queue they must not.
WEIR_TEST(CudaGraph, BuiltAnewItStillFollows)
{
    struct rig rig;
    const uint32_t zero = 0;
    const unsigned char one = 1;
    ASSERT_TRUE(rig_start(&rig));
    const struct weir_test_cuda *fake = rig_fake();
    weir_buffer *memory = rig_buffer(&rig, SIZE, WEIR_PLACE_DEVICE);
    weir_buffer *host = rig_buffer(&rig, SIZE, WEIR_PLACE_HOST);
    weir_queue *queues[] = {rig.queue, rig_queue(&rig, false)};
    weir_graph *graph = make_row(rig.queue, memory, host, 3);
    for (int i = 0; i < 50; i++) {
        const long waits = fake->calls("cuStreamWaitEvent");
        EXPECT_OK(weir_queue_graph(queues[i % 2], graph));
        if (i > 0)
            EXPECT_INT_EQ(fake->calls("cuStreamWaitEvent"), waits + 1);
        if (i % 2)
            EXPECT_OK(weir_graph_set_fill(graph, 0, memory, 0, SIZE, &one, 1));
        else
            EXPECT_OK(weir_graph_set_fill(graph, 0, memory, 0, SIZE, &zero, 4));
    }
    // Without an update in between the driver's own order is enough.
    EXPECT_OK(weir_queue_graph(queues[0], graph));
    const long waits = fake->calls("cuStreamWaitEvent");
    for (int i = 1; i < 10; i++)
        EXPECT_OK(weir_queue_graph(queues[i % 2], graph));
    EXPECT_INT_EQ(fake->calls("cuStreamWaitEvent"), waits);
    EXPECT_OK(weir_queue_sync(queues[0], GUARD_NS));
    EXPECT_OK(weir_queue_sync(queues[1], GUARD_NS));
    EXPECT_UINT_EQ(rig_bytes(host)[0], 1);
    weir_graph_destroy(&graph);
    weir_queue_destroy(&queues[1]);
    weir_buffer_destroy(&memory);
    weir_buffer_destroy(&host);
    rig_finish(&rig);
}

// The queue of the last launch may be destroyed when the graph is built again.
WEIR_TEST(CudaGraph, OutlivesItsQueue)
{
    struct rig rig;
    const uint32_t word = 0x02020202;
    ASSERT_TRUE(rig_start(&rig));
    weir_buffer *memory = rig_buffer(&rig, SIZE, WEIR_PLACE_DEVICE);
    weir_buffer *host = rig_buffer(&rig, SIZE, WEIR_PLACE_HOST);
    weir_queue *other = rig_queue(&rig, false);
    weir_graph *graph = make_row(other, memory, host, 3);
    EXPECT_OK(weir_queue_graph(other, graph));
    EXPECT_OK(weir_queue_sync(other, GUARD_NS));
    weir_queue_destroy(&other);
    EXPECT_OK(weir_device_trim(rig.device));
    EXPECT_OK(weir_graph_set_fill(graph, 0, memory, 0, SIZE, &word, 4));
    EXPECT_OK(weir_queue_graph(rig.queue, graph));
    EXPECT_OK(weir_queue_sync(rig.queue, GUARD_NS));
    EXPECT_UINT_EQ(rig_bytes(host)[SIZE - 1], 2);
    weir_graph_destroy(&graph);
    weir_buffer_destroy(&memory);
    weir_buffer_destroy(&host);
    rig_finish(&rig);
}

// The stream of the last launch may have been returned to its owner when the graph is
// built again.
WEIR_TEST(CudaGraph, OutlivesTheStreamOfAWrappedQueue)
{
    struct rig rig;
    const uint32_t word = 0x02020202;
    const struct weir_test_cuda *fake = rig_fake();
    ASSERT_TRUE(rig_start(&rig));
    weir_buffer *memory = rig_buffer(&rig, SIZE, WEIR_PLACE_DEVICE);
    weir_buffer *host = rig_buffer(&rig, SIZE, WEIR_PLACE_HOST);
    void *stream = fake->create_stream();
    weir_queue *around = rig_queue_around(&rig, stream);
    weir_graph *graph = make_row(rig.queue, memory, host, 3);
    fake->hold(1);
    EXPECT_OK(weir_queue_graph(around, graph));
    weir_queue_destroy(&around);
    fake->hold(0);
    fake->finish_stream(stream);
    fake->destroy_stream(stream);
    const long synced = fake->calls("cuEventSynchronize");
    EXPECT_OK(weir_graph_set_fill(graph, 0, memory, 0, SIZE, &word, 4));
    EXPECT_INT_EQ(fake->calls("cuEventSynchronize"), synced); // an update does not wait
    const long followed = fake->calls("cuStreamWaitEvent");
    EXPECT_OK(weir_queue_graph(rig.queue, graph));
    EXPECT_INT_EQ(fake->calls("cuStreamWaitEvent"), followed + 1);
    EXPECT_OK(weir_queue_sync(rig.queue, GUARD_NS));
    EXPECT_UINT_EQ(rig_bytes(host)[SIZE - 1], 2);
    weir_graph_destroy(&graph);
    weir_buffer_destroy(&memory);
    weir_buffer_destroy(&host);
    rig_finish(&rig);
}

// Between HOST buffers in pieces, through memory that the graph keeps.
WEIR_TEST(CudaGraph, LargeBetweenHostBuffers)
{
    const size_t size = ((size_t)16 << 20) + 4097;
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig));
    const struct weir_test_cuda *fake = rig_fake();
    weir_buffer *from = rig_buffer(&rig, size, WEIR_PLACE_HOST);
    weir_buffer *to = rig_buffer(&rig, size, WEIR_PLACE_HOST);
    for (size_t i = 0; i < size; i++)
        rig_bytes(from)[i] = (unsigned char)(i * 7 + (i >> 12));
    EXPECT_OK(weir_capture_begin(rig.queue));
    EXPECT_OK(weir_queue_copy(rig.queue, to, 0, from, 0, 100));
    weir_graph *graph = end(rig.queue);
    EXPECT_OK(weir_queue_graph(rig.queue, graph));
    EXPECT_OK(weir_graph_set_copy(graph, 0, to, 1, from, 0, size - 1));
    const long allocations = fake->calls("cuMemAllocFromPoolAsync");
    EXPECT_OK(weir_graph_set_copy(graph, 0, to, 0, from, 0, size));
    EXPECT_INT_EQ(fake->calls("cuMemAllocFromPoolAsync"), allocations);
    EXPECT_OK(weir_queue_graph(rig.queue, graph));
    EXPECT_OK(weir_queue_sync(rig.queue, GUARD_NS));
    EXPECT_MEM_EQ(rig_bytes(to), rig_bytes(from), size);
    weir_graph_destroy(&graph);
    weir_buffer_destroy(&from);
    weir_buffer_destroy(&to);
    rig_finish(&rig);
}

// An update that fails leaves the graph as it was.
WEIR_TEST(CudaGraph, AFailedUpdateChangesNothing)
{
    static const char *const calls[] = {"cuGraphCreate", "cuGraphAddMemsetNode",
                                        "cuGraphInstantiateWithFlags", "cuGraphUpload",
                                        "cuEventRecord"};
    struct rig rig;
    const uint32_t word = 5;
    const unsigned char four = 4;
    ASSERT_TRUE(rig_start(&rig));
    const struct weir_test_cuda *fake = rig_fake();
    weir_buffer *memory = rig_buffer(&rig, SIZE, WEIR_PLACE_DEVICE);
    weir_buffer *host = rig_buffer(&rig, SIZE, WEIR_PLACE_HOST);
    weir_graph *graph = make_row(rig.queue, memory, host, 3);
    EXPECT_OK(weir_queue_graph(rig.queue, graph));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        weir_test_note("%s fails", calls[i]);
        fake->fail(calls[i], 1, 999);
        EXPECT_TRUE(weir_graph_set_fill(graph, 0, memory, 0, SIZE, &word, 4) < 0);
        EXPECT_CONTAINS(weir_last_error_text(), calls[i]);
        EXPECT_INT_EQ(fake->struck(), 1);
        fake->fail(NULL, 0, 0);
        memset(rig_bytes(host), 0, SIZE);
        EXPECT_OK(weir_queue_graph(rig.queue, graph));
        EXPECT_OK(weir_queue_sync(rig.queue, GUARD_NS));
        EXPECT_UINT_EQ(rig_bytes(host)[0], 3);
    }
    weir_test_note(NULL);
    EXPECT_OK(weir_graph_set_fill(graph, 0, memory, 0, SIZE, &four, 1)); // still in place
    EXPECT_OK(weir_queue_graph(rig.queue, graph));
    EXPECT_OK(weir_queue_sync(rig.queue, GUARD_NS));
    EXPECT_UINT_EQ(rig_bytes(host)[0], 4);
    weir_graph_destroy(&graph);
    weir_buffer_destroy(&memory);
    weir_buffer_destroy(&host);
    rig_finish(&rig);
}

// If the driver refuses a graph, the error names the node and its line.
WEIR_TEST(CudaGraph, ARefusedNodeIsNamed)
{
    struct rig rig;
    weir_graph *graph = NULL;
    ASSERT_TRUE(rig_start(&rig));
    const struct weir_test_cuda *fake = rig_fake();
    weir_buffer *memory = rig_buffer(&rig, SIZE, WEIR_PLACE_DEVICE);
    EXPECT_OK(weir_capture_begin(rig.queue));
    fill(rig.queue, memory, 1);
    fill(rig.queue, memory, 2);
    fake->fail("cuGraphAddMemsetNode", 2, 0);
    EXPECT_INT_EQ(weir_capture_end(rig.queue, NULL, &graph), WEIR_ERROR_DEVICE);
    EXPECT_CONTAINS(weir_last_error_text(), "node 1 of the graph");
    EXPECT_CONTAINS(weir_last_error_text(), "graph_test.c:");
    EXPECT_CONTAINS(weir_last_error_text(), "cuGraphAddMemsetNode");
    EXPECT_NULL(graph);
    fake->fail(NULL, 0, 0);
    fill(rig.queue, memory, 1);
    EXPECT_OK(weir_queue_sync(rig.queue, GUARD_NS));
    weir_buffer_destroy(&memory);
    rig_finish(&rig);
}
