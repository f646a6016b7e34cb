// Functions of captured host calls that end their thread in place of returning.
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/conformance/graph_rig.h"

struct ending {
    struct gate *gate; // passed first, unless NULL
    bool by_cancel;    // in place of pthread_exit()
    atomic_int lives;  // calls that return before one ends its thread; negative: all do
    atomic_int calls;
    weir_status instead; // returned in place of ending the thread, unless it is WEIR_OK
};

static weir_status end_thread(void *user)
{
    struct ending *ending = user;
    atomic_fetch_add(&ending->calls, 1);
    if (ending->gate)
        gate_function(ending->gate);
    if (atomic_fetch_sub(&ending->lives, 1) != 0)
        return WEIR_OK;
    if (ending->instead < 0)
        return ending->instead;
    if (!ending->by_cancel)
        pthread_exit(NULL);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pthread_cancel(pthread_self());
    pthread_testcancel();
    return WEIR_OK;
}

static weir_status note_thread(void *user)
{
    *(pthread_t *)user = pthread_self();
    return WEIR_OK;
}

// Whether the thread of the queue's own host calls calls those of graphs too, and not one of the driver's.
static bool calls_on_worker(weir_queue *queue)
{
    pthread_t in_graph, in_queue;
    EXPECT_OK(weir_capture_begin(queue));
    EXPECT_OK(weir_queue_host_call(queue, note_thread, &in_graph));
    own_graph graph = end(queue);
    launch_and_sync(queue, graph);
    EXPECT_OK(weir_queue_host_call(queue, note_thread, &in_queue));
    EXPECT_SYNC(queue);
    return pthread_equal(in_graph, in_queue);
}

#define NEEDS_WORKER(rig)           \
    if (!calls_on_worker((rig)->a)) \
    CONFORM_SKIP("the driver's thread calls functions of nodes")

static weir_graph *capture_ending(const struct rig *r, struct ending *ending, atomic_int *after)
{
    EXPECT_OK(weir_capture_begin(r->a));
    fill(r->a, r->x, 0, SIZE, 1);
    EXPECT_OK(weir_queue_host_call(r->a, end_thread, ending));
    EXPECT_OK(weir_queue_host_call(r->a, count_up, after));
    copy(r->a, r->host, r->x, 0, SIZE);
    return end(r->a);
}

// The launch fails as with a function that returns an error, and its queue goes on.
CONFORM(GraphCallEnd, OfOneBranch)
{
    struct ending ending = {0};
    atomic_int after = 0;
    own_rig r = make_rig(f);
    NEEDS_WORKER(&r);
    own_graph graph = capture_ending(&r, &ending, &after);
    for (int i = 0; i < 4; i++) {
        atomic_store(&ending.lives, 0);
        ending.by_cancel = i == 0; // a thread that ends takes none later
        ASSERT_OK(weir_queue_graph(r.a, graph));
        const weir_status status = weir_queue_sync(r.a, HANG_GUARD_NS);
        ASSERT_INT_EQ(status, WEIR_ERROR_HOST_CALL);
        EXPECT_CONTAINS(weir_last_error()->message,
                        "a graph, failed: node 1, a host call captured");
        EXPECT_CONTAINS(weir_last_error()->message, "the function ended its thread");
        EXPECT_CONTAINS(weir_last_error()->message, "graph_call_ends.c:");
        EXPECT_CONTAINS(weir_last_error()->remedy, "return a status");
        EXPECT_STR_EQ(weir_last_error()->object, "a");
        EXPECT_OK(weir_queue_recover(r.a));
        EXPECT_INT_EQ(atomic_load(&ending.calls), 2 * i + 1);
        EXPECT_INT_EQ(atomic_load(&after), i);
        memset(conform_bytes(r.host), 0, SIZE);
        launch_and_sync(r.a, graph);
        EXPECT_TRUE(all_are(r.host, 0, SIZE, 1));
    }
}

// Beside work of other branches, of which some comes after it; and in a clone.
CONFORM(GraphCallEnd, OnABranchAndInAClone)
{
    struct ending ending = {0};
    atomic_int after = 0;
    own_graph clone = NULL;
    own_rig r = make_rig(f);
    NEEDS_WORKER(&r);
    EXPECT_OK(weir_capture_begin(r.a));
    fill(r.a, r.x, 0, SIZE, 4);
    follow(r.b, r.a);
    EXPECT_OK(weir_queue_host_call(r.b, end_thread, &ending));
    copy(r.b, r.y, r.x, 0, SIZE);
    fill(r.a, r.z, 0, SIZE, 6);
    follow(r.a, r.b);
    EXPECT_OK(weir_queue_host_call(r.a, count_up, &after));
    copy(r.a, r.host, r.y, 0, SIZE / 2);
    copy(r.a, r.host, r.z, SIZE / 2, SIZE / 2);
    own_graph graph = end(r.a);
    ASSERT_OK(weir_graph_clone(graph, NULL, &clone));
    weir_graph *graphs[] = {graph, clone, graph, clone};
    for (int i = 0; i < 4; i++) {
        atomic_store(&ending.lives, 0);
        ASSERT_OK(weir_queue_graph(r.c, graphs[i]));
        const weir_status status = weir_queue_sync(r.c, HANG_GUARD_NS);
        ASSERT_INT_EQ(status, WEIR_ERROR_HOST_CALL);
        EXPECT_CONTAINS(weir_last_error()->message, "the function ended its thread");
        EXPECT_INT_EQ(atomic_load(&after), i);
        EXPECT_OK(weir_queue_recover(r.c));
        memset(conform_bytes(r.host), 0, SIZE);
        launch_and_sync(i % 2 ? r.c : r.a, graphs[i]);
        EXPECT_TRUE(all_are(r.host, 0, SIZE / 2, 4));
        EXPECT_TRUE(all_are(r.host, SIZE / 2, SIZE / 2, 6));
    }
}

// Two launches on two queues, of which the first fails: the status of the other.
static void launch_twice(const struct rig *r, struct ending *ending, weir_status *out_status)
{
    atomic_int after = 0;
    ending->gate = gate_create();
    weir_graph *graph = capture_ending(r, ending, &after);
    EXPECT_OK(weir_queue_graph(r->a, graph));
    EXPECT_TRUE(gate_wait_entered(ending->gate));
    EXPECT_OK(weir_queue_graph(r->b, graph));
    gate_open(ending->gate);
    const weir_status failed = weir_queue_sync(r->a, HANG_GUARD_NS);
    ASSERT_INT_EQ(failed, WEIR_ERROR_HOST_CALL);
    *out_status = weir_queue_sync(r->b, HANG_GUARD_NS);
    EXPECT_OK(weir_queue_recover(r->a));
    EXPECT_OK(weir_queue_recover(r->b));
    launch_and_sync(r->b, graph);
    launch_and_sync(r->a, graph);
    EXPECT_TRUE(all_are(r->host, 0, SIZE, 1));
    weir_graph_destroy(&graph);
    gate_destroy(&ending->gate);
}

// A launch of another queue that waits for the failed one does the same as after a returned error.
CONFORM(GraphCallEnd, BeforeALaunchOfAnotherQueue)
{
    struct ending returns = {.instead = WEIR_ERROR_HOST_CALL};
    struct ending ends = {0};
    weir_status wanted = WEIR_TIMEOUT, got = WEIR_OK;
    own_rig r = make_rig(f);
    NEEDS_WORKER(&r);
    launch_twice(&r, &returns, &wanted);
    launch_twice(&r, &ends, &got);
    EXPECT_INT_EQ(got, wanted);
    EXPECT_INT_EQ(atomic_load(&ends.calls), atomic_load(&returns.calls));
}

// On two queues at once, each with a graph of its own, one of which ends its thread each time.
CONFORM(GraphCallEnd, BesideAnotherGraph)
{
    enum {
        ROUNDS = 50
    };
    struct ending ending = {0};
    atomic_int other_calls = 0, after = 0;
    own_rig r = make_rig(f);
    NEEDS_WORKER(&r);
    own_buffer out = conform_host_buffer(f, SIZE);
    own_graph failing = capture_ending(&r, &ending, &after);
    EXPECT_OK(weir_capture_begin(r.b));
    EXPECT_OK(weir_queue_host_call(r.b, count_up, &other_calls));
    fill(r.b, out, 0, SIZE, 9);
    own_graph other = end(r.b);
    for (int i = 0; i < ROUNDS; i++) {
        atomic_store(&ending.lives, 0);
        ASSERT_OK(weir_queue_graph(r.a, failing));
        ASSERT_OK(weir_queue_graph(r.b, other));
        const weir_status status = weir_queue_sync(r.a, HANG_GUARD_NS);
        ASSERT_INT_EQ(status, WEIR_ERROR_HOST_CALL);
        ASSERT_OK(weir_queue_recover(r.a));
    }
    EXPECT_SYNC(r.b);
    EXPECT_INT_EQ(atomic_load(&other_calls), ROUNDS);
    EXPECT_INT_EQ(atomic_load(&ending.calls), ROUNDS);
    EXPECT_TRUE(all_are(out, 0, SIZE, 9));
}

// The queue is destroyed while its launch runs: what waits for it fails nevertheless.
CONFORM(GraphCallEnd, InADestroyedQueue)
{
    struct ending ending = {0};
    struct weir_event event;
    own_rig r = make_rig(f);
    NEEDS_WORKER(&r);
    ending.gate = gate_create();
    EXPECT_OK(weir_capture_begin(r.a));
    EXPECT_OK(weir_queue_host_call(r.a, end_thread, &ending));
    weir_graph *graph = end(r.a);
    EXPECT_OK(weir_queue_graph(r.a, graph));
    EXPECT_TRUE(gate_wait_entered(ending.gate));
    EXPECT_OK(weir_queue_record(r.a, &event));
    EXPECT_OK(weir_queue_wait(r.b, event));
    weir_queue_destroy(&r.a);
    weir_graph_destroy(&graph);
    gate_open(ending.gate);
    EXPECT_REFUSED(weir_queue_sync(r.b, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL,
                   "a host call captured at ");
    EXPECT_OK(weir_queue_recover(r.b));
    gate_destroy(&ending.gate);
}
