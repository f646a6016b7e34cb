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
    pthread_cond_init(&workers->posted, NULL);
    pthread_cond_init(&workers->done, NULL);
}

void weir_workers_finish(struct weir_workers *workers)
{
    weir_workers_stop(workers);
    pthread_cond_destroy(&workers->done);
    pthread_cond_destroy(&workers->posted);
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

static void work(void *user)
{
    struct weir_workers *workers = user;
    allow_faults();
    weir_lock_take(&workers->lock);
    while (!workers->stopping) {
        if (workers->first)
            run_task(workers, pop(workers));
        else
            weir_lock_wait(&workers->lock, &workers->posted);
    }
    weir_lock_release(&workers->lock);
}

unsigned weir_workers_start(struct weir_workers *workers, unsigned count)
{
    weir_lock_take(&workers->lock);
    while (!workers->stopping && workers->count < count && workers->count < WEIR_WORKERS_MAX &&
           weir_thread_start(&workers->threads[workers->count], work, workers) == 0)
        workers->count++;
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
    pthread_cond_broadcast(&workers->posted);
    weir_lock_release(&workers->lock);
    if (!mine)
        return;
    for (unsigned i = 0; i < count; i++)
        weir_thread_join(&workers->threads[i]);
    weir_lock_take(&workers->lock);
    workers->count = 0;
    workers->stopping = false;
    weir_lock_release(&workers->lock);
}

void weir_workers_post(struct weir_workers *workers, struct weir_task *task)
{
    task->next = NULL;
    task->state = WEIR_TASK_POSTED;
    weir_lock_take(&workers->lock);
    if (workers->last)
        workers->last->next = task;
    else
        workers->first = task;
    workers->last = task;
    pthread_cond_signal(&workers->posted);
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
