// The legacy queue's marks and waits: that they are the necessary ones and no more, and
// the effect on a queue that cannot be ordered after it.
#include "base/clock.h"
#include "base/thread.h"
#include "core/queue/queue.h"
#include "tests/unit/core_backend.h"

#define GUARD_NS (UINT64_C(60) * 1000000000u)

static weir_queue *legacy_of(const struct control *control)
{
    weir_queue *queue;
    EXPECT_OK(weir_legacy_queue(control->devices[0], &queue));
    return queue;
}

static void fill(weir_queue *queue, weir_buffer *buffer)
{
    EXPECT_OK(weir_queue_fill(queue, buffer, 0, 64, "x", 1));
}

static void expect_seen(size_t index, enum weir_operation_kind kind, const weir_queue *queue,
                        const weir_queue *producer, uint32_t flags)
{
    struct seen seen = {0};
    EXPECT_TRUE(control_seen(index, &seen));
    EXPECT_INT_EQ(seen.kind, kind);
    EXPECT_TRUE(seen.queue == queue);
    EXPECT_TRUE(seen.producer == producer);
    EXPECT_UINT_EQ(seen.flags, flags);
}

// An unused queue is not marked, and no end is waited for twice.
CONTROL_TEST(Migration, InsertsWhatIsNeededAndNoMore)
{
    const uint32_t internal = WEIR_OPERATION_INTERNAL;
    control_stall(true); // nothing is known to be complete
    weir_queue *legacy = legacy_of(control);
    weir_queue *used = control_keep_queue(control, "used");
    weir_queue *idle = control_keep_queue(control, "idle");
    weir_buffer *buffer = control_keep_buffer(control, 64);

    fill(used, buffer);
    control_forget();
    fill(legacy, buffer);
    expect_seen(0, WEIR_OPERATION_RECORD, used, NULL, internal);
    expect_seen(1, WEIR_OPERATION_WAIT, legacy, used, internal);
    expect_seen(2, WEIR_OPERATION_FILL, legacy, NULL, 0);
    fill(legacy, buffer);
    expect_seen(3, WEIR_OPERATION_FILL, legacy, NULL, 0);
    fill(used, buffer);
    expect_seen(4, WEIR_OPERATION_RECORD, legacy, NULL, internal);
    expect_seen(5, WEIR_OPERATION_WAIT, used, legacy, internal);
    expect_seen(6, WEIR_OPERATION_FILL, used, NULL, 0);
    fill(used, buffer);
    expect_seen(7, WEIR_OPERATION_FILL, used, NULL, 0);
    // The legacy queue's end is marked already.
    fill(idle, buffer);
    expect_seen(8, WEIR_OPERATION_WAIT, idle, legacy, internal);
    expect_seen(9, WEIR_OPERATION_FILL, idle, NULL, 0);
    struct seen none;
    EXPECT_FALSE(control_seen(10, &none));
    control_stall(false);
    EXPECT_OK(weir_queue_sync(legacy, GUARD_NS));
}

// A wait for the legacy queue is no new work for it.
CONTROL_TEST(Migration, WaitingForItIsNoNews)
{
    struct weir_event event;
    weir_queue *legacy = legacy_of(control);
    weir_queue *queue = control_keep_queue(control, "q");
    weir_buffer *buffer = control_keep_buffer(control, 64);

    control_stall(true);
    fill(legacy, buffer);
    weir_lock_take(&queue->submit_lock);
    weir__legacy_order(queue);
    weir_lock_release(&queue->submit_lock);
    control_forget();
    ASSERT_OK(weir_queue_record(legacy, &event));
    expect_seen(0, WEIR_OPERATION_RECORD, legacy, NULL, 0);
    struct seen none;
    EXPECT_FALSE(control_seen(1, &none));
    control_stall(false);
    EXPECT_OK(weir_event_sync(event, GUARD_NS));
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
        struct control control;
        weir_test_note("case %zu", i);
        ASSERT_TRUE(control_open(&control));
        weir_queue *legacy = legacy_of(&control);
        weir_queue *other = control_queue(&control, "other");
        weir_buffer *buffer = control_buffer(&control, 64);
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
        weir_buffer_destroy(&buffer);
        weir_queue_destroy(&other);
        control_close(&control);
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

// It failed before it had waited for all; its recovery does, and after it only new work is waited for.
CONTROL_TEST(Migration, TheLegacyQueueMissesNothingAfterARecovery)
{
    weir_queue *legacy = legacy_of(control);
    weir_queue *queues[3];
    weir_buffer *buffer = control_keep_buffer(control, 64);

    control_stall(true);
    for (int i = 0; i < 3; i++) {
        queues[i] = control_queue(control, "q");
        fill(queues[i], buffer);
    }
    control_refuse(WEIR_OPERATION_WAIT, 1);
    EXPECT_INT_EQ(weir_queue_fill(legacy, buffer, 0, 64, "x", 1), WEIR_ERROR_DEVICE);
    // The latest comes first. It was waited for; the second wait was refused, and so the third was skipped.
    EXPECT_TRUE(saw_wait(legacy, queues[2]));
    EXPECT_FALSE(saw_wait(legacy, queues[0]));
    EXPECT_OK(weir_queue_recover(legacy));
    for (int i = 0; i < 3; i++)
        EXPECT_FALSE(weir__queue_is_busy(queues[i]));
    fill(queues[0], buffer);
    control_forget();
    fill(legacy, buffer);
    EXPECT_TRUE(saw_wait(legacy, queues[0]));
    EXPECT_UINT_EQ(control_count(WEIR_OPERATION_WAIT), 1);
    control_stall(false);
    EXPECT_OK(weir_queue_sync(legacy, GUARD_NS));
    for (int i = 0; i < 3; i++)
        weir_queue_destroy(&queues[i]);
}

struct call {
    struct weir_thread thread;
    weir_queue *legacy;
    weir_buffer *buffer;
};

static void fill_legacy(void *user)
{
    const struct call *call = user;
    fill(call->legacy, call->buffer);
}

static void recover_legacy(void *user)
{
    const struct call *call = user;
    EXPECT_OK(weir_queue_recover(call->legacy));
}

// Whether a thread has begun to order the legacy queue.
static bool is_ordered(weir_device *device)
{
    const bool is_free = pthread_mutex_trylock(&device->legacy.lock.mutex) == 0;
    if (is_free)
        pthread_mutex_unlock(&device->legacy.lock.mutex);
    return !is_free;
}

// An operation begins on the failed legacy queue and is accepted, since another thread recovers the queue meanwhile.
// Other queues come after it all the same.
CONTROL_TEST(Migration, AnOperationDuringARecoveryHasATurn)
{
    const struct weir_error cause = {.status = WEIR_ERROR_IO, .message = "it is broken"};
    struct call call = {.legacy = legacy_of(control), .buffer = control_keep_buffer(control, 64)};
    struct call other = call;
    weir_queue *queue = control_keep_queue(control, "q");
    const uint64_t begin_ns = weir_clock_now_ns();

    control_stall(true);
    fill(queue, call.buffer);
    weir__completion_fail(call.legacy, call.legacy->sequence + 1, &cause);
    weir_lock_take(&queue->submit_lock); // the order comes so far
    ASSERT_INT_EQ(weir_thread_start(&call.thread, fill_legacy, &call), 0);
    while (!is_ordered(control->devices[0]) && weir_clock_now_ns() - begin_ns < GUARD_NS)
        weir_clock_sleep_ns(100000);
    weir_clock_sleep_ns(10000000); // past the look at the failure
    ASSERT_INT_EQ(weir_thread_start(&other.thread, recover_legacy, &other), 0);
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
    weir_queue *legacy = legacy_of(control);
    weir_queue *queue = control_keep_queue(control, "q");
    weir_buffer *buffer = control_keep_buffer(control, 64);

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

// A queue's wait for the legacy queue passes on no failure, and it covers no wait for an event, which does.
CONTROL_TEST(Migration, TheOrderOfTheLegacyQueueStandsForNoWait)
{
    const struct weir_error cause = {.status = WEIR_ERROR_IO, .message = "it is broken"};
    struct weir_event event;
    weir_queue *legacy = legacy_of(control);
    weir_queue *ordered = control_keep_queue(control, "ordered");
    weir_queue *waiting = control_keep_queue(control, "waiting");
    weir_buffer *buffer = control_keep_buffer(control, 64);

    fill(legacy, buffer);
    ASSERT_OK(weir_queue_record(legacy, &event));
    fill(ordered, buffer);
    fill(waiting, buffer);
    ASSERT_OK(weir_queue_wait(waiting, event));
    weir__completion_fail(legacy, event.sequence, &cause);
    EXPECT_OK(weir_queue_sync(ordered, GUARD_NS));
    EXPECT_INT_EQ(weir_queue_sync(waiting, GUARD_NS), WEIR_ERROR_IO);
    EXPECT_OK(weir_queue_recover(legacy));
    EXPECT_OK(weir_queue_recover(waiting));
}
