// The program's functions in graphs: native calls and host calls.

#include "tests/conformance/graph_rig.h"
#include "tests/conformance/native.h"

// Native calls.

// `x` is filled with 1, its first half with words by a native call, and copied to `host`.
static weir_graph *capture_native(const struct rig *r, struct native_fill *half)
{
    EXPECT_OK(weir_capture_begin(r->a));
    fill(r->a, r->x, 0, SIZE, 1);
    EXPECT_OK(weir_queue_native(r->a, native_fill, half, weir_out(r->x, 0, SIZE / 2)));
    EXPECT_UINT_EQ(last_node(r->a), 1);
    copy(r->a, r->host, r->x, 0, SIZE);
    return conform_end(r->a);
}

// A backend's graph calls the function once, a replay at each launch.
CONFORM_RIG(GraphCall, Native)
{
    CONFORM_NEEDS_NATIVE(f);
    const unsigned char pattern[16] = {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
    struct native_fill half = native_fill_of(r->x, 0, SIZE / 8, 0x05050505u);
    own_graph graph = capture_native(r, &half);
    for (int i = 0; i < 3; i++) {
        EXPECT_TRUE(leaves(r, i == 1 ? r->b : r->a, graph, 5, 1));
    }
    EXPECT_TRUE(half.calls == 1 || half.calls == 3);
    // An update that makes the driver build its graph anew keeps what was captured.
    EXPECT_OK(weir_graph_set_fill(graph, 0, r->x, 0, SIZE, pattern, 16));
    EXPECT_TRUE(leaves(r, r->a, graph, 5, 9));
    EXPECT_TRUE(half.calls == 1 || half.calls == 4);
    EXPECT_INVALID(weir_graph_set_enabled(graph, 1, false), "node 1 is a native call");
    EXPECT_INVALID(weir_graph_set_fill(graph, 1, r->x, 0, 64, "x", 1), "cannot become a fill");
}

static weir_status submit_nothing(const struct weir_native_queue *native, void *user)
{
    EXPECT_NOT_NULL(native->queue);
    ++*(int *)user;
    return WEIR_OK;
}

// On a branch of its own, with one before and one after it on another, and one that submits nothing; and its clone,
// after the buffers and the first graph are gone.
CONFORM_RIG(GraphCall, NativeOnABranch)
{
    CONFORM_NEEDS_NATIVE(f);
    int calls = 0;
    own_graph clone = NULL;
    struct native_fill all = native_fill_of(r->y, 0, SIZE / 4, 0x06060606u);
    EXPECT_OK(weir_capture_begin(r->a));
    fill(r->a, r->y, 0, SIZE, 1);
    follow(r->b, r->a);
    EXPECT_OK(weir_queue_native(r->b, native_fill, &all, weir_out(r->y, 0, SIZE)));
    fill(r->a, r->x, 0, SIZE, 2);
    EXPECT_OK(weir_queue_native_array(r->a, submit_nothing, &calls, NULL, 0));
    follow(r->a, r->b);
    copy(r->a, r->x, r->y, 0, SIZE / 2);
    copy(r->a, r->host, r->x, 0, SIZE);
    weir_graph *graph = conform_end(r->a);
    weir_buffer_destroy(&r->x);
    weir_buffer_destroy(&r->y);
    ASSERT_OK(weir_device_trim(f->device));
    for (int i = 0; i < 3; i++)
        EXPECT_TRUE(leaves(r, r->a, graph, 6, 2));
    // 4: perturb takes launches of a backend's graph apart.
    EXPECT_TRUE(calls == 1 || calls == 3 || calls == 4);
    ASSERT_OK(weir_graph_clone(graph, NULL, &clone));
    weir_graph_destroy(&graph);
    EXPECT_TRUE(leaves(r, r->c, clone, 6, 2));
}

static weir_status refuse_native(const struct weir_native_queue *native, void *user)
{
    return WEIR_ERROR_DEVICE;
}

static weir_status end_and_launch(weir_queue *queue, weir_graph **out_graph)
{
    weir_status status = weir_capture_end(queue, NULL, out_graph);
    if (status == WEIR_OK)
        status = weir_queue_graph(queue, *out_graph);
    return status == WEIR_OK ? weir_queue_sync(queue, WEIR_FOREVER) : status;
}

// At the end of the capture, at the launch, or where a plugin submits later, in it.
CONFORM_RIG(GraphCall, NativeThatFails)
{
    CONFORM_NEEDS_NATIVE(f);
    own_graph graph = NULL;
    EXPECT_OK(weir_capture_begin(r->a));
    fill(r->a, r->x, 0, SIZE, 3);
    EXPECT_OK(weir_queue_native(r->a, refuse_native, NULL, weir_out(r->x, 0, SIZE)));
    EXPECT_REFUSED(end_and_launch(r->a, &graph), WEIR_ERROR_DEVICE,
                   "node 1, a native call captured at ");
    EXPECT_OK(weir_queue_recover(r->a));
    fill(r->a, r->host, 0, SIZE, 4);
    EXPECT_SYNC(r->a);
    EXPECT_TRUE(all_are(r->host, 0, SIZE, 4));
}

// Host calls.

// What a host call does: adds one to each of these bytes.
struct adder {
    weir_queue *other; // if any, for which it tries to wait
    unsigned char *bytes;
    size_t size;
    atomic_int calls;
    weir_status status; // that it returns
};

static weir_status add_one(void *user)
{
    struct adder *adder = user;
    for (size_t i = 0; i < adder->size; i++)
        adder->bytes[i]++;
    atomic_fetch_add(&adder->calls, 1);
    if (adder->other)
        EXPECT_INT_EQ(weir_queue_sync(adder->other, HANG_GUARD_NS), WEIR_ERROR_INVALID);
    return adder->status;
}

// `x` is filled and copied to `host`, the host adds one, and that goes through `y` to `out`.
static weir_graph *capture_host(const struct rig *r, struct adder *adder, weir_buffer *out)
{
    adder->bytes = conform_bytes(r->host);
    adder->size = SIZE;
    EXPECT_OK(weir_capture_begin(r->a));
    fill(r->a, r->x, 0, SIZE, 7);
    copy(r->a, r->host, r->x, 0, SIZE);
    EXPECT_OK(weir_queue_host_call(r->a, add_one, adder));
    EXPECT_UINT_EQ(last_node(r->a), 2);
    copy(r->a, r->y, r->host, 0, SIZE);
    copy(r->a, out, r->y, 0, SIZE);
    return conform_end(r->a);
}

// Beside work that need not wait for it, and before work that must. It may not wait itself.
CONFORM_RIG(GraphCall, HostOnABranch)
{
    struct adder adder = {0};
    adder.other = f->queue;
    adder.bytes = conform_bytes(r->host);
    adder.size = SIZE / 2;
    EXPECT_OK(weir_capture_begin(r->a));
    fill(r->a, r->x, 0, SIZE, 4);
    copy(r->a, r->host, r->x, 0, SIZE / 2);
    follow(r->b, r->a);
    EXPECT_OK(weir_queue_host_call(r->b, add_one, &adder));
    copy(r->b, r->y, r->host, 0, SIZE / 2);
    fill(r->a, r->z, 0, SIZE, 6);
    copy(r->a, r->host, r->z, SIZE / 2, SIZE / 2);
    follow(r->a, r->b);
    copy(r->a, r->z, r->y, 0, SIZE / 2);
    own_graph graph = conform_end(r->a);
    for (int i = 0; i < 3; i++)
        EXPECT_OK(weir_queue_graph(r->a, graph));
    EXPECT_SYNC(r->a);
    EXPECT_TRUE(halves_are(r, 5, 6));
    copy(r->a, r->host, r->z, 0, SIZE);
    EXPECT_SYNC(r->a);
    EXPECT_TRUE(halves_are(r, 5, 6));
    EXPECT_INT_EQ(atomic_load(&adder.calls), 3);
}

// Launches on several queues, none of them waited for, and a clone.
CONFORM_RIG(GraphCall, HostOften)
{
    enum {
        LAUNCHES = 50
    };
    struct adder adder = {0};
    own_graph clone = NULL;
    own_buffer out = conform_host_buffer(f, SIZE);
    weir_graph *graph = capture_host(r, &adder, out);
    weir_queue *queues[] = {r->a, r->b, r->c};
    EXPECT_INT_EQ(atomic_load(&adder.calls), 0);
    for (int i = 0; i < LAUNCHES; i++)
        EXPECT_OK(weir_queue_graph(queues[i % 3], graph));
    for (int i = 0; i < 3; i++)
        EXPECT_SYNC(queues[i]);
    EXPECT_INT_EQ(atomic_load(&adder.calls), LAUNCHES);
    EXPECT_TRUE(all_are(out, 0, SIZE, 8));
    EXPECT_INVALID(weir_graph_set_enabled(graph, 2, false), "node 2 is a host call");
    ASSERT_OK(weir_graph_clone(graph, NULL, &clone));
    memset(conform_bytes(out), 0, SIZE);
    weir_graph_destroy(&graph);
    launch_and_sync(r->b, clone);
    EXPECT_INT_EQ(atomic_load(&adder.calls), LAUNCHES + 1);
    EXPECT_TRUE(all_are(out, 0, SIZE, 8));
}

// The launch fails, and no later host call of it runs.
CONFORM_RIG(GraphCall, HostThatFails)
{
    struct adder first = {.status = WEIR_ERROR_HOST_CALL};
    struct adder second = {0};
    struct weir_event event;
    EXPECT_OK(weir_capture_begin(r->a));
    fill(r->a, r->x, 0, SIZE, 1);
    EXPECT_OK(weir_queue_host_call(r->a, add_one, &first));
    EXPECT_OK(weir_queue_host_call(r->a, add_one, &second));
    copy(r->a, r->host, r->x, 0, SIZE);
    own_graph graph = conform_end(r->a);
    EXPECT_OK(weir_queue_graph(r->a, graph));
    EXPECT_REFUSED(weir_queue_sync(r->a, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL,
                   "node 1, a host call captured at ");
    EXPECT_CONTAINS(weir_last_error()->message, "operation 1 of queue 'a', a graph, failed");
    EXPECT_INT_EQ(atomic_load(&first.calls), 1);
    EXPECT_INT_EQ(atomic_load(&second.calls), 0);
    EXPECT_REFUSED(weir_queue_graph(r->a, graph), WEIR_ERROR_HOST_CALL, "host call");
    EXPECT_OK(weir_queue_recover(r->a));

    // Another queue that waits for it inherits the failure; afterwards both go on.
    EXPECT_OK(weir_queue_graph(r->a, graph));
    const weir_status recorded = weir_queue_record(r->a, &event);
    if (recorded == WEIR_OK && weir_queue_wait(r->b, event) == WEIR_OK)
        EXPECT_REFUSED(weir_queue_sync(r->b, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL, "host call");
    EXPECT_OK(weir_queue_recover(r->a));
    EXPECT_OK(weir_queue_recover(r->b));
    first.status = WEIR_OK;
    launch_and_sync(r->b, graph);
    EXPECT_INT_EQ(atomic_load(&first.calls), 3);
    EXPECT_INT_EQ(atomic_load(&second.calls), 1);
    EXPECT_TRUE(all_are(r->host, 0, SIZE, 1));
}

// Updates.

// Launches before an update keep their function, also one that has not come to it; and so on, often.
static void check_host_updates(struct fixture *f, bool forks)
{
    enum {
        UPDATES = 20
    };
    struct adder first = {0};
    struct adder adders[UPDATES] = {{0}};
    own_graph clone = NULL;
    own_rig r = make_rig(f);
    EXPECT_OK(weir_capture_begin(r.a));
    own_gate gate = gate_on(r.a);
    EXPECT_OK(weir_queue_host_call(r.a, add_one, &first));
    const uint32_t node = last_node(r.a);
    copy(r.a, r.host, r.x, 0, SIZE);
    if (forks) {
        follow(r.b, r.a);
        fill(r.b, r.z, 0, SIZE, 1);
        fill(r.a, r.y, 0, SIZE, 1);
        follow(r.a, r.b);
    }
    own_graph graph = conform_end(r.a);
    EXPECT_OK(weir_graph_set_host_call(graph, node, add_one, &first)); // as it is
    EXPECT_OK(weir_queue_graph(r.a, graph));
    for (int i = 0; i < UPDATES; i++) {
        EXPECT_OK(weir_graph_set_host_call(graph, node, fail_plainly, NULL));
        EXPECT_OK(weir_graph_set_host_call(graph, node, add_one, &adders[i]));
        EXPECT_OK(weir_queue_graph(i % 2 ? r.a : r.b, graph));
    }
    gate_open(gate);
    EXPECT_SYNC(r.a);
    EXPECT_SYNC(r.b);
    EXPECT_INT_EQ(atomic_load(&first.calls), 1);
    for (int i = 0; i < UPDATES; i++)
        EXPECT_INT_EQ(atomic_load(&adders[i].calls), 1);

    // A clone has the function of now; what one gets, the other does not.
    ASSERT_OK(weir_graph_clone(graph, NULL, &clone));
    EXPECT_OK(weir_graph_set_host_call(graph, node, add_one, &first));
    launch_and_sync(r.a, graph);
    launch_and_sync(r.a, clone);
    EXPECT_INT_EQ(atomic_load(&first.calls), 2);
    EXPECT_INT_EQ(atomic_load(&adders[UPDATES - 1].calls), 2);

    EXPECT_INVALID(weir_graph_set_host_call(graph, 2, add_one, &first), "node 2 is a copy");
    EXPECT_INVALID(weir_graph_set_host_call(graph, 5, add_one, &first), "node 5 was named");
    EXPECT_INVALID(weir_graph_set_host_call(graph, node, NULL, &first), "function is NULL");
}

CONFORM(GraphCall, HostUpdates)
{
    check_host_updates(f, false);
    check_host_updates(f, true);
}

static bool can_update_native(weir_graph *graph, struct native_fill *fill, weir_buffer *buffer)
{
    const weir_status status =
        weir_graph_set_native(graph, 1, native_fill, fill, weir_out(buffer, 0, SIZE / 2));
    if (status == WEIR_ERROR_UNSUPPORTED)
        EXPECT_CONTAINS(weir_last_error()->message, "that updates no native calls");
    else
        EXPECT_INT_EQ(status, WEIR_OK);
    return status == WEIR_OK;
}

// Other values, another range, another number of the library's nodes; launches before it that are held keep theirs.
CONFORM_RIG(GraphCall, NativeUpdates)
{
    CONFORM_NEEDS_NATIVE(f);
    int nothing = 0;
    own_graph clone = NULL;
    struct native_fill half = native_fill_of(r->x, 0, SIZE / 8, 0x05050505u);
    struct native_fill other = native_fill_of(r->x, 0, SIZE / 8, 0x06060606u);
    struct native_fill second = native_fill_of(r->x, SIZE / 8, SIZE / 8, 0x07070707u);
    own_graph graph = capture_native(r, &half);
    if (!can_update_native(graph, &half, r->x))
        CONFORM_SKIP("the backend's module is of an older version");
    EXPECT_TRUE(leaves(r, r->a, graph, 5, 1));
    own_gate gate = gate_on(r->a);
    EXPECT_OK(weir_queue_graph(r->a, graph));
    copy(r->a, r->y, r->x, 0, SIZE);
    EXPECT_OK(weir_graph_set_native(graph, 1, native_fill, &other, weir_out(r->x, 0, SIZE / 2)));
    EXPECT_OK(weir_queue_graph(r->a, graph));
    gate_open(gate);
    EXPECT_SYNC(r->a);
    EXPECT_TRUE(halves_are(r, 6, 1));
    copy(r->a, r->host, r->y, 0, SIZE);
    EXPECT_SYNC(r->a);
    EXPECT_TRUE(halves_are(r, 5, 1)); // what the launch before left

    EXPECT_OK(weir_graph_set_native_array(graph, 1, submit_nothing, &nothing, NULL, 0));
    EXPECT_TRUE(leaves(r, r->b, graph, 1, 1));
    EXPECT_OK(
        weir_graph_set_native(graph, 1, native_fill, &second, weir_out(r->x, SIZE / 2, SIZE / 2)));
    ASSERT_OK(weir_graph_clone(graph, NULL, &clone));
    EXPECT_OK(weir_graph_set_native(graph, 1, native_fill, &other, weir_out(r->x, 0, SIZE / 2)));
    EXPECT_TRUE(leaves(r, r->a, graph, 6, 1));
    EXPECT_TRUE(leaves(r, r->a, clone, 1, 7));

    EXPECT_INVALID(weir_graph_set_native_array(graph, 2, native_fill, &other, NULL, 0),
                   "node 2 is a copy");
    EXPECT_INVALID(weir_graph_set_native(graph, 1, native_fill, &other,
                                         weir_out(r->x, 0, 2 * SIZE)),
                   "argument 0");
    EXPECT_INVALID(weir_graph_set_native_array(graph, 1, NULL, NULL, NULL, 0), "function is NULL");
    EXPECT_TRUE(leaves(r, r->a, graph, 6, 1));
}

static weir_status pass_and_fail(void *user)
{
    gate_pass(user);
    return WEIR_ERROR_HOST_CALL;
}

// The queue is destroyed while its launch runs: what waits for it fails nevertheless.
CONFORM_RIG(GraphCall, HostThatFailsInADestroyedQueue)
{
    own_gate gate = gate_create();
    EXPECT_OK(weir_capture_begin(r->a));
    EXPECT_OK(weir_queue_host_call(r->a, pass_and_fail, gate));
    weir_graph *graph = conform_end(r->a);
    EXPECT_OK(weir_queue_graph(r->a, graph));
    EXPECT_TRUE(gate_await(gate, 1));
    follow(r->b, r->a);
    weir_queue_destroy(&r->a);
    weir_graph_destroy(&graph);
    gate_open(gate);
    EXPECT_REFUSED(weir_queue_sync(r->b, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL,
                   "a host call captured at ");
    EXPECT_OK(weir_queue_recover(r->b));
}

// A launch keeps its operands while its host call runs.
CONFORM_RIG(GraphCall, UpdateWhileTheHostRuns)
{
    EXPECT_OK(weir_capture_begin(r->a));
    own_gate gate = gate_on(r->a);
    fill(r->a, r->host, 0, 64, 1);
    weir_graph *graph = conform_end(r->a);
    EXPECT_OK(weir_queue_graph(r->a, graph));
    EXPECT_TRUE(gate_await(gate, 1));
    EXPECT_OK(weir_graph_set_fill(graph, 1, r->host, 64, 64, "\2", 1));
    EXPECT_OK(weir_queue_graph(r->b, graph));
    EXPECT_OK(weir_graph_set_fill(graph, 1, r->host, 128, 64, "\3", 1));
    weir_graph_destroy(&graph); // while it runs
    gate_open(gate);
    EXPECT_SYNC(r->b);
    EXPECT_TRUE(all_are(r->host, 0, 64, 1));
    EXPECT_TRUE(all_are(r->host, 64, 64, 2));
    EXPECT_TRUE(all_are(r->host, 128, SIZE - 128, 0));
    EXPECT_SYNC(r->a);
}
