// Conditions with deadlines of weir_clock_now_ns().
#ifndef WEIR_BASE_WAIT_H
#define WEIR_BASE_WAIT_H

#include <pthread.h>
#include <time.h>

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
    return deadline ? pthread_cond_timedwait(condition, mutex, deadline)
                    : pthread_cond_wait(condition, mutex);
}

static inline int weir_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    return weir_wait_until(condition, mutex, NULL);
}

#endif
