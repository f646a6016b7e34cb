// A queue for whose host calls no thread can be started.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tests/unit/core_backend.h"

#define GUARD_NS (UINT64_C(60) * 1000000000u)

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
