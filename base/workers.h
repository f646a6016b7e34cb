// Threads that run short tasks for their owner: work of the host that several processors do sooner
// than one. Between tasks they sleep.
#ifndef WEIR_BASE_WORKERS_H
#define WEIR_BASE_WORKERS_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "base/lock.h"
#include "base/thread.h"

enum {
    WEIR_WORKERS_MAX = 16
};

// `run` and `user` are the owner's, the rest is of the workers. The owner keeps it until it was
// waited for.
struct weir_task {
    void (*run)(void *user);
    void *user;
    TAILQ_ENTRY(weir_task) place;
    enum {
        WEIR_TASK_POSTED,
        WEIR_TASK_BEGUN,
        WEIR_TASK_DONE
    } state;
};

struct weir_workers;

struct weir_worker {
    struct weir_workers *workers;
    struct weir_thread thread;
    pthread_cond_t wake;
    bool asleep;
    struct weir_worker *next; // of those asleep
};

struct weir_workers {
    struct weir_lock lock;
    pthread_cond_t done;
    TAILQ_HEAD(, weir_task) tasks; // posted and not begun, the oldest first
    struct weir_worker *sleepers;  // the one that fell asleep last, whose processor is the readiest
    unsigned awake;
    unsigned count; // of threads
    bool stopping;
    struct weir_worker threads[WEIR_WORKERS_MAX];
};

// Without threads, so it cannot fail. `kind` is the place of its lock in the order of locks; no lock
// is taken and no task run with it held.
void weir_workers_init(struct weir_workers *workers, const struct weir_lock_kind *kind);

// Ends the threads as weir_workers_stop() does. Nothing may be posted.
void weir_workers_finish(struct weir_workers *workers);

// Starts threads until there are `count`, at most WEIR_WORKERS_MAX. Returns how many there are: fewer
// if the system has no more, or another thread is in weir_workers_stop().
//
// Threads: safe, as all that follows.
unsigned weir_workers_start(struct weir_workers *workers, unsigned count);

// Ends the threads, after the tasks that they have begun. Others may be started afterwards.
void weir_workers_stop(struct weir_workers *workers);

// Tasks are begun in the order in which they were posted. If fewer than `threads` threads are awake, one
// more is woken.
void weir_workers_post(struct weir_workers *workers, struct weir_task *task, unsigned threads);

// Returns when the task has run. If no thread has begun it yet, the calling thread runs it, so that
// tasks also run where no thread could be started.
void weir_workers_wait(struct weir_workers *workers, struct weir_task *task);

// The number of processors on which the calling thread, and threads that it starts, may run.
unsigned weir_workers_processors(void);

#endif
