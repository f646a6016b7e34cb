// The worker of a queue whose host calls end their thread.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tests/support/stack.h"
#include "tests/unit/core_backend.h"

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
WEIR_TEST(Worker, FunctionsThatEndItTakeNoMoreStack)
{
    struct control control;
    struct calls calls = {.count = 0};
    ASSERT_TRUE(control_open(&control));
    weir_queue *queue = control_queue(&control, "q");
    run_calls(queue, &calls);
    run_calls(queue, &calls);
    EXPECT_TRUE(weir_test_stack_is_flat(&calls.stack));
    weir_queue_destroy(&queue);
    control_close(&control);
}

WEIR_TEST(Worker, GoesOnItselfWithoutAnotherThread)
{
    struct control control;
    struct calls calls = {.count = 0};
    ASSERT_TRUE(control_open(&control));
    weir_queue *queue = control_queue(&control, "q");
    ASSERT_OK(weir_queue_host_call(queue, control_gate, NULL)); // starts the worker
    atomic_store(&without_threads, true);
    control_gate_open();
    run_calls(queue, &calls);
    atomic_store(&without_threads, false);
    run_calls(queue, &calls);
    weir_queue_destroy(&queue);
    control_close(&control);
}
