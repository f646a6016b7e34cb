// Threads of the library, which also call code of the program.
#ifndef WEIR_BASE_THREAD_H
#define WEIR_BASE_THREAD_H

#include <pthread.h>

// Zeroed before use.
struct weir_thread {
    pthread_t id;
    void (*run)(void *argument);
    void *argument;
};

// Starts a thread with all signals blocked, so that the program's handlers run on the program's
// threads, and without cancellation. Returns 0, or an error of errno's.
//
// Ownership: `*thread` is the caller's, and stays where it is until it is joined.
int weir_thread_start(struct weir_thread *thread, void (*run)(void *argument), void *argument);

void weir_thread_join(struct weir_thread *thread);

// Calls `call(user)`, which calls code of the program, on such a thread. If that code terminates the
// thread, by pthread_exit() or by a cancellation that it has enabled, `ended(user)` runs in place of
// everything after this call. It is the last function of the thread, so it does the rest of the
// thread's work, and may call this function again.
void weir_thread_call(void (*call)(void *user), void (*ended)(void *user), void *user);

#endif
