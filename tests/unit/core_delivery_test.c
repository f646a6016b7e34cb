// What reaches a backend, and in which order, seen from below delivery.
#include <errno.h>

#include "tests/unit/core_backend.h"

CONTROL_TEST(Delivery, KeepsToItselfWhatNeedsNoDriver)
{
    struct seen seen;

    own_queue a = control_queue(control, "a");
    own_queue b = control_queue(control, "b");
    own_buffer buffer = control_buffer(control, 64);
    ASSERT_OK(weir_queue_fill(a, buffer, 0, 64, "x", 1));
    ASSERT_OK(weir_queue_fill(a, buffer, 0, 0, "x", 1));          // empty
    ASSERT_OK(weir_queue_host_call(a, gate_pass, &control_gate)); // run by the hop
    ASSERT_OK(weir_queue_fill(a, buffer, 0, 0, "x", 1));          // empty and held
    const struct weir_event event = test_record(a);
    ASSERT_OK(weir_queue_wait(a, event)); // implied and held
    ASSERT_OK(weir_queue_wait(b, event));
    ASSERT_OK(weir_queue_wait(b, event)); // implied
    gate_open(&control_gate);
    ASSERT_OK(weir_queue_sync(b, GUARD_NS));
    ASSERT_OK(weir_queue_wait(b, event)); // implied: known to be complete
    ASSERT_OK(weir_queue_sync(a, GUARD_NS));
    for (size_t i = 0; control_seen(i, &seen); i++) {
        EXPECT_INT_NE(seen.kind, WEIR_OPERATION_HOST_CALL);
        EXPECT_UINT_EQ(seen.flags & (WEIR_OPERATION_IMPLIED | WEIR_OPERATION_EMPTY), 0);
    }
    EXPECT_UINT_EQ(control_count(WEIR_OPERATION_FILL), 1);
    EXPECT_UINT_EQ(control_count(WEIR_OPERATION_WAIT), 1);
    EXPECT_UINT_EQ(control_count(WEIR_OPERATION_RECORD), 3);
}

// The host orders devices that are no peers; a wait for a peer is the device's at once.
CONTROL_TEST(Delivery, KeepsDevicesApartUnlessTheyArePeers)
{
    own_queue queue = control_queue(control, "first");
    for (unsigned peers = 0; peers < 2; peers++) {
        own_queue other = NULL;
        ASSERT_OK(weir_queue_create(control->devices[1], NULL, &other));
        control_peers(peers);
        control_stall(true);
        const struct weir_event event = test_record(queue);
        control_stall(peers);
        ASSERT_OK(weir_queue_wait(other, event));
        EXPECT_UINT_EQ(control_count(WEIR_OPERATION_WAIT), peers);
        control_stall(false);
        ASSERT_OK(weir_queue_sync(other, GUARD_NS));
        EXPECT_UINT_EQ(control_count(WEIR_OPERATION_WAIT), peers);
        EXPECT_OK(weir_event_query(event));
    }
}

static bool flushes_reach(size_t count)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < 60000 && control_flush_count() < count; i++)
        nanosleep(&pause, NULL);
    return control_flush_count() >= count;
}

// Nothing else would flush the operations that the worker submitted.
CONTROL_TEST(Delivery, FlushesWhatItHandsOver)
{
    own_queue queue = control_queue(control, "q");
    ASSERT_OK(weir_queue_host_call(queue, gate_pass, &control_gate));
    ASSERT_OK(weir_queue_flush(queue));
    gate_open(&control_gate);
    EXPECT_TRUE(flushes_reach(1)); // without a sync
    ASSERT_OK(weir_queue_sync(queue, GUARD_NS));
    weir_queue_destroy(&queue);
    // A queue that is not held forwards a flush.
    queue = control_queue(control, "free");
    const size_t before = control_flush_count();
    ASSERT_OK(weir_queue_flush(queue));
    EXPECT_UINT_EQ(control_flush_count(), before + 1);
}

static void expect_refusal(const char *label)
{
    const struct weir_error *error = weir_last_error();
    EXPECT_INT_EQ(error->status, WEIR_ERROR_DEVICE);
    EXPECT_CONTAINS(error->message, "a fill, failed: the driver has had enough");
    EXPECT_STR_EQ(error->object, label);
    EXPECT_STR_EQ(error->native_call, "driverSubmit");
    EXPECT_STR_EQ(error->native_name, "DRIVER_BUSY");
    EXPECT_INT_EQ(error->native_code, -77);
    EXPECT_STR_EQ(error->file, __FILE__);
}

// An error at submit fails the queue, on the caller's thread and on the worker's.
CONTROL_TEST(Delivery, AnErrorAtSubmitFailsTheQueue)
{
    own_buffer buffer = control_buffer(control, 64);
    for (int held = 0; held < 2; held++) {
        own_queue queue = control_queue(control, held ? "held" : "direct");
        own_queue dependent = control_queue(control, "dependent");
        weir_test_note("%s", weir_queue_label(queue));
        const struct weir_event before = test_record(queue);
        if (held)
            ASSERT_OK(weir_queue_host_call(queue, gate_pass, &control_gate));
        control_refuse(WEIR_OPERATION_FILL, 1);
        ASSERT_OK(weir_queue_fill(queue, buffer, 0, 64, "x", 1));
        const int line = __LINE__ + 1;
        const weir_status status = weir_queue_fill(queue, buffer, 0, 64, "x", 1);
        EXPECT_INT_EQ(status, held ? WEIR_OK : WEIR_ERROR_DEVICE);
        if (held) {
            ASSERT_OK(weir_queue_after(dependent, queue));
            gate_open(&control_gate);
            EXPECT_INT_EQ(weir_queue_sync(dependent, GUARD_NS), WEIR_ERROR_DEVICE);
            expect_refusal(weir_queue_label(queue));
        }
        EXPECT_INT_EQ(weir_queue_sync(queue, GUARD_NS), WEIR_ERROR_DEVICE);
        expect_refusal(weir_queue_label(queue));
        EXPECT_INT_EQ(weir_last_error()->line, line);
        EXPECT_OK(weir_event_sync(before, GUARD_NS));
        EXPECT_OK(weir_queue_recover(queue));
        EXPECT_OK(weir_queue_sync(queue, GUARD_NS));
    }
}

// A queue for whose host calls no thread can be started.

static atomic_bool without_threads;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument)
{
    return atomic_load(&without_threads) ? EAGAIN
                                         : __real_pthread_create(thread, attributes, run, argument);
}

// A call that also runs after a failure never runs if it is refused, as there is no thread.

static void count_up(void *user, weir_status status)
{
    atomic_fetch_add((atomic_int *)user, 1);
}

CONTROL_TEST(Always, WithoutAThread)
{
    atomic_int count = 0;
    own_queue queue = control_queue(control, "q");
    atomic_store(&without_threads, true);
    EXPECT_INT_EQ(weir_queue_host_call_always(queue, count_up, &count), WEIR_ERROR_SYSTEM);
    atomic_store(&without_threads, false);
    EXPECT_CONTAINS(weir_last_error()->message, "no thread for the host calls of queue 'q'");
    EXPECT_OK(weir_queue_recover(queue));
    EXPECT_OK(weir_queue_host_call_always(queue, count_up, &count));
    EXPECT_OK(weir_queue_sync(queue, GUARD_NS));
    EXPECT_INT_EQ(atomic_load(&count), 1);
}

// The legacy queue's marks and waits, and a queue that cannot be ordered after it.

static void fill(weir_queue *queue, weir_buffer *buffer)
{
    EXPECT_OK(weir_queue_fill(queue, buffer, 0, 64, "x", 1));
}

// The driver refuses the mark of another queue, the wait for it, the mark of the legacy
// queue, or the wait for that: a queue that cannot be ordered fails, and does nothing out
// of order.
WEIR_TEST(Migration, AQueueThatCannotBeOrderedFails)
{
    static const struct {
        enum weir_operation_kind refused;
        bool legacy_first;
    } cases[] = {
        {WEIR_OPERATION_RECORD, false},
        {WEIR_OPERATION_WAIT, false},
        {WEIR_OPERATION_RECORD, true},
        {WEIR_OPERATION_WAIT, true},
    };
    for (size_t i = 0; i < 4; i++) {
        OWN(control_close) struct control control;
        weir_test_note("case %zu", i);
        ASSERT_TRUE(control_open(&control));
        weir_queue *legacy = control_legacy(&control);
        own_queue other = control_queue(&control, "other");
        own_buffer buffer = control_buffer(&control, 64);
        weir_queue *first = cases[i].legacy_first ? legacy : other;
        weir_queue *second = cases[i].legacy_first ? other : legacy;

        control_stall(true);
        fill(first, buffer);
        const size_t fills = control_count(WEIR_OPERATION_FILL);
        control_refuse(cases[i].refused, 0);
        EXPECT_INT_EQ(weir_queue_fill(second, buffer, 0, 64, "x", 1), WEIR_ERROR_DEVICE);
        EXPECT_UINT_EQ(control_count(WEIR_OPERATION_FILL), fills);
        control_stall(false);
        EXPECT_OK(weir_queue_recover(first));
        EXPECT_OK(weir_queue_recover(second));
        fill(second, buffer);
        EXPECT_OK(weir_queue_sync(second, GUARD_NS));
        EXPECT_OK(weir_queue_sync(first, GUARD_NS));
    }
}

static bool saw_wait(const weir_queue *queue, const weir_queue *producer)
{
    struct seen seen;
    bool found = false;
    for (size_t i = 0; control_seen(i, &seen); i++)
        found = found || (seen.kind == WEIR_OPERATION_WAIT && seen.queue == queue &&
                          seen.producer == producer);
    return found;
}

struct call {
    struct weir_thread thread;
    weir_queue *legacy;
    weir_buffer *buffer; // NULL: a recovery
};

static void call_legacy(void *user)
{
    const struct call *call = user;
    if (call->buffer)
        fill(call->legacy, call->buffer);
    else
        EXPECT_OK(weir_queue_recover(call->legacy));
}

// An operation begins on the failed legacy queue and is accepted, since another thread recovers the queue meanwhile.
// Other queues come after it all the same.
CONTROL_TEST(Migration, AnOperationDuringARecoveryHasATurn)
{
    const struct weir_error cause = {.status = WEIR_ERROR_IO, .message = "it is broken"};
    own_buffer buffer = control_buffer(control, 64);
    struct call call = {.legacy = control_legacy(control), .buffer = buffer};
    struct call other = {.legacy = call.legacy};
    own_queue queue = control_queue(control, "q");

    control_stall(true);
    fill(queue, call.buffer);
    weir__completion_fail(call.legacy, call.legacy->sequence + 1, &cause);
    weir_lock_take(&queue->submit_lock); // the order comes so far
    ASSERT_INT_EQ(weir_thread_start(&call.thread, call_legacy, &call), 0);
    weir_clock_sleep_ns(50000000); // it has seen the failure, and waits for the lock
    ASSERT_INT_EQ(weir_thread_start(&other.thread, call_legacy, &other), 0);
    weir_thread_join(&other.thread);
    weir_lock_release(&queue->submit_lock);
    weir_thread_join(&call.thread);
    control_forget();
    fill(queue, call.buffer);
    EXPECT_TRUE(saw_wait(queue, call.legacy));
    control_stall(false);
    EXPECT_OK(weir_queue_sync(queue, GUARD_NS));
}

// A queue's wait for the legacy queue was refused; its recovery waits for that, and it for what comes next.
CONTROL_TEST(Migration, NoQueueMissesTheLegacyQueueAfterARecovery)
{
    weir_queue *legacy = control_legacy(control);
    own_queue queue = control_queue(control, "q");
    own_buffer buffer = control_buffer(control, 64);

    control_stall(true);
    fill(legacy, buffer);
    control_refuse(WEIR_OPERATION_WAIT, 0);
    EXPECT_INT_EQ(weir_queue_fill(queue, buffer, 0, 64, "x", 1), WEIR_ERROR_DEVICE);
    EXPECT_OK(weir_queue_recover(queue));
    EXPECT_FALSE(weir__queue_is_busy(legacy));
    fill(legacy, buffer);
    control_forget();
    fill(queue, buffer);
    EXPECT_TRUE(saw_wait(queue, legacy));
    control_stall(false);
    EXPECT_OK(weir_queue_sync(queue, GUARD_NS));
    EXPECT_OK(weir_queue_sync(legacy, GUARD_NS));
}
