// The bookkeeping of completion and failure, with a backend whose completion and
// failures the test controls.

#include "tests/unit/core_backend.h"

static uint64_t completed(const weir_queue *queue)
{
    return atomic_load(&queue->completion.completed);
}

// If the end of a chain is complete, so is the whole chain; this takes one query
// to the driver.
CONTROL_TEST(Completion, CompletionSpreadsAlongAChainOfTen)
{
    enum {
        QUEUES = 10
    };
    own_queues queues = {NULL};
    struct weir_event events[QUEUES];

    control_stall(true);
    for (int i = 0; i < QUEUES; i++) {
        queues[i] = control_queue(control, "link");
        if (i > 0)
            ASSERT_OK(weir_queue_wait(queues[i], events[i - 1]));
        ASSERT_OK(weir_queue_record(queues[i], &events[i]));
    }
    EXPECT_INT_EQ(weir_event_query(events[QUEUES - 1]), WEIR_NOT_READY);
    control_stall(false);
    const size_t before = control_query_count();
    EXPECT_OK(weir_event_query(events[QUEUES - 1]));
    EXPECT_UINT_EQ(control_query_count(), before + 1);
    for (int i = 0; i < QUEUES; i++)
        EXPECT_UINT_GE(completed(queues[i]), events[i].sequence);
    for (int i = 0; i < QUEUES; i++)
        EXPECT_OK(weir_event_query(events[i]));
    EXPECT_UINT_EQ(control_query_count(), before + 1);
}

// Only work before the waited-for record is complete: later work of the producer
// is open.
CONTROL_TEST(Completion, CompletionStopsAtTheRecord)
{
    own_queue a = control_queue(control, "a");
    own_queue b = control_queue(control, "b");
    control_stall(true);
    const struct weir_event early = test_record(a);
    const struct weir_event late = test_record(a);
    ASSERT_OK(weir_queue_wait(b, early));
    const struct weir_event end = test_record(b);
    control_stall(false);
    EXPECT_OK(weir_event_query(end));
    EXPECT_UINT_EQ(completed(a), early.sequence);
    control_stall(true);
    EXPECT_OK(weir_event_query(early));
    EXPECT_INT_EQ(weir_event_query(late), WEIR_NOT_READY);
    control_stall(false);
}

// The earliest of several failures is the first cause, whichever is found first.
CONTROL_TEST(Completion, TheEarliestFailureIsTheFirstCause)
{
    struct weir_event events[4];

    own_queue queue = control_queue(control, "q");
    for (int i = 0; i < 4; i++)
        ASSERT_OK(weir_queue_record(queue, &events[i]));
    const struct weir_error late = {.status = WEIR_ERROR_IO, .message = "late"};
    const struct weir_error early = {.status = WEIR_ERROR_SYSTEM, .message = "early"};
    weir__completion_fail(queue, 3, &late);
    EXPECT_OK(weir_event_query(events[1]));
    EXPECT_INT_EQ(weir_event_query(events[3]), WEIR_ERROR_IO);
    weir__completion_fail(queue, 2, &early);
    EXPECT_OK(weir_event_query(events[0]));
    EXPECT_INT_EQ(weir_event_query(events[1]), WEIR_ERROR_SYSTEM);
    EXPECT_INT_EQ(weir_event_query(events[3]), WEIR_ERROR_SYSTEM);
    weir__completion_fail(queue, 4, &late);
    EXPECT_INT_EQ(weir_event_query(events[3]), WEIR_ERROR_SYSTEM);
    EXPECT_OK(weir_queue_recover(queue));
    EXPECT_INT_EQ(weir_event_query(events[3]), WEIR_ERROR_SYSTEM);
    EXPECT_OK(weir_queue_sync(queue, GUARD_NS));
}

// A producer that has failed and is known to be complete is not looked at later.
CONTROL_TEST(Completion, AWaitGetsTheFailureOfACompleteProducer)
{
    own_queue producer = control_queue(control, "producer");
    own_queue queue = control_queue(control, "queue");
    const struct weir_event event = test_record(producer);
    const struct weir_error cause = {.status = WEIR_ERROR_IO, .message = "just now"};
    weir__completion_fail(producer, event.sequence, &cause);
    weir__completion_complete(producer, event.sequence);
    EXPECT_FAILURE(weir_queue_wait(queue, event), WEIR_ERROR_IO, "just now");
    EXPECT_INT_EQ(weir_queue_sync(queue, GUARD_NS), WEIR_ERROR_IO);
}

// A failure that a driver reports at a query comes after everything that is known
// to be complete.
CONTROL_TEST(Completion, ADriverFaultFailsWhatIsOpen)
{
    own_queue queue = control_queue(control, "q");
    const struct weir_event before = test_record(queue);
    ASSERT_OK(weir_event_sync(before, GUARD_NS));
    const struct weir_event after = test_record(queue);
    control_fault(WEIR_ERROR_DEVICE);
    EXPECT_INT_EQ(weir_event_sync(after, GUARD_NS), WEIR_ERROR_DEVICE);
    EXPECT_STR_EQ(weir_last_error()->native_call, "driverAsk");
    EXPECT_INT_EQ(weir_last_error()->native_code, 700);
    EXPECT_OK(weir_event_query(before));
    EXPECT_INT_EQ(weir_queue_sync(queue, GUARD_NS), WEIR_ERROR_DEVICE);
    control_fault(WEIR_OK);
    EXPECT_OK(weir_queue_recover(queue));
    EXPECT_OK(weir_queue_sync(queue, GUARD_NS));
}

// The error is that of the call, and not one that the thread has got before.
CONTROL_TEST(Completion, AFaultThatAModuleDoesNotDescribe)
{
    own_queue queue = control_queue(control, "q");
    const struct weir_event event = test_record(queue);
    EXPECT_INT_EQ(weir_queue_flush(NULL), WEIR_ERROR_INVALID);
    control_silent_fault(WEIR_ERROR_DEVICE);
    EXPECT_INT_EQ(weir_queue_flush(queue), WEIR_ERROR_DEVICE);
    const int line = __LINE__ - 1;
    EXPECT_INT_EQ(weir_last_error()->status, WEIR_ERROR_DEVICE);
    EXPECT_STR_EQ(weir_last_error()->message, weir_status_text(WEIR_ERROR_DEVICE));
    EXPECT_STR_EQ(weir_last_error()->object, "q");
    EXPECT_INT_EQ(weir_last_error()->line, line);
    EXPECT_INT_EQ(weir_queue_flush(NULL), WEIR_ERROR_INVALID);
    EXPECT_FAILURE(weir_event_sync(event, GUARD_NS), WEIR_ERROR_DEVICE,
                   weir_status_text(WEIR_ERROR_DEVICE));
    EXPECT_NULL(strstr(weir_last_error()->message, "is NULL"));
    control_fault(WEIR_OK);
    EXPECT_OK(weir_queue_recover(queue));
}

// Everything can still be destroyed and closed.
CONTROL_TEST(Completion, ALostDeviceCannotBeRecovered)
{
    own_queue queue = control_queue(control, "q");
    const struct weir_event event = test_record(queue);
    control_fault(WEIR_ERROR_DEVICE_LOST);
    EXPECT_INT_EQ(weir_event_query(event), WEIR_ERROR_DEVICE_LOST);
    EXPECT_INT_EQ(weir_queue_recover(queue), WEIR_ERROR_DEVICE_LOST);
    EXPECT_INT_EQ(weir_queue_sync(queue, 0), WEIR_ERROR_DEVICE_LOST);
}

// A wait that the backend refused orders nothing, so the end of its queue says
// nothing about the producer.
CONTROL_TEST(Completion, ARefusedWaitProvesNothing)
{
    own_queue a = control_queue(control, "a");
    own_queue b = control_queue(control, "b");
    const struct weir_event event = test_record(a);
    control_refuse(WEIR_OPERATION_WAIT, 0);
    EXPECT_INT_EQ(weir_queue_wait(b, event), WEIR_ERROR_DEVICE);
    EXPECT_OK(weir__queue_finish(b)); // a was not queried yet
    EXPECT_UINT_EQ(completed(a), 0);
    EXPECT_OK(weir_queue_recover(b)); // and is waited for
    EXPECT_UINT_GE(completed(a), event.sequence);
}

// Each operation after one that succeeded was refused.
static void expect_failures(const struct weir_event *healthy, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct weir_event failed = {healthy[i].queue, healthy[i].sequence + 1};
        weir_test_note("round %zu", i);
        EXPECT_OK(weir_event_error(healthy[i]));
        EXPECT_INT_EQ(weir_event_error(failed), WEIR_ERROR_DEVICE);
        EXPECT_CONTAINS(weir_last_error_text(),
                        i + WEIR__CAUSES_KEPT < count ? "is no longer kept" : "a fill, failed");
    }
}

// A queue that fails often keeps the ranges of all failures, and the latest causes.
CONTROL_TEST(Completion, OldFailuresKeepTheirRanges)
{
    enum {
        ROUNDS = 300
    };
    struct weir_event healthy[ROUNDS];
    const uint32_t zero = 0;

    weir_queue *queue = control_queue(control, "q");
    own_buffer buffer = control_buffer(control, 4);
    for (size_t i = 0; i < ROUNDS; i++) {
        ASSERT_OK(weir_queue_record(queue, &healthy[i]));
        control_refuse(WEIR_OPERATION_FILL, 0);
        EXPECT_INT_EQ(weir_queue_fill(queue, buffer, 0, 4, &zero, 4), WEIR_ERROR_DEVICE);
        EXPECT_OK(weir_queue_recover(queue));
    }
    expect_failures(healthy, ROUNDS);
    weir_queue_destroy(&queue);
    expect_failures(healthy, ROUNDS);
}

static weir_status status_at(weir_queue *queue, uint64_t sequence)
{
    return weir__completion_status(queue, sequence);
}

// That of a collective may become known when its queue has recovered from a later one.
CONTROL_TEST(Completion, ALaterFailureMayBeginEarlier)
{
    const struct weir_error cause = {.status = WEIR_ERROR_DEVICE, .message = "broken"};
    const struct weir_error told = {.status = WEIR_ERROR_COMM, .message = "told late"};

    own_queue queue = control_queue(control, "q");
    weir__completion_fail(queue, 5, &cause);
    weir__completion_recover(queue, 10);
    weir__completion_fail(queue, 3, &told);
    weir__completion_recover(queue, 12);
    EXPECT_OK(status_at(queue, 2));
    EXPECT_INT_EQ(status_at(queue, 3), WEIR_ERROR_COMM);
    EXPECT_INT_EQ(status_at(queue, 4), WEIR_ERROR_COMM);
    EXPECT_INT_EQ(status_at(queue, 7), WEIR_ERROR_DEVICE);
    EXPECT_INT_EQ(status_at(queue, 12), WEIR_ERROR_COMM);
    EXPECT_OK(status_at(queue, 13));
}
