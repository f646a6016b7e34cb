// Threads of the host, for `threads = strict`. They live as long as the ground: the next thread with
// the number of one that has ended is the same to the plugin.
#include <pthread.h>

#include <weir/check.h>

#include "tests/races/fuzz/steps.h"

static const char keys[ORACLE_KEYS];

void release_key(const struct run *run, int key)
{
    weir_check_release(run->ground->runtime, &keys[key]);
}

// The key stays with the runtime, so what an earlier program released may be acquired, of which
// nothing is left.
void step_release(struct run *run)
{
    const int key = run->step[1] % ORACLE_KEYS;
    SAY(run, "release of key %d", key);
    release_key(run, key);
    oracle_release(run->oracle, key);
}

void step_acquire(struct run *run)
{
    const int key = run->step[1] % ORACLE_KEYS;
    SAY(run, "acquire of key %d", key);
    weir_check_acquire(run->ground->runtime, &keys[key]);
    oracle_acquire(run->oracle, key);
}

// The threads.

static void wait_for(sem_t *gate)
{
    while (sem_wait(gate) != 0)
        continue;
}

static void *work(void *user)
{
    struct ground_thread *thread = user;
    for (;;) {
        wait_for(&thread->begin);
        if (!thread->step)
            return NULL;
        thread->step(thread->run);
        sem_post(&thread->end);
    }
}

bool ground_thread_start(struct ground_thread *thread)
{
    sem_init(&thread->begin, 0, 0);
    sem_init(&thread->end, 0, 0);
    thread->started = pthread_create(&thread->thread, NULL, work, thread) == 0;
    return thread->started;
}

void ground_thread_stop(struct ground_thread *thread)
{
    if (!thread->started)
        return;
    thread->step = NULL;
    sem_post(&thread->begin);
    pthread_join(thread->thread, NULL);
    sem_destroy(&thread->begin);
    sem_destroy(&thread->end);
}

static void do_on_thread(struct run *run, int which, void (*step)(struct run *run))
{
    struct ground_thread *thread = &run->ground->threads[which];
    if (which == 0) {
        step(run);
        return;
    }
    thread->run = run;
    thread->step = step;
    sem_post(&thread->begin);
    wait_for(&thread->end);
}

void run_on_thread(struct run *run, int thread, void (*step)(struct run *run))
{
    run->oracle->thread = thread;
    if (run->text)
        fprintf(run->text, "T%d ", thread);
    do_on_thread(run, thread, step);
    run->oracle->thread = 0;
}

static void release_at_the_end(struct run *run)
{
    release_key(run, 0);
}

void gather_threads(struct run *run)
{
    for (int i = 1; i < ORACLE_THREADS; i++)
        do_on_thread(run, i, release_at_the_end);
    weir_check_acquire(run->ground->runtime, &keys[0]);
}
