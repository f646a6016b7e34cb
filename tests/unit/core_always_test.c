// A call that also runs after a failure is freed and never runs if it is refused: if out of memory, and if
// there is no thread.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tests/support/no_memory.h"
#include "tests/unit/core_backend.h"

#define GUARD_NS (UINT64_C(60) * 1000000000u)

enum {
    MOST_ALLOCATIONS = 100
};

static bool without_threads;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument)
{
    return without_threads ? EAGAIN : __real_pthread_create(thread, attributes, run, argument);
}

static void count_up(void *user, weir_status status)
{
    (void)status;
    atomic_fetch_add((atomic_int *)user, 1);
}

// False: the call has no allocation of that index, and was taken.
static bool fail_allocation(weir_queue *queue, int index, atomic_int *count)
{
    weir_test_fail_allocation(index);
    const weir_status status = weir_queue_host_call_always(queue, count_up, count);
    const bool failed = weir_test_allocation_failed();
    weir_test_fail_allocation(-1);
    EXPECT_INT_EQ(status, failed ? WEIR_ERROR_OUT_OF_MEMORY : WEIR_OK);
    if (failed)
        EXPECT_OK(weir_queue_recover(queue));
    return !failed;
}

WEIR_TEST(Always, WithoutMemory)
{
    struct control control;
    atomic_int count = 0;
    int index = 0;
    ASSERT_TRUE(control_open(&control));
    weir_queue *queue = control_queue(&control, "q");
    while (index < MOST_ALLOCATIONS && !fail_allocation(queue, index, &count))
        index++;
    EXPECT_INT_EQ(index, 2); // the function's, and the operation's that is held
    EXPECT_OK(weir_queue_sync(queue, GUARD_NS));
    EXPECT_INT_EQ(atomic_load(&count), 1);
    weir_queue_destroy(&queue);
    control_close(&control);
}

WEIR_TEST(Always, WithoutAThread)
{
    struct control control;
    atomic_int count = 0;
    ASSERT_TRUE(control_open(&control));
    weir_queue *queue = control_queue(&control, "q");
    without_threads = true;
    EXPECT_INT_EQ(weir_queue_host_call_always(queue, count_up, &count), WEIR_ERROR_SYSTEM);
    without_threads = false;
    EXPECT_CONTAINS(weir_last_error()->message, "no thread for the host calls of queue 'q'");
    EXPECT_OK(weir_queue_recover(queue));
    EXPECT_OK(weir_queue_host_call_always(queue, count_up, &count));
    EXPECT_OK(weir_queue_sync(queue, GUARD_NS));
    EXPECT_INT_EQ(atomic_load(&count), 1);
    weir_queue_destroy(&queue);
    control_close(&control);
}
