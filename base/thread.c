// Starting and joining, without thread-local storage: see base/thread_known.c.
#include "base/thread.h"

#include <signal.h>

static void *begin(void *argument)
{
    const struct weir_thread *thread = argument;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    thread->run(thread->argument);
    return NULL;
}

int weir_thread_create(void *(*run)(void *argument), void *argument, pthread_t *out_id)
{
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(out_id, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

int weir_thread_start(struct weir_thread *thread, void (*run)(void *argument), void *argument)
{
    *thread = (struct weir_thread){.run = run, .argument = argument};
    return weir_thread_create(begin, thread, &thread->id);
}

void weir_thread_join(struct weir_thread *thread)
{
    pthread_join(thread->id, NULL);
    weir_thread_join_before(thread);
}

void weir_thread_join_before(const struct weir_thread *thread)
{
    if (thread->has_before)
        pthread_join(thread->before, NULL);
}
