// Threads of the library's own, which run the program's code in between.
#ifndef WEIR_BASE_THREAD_H
#define WEIR_BASE_THREAD_H

#include <pthread.h>

// Zeroed to begin with.
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

// Calls `call(user)`, which calls the program's code, on such a thread. Where that code ends its
// thread, by pthread_exit() or by a cancellation that it allowed, `ended(user)` runs instead of all
// that would come after this call: the last code of the thread, so it does the rest of the
// thread's work, and may call this again.
void weir_thread_call(void (*call)(void *user), void (*ended)(void *user), void *user);

#endif
