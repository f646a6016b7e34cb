// A thread that is being terminated only runs its cleanup handlers. So the rest of its work is done
// in a cleanup handler, which may start a thread for it, and must do without if that fails.
#include "base/thread.h"

// Of the calling thread, if it is one of these.
static _Thread_local struct weir_thread *own;
// Another one goes on in its place, and this was the one before it.
static _Thread_local struct weir_thread replaced;

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

int weir_thread_renew(void)
{
    const struct weir_thread before = *own;
    pthread_t id;
    own->before = pthread_self();
    own->has_before = true;
    const int error = weir_thread_create(begin, own, &id);
    if (error == 0) {
        own->id = id;
        replaced = before;
    } else {
        *own = before;
    }
    return error;
}

struct guard {
    void (*ended)(void *user);
    void *user;
    volatile bool has_ended;
};

// If the rest of the work terminates the thread again, this is called again for the enclosing
// calls, after all work is done.
//
// A thread with another one in its place joins the one before it, so at most the last of them are left. The
// new one waits for none: what the program does at the end of a thread may wait for its work.
static void survive(void *argument)
{
    struct guard *guard = argument;
    if (guard->has_ended)
        return;
    guard->has_ended = true;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    guard->ended(guard->user);
    weir_thread_join_before(&replaced);
}

void weir_thread_call(void (*call)(void *user), void (*ended)(void *user), void *user)
{
    struct guard guard = {.ended = ended, .user = user};
    pthread_cleanup_push(survive, &guard);
    call(user);
    pthread_cleanup_pop(0);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); // in case the code has enabled it
}
