// A child of fork() holds no listener of a meeting. That it holds no connection is shown in processes_test.c.
#define _DEFAULT_SOURCE // syscall()
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/support/test.h"
#include "tests/transports/local/ranks.h"

#define MOST_FILES 1024

// By their names, which uses no descriptor that another thread may close.
static int count_sockets(void)
{
    char path[32];
    char name[32];
    int count = 0;
    for (int i = 0; i < MOST_FILES; i++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", i);
        count += readlink(path, name, sizeof name) > 7 && memcmp(name, "socket:", 7) == 0;
    }
    return count;
}

// Of a child that is forked now; -1 if it does not tell.
static int count_sockets_of_child(void)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0)
        _exit(count_sockets());
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)
               ? WEXITSTATUS(status)
               : -1;
}

// Rank 0 listens and waits.
WEIR_TEST(Forked, HoldsNoListener)
{
    const struct weir_transport_setup setup = ranks_setup("file");
    struct joiner joiners[2] = {{.failed = NULL}};
    const int before = count_sockets();
    rank_start(&joiners[0], 0, setup);
    while (access(setup.rendezvous + strlen("file:"), F_OK) != 0)
        weir_clock_sleep_ns(RANKS_SECOND / 1000);
    EXPECT_INT_GT(count_sockets(), before);
    EXPECT_INT_EQ(count_sockets_of_child(), before);
    rank_start(&joiners[1], 1, setup);
    ranks_expect_joined(joiners, 2);
}

// Without handlers, as posix_spawn() and vfork(), and as every child before its handlers: it has the listener of a meeting
// that is over, and a next one at the same name waits until it has not.
WEIR_TEST(Forked, HoldsTheNameOfAMeetingForAWhile)
{
    const struct weir_transport_setup setup = ranks_setup("process");
    struct joiner joiners[2] = {{.failed = NULL}};
    const int before = count_sockets();
    rank_start(&joiners[0], 0, setup);
    while (count_sockets() == before)
        weir_clock_sleep_ns(RANKS_SECOND / 1000);
    const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        poll(NULL, 0, 200);
        _exit(0);
    }
    ASSERT_INT_GT(child, 0);
    rank_start(&joiners[1], 1, setup);
    ranks_expect_joined(joiners, 2);
    rank_start(&joiners[0], 1, setup);
    weir_clock_sleep_ns(RANKS_SECOND / 50); // it knocks
    rank_start(&joiners[1], 0, setup);
    ranks_expect_joined(joiners, 2);
    EXPECT_INT_EQ(waitpid(child, NULL, 0), child);
}
