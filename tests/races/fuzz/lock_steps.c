// Steps of threads that their locks order: each lock is one or two keys of the oracle.
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "tests/races/fuzz/steps.h"

static pthread_mutex_t mutexes[EACH] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_rwlock_t rwlocks[EACH] = {PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER};
static sem_t semaphores[EACH];

__attribute__((constructor)) static void make_semaphores(void)
{
    for (int i = 0; i < EACH; i++)
        sem_init(&semaphores[i], 0, 0);
}

void take_and_give_mutex(int which)
{
    pthread_mutex_lock(&mutexes[which]);
    pthread_mutex_unlock(&mutexes[which]);
}

void lock_mutex(struct run *run, int which)
{
    SAY(run, "mutex %d", which);
    take_and_give_mutex(which);
    oracle_acquire(run->oracle, KEY_MUTEX + which);
    oracle_release(run->oracle, KEY_MUTEX + which);
}

void post_semaphore(int which)
{
    sem_post(&semaphores[which]);
}

void forget_posts(void)
{
    for (int i = 0; i < EACH; i++)
        while (sem_trywait(&semaphores[i]) == 0)
            continue;
}

static void post(struct run *run, int which)
{
    SAY(run, "post of semaphore %d", which);
    post_semaphore(which);
    oracle_release(run->oracle, KEY_SEMAPHORE + which);
}

static void wait_for(struct run *run, int which)
{
    if (sem_trywait(&semaphores[which]) != 0)
        return;
    SAY(run, "wait for semaphore %d", which);
    oracle_acquire(run->oracle, KEY_SEMAPHORE + which);
}

static void lock_to_read(struct run *run, int which)
{
    SAY(run, "lock %d to read", which);
    pthread_rwlock_rdlock(&rwlocks[which]);
    pthread_rwlock_unlock(&rwlocks[which]);
    oracle_acquire(run->oracle, KEY_WRITERS + which);
    oracle_release(run->oracle, KEY_READERS + which);
}

static void lock_to_write(struct run *run, int which)
{
    SAY(run, "lock %d to write", which);
    pthread_rwlock_wrlock(&rwlocks[which]);
    pthread_rwlock_unlock(&rwlocks[which]);
    oracle_acquire(run->oracle, KEY_WRITERS + which);
    oracle_acquire(run->oracle, KEY_READERS + which);
    oracle_release(run->oracle, KEY_WRITERS + which);
}

// Another thread. While it can be joined there is no second one.

enum {
    CHILD = PROGRAM_THREADS
};

static void *run_child(void *user)
{
    struct child *child = user;
    child->step(child->run);
    gate_open(&child->done);
    return NULL;
}

void end_child(struct run *run)
{
    if (run->child.lives)
        pthread_join(run->child.thread, NULL);
    run->child.lives = false;
}

static void join_child(struct run *run)
{
    SAY(run, "join");
    end_child(run);
    oracle_join(run->oracle, CHILD);
}

static void make_child(struct run *run, void (*step)(struct run *run))
{
    struct child *child = &run->child;
    const int maker = run->oracle->thread;
    SAY(run, "makes a thread, which does");
    oracle_create(run->oracle, CHILD);
    child->step = step;
    child->run = run;
    run->oracle->thread = CHILD;
    if (gate_make(&child->done)) {
        child->lives = pthread_create(&child->thread, NULL, run_child, child) == 0;
        if (child->lives)
            gate_pass(&child->done);
        gate_finish(&child->done);
    }
    run->oracle->thread = maker;
    ok(run, child->lives ? WEIR_OK : WEIR_ERROR_SYSTEM);
}

static void work_in_child(struct run *run, int which)
{
    static void (*const steps[])(struct run * run) = {step_host, step_copy, step_host, step_sync};
    if (run->child.lives)
        join_child(run);
    else
        make_child(run, steps[run->step[3] % 4]);
}

void step_lock(struct run *run)
{
    static void (*const ways[8])(struct run * run, int which) = {
        lock_mutex,   lock_mutex,    post,          wait_for,
        lock_to_read, lock_to_write, work_in_child, work_in_child,
    };
    ways[run->step[2] % 8](run, run->step[1] % EACH);
}
