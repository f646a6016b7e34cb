// Children of a program that does not know of them, and may have its own: they send it no signal, and its wait() does not
// see them.
#define _GNU_SOURCE // __WALL
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "layers/opencl/layer.h"

// The environment without what makes a program load libraries.
static char **clean_environment(void)
{
    size_t count = 0;
    while (environ[count])
        count++;
    char **clean = calloc(count + 1, sizeof(char *));
    for (size_t i = 0, used = 0; clean && i < count; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0 &&
            strncmp(environ[i], "OPENCL_LAYERS=", 14) != 0)
            clean[used++] = environ[i];
    return clean;
}

pid_t child_start(char **arguments, int input, int output, int kept)
{
    char **clean = clean_environment();
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    // As fork(), but without handlers, and without a signal to the parent at the end.
    const pid_t child = clean && nowhere >= 0 ? (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0) : -1;
    if (child == 0) {
        dup2(input, STDIN_FILENO);
        dup2(output >= 0 ? output : nowhere, STDOUT_FILENO);
        dup2(nowhere, STDERR_FILENO);
        if (kept >= 0)
            dup2(kept, CHILD_KEPT);
        // The program's own, which it may expect to be closed elsewhere.
        (void)syscall(SYS_close_range, CHILD_KEPT + (kept >= 0), ~0u, 0);
        execve(arguments[0], arguments, clean);
        _exit(127);
    }
    if (nowhere >= 0)
        close(nowhere);
    free(clean);
    return child;
}

bool child_wait(pid_t child, uint64_t deadline_ns)
{
    const uint64_t start = weir_clock_now_ns();
    uint64_t pause_ns = 0;
    int status = 0;
    if (child < 0)
        return false;
    while (waitpid(child, &status, __WALL | WNOHANG) != child) {
        if (weir_clock_pause(start, deadline_ns, &pause_ns))
            continue;
        kill(child, SIGKILL);
        waitpid(child, &status, __WALL);
        return false;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
