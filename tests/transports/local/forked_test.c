// A child of fork() holds no listener of a meeting, and closes nothing of its own. That it holds no connection is shown in
// processes_test.c.
#define _DEFAULT_SOURCE // syscall()
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
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

#define OTHERS 64

// The child gives the free numbers to ends of a connection of its own, and then ends what it has inherited:
// nothing of that is closed, or sent to. Returns a number for what is wrong.
static int end_inherited(struct rank *rank)
{
    int pair[2];
    int others[OTHERS];
    char byte;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return 1;
    for (int i = 0; i < OTHERS; i++)
        others[i] = dup(pair[1]);
    if (rank_barrier(rank) != WEIR_ERROR_COMM || !strstr(rank->error.message, "a child of fork()"))
        return 2;
    if (rank_shrink(rank, 1) != WEIR_ERROR_COMM)
        return 2;
    ranks_ops()->abort(rank->group, "the child ends");
    rank_leave(rank);
    for (int i = 0; i < OTHERS; i++)
        if (others[i] < 0 || fcntl(others[i], F_GETFD) < 0)
            return 3;
    if (recv(pair[0], &byte, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN)
        return 4;
    return 0;
}

// A child may have groups of its own.
static int join_own(void)
{
    struct weir_transport_setup setup = ranks_setup("file");
    struct rank rank = {.rank = 0};
    setup.count = 1;
    if (rank_join(&rank, &setup) != WEIR_OK)
        return 5;
    const int status = rank_barrier(&rank) != WEIR_OK ? 6 : 0;
    rank_leave(&rank);
    return status;
}

static weir_status fork_and_end(struct rank *rank)
{
    int *wrong = rank->user;
    weir_status status = rank_barrier(rank);
    if (!status && rank->rank == 0) {
        const pid_t child = fork();
        int ended = 0;
        if (child == 0) {
            const int found = end_inherited(rank);
            _exit(found ? found : join_own());
        }
        if (child > 0 && waitpid(child, &ended, 0) == child && WIFEXITED(ended))
            *wrong = WEXITSTATUS(ended);
    }
    return status ? status : rank_barrier(rank);
}

WEIR_TEST(Forked, EndsNothingOfItsOwn)
{
    int wrong = -1;
    ranks_expect("file", 2, fork_and_end, &wrong);
    EXPECT_INT_EQ(wrong, 0);
}
