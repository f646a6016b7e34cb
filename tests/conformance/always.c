// Host calls that always run, and are told what became of the work before them.
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "tests/conformance/suite.h"

#define SIZE ((size_t)4096)

// What one call was told.
struct told {
    atomic_int count;
    weir_status status;
    char message[768];
};

static void note(void *user, weir_status status)
{
    struct told *told = user;
    told->status = status;
    snprintf(told->message, sizeof told->message, "%s", weir_last_error()->message);
    atomic_fetch_add(&told->count, 1);
}

CONFORM(Always, AfterWorkThatSucceeds)
{
    struct told told = {.status = WEIR_ERROR_IO};
    own_queue queue = conform_queue(f, "q");
    own_buffer buffer = conform_host_buffer(f, SIZE);
    own_gate gate = gate_create();
    ASSERT_OK(weir_queue_fill(queue, buffer, 0, SIZE, "", 1));
    ASSERT_OK(weir_queue_host_call(queue, gate_function, gate));
    ASSERT_OK(weir_queue_host_call_always(queue, note, &told));
    EXPECT_INT_EQ(atomic_load(&told.count), 0); // in its place in the order
    gate_open(gate);
    EXPECT_SYNC(queue);
    EXPECT_INT_EQ(atomic_load(&told.count), 1);
    EXPECT_INT_EQ(told.status, WEIR_OK);
    EXPECT_STR_EQ(told.message, "");
}

// Before the failure is known, and after it: the queue takes both, and both run once.
CONFORM(Always, AfterAFailure)
{
    struct told before = {0}, after = {0};
    atomic_int count = 0;
    own_queue queue = conform_queue(f, "q");
    own_gate gate = gate_create();
    ASSERT_OK(weir_queue_host_call(queue, gate_function, gate));
    ASSERT_OK(weir_queue_host_call(queue, fail_plainly, NULL));
    ASSERT_OK(weir_queue_host_call_always(queue, note, &before));
    ASSERT_OK(weir_queue_host_call(queue, count_up, &count));
    gate_open(gate);
    const weir_status cause = weir_queue_sync(queue, HANG_GUARD_NS);
    EXPECT_INT_LT(cause, 0);
    EXPECT_INT_EQ(weir_queue_host_call(queue, count_up, &count), cause);
    ASSERT_OK(weir_queue_host_call_always(queue, note, &after));
    ASSERT_OK(weir_queue_recover(queue));
    EXPECT_INT_EQ(atomic_load(&count), 0);
    EXPECT_INT_EQ(atomic_load(&before.count), 1);
    EXPECT_INT_EQ(atomic_load(&after.count), 1);
    EXPECT_INT_EQ(before.status, cause);
    EXPECT_INT_EQ(after.status, cause);
    EXPECT_CONTAINS(before.message, "operation 2 of queue 'q', a host call, failed");
    EXPECT_CONTAINS(after.message, "operation 2 of queue 'q', a host call, failed");
    ASSERT_OK(weir_queue_host_call(queue, count_up, &count)); // and the queue works again
    EXPECT_SYNC(queue);
    EXPECT_INT_EQ(atomic_load(&count), 1);
}

// The failure of another queue, which comes through a wait.
CONFORM(Always, AfterAFailureOfAnotherQueue)
{
    struct told told = {0};
    own_queue failing = conform_queue(f, "failing");
    own_queue queue = conform_queue(f, "q");
    own_gate gate = gate_create();
    struct weir_event event;
    ASSERT_OK(weir_queue_host_call(failing, gate_function, gate));
    ASSERT_OK(weir_queue_host_call(failing, fail_plainly, NULL));
    ASSERT_OK(weir_queue_record(failing, &event));
    ASSERT_OK(weir_queue_wait(queue, event));
    ASSERT_OK(weir_queue_host_call_always(queue, note, &told));
    gate_open(gate);
    const weir_status cause = weir_queue_sync(queue, HANG_GUARD_NS);
    EXPECT_INT_LT(cause, 0);
    ASSERT_OK(weir_queue_recover(failing));
    ASSERT_OK(weir_queue_recover(queue)); // waits for the rest of its work
    EXPECT_INT_EQ(atomic_load(&told.count), 1);
    EXPECT_INT_EQ(told.status, cause);
    EXPECT_CONTAINS(told.message, "operation 2 of queue 'failing'");
}

// A destroyed queue runs its calls, also after a failure that nothing asked for.
CONFORM(Always, InAQueueThatIsDestroyed)
{
    struct told told = {0};
    weir_queue *queue = conform_queue(f, "q");
    own_gate gate = gate_create();
    ASSERT_OK(weir_queue_host_call(queue, gate_function, gate));
    ASSERT_OK(weir_queue_host_call(queue, fail_plainly, NULL));
    ASSERT_OK(weir_queue_host_call_always(queue, note, &told));
    weir_queue_destroy(&queue);
    gate_open(gate);
    ASSERT_OK(weir_device_close(&f->device)); // waits for it
    EXPECT_INT_EQ(atomic_load(&told.count), 1);
    EXPECT_INT_LT(told.status, 0);
    ASSERT_OK(weir_device_open(f->runtime, NULL, &f->device));
}

CONFORM(Always, Refused)
{
    struct told told = {0};
    own_queue queue = conform_queue(f, "q");
    EXPECT_INVALID(weir_queue_host_call_always(NULL, note, &told),
                   "weir_queue_host_call_always: queue is NULL");
    EXPECT_INVALID(weir_queue_host_call_always(queue, NULL, &told), "function is NULL");
    ASSERT_OK(weir_capture_begin(queue));
    EXPECT_INVALID(weir_queue_host_call_always(queue, note, &told),
                   "a host call that always runs cannot");
    ASSERT_OK(weir_capture_cancel(queue));
    EXPECT_SYNC(queue);
    EXPECT_INT_EQ(atomic_load(&told.count), 0);
}
