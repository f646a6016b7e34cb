// Signals are blocked but in ppoll(), so that none is missed and no code of a handler runs elsewhere.
#define _GNU_SOURCE // ppoll

#include <poll.h>

#include "base/clock.h"
#include "cli/launch/launch.h"

static const int numbers[] = {SIGCHLD, SIGINT,  SIGQUIT, SIGTERM, SIGHUP,
                              SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2};

enum {
    NUMBER_COUNT = sizeof numbers / sizeof *numbers
};

static struct sigaction old_actions[NUMBER_COUNT];
static volatile sig_atomic_t received[NUMBER_COUNT];
static volatile sig_atomic_t ended; // the process that the first SIGCHLD was about

// A second SIGCHLD before the first is taken is not delivered, so this one names the first process.
static void note(int number, siginfo_t *about, void *context)
{
    (void)context;
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        if (numbers[i] == number)
            received[i] = 1;
    if (number == SIGCHLD && !ended)
        ended = about->si_pid;
}

void signals_take(struct launch *launch)
{
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    const struct sigaction noted = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_NOCLDSTOP};
    sigset_t all;
    sigemptyset(&all);
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        sigaddset(&all, numbers[i]);
    sigprocmask(SIG_BLOCK, &all, &launch->old_mask);
    sigaction(SIGPIPE, &ignored, &launch->old_pipe);
    for (size_t i = 0; i < NUMBER_COUNT; i++) {
        sigaction(numbers[i], &noted, &old_actions[i]);
        // One that is ignored, as nohup does with SIGHUP, stays ignored.
        if (old_actions[i].sa_handler == SIG_IGN && numbers[i] != SIGCHLD)
            sigaction(numbers[i], &ignored, NULL);
    }
}

void signals_restore(const struct launch *launch)
{
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        sigaction(numbers[i], &old_actions[i], NULL);
    sigaction(SIGPIPE, &launch->old_pipe, NULL);
    sigprocmask(SIG_SETMASK, &launch->old_mask, NULL);
}

int signals_wait(struct pollfd *polled, size_t count, uint64_t timeout_ns)
{
    const struct timespec timeout = weir_clock_timespec(timeout_ns);
    sigset_t none;
    sigprocmask(SIG_BLOCK, NULL, &none);
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        sigdelset(&none, numbers[i]);
    return ppoll(polled, count, timeout_ns == UINT64_MAX ? NULL : &timeout, &none);
}

int signals_next(pid_t *out_process)
{
    for (size_t i = 0; i < NUMBER_COUNT; i++) {
        if (!received[i])
            continue;
        received[i] = 0;
        if (numbers[i] == SIGCHLD) {
            *out_process = ended;
            ended = 0;
        }
        return numbers[i];
    }
    return 0;
}
