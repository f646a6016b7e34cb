// A pattern's lock. What its threads hand over under it is in order for the plugin check too, which sees
// the program's locks only.
#ifndef WEIR_PATTERNS_LOCK_H
#define WEIR_PATTERNS_LOCK_H

#include <pthread.h>

#include <weir/check.h>
#include <weir/device.h>

#include "base/wait.h"

struct weir__pattern_lock {
    pthread_mutex_t mutex;
    weir_runtime *checked; // NULL: without the plugin
};

// Works with that device from now on. What the calling thread has done comes before what others do with
// the lock.
static inline void weir__pattern_lock_use(struct weir__pattern_lock *lock,
                                          const weir_device *device)
{
    weir_runtime *runtime = device ? weir_device_runtime(device) : NULL;
    lock->checked = runtime && weir_check_is_on(runtime) ? runtime : NULL;
    if (lock->checked)
        weir_check_release(lock->checked, lock);
}

static inline void weir__pattern_lock_take(struct weir__pattern_lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
    if (lock->checked)
        weir_check_acquire(lock->checked, lock);
}

static inline void weir__pattern_lock_release(struct weir__pattern_lock *lock)
{
    if (lock->checked)
        weir_check_release(lock->checked, lock);
    pthread_mutex_unlock(&lock->mutex);
}

// As weir_wait_until().
static inline int weir__pattern_lock_wait_until(struct weir__pattern_lock *lock,
                                                pthread_cond_t *condition,
                                                const struct timespec *deadline)
{
    if (lock->checked)
        weir_check_release(lock->checked, lock);
    const int error = weir_wait_until(condition, &lock->mutex, deadline);
    if (lock->checked)
        weir_check_acquire(lock->checked, lock);
    return error;
}

static inline void weir__pattern_lock_wait(struct weir__pattern_lock *lock,
                                           pthread_cond_t *condition)
{
    (void)weir__pattern_lock_wait_until(lock, condition, NULL);
}

#endif
