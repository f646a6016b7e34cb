// The functions that the library replaces: X(result, name, parameters). Those of the C library are
// looked up at the first call, whichever it is, since that may come before any constructor has run.
#ifndef WEIR_LOCKS_TABLE_H
#define WEIR_LOCKS_TABLE_H

#include <pthread.h>
#include <semaphore.h>
#include <threads.h>
#include <time.h>

// What finding the others may need: the first ones that are found.
#define LOCKS_FIRST_TABLE(X)                          \
    X(int, pthread_mutex_lock, (pthread_mutex_t *))   \
    X(int, pthread_mutex_unlock, (pthread_mutex_t *)) \
    X(int, pthread_mutex_trylock, (pthread_mutex_t *))

#define LOCKS_TABLE(X)                                                                             \
    X(int, pthread_create, (pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))       \
    X(int, pthread_join, (pthread_t, void **))                                                     \
    X(int, pthread_tryjoin_np, (pthread_t, void **))                                               \
    X(int, pthread_timedjoin_np, (pthread_t, void **, const struct timespec *))                    \
    X(int, pthread_clockjoin_np, (pthread_t, void **, clockid_t, const struct timespec *))         \
    X(int, pthread_detach, (pthread_t))                                                            \
    X(int, pthread_once, (pthread_once_t *, void (*)(void)))                                       \
    X(int, pthread_mutex_timedlock, (pthread_mutex_t *, const struct timespec *))                  \
    X(int, pthread_mutex_clocklock, (pthread_mutex_t *, clockid_t, const struct timespec *))       \
    X(int, pthread_mutex_init, (pthread_mutex_t *, const pthread_mutexattr_t *))                   \
    X(int, pthread_mutex_destroy, (pthread_mutex_t *))                                             \
    X(int, pthread_spin_lock, (pthread_spinlock_t *))                                              \
    X(int, pthread_spin_trylock, (pthread_spinlock_t *))                                           \
    X(int, pthread_spin_unlock, (pthread_spinlock_t *))                                            \
    X(int, pthread_spin_destroy, (pthread_spinlock_t *))                                           \
    X(int, pthread_cond_wait, (pthread_cond_t *, pthread_mutex_t *))                               \
    X(int, pthread_cond_timedwait, (pthread_cond_t *, pthread_mutex_t *, const struct timespec *)) \
    X(int, pthread_cond_clockwait,                                                                 \
      (pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *))                   \
    X(int, pthread_rwlock_rdlock, (pthread_rwlock_t *))                                            \
    X(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t *))                                         \
    X(int, pthread_rwlock_timedrdlock, (pthread_rwlock_t *, const struct timespec *))              \
    X(int, pthread_rwlock_clockrdlock, (pthread_rwlock_t *, clockid_t, const struct timespec *))   \
    X(int, pthread_rwlock_wrlock, (pthread_rwlock_t *))                                            \
    X(int, pthread_rwlock_trywrlock, (pthread_rwlock_t *))                                         \
    X(int, pthread_rwlock_timedwrlock, (pthread_rwlock_t *, const struct timespec *))              \
    X(int, pthread_rwlock_clockwrlock, (pthread_rwlock_t *, clockid_t, const struct timespec *))   \
    X(int, pthread_rwlock_unlock, (pthread_rwlock_t *))                                            \
    X(int, pthread_rwlock_destroy, (pthread_rwlock_t *))                                           \
    X(int, pthread_barrier_init, (pthread_barrier_t *, const pthread_barrierattr_t *, unsigned))   \
    X(int, pthread_barrier_destroy, (pthread_barrier_t *))                                         \
    X(int, pthread_barrier_wait, (pthread_barrier_t *))                                            \
    X(int, sem_wait, (sem_t *))                                                                    \
    X(int, sem_trywait, (sem_t *))                                                                 \
    X(int, sem_timedwait, (sem_t *, const struct timespec *))                                      \
    X(int, sem_clockwait, (sem_t *, clockid_t, const struct timespec *))                           \
    X(int, sem_post, (sem_t *))                                                                    \
    X(int, sem_destroy, (sem_t *))                                                                 \
    X(int, thrd_create, (thrd_t *, thrd_start_t, void *))                                          \
    X(int, thrd_join, (thrd_t, int *))                                                             \
    X(int, thrd_detach, (thrd_t))                                                                  \
    X(int, mtx_lock, (mtx_t *))                                                                    \
    X(int, mtx_trylock, (mtx_t *))                                                                 \
    X(int, mtx_timedlock, (mtx_t *, const struct timespec *))                                      \
    X(int, mtx_unlock, (mtx_t *))                                                                  \
    X(int, mtx_init, (mtx_t *, int))                                                               \
    X(void, mtx_destroy, (mtx_t *))                                                                \
    X(int, cnd_wait, (cnd_t *, mtx_t *))                                                           \
    X(int, cnd_timedwait, (cnd_t *, mtx_t *, const struct timespec *))                             \
    X(int, dlclose, (void *))

struct locks_table {
#define LOCKS_MEMBER(result, name, parameters) result(*name) parameters;
    LOCKS_FIRST_TABLE(LOCKS_MEMBER)
    LOCKS_TABLE(LOCKS_MEMBER)
#undef LOCKS_MEMBER
};

extern struct locks_table locks_table;

// Finds all of them; one that the C library lacks stays NULL, and no program can call it.
void locks_table_fill(void);

// The C library's function. Several threads may look for it at once, and find the same.
#define LOCKS_REAL(name)                                                               \
    (__builtin_expect(__atomic_load_n(&locks_table.name, __ATOMIC_RELAXED) != NULL, 1) \
         ? (void)0                                                                     \
         : locks_table_fill(),                                                         \
     locks_table.name)

#endif
