// Pairs of POSIX's and C11's primitives. Where nothing else is said the broken form takes another lock
// than the one that was given.
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "tests/locks/pair.h"

static sem_t done; // its address says "yes", too

static int other(bool mended)
{
    return mended ? 0 : 1;
}

static const struct timespec *soon(clockid_t clock)
{
    static _Thread_local struct timespec time;
    clock_gettime(clock, &time);
    time.tv_sec += 20;
    return &time;
}

static void need(bool right)
{
    if (!right)
        abort();
}

static pthread_t start(void *(*work)(void *user), void *user)
{
    pthread_t thread;
    need(pthread_create(&thread, NULL, work, user) == 0);
    return thread;
}

// What takes and gives up one of two locks: the first thread the first one, the second thread the one that is wanted.
#define HOLD(name, lock, take, end)     \
    static void name(bool mended)       \
    {                                   \
        __typeof__(lock) *it = &(lock); \
        (void)mended;                   \
        need((take) == 0);              \
        end(it);                        \
    }
#define GIVE(name, locks, take, end) HOLD(name, locks[0], take, end)
#define TAKE(name, locks, take, end) HOLD(name, locks[other(mended)], take, end)

// Mutexes.

static pthread_mutex_t mutexes[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

GIVE(give_mutex, mutexes, pthread_mutex_lock(it), pthread_mutex_unlock)
TAKE(take_mutex, mutexes, pthread_mutex_lock(it), pthread_mutex_unlock)
TAKE(take_trylock, mutexes, pthread_mutex_trylock(it), pthread_mutex_unlock)
TAKE(take_timedlock, mutexes, pthread_mutex_timedlock(it, soon(CLOCK_REALTIME)),
     pthread_mutex_unlock)
TAKE(take_clocklock, mutexes, pthread_mutex_clocklock(it, CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)),
     pthread_mutex_unlock)

// A lock that is not taken orders nothing.
static void give_held(bool mended)
{
    pthread_mutex_lock(&mutexes[0]);
    if (mended)
        pthread_mutex_unlock(&mutexes[0]);
}

static void take_held(bool mended)
{
    need((pthread_mutex_trylock(&mutexes[0]) == 0) == mended);
    if (mended)
        pthread_mutex_unlock(&mutexes[0]);
    else
        memcpy(&mutexes[0], &mutexes[1], sizeof mutexes[0]); // its owner is gone
}

static pthread_mutex_t recursive[2] = {PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                                       PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};

static void unlock_twice(pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
    pthread_mutex_unlock(mutex);
}

GIVE(give_recursive, recursive, pthread_mutex_lock(it) | pthread_mutex_lock(it), unlock_twice)
TAKE(take_recursive, recursive, pthread_mutex_lock(it), pthread_mutex_unlock)

// The broken one is another mutex in the same place.
static void take_made_anew(bool mended)
{
    if (!mended) {
        pthread_mutex_destroy(&mutexes[0]);
        pthread_mutex_init(&mutexes[0], NULL);
    }
    take_mutex(true);
}

// What the first thread told a third one is passed on.
static void *pass_on(void *mended)
{
    if (mended) {
        pthread_mutex_lock(&mutexes[0]);
        pthread_mutex_unlock(&mutexes[0]);
    }
    pthread_mutex_lock(&mutexes[1]);
    pthread_mutex_unlock(&mutexes[1]);
    return NULL;
}

static void take_through_another(bool mended)
{
    const pthread_t thread = start(pass_on, mended ? &done : NULL);
    pthread_join(thread, NULL);
}

static pthread_spinlock_t spins[2];

GIVE(give_spin, spins, pthread_spin_lock(it), pthread_spin_unlock)
TAKE(take_spin, spins, pthread_spin_lock(it), pthread_spin_unlock)
TAKE(take_spin_try, spins, pthread_spin_trylock(it), pthread_spin_unlock)

// Conditions. The broken form signals without the mutex, again and again.

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static atomic_bool ready, taken;

#define GIVE_CONDITION(name, lock, unlock, signal, broadcast) \
    static void name(bool mended)                             \
    {                                                         \
        if (mended) {                                         \
            lock;                                             \
            atomic_store(&ready, true);                       \
            signal;                                           \
            unlock;                                           \
        }                                                     \
        atomic_store(&ready, true);                           \
        while (!atomic_load(&taken)) {                        \
            broadcast;                                        \
            usleep(200);                                      \
        }                                                     \
        atomic_store(&ready, false);                          \
        atomic_store(&taken, false);                          \
    }

GIVE_CONDITION(give_condition, pthread_mutex_lock(&guard), pthread_mutex_unlock(&guard),
               pthread_cond_signal(&condition), pthread_cond_broadcast(&condition))

#define TAKE_CONDITION(name, lock, unlock, wait) \
    static void name(bool mended)                \
    {                                            \
        (void)mended;                            \
        lock;                                    \
        while (!atomic_load(&ready))             \
            (void)(wait);                        \
        unlock;                                  \
        atomic_store(&taken, true);              \
    }
#define TAKE_GUARD(name, wait) \
    TAKE_CONDITION(name, pthread_mutex_lock(&guard), pthread_mutex_unlock(&guard), wait)

TAKE_GUARD(take_condition, pthread_cond_wait(&condition, &guard))
TAKE_GUARD(take_condition_timed, pthread_cond_timedwait(&condition, &guard, soon(CLOCK_REALTIME)))
TAKE_GUARD(take_condition_clocked,
           pthread_cond_clockwait(&condition, &guard, CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)))

// A thread that is cancelled in a wait has its mutex again, and gives it to what cleans up.

static void clean_up(void *user)
{
    pair_read();
    pthread_mutex_unlock(&guard);
}

static void *wait_for_ever(void *user)
{
    pthread_mutex_lock(&guard);
    pthread_cleanup_push(clean_up, user);
    for (;;)
        pthread_cond_wait(&condition, &guard);
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancelled(bool mended)
{
    const pthread_t thread = start(wait_for_ever, NULL);
    usleep(2000);
    if (mended)
        pthread_mutex_lock(&guard);
    pair_write();
    if (mended)
        pthread_mutex_unlock(&guard);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
}

// Locks for readers and writers. Two readers are not in order.

static pthread_rwlock_t rwlocks[2] = {PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER};

GIVE(give_as_writer, rwlocks, pthread_rwlock_wrlock(it), pthread_rwlock_unlock)
GIVE(give_as_reader, rwlocks, pthread_rwlock_rdlock(it), pthread_rwlock_unlock)
TAKE(take_as_reader, rwlocks, pthread_rwlock_rdlock(it), pthread_rwlock_unlock)
TAKE(take_as_reader_try, rwlocks, pthread_rwlock_tryrdlock(it), pthread_rwlock_unlock)
TAKE(take_as_reader_timed, rwlocks, pthread_rwlock_timedrdlock(it, soon(CLOCK_REALTIME)),
     pthread_rwlock_unlock)
TAKE(take_as_writer_try, rwlocks, pthread_rwlock_trywrlock(it), pthread_rwlock_unlock)
TAKE(take_as_writer_timed, rwlocks,
     pthread_rwlock_clockwrlock(it, CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)), pthread_rwlock_unlock)

static void take_as_writer_or_reader(bool mended)
{
    if (mended)
        pthread_rwlock_wrlock(&rwlocks[0]);
    else
        pthread_rwlock_rdlock(&rwlocks[0]);
    pthread_rwlock_unlock(&rwlocks[0]);
}

// Semaphores. The one that is not given has been posted before.

static sem_t semaphores[2];

static void give_semaphore(bool mended)
{
    sem_init(&semaphores[0], 0, 0);
    sem_init(&semaphores[1], 0, 1);
    sem_post(&semaphores[0]);
}

#define NOTHING(it) (void)(it)

TAKE(take_semaphore, semaphores, sem_wait(it), NOTHING)
TAKE(take_semaphore_try, semaphores, sem_trywait(it), NOTHING)
TAKE(take_semaphore_timed, semaphores, sem_timedwait(it, soon(CLOCK_REALTIME)), NOTHING)
TAKE(take_semaphore_clocked, semaphores, sem_clockwait(it, CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)),
     NOTHING)

// Barriers. Each of the broken form's has one thread.

static pthread_barrier_t both, alone[2];

static void meet(bool mended, int thread)
{
    pthread_barrier_wait(mended ? &both : &alone[thread]);
}

static void give_barrier(bool mended)
{
    meet(mended, 0);
}

static void take_barrier(bool mended)
{
    meet(mended, 1);
}

// Once. The broken form's second thread does not ask.

#define ONCE(name, control, call)                           \
    static void *name##_first(void *user)                   \
    {                                                       \
        call(control, pair_write);                          \
        pair_send();                                        \
        return user;                                        \
    }                                                       \
    static void name(bool mended)                           \
    {                                                       \
        const pthread_t thread = start(name##_first, NULL); \
        pair_receive();                                     \
        if (mended)                                         \
            call(control, pair_write);                      \
        pair_read();                                        \
        pthread_join(thread, NULL);                         \
    }

static pthread_once_t control = PTHREAD_ONCE_INIT;
static once_flag flag = ONCE_FLAG_INIT;

ONCE(run_once, &control, pthread_once)
ONCE(run_call_once, &flag, call_once)

// Threads.

static void *write_in_thread(void *user)
{
    pair_write();
    pair_send();
    if (user)
        pthread_exit(user);
    return user;
}

static void *read_in_thread(void *user)
{
    pair_receive();
    pair_read();
    return user;
}

// `early` joins in the mended form, before the bytes are read.
#define JOIN(name, user, early)                                \
    static void name(bool mended)                              \
    {                                                          \
        void *result = NULL;                                   \
        const pthread_t thread = start(write_in_thread, user); \
        pair_receive();                                        \
        while (mended && (early) != 0)                         \
            usleep(100);                                       \
        pair_read();                                           \
        if (!mended)                                           \
            pthread_join(thread, &result);                     \
        need(result == (user));                                \
    }

JOIN(join, NULL, pthread_join(thread, &result))
JOIN(join_after_exit, &done, pthread_join(thread, &result))
JOIN(try_join, NULL, pthread_tryjoin_np(thread, &result))
JOIN(join_within, NULL, pthread_timedjoin_np(thread, &result, soon(CLOCK_REALTIME)))

static void create(bool mended)
{
    if (mended)
        pair_write();
    const pthread_t thread = start(read_in_thread, NULL);
    if (!mended)
        pair_write();
    pair_send();
    pthread_join(thread, NULL);
}

static void *write_and_post(void *user)
{
    pair_write();
    if (user)
        sem_post(&done);
    pair_send();
    return NULL;
}

static void detached(bool mended)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sem_init(&done, 0, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    need(pthread_create(&thread, &attributes, write_and_post, mended ? &done : NULL) == 0);
    pthread_attr_destroy(&attributes);
    pair_receive();
    if (mended)
        sem_wait(&done);
    pair_read();
}

// C11's.

static int write_in_c11(void *user)
{
    pair_write();
    pair_send();
    if (user)
        thrd_exit(7);
    return 7;
}

static void c11_join(bool mended)
{
    int result = 0;
    thrd_t thread;
    need(thrd_create(&thread, write_in_c11, mended ? &done : NULL) == thrd_success);
    pair_receive();
    if (mended)
        thrd_join(thread, &result);
    pair_read();
    if (!mended)
        thrd_join(thread, &result);
    need(result == 7);
}

static mtx_t c11_mutexes[2];
static cnd_t c11_condition;

GIVE(give_c11, c11_mutexes, mtx_lock(it), mtx_unlock)
TAKE(take_c11, c11_mutexes, mtx_lock(it), mtx_unlock)
TAKE(take_c11_try, c11_mutexes, mtx_trylock(it), mtx_unlock)
TAKE(take_c11_timed, c11_mutexes, mtx_timedlock(it, soon(CLOCK_REALTIME)), mtx_unlock)

GIVE_CONDITION(give_c11_condition, mtx_lock(&c11_mutexes[0]), mtx_unlock(&c11_mutexes[0]),
               cnd_signal(&c11_condition), cnd_broadcast(&c11_condition))

TAKE_CONDITION(take_c11_condition, mtx_lock(&c11_mutexes[0]), mtx_unlock(&c11_mutexes[0]),
               mended ? cnd_wait(&c11_condition, &c11_mutexes[0])
                      : cnd_timedwait(&c11_condition, &c11_mutexes[0], soon(CLOCK_REALTIME)))

// Host calls. Their thread is the library's.

static atomic_bool open_gate;

static weir_status post_in_call(void *user)
{
    while (!atomic_load(&open_gate))
        usleep(100);
    pair_write();
    if (user)
        sem_post(&done);
    pair_send();
    return WEIR_OK;
}

static void call_posts(bool mended)
{
    atomic_store(&open_gate, true);
    sem_init(&done, 0, 0);
    pair_must(weir_queue_host_call(pair_queue, post_in_call, mended ? &done : NULL));
    pair_receive();
    if (mended)
        sem_wait(&done);
    pair_read();
}

// The last call of the function is a jump, which seems to come from the library.
static void unlock_at_the_end(void *mutex)
{
    pair_write();
    pair_send();
    pthread_mutex_unlock(mutex);
}

static void (*volatile last_call)(void *mutex) = unlock_at_the_end;

static weir_status call_that_jumps(void *user)
{
    pthread_mutex_lock(user);
    last_call(user);
    return WEIR_OK;
}

static void call_unlocks(bool mended)
{
    pair_must(weir_queue_host_call(pair_queue, call_that_jumps, &mutexes[0]));
    pair_receive();
    pthread_mutex_lock(&mutexes[other(mended)]);
    pair_read();
    pthread_mutex_unlock(&mutexes[other(mended)]);
}

// Atomic variables are not seen: the broken form is in order, and lacks the annotation.
static atomic_int turn;

static void give_atomic(bool mended)
{
    if (mended)
        weir_check_release(pair_runtime, &turn);
    atomic_store(&turn, 1);
}

static void take_atomic(bool mended)
{
    while (atomic_load(&turn) == 0)
        usleep(100);
    if (mended)
        weir_check_acquire(pair_runtime, &turn);
    atomic_store(&turn, 0);
}

static const struct pair pairs[] = {
    {"mutex", give_mutex, take_mutex, .run = NULL},
    {"trylock", give_mutex, take_trylock, .run = NULL},
    {"timedlock", give_mutex, take_timedlock, .run = NULL},
    {"clocklock", give_mutex, take_clocklock, .run = NULL},
    {"not taken", give_held, take_held, .run = NULL},
    {"recursive", give_recursive, take_recursive, .run = NULL},
    {"through another", give_mutex, take_through_another, .run = NULL},
    {"made anew", give_mutex, take_made_anew, .run = NULL},
    {"spin", give_spin, take_spin, .run = NULL},
    {"spin try", give_spin, take_spin_try, .run = NULL},
    {"condition", give_condition, take_condition, .meets = true},
    {"condition timed", give_condition, take_condition_timed, .meets = true},
    {"condition clocked", give_condition, take_condition_clocked, .meets = true},
    {"cancelled", .run = cancelled},
    {"writer and reader", give_as_writer, take_as_reader, .run = NULL},
    {"reader try", give_as_writer, take_as_reader_try, .run = NULL},
    {"reader timed", give_as_writer, take_as_reader_timed, .run = NULL},
    {"reader and writer", give_as_reader, take_as_writer_or_reader, .writes = true},
    {"writer try", give_as_reader, take_as_writer_try, .writes = true},
    {"writer timed", give_as_writer, take_as_writer_timed, .run = NULL},
    {"semaphore", give_semaphore, take_semaphore, .run = NULL},
    {"semaphore try", give_semaphore, take_semaphore_try, .run = NULL},
    {"semaphore timed", give_semaphore, take_semaphore_timed, .run = NULL},
    {"semaphore clocked", give_semaphore, take_semaphore_clocked, .run = NULL},
    {"barrier", give_barrier, take_barrier, .meets = true},
    {"once", .run = run_once},
    {"call_once", .run = run_call_once},
    {"join", .run = join},
    {"join after exit", .run = join_after_exit},
    {"tryjoin", .run = try_join},
    {"timedjoin", .run = join_within},
    {"create", .run = create},
    {"detached", .run = detached},
    {"thrd_join", .run = c11_join},
    {"mtx", give_c11, take_c11, .run = NULL},
    {"mtx try", give_c11, take_c11_try, .run = NULL},
    {"mtx timed", give_c11, take_c11_timed, .run = NULL},
    {"cnd", give_c11_condition, take_c11_condition, .meets = true},
    {"call posts", .run = call_posts},
    {"call unlocks", .run = call_unlocks},
    {"atomic", give_atomic, take_atomic, .meets = true},
};

int main(int argc, char **argv)
{
    for (int i = 0; i < 2; i++) {
        pthread_spin_init(&spins[i], 0);
        pthread_barrier_init(&alone[i], NULL, 1);
        mtx_init(&c11_mutexes[i], mtx_timed);
    }
    pthread_barrier_init(&both, NULL, 2);
    cnd_init(&c11_condition);
    return pair_main(pairs, sizeof pairs / sizeof *pairs, argc, argv);
}
