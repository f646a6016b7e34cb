// Captures: refused calls, their events, and threads; clones of graphs, and nodes that are disabled.
#include <pthread.h>

#include "tests/conformance/graph_rig.h"

CONFORM_RIG(Capture, BeginAndEndRefusals)
{
    own_graph graph = NULL;
    uint32_t node;
    EXPECT_INVALID(weir_capture_end(r->a, NULL, &graph), "no capture began on queue 'a'");
    EXPECT_REFUSED(weir_capture_node(r->a, &node), WEIR_ERROR_INVALID, "captures nothing");
    EXPECT_INVALID(weir_capture_begin(NULL), "queue");
    ASSERT_OK(weir_capture_begin(r->a));
    EXPECT_INVALID(weir_capture_begin(r->a), "captures.c:");
    EXPECT_INVALID(weir_capture_end(r->a, NULL, NULL), "out_graph");
    fill(r->a, r->x, 0, SIZE, 1);
    follow(r->b, r->a);
    EXPECT_INVALID(weir_capture_begin(r->b), "part of a capture");
    EXPECT_INVALID(weir_capture_end(r->b, NULL, &graph), "began on another queue");
    EXPECT_NULL(graph);
    ASSERT_OK(weir_capture_end(r->a, NULL, &graph)); // b has nothing in it
    EXPECT_INVALID(weir_queue_graph(NULL, graph), "queue");
    EXPECT_INVALID(weir_queue_graph(r->a, NULL), "graph");
}

// The capture is dropped, and all its queues are as before.
CONFORM_RIG(Capture, UnjoinedQueue)
{
    weir_graph *graph = NULL;
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(weir_capture_begin(r->a));
        fill(r->a, r->x, 0, SIZE, 1);
        follow(r->b, r->a);
        fill(r->b, r->host, 0, SIZE, 2);
        if (i)
            follow(r->a, r->b);
        follow(r->c, r->b);
        fill(r->b, r->host, 0, SIZE, 3);
        EXPECT_INVALID(weir_capture_end(r->a, NULL, &graph), "queue 'b' joined the capture");
        EXPECT_NULL(graph);
        EXPECT_SYNC(r->a);
        EXPECT_SYNC(r->b);
        EXPECT_SYNC(r->c);
        EXPECT_TRUE(all_are(r->host, 0, SIZE, 0));
    }
}

CONFORM_RIG(Capture, Cancel)
{
    ASSERT_OK(weir_capture_cancel(r->a)); // nothing to do
    ASSERT_OK(weir_capture_begin(r->a));
    fill(r->a, r->host, 0, SIZE, 1);
    follow(r->b, r->a);
    fill(r->b, r->host, 0, SIZE, 2);
    const struct weir_event event = test_record(r->b);
    ASSERT_OK(weir_capture_cancel(r->b)); // none began on it
    EXPECT_INVALID(weir_queue_sync(r->b, 0), "captures a graph");
    ASSERT_OK(weir_capture_cancel(r->a));
    EXPECT_SYNC(r->a);
    EXPECT_SYNC(r->b);
    EXPECT_INVALID(weir_queue_wait(r->c, event), "recorded in a capture");
    EXPECT_TRUE(all_are(r->host, 0, SIZE, 0));
    fill(r->b, r->host, 0, SIZE, 3);
    EXPECT_SYNC(r->b);
    EXPECT_TRUE(all_are(r->host, 0, SIZE, 3));
}

// Destroying a queue of a capture cancels it.
CONFORM_RIG(Capture, QueueDestroyed)
{
    for (int i = 0; i < 2; i++) {
        weir_queue *extra = conform_queue(f, "extra");
        weir_queue *first = i ? r->a : extra;
        weir_queue *second = i ? extra : r->a;
        ASSERT_OK(weir_capture_begin(first));
        follow(second, first);
        fill(first, r->host, 0, SIZE, 1);
        const struct weir_event event = test_record(extra);
        weir_queue_destroy(&extra);
        EXPECT_SYNC(r->a);
        EXPECT_INVALID(weir_event_query(event), "recorded in a capture");
    }
    EXPECT_TRUE(all_are(r->host, 0, SIZE, 0));
}

static void *capture_and_end(void *argument)
{
    weir_queue *queue = NULL;
    EXPECT_OK(weir_thread_queue(argument, &queue));
    EXPECT_OK(weir_capture_begin(queue));
    (void)test_record(queue);
    return NULL;
}

// A thread's queue is destroyed with its thread, and its capture is dropped.
CONFORM(Capture, ThreadThatEnds)
{
    conform_run_threads(capture_and_end, f->device, 0, 1);
}

static weir_status no_native(const struct weir_native_queue *native, void *user)
{
    return WEIR_ERROR_IO;
}

CONFORM_RIG(Capture, WhatCannotBeCaptured)
{
    unsigned char bytes[16] = {0};
    own_graph other = capture_diamond(r, 1);
    ASSERT_OK(weir_capture_begin(r->a));
    if (!f->limits->native)
        EXPECT_REFUSED(weir_queue_native(r->a, no_native, NULL, weir_in(r->x, 0, SIZE)),
                       WEIR_ERROR_UNSUPPORTED, "native");
    EXPECT_INVALID(weir_upload(r->a, r->x, 0, bytes, 16), "uploads and downloads");
    EXPECT_INVALID(weir_download(r->a, bytes, r->x, 0, 16), "uploads and downloads");
    EXPECT_INVALID(weir_queue_sync(r->a, WEIR_FOREVER), "weir_queue_sync");
    EXPECT_INVALID(weir_queue_recover(r->a), "weir_queue_recover");
    EXPECT_INVALID(weir_queue_graph(r->a, other), "a graph's launch cannot");
    ASSERT_OK(weir_queue_flush(r->a));
    // A refused call is not part of the graph and does not end the capture.
    fill(r->a, r->host, 0, SIZE, 8);
    EXPECT_INVALID(weir_queue_copy(r->a, r->x, 1, r->y, 0, SIZE), "dst");
    own_graph graph = conform_end(r->a);
    EXPECT_UINT_EQ(weir_graph_node_count(graph), 1);
    EXPECT_TRUE(leaves(r, r->a, graph, 8, 8));
}

// A graph can use memory of a pool like any other, but it is allocated and freed
// outside.
CONFORM_RIG(Capture, PoolMemory)
{
    weir_buffer *other = NULL;
    own_pool pool = conform_pool(f, WEIR_PLACE_DEVICE, 0);
    weir_buffer *memory = conform_take(pool, r->a, SIZE);
    ASSERT_OK(weir_capture_begin(r->a));
    EXPECT_INVALID(weir_pool_allocate(pool, r->a, SIZE, &other), "cannot be allocated");
    EXPECT_INVALID(weir_pool_free(r->a, &memory), "cannot be freed");
    fill(r->a, memory, 0, SIZE, 5);
    copy(r->a, r->host, memory, 0, SIZE);
    weir_graph *graph = conform_end(r->a);
    EXPECT_TRUE(leaves(r, r->a, graph, 5, 5));
    EXPECT_INVALID(weir_pool_free(r->a, &memory), "a graph uses the buffer");
    weir_graph_destroy(&graph);
    EXPECT_OK(weir_pool_free(r->a, &memory));
}

// A captured event is valid only in its capture, and other events are not valid in
// it.
CONFORM_RIG(Capture, Events)
{
    uint64_t time_ns;
    size_t index;
    int fd;
    const struct weir_event before = test_record(r->a);
    ASSERT_OK(weir_capture_begin(r->a));
    const struct weir_event inside = test_record(r->a);
    EXPECT_INVALID(weir_queue_wait(r->a, before), "outside of it");
    EXPECT_INVALID(weir_event_query(inside), "recorded in a capture");
    EXPECT_INVALID(weir_event_error(inside), "recorded in a capture");
    EXPECT_INVALID(weir_event_sync(inside, WEIR_FOREVER), "recorded in a capture");
    EXPECT_INVALID(weir_event_sync_any(&inside, 1, WEIR_FOREVER, &index), "recorded in a capture");
    EXPECT_INVALID(weir_event_sync_all(&inside, 1, WEIR_FOREVER), "recorded in a capture");
    EXPECT_INVALID(weir_event_time_ns(inside, &time_ns), "recorded in a capture");
    EXPECT_INVALID(weir_event_fd(inside, &fd), "recorded in a capture");
    EXPECT_OK(weir_event_sync(before, HANG_GUARD_NS)); // from before the capture,
                                                       // and still valid
    ASSERT_OK(weir_queue_wait(r->a, inside));          // its own queue: nothing to wait for

    // Two captures cannot share a queue.
    ASSERT_OK(weir_capture_begin(r->b));
    const struct weir_event foreign = test_record(r->b);
    EXPECT_INVALID(weir_queue_wait(r->a, foreign), "another capture");
    EXPECT_INVALID(weir_queue_wait(r->b, inside), "another capture");
    ASSERT_OK(weir_capture_cancel(r->b));
    EXPECT_INVALID(weir_queue_wait(r->a, foreign), "recorded in a capture");

    own_graph graph = conform_end(r->a);
    EXPECT_INVALID(weir_queue_wait(r->b, inside), "recorded in a capture");
    EXPECT_INVALID(weir_event_query(inside), "recorded in a capture");
    EXPECT_SYNC(r->b);
}

// Threads.

struct capturer {
    weir_queue *queue;
    weir_queue *side;
    weir_buffer *host;
    unsigned char value;
};

static void *capture_often(void *argument)
{
    struct capturer *capturer = argument;
    for (int i = 0; i < 50; i++) {
        EXPECT_OK(weir_capture_begin(capturer->queue));
        follow(capturer->side, capturer->queue);
        fill(capturer->queue, capturer->host, 0, 64, capturer->value);
        fill(capturer->side, capturer->host, 64, 64, capturer->value);
        follow(capturer->queue, capturer->side);
        own_graph graph = conform_end(capturer->queue);
        launch_and_sync(capturer->queue, graph);
        EXPECT_TRUE(all_are(capturer->host, 0, 128, capturer->value));
    }
    return NULL;
}

CONFORM(Capture, ByManyThreads)
{
    enum {
        THREADS = 4
    };
    struct capturer capturers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        capturers[i] = (struct capturer){
            .queue = conform_queue(f, "capturing"),
            .side = conform_queue(f, "side"),
            .host = conform_host_buffer(f, SIZE),
            .value = (unsigned char)(i + 1),
        };
        memset(conform_bytes(capturers[i].host), 0, SIZE);
    }
    conform_run_threads(capture_often, capturers, sizeof *capturers, THREADS);
    for (int i = 0; i < THREADS; i++) {
        weir_queue_destroy(&capturers[i].queue);
        weir_queue_destroy(&capturers[i].side);
        weir_buffer_destroy(&capturers[i].host);
    }
}

static void *fill_often(void *argument)
{
    const struct capturer *capturer = argument;
    for (int i = 0; i < 100; i++)
        fill(capturer->queue, capturer->host, 64 * (size_t)capturer->value, 64, capturer->value);
    return NULL;
}

// All threads can submit to one capture.
CONFORM_RIG(Capture, FromManyThreads)
{
    enum {
        THREADS = 3
    };
    struct capturer capturers[THREADS];
    weir_queue *queues[] = {r->a, r->b, r->a};
    ASSERT_OK(weir_capture_begin(r->a));
    follow(r->b, r->a);
    for (int i = 0; i < THREADS; i++)
        capturers[i] =
            (struct capturer){.queue = queues[i], .host = r->host, .value = (unsigned char)(i + 1)};
    conform_run_threads(fill_often, capturers, sizeof *capturers, THREADS);
    follow(r->a, r->b);
    own_graph graph = conform_end(r->a);
    EXPECT_UINT_EQ(weir_graph_node_count(graph), 300);
    launch_and_sync(r->a, graph);
    for (size_t i = 1; i <= THREADS; i++)
        EXPECT_TRUE(all_are(r->host, 64 * i, 64, (unsigned char)i));
}

// Clones, and nodes that are disabled.

static void set_fill(weir_graph *graph, uint32_t node, weir_buffer *buffer, size_t offset,
                     size_t size, unsigned char value)
{
    EXPECT_OK(weir_graph_set_fill(graph, node, buffer, offset, size, &value, 1));
}

// Node 0 fills all of `x` with 1, node 1 half of it with 2; node 2 copies it to `host`.
static weir_graph *capture_halves(const struct rig *r)
{
    EXPECT_OK(weir_capture_begin(r->a));
    fill(r->a, r->x, 0, SIZE, 1);
    fill(r->a, r->x, 0, SIZE / 2, 2);
    copy(r->a, r->host, r->x, 0, SIZE);
    return conform_end(r->a);
}

CONFORM_RIG(GraphEdit, DisabledNode)
{
    const unsigned char pattern[16] = {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
    own_graph graph = capture_halves(r);
    EXPECT_OK(weir_graph_set_enabled(graph, 1, true)); // as it was
    EXPECT_TRUE(leaves(r, r->a, graph, 2, 1));
    EXPECT_OK(weir_graph_set_enabled(graph, 1, false));
    EXPECT_OK(weir_graph_set_enabled(graph, 1, false));
    EXPECT_TRUE(leaves(r, r->b, graph, 1, 1));

    // It gets operands for later.
    set_fill(graph, 1, r->x, SIZE / 2, SIZE / 2, 3);
    EXPECT_TRUE(leaves(r, r->a, graph, 1, 1));
    EXPECT_OK(weir_graph_set_enabled(graph, 1, true));
    EXPECT_TRUE(leaves(r, r->a, graph, 1, 3));
    EXPECT_UINT_EQ(weir_graph_node_count(graph), 3);

    // Also where an update makes the driver build its graph again, and with a node of several parts.
    EXPECT_OK(weir_graph_set_enabled(graph, 1, false));
    EXPECT_OK(weir_graph_set_fill(graph, 0, r->x, 0, SIZE, pattern, 16));
    EXPECT_TRUE(leaves(r, r->a, graph, 9, 9));
    EXPECT_OK(weir_graph_set_fill(graph, 1, r->x, 0, SIZE / 2, pattern, 8));
    EXPECT_OK(weir_graph_set_enabled(graph, 0, false));
    fill(r->a, r->x, 0, SIZE, 4);
    EXPECT_TRUE(leaves(r, r->a, graph, 4, 4));
    EXPECT_OK(weir_graph_set_enabled(graph, 1, true));
    EXPECT_TRUE(leaves(r, r->a, graph, 9, 4));
}

// What depends on a disabled node comes after what that one depends on.
CONFORM_RIG(GraphEdit, DisabledNodeKeepsTheOrder)
{
    EXPECT_OK(weir_capture_begin(r->a));
    fill(r->a, r->x, 0, SIZE, 5);
    follow(r->b, r->a);
    fill(r->b, r->z, 0, SIZE, 6);
    const uint32_t between = last_node(r->b);
    follow(r->c, r->b);
    copy(r->c, r->host, r->x, 0, SIZE);
    follow(r->a, r->c);
    own_graph graph = conform_end(r->a);
    EXPECT_OK(weir_graph_set_enabled(graph, between, false));
    for (int i = 0; i < 3; i++) {
        fill(r->a, r->x, 0, SIZE, 0);
        fill(r->a, r->z, 0, SIZE, 0);
        EXPECT_TRUE(leaves(r, r->a, graph, 5, 5));
    }
    copy(r->a, r->host, r->z, 0, SIZE);
    EXPECT_SYNC(r->a);
    EXPECT_TRUE(all_are(r->host, 0, SIZE, 0));
}

// Nor do launches overlap where a node that may be the first one is disabled.
CONFORM_RIG(GraphEdit, DisabledNodeOnTwoQueues)
{
    enum {
        LAUNCHES = 20
    };
    EXPECT_OK(weir_capture_begin(r->a));
    follow(r->b, r->a);
    fill(r->a, r->host, 0, SIZE, 1);
    fill(r->b, r->y, 0, SIZE, 1);
    const uint32_t beside = last_node(r->b);
    follow(r->a, r->b);
    own_graph graph = conform_end(r->a);
    EXPECT_OK(weir_graph_set_enabled(graph, beside, false));
    for (int i = 1; i <= LAUNCHES; i++) {
        set_fill(graph, 0, r->host, 0, SIZE, (unsigned char)i);
        EXPECT_OK(weir_queue_graph(i % 2 ? r->a : r->c, graph));
    }
    EXPECT_SYNC(r->c);
    EXPECT_TRUE(all_are(r->host, 0, SIZE, LAUNCHES));
    EXPECT_SYNC(r->a);
    EXPECT_TRUE(all_are(r->host, 0, SIZE, LAUNCHES));
}

// A launch keeps what it was submitted with.
CONFORM_RIG(GraphEdit, DisabledAfterALaunch)
{
    EXPECT_OK(weir_capture_begin(r->a));
    fill(r->a, r->host, 0, 64, 1);
    own_graph graph = conform_end(r->a);
    own_gate gate = gate_on(r->a);
    EXPECT_OK(weir_queue_graph(r->a, graph));
    set_fill(graph, 0, r->host, 64, 64, 1);
    EXPECT_OK(weir_graph_set_enabled(graph, 0, false));
    EXPECT_OK(weir_queue_graph(r->a, graph));
    set_fill(graph, 0, r->host, 128, 64, 1);
    EXPECT_OK(weir_graph_set_enabled(graph, 0, true));
    EXPECT_OK(weir_queue_graph(r->b, graph));
    gate_open(gate);
    EXPECT_SYNC(r->b);
    EXPECT_SYNC(r->a);
    EXPECT_TRUE(all_are(r->host, 0, 64, 1));
    EXPECT_TRUE(all_are(r->host, 64, 64, 0));
    EXPECT_TRUE(all_are(r->host, 128, 64, 1));
}

CONFORM_RIG(GraphEdit, DisabledLaunch)
{
    CONFORM_NEEDS_KERNELS(f);
    own_kernel increment = conform_kernel(f, "increment");
    EXPECT_OK(weir_capture_begin(r->a));
    fill(r->a, r->x, 0, SIZE, 0);
    EXPECT_OK(weir_queue_launch(r->a, increment, blocks, block, weir_inout(r->x, 0, WORDS), 1u, N));
    EXPECT_OK(weir_queue_launch(r->a, increment, blocks, block, weir_inout(r->x, 0, WORDS), 2u, N));
    copy(r->a, r->host, r->x, 0, SIZE);
    own_graph graph = conform_end(r->a);
    for (uint32_t off = 0; off < 3; off++) { // both run; without the first; without the second
        uint32_t word;
        EXPECT_OK(weir_graph_set_enabled(graph, 1, off != 1));
        EXPECT_OK(weir_graph_set_enabled(graph, 2, off != 2));
        launch_and_sync(r->a, graph);
        memcpy(&word, conform_bytes(r->host), sizeof word);
        EXPECT_UINT_EQ(word, 3 - off);
    }
}

static struct weir_plane plane(weir_buffer *buffer, size_t at)
{
    return (struct weir_plane){buffer, at, 64};
}

static struct weir_volume volume(weir_buffer *buffer, size_t at, size_t pitch)
{
    return (struct weir_volume){buffer, at, pitch, 128};
}

// Rows and slices: 4 rows of 16 bytes 64 apart are filled, and go to `host` by rows and by slices.
static void set_boxes(weir_graph *graph, const struct rig *r, size_t at, unsigned char value)
{
    EXPECT_OK(weir_graph_set_fill_2d(graph, 1, plane(r->x, at), 16, 4, &value, 1));
    EXPECT_OK(weir_graph_set_copy_2d(graph, 2, plane(r->host, at), plane(r->x, at), 16, 4));
    EXPECT_OK(weir_graph_set_copy_3d(graph, 3, volume(r->host, 2048 + at, 32), volume(r->x, at, 64),
                                     16, 2, 2));
}

static bool boxes_are(const struct rig *r, size_t at, unsigned char value)
{
    bool same = true;
    for (size_t row = 0; row < 4; row++)
        same = same && all_are(r->host, at + 64 * row, 16, value) &&
               all_are(r->host, 2048 + at + 128 * (row / 2) + 32 * (row % 2), 16, value);
    return same;
}

CONFORM_RIG(GraphEdit, RowsAndSlices)
{
    EXPECT_OK(weir_capture_begin(r->a));
    fill(r->a, r->x, 0, SIZE, 0);
    EXPECT_OK(weir_queue_fill_2d(r->a, plane(r->x, 0), 16, 4, &(uint16_t){0x0101}, 2));
    EXPECT_OK(weir_queue_copy_2d(r->a, plane(r->host, 0), plane(r->x, 0), 16, 4));
    EXPECT_OK(weir_queue_copy_3d(r->a, volume(r->host, 2048, 32), volume(r->x, 0, 64), 16, 2, 2));
    own_graph graph = conform_end(r->a);
    launch_and_sync(r->a, graph);
    EXPECT_TRUE(boxes_are(r, 0, 1));
    ASSERT_UINT_EQ(weir_graph_node_count(graph), 4);
    set_boxes(graph, r, 512, 2);
    launch_and_sync(r->b, graph);
    EXPECT_TRUE(boxes_are(r, 0, 1));
    EXPECT_TRUE(boxes_are(r, 512, 2));

    const struct weir_plane device = {r->x, 0, 64};
    const struct weir_plane host = {r->host, 0, 64};
    EXPECT_INVALID(weir_graph_set_copy_2d(graph, 1, host, device, 16, 4), "cannot become a copy");
    EXPECT_INVALID(weir_graph_set_copy_2d(graph, 2, device, host, 16, 4), "HOST buffer");
    EXPECT_INVALID(weir_graph_set_copy_2d(graph, 2, host, device, 0, 4), "empty");
    EXPECT_INVALID(weir_graph_set_fill_2d(graph, 2, device, 16, 4, "x", 1), "cannot become a fill");
    EXPECT_INVALID(weir_graph_set_fill_2d(graph, 1, host, 16, 4, "x", 1), "HOST buffer");
    EXPECT_INVALID(weir_graph_set_fill_2d(graph, 1, device, 16, 4, NULL, 1), "pattern");
    EXPECT_INVALID(weir_graph_set_copy_3d(graph, 9, volume(r->host, 0, 64), volume(r->x, 0, 64), 16,
                                          2, 2),
                   "the graph has 4");
    EXPECT_INVALID(weir_graph_set_copy_3d(graph, 3, volume(r->x, 0, 64), volume(r->y, 0, 64), 16, 2,
                                          2),
                   "DEVICE buffer");
    launch_and_sync(r->a, graph);
    EXPECT_TRUE(boxes_are(r, 512, 2));
}

// Updates of one do not change the other.
CONFORM_RIG(GraphEdit, Clone)
{
    own_graph clone = NULL;
    weir_graph *none = NULL;
    weir_graph *graph = capture_halves(r);
    set_fill(graph, 0, r->x, 0, SIZE, 7);
    EXPECT_OK(weir_graph_set_enabled(graph, 1, false));
    ASSERT_OK(weir_graph_clone(graph, NULL, &clone));
    EXPECT_UINT_EQ(weir_graph_node_count(clone), 3);
    EXPECT_OK(weir_graph_set_enabled(graph, 1, true));
    set_fill(clone, 0, r->x, 0, SIZE, 8);
    EXPECT_TRUE(leaves(r, r->a, graph, 2, 7));
    EXPECT_TRUE(leaves(r, r->a, clone, 8, 8));
    EXPECT_INVALID(weir_graph_set_enabled(clone, 3, true), "the graph has 3");
    EXPECT_STR_EQ(weir_last_error()->object, "graph");
    EXPECT_INVALID(weir_graph_set_enabled(NULL, 0, false), "graph");
    EXPECT_INVALID(weir_graph_clone(graph, NULL, NULL), "out_graph");
    EXPECT_INVALID(weir_graph_clone(NULL, NULL, &none), "graph");
    EXPECT_NULL(none);
    weir_graph_destroy(&graph);
    EXPECT_TRUE(leaves(r, r->b, clone, 8, 8));
}

// The clone of a clone, after all else is gone; with a label of its own.
CONFORM_RIG(GraphEdit, CloneKeepsWhatItUses)
{
    weir_graph *first;
    own_graph second = NULL;
    weir_graph *graph = capture_diamond(r, 5);
    ASSERT_OK(weir_graph_clone(graph, NULL, &first));
    weir_graph_destroy(&graph);
    weir_buffer_destroy(&r->x);
    weir_buffer_destroy(&r->y);
    ASSERT_OK(weir_graph_clone(first, WEIR_PARAMS(weir_graph, .label = "second"), &second));
    weir_graph_destroy(&first);
    ASSERT_OK(weir_device_trim(f->device));
    EXPECT_INVALID(weir_graph_set_enabled(second, 9, true), "the graph has 4");
    EXPECT_STR_EQ(weir_last_error()->object, "second");
    for (int i = 0; i < 3; i++) {
        EXPECT_TRUE(leaves(r, i == 1 ? r->b : r->a, second, 5, 5));
    }
}

// Launches of both on two queues, none of them waited for.
CONFORM_RIG(GraphEdit, CloneRunsBesideItsOrigin)
{
    own_graph clone = NULL;
    EXPECT_OK(weir_capture_begin(r->a));
    fill(r->a, r->x, 0, SIZE, 1);
    copy(r->a, r->host, r->x, 0, SIZE / 2);
    own_graph graph = conform_end(r->a);
    ASSERT_OK(weir_graph_clone(graph, NULL, &clone));
    set_fill(clone, 0, r->y, 0, SIZE, 2);
    EXPECT_OK(weir_graph_set_copy(clone, 1, r->host, SIZE / 2, r->y, 0, SIZE / 2));
    for (int i = 0; i < 20; i++) {
        EXPECT_OK(weir_queue_graph(r->a, graph));
        EXPECT_OK(weir_queue_graph(r->b, clone));
    }
    EXPECT_SYNC(r->a);
    EXPECT_SYNC(r->b);
    EXPECT_TRUE(halves_are(r, 1, 2));
}

// A launch before an update has the operands of before, also while another thread waits for it.
struct waiter {
    pthread_barrier_t start;
    weir_queue *queue;
};

static void *wait_for_launch(void *argument)
{
    struct waiter *waiter = argument;
    pthread_barrier_wait(&waiter->start);
    EXPECT_SYNC(waiter->queue);
    return NULL;
}

static void update_beside_wait(const struct rig *r, weir_graph *graph, unsigned char value)
{
    struct waiter waiter = {.queue = r->a};
    pthread_t thread;
    ASSERT_INT_EQ(pthread_barrier_init(&waiter.start, NULL, 2), 0);
    EXPECT_OK(weir_queue_graph(r->a, graph));
    ASSERT_INT_EQ(pthread_create(&thread, NULL, wait_for_launch, &waiter), 0);
    pthread_barrier_wait(&waiter.start);
    set_fill(graph, 0, r->x, 0, SIZE, (unsigned char)(value + 1));
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&waiter.start);
    EXPECT_TRUE(all_are(r->host, 0, SIZE, value));
}

CONFORM_RIG(GraphEdit, UpdateBesideAWait)
{
    EXPECT_OK(weir_capture_begin(r->a));
    fill(r->a, r->x, 0, SIZE, 0);
    copy(r->a, r->host, r->x, 0, SIZE);
    own_graph graph = conform_end(r->a);
    for (unsigned char value = 0; value < 200 && !weir_test_has_failed(); value++)
        update_beside_wait(r, graph, value);
}
