// Threads of queues: calls that end them, and none that can be started.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tests/support/stack.h"
#include "tests/unit/core_backend.h"

// The worker of a queue whose host calls end their thread.

#define GUARD_NS (UINT64_C(60) * 1000000000u)

enum {
    CALLS = 40
};

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

struct calls {
    struct weir_test_stack stack;
    int count;
};

static void end_thread(void *user, weir_status status)
{
    struct calls *calls = user;
    (void)status;
    weir_test_stack_note(&calls->stack);
    calls->count++;
    pthread_exit(NULL);
}

static void run_calls(weir_queue *queue, struct calls *calls)
{
    const int before = calls->count;
    for (int i = 0; i < CALLS / 2; i++)
        ASSERT_OK(weir_queue_host_call_always(queue, end_thread, calls));
    EXPECT_INT_EQ(weir_queue_sync(queue, GUARD_NS), WEIR_ERROR_HOST_CALL);
    EXPECT_CONTAINS(weir_last_error()->message, "the function ended its thread");
    EXPECT_OK(weir_queue_recover(queue));
    EXPECT_INT_EQ(calls->count, before + CALLS / 2);
}

// However many there are.
CONTROL_TEST(Worker, FunctionsThatEndItTakeNoMoreStack)
{
    struct calls calls = {.count = 0};
    weir_queue *queue = control_keep_queue(control, "q");
    run_calls(queue, &calls);
    run_calls(queue, &calls);
    EXPECT_TRUE(weir_test_stack_is_flat(&calls.stack));
}

CONTROL_TEST(Worker, GoesOnItselfWithoutAnotherThread)
{
    struct calls calls = {.count = 0};
    weir_queue *queue = control_keep_queue(control, "q");
    ASSERT_OK(weir_queue_host_call(queue, control_gate, NULL)); // starts the worker
    atomic_store(&without_threads, true);
    control_gate_open();
    run_calls(queue, &calls);
    atomic_store(&without_threads, false);
    run_calls(queue, &calls);
}

// A call that also runs after a failure never runs if it is refused, as there is no thread.

static void count_up(void *user, weir_status status)
{
    (void)status;
    atomic_fetch_add((atomic_int *)user, 1);
}

CONTROL_TEST(Always, WithoutAThread)
{
    atomic_int count = 0;
    weir_queue *queue = control_keep_queue(control, "q");
    atomic_store(&without_threads, true);
    EXPECT_INT_EQ(weir_queue_host_call_always(queue, count_up, &count), WEIR_ERROR_SYSTEM);
    atomic_store(&without_threads, false);
    EXPECT_CONTAINS(weir_last_error()->message, "no thread for the host calls of queue 'q'");
    EXPECT_OK(weir_queue_recover(queue));
    EXPECT_OK(weir_queue_host_call_always(queue, count_up, &count));
    EXPECT_OK(weir_queue_sync(queue, GUARD_NS));
    EXPECT_INT_EQ(atomic_load(&count), 1);
}
