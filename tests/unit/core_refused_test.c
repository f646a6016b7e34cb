// What a failed queue frees is in use as long as the producers of its waits, which may have been refused, and
// its recovery waits for these. In most tests queue a works on a buffer of a pool, and b, whose wait for a does
// not reach the driver, frees it.

#include "core/queue/operation.h"
#include "tests/support/memory.h"
#include "tests/unit/core_backend.h"

#define SIZE ((size_t)5000)

struct scene {
    struct control control;
    weir_queue *a;
    weir_queue *b;
    weir_queue *c;
    weir_pool *pool;
    weir_buffer *buffer;
    struct weir_event event; // of a, after its work
};

static bool begin(struct scene *scene)
{
    *scene = (struct scene){0};
    if (!control_open(&scene->control))
        return false;
    scene->a = control_queue(&scene->control, "a");
    scene->b = control_queue(&scene->control, "b");
    scene->c = control_queue(&scene->control, "c");
    EXPECT_OK(weir_pool_create(scene->control.devices[0], NULL, &scene->pool));
    EXPECT_OK(weir_pool_allocate(scene->pool, scene->a, SIZE, &scene->buffer));
    control_stall_queue(scene->a);
    EXPECT_OK(weir_queue_record(scene->a, &scene->event));
    return scene->buffer;
}

static void end(struct scene *scene)
{
    control_stall_queue(NULL);
    weir_pool_destroy(&scene->pool);
    weir_queue_destroy(&scene->a);
    weir_queue_destroy(&scene->b);
    weir_queue_destroy(&scene->c);
    control_close(&scene->control);
}

#define SCENE_TEST(suite, name) \
    WEIR_TEST_WITH(suite, name, struct scene, scene, begin(scene), end(scene))

static void refuse_wait(const struct scene *scene)
{
    control_refuse(WEIR_OPERATION_WAIT, 0);
    EXPECT_INT_EQ(weir_queue_wait(scene->b, scene->event), WEIR_ERROR_DEVICE);
}

static void fail(weir_queue *queue, const struct scene *scene)
{
    const uint32_t zero = 0;
    control_refuse(WEIR_OPERATION_FILL, 0);
    EXPECT_INT_EQ(weir_queue_fill(queue, scene->buffer, 0, 4, &zero, 4), WEIR_ERROR_DEVICE);
}

// Whether an allocation on the queue gets the memory that was freed. It is given back on the queue.
static bool gets_it(const struct scene *scene, weir_queue *queue)
{
    struct weir_pool_statistics before, after;
    weir_buffer *buffer;
    weir_pool_read_statistics(scene->pool, &before);
    EXPECT_OK(weir_pool_allocate(scene->pool, queue, SIZE, &buffer));
    weir_pool_read_statistics(scene->pool, &after);
    weir_buffer_destroy(&buffer); // not kept by the pool
    return after.reused > before.reused;
}

struct call {
    struct weir_thread thread;
    weir_queue *queue;
    atomic_int status; // 1: it has not returned
};

static void recover(void *user)
{
    struct call *call = user;
    atomic_store(&call->status, (int)weir_queue_recover(call->queue));
}

// Whether work that is stalled is waited for, while the value is still `open`.
static bool blocks(const atomic_int *value, int open)
{
    const uint64_t begin_ns = weir_clock_now_ns();
    while (control_blocked_count() == 0 && atomic_load(value) == open &&
           weir_clock_now_ns() - begin_ns < GUARD_NS)
        weir_clock_sleep_ns(100000);
    return control_blocked_count() > 0;
}

// Begins a recovery in another thread. It waits for work that is stalled, and nothing is lent meanwhile.
static void expect_waits(const struct scene *scene, struct call *call, weir_queue *queue)
{
    *call = (struct call){.queue = queue, .status = 1};
    ASSERT_INT_EQ(weir_thread_start(&call->thread, recover, call), 0);
    EXPECT_TRUE(blocks(&call->status, 1));
    EXPECT_INT_EQ(atomic_load(&call->status), 1);
    EXPECT_FALSE(gets_it(scene, scene->c));
}

static void expect_ends(struct call *call)
{
    control_stall_queue(NULL);
    weir_thread_join(&call->thread);
    EXPECT_INT_EQ(atomic_load(&call->status), WEIR_OK);
}

// The whole of it, for a queue that has failed and has not freed the buffer yet.
static void expect_is_safe(struct scene *scene, weir_queue *queue)
{
    struct call call;
    EXPECT_OK(weir_pool_free(queue, &scene->buffer));
    EXPECT_FALSE(gets_it(scene, scene->c));
    EXPECT_OK(weir_pool_trim(scene->pool, 0)); // a query of all queues
    EXPECT_UINT_EQ(control_buffer_destroy_count(), 0);
    expect_waits(scene, &call, queue);
    expect_ends(&call);
    EXPECT_TRUE(gets_it(scene, scene->c));
    EXPECT_OK(weir_queue_sync(queue, GUARD_NS));
}

SCENE_TEST(Refused, WhatIsFreedAfterAWaitThatTheDriverRefused)
{
    refuse_wait(scene);
    expect_is_safe(scene, scene->b);
}

// The queue has failed before, and the wait is refused for that.
SCENE_TEST(Refused, WhatIsFreedAfterAWaitOnAFailedQueue)
{
    fail(scene->b, scene);
    EXPECT_INT_EQ(weir_queue_wait(scene->b, scene->event), WEIR_ERROR_DEVICE);
    expect_is_safe(scene, scene->b);
}

// The wait fails its queue at once, since the producer has failed; its work still runs.
SCENE_TEST(Refused, WhatIsFreedAfterAWaitForAFailedQueue)
{
    const struct weir_error cause = {.status = WEIR_ERROR_IO, .message = "a is broken"};
    weir__completion_fail(scene->a, scene->event.sequence, &cause);
    EXPECT_INT_EQ(weir_queue_wait(scene->b, scene->event), WEIR_ERROR_IO);
    expect_is_safe(scene, scene->b);
}

// Calls on a failed queue note each producer once.
SCENE_TEST(Refused, WaitsOnAFailedQueueDoNotPileUp)
{
    fail(scene->b, scene);
    for (int i = 0; i < 1000; i++) {
        EXPECT_OK(weir_queue_record(scene->a, &scene->event));
        EXPECT_INT_EQ(weir_queue_wait(scene->b, scene->event), WEIR_ERROR_DEVICE);
    }
    const struct weir__wait_ring *waits = &scene->b->completion.waits;
    EXPECT_UINT_EQ(atomic_load(&waits->tail) - atomic_load(&waits->head), 1);
    expect_is_safe(scene, scene->b);
}

// While a recovery waits, the queue refuses the same wait again. That is covered, so the recovery does not wait once more
// for all queues: with many such calls it would not end.
SCENE_TEST(Refused, WaitsThatAreRefusedAgainDoNotKeepARecovery)
{
    struct call call;
    const bool is_first = scene->a->member.object.id % 65536 < scene->c->member.object.id % 65536;
    weir_queue *first = is_first ? scene->a : scene->c; // recoveries take the queues in this order
    weir_queue *last = is_first ? scene->c : scene->a;

    const struct weir_event event = test_record(last);
    control_stall_queue(last);
    control_refuse(WEIR_OPERATION_WAIT, 0);
    EXPECT_INT_EQ(weir_queue_wait(scene->b, event), WEIR_ERROR_DEVICE);
    expect_waits(scene, &call, scene->b);
    (void)test_record(first); // more work
    EXPECT_INT_EQ(weir_queue_wait(scene->b, event), WEIR_ERROR_DEVICE);
    expect_ends(&call);
    EXPECT_TRUE(weir__queue_is_busy(first));
    EXPECT_OK(weir_pool_free(scene->a, &scene->buffer));
}

// A recovery of b by another thread ends while the first one waits for a, and b waits for c, which fails then.
SCENE_TEST(Refused, ARecoveryLeavesTheWaitsAfterAnotherOne)
{
    const struct weir_error cause = {.status = WEIR_ERROR_IO, .message = "c is broken"};
    struct call call;
    refuse_wait(scene);
    expect_waits(scene, &call, scene->b);
    const struct weir_event event = test_record(scene->c);
    weir_lock_take(&scene->b->submit_lock);
    weir__completion_recover(scene->b, scene->b->sequence);
    weir_lock_release(&scene->b->submit_lock);
    EXPECT_OK(weir_queue_wait(scene->b, event));
    weir__completion_fail(scene->c, event.sequence, &cause);
    expect_ends(&call);
    EXPECT_INT_EQ(weir_queue_sync(scene->b, GUARD_NS), WEIR_ERROR_IO);
    EXPECT_OK(weir_pool_free(scene->a, &scene->buffer));
}

// The other recovery ends before the first one begins to wait: what has failed since is not the first one's.
SCENE_TEST(Refused, ARecoveryThatComesAfterAnotherOneEndsNothing)
{
    struct call call = {.queue = scene->b, .status = 1};
    struct weir_operation operation;
    weir__operation_begin(&operation, WEIR_OPERATION_HOST_CALL, 0, __FILE__, __LINE__);
    operation.u.host_call.function = gate_pass;
    operation.u.host_call.user = &control_gate;
    control_gate.status = WEIR_ERROR_IO;
    fail(scene->b, scene);
    weir_lock_take(&scene->b->submit_lock);
    ASSERT_INT_EQ(weir_thread_start(&call.thread, recover, &call), 0);
    weir_clock_sleep_ns(50000000); // it waits for the lock
    weir__completion_recover(scene->b, scene->b->sequence);
    EXPECT_OK(weir__queue_submit_locked(scene->b, &operation));
    weir_lock_release(&scene->b->submit_lock);
    for (int i = 0; i < 10000 && atomic_load(&call.status) == 1; i++)
        weir_clock_sleep_ns(1000000);
    EXPECT_INT_EQ(atomic_load(&call.status), WEIR_OK);
    gate_open(&control_gate);
    expect_ends(&call);
    EXPECT_INT_EQ(weir_queue_sync(scene->b, GUARD_NS), WEIR_ERROR_IO);
    EXPECT_OK(weir_pool_free(scene->a, &scene->buffer));
}

// The wait is refused in b's worker, after c has begun to wait for b.
SCENE_TEST(Refused, WhatIsFreedByAQueueThatWaitedForTheFailedOne)
{
    struct call call;
    own_queue d = control_queue(&scene->control, "d");
    ASSERT_OK(weir_queue_host_call(scene->b, gate_pass, &control_gate));
    ASSERT_OK(weir_queue_wait(scene->b, scene->event));
    const struct weir_event event = test_record(scene->b);
    ASSERT_OK(weir_queue_wait(d, event));
    EXPECT_OK(weir_pool_free(d, &scene->buffer));
    control_refuse(WEIR_OPERATION_WAIT, 0);
    gate_open(&control_gate);
    EXPECT_INT_EQ(weir_queue_sync(d, GUARD_NS), WEIR_ERROR_DEVICE);
    EXPECT_FALSE(gets_it(scene, scene->c));
    expect_waits(scene, &call, d);
    expect_ends(&call);
    EXPECT_TRUE(gets_it(scene, scene->c));
    EXPECT_OK(weir_queue_recover(scene->b));
}

// A destroyed queue cannot be recovered. It is reclaimed when what the producers had to do has ended, whatever they have
// got since, and the memory is then free.
SCENE_TEST(Refused, WhatADestroyedQueueFreed)
{
    refuse_wait(scene);
    const uint64_t id = scene->b->member.object.id;
    EXPECT_OK(weir_pool_free(scene->b, &scene->buffer));
    weir_queue_destroy(&scene->b);
    EXPECT_FALSE(gets_it(scene, scene->c));
    weir_queue *kept = weir__registry_pin(id);
    ASSERT_NOT_NULL(kept);
    weir__registry_unpin(kept);
    ASSERT_OK(weir_queue_host_call(scene->a, gate_pass, &control_gate));
    control_stall_queue(NULL);
    EXPECT_OK(weir_queue_sync(scene->c, GUARD_NS)); // checks what was destroyed
    EXPECT_OK(weir_event_sync(scene->event, GUARD_NS));
    EXPECT_TRUE(gets_it(scene, scene->c));
    EXPECT_NULL(weir__registry_pin(id));
    gate_open(&control_gate);
}

// The same when the device is closed at once.
SCENE_TEST(Refused, ADestroyedQueueWhoseDeviceIsClosed)
{
    refuse_wait(scene);
    EXPECT_OK(weir_pool_free(scene->b, &scene->buffer));
    weir_queue_destroy(&scene->b);
}

// A producer that reports a failure has ended: a recovery that waits for it returns.
SCENE_TEST(Refused, AProducerThatTheDriverFails)
{
    refuse_wait(scene);
    EXPECT_OK(weir_pool_free(scene->b, &scene->buffer));
    control_stall_queue(NULL);
    control_fault(WEIR_ERROR_DEVICE);
    EXPECT_OK(weir_queue_recover(scene->b));
    control_fault(WEIR_OK);
    EXPECT_TRUE(gets_it(scene, scene->c));
}

static void note_blocked(void *user, weir_status status)
{
    atomic_store((atomic_int *)user, 1);
}

// The call on b comes after the stalled work.
static void expect_runs_after(struct scene *scene, const atomic_int *ran)
{
    EXPECT_TRUE(blocks(ran, 0));
    EXPECT_INT_EQ(atomic_load(ran), 0);
    control_stall_queue(NULL);
    EXPECT_OK(weir_queue_recover(scene->b));
    EXPECT_INT_EQ(atomic_load(ran), 1);
    EXPECT_OK(weir_pool_free(scene->b, &scene->buffer));
}

// The look at b's progress between the wait and the call must not make the call forget the wait.
SCENE_TEST(Refused, ACallThatAlwaysRunsAfterALookAtTheQueue)
{
    atomic_int ran = 0;
    struct weir_event last;
    refuse_wait(scene);
    EXPECT_TRUE(weir__queue_record_end(scene->b, &last));
    EXPECT_TRUE(weir__event_is_complete(last));
    EXPECT_OK(weir_queue_host_call_always(scene->b, note_blocked, &ran));
    expect_runs_after(scene, &ran);
}

static bool comes(const atomic_int *ran)
{
    const uint64_t begin_ns = weir_clock_now_ns();
    while (atomic_load(ran) == 0 && weir_clock_now_ns() - begin_ns < GUARD_NS)
        weir_clock_sleep_ns(100000);
    return atomic_load(ran);
}

// A call that always runs waits for what was asked for before it. What is asked for while it waits may come
// after the call, as here, and would never end.
SCENE_TEST(Refused, ACallThatAlwaysRunsWaitsForNothingThatComesAfterIt)
{
    atomic_int ran = 0;
    control_gate.status = WEIR_ERROR_IO;
    ASSERT_OK(weir_queue_host_call(scene->b, gate_pass, &control_gate));
    ASSERT_OK(weir_queue_wait(scene->b, scene->event));
    ASSERT_OK(weir_queue_host_call_always(scene->b, note_blocked, &ran));
    ASSERT_OK(weir_queue_after(scene->a, scene->b));
    const struct weir_event later = test_record(scene->a);
    gate_open(&control_gate);
    ASSERT_TRUE(blocks(&ran, 0)); // the call waits for a
    EXPECT_INT_EQ(weir_queue_wait(scene->b, later), WEIR_ERROR_IO);
    control_stall_queue(NULL);
    ASSERT_TRUE(comes(&ran)); // nothing ends otherwise
    EXPECT_OK(weir_queue_recover(scene->b));
    EXPECT_OK(weir_queue_recover(scene->a));
    EXPECT_OK(weir_pool_free(scene->b, &scene->buffer));
}

// The legacy queue's work comes before what others do after it, also before a free of a failed queue.
SCENE_TEST(Refused, WhatIsFreedAfterTheLegacyQueuesWork)
{
    weir_queue *legacy = control_legacy(&scene->control);
    control_stall_queue(NULL);
    fail(scene->b, scene);
    EXPECT_INT_EQ(weir_queue_fill(legacy, scene->buffer, 0, SIZE, "x", 1), WEIR_ERROR_DEVICE);
    ASSERT_OK(weir_queue_recover(legacy)); // it reports b's failure no more
    control_stall_queue(legacy);
    ASSERT_OK(weir_queue_fill(legacy, scene->buffer, 0, SIZE, "x", 1));
    expect_is_safe(scene, scene->b);
}

// The same if the failure is found after the queue's waits were accepted: it may have run on without them.
SCENE_TEST(Refused, WhatIsFreedAfterTheLegacyQueuesWorkBeforeTheFailureIsFound)
{
    weir_queue *legacy = control_legacy(&scene->control);
    own_buffer other = control_buffer(&scene->control, 4);
    ASSERT_OK(weir_queue_fill(scene->b, other, 0, 4, "x", 1));
    const uint64_t first = scene->b->sequence;
    control_stall_queue(legacy);
    ASSERT_OK(weir_queue_fill(legacy, scene->buffer, 0, SIZE, "x", 1));
    ASSERT_OK(weir_queue_fill(scene->b, other, 0, 4, "x", 1));
    const struct weir_error cause = {.status = WEIR_ERROR_IO, .message = "b is broken"};
    weir__completion_fail(scene->b, first, &cause);
    expect_is_safe(scene, scene->b);
}

// A call that always runs comes after the legacy queue's work too.
SCENE_TEST(Refused, ACallThatAlwaysRunsAfterTheLegacyQueuesWork)
{
    atomic_int ran = 0;
    weir_queue *legacy = control_legacy(&scene->control);
    control_gate.status = WEIR_ERROR_IO;
    ASSERT_OK(weir_queue_host_call(scene->b, gate_pass, &control_gate));
    control_stall_queue(legacy);
    ASSERT_OK(weir_queue_fill(legacy, scene->buffer, 0, SIZE, "x", 1));
    EXPECT_OK(weir_queue_host_call_always(scene->b, note_blocked, &ran));
    gate_open(&control_gate);
    expect_runs_after(scene, &ran);
}

SCENE_TEST(Refused, WhatTheLegacyQueueFreedAfterWorkOfOthers)
{
    weir_queue *legacy = control_legacy(&scene->control);
    fail(legacy, scene);
    ASSERT_OK(weir_queue_fill(scene->a, scene->buffer, 0, SIZE, "x", 1));
    expect_is_safe(scene, legacy);
}

// A graph that queue a has launched.
static weir_graph *launch_fill(struct scene *scene)
{
    weir_graph *graph = NULL;
    own_buffer buffer = control_buffer(&scene->control, 4); // the graph keeps it
    EXPECT_OK(weir_capture_begin(scene->a));
    EXPECT_OK(weir_queue_fill(scene->a, buffer, 0, 4, "x", 1));
    EXPECT_OK(weir_capture_end(scene->a, NULL, &graph));
    EXPECT_OK(weir_queue_graph(scene->a, graph));
    return graph;
}

// Launches of one graph are in order. A launch that is refused does not come after the one before.
SCENE_TEST(Refused, WhatIsFreedAfterALaunchThatWasRefused)
{
    own_graph graph = launch_fill(scene);
    fail(scene->b, scene);
    EXPECT_INT_EQ(weir_queue_graph(scene->b, graph), WEIR_ERROR_DEVICE);
    expect_is_safe(scene, scene->b);
}

// A call that always runs waits for events, and not for launches, which have none: a refused launch of the same
// producer, which comes after the event, does not stand for it.
SCENE_TEST(Refused, ALaunchHidesNoEventFromACallThatAlwaysRuns)
{
    atomic_int ran = 0;
    own_graph graph = launch_fill(scene);
    fail(scene->b, scene);
    EXPECT_INT_EQ(weir_queue_graph(scene->b, graph), WEIR_ERROR_DEVICE);
    EXPECT_INT_EQ(weir_queue_wait(scene->b, scene->event), WEIR_ERROR_DEVICE);
    EXPECT_OK(weir_queue_host_call_always(scene->b, note_blocked, &ran));
    expect_runs_after(scene, &ran);
}

static void wait_without_memory(const struct scene *scene, weir_status status)
{
    weir_test_fail_allocation(0);
    EXPECT_INT_EQ(weir_queue_wait(scene->b, scene->event), status);
    EXPECT_TRUE(weir_test_allocation_failed());
    weir_test_fail_allocation(-1);
}

// If no memory is left to note the wait, the recovery comes after all work of the device.
SCENE_TEST(Refused, AWaitOnAFailedQueueWithoutMemory)
{
    fail(scene->b, scene);
    wait_without_memory(scene, WEIR_ERROR_DEVICE);
    expect_is_safe(scene, scene->b);
}

SCENE_TEST(Refused, ADestroyedQueueWithoutMemory)
{
    fail(scene->b, scene);
    wait_without_memory(scene, WEIR_ERROR_DEVICE);
    EXPECT_OK(weir_pool_free(scene->b, &scene->buffer));
    weir_queue_destroy(&scene->b);
    EXPECT_FALSE(gets_it(scene, scene->c));
    control_stall_queue(NULL);
    EXPECT_OK(weir_event_sync(scene->event, GUARD_NS));
    EXPECT_TRUE(gets_it(scene, scene->c));
}

// A wait that cannot be noted fails its queue, as one that the driver refuses does.
SCENE_TEST(Refused, AWaitWithoutMemory)
{
    wait_without_memory(scene, WEIR_ERROR_OUT_OF_MEMORY);
    EXPECT_CONTAINS(weir_last_error_text(), "no memory to note a wait");
    expect_is_safe(scene, scene->b);
}
