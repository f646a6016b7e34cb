// Conditions with deadlines of weir_clock_now_ns().
#ifndef WEIR_BASE_WAIT_H
#define WEIR_BASE_WAIT_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"

// A condition whose waits have deadlines of weir_clock_now_ns().
static inline void weir_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

// As pthread_cond_timedwait(), or with UINT64_MAX as pthread_cond_wait().
static inline int weir_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  uint64_t deadline_ns)
{
    const struct timespec deadline = weir_clock_timespec(deadline_ns);
    return deadline_ns < UINT64_MAX ? pthread_cond_timedwait(condition, mutex, &deadline)
                                    : pthread_cond_wait(condition, mutex);
}

#endif
