// Locks. A lock is acquired after the C library's function has taken it, and released before it gives it
// back. A wait for a condition gives its mutex back meanwhile; the condition itself orders nothing, since
// it may also wake without a signal.
//
// A lock for readers and writers has two keys: what writers release, all acquire; what readers release,
// only writers do.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "locks/parts.h"

// The C library's functions.

void locks_table_fill(void)
{
#define FIND(result, name, parameters)                                                 \
    {                                                                                  \
        void *const found = dlsym(RTLD_NEXT, #name);                                   \
        __atomic_store_n((void **)(void *)&locks_table.name, found, __ATOMIC_RELEASE); \
    }
    LOCKS_FIRST_TABLE(FIND)
    LOCKS_TABLE(FIND)
#undef FIND
}

__attribute__((constructor)) static void fill(void)
{
    locks_table_fill();
}

static void acquire_if(bool taken, const void *key, const void *caller)
{
    if (taken && locks_hears(caller))
        locks_acquire(key);
}

static void release(const void *key, const void *caller)
{
    if (locks_hears(caller))
        locks_release(key, false);
}

static void forget(const void *key, const void *caller)
{
    if (locks_hears(caller))
        locks_forget(key);
}

// A function that may take what is acquired then, one that gives back what is released first, and one that makes or
// destroys what is forgotten first.
#define TAKES(name, taken, object, parameters, arguments)               \
    LOCKS_EXPORTED int name parameters                                  \
    {                                                                   \
        return taken(LOCKS_REAL(name) arguments, object, LOCKS_CALLER); \
    }
#define GIVES(name, object, parameters, arguments) \
    LOCKS_EXPORTED int name parameters             \
    {                                              \
        release(object, LOCKS_CALLER);             \
        return LOCKS_REAL(name) arguments;         \
    }
#define FORGETS(name, object, parameters, arguments) \
    LOCKS_EXPORTED int name parameters               \
    {                                                \
        forget(object, LOCKS_CALLER);                \
        return LOCKS_REAL(name) arguments;           \
    }

// Mutexes. One whose owner has died is taken.

static int mutex_taken(int error, const void *mutex, const void *caller)
{
    acquire_if(error == 0 || error == EOWNERDEAD, mutex, caller);
    return error;
}

TAKES(pthread_mutex_lock, mutex_taken, mutex, (pthread_mutex_t * mutex), (mutex))
TAKES(pthread_mutex_trylock, mutex_taken, mutex, (pthread_mutex_t * mutex), (mutex))
TAKES(pthread_mutex_timedlock, mutex_taken, mutex,
      (pthread_mutex_t *restrict mutex, const struct timespec *restrict until), (mutex, until))
TAKES(pthread_mutex_clocklock, mutex_taken, mutex,
      (pthread_mutex_t *restrict mutex, clockid_t clock, const struct timespec *restrict until),
      (mutex, clock, until))

GIVES(pthread_mutex_unlock, mutex, (pthread_mutex_t * mutex), (mutex))
FORGETS(pthread_mutex_init, mutex, (pthread_mutex_t * mutex, const pthread_mutexattr_t *attributes),
        (mutex, attributes))
FORGETS(pthread_mutex_destroy, mutex, (pthread_mutex_t * mutex), (mutex))
TAKES(mtx_lock, mutex_taken, mutex, (mtx_t * mutex), (mutex))
TAKES(mtx_trylock, mutex_taken, mutex, (mtx_t * mutex), (mutex))
TAKES(mtx_timedlock, mutex_taken, mutex,
      (mtx_t *restrict mutex, const struct timespec *restrict until), (mutex, until))

GIVES(mtx_unlock, mutex, (mtx_t * mutex), (mutex))
FORGETS(mtx_init, mutex, (mtx_t * mutex, int type), (mutex, type))

LOCKS_EXPORTED void mtx_destroy(mtx_t *mutex)
{
    forget(mutex, LOCKS_CALLER);
    LOCKS_REAL(mtx_destroy)(mutex);
}

// Spin locks.

static int spin_taken(int error, pthread_spinlock_t *lock, const void *caller)
{
    acquire_if(error == 0, (const void *)(uintptr_t)lock, caller);
    return error;
}

TAKES(pthread_spin_lock, spin_taken, lock, (pthread_spinlock_t * lock), (lock))
TAKES(pthread_spin_trylock, spin_taken, lock, (pthread_spinlock_t * lock), (lock))
GIVES(pthread_spin_unlock, (const void *)(uintptr_t)lock, (pthread_spinlock_t * lock), (lock))
FORGETS(pthread_spin_destroy, (const void *)(uintptr_t)lock, (pthread_spinlock_t * lock), (lock))

// Conditions. A thread that is cancelled in a wait has its mutex again when it unwinds.

struct wait {
    const void *mutex, *caller;
};

static void end_wait(void *user)
{
    const struct wait *wait = user;
    acquire_if(true, wait->mutex, wait->caller);
}

// The handler runs in both cases.
#define WAITS(name, parameters, arguments)        \
    LOCKS_EXPORTED int name parameters            \
    {                                             \
        struct wait wait = {mutex, LOCKS_CALLER}; \
        int error;                                \
        release(mutex, wait.caller);              \
        pthread_cleanup_push(end_wait, &wait);    \
        error = LOCKS_REAL(name) arguments;       \
        pthread_cleanup_pop(1);                   \
        return error;                             \
    }

WAITS(pthread_cond_wait, (pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex),
      (condition, mutex))
WAITS(pthread_cond_timedwait,
      (pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
       const struct timespec *restrict until),
      (condition, mutex, until))
WAITS(pthread_cond_clockwait,
      (pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, clockid_t clock,
       const struct timespec *restrict until),
      (condition, mutex, clock, until))
WAITS(cnd_wait, (cnd_t * condition, mtx_t *mutex), (condition, mutex))
WAITS(cnd_timedwait,
      (cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until),
      (condition, mutex, until))

// Locks for readers and writers.

static const void *of_readers(const pthread_rwlock_t *lock)
{
    return (const char *)lock + 1;
}

static int read_taken(int error, const pthread_rwlock_t *lock, const void *caller)
{
    acquire_if(error == 0, lock, caller);
    return error;
}

static int write_taken(int error, const pthread_rwlock_t *lock, const void *caller)
{
    acquire_if(error == 0, lock, caller);
    acquire_if(error == 0, of_readers(lock), caller);
    return error;
}

TAKES(pthread_rwlock_rdlock, read_taken, lock, (pthread_rwlock_t * lock), (lock))
TAKES(pthread_rwlock_tryrdlock, read_taken, lock, (pthread_rwlock_t * lock), (lock))
TAKES(pthread_rwlock_timedrdlock, read_taken, lock,
      (pthread_rwlock_t *restrict lock, const struct timespec *restrict until), (lock, until))
TAKES(pthread_rwlock_clockrdlock, read_taken, lock,
      (pthread_rwlock_t *restrict lock, clockid_t clock, const struct timespec *restrict until),
      (lock, clock, until))
TAKES(pthread_rwlock_wrlock, write_taken, lock, (pthread_rwlock_t * lock), (lock))
TAKES(pthread_rwlock_trywrlock, write_taken, lock, (pthread_rwlock_t * lock), (lock))
TAKES(pthread_rwlock_timedwrlock, write_taken, lock,
      (pthread_rwlock_t *restrict lock, const struct timespec *restrict until), (lock, until))
TAKES(pthread_rwlock_clockwrlock, write_taken, lock,
      (pthread_rwlock_t *restrict lock, clockid_t clock, const struct timespec *restrict until),
      (lock, clock, until))

// Only its writer gives back a lock that has one.
LOCKS_EXPORTED int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    release(lock->__data.__cur_writer ? lock : of_readers(lock), LOCKS_CALLER);
    return LOCKS_REAL(pthread_rwlock_unlock)(lock);
}

LOCKS_EXPORTED int pthread_rwlock_destroy(pthread_rwlock_t *lock)
{
    forget(lock, LOCKS_CALLER);
    forget(of_readers(lock), LOCKS_CALLER);
    return LOCKS_REAL(pthread_rwlock_destroy)(lock);
}

// Semaphores. A post may be a signal handler's.

static int semaphore_taken(int result, const sem_t *semaphore, const void *caller)
{
    acquire_if(result == 0, semaphore, caller);
    return result;
}

TAKES(sem_wait, semaphore_taken, semaphore, (sem_t * semaphore), (semaphore))
TAKES(sem_trywait, semaphore_taken, semaphore, (sem_t * semaphore), (semaphore))
TAKES(sem_timedwait, semaphore_taken, semaphore,
      (sem_t *restrict semaphore, const struct timespec *restrict until), (semaphore, until))
TAKES(sem_clockwait, semaphore_taken, semaphore,
      (sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict until),
      (semaphore, clock, until))

LOCKS_EXPORTED int sem_post(sem_t *semaphore)
{
    if (locks_hears(LOCKS_CALLER))
        locks_release(semaphore, true);
    return LOCKS_REAL(sem_post)(semaphore);
}

FORGETS(sem_destroy, semaphore, (sem_t * semaphore), (semaphore))

// Barriers. Rounds have two keys in turn: a thread that is fast may come to the next round before a slow
// one has left this one, but not to the one after.

struct barrier {
    struct barrier *next;
    const pthread_barrier_t *barrier;
    unsigned count;
    uint64_t arrivals;
};

static pthread_mutex_t barriers_lock = PTHREAD_MUTEX_INITIALIZER; // guards the list
static struct barrier *barriers;

// With the lock.
static struct barrier **find_barrier(const pthread_barrier_t *barrier)
{
    struct barrier **at = &barriers;
    while (*at && (*at)->barrier != barrier)
        at = &(*at)->next;
    return at;
}

static void forget_barrier(const pthread_barrier_t *barrier, const void *caller)
{
    LOCKS_REAL(pthread_mutex_lock)(&barriers_lock);
    struct barrier **at = find_barrier(barrier);
    struct barrier *found = *at;
    if (found)
        *at = found->next;
    LOCKS_REAL(pthread_mutex_unlock)(&barriers_lock);
    locks_hide();
    free(found);
    locks_show();
    forget(barrier, caller);
    forget((const char *)barrier + 1, caller);
}

// If out of memory for it, its rounds have one key.
static void note_barrier(const pthread_barrier_t *barrier, unsigned count)
{
    locks_hide();
    struct barrier *made = calloc(1, sizeof *made);
    locks_show();
    if (!made)
        return;
    made->barrier = barrier;
    made->count = count;
    LOCKS_REAL(pthread_mutex_lock)(&barriers_lock);
    made->next = barriers;
    barriers = made;
    LOCKS_REAL(pthread_mutex_unlock)(&barriers_lock);
}

static const void *key_of_round(const pthread_barrier_t *barrier)
{
    LOCKS_REAL(pthread_mutex_lock)(&barriers_lock);
    struct barrier *found = *find_barrier(barrier);
    const uint64_t round = found ? found->arrivals++ / found->count : 0;
    LOCKS_REAL(pthread_mutex_unlock)(&barriers_lock);
    return (const char *)barrier + round % 2;
}

LOCKS_EXPORTED int pthread_barrier_init(pthread_barrier_t *restrict barrier,
                                        const pthread_barrierattr_t *restrict attributes,
                                        unsigned count)
{
    forget_barrier(barrier, LOCKS_CALLER);
    const int error = LOCKS_REAL(pthread_barrier_init)(barrier, attributes, count);
    if (error == 0)
        note_barrier(barrier, count);
    return error;
}

LOCKS_EXPORTED int pthread_barrier_destroy(pthread_barrier_t *barrier)
{
    forget_barrier(barrier, LOCKS_CALLER);
    return LOCKS_REAL(pthread_barrier_destroy)(barrier);
}

LOCKS_EXPORTED int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    const void *const key = key_of_round(barrier);
    release(key, LOCKS_CALLER);
    const int result = LOCKS_REAL(pthread_barrier_wait)(barrier);
    acquire_if(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD, key, LOCKS_CALLER);
    return result;
}

// In a forked process one thread may have been in the list's lock.
static void forked(void)
{
    static const pthread_mutex_t open = PTHREAD_MUTEX_INITIALIZER;
    memcpy(&barriers_lock, &open, sizeof open);
    barriers = NULL;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_atfork(NULL, NULL, forked);
}

#undef TAKES
#undef GIVES
#undef WAITS
#undef FORGETS
