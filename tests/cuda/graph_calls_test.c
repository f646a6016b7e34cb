// Native calls, host calls and disabled nodes in graphs of the CUDA backend: the driver calls that
// they make, and what is left when one of them fails.
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "tests/cuda/rig.h"

#define SIZE ((size_t)4096)
#define NOT_SUPPORTED 801

struct scene {
    struct rig rig;
    const struct weir_test_cuda *fake;
    weir_buffer *memory;
    weir_buffer *host;
    atomic_int calls;
    weir_status status; // that a host call returns
};

static bool start(struct scene *scene)
{
    *scene = (struct scene){0};
    if (!rig_start(&scene->rig))
        return false;
    scene->fake = rig_fake();
    scene->memory = rig_buffer(&scene->rig, SIZE, WEIR_PLACE_DEVICE);
    scene->host = rig_buffer(&scene->rig, SIZE, WEIR_PLACE_HOST);
    return !weir_test_has_failed();
}

static void finish(struct scene *scene)
{
    weir_buffer_destroy(&scene->memory);
    weir_buffer_destroy(&scene->host);
    rig_finish(&scene->rig);
}

static void fill(struct scene *scene, unsigned char value)
{
    EXPECT_OK(weir_queue_fill(scene->rig.queue, scene->memory, 0, SIZE, &value, 1));
}

static void bring(struct scene *scene)
{
    EXPECT_OK(weir_queue_copy(scene->rig.queue, scene->host, 0, scene->memory, 0, SIZE));
}

static void expect_byte(struct scene *scene, weir_graph *graph, unsigned char value)
{
    memset(rig_bytes(scene->host), 0, SIZE);
    EXPECT_OK(weir_queue_graph(scene->rig.queue, graph));
    EXPECT_OK(weir_queue_sync(scene->rig.queue, GUARD_NS));
    EXPECT_UINT_EQ(rig_bytes(scene->host)[SIZE - 1], value);
}

// What a library does: two pieces of work on the stream, as a node of the fake driver's.
static void set_five(void *user)
{
    struct scene *scene = user;
    atomic_fetch_add(&scene->calls, 1);
}

static void *same(void *user)
{
    return user;
}

static void drop_nothing(void *user)
{
    (void)user;
}

static weir_status call_library(const struct weir_native_queue *native, void *user)
{
    const struct scene *scene = user;
    bool captured = true;
    for (int i = 0; i < 2; i++)
        captured =
            captured && scene->fake->capture(native->queue, set_five, user, same, drop_nothing);
    return captured ? WEIR_OK : WEIR_ERROR_DEVICE;
}

// Of a fill with 3, what `submit` submits, and a copy to the host.
static weir_graph *make_around(struct scene *scene, void (*submit)(struct scene *))
{
    weir_graph *graph = NULL;
    EXPECT_OK(weir_capture_begin(scene->rig.queue));
    fill(scene, 3);
    submit(scene);
    bring(scene);
    EXPECT_OK(weir_capture_end(scene->rig.queue, NULL, &graph));
    return graph;
}

static void submit_native(struct scene *scene)
{
    EXPECT_OK(weir_queue_native(scene->rig.queue, call_library, scene,
                                weir_inout(scene->memory, 0, SIZE)));
}

// All that the library submits is one node, which a graph that is built again keeps.
WEIR_TEST(CudaGraphCalls, ANativeCallIsAChildGraph)
{
    struct scene scene;
    ASSERT_TRUE(start(&scene));
    const struct weir_test_cuda *fake = scene.fake;
    const uint32_t word = 0x04030404;
    const long captures = fake->calls("cuStreamBeginCapture");
    const long children = fake->calls("cuGraphAddChildGraphNode");
    weir_graph *graph = make_around(&scene, submit_native);
    EXPECT_INT_EQ(fake->calls("cuStreamBeginCapture"), captures + 1);
    EXPECT_INT_EQ(fake->calls("cuGraphAddChildGraphNode"), children + 1);
    EXPECT_INT_EQ(atomic_load(&scene.calls), 0);
    expect_byte(&scene, graph, 3);
    EXPECT_INT_EQ(atomic_load(&scene.calls), 2);
    EXPECT_OK(weir_graph_set_fill(graph, 0, scene.memory, 0, SIZE, &word, 4));
    EXPECT_INT_EQ(fake->calls("cuStreamBeginCapture"), captures + 1);
    EXPECT_INT_EQ(fake->calls("cuGraphAddChildGraphNode"), children + 2);
    expect_byte(&scene, graph, 4);
    EXPECT_INT_EQ(atomic_load(&scene.calls), 4);
    weir_graph_destroy(&graph);
    finish(&scene);
}

static weir_status call_library_once(const struct weir_native_queue *native, void *user)
{
    const struct scene *scene = user;
    return scene->fake->capture(native->queue, set_five, user, same, drop_nothing)
               ? WEIR_OK
               : WEIR_ERROR_DEVICE;
}

static weir_status wait_for_stream(const struct weir_native_queue *native, void *user)
{
    struct scene *scene = user;
    atomic_fetch_add(&scene->calls, 1);
    scene->fake->spoil(native->queue);
    return WEIR_OK;
}

static weir_status set_library(struct scene *scene, weir_graph *graph,
                               weir_native_function function)
{
    return weir_graph_set_native(graph, 1, function, scene, weir_inout(scene->memory, 0, SIZE));
}

// In place if the library submits nodes like those before, else the graph is built again.
WEIR_TEST(CudaGraphCalls, ANativeCallIsUpdated)
{
    struct scene scene;
    ASSERT_TRUE(start(&scene));
    const struct weir_test_cuda *fake = scene.fake;
    weir_graph *graph = make_around(&scene, submit_native);
    const long made = fake->calls("cuGraphInstantiateWithFlags");
    const long children = fake->calls("cuGraphExecChildGraphNodeSetParams");
    EXPECT_OK(set_library(&scene, graph, call_library));
    EXPECT_INT_EQ(fake->calls("cuGraphExecChildGraphNodeSetParams"), children + 1);
    EXPECT_INT_EQ(fake->calls("cuGraphInstantiateWithFlags"), made);
    expect_byte(&scene, graph, 3);
    EXPECT_INT_EQ(atomic_load(&scene.calls), 2);
    EXPECT_OK(set_library(&scene, graph, call_library_once));
    EXPECT_INT_EQ(fake->calls("cuGraphInstantiateWithFlags"), made + 1);
    expect_byte(&scene, graph, 3);
    EXPECT_INT_EQ(atomic_load(&scene.calls), 3);
    weir_graph_destroy(&graph);
    finish(&scene);
}

// Each driver call of an update fails once, and the function does: the node does what it did.
WEIR_TEST(CudaGraphCalls, AnUpdateOfANativeCallThatFails)
{
    static const char *const calls[] = {
        "cuStreamCreateWithPriority",         "cuStreamBeginCapture", "cuStreamEndCapture",
        "cuGraphExecChildGraphNodeSetParams", "cuGraphCreate",        "cuGraphAddChildGraphNode",
        "cuGraphInstantiateWithFlags"};
    struct scene scene;
    weir_graph *clone = NULL;
    ASSERT_TRUE(start(&scene));
    weir_graph *graph = make_around(&scene, submit_native);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        weir_test_note("%s fails", calls[i]);
        scene.fake->fail(calls[i], 1, 0);
        EXPECT_INT_EQ(set_library(&scene, graph, i < 4 ? call_library : call_library_once),
                      WEIR_ERROR_DEVICE);
        EXPECT_INT_EQ(scene.fake->struck(), 1);
        scene.fake->fail(NULL, 0, 0);
        EXPECT_CONTAINS(weir_last_error_text(), calls[i]);
        EXPECT_CONTAINS(weir_last_error_text(), "graph_calls_test.c:");
    }
    weir_test_note(NULL);
    EXPECT_TRUE(set_library(&scene, graph, wait_for_stream) < 0);
    EXPECT_CONTAINS(weir_last_error_text(), "901");
    atomic_store(&scene.calls, 0);
    expect_byte(&scene, graph, 3);
    EXPECT_INT_EQ(atomic_load(&scene.calls), 2);
    EXPECT_OK(weir_graph_clone(graph, NULL, &clone)); // calls the function of before
    expect_byte(&scene, clone, 3);
    EXPECT_INT_EQ(atomic_load(&scene.calls), 4);
    weir_graph_destroy(&graph);
    weir_graph_destroy(&clone);
    finish(&scene);
}

// Each driver call of a capture fails once: an error that names it, and nothing is left.
WEIR_TEST(CudaGraphCalls, ANativeCallThatFails)
{
    static const char *const calls[] = {"cuStreamCreateWithPriority", "cuStreamBeginCapture",
                                        "cuStreamEndCapture", "cuGraphGetNodes",
                                        "cuGraphAddChildGraphNode"};
    struct scene scene;
    weir_graph *graph = NULL;
    ASSERT_TRUE(start(&scene));
    weir_queue *queue = scene.rig.queue;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        weir_test_note("%s fails", calls[i]);
        EXPECT_OK(weir_capture_begin(queue));
        EXPECT_OK(weir_queue_native(queue, call_library, &scene, weir_out(scene.memory, 0, SIZE)));
        scene.fake->fail(calls[i], 1, 0);
        EXPECT_INT_EQ(weir_capture_end(queue, NULL, &graph), WEIR_ERROR_DEVICE);
        EXPECT_INT_EQ(scene.fake->struck(), 1);
        scene.fake->fail(NULL, 0, 0);
        EXPECT_CONTAINS(weir_last_error_text(), calls[i]);
        EXPECT_CONTAINS(weir_last_error_text(), "graph_calls_test.c:");
        EXPECT_NULL(graph);
    }
    weir_test_note(NULL);
    finish(&scene);
}

// The driver's answer to memory that is allocated in a graph inside a graph.
WEIR_TEST(CudaGraphCalls, ALibraryThatAllocatesIsToldTheRemedy)
{
    struct scene scene;
    weir_graph *graph = NULL;
    ASSERT_TRUE(start(&scene));
    EXPECT_OK(weir_capture_begin(scene.rig.queue));
    EXPECT_OK(
        weir_queue_native(scene.rig.queue, call_library, &scene, weir_out(scene.memory, 0, SIZE)));
    scene.fake->fail("cuGraphAddChildGraphNode", 1, NOT_SUPPORTED);
    EXPECT_TRUE(weir_capture_end(scene.rig.queue, NULL, &graph) < 0);
    scene.fake->fail(NULL, 0, 0);
    EXPECT_CONTAINS(weir_last_error_text(), "node 0 of the graph, a native call captured at ");
    EXPECT_CONTAINS(weir_last_error_text(), "cublasSetWorkspace");
    finish(&scene);
}

// A function that waits spoils the capture, and weir_capture_end() says so.
WEIR_TEST(CudaGraphCalls, ANativeCallThatWaits)
{
    struct scene scene;
    weir_graph *graph = NULL;
    ASSERT_TRUE(start(&scene));
    EXPECT_OK(weir_capture_begin(scene.rig.queue));
    EXPECT_OK(weir_queue_native(scene.rig.queue, wait_for_stream, &scene,
                                weir_out(scene.memory, 0, SIZE)));
    EXPECT_TRUE(weir_capture_end(scene.rig.queue, NULL, &graph) < 0);
    EXPECT_CONTAINS(weir_last_error_text(), "cuStreamEndCapture");
    EXPECT_CONTAINS(weir_last_error_text(), "901");
    EXPECT_INT_EQ(atomic_load(&scene.calls), 1);
    EXPECT_NULL(graph);
    fill(&scene, 1); // the queue works
    EXPECT_OK(weir_queue_sync(scene.rig.queue, GUARD_NS));
    finish(&scene);
}

// Host calls.

static weir_status count(void *user)
{
    struct scene *scene = user;
    atomic_fetch_add(&scene->calls, 1);
    return scene->status;
}

static void submit_host_call(struct scene *scene)
{
    EXPECT_OK(weir_queue_host_call(scene->rig.queue, count, scene));
}

// The driver calls it: a launch is one call, holds nothing, and does not wait.
WEIR_TEST(CudaGraphCalls, AHostCallIsAHostNode)
{
    struct scene scene;
    ASSERT_TRUE(start(&scene));
    const long nodes = scene.fake->calls("cuGraphAddHostNode");
    weir_graph *graph = make_around(&scene, submit_host_call);
    EXPECT_INT_EQ(scene.fake->calls("cuGraphAddHostNode"), nodes + 1);
    const long launches = scene.fake->calls("cuGraphLaunch");
    scene.fake->hold(1);
    for (int i = 0; i < 20; i++)
        EXPECT_OK(weir_queue_graph(scene.rig.queue, graph));
    EXPECT_INT_EQ(scene.fake->calls("cuGraphLaunch"), launches + 20);
    EXPECT_INT_EQ(atomic_load(&scene.calls), 0);
    scene.fake->hold(0);
    EXPECT_OK(weir_queue_sync(scene.rig.queue, GUARD_NS));
    EXPECT_INT_EQ(atomic_load(&scene.calls), 20);
    weir_graph_destroy(&graph);
    finish(&scene);
}

// Of launches under way, the one whose call failed is named, and those of the queue after it call
// nothing. One that the driver refused leaves the count right.
WEIR_TEST(CudaGraphCalls, TheFailedLaunchIsNamed)
{
    struct scene scene;
    ASSERT_TRUE(start(&scene));
    weir_queue *other = rig_queue(&scene.rig, false);
    weir_graph *graph = make_around(&scene, submit_host_call);
    scene.fake->fail("cuGraphLaunch", 1, 0);
    EXPECT_INT_EQ(weir_queue_graph(scene.rig.queue, graph), WEIR_ERROR_DEVICE);
    scene.fake->fail(NULL, 0, 0);
    EXPECT_OK(weir_queue_recover(scene.rig.queue));
    expect_byte(&scene, graph, 3);
    scene.status = WEIR_ERROR_IO;
    scene.fake->hold(1);
    EXPECT_OK(weir_queue_graph(other, graph));
    EXPECT_OK(weir_queue_graph(other, graph));
    scene.fake->hold(0);
    EXPECT_INT_EQ(weir_queue_sync(other, GUARD_NS), WEIR_ERROR_IO);
    EXPECT_CONTAINS(weir_last_error_text(), "operation 1 of queue");
    EXPECT_CONTAINS(weir_last_error_text(), "node 1, a host call captured at ");
    EXPECT_INT_EQ(atomic_load(&scene.calls), 2);
    EXPECT_OK(weir_queue_recover(other));
    scene.status = WEIR_OK;
    expect_byte(&scene, graph, 3);
    EXPECT_INT_EQ(atomic_load(&scene.calls), 3);
    weir_queue_destroy(&other);
    weir_graph_destroy(&graph);
    finish(&scene);
}

// Disabled nodes.

static long nodes_made(const struct weir_test_cuda *fake)
{
    return fake->calls("cuGraphAddMemsetNode") + fake->calls("cuGraphAddMemcpyNode");
}

static const unsigned char pattern[16] = {1, 2, 3, 4, 5, 6, 7, 9, 8, 7, 6, 5, 4, 3, 2, 9};

static void submit_pattern(struct scene *scene)
{
    EXPECT_OK(weir_queue_fill(scene->rig.queue, scene->memory, 0, SIZE, pattern, sizeof pattern));
}

// In place, and again where the graph is built anew; a node of several parts as a whole.
WEIR_TEST(CudaGraphCalls, DisablingBuildsNothing)
{
    struct scene scene;
    ASSERT_TRUE(start(&scene));
    const struct weir_test_cuda *fake = scene.fake;
    const long before = nodes_made(fake);
    weir_graph *graph = make_around(&scene, submit_pattern);
    const long made = fake->calls("cuGraphInstantiateWithFlags");
    const long parts = nodes_made(fake) - before - 2; // of the second fill
    const long switches = fake->calls("cuGraphNodeSetEnabled");
    EXPECT_TRUE(parts > 1);
    EXPECT_OK(weir_graph_set_enabled(graph, 1, false));
    EXPECT_INT_EQ(fake->calls("cuGraphNodeSetEnabled"), switches + parts);
    expect_byte(&scene, graph, 3);

    // A failure leaves all parts as they were.
    fake->fail("cuGraphNodeSetEnabled", 2, 0);
    EXPECT_INT_EQ(weir_graph_set_enabled(graph, 1, true), WEIR_ERROR_DEVICE);
    EXPECT_CONTAINS(weir_last_error_text(), "cuGraphNodeSetEnabled");
    fake->fail(NULL, 0, 0);
    expect_byte(&scene, graph, 3);
    EXPECT_OK(weir_graph_set_enabled(graph, 1, true));
    expect_byte(&scene, graph, 9);
    EXPECT_INT_EQ(fake->calls("cuGraphInstantiateWithFlags"), made);

    // Nor does a graph that cannot be made with its disabled nodes take the place of the old one.
    EXPECT_OK(weir_graph_set_enabled(graph, 1, false));
    fake->fail("cuGraphNodeSetEnabled", 1, 0);
    EXPECT_INT_EQ(weir_graph_set_fill(graph, 0, scene.memory, 0, SIZE, pattern, 8),
                  WEIR_ERROR_DEVICE);
    fake->fail(NULL, 0, 0);
    expect_byte(&scene, graph, 3);
    EXPECT_OK(weir_graph_set_fill(graph, 0, scene.memory, 0, SIZE, pattern, 8));
    expect_byte(&scene, graph, 9);
    weir_graph_destroy(&graph);
    finish(&scene);
}

// A clone is made like a graph: each of its driver calls fails once.
WEIR_TEST(CudaGraphCalls, ACloneThatFails)
{
    static const char *const calls[] = {"cuGraphCreate",         "cuGraphAddMemsetNode",
                                        "cuGraphAddHostNode",    "cuGraphInstantiateWithFlags",
                                        "cuGraphNodeSetEnabled", "cuGraphUpload"};
    struct scene scene;
    weir_graph *clone = NULL;
    ASSERT_TRUE(start(&scene));
    weir_graph *graph = make_around(&scene, submit_host_call);
    EXPECT_OK(weir_graph_set_enabled(graph, 0, false));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        weir_test_note("%s fails", calls[i]);
        scene.fake->fail(calls[i], 1, 0);
        EXPECT_INT_EQ(weir_graph_clone(graph, NULL, &clone), WEIR_ERROR_DEVICE);
        EXPECT_INT_EQ(scene.fake->struck(), 1);
        scene.fake->fail(NULL, 0, 0);
        EXPECT_CONTAINS(weir_last_error_text(), calls[i]);
        EXPECT_NULL(clone);
    }
    weir_test_note(NULL);
    EXPECT_OK(weir_graph_clone(graph, NULL, &clone));
    fill(&scene, 6);
    expect_byte(&scene, clone, 6);
    weir_graph_destroy(&graph);
    weir_graph_destroy(&clone);
    finish(&scene);
}
