// What core knows about the calling thread and process.
#ifndef WEIR_CORE_SUPPORT_THREAD_H
#define WEIR_CORE_SUPPORT_THREAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/support/error.h"

extern atomic_bool weir__forked;

// Arms the detection of fork(); cheap, and may be called often.
void weir__watch_fork(void);

void weir__report_forked(const char *function);

// Whether this thread is running a user's host call, where nothing may wait.
bool weir__in_host_call(void);
void weir__set_in_host_call(bool inside);

// Whether it is running a user's native call, which may not wait either. It reads as a
// host call too.
bool weir__in_native_call(void);
void weir__set_in_native_call(bool inside);

// Starts a thread of the library's with all signals blocked, so that the
// program's handlers run on the program's threads. False: the system refused.
bool weir__thread_create(pthread_t *out_thread, void *(*run)(void *), void *argument);

// Refuses the call in a forked child.
#define WEIR_REFUSE_FORK() WEIR_REFUSE_FORK_OF(__func__)
#define WEIR_REFUSE_FORK_OF(function)                                  \
    do {                                                               \
        if (atomic_load_explicit(&weir__forked, memory_order_relaxed)) \
            return (weir__report_forked(function), WEIR_ERROR_FORKED); \
    } while (0)

#endif
