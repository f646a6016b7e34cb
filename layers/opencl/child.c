// Children of a program that does not know of them, and may have its own: they send it no signal, and its wait() does not
// see them.
#define _GNU_SOURCE // __WALL
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "layers/opencl/layer.h"

enum {
    MOST = 1 << 20 // descriptors
};

// The environment without what makes a program load libraries.
static char **clean_environment(void)
{
    size_t count = 0;
    while (environ[count])
        count++;
    char **clean = calloc(count + 1, sizeof(char *));
    for (size_t i = 0, used = 0; clean && i < count; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0 &&
            strncmp(environ[i], "LD_AUDIT=", 9) != 0 &&
            strncmp(environ[i], "OPENCL_LAYERS=", 14) != 0)
            clean[used++] = environ[i];
    return clean;
}

// A program that has closed its standard streams may have these in their places.
static bool place_descriptors(int input, int output, int errors, int kept)
{
    int from[CHILD_KEPT + 1] = {input, output, errors, kept};
    const int count = CHILD_KEPT + (kept >= 0);
    bool placed = true;
    for (int i = 0; i < count; i++)
        from[i] = fcntl(from[i], F_DUPFD, CHILD_KEPT + 1);
    for (int i = 0; i < count; i++)
        placed = placed && dup2(from[i], i) == i;
    // The program's own, which it may expect to be closed elsewhere. Before Linux 5.9 there is no such call.
    struct rlimit limit = {.rlim_cur = 0};
    if (syscall(SYS_close_range, count, ~0u, 0) != 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0)
        for (int i = count; i < (int)(limit.rlim_cur < MOST ? limit.rlim_cur : MOST); i++)
            close(i);
    return placed;
}

pid_t child_start(char **arguments, int input, int output, int kept)
{
    char **clean = clean_environment();
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    // As fork(), but without handlers, and without a signal to the parent at the end.
    const pid_t child = clean && nowhere >= 0 ? (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0) : -1;
    if (child == 0) {
        if (place_descriptors(input, output >= 0 ? output : nowhere, nowhere, kept))
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
        while (waitpid(child, &status, __WALL) < 0 && errno == EINTR)
            continue;
        return false;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
