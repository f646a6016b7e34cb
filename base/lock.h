// A mutex that knows its place in the order of locks.
//
// A thread that holds a lock may take only locks of a higher rank. In builds with
// WEIR_CHECK_LOCKS, which the sanitizer configurations set, every lock that is taken is checked
// against those that the thread holds; a violation ends the process with both names on standard
// error. In other builds this is a pthread_mutex_t and nothing else happens.
//
// Threads: safe.
#ifndef WEIR_BASE_LOCK_H
#define WEIR_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/wait.h"

// One kind of lock: all locks with the same task.
struct weir_lock_kind {
    const char *name; // "a queue's submit lock"
    unsigned rank;    // taken only while all locks that the thread holds have lower ranks
};

#ifdef WEIR_CHECK_LOCKS

// The calling thread is about to take a lock of this kind, or has released one.
void weir_lock_order_enter(const struct weir_lock_kind *kind);
void weir_lock_order_leave(const struct weir_lock_kind *kind);

// The calling thread must hold no lock here; `task` names what it is about to do.
void weir_lock_order_expect_none(const char *task);

#else

static inline void weir_lock_order_enter(const struct weir_lock_kind *kind)
{
    (void)kind;
}

static inline void weir_lock_order_leave(const struct weir_lock_kind *kind)
{
    (void)kind;
}

static inline void weir_lock_order_expect_none(const char *task)
{
    (void)task;
}

#endif

struct weir_lock {
    pthread_mutex_t mutex;
    const struct weir_lock_kind *kind;
};

#define WEIR_LOCK_INITIALIZER(kind)       \
    {                                     \
        PTHREAD_MUTEX_INITIALIZER, (kind) \
    }

// `kind` lives as long as the lock.
static inline void weir_lock_init(struct weir_lock *lock, const struct weir_lock_kind *kind)
{
    pthread_mutex_init(&lock->mutex, NULL);
    lock->kind = kind;
}

static inline void weir_lock_finish(struct weir_lock *lock)
{
    pthread_mutex_destroy(&lock->mutex);
}

static inline void weir_lock_take(struct weir_lock *lock)
{
    weir_lock_order_enter(lock->kind);
    pthread_mutex_lock(&lock->mutex);
}

// As weir_lock_take(), for `limit_ns` at most. Returns whether the lock was taken.
static inline bool weir_lock_take_within(struct weir_lock *lock, uint64_t limit_ns)
{
    struct timespec until;
    weir_lock_order_enter(lock->kind);
    if (pthread_mutex_trylock(&lock->mutex) == 0)
        return true;
    clock_gettime(CLOCK_REALTIME, &until);
    limit_ns += (uint64_t)until.tv_nsec;
    until.tv_sec += (time_t)(limit_ns / 1000000000);
    until.tv_nsec = (long)(limit_ns % 1000000000);
    if (pthread_mutex_timedlock(&lock->mutex, &until) == 0)
        return true;
    weir_lock_order_leave(lock->kind);
    return false;
}

static inline void weir_lock_release(struct weir_lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
    weir_lock_order_leave(lock->kind);
}

// As weir_wait_until(). The lock keeps its place meanwhile.
static inline int weir_lock_wait_until(struct weir_lock *lock, pthread_cond_t *condition,
                                       uint64_t deadline_ns)
{
    return weir_wait_until(condition, &lock->mutex, deadline_ns);
}

static inline void weir_lock_wait(struct weir_lock *lock, pthread_cond_t *condition)
{
    pthread_cond_wait(condition, &lock->mutex);
}

#endif
