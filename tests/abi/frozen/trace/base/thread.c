// A thread that is being terminated only runs its cleanup handlers. So the rest of its work is done
// in a cleanup handler, and not on a replacement thread, whose creation might fail.
#include "tests/abi/frozen/trace/base/thread.h"

#include <signal.h>
#include <stdbool.h>

static void *begin(void *argument)
{
    const struct weir_thread *thread = argument;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    thread->run(thread->argument);
    return NULL;
}

int weir_thread_start(struct weir_thread *thread, void (*run)(void *argument), void *argument)
{
    sigset_t all;
    sigset_t before;

    *thread = (struct weir_thread){.run = run, .argument = argument};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&thread->id, NULL, begin, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void weir_thread_join(struct weir_thread *thread)
{
    pthread_join(thread->id, NULL);
}

struct guard {
    void (*ended)(void *user);
    void *user;
    volatile bool has_ended;
};

// If the rest of the work terminates the thread again, this is called again for the enclosing
// calls, after all work is done.
static void survive(void *argument)
{
    struct guard *guard = argument;
    if (guard->has_ended)
        return;
    guard->has_ended = true;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    guard->ended(guard->user);
}

void weir_thread_call(void (*call)(void *user), void (*ended)(void *user), void *user)
{
    struct guard guard = {.ended = ended, .user = user};
    pthread_cleanup_push(survive, &guard);
    call(user);
    pthread_cleanup_pop(0);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); // in case the code has enabled it
}
