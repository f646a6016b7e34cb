// Threads that know which one they are: apart from thread.c, since modules have no thread-local storage.
#include "base/thread.h"

// Of the calling thread, if it is one of these.
static _Thread_local struct weir_thread *own;

static void *begin(void *argument)
{
    own = argument;
    weir_thread_name_own();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    own->run(own->argument);
    return NULL;
}

int weir_thread_start_known(struct weir_thread *thread, void (*run)(void *argument), void *argument)
{
    *thread = (struct weir_thread){.run = run, .argument = argument};
    return weir_thread_create(begin, thread, &thread->id);
}

bool weir_thread_is_current(const struct weir_thread *thread)
{
    return own == thread;
}
