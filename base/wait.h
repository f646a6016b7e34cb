// Waits that a cancellation does not end. pthread_cancel() in a wait of POSIX's ends the thread with the
// mutex taken; here it acts at the thread's next cancellation point after the wait.
#ifndef WEIR_BASE_WAIT_H
#define WEIR_BASE_WAIT_H

#include <pthread.h>
#include <time.h>

// Returns what weir_cancel_restore() gets. Pairs may be nested.
static inline int weir_cancel_disable(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void weir_cancel_restore(int before)
{
    pthread_setcancelstate(before, &before);
}

// A condition whose waits have deadlines of weir_clock_now_ns().
static inline void weir_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

// As pthread_cond_wait() and pthread_cond_timedwait(); without a deadline with NULL.
static inline int weir_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *deadline)
{
    const int before = weir_cancel_disable();
    const int error = deadline ? pthread_cond_timedwait(condition, mutex, deadline)
                               : pthread_cond_wait(condition, mutex);
    weir_cancel_restore(before);
    return error;
}

static inline int weir_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    return weir_wait_until(condition, mutex, NULL);
}

#endif
