// Graphs of the CUDA backend, with native calls, host calls and disabled nodes: the driver calls that they make,
// their order as far as a fake driver can show it, and what is left when one of them fails.
#include <stdatomic.h>

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

#define SCENE_TEST(suite, name) \
    WEIR_TEST_WITH(suite, name, struct scene, scene, start(scene), finish(scene))

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

// A fill and a copy to `host`, captured on `queue`.
static weir_graph *make_row(struct scene *scene, weir_queue *queue, unsigned char value)
{
    weir_graph *graph = NULL;
    EXPECT_OK(weir_capture_begin(queue));
    EXPECT_OK(weir_queue_fill(queue, scene->memory, 0, SIZE, &value, 1));
    EXPECT_OK(weir_queue_copy(queue, scene->host, 0, scene->memory, 0, SIZE));
    EXPECT_OK(weir_capture_end(queue, NULL, &graph));
    return graph;
}

// A launch queries the thread's context and launches.
SCENE_TEST(CudaGraph, ALaunchIsOneCall)
{
    const struct weir_test_cuda *fake = scene->fake;
    const long uploads = fake->calls("cuGraphUpload");
    own_graph graph = make_row(scene, scene->rig.queue, 3);
    EXPECT_INT_EQ(fake->calls("cuGraphUpload"),
                  uploads + 1); // so that the first launch costs as much as others
    EXPECT_INT_EQ(fake->calls("cuGraphLaunch"), 0);
    EXPECT_OK(weir_queue_graph(scene->rig.queue, graph));
    const long before = rig_calls();
    EXPECT_OK(weir_queue_graph(scene->rig.queue, graph));
    const long current = fake->calls("cuCtxGetCurrent");
    const long set = fake->calls("cuCtxSetCurrent");
    EXPECT_OK(weir_queue_graph(scene->rig.queue, graph));
    EXPECT_INT_EQ(fake->calls("cuGraphLaunch"), 3);
    // Two launches: all other calls concern the context.
    const long context =
        fake->calls("cuCtxGetCurrent") - current + (fake->calls("cuCtxSetCurrent") - set);
    EXPECT_INT_EQ(rig_calls() - before, 2 * (1 + context));
    EXPECT_OK(weir_queue_sync(scene->rig.queue, GUARD_NS));
    EXPECT_UINT_EQ(rig_bytes(scene->host)[SIZE - 1], 3);
}

// Capturing, creating, launching, updating and destroying do not wait: the device is
// stopped meanwhile.
SCENE_TEST(CudaGraph, NothingWaits)
{
    const uint32_t word = 5;
    const unsigned char pattern[16] = {9, 8, 7};
    const struct weir_test_cuda *fake = scene->fake;
    own_queue other = rig_queue(&scene->rig, false);
    fake->hold(1);
    weir_graph *graph = make_row(scene, scene->rig.queue, 3);
    EXPECT_OK(weir_queue_graph(scene->rig.queue, graph));
    const long made = fake->calls("cuGraphInstantiateWithFlags");
    EXPECT_OK(
        weir_graph_set_copy(graph, 1, scene->host, 0, scene->memory, 0, SIZE / 2)); // in place
    EXPECT_INT_EQ(fake->calls("cuGraphInstantiateWithFlags"), made);
    EXPECT_OK(weir_graph_set_fill(graph, 0, scene->memory, 0, SIZE, &word, 4)); // built again
    EXPECT_INT_EQ(fake->calls("cuGraphInstantiateWithFlags"), made + 1);
    EXPECT_OK(weir_queue_graph(other, graph));
    EXPECT_OK(weir_graph_set_fill(graph, 0, scene->memory, 0, SIZE, pattern, 16));
    EXPECT_OK(weir_graph_set_fill(graph, 0, scene->memory, 0, SIZE, pattern, 8));
    EXPECT_OK(weir_queue_graph(scene->rig.queue, graph));
    weir_graph_destroy(&graph);
    fake->hold(0);
    EXPECT_OK(weir_queue_sync(scene->rig.queue, GUARD_NS));
    for (size_t i = 0; i < SIZE / 2; i++)
        ASSERT_UINT_EQ(rig_bytes(scene->host)[i], pattern[i % 8]);
    for (size_t i = SIZE / 2; i < SIZE; i++)
        ASSERT_UINT_EQ(rig_bytes(scene->host)[i], 3);
    EXPECT_OK(weir_queue_sync(other, GUARD_NS));
}

// A graph that was built again is a new graph for the driver, whose launches could
// overlap those of the old one; on another queue they must not.
SCENE_TEST(CudaGraph, BuiltAnewItStillFollows)
{
    const uint32_t zero = 0;
    const unsigned char one = 1;
    const struct weir_test_cuda *fake = scene->fake;
    weir_queue *queues[] = {scene->rig.queue, rig_queue(&scene->rig, false)};
    weir_graph *graph = make_row(scene, scene->rig.queue, 3);
    for (int i = 0; i < 50; i++) {
        const long waits = fake->calls("cuStreamWaitEvent");
        EXPECT_OK(weir_queue_graph(queues[i % 2], graph));
        if (i > 0)
            EXPECT_INT_EQ(fake->calls("cuStreamWaitEvent"), waits + 1);
        if (i % 2)
            EXPECT_OK(weir_graph_set_fill(graph, 0, scene->memory, 0, SIZE, &one, 1));
        else
            EXPECT_OK(weir_graph_set_fill(graph, 0, scene->memory, 0, SIZE, &zero, 4));
    }
    // Without an update in between the driver's own order is enough.
    EXPECT_OK(weir_queue_graph(queues[0], graph));
    const long waits = fake->calls("cuStreamWaitEvent");
    for (int i = 1; i < 10; i++)
        EXPECT_OK(weir_queue_graph(queues[i % 2], graph));
    EXPECT_INT_EQ(fake->calls("cuStreamWaitEvent"), waits);
    EXPECT_OK(weir_queue_sync(queues[0], GUARD_NS));
    EXPECT_OK(weir_queue_sync(queues[1], GUARD_NS));
    EXPECT_UINT_EQ(rig_bytes(scene->host)[0], 1);
    weir_graph_destroy(&graph);
    weir_queue_destroy(&queues[1]);
}

// The stream of the last launch may have been returned to its owner when the graph is
// built again.
SCENE_TEST(CudaGraph, OutlivesTheStreamOfAWrappedQueue)
{
    const uint32_t word = 0x02020202;
    const struct weir_test_cuda *fake = scene->fake;
    void *stream = fake->create_stream();
    weir_queue *around = rig_queue_around(&scene->rig, stream);
    own_graph graph = make_row(scene, scene->rig.queue, 3);
    fake->hold(1);
    EXPECT_OK(weir_queue_graph(around, graph));
    weir_queue_destroy(&around);
    fake->hold(0);
    fake->destroy_stream(stream);
    const long synced = fake->calls("cuEventSynchronize");
    EXPECT_OK(weir_graph_set_fill(graph, 0, scene->memory, 0, SIZE, &word, 4));
    EXPECT_INT_EQ(fake->calls("cuEventSynchronize"), synced); // an update does not wait
    EXPECT_OK(weir_queue_graph(scene->rig.queue, graph));
    EXPECT_OK(weir_queue_sync(scene->rig.queue, GUARD_NS));
    EXPECT_UINT_EQ(rig_bytes(scene->host)[SIZE - 1], 2);

    // One that is under way is waited for.
    stream = fake->create_stream();
    around = rig_queue_around(&scene->rig, stream);
    fake->hold(1);
    EXPECT_OK(weir_queue_graph(around, graph));
    weir_queue_destroy(&around);
    EXPECT_OK(weir_graph_set_fill(graph, 0, scene->memory, 0, SIZE, "x", 1));
    const long followed = fake->calls("cuStreamWaitEvent");
    const long recorded = fake->calls("cuEventRecord");
    EXPECT_OK(weir_queue_graph(scene->rig.queue, graph));
    EXPECT_INT_EQ(fake->calls("cuStreamWaitEvent"), followed + 1);
    EXPECT_INT_EQ(fake->calls("cuEventRecord"), recorded);
    fake->hold(0);
    EXPECT_OK(weir_queue_sync(scene->rig.queue, GUARD_NS));
    fake->destroy_stream(stream);
}

// Between HOST buffers in pieces, through memory that the graph keeps.
SCENE_TEST(CudaGraph, LargeBetweenHostBuffers)
{
    const size_t size = ((size_t)16 << 20) + 4097;
    own_graph graph = NULL;
    const struct weir_test_cuda *fake = scene->fake;
    own_buffer from = rig_buffer(&scene->rig, size, WEIR_PLACE_HOST);
    own_buffer to = rig_buffer(&scene->rig, size, WEIR_PLACE_HOST);
    unsigned char *bytes = rig_bytes(from);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 7 + (i >> 12));
    EXPECT_OK(weir_capture_begin(scene->rig.queue));
    EXPECT_OK(weir_queue_copy(scene->rig.queue, to, 0, from, 0, 100));
    EXPECT_OK(weir_capture_end(scene->rig.queue, NULL, &graph));
    EXPECT_OK(weir_queue_graph(scene->rig.queue, graph));
    EXPECT_OK(weir_graph_set_copy(graph, 0, to, 1, from, 0, size - 1));
    const long allocations = fake->calls("cuMemAllocFromPoolAsync");
    EXPECT_OK(weir_graph_set_copy(graph, 0, to, 0, from, 0, size));
    EXPECT_INT_EQ(fake->calls("cuMemAllocFromPoolAsync"), allocations);
    EXPECT_OK(weir_queue_graph(scene->rig.queue, graph));
    EXPECT_OK(weir_queue_sync(scene->rig.queue, GUARD_NS));
    EXPECT_MEM_EQ(rig_bytes(to), rig_bytes(from), size);
}

// If the driver refuses a graph, the error names the node and its line.
SCENE_TEST(CudaGraph, ARefusedNodeIsNamed)
{
    weir_graph *graph = NULL;
    const struct weir_test_cuda *fake = scene->fake;
    EXPECT_OK(weir_capture_begin(scene->rig.queue));
    fill(scene, 1);
    fill(scene, 2);
    fake->fail("cuGraphAddMemsetNode", 2, 0);
    EXPECT_FAILURE(weir_capture_end(scene->rig.queue, NULL, &graph), WEIR_ERROR_DEVICE,
                   "node 1 of the graph", "graph_test.c:", "cuGraphAddMemsetNode");
    EXPECT_NULL(graph);
    fake->fail(NULL, 0, 0);
    fill(scene, 1);
    EXPECT_OK(weir_queue_sync(scene->rig.queue, GUARD_NS));
}

// Native calls.

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
}

static weir_status call_library_once(const struct weir_native_queue *native, void *user)
{
    const struct scene *scene = user;
    return scene->fake->capture(native->queue, set_five, user, same, drop_nothing)
               ? WEIR_OK
               : WEIR_ERROR_DEVICE;
}

static weir_status call_library(const struct weir_native_queue *native, void *user)
{
    const weir_status status = call_library_once(native, user);
    return status == WEIR_OK ? call_library_once(native, user) : status;
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
SCENE_TEST(CudaGraph, ANativeCallIsUpdated)
{
    const struct weir_test_cuda *fake = scene->fake;
    own_graph graph = make_around(scene, submit_native);
    const long made = fake->calls("cuGraphInstantiateWithFlags");
    const long children = fake->calls("cuGraphExecChildGraphNodeSetParams");
    EXPECT_OK(set_library(scene, graph, call_library));
    EXPECT_INT_EQ(fake->calls("cuGraphExecChildGraphNodeSetParams"), children + 1);
    EXPECT_INT_EQ(fake->calls("cuGraphInstantiateWithFlags"), made);
    expect_byte(scene, graph, 3);
    EXPECT_INT_EQ(atomic_load(&scene->calls), 2);
    EXPECT_OK(set_library(scene, graph, call_library_once));
    EXPECT_INT_EQ(fake->calls("cuGraphInstantiateWithFlags"), made + 1);
    expect_byte(scene, graph, 3);
    EXPECT_INT_EQ(atomic_load(&scene->calls), 3);
}

// The driver's answer to memory that is allocated in a graph inside a graph.
SCENE_TEST(CudaGraph, ALibraryThatAllocatesIsToldTheRemedy)
{
    weir_graph *graph = NULL;
    EXPECT_OK(weir_capture_begin(scene->rig.queue));
    EXPECT_OK(
        weir_queue_native(scene->rig.queue, call_library, scene, weir_out(scene->memory, 0, SIZE)));
    scene->fake->fail("cuGraphAddChildGraphNode", 1, NOT_SUPPORTED);
    EXPECT_TRUE(weir_capture_end(scene->rig.queue, NULL, &graph) < 0);
    scene->fake->fail(NULL, 0, 0);
    EXPECT_ERROR("node 0 of the graph, a native call captured at ", "cublasSetWorkspace");
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

// The driver calls it: a launch is one call, holds nothing, and does not wait. Launches under way keep their call.
SCENE_TEST(CudaGraph, AHostCallIsAHostNode)
{
    const long nodes = scene->fake->calls("cuGraphAddHostNode");
    own_graph graph = make_around(scene, submit_host_call);
    EXPECT_INT_EQ(scene->fake->calls("cuGraphAddHostNode"), nodes + 1);
    const long launches = scene->fake->calls("cuGraphLaunch");
    scene->fake->hold(1);
    for (int i = 0; i < 20; i++)
        EXPECT_OK(weir_queue_graph(scene->rig.queue, graph));
    EXPECT_INT_EQ(scene->fake->calls("cuGraphLaunch"), launches + 20);
    EXPECT_INT_EQ(atomic_load(&scene->calls), 0);
    struct scene later = {.status = WEIR_OK};
    EXPECT_OK(weir_graph_set_host_call(graph, 1, count, &later));
    EXPECT_OK(weir_queue_graph(scene->rig.queue, graph));
    scene->fake->hold(0);
    EXPECT_OK(weir_queue_sync(scene->rig.queue, GUARD_NS));
    EXPECT_INT_EQ(atomic_load(&scene->calls), 20);
    EXPECT_INT_EQ(atomic_load(&later.calls), 1);
}

// Of launches under way, the one whose call failed is named, and those of the queue after it call
// nothing. One that the driver refused leaves the count right.
SCENE_TEST(CudaGraph, TheFailedLaunchIsNamed)
{
    own_queue other = rig_queue(&scene->rig, false);
    own_graph graph = make_around(scene, submit_host_call);
    scene->fake->fail("cuGraphLaunch", 1, 0);
    EXPECT_INT_EQ(weir_queue_graph(scene->rig.queue, graph), WEIR_ERROR_DEVICE);
    scene->fake->fail(NULL, 0, 0);
    EXPECT_OK(weir_queue_recover(scene->rig.queue));
    expect_byte(scene, graph, 3);
    scene->status = WEIR_ERROR_IO;
    scene->fake->hold(1);
    EXPECT_OK(weir_queue_graph(other, graph));
    EXPECT_OK(weir_queue_graph(other, graph));
    scene->fake->hold(0);
    EXPECT_FAILURE(weir_queue_sync(other, GUARD_NS), WEIR_ERROR_IO, "operation 1 of queue",
                   "node 1, a host call captured at ");
    EXPECT_INT_EQ(atomic_load(&scene->calls), 2);
    EXPECT_OK(weir_queue_recover(other));
    scene->status = WEIR_OK;
    expect_byte(scene, graph, 3);
    EXPECT_INT_EQ(atomic_load(&scene->calls), 3);
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
SCENE_TEST(CudaGraph, DisablingBuildsNothing)
{
    const struct weir_test_cuda *fake = scene->fake;
    const long before = nodes_made(fake);
    own_graph graph = make_around(scene, submit_pattern);
    const long made = fake->calls("cuGraphInstantiateWithFlags");
    const long parts = nodes_made(fake) - before - 2; // of the second fill
    const long switches = fake->calls("cuGraphNodeSetEnabled");
    EXPECT_TRUE(parts > 1);
    EXPECT_OK(weir_graph_set_enabled(graph, 1, false));
    EXPECT_INT_EQ(fake->calls("cuGraphNodeSetEnabled"), switches + parts);
    expect_byte(scene, graph, 3);

    // A failure leaves all parts as they were.
    fake->fail("cuGraphNodeSetEnabled", 2, 0);
    EXPECT_FAILURE(weir_graph_set_enabled(graph, 1, true), WEIR_ERROR_DEVICE,
                   "cuGraphNodeSetEnabled");
    fake->fail(NULL, 0, 0);
    expect_byte(scene, graph, 3);
    EXPECT_OK(weir_graph_set_enabled(graph, 1, true));
    expect_byte(scene, graph, 9);
    EXPECT_INT_EQ(fake->calls("cuGraphInstantiateWithFlags"), made);

    // Nor does a graph that cannot be made with its disabled nodes take the place of the old one.
    EXPECT_OK(weir_graph_set_enabled(graph, 1, false));
    fake->fail("cuGraphNodeSetEnabled", 1, 0);
    EXPECT_INT_EQ(weir_graph_set_fill(graph, 0, scene->memory, 0, SIZE, pattern, 8),
                  WEIR_ERROR_DEVICE);
    fake->fail(NULL, 0, 0);
    expect_byte(scene, graph, 3);
    EXPECT_OK(weir_graph_set_fill(graph, 0, scene->memory, 0, SIZE, pattern, 8));
    expect_byte(scene, graph, 9);
}

// Each driver call of a change fails once, as does a function that waits: an error that names it, and the graph does
// what it did.

static weir_status change_fill(struct scene *scene, weir_graph *graph)
{
    const uint32_t word = 5;
    return weir_graph_set_fill(graph, 0, scene->memory, 0, SIZE, &word, 4);
}

static weir_status capture_native(struct scene *scene, weir_graph *graph)
{
    weir_graph *other = NULL;
    EXPECT_OK(weir_capture_begin(scene->rig.queue));
    submit_native(scene);
    const weir_status status = weir_capture_end(scene->rig.queue, NULL, &other);
    EXPECT_NULL(other);
    return status;
}

static weir_status clone_graph(struct scene *scene, weir_graph *graph)
{
    weir_graph *clone = NULL;
    EXPECT_OK(weir_graph_set_enabled(graph, 0, false));
    const weir_status status = weir_graph_clone(graph, NULL, &clone);
    EXPECT_OK(weir_graph_set_enabled(graph, 0, true));
    EXPECT_NULL(clone);
    return status;
}

static void submit_calls(struct scene *scene)
{
    submit_native(scene);
    EXPECT_OK(weir_queue_host_call(scene->rig.queue, count, scene));
}

SCENE_TEST(CudaGraph, AFailedChangeChangesNothing)
{
    static const struct {
        weir_status (*change)(struct scene *scene, weir_graph *graph);
        weir_native_function native; // NULL: `change` is made, else the graph has this one
        const char *calls[6];
    } cases[] = {
        {change_fill,
         NULL,
         {"cuGraphCreate", "cuGraphAddMemsetNode", "cuGraphInstantiateWithFlags", "cuGraphUpload"}},
        {NULL,
         call_library,
         {"cuStreamCreateWithPriority", "cuStreamBeginCapture", "cuStreamEndCapture",
          "cuGraphExecChildGraphNodeSetParams"}},
        {NULL,
         call_library_once,
         {"cuGraphCreate", "cuGraphAddChildGraphNode", "cuGraphInstantiateWithFlags"}},
        {capture_native,
         NULL,
         {"cuStreamCreateWithPriority", "cuStreamBeginCapture", "cuStreamEndCapture",
          "cuGraphGetNodes", "cuGraphAddChildGraphNode"}},
        {clone_graph,
         NULL,
         {"cuGraphCreate", "cuGraphAddMemsetNode", "cuGraphAddHostNode",
          "cuGraphInstantiateWithFlags", "cuGraphNodeSetEnabled", "cuGraphUpload"}},
    };
    own_graph clone = NULL;
    own_graph graph = make_around(scene, submit_calls);
    expect_byte(scene, graph, 3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t n = 0; n < 6 && cases[i].calls[n]; n++) {
            weir_test_note("case %zu: %s fails", i, cases[i].calls[n]);
            // A node is disabled in place before it is cloned.
            const bool second = strcmp(cases[i].calls[n], "cuGraphNodeSetEnabled") == 0;
            scene->fake->fail(cases[i].calls[n], second ? 2 : 1, 999);
            EXPECT_INT_EQ(cases[i].native ? set_library(scene, graph, cases[i].native)
                                          : cases[i].change(scene, graph),
                          WEIR_ERROR_DEVICE);
            EXPECT_INT_EQ(scene->fake->struck(), 1);
            scene->fake->fail(NULL, 0, 0);
            EXPECT_CONTAINS(weir_last_error_text(), cases[i].calls[n]);
            atomic_store(&scene->calls, 0);
            expect_byte(scene, graph, 3);
            EXPECT_INT_EQ(atomic_load(&scene->calls), 3);
        }
    weir_test_note(NULL);
    EXPECT_TRUE(set_library(scene, graph, wait_for_stream) < 0);
    EXPECT_ERROR("901", "graph_test.c:");
    EXPECT_OK(weir_graph_clone(graph, NULL, &clone)); // calls the function of before
    atomic_store(&scene->calls, 0);
    expect_byte(scene, clone, 3);
    EXPECT_INT_EQ(atomic_load(&scene->calls), 3);
}
