// A failed operation: everything after it reports its first cause, with the
// file:line of the failed operation's submission, and nothing else is affected.

#include "tests/conformance/suite.h"

#define SIZE ((size_t)4096)

// The thread's error detail is the failure that was submitted at this file's
// `line_` to queue `label`.
#define EXPECT_CAUSE(line_, label)                                        \
    do {                                                                  \
        EXPECT_STR_EQ(weir_last_error()->file, __FILE__);                 \
        EXPECT_INT_EQ(weir_last_error()->line, line_);                    \
        EXPECT_STR_EQ(weir_last_error()->object, label);                  \
        EXPECT_CONTAINS(weir_last_error()->message, "queue '" label "'"); \
    } while (0)

static weir_status fail_as_io(void *unused)
{
    return WEIR_ERROR_IO;
}

// A queue with a gate and six more operations, of which the third, a host call, fails.
struct failing {
    weir_queue *queue;
    struct gate *gate;
    weir_buffer *buffer;
    struct weir_event before; // operation 3
    struct weir_event after;  // operation 7
    int line;                 // of operation 4
};

static struct failing submit_failing(struct fixture *f, weir_host_function function)
{
    struct failing it = {.queue = conform_queue(f, "failing"),
                         .buffer = conform_host_buffer(f, SIZE)};
    it.gate = gate_on(it.queue);
    conform_fill(it.queue, it.buffer, 1);
    it.before = test_record(it.queue);
    it.line = __LINE__ + 1;
    EXPECT_OK(weir_queue_host_call(it.queue, function, NULL));
    conform_fill(it.queue, it.buffer, 1);
    conform_fill(it.queue, it.buffer, 1);
    it.after = test_record(it.queue);
    return it;
}

static void destroy_failing(struct failing *failing)
{
    weir_buffer_destroy(&failing->buffer);
    weir_queue_destroy(&failing->queue);
    gate_destroy(&failing->gate);
}

#define own_failing OWN(destroy_failing) struct failing

CONFORM(FailedOperation, ReportsTheFirstCause)
{
    own_queue dependent = conform_queue(f, "dependent");
    own_queue unrelated = conform_queue(f, "unrelated");
    atomic_int count = 0;

    own_failing failing = submit_failing(f, fail_as_io);
    ASSERT_UINT_EQ(failing.after.sequence, 7);
    ASSERT_OK(weir_queue_wait(dependent, failing.after));
    ASSERT_OK(weir_queue_host_call(dependent, count_up, &count));
    const struct weir_event end = test_record(dependent);
    ASSERT_OK(weir_queue_host_call(unrelated, count_up, &count));
    gate_open(failing.gate);

    EXPECT_REFUSED(weir_event_sync(end, HANG_GUARD_NS), WEIR_ERROR_IO, "operation 4 of queue");
    EXPECT_CAUSE(failing.line, "failing");
    EXPECT_CONTAINS(weir_last_error()->message, "host call");
    EXPECT_REFUSED(weir_event_query(failing.after), WEIR_ERROR_IO, "operation 4 of queue");
    EXPECT_CAUSE(failing.line, "failing");
    EXPECT_REFUSED(weir_event_error(end), WEIR_ERROR_IO, "operation 4 of queue");
    EXPECT_CAUSE(failing.line, "failing");
    EXPECT_OK(weir_event_sync(failing.before, HANG_GUARD_NS));
    EXPECT_OK(weir_event_error(failing.before));
    EXPECT_SYNC(unrelated);
    EXPECT_INT_GE(atomic_load(&count), 1);
}

CONFORM(FailedOperation, RefusesSubmissionsUntilRecovery)
{
    const struct weir_plane plane = {NULL, 0, 16};
    struct weir_plane planes[2] = {plane, plane};
    struct weir_volume volumes[2] = {{NULL, 0, 16, 64}, {NULL, 0, 16, 64}};
    const uint32_t value = 1;
    struct weir_event event;
    unsigned char bytes[16] = {0};

    own_failing failing = submit_failing(f, fail_plainly);
    own_buffer buffer = conform_host_buffer(f, SIZE);
    planes[0].buffer = volumes[0].buffer = failing.buffer;
    planes[1].buffer = volumes[1].buffer = buffer;
    gate_open(failing.gate);
    EXPECT_INT_EQ(weir_event_sync(failing.after, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL);

    weir_queue *queue = failing.queue;
    for (int round = 0; round < 2; round++) {
        const weir_status want = round == 0 ? WEIR_ERROR_HOST_CALL : WEIR_OK;
        weir_test_note("round %d", round);
        EXPECT_INT_EQ(weir_queue_copy(queue, failing.buffer, 0, buffer, 0, SIZE), want);
        EXPECT_INT_EQ(weir_queue_copy(queue, failing.buffer, 0, buffer, 0, 0), want);
        EXPECT_INT_EQ(weir_queue_copy_2d(queue, planes[0], planes[1], 16, 2), want);
        EXPECT_INT_EQ(weir_queue_copy_3d(queue, volumes[0], volumes[1], 8, 3, 3), want);
        EXPECT_INT_EQ(weir_queue_fill(queue, buffer, 0, SIZE, &value, 4), want);
        EXPECT_INT_EQ(weir_queue_fill_2d(queue, planes[1], 8, 3, &value, 4), want);
        EXPECT_INT_EQ(weir_queue_note(queue, WEIR_PARAMS(weir_note, .name = "n"), NULL), want);
        EXPECT_INT_EQ(weir_queue_host_call(queue, sleep_a_little, NULL), want);
        EXPECT_INT_EQ(weir_queue_record(queue, &event), want);
        EXPECT_INT_EQ(weir_queue_wait(queue, failing.before), want);
        EXPECT_INT_EQ(weir_upload(queue, buffer, 0, bytes, sizeof bytes), want);
        EXPECT_INT_EQ(weir_upload(queue, buffer, 0, bytes, 0), want);
        EXPECT_INT_EQ(weir_download(queue, bytes, buffer, 0, sizeof bytes), want);
        EXPECT_INT_EQ(weir_queue_sync(queue, HANG_GUARD_NS), want);
        if (round == 0)
            EXPECT_CAUSE(failing.line, "failing");
        EXPECT_OK(weir_queue_recover(queue));
    }
    // Events recorded before keep reporting, those before the failure do not.
    EXPECT_INT_EQ(weir_event_query(failing.after), WEIR_ERROR_HOST_CALL);
    EXPECT_OK(weir_event_query(failing.before));
}

static weir_status fail_with_detail(void *unused)
{
    static const struct weir_error detail = {
        .status = WEIR_ERROR_IO,
        .message = "the disk is on fire",
        .native_call = "write",
        .native_name = "EIO",
        .native_code = 5,
        .remedy = "call the fire brigade",
    };
    return weir_error_set(&detail);
}

// The cause of a second failure after recovery is its own, not the first one's.
CONFORM(FailedOperation, KeepsTheDetailOfTheHostCall)
{
    conform_fail(f->queue);
    ASSERT_OK(weir_queue_recover(f->queue));
    ASSERT_SYNC(f->queue);
    const int line = __LINE__ + 1;
    WEIR_IGNORE(weir_queue_host_call(f->queue, fail_with_detail, NULL));
    EXPECT_INT_EQ(weir_queue_sync(f->queue, HANG_GUARD_NS), WEIR_ERROR_IO);
    const struct weir_error *error = weir_last_error();
    EXPECT_CAUSE(line, "q");
    EXPECT_CONTAINS(error->message, "the disk is on fire");
    EXPECT_NOT_CONTAINS(error->message, "operation 1 of");
    EXPECT_STR_EQ(error->native_call, "write");
    EXPECT_STR_EQ(error->native_name, "EIO");
    EXPECT_INT_EQ(error->native_code, 5);
    EXPECT_STR_EQ(error->remedy, "call the fire brigade");
    char place[300];
    snprintf(place, sizeof place, "%s:%d", __FILE__, line);
    EXPECT_CONTAINS(weir_last_error_text(), place);
    EXPECT_CONTAINS(weir_last_error_text(), "EIO");
}

// A fails; B waits on A, C waits on B: a caller that only queries C gets A's
// failure.
CONFORM(FailedOperation, ReachesThroughAThirdQueue)
{
    own_queue b = conform_queue(f, "b");
    own_queue c = conform_queue(f, "c");

    own_failing failing = submit_failing(f, fail_plainly);
    const struct weir_event early_b = test_record(b);
    ASSERT_OK(weir_queue_wait(b, failing.after));
    const struct weir_event late_b = test_record(b);
    ASSERT_OK(weir_queue_wait(c, early_b));
    const struct weir_event early_c = test_record(c);
    ASSERT_OK(weir_queue_wait(c, late_b));
    const struct weir_event late_c = test_record(c);
    gate_open(failing.gate);
    EXPECT_INT_EQ(weir_event_sync(late_c, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL);
    EXPECT_CAUSE(failing.line, "failing");
    EXPECT_OK(weir_event_query(early_c));
    EXPECT_OK(weir_event_query(early_b));
    EXPECT_INT_EQ(weir_event_query(late_b), WEIR_ERROR_HOST_CALL);
    // Each of the three is recovered separately.
    EXPECT_OK(weir_queue_recover(c));
    EXPECT_SYNC(c);
    EXPECT_OK(weir_queue_recover(b));
    EXPECT_SYNC(b);
    EXPECT_OK(weir_queue_recover(failing.queue));
    EXPECT_SYNC(failing.queue);
}

// All of them are open, and more than a queue has room for at first.
CONFORM(FailedOperation, OneOfManyWaits)
{
    enum {
        QUEUES = 12,
        WAITS = 100 * QUEUES
    };
    own_gate gate = gate_create();
    own_queues queues = {NULL};
    own_queue last = conform_queue(f, "last");
    struct weir_event event;

    own_failing failing = submit_failing(f, fail_plainly);
    for (int i = 0; i < QUEUES; i++) {
        queues[i] = conform_queue(f, "healthy");
        if (i == 0)
            ASSERT_OK(weir_queue_host_call(queues[i], gate_pass, gate));
        else
            follow(queues[i], queues[0]);
    }
    for (int i = 0; i < WAITS; i++) {
        ASSERT_OK(weir_queue_record(queues[i % QUEUES], &event));
        ASSERT_OK(weir_queue_wait(last, i == WAITS / 2 ? failing.after : event));
    }
    ASSERT_OK(weir_queue_record(last, &event));
    gate_open(gate);
    gate_open(failing.gate);
    EXPECT_INT_EQ(weir_event_sync(event, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL);
    EXPECT_CAUSE(failing.line, "failing");
    for (int i = 0; i < QUEUES; i++)
        EXPECT_SYNC(queues[i]);
}

// Also where the queue is destroyed while its failing call has not even run.
CONFORM(FailedOperation, OutlivesItsQueue)
{
    own_queue late = conform_queue(f, "late");
    for (int in_use = 0; in_use < 2; in_use++) {
        own_failing failing = submit_failing(f, fail_plainly);
        if (in_use) {
            weir_queue_destroy(&failing.queue);
            EXPECT_INT_EQ(weir_event_query(failing.after), WEIR_NOT_READY);
        }
        gate_open(failing.gate);
        EXPECT_INT_EQ(weir_event_sync(failing.after, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL);
        weir_queue_destroy(&failing.queue);
        ASSERT_OK(weir_device_trim(f->device));
        EXPECT_OK(weir_event_query(failing.before));
        EXPECT_INT_EQ(weir_event_query(failing.after), WEIR_ERROR_HOST_CALL);
        EXPECT_CAUSE(failing.line, "failing");
        EXPECT_INT_EQ(weir_event_sync(failing.after, 0), WEIR_ERROR_HOST_CALL);
        // Waiting for it fails the waiting queue.
        EXPECT_INT_EQ(weir_queue_wait(late, failing.after), WEIR_ERROR_HOST_CALL);
        EXPECT_INT_EQ(weir_queue_sync(late, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL);
        EXPECT_CAUSE(failing.line, "failing");
        EXPECT_OK(weir_queue_recover(late));
        EXPECT_SYNC(late);
        EXPECT_OK(weir_queue_wait(late, failing.before));
        EXPECT_SYNC(late);
    }
}

// A queue that fails at its end, by waiting for a failed event, while its own
// older work is still held: that work comes before the failure and must run.
CONFORM(FailedOperation, LeavesEarlierWorkAlone)
{
    own_queue broken = conform_queue(f, "broken");
    own_buffer buffer = conform_host_buffer(f, SIZE);

    conform_fill(f->queue, buffer, 1);
    own_gate gate = gate_on(f->queue);
    conform_fill(f->queue, buffer, 2);
    const struct weir_event end = test_record(f->queue);

    own_gate failure = gate_on(broken);
    ASSERT_OK(weir_queue_host_call(broken, fail_plainly, NULL));
    const struct weir_event failed = test_record(broken);
    gate_open(failure);
    EXPECT_INT_EQ(weir_event_sync(failed, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL);
    EXPECT_INT_EQ(weir_queue_wait(f->queue, failed), WEIR_ERROR_HOST_CALL);
    gate_open(gate);
    EXPECT_OK(weir_event_sync(end, HANG_GUARD_NS));
    EXPECT_INT_EQ(conform_bytes(buffer)[SIZE - 1], 2);
}

CONFORM(FailedOperation, OfSeveralEvents)
{
    own_queue healthy = conform_queue(f, "healthy");
    struct weir_event events[3];
    size_t index = 7;

    own_failing failing = submit_failing(f, fail_plainly);
    ASSERT_OK(weir_queue_record(healthy, &events[0]));
    events[1] = failing.after;
    own_gate gate = gate_on(healthy);
    ASSERT_OK(weir_queue_record(healthy, &events[2]));
    gate_open(failing.gate);
    EXPECT_INT_EQ(weir_event_sync(events[1], HANG_GUARD_NS), WEIR_ERROR_HOST_CALL);
    // Not all are complete yet.
    EXPECT_INT_EQ(weir_event_sync_all(events, 3, WEIR_MS(2)), WEIR_TIMEOUT);
    gate_open(gate);
    EXPECT_INT_EQ(weir_event_sync_all(events, 3, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL);
    EXPECT_CAUSE(failing.line, "failing");
    // A failed event counts as complete.
    EXPECT_INT_EQ(weir_event_sync_any(&events[1], 1, HANG_GUARD_NS, &index), WEIR_ERROR_HOST_CALL);
    EXPECT_UINT_EQ(index, 0);
    EXPECT_OK(weir_event_sync_all(&events[2], 1, HANG_GUARD_NS));
}

// A refused argument submits nothing and does not fail the queue, which a recovery leaves as it is.
CONFORM(FailedOperation, ARefusedArgumentIsNone)
{
    own_buffer buffer = conform_device_buffer(f, SIZE);

    const struct weir_event first = test_record(f->queue);
    EXPECT_INVALID(weir_queue_copy(f->queue, buffer, 0, NULL, 0, 1), "src");
    EXPECT_INVALID(weir_queue_fill(f->queue, buffer, 0, SIZE, "abc", 3), "pattern");
    const struct weir_event second = test_record(f->queue);
    EXPECT_UINT_EQ(second.sequence, first.sequence + 1);
    EXPECT_OK(weir_queue_recover(f->queue));
    EXPECT_SYNC(f->queue);
    EXPECT_INVALID(weir_queue_recover(NULL), "queue");
}
