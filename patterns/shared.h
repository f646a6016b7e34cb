// What the sources of the patterns share: the place of a creation, and their locks. Included after the headers
// of Weir, whose macros add the source's own line: here they add that of the program.
#ifndef WEIR_PATTERNS_SHARED_H
#define WEIR_PATTERNS_SHARED_H

#include <pthread.h>

#include <weir/buffer.h>
#include <weir/check.h>
#include <weir/device.h>
#include <weir/program.h>
#include <weir/queue.h>

#include "base/clock.h"
#include "base/wait.h"

// The line of the program that creates a pattern, which what the pattern creates gets too, and so does
// an error of the call.
struct weir__place {
    const char *file; // NULL: unknown
    int line;
};

// From now on the thread creates for `file`:`line`. Returns what it created for before.
struct weir__place weir__pattern_begin(const char *file, int line);

// Ends that. An error of the call without a place gets that of the begin. Returns `status`.
weir_status weir__pattern_end(weir_status status, struct weir__place before);

// The place that the thread creates for, or `file`:`line`.
struct weir__place weir__pattern_place(const char *file, int line);

#define WEIR__PATTERN_PLACE \
    weir__pattern_place(__FILE__, __LINE__).file, weir__pattern_place(__FILE__, __LINE__).line

#undef weir_queue_create
#define weir_queue_create(...) weir_queue_create_at(__VA_ARGS__, WEIR__PATTERN_PLACE)
#undef weir_buffer_create
#define weir_buffer_create(...) weir_buffer_create_at(__VA_ARGS__, WEIR__PATTERN_PLACE)
#undef weir_program_create
#define weir_program_create(...) weir_program_create_at(__VA_ARGS__, WEIR__PATTERN_PLACE)
#undef weir_kernel_create
#define weir_kernel_create(...) weir_kernel_create_at(__VA_ARGS__, WEIR__PATTERN_PLACE)

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
