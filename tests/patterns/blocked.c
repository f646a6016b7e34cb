#include "tests/patterns/blocked.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tests/patterns/rig.h"

static _Thread_local bool is_watched;
static atomic_bool is_blocked;

int __real_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock);

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
    if (is_watched)
        is_blocked = true;
    return __real_pthread_cond_wait(condition, lock);
}

void blocked_begin(void)
{
    is_blocked = false;
}

void blocked_watch(void)
{
    is_watched = true;
}

void blocked_await(void)
{
    while (!is_blocked)
        rig_sleep_ns(1000000);
}
