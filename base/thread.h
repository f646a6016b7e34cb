// Threads of the library, which also call code of the program. That code must return.
#ifndef WEIR_BASE_THREAD_H
#define WEIR_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

// Zeroed before use.
struct weir_thread {
    pthread_t id;
    _Atomic(pthread_t) self; // the same, for the thread itself; 0 while it does not run
    void (*run)(void *argument);
    void *argument;
};

// Around calls of a driver that may create threads: the threads get no signal of the program's, whose handlers so
// run on its own threads. Signals for the calling thread come afterwards, but those of its faults.
void weir_thread_hold_signals(sigset_t *out_before);
void weir_thread_release_signals(const sigset_t *before);

// Starts a thread with all signals blocked, so that the program's handlers run on the program's
// threads, and without cancellation. Returns 0, or an error of errno's.
//
// Ownership: `*thread` is the caller's, and stays where it is until it is joined.
int weir_thread_start(struct weir_thread *thread, void (*run)(void *argument), void *argument);

void weir_thread_join(struct weir_thread *thread);

// Whether the calling thread is this one.
bool weir_thread_is_current(const struct weir_thread *thread);

#endif
