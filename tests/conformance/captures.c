// Captures: refused calls, their events, and threads.
#include <pthread.h>
#include <string.h>

#include "tests/conformance/graph_rig.h"

CONFORM(Capture, BeginAndEndRefusals)
{
    own_graph graph = NULL;
    uint32_t node;
    own_rig r = make_rig(f);
    EXPECT_INVALID(weir_capture_end(r.a, NULL, &graph), "no capture began on queue 'a'");
    EXPECT_INVALID(weir_capture_node(r.a, &node), "captures nothing");
    EXPECT_INVALID(weir_capture_begin(NULL), "queue");
    ASSERT_OK(weir_capture_begin(r.a));
    EXPECT_INVALID(weir_capture_begin(r.a), "captures.c:");
    EXPECT_INVALID(weir_capture_end(r.a, NULL, NULL), "out_graph");
    fill(r.a, r.x, 0, SIZE, 1);
    follow(r.b, r.a);
    EXPECT_INVALID(weir_capture_begin(r.b), "part of a capture");
    EXPECT_INVALID(weir_capture_end(r.b, NULL, &graph), "began on another queue");
    EXPECT_NULL(graph);
    ASSERT_OK(weir_capture_end(r.a, NULL, &graph)); // b has nothing in it
    EXPECT_INVALID(weir_queue_graph(NULL, graph), "queue");
    EXPECT_INVALID(weir_queue_graph(r.a, NULL), "graph");
}

// The capture is dropped, and all its queues are as before.
CONFORM(Capture, UnjoinedQueue)
{
    weir_graph *graph = NULL;
    own_rig r = make_rig(f);
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(weir_capture_begin(r.a));
        fill(r.a, r.x, 0, SIZE, 1);
        follow(r.b, r.a);
        fill(r.b, r.host, 0, SIZE, 2);
        if (i)
            follow(r.a, r.b);
        follow(r.c, r.b);
        fill(r.b, r.host, 0, SIZE, 3);
        EXPECT_INVALID(weir_capture_end(r.a, NULL, &graph), "queue 'b' joined the capture");
        EXPECT_NULL(graph);
        EXPECT_SYNC(r.a);
        EXPECT_SYNC(r.b);
        EXPECT_SYNC(r.c);
        EXPECT_TRUE(all_are(r.host, 0, SIZE, 0));
    }
}

CONFORM(Capture, Cancel)
{
    struct weir_event event;
    own_rig r = make_rig(f);
    ASSERT_OK(weir_capture_cancel(r.a)); // nothing to do
    ASSERT_OK(weir_capture_begin(r.a));
    fill(r.a, r.host, 0, SIZE, 1);
    follow(r.b, r.a);
    fill(r.b, r.host, 0, SIZE, 2);
    ASSERT_OK(weir_queue_record(r.b, &event));
    ASSERT_OK(weir_capture_cancel(r.b)); // none began on it
    EXPECT_INVALID(weir_queue_sync(r.b, 0), "captures a graph");
    ASSERT_OK(weir_capture_cancel(r.a));
    EXPECT_SYNC(r.a);
    EXPECT_SYNC(r.b);
    EXPECT_INVALID(weir_queue_wait(r.c, event), "recorded in a capture");
    EXPECT_TRUE(all_are(r.host, 0, SIZE, 0));
    fill(r.b, r.host, 0, SIZE, 3);
    EXPECT_SYNC(r.b);
    EXPECT_TRUE(all_are(r.host, 0, SIZE, 3));
}

// Destroying a queue of a capture cancels it.
CONFORM(Capture, QueueDestroyed)
{
    struct weir_event event;
    own_rig r = make_rig(f);
    for (int i = 0; i < 2; i++) {
        weir_queue *extra = conform_queue(f, "extra");
        weir_queue *first = i ? r.a : extra;
        weir_queue *second = i ? extra : r.a;
        ASSERT_OK(weir_capture_begin(first));
        follow(second, first);
        fill(first, r.host, 0, SIZE, 1);
        ASSERT_OK(weir_queue_record(extra, &event));
        weir_queue_destroy(&extra);
        EXPECT_SYNC(r.a);
        EXPECT_INVALID(weir_event_query(event), "recorded in a capture");
    }
    EXPECT_TRUE(all_are(r.host, 0, SIZE, 0));
}

static void *capture_and_end(void *argument)
{
    struct weir_event event;
    weir_queue *queue = NULL;
    EXPECT_OK(weir_thread_queue(argument, &queue));
    EXPECT_OK(weir_capture_begin(queue));
    EXPECT_OK(weir_queue_record(queue, &event));
    return NULL;
}

// A thread's queue is destroyed with its thread, and its capture is dropped.
CONFORM(Capture, ThreadThatEnds)
{
    pthread_t thread;
    ASSERT_INT_EQ(pthread_create(&thread, NULL, capture_and_end, f->device), 0);
    ASSERT_INT_EQ(pthread_join(thread, NULL), 0);
}

static weir_status no_native(const struct weir_native_queue *native, void *user)
{
    return WEIR_ERROR_IO;
}

CONFORM(Capture, WhatCannotBeCaptured)
{
    unsigned char bytes[16] = {0};
    own_graph graph = NULL;
    own_rig r = make_rig(f);
    own_graph other = capture_diamond(&r, 1);
    ASSERT_OK(weir_capture_begin(r.a));
    if (!f->limits->native)
        EXPECT_REFUSED(weir_queue_native(r.a, no_native, NULL, weir_in(r.x, 0, SIZE)),
                       WEIR_ERROR_UNSUPPORTED, "native");
    EXPECT_INVALID(weir_upload(r.a, r.x, 0, bytes, 16), "uploads and downloads");
    EXPECT_INVALID(weir_download(r.a, bytes, r.x, 0, 16), "uploads and downloads");
    EXPECT_INVALID(weir_queue_sync(r.a, WEIR_FOREVER), "weir_queue_sync");
    EXPECT_INVALID(weir_queue_recover(r.a), "weir_queue_recover");
    EXPECT_INVALID(weir_queue_graph(r.a, other), "a graph's launch cannot");
    ASSERT_OK(weir_queue_flush(r.a));
    // A refused call is not part of the graph and does not end the capture.
    fill(r.a, r.host, 0, SIZE, 8);
    EXPECT_INVALID(weir_queue_copy(r.a, r.x, 1, r.y, 0, SIZE), "dst");
    ASSERT_OK(weir_capture_end(r.a, NULL, &graph));
    EXPECT_UINT_EQ(weir_graph_node_count(graph), 1);
    launch_and_sync(r.a, graph);
    EXPECT_TRUE(all_are(r.host, 0, SIZE, 8));
}

// A graph can use memory of a pool like any other, but it is allocated and freed
// outside.
CONFORM(Capture, PoolMemory)
{
    own_pool pool = NULL;
    weir_buffer *memory = NULL;
    weir_buffer *other = NULL;
    own_rig r = make_rig(f);
    ASSERT_OK(weir_pool_create(f->device, NULL, &pool));
    ASSERT_OK(weir_pool_allocate(pool, r.a, SIZE, &memory));
    ASSERT_OK(weir_capture_begin(r.a));
    EXPECT_INVALID(weir_pool_allocate(pool, r.a, SIZE, &other), "cannot be allocated");
    EXPECT_INVALID(weir_pool_free(r.a, &memory), "cannot be freed");
    fill(r.a, memory, 0, SIZE, 5);
    copy(r.a, r.host, memory, 0, SIZE);
    weir_graph *graph = end(r.a);
    launch_and_sync(r.a, graph);
    EXPECT_TRUE(all_are(r.host, 0, SIZE, 5));
    EXPECT_INVALID(weir_pool_free(r.a, &memory), "a graph uses the buffer");
    weir_graph_destroy(&graph);
    EXPECT_OK(weir_pool_free(r.a, &memory));
}

// A captured event is valid only in its capture, and other events are not valid in
// it.
CONFORM(Capture, Events)
{
    struct weir_event before;
    struct weir_event inside;
    struct weir_event foreign;
    uint64_t time_ns;
    size_t index;
    int fd;
    own_graph graph = NULL;
    own_rig r = make_rig(f);
    ASSERT_OK(weir_queue_record(r.a, &before));
    ASSERT_OK(weir_capture_begin(r.a));
    ASSERT_OK(weir_queue_record(r.a, &inside));
    EXPECT_INVALID(weir_queue_wait(r.a, before), "outside of it");
    EXPECT_INVALID(weir_event_query(inside), "recorded in a capture");
    EXPECT_INVALID(weir_event_error(inside), "recorded in a capture");
    EXPECT_INVALID(weir_event_sync(inside, WEIR_FOREVER), "recorded in a capture");
    EXPECT_INVALID(weir_event_sync_any(&inside, 1, WEIR_FOREVER, &index), "recorded in a capture");
    EXPECT_INVALID(weir_event_sync_all(&inside, 1, WEIR_FOREVER), "recorded in a capture");
    EXPECT_INVALID(weir_event_time_ns(inside, &time_ns), "recorded in a capture");
    EXPECT_INVALID(weir_event_fd(inside, &fd), "recorded in a capture");
    EXPECT_OK(weir_event_sync(before, HANG_GUARD_NS)); // from before the capture,
                                                       // and still valid
    ASSERT_OK(weir_queue_wait(r.a, inside));           // its own queue: nothing to wait for

    // Two captures cannot share a queue.
    ASSERT_OK(weir_capture_begin(r.b));
    ASSERT_OK(weir_queue_record(r.b, &foreign));
    EXPECT_INVALID(weir_queue_wait(r.a, foreign), "another capture");
    EXPECT_INVALID(weir_queue_wait(r.b, inside), "another capture");
    ASSERT_OK(weir_capture_cancel(r.b));
    EXPECT_INVALID(weir_queue_wait(r.a, foreign), "recorded in a capture");

    ASSERT_OK(weir_capture_end(r.a, NULL, &graph));
    EXPECT_INVALID(weir_queue_wait(r.b, inside), "recorded in a capture");
    EXPECT_INVALID(weir_event_query(inside), "recorded in a capture");
    EXPECT_SYNC(r.b);
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
        weir_graph *graph = end(capturer->queue);
        launch_and_sync(capturer->queue, graph);
        EXPECT_TRUE(all_are(capturer->host, 0, 128, capturer->value));
        weir_graph_destroy(&graph);
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
CONFORM(Capture, FromManyThreads)
{
    enum {
        THREADS = 3
    };
    struct capturer capturers[THREADS];
    own_rig r = make_rig(f);
    weir_queue *queues[] = {r.a, r.b, r.a};
    ASSERT_OK(weir_capture_begin(r.a));
    follow(r.b, r.a);
    for (int i = 0; i < THREADS; i++)
        capturers[i] =
            (struct capturer){.queue = queues[i], .host = r.host, .value = (unsigned char)(i + 1)};
    conform_run_threads(fill_often, capturers, sizeof *capturers, THREADS);
    follow(r.a, r.b);
    own_graph graph = end(r.a);
    EXPECT_UINT_EQ(weir_graph_node_count(graph), 300);
    launch_and_sync(r.a, graph);
    for (size_t i = 1; i <= THREADS; i++)
        EXPECT_TRUE(all_are(r.host, 64 * i, 64, (unsigned char)i));
}
