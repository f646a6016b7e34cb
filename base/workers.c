// Tasks are few and long beside the time of a lock, so one lock guards all.
#define _GNU_SOURCE // sched_getaffinity
#include "base/workers.h"

#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

void weir_workers_init(struct weir_workers *workers, const struct weir_lock_kind *kind)
{
    *workers = (struct weir_workers){0};
    weir_lock_init(&workers->lock, kind);
    for (unsigned i = 0; i < WEIR_WORKERS_MAX; i++) {
        workers->threads[i].workers = workers;
        pthread_cond_init(&workers->threads[i].wake, NULL);
    }
    pthread_cond_init(&workers->done, NULL);
}

void weir_workers_finish(struct weir_workers *workers)
{
    weir_workers_stop(workers);
    pthread_cond_destroy(&workers->done);
    for (unsigned i = 0; i < WEIR_WORKERS_MAX; i++)
        pthread_cond_destroy(&workers->threads[i].wake);
    weir_lock_finish(&workers->lock);
}

// With the lock held, which is released meanwhile.
static void run_task(struct weir_workers *workers, struct weir_task *task)
{
    task->state = WEIR_TASK_BEGUN;
    weir_lock_release(&workers->lock);
    task->run(task->user);
    weir_lock_take(&workers->lock);
    task->state = WEIR_TASK_DONE;
    pthread_cond_broadcast(&workers->done);
}

static struct weir_task *pop(struct weir_workers *workers)
{
    struct weir_task *task = workers->first;
    workers->first = task->next;
    if (!workers->first)
        workers->last = NULL;
    return task;
}

// A program may handle faults in its own memory, such as those of pages that it has protected. A
// fault of a thread that blocks the signal ends the process.
static void allow_faults(void)
{
    sigset_t faults;
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    sigaddset(&faults, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
}

// These two with the lock held.

static void fall_asleep(struct weir_worker *worker)
{
    struct weir_workers *workers = worker->workers;
    worker->next = workers->sleepers;
    workers->sleepers = worker;
    workers->awake--;
    worker->asleep = true;
    while (worker->asleep)
        weir_lock_wait(&workers->lock, &worker->wake);
}

static void wake_one(struct weir_workers *workers)
{
    struct weir_worker *worker = workers->sleepers;
    workers->sleepers = worker->next;
    worker->asleep = false;
    workers->awake++;
    pthread_cond_signal(&worker->wake);
}

static void work(void *user)
{
    struct weir_worker *worker = user;
    struct weir_workers *workers = worker->workers;
    allow_faults();
    weir_lock_take(&workers->lock);
    while (!workers->stopping) {
        if (workers->first)
            run_task(workers, pop(workers));
        else
            fall_asleep(worker);
    }
    workers->awake--;
    weir_lock_release(&workers->lock);
}

// With the lock held.
static bool start_one(struct weir_workers *workers)
{
    struct weir_worker *worker = &workers->threads[workers->count];
    if (weir_thread_start(&worker->thread, work, worker) != 0)
        return false;
    workers->count++;
    workers->awake++;
    return true;
}

unsigned weir_workers_start(struct weir_workers *workers, unsigned count)
{
    const unsigned most = count < WEIR_WORKERS_MAX ? count : WEIR_WORKERS_MAX;
    weir_lock_take(&workers->lock);
    while (!workers->stopping && workers->count < most && start_one(workers))
        ;
    const unsigned running = workers->stopping ? 0 : workers->count;
    weir_lock_release(&workers->lock);
    return running;
}

void weir_workers_stop(struct weir_workers *workers)
{
    weir_lock_take(&workers->lock);
    const bool mine = !workers->stopping;
    const unsigned count = workers->count;
    workers->stopping = true;
    while (workers->sleepers)
        wake_one(workers);
    weir_lock_release(&workers->lock);
    if (!mine)
        return;
    for (unsigned i = 0; i < count; i++)
        weir_thread_join(&workers->threads[i].thread);
    weir_lock_take(&workers->lock);
    workers->count = 0;
    workers->stopping = false;
    weir_lock_release(&workers->lock);
}

void weir_workers_post(struct weir_workers *workers, struct weir_task *task, unsigned threads)
{
    task->next = NULL;
    task->state = WEIR_TASK_POSTED;
    weir_lock_take(&workers->lock);
    if (workers->last)
        workers->last->next = task;
    else
        workers->first = task;
    workers->last = task;
    if (workers->sleepers && workers->awake < threads)
        wake_one(workers);
    weir_lock_release(&workers->lock);
}

static void take_out(struct weir_workers *workers, struct weir_task *task)
{
    struct weir_task *before = NULL;
    for (struct weir_task *at = workers->first; at != task; at = at->next)
        before = at;
    if (before)
        before->next = task->next;
    else
        workers->first = task->next;
    if (workers->last == task)
        workers->last = before;
}

void weir_workers_wait(struct weir_workers *workers, struct weir_task *task)
{
    weir_lock_take(&workers->lock);
    if (task->state == WEIR_TASK_POSTED) {
        take_out(workers, task);
        run_task(workers, task);
    }
    while (task->state != WEIR_TASK_DONE)
        weir_lock_wait(&workers->lock, &workers->done);
    weir_lock_release(&workers->lock);
}

unsigned weir_workers_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (unsigned)CPU_COUNT(&set);
    const long online = sysconf(_SC_NPROCESSORS_ONLN); // more than the set has room for
    return online > 0 ? (unsigned)online : 1;
}
