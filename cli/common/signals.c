// Signals that end a command.
#include "cli/common/signals.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/cli.h"
#include "cli/common/own.h"

// The signals are blocked in every thread and taken by one that waits for them until the process ends.

static struct {
    sigset_t signals;
    pthread_mutex_t lock; // while it is held, what `user` points to is valid
    bool deferred;
    void (*stop)(void *user);
    void *user;
    atomic_int received;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

// The process ends at once if there is no work in progress to finish, and at the second
// signal, which asks not to wait for it.
static void handle(int number)
{
    pthread_mutex_lock(&state.lock);
    const bool again = atomic_exchange(&state.received, number) != 0;
    if (!state.deferred || again) {
        cli_error("interrupted%s", again ? " again: work in progress is not finished" : "");
        _exit(CLI_SIGNALLED + number);
    }
    cli_error("interrupted: finishing work in progress; a second interrupt ends at once");
    if (state.stop)
        state.stop(state.user);
    pthread_mutex_unlock(&state.lock);
}

static void *wait_for_signals(void *unused)
{
    int number;
    while (sigwait(&state.signals, &number) == 0)
        handle(number);
    return NULL;
}

void cli_signals_list(const int *numbers, size_t count, sigset_t *out_set)
{
    struct sigaction action;
    sigemptyset(out_set);
    for (size_t i = 0; i < count; i++)
        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(out_set, numbers[i]);
}

void cli_signals_start(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    pthread_t thread;
    cli_signals_list(numbers, sizeof numbers / sizeof *numbers, &state.signals);
    pthread_sigmask(SIG_BLOCK, &state.signals, NULL);
    const int error = pthread_create(&thread, NULL, wait_for_signals, NULL);
    if (error)
        cli_fail(CLI_FAILED, "the thread that waits for signals cannot be created: %s",
                 strerror(error));
    pthread_detach(thread);
}

static void set_deferred(bool deferred, void (*stop)(void *user), void *user)
{
    pthread_mutex_lock(&state.lock);
    state.deferred = deferred;
    state.stop = stop;
    state.user = user;
    pthread_mutex_unlock(&state.lock);
}

void cli_signals_defer(void (*stop)(void *user), void *user)
{
    set_deferred(true, stop, user);
}

void cli_signals_resume(void)
{
    set_deferred(false, NULL, NULL);
}

int cli_signal(void)
{
    return atomic_load(&state.received);
}
