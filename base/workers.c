// Tasks are few and long beside the time of a lock, so one lock guards all.
#define _GNU_SOURCE // sched_getaffinity
#include "base/workers.h"

#include <sched.h>
#include <stddef.h>
#include <unistd.h>

void weir_workers_init(struct weir_workers *workers, const struct weir_lock_kind *kind)
{
    *workers = (struct weir_workers){0};
    TAILQ_INIT(&workers->tasks);
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
    TAILQ_REMOVE(&workers->tasks, task, place);
    task->state = WEIR_TASK_BEGUN;
    weir_lock_release(&workers->lock);
    task->run(task->user);
    weir_lock_take(&workers->lock);
    task->state = WEIR_TASK_DONE;
    pthread_cond_broadcast(&workers->done);
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
    // A program may handle faults in its own memory, such as those of pages that it has protected. A
    // fault of a thread that blocks the signal ends the process.
    sigset_t faults;
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    sigaddset(&faults, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
    weir_lock_take(&workers->lock);
    while (!workers->stopping) {
        if (!TAILQ_EMPTY(&workers->tasks))
            run_task(workers, TAILQ_FIRST(&workers->tasks));
        else
            fall_asleep(worker);
    }
    workers->awake--;
    weir_lock_release(&workers->lock);
}

unsigned weir_workers_start(struct weir_workers *workers, unsigned count)
{
    const unsigned most = count < WEIR_WORKERS_MAX ? count : WEIR_WORKERS_MAX;
    weir_lock_take(&workers->lock);
    while (!workers->stopping && workers->count < most) {
        struct weir_worker *worker = &workers->threads[workers->count];
        if (weir_thread_start(&worker->thread, work, worker) != 0)
            break;
        workers->count++;
        workers->awake++;
    }
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
    task->state = WEIR_TASK_POSTED;
    weir_lock_take(&workers->lock);
    TAILQ_INSERT_TAIL(&workers->tasks, task, place);
    if (workers->sleepers && workers->awake < threads)
        wake_one(workers);
    weir_lock_release(&workers->lock);
}

void weir_workers_wait(struct weir_workers *workers, struct weir_task *task)
{
    weir_lock_take(&workers->lock);
    if (task->state == WEIR_TASK_POSTED)
        run_task(workers, task);
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
