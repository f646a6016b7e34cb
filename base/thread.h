// Threads of the library, which also call code of the program.
#ifndef WEIR_BASE_THREAD_H
#define WEIR_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

// Zeroed before use.
struct weir_thread {
    pthread_t id;
    void (*run)(void *argument);
    void *argument;
    pthread_t before; // the thread that this one goes on for, which has ended or is about to
    bool has_before;
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

// The same, of a thread that weir_thread_is_current() and weir_thread_renew() know. Not for modules,
// since it uses thread-local storage (base/thread_local.h).
int weir_thread_start_known(struct weir_thread *thread, void (*run)(void *argument),
                            void *argument);

// Whether the program's main thread has ended by pthread_exit(), and all that is left of the process are such threads: it
// would have ended without them. False where that cannot be known.
bool weir_thread_is_all_that_is_left(void);

void weir_thread_join(struct weir_thread *thread);

// Between thread.c and thread_known.c: pthread_create() without signals, the name of such a thread for the kernel, and
// the end of the one before.
void weir_thread_name_own(void);
int weir_thread_create(void *(*run)(void *argument), void *argument, pthread_t *out_id);
void weir_thread_join_before(const struct weir_thread *thread);

// Calls `call(user)`, which calls code of the program, on such a thread. If that code terminates the
// thread, by pthread_exit() or by a cancellation that it has enabled, `ended(user)` runs in place of
// everything after this call. It is the last function of the thread, so it does the rest of the
// thread's work, and may call this function again; as each such call that is ended lies deeper on the stack,
// a thread without end hands its work over with weir_thread_renew().
void weir_thread_call(void (*call)(void *user), void (*ended)(void *user), void *user);

// For `ended` on a known thread: starts another one in the place of the calling one, which runs the same from the
// beginning, at once. Returns 0, and the calling thread has only to return; or an error of errno's, and it
// has to go on itself.
//
// Threads: the structure of the thread is changed, under a lock that orders this after the start and before
// the join.
int weir_thread_renew(void);

// Whether the calling thread is this known one, or one that it goes on for.
bool weir_thread_is_current(const struct weir_thread *thread);

#endif
