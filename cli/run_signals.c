// Interrupts. The signals are blocked in every thread and taken by one that
// waits for them, so that no handler has to guess what it may call.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "cli/run.h"

static struct {
    pthread_t thread;
    sigset_t signals;
    pthread_mutex_t lock; // `pipeline` stays while it is held
    weir_pipeline *pipeline;
    atomic_int received;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

// Before and after the pipeline nothing is half done; and who asks twice does
// not want to wait for what was started.
static void handle(int number)
{
    pthread_mutex_lock(&state.lock);
    const bool again = atomic_exchange(&state.received, number) != 0;
    if (!state.pipeline || again) {
        cli_error("interrupted%s", again ? " again: what was started is not finished" : "");
        _exit(CLI_SIGNALLED + number);
    }
    cli_error("interrupted: finishing what was started; once more ends at once");
    weir_pipeline_cancel(state.pipeline);
    pthread_mutex_unlock(&state.lock);
}

static void *wait_for_signals(void *unused)
{
    (void)unused;
    for (;;) {
        int number;
        int before;
        const int error = sigwait(&state.signals, &number);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
        if (error == 0)
            handle(number);
        pthread_setcancelstate(before, &before);
    }
    return NULL;
}

// One that is ignored, as nohup does with SIGHUP, stays ignored.
static void add_unless_ignored(int number)
{
    struct sigaction action;
    if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
        sigaddset(&state.signals, number);
}

bool run_signals_start(void)
{
    sigemptyset(&state.signals);
    add_unless_ignored(SIGINT);
    add_unless_ignored(SIGTERM);
    add_unless_ignored(SIGHUP);
    pthread_sigmask(SIG_BLOCK, &state.signals, NULL);
    const int error = pthread_create(&state.thread, NULL, wait_for_signals, NULL);
    if (error == 0)
        return true;
    cli_error("no thread for signals: %s", strerror(error));
    pthread_sigmask(SIG_UNBLOCK, &state.signals, NULL);
    return false;
}

void run_signals_cancel(weir_pipeline *pipeline)
{
    pthread_mutex_lock(&state.lock);
    state.pipeline = pipeline;
    pthread_mutex_unlock(&state.lock);
}

void run_signals_end(void)
{
    pthread_cancel(state.thread);
    pthread_join(state.thread, NULL);
}

int run_signal(void)
{
    return atomic_load(&state.received);
}
