// What the sources of the patterns share: the place of a creation, and their locks.
#ifndef WEIR_PATTERNS_SHARED_H
#define WEIR_PATTERNS_SHARED_H

#include <pthread.h>

#include <weir/buffer.h>
#include <weir/check.h>
#include <weir/device.h>
#include <weir/queue.h>

#include "base/clock.h"
#include "base/wait.h"

// The line of the program that creates a pattern, which what the pattern creates gets too.
struct weir__place {
    const char *file; // NULL: unknown
    int line;
};

// Returns `status`. An error of the call without a place gets this one.
weir_status weir__pattern_placed(weir_status status, const char *file, int line);

// The time left of a timeout that began at `since_ns`.
static inline uint64_t weir__pattern_left(uint64_t timeout_ns, uint64_t since_ns)
{
    const uint64_t passed = weir_clock_now_ns() - since_ns;
    if (timeout_ns == WEIR_FOREVER)
        return WEIR_FOREVER;
    return passed < timeout_ns ? timeout_ns - passed : 0;
}

// A pattern's lock. What its threads hand over under it is in order for the plugin check too, which sees
// the program's locks only.
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

// As weir_wait_until(): without a deadline with NULL.
static inline int weir__pattern_lock_wait(struct weir__pattern_lock *lock,
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

#endif
