// SIGKILL leaves a process no time to end what it has started, and the ranks' own children would run on. So
// another process waits for its end: at the end of a pipe, of which nothing else has the other side.
#define _GNU_SOURCE // pipe2, close_range

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/launch/launch.h"

// In place of a process group: there is nothing to guard any more.
#define DONE ((pid_t)0)

// In the guard, which has a session of its own: what kills the group of the launch does not reach it.
static void guard(int pipe)
{
    static pid_t groups[RANK_LIMIT];
    size_t count = 0;
    pid_t group;
    ssize_t got;
    while ((got = read(pipe, &group, sizeof group)) == sizeof group ||
           (got < 0 && errno == EINTR)) {
        if (got < 0)
            continue;
        if (group == DONE)
            _exit(CLI_OK);
        if (count < RANK_LIMIT)
            groups[count++] = group;
    }
    for (size_t i = 0; i < count; i++)
        kill(-groups[i], SIGKILL);
    _exit(CLI_OK);
}

// It must not hold a pipe of this process's open.
static void become_guard(int pipe)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    dup2(pipe, STDIN_FILENO);
    close_range(STDIN_FILENO + 1, UINT_MAX, 0);
    guard(STDIN_FILENO);
}

void guard_start(struct launch *launch)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    launch->guarding = fork();
    if (launch->guarding == 0)
        become_guard(ends[0]);
    close(ends[0]);
    launch->guard = launch->guarding < 0 ? -1 : ends[1];
    if (launch->guarding < 0)
        close(ends[1]);
}

void guard_add(const struct launch *launch, pid_t group)
{
    if (launch->guard >= 0)
        (void)!write(launch->guard, &group, sizeof group);
}

void guard_end(struct launch *launch)
{
    if (launch->guard < 0)
        return;
    guard_add(launch, DONE);
    close(launch->guard);
    launch->guard = -1;
    while (waitpid(launch->guarding, NULL, 0) < 0 && errno == EINTR)
        ;
}
