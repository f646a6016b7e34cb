// Starting and joining, without thread-local storage, which modules have little of.
//
// NOLINTNEXTLINE(bugprone-reserved-identifier): for syscall()
#define _GNU_SOURCE
#include "base/thread.h"

#include <sys/prctl.h>

void weir_thread_hold_signals(sigset_t *out_before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t held;
    sigfillset(&held);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&held, faults[i]);
    pthread_sigmask(SIG_BLOCK, &held, out_before);
}

void weir_thread_release_signals(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

static void *begin(void *argument)
{
    struct weir_thread *thread = argument;
    atomic_store(&thread->self, pthread_self());
    prctl(PR_SET_NAME, "weir");
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    thread->run(thread->argument);
    return NULL;
}

int weir_thread_start(struct weir_thread *thread, void (*run)(void *argument), void *argument)
{
    sigset_t all;
    sigset_t before;

    thread->run = run;
    thread->argument = argument;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&thread->id, NULL, begin, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void weir_thread_join(struct weir_thread *thread)
{
    pthread_join(thread->id, NULL);
    atomic_store(&thread->self, 0);
}

bool weir_thread_is_current(const struct weir_thread *thread)
{
    return atomic_load(&thread->self) == pthread_self();
}
