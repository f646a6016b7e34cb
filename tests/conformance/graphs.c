// Graphs: results, order, updates, and lifetimes.

#include "tests/conformance/graph_rig.h"

// Nothing of it runs before a launch.
CONFORM_RIG(Graph, Diamond)
{
    weir_graph *graph = capture_diamond(r, 5);
    EXPECT_UINT_EQ(weir_graph_node_count(graph), 4);
    EXPECT_SYNC(r->a);
    EXPECT_TRUE(all_are(r->host, 0, SIZE, 0));
    for (int i = 0; i < 3; i++) {
        EXPECT_TRUE(leaves(r, r->a, graph, 5, 5));
    }
    weir_graph_destroy(&graph);
    EXPECT_NULL(graph);
}

// Out and back in twice, with the second fork from the joined queue.
CONFORM_RIG(Graph, TwoForks)
{
    ASSERT_OK(weir_capture_begin(r->a));
    fill(r->a, r->x, 0, SIZE, 1);
    follow(r->b, r->a);
    fill(r->b, r->x, 0, 64, 2);
    follow(r->a, r->b);
    copy(r->a, r->y, r->x, 0, SIZE);
    follow(r->c, r->a);
    fill(r->c, r->y, 64, 64, 3);
    fill(r->a, r->y, 128, 64, 4);
    follow(r->a, r->c);
    copy(r->a, r->host, r->y, 0, SIZE);
    own_graph graph = conform_end(r->a);
    EXPECT_UINT_EQ(weir_graph_node_count(graph), 6);

    for (int i = 0; i < 2; i++)
        ASSERT_OK(weir_queue_graph(r->a, graph));
    EXPECT_SYNC(r->a);
    EXPECT_TRUE(all_are(r->host, 0, 64, 2));
    EXPECT_TRUE(all_are(r->host, 64, 64, 3));
    EXPECT_TRUE(all_are(r->host, 128, 64, 4));
    EXPECT_TRUE(all_are(r->host, 192, SIZE - 192, 1));
}

// Several events between three queues, some of them after others, and a graph that begins
// with a fork: its first nodes are on the other queues.
CONFORM_RIG(Graph, ThreeQueues)
{
    ASSERT_OK(weir_capture_begin(r->a));
    const struct weir_event early = test_record(r->a);
    ASSERT_OK(weir_queue_wait(r->b, early));
    ASSERT_OK(weir_queue_wait(r->c, early));
    fill(r->b, r->x, 0, SIZE, 1);
    fill(r->c, r->y, 0, SIZE, 2);
    follow(r->c, r->b);
    copy(r->c, r->y, r->x, 0, SIZE / 2);
    follow(r->b, r->c);
    copy(r->b, r->z, r->y, 0, SIZE);
    follow(r->a, r->c); // implied by the next
    follow(r->a, r->b);
    copy(r->a, r->host, r->z, 0, SIZE);
    own_graph graph = conform_end(r->a);
    EXPECT_UINT_EQ(weir_graph_node_count(graph), 5);

    for (int i = 0; i < 3; i++)
        ASSERT_OK(weir_queue_graph(r->a, graph));
    EXPECT_SYNC(r->a);
    EXPECT_TRUE(halves_are(r, 1, 2));
}

// The last node is on the queue that joined; the launching queue waits for it, among other work.
CONFORM_RIG(Graph, EndsOnAnotherBranch)
{
    ASSERT_OK(weir_capture_begin(r->a));
    follow(r->b, r->a);
    copy(r->b, r->y, r->x, 0, SIZE);
    follow(r->a, r->b);
    own_graph graph = conform_end(r->a);
    EXPECT_UINT_EQ(weir_graph_node_count(graph), 1);
    for (unsigned char i = 1; i <= 50; i++) {
        fill(r->a, r->x, 0, SIZE, i);
        ASSERT_OK(weir_queue_graph(r->a, graph));
        fill(r->a, r->x, 0, SIZE, 0);
        copy(r->a, r->host, r->y, 0, SIZE);
        if (i % 10 == 0) {
            EXPECT_SYNC(r->a);
            EXPECT_TRUE(all_are(r->host, 0, SIZE, i));
        }
    }
}

static void capture_kinds(const struct rig *r, weir_buffer *other, weir_kernel *increment)
{
    static const unsigned char pattern[16] = {1, 2,  3,  4,  5,  6,  7,  8,
                                              9, 10, 11, 12, 13, 14, 15, 16};
    const struct weir_plane to = {.buffer = r->z, .offset = 16, .pitch = 64};
    const struct weir_plane from = {.buffer = r->x, .offset = 0, .pitch = 32};
    const struct weir_plane host_to = {.buffer = r->host, .offset = 2048, .pitch = 64};
    const struct weir_plane host_from = {.buffer = other, .offset = 8, .pitch = 48};

    EXPECT_OK(weir_capture_begin(r->a));
    EXPECT_OK(weir_queue_fill(r->a, r->x, 0, 1024, pattern, 16));
    EXPECT_UINT_EQ(last_node(r->a), 0);
    EXPECT_OK(weir_queue_fill(r->a, r->y, 0, 1024, pattern, 8));
    EXPECT_OK(weir_queue_fill(r->a, r->z, 0, SIZE, pattern, 4));
    EXPECT_OK(weir_queue_fill(r->a, other, 0, SIZE, pattern, 16)); // HOST
    EXPECT_OK(weir_queue_copy_2d(r->a, to, from, 16, 8));
    EXPECT_OK(weir_queue_launch(r->a, increment, blocks, block, weir_inout(r->y, 0, WORDS), 1u, N));
    EXPECT_OK(weir_queue_copy(r->a, r->host, 0, r->y, 0, 1024));
    EXPECT_OK(weir_queue_copy(r->a, r->host, 1024, other, 0, 1024)); // HOST to HOST
    EXPECT_OK(weir_queue_copy_2d(r->a, host_to, host_from, 24, 4));
    EXPECT_OK(weir_queue_copy(r->a, r->host, 3072, r->z, 0, 1024));
    EXPECT_UINT_EQ(last_node(r->a), 9);
}

// What capture_kinds() leaves in `host`.
static void check_kinds(struct fixture *f, const struct rig *r)
{
    const unsigned char *bytes = conform_bytes(r->host);
    const bool runs = conform_kernels_run(f);
    for (size_t i = 0; i < 1024; i++) {
        unsigned char plain = (unsigned char)(i % 8 + 1);
        ASSERT_UINT_EQ(bytes[i], plain + (runs && i % 4 == 0));
        ASSERT_UINT_EQ(bytes[1024 + i], i % 16 + 1);
    }
    for (size_t row = 0; row < 4; row++)
        for (size_t i = 0; i < 24; i++)
            ASSERT_UINT_EQ(bytes[2048 + 64 * row + i], (8 + 48 * row + i) % 16 + 1);
    for (size_t i = 0; i < 512; i++) {
        bool copied = i % 64 >= 16 && i % 64 < 32;
        ASSERT_UINT_EQ(bytes[3072 + i], copied ? i % 16 + 1 : i % 4 + 1);
    }
}

CONFORM_RIG(Graph, EveryKindOfNode)
{
    own_buffer other = conform_host_buffer(f, SIZE);
    own_kernel increment = conform_kernel(f, "increment");
    capture_kinds(r, other, increment);
    own_graph graph = conform_end(r->a);
    EXPECT_UINT_EQ(weir_graph_node_count(graph), 10);
    for (int i = 0; i < 2; i++) {
        memset(conform_bytes(r->host), 0xee, SIZE);
        launch_and_sync(r->a, graph);
        check_kinds(f, r);
    }
}

// No nodes are made of empty operations, and an empty graph is still a graph.
CONFORM_RIG(Graph, Empty)
{
    uint32_t node;
    ASSERT_OK(weir_capture_begin(r->a));
    EXPECT_REFUSED(weir_capture_node(r->a, &node), WEIR_ERROR_INVALID, "nothing was captured");
    copy(r->a, r->y, r->x, 0, 0);
    EXPECT_REFUSED(weir_capture_node(r->a, &node), WEIR_ERROR_NOT_FOUND, "empty");
    fill(r->a, r->host, 0, SIZE, 1);
    fill(r->a, r->host, 0, 0, 2);
    EXPECT_REFUSED(weir_capture_node(r->a, &node), WEIR_ERROR_NOT_FOUND, "empty");
    own_graph graph = conform_end(r->a);
    EXPECT_UINT_EQ(weir_graph_node_count(graph), 1);
    ASSERT_OK(weir_capture_begin(r->a));
    own_graph none = conform_end(r->a);
    EXPECT_UINT_EQ(weir_graph_node_count(none), 0);
    EXPECT_UINT_EQ(weir_graph_node_count(NULL), 0);
    own_graph clone = NULL;
    ASSERT_OK(weir_graph_clone(none, NULL, &clone));
    EXPECT_UINT_EQ(weir_graph_node_count(clone), 0);
    ASSERT_OK(weir_queue_graph(r->a, none));
    ASSERT_OK(weir_queue_graph(r->a, graph));
    launch_and_sync(r->a, clone);
    EXPECT_TRUE(all_are(r->host, 0, SIZE, 1));
}

// Order and updates.

// A counter in `x` that each launch moves by one, and a copy of it to `host`.
struct counter {
    struct rig r;
    weir_kernel *increment;
    weir_graph *graph;
    uint32_t node;
};

// One that forks moves the words after it too, on the other branch.
static struct counter make_counter(struct fixture *f, bool forks)
{
    struct counter counter = {.r = make_rig(f), .increment = conform_kernel(f, "increment")};
    const struct rig *r = &counter.r;
    fill(r->a, r->x, 0, SIZE, 0);
    EXPECT_SYNC(r->a);
    EXPECT_OK(weir_capture_begin(r->a));
    if (forks)
        follow(r->b, r->a);
    EXPECT_OK(weir_queue_launch(r->a, counter.increment, blocks, block, weir_inout(r->x, 0, WORDS),
                                1u, N));
    counter.node = last_node(r->a);
    if (forks) {
        EXPECT_OK(weir_queue_launch(r->b, counter.increment, blocks, block,
                                    weir_inout(r->x, WORDS, WORDS), 1u, N));
        follow(r->a, r->b);
    }
    copy(r->a, r->host, r->x, 0, 2 * WORDS);
    counter.graph = conform_end(r->a);
    return counter;
}

static void destroy_counter(struct counter *counter)
{
    weir_graph_destroy(&counter->graph);
    weir_kernel_destroy(&counter->increment);
    destroy_rig(&counter->r);
}

#define own_counter OWN(destroy_counter) struct counter

static bool words_are(weir_buffer *host, uint32_t value)
{
    uint32_t words[N];
    memcpy(words, conform_bytes(host), sizeof words);
    for (unsigned i = 0; i < N; i++)
        if (words[i] != value)
            return false;
    return true;
}

// Alternating launches on three queues, without syncs, still count one by one; and those of a graph that forks.
CONFORM(Graph, LaunchesNeverOverlap)
{
    CONFORM_NEEDS_KERNELS(f);
    for (int forks = 0; forks < 2; forks++) {
        own_counter counter = make_counter(f, forks);
        weir_queue *queues[] = {counter.r.b, counter.r.c, counter.r.a};
        const unsigned launches = forks ? 198 : 1000;
        for (unsigned i = 1; i <= launches; i++) {
            ASSERT_OK(weir_queue_graph(queues[i / (1u + (unsigned)forks) % 3], counter.graph));
            if (i % (launches / 2) == 0) {
                for (int k = 0; k < 3; k++)
                    EXPECT_SYNC(queues[k]);
                EXPECT_TRUE(words_are(counter.r.host, i));
            }
        }
    }
}

// A launch waits for the previous launch, but not for later work of that launch's queue.
CONFORM_RIG(Graph, WaitsForTheLaunchAlone)
{
    own_graph graph = capture_diamond(r, 3);
    ASSERT_OK(weir_queue_graph(r->a, graph));
    own_gate gate = gate_on(r->a);
    launch_and_sync(r->c, graph);
    EXPECT_TRUE(all_are(r->host, 0, SIZE, 3));
    gate_open(gate);
    EXPECT_SYNC(r->a);
}

// Launches that a host call holds, on one queue and, waiting for it, on another.
CONFORM_RIG(Graph, AfterAHostCall)
{
    own_graph graph = capture_diamond(r, 6);
    own_gate gate = gate_on(r->a);
    ASSERT_OK(weir_queue_graph(r->a, graph));
    ASSERT_OK(weir_queue_graph(r->c, graph));
    const struct weir_event event = test_record(r->c);
    EXPECT_TRUE(gate_await(gate, 1));
    EXPECT_INT_EQ(weir_event_sync(event, WEIR_MS(3)), WEIR_TIMEOUT);
    EXPECT_TRUE(all_are(r->host, 0, SIZE, 0));
    gate_open(gate);
    EXPECT_OK(weir_event_sync(event, HANG_GUARD_NS));
    EXPECT_TRUE(all_are(r->host, 0, SIZE, 6));
    EXPECT_SYNC(r->a);
}

CONFORM_RIG(Graph, UpdateCopyAndFill)
{
    uint32_t nodes[2];
    const uint32_t word = 0x05050505u;
    const unsigned char pattern[16] = {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8};
    own_buffer other = conform_host_buffer(f, SIZE);
    memset(conform_bytes(other), 0, SIZE);
    ASSERT_OK(weir_capture_begin(r->a));
    fill(r->a, r->x, 0, SIZE, 1);
    nodes[0] = last_node(r->a);
    copy(r->a, r->host, r->x, 0, SIZE);
    nodes[1] = last_node(r->a);
    own_graph graph = conform_end(r->a);
    EXPECT_TRUE(leaves(r, r->a, graph, 1, 1));

    ASSERT_OK(weir_graph_set_fill(graph, nodes[0], r->y, 0, SIZE, &word, 4));
    ASSERT_OK(weir_graph_set_copy(graph, nodes[1], other, 64, r->y, 0, SIZE - 64));
    launch_and_sync(r->a, graph);
    EXPECT_TRUE(all_are(r->host, 0, SIZE, 1));
    EXPECT_TRUE(all_are(other, 0, 64, 0));
    EXPECT_TRUE(all_are(other, 64, SIZE - 64, 5));

    // A pattern of another size may be other work for the driver.
    ASSERT_OK(weir_graph_set_fill(graph, nodes[0], r->y, 0, 512, pattern, 16));
    for (int i = 0; i < 2; i++)
        ASSERT_OK(weir_queue_graph(i ? r->a : r->b, graph));
    EXPECT_SYNC(r->a);
    EXPECT_TRUE(all_are(other, 64, 512, 8));
    EXPECT_TRUE(all_are(other, 64 + 512, SIZE - 64 - 512, 5));
}

CONFORM(Graph, UpdateLaunch)
{
    CONFORM_NEEDS_KERNELS(f);
    own_counter counter = make_counter(f, false);
    struct rig *r = &counter.r;
    ASSERT_OK(weir_queue_graph(r->a, counter.graph));
    const struct weir_argument arguments[] = {weir_inout(r->x, 0, WORDS),
                                              weir_value(&(uint32_t){10}, 4),
                                              weir_value(&(uint32_t){N}, 4)};
    ASSERT_OK(weir_graph_set_launch(counter.graph, counter.node, blocks, block, arguments, 3));
    for (int i = 0; i < 3; i++)
        ASSERT_OK(weir_queue_graph(r->a, counter.graph));
    EXPECT_SYNC(r->a);
    EXPECT_TRUE(words_are(r->host, 31));
}

CONFORM(Graph, UpdateRefusals)
{
    const unsigned char value = 1;
    own_counter counter = make_counter(f, false);
    struct rig *r = &counter.r;
    weir_graph *graph = counter.graph;
    const struct weir_argument arguments[] = {weir_inout(r->x, 0, WORDS),
                                              weir_value(&(uint32_t){1}, 4),
                                              weir_value(&(uint32_t){N}, 4)};
    EXPECT_INVALID(weir_graph_set_fill(graph, 0, r->x, 0, 64, &value, 1), "node 0 is a launch");
    EXPECT_INVALID(weir_graph_set_fill(graph, 0, r->x, 0, 64, &value, 1), "cannot become a fill");
    EXPECT_INVALID(weir_graph_set_copy(graph, 0, r->x, 0, r->y, 0, 64), "cannot become a copy");
    EXPECT_INVALID(weir_graph_set_launch(graph, 1, blocks, block, arguments, 3),
                   "node 1 is a copy");
    EXPECT_INVALID(weir_graph_set_copy(graph, 2, r->x, 0, r->y, 0, 64), "the graph has 2");
    EXPECT_INVALID(weir_graph_set_copy(graph, 1, r->x, 0, r->y, 0, 64), "HOST buffer");
    EXPECT_INVALID(weir_graph_set_copy(graph, 1, r->host, 0, r->y, 0, 0), "empty");
    EXPECT_INVALID(weir_graph_set_copy(graph, 1, r->host, 1, r->y, 0, SIZE), "dst");
    EXPECT_INVALID(weir_graph_set_launch(graph, 0, blocks, block, arguments, 2), "2 arguments");
    EXPECT_INVALID(weir_graph_set_launch(graph, 0, weir_dim(0, 1, 1), block, arguments, 3),
                   "empty");
    EXPECT_INVALID(weir_graph_set_copy(NULL, 1, r->host, 0, r->y, 0, SIZE), "graph");
    // None of it changed anything.
    if (conform_kernels_run(f)) {
        launch_and_sync(r->a, graph);
        EXPECT_TRUE(words_are(r->host, 1));
    }
}

// Lifetimes.

CONFORM_RIG(Graph, OperandsDestroyedFirst)
{
    weir_kernel *increment = conform_kernel(f, "increment");
    ASSERT_OK(weir_capture_begin(r->a));
    fill(r->a, r->x, 0, SIZE, 0);
    ASSERT_OK(weir_queue_launch(r->a, increment, blocks, block, weir_inout(r->x, 0, WORDS), 1u, N));
    copy(r->a, r->y, r->x, 0, SIZE);
    weir_buffer_destroy(&r->x);
    weir_kernel_destroy(&increment);
    copy(r->a, r->host, r->y, 0, SIZE);
    own_graph graph = conform_end(r->a);
    weir_buffer_destroy(&r->y);
    ASSERT_OK(weir_device_trim(f->device));
    memset(conform_bytes(r->host), 0xee, SIZE);
    for (int i = 0; i < 3; i++)
        ASSERT_OK(weir_queue_graph(r->a, graph));
    EXPECT_SYNC(r->a);
    EXPECT_TRUE(words_are(r->host, conform_kernels_run(f) ? 1 : 0));
}

// An object that an update removes from a graph can be freed; one that it adds cannot.
CONFORM_RIG(Graph, UpdateMovesTheUse)
{
    fill(r->a, r->x, 0, SIZE, 1);
    fill(r->a, r->y, 0, SIZE, 2);
    ASSERT_OK(weir_capture_begin(r->a));
    copy(r->a, r->host, r->x, 0, SIZE);
    own_graph graph = conform_end(r->a);
    weir_buffer_destroy(&r->x);
    ASSERT_OK(weir_graph_set_copy(graph, 0, r->host, 0, r->y, 0, SIZE));
    weir_buffer_destroy(&r->y);
    ASSERT_OK(weir_device_trim(f->device));
    EXPECT_TRUE(leaves(r, r->a, graph, 2, 2));
}

CONFORM_RIG(Graph, DestroyedWhileItRuns)
{
    weir_graph *graph = capture_diamond(r, 4);
    own_gate gate = gate_on(r->c);
    ASSERT_OK(weir_queue_graph(r->c, graph));
    weir_graph_destroy(&graph);
    weir_buffer_destroy(&r->x);
    weir_buffer_destroy(&r->y);
    EXPECT_TRUE(gate_await(gate, 1));
    gate_open(gate);
    EXPECT_SYNC(r->c);
    EXPECT_TRUE(all_are(r->host, 0, SIZE, 4));
}

// Once warm, launches allocate no memory and create no native object.
static void expect_flat(weir_queue *queue, weir_graph *graph)
{
    struct weir_counters before;
    struct weir_counters after;
    for (int i = 0; i < 200; i++) {
        if (i == 100)
            weir_counters_read(&before);
        for (int n = 0; n < 4; n++)
            ASSERT_OK(weir_queue_graph(queue, graph));
        EXPECT_SYNC(queue);
    }
    weir_counters_read(&after);
    EXPECT_UINT_EQ(after.allocations, before.allocations);
    EXPECT_UINT_EQ(after.driver_objects, before.driver_objects);
}

CONFORM_RIG(Graph, LaunchesAllocateNothing)
{
    own_graph forked = capture_diamond(r, 4);
    ASSERT_OK(weir_capture_begin(r->a));
    fill(r->a, r->x, 0, SIZE, 1);
    copy(r->a, r->host, r->x, 0, SIZE);
    own_graph row = conform_end(r->a);
    expect_flat(r->a, row);
    expect_flat(r->a, forked);
}

// Failures.

// A launch after a failure is refused with its cause, and another queue inherits the
// failure only if it waits for the failed work.
CONFORM_RIG(Graph, AfterAFailure)
{
    own_graph graph = capture_diamond(r, 4);
    own_gate gate = gate_on(r->a);
    ASSERT_OK(weir_queue_host_call(r->a, fail_plainly, NULL));
    ASSERT_OK(weir_queue_graph(r->a, graph));
    ASSERT_OK(weir_queue_graph(r->c, graph));
    gate_open(gate);
    EXPECT_REFUSED(weir_queue_sync(r->a, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL, "host call");
    EXPECT_REFUSED(weir_queue_sync(r->c, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL, "host call");
    EXPECT_REFUSED(weir_queue_graph(r->a, graph), WEIR_ERROR_HOST_CALL, "host call");
    EXPECT_REFUSED(weir_capture_begin(r->a), WEIR_ERROR_HOST_CALL, "host call");
    ASSERT_OK(weir_queue_recover(r->a));
    ASSERT_OK(weir_queue_recover(r->c));
    // The failed launch has ended, and no longer causes failures.
    EXPECT_TRUE(leaves(r, r->b, graph, 4, 4));

    // A failure after a launch does not affect the next launch.
    ASSERT_OK(weir_queue_graph(r->a, graph));
    ASSERT_OK(weir_queue_host_call(r->a, fail_plainly, NULL));
    EXPECT_REFUSED(weir_queue_sync(r->a, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL, "host call");
    launch_and_sync(r->c, graph);
    ASSERT_OK(weir_queue_recover(r->a));
}

// Threads launch one graph, each on its own queue, while two others update it.
struct worker {
    const struct counter *counter;
    weir_queue *queue; // NULL: it updates
};

static void *launch_or_update(void *argument)
{
    const struct worker *worker = argument;
    const struct rig *r = &worker->counter->r;
    weir_graph *graph = worker->counter->graph;
    for (int i = 0; i < 100 && worker->queue; i++)
        EXPECT_OK(weir_queue_graph(worker->queue, graph));
    for (int i = 0; i < 50 && !worker->queue; i++)
        EXPECT_OK(weir_graph_set_copy(graph, 1, r->host, 0, r->x, 0, WORDS));
    if (worker->queue)
        EXPECT_SYNC(worker->queue);
    return NULL;
}

CONFORM(Graph, LaunchedByManyThreads)
{
    CONFORM_NEEDS_KERNELS(f);
    own_counter counter = make_counter(f, false);
    const struct rig *r = &counter.r;
    struct worker workers[] = {
        {&counter, r->a}, {&counter, r->b}, {&counter, r->c}, {&counter, NULL}, {&counter, NULL}};
    conform_run_threads(launch_or_update, workers, sizeof *workers, 5);
    EXPECT_TRUE(words_are(r->host, 300));
}
