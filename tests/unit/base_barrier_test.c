// The barrier of the rare side, where the kernel refuses it later.
#define _GNU_SOURCE // syscall()
#include "base/barrier.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

static bool is_refused;

// The linker puts this in the place of syscall(), which only the barrier calls here.
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
    va_list arguments;
    va_start(arguments, number);
    const int command = va_arg(arguments, int);
    va_end(arguments);
    if (is_refused) {
        errno = EPERM;
        return -1;
    }
    return __real_syscall(number, command, 0, 0);
}

// Runs the barrier in a child. Returns how that ended; `text` gets what it says on standard error.
static int run_heavy(bool refused, char *text, size_t size)
{
    int ends[2];
    int ended = -1;
    if (pipe(ends) != 0)
        return -1;
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        is_refused = refused;
        weir_barrier_heavy();
        _exit(0);
    }
    close(ends[1]);
    const ssize_t got = child > 0 ? read(ends[0], text, size - 1) : 0;
    text[got > 0 ? got : 0] = '\0';
    close(ends[0]);
    if (child > 0)
        waitpid(child, &ended, 0);
    return ended;
}

WEIR_TEST(Barrier, EndsTheProgramIfTheKernelRefusesItLater)
{
    char text[512];
    weir_barrier_init();
    if (!weir_barrier_is_shared)
        WEIR_SKIP("the kernel has no membarrier(2), or a filter of system calls refuses it");
    EXPECT_INT_EQ(run_heavy(false, text, sizeof text), 0);
    const int ended = run_heavy(true, text, sizeof text);
    EXPECT_TRUE(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGABRT);
    EXPECT_TRUE(strstr(text, "membarrier") && strstr(text, "Operation not permitted"));
}
