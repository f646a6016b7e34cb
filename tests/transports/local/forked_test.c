// A child of fork() holds no socket of the transport: neither those of a group, nor the listener of a meeting.
// The parent's go on. RANKS_MEMORY is the setting `memory`.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
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

struct observed {
    int own;
    int of_child;
};

static weir_status barrier(struct rank *rank)
{
    return rank_call(rank, (struct weir_transport_call){.kind = WEIR_BARRIER});
}

// The ranks share a process, so its sockets are those of both.
static weir_status fork_within(struct rank *rank)
{
    static float numbers[2][40000];
    struct observed *observed = rank->user;
    void *part = NULL;
    weir_status status =
        rank_split(rank, (struct weir_transport_split){.label = "part", .color = 0}, &part);
    if (!status)
        status = barrier(rank);
    if (!status && rank->rank == 0) {
        observed->own = count_sockets();
        observed->of_child = count_sockets_of_child();
    }
    if (part)
        ranks_ops()->leave(part);
    if (status)
        return status;
    return rank_call(rank, (struct weir_transport_call){.kind = WEIR_ALL_REDUCE,
                                                        .element = WEIR_F32,
                                                        .reduction = WEIR_SUM,
                                                        .count = 40000,
                                                        .src = numbers[rank->rank],
                                                        .dst = numbers[rank->rank]});
}

WEIR_TEST(Forked, HoldsNoConnection)
{
    struct rank ranks[2];
    struct observed observed = {0, -1};
    const int before = count_sockets();
    ranks_run("file", 2, fork_within, &observed, ranks);
    for (int i = 0; i < 2; i++)
        EXPECT_INT_EQ(ranks[i].status, WEIR_OK);
    EXPECT_INT_GT(observed.own, before);
    EXPECT_INT_EQ(observed.of_child, before);
    EXPECT_INT_EQ(count_sockets(), before);
}

static void *join_first(void *user)
{
    struct rank *rank = user;
    const struct weir_transport_setup *setup = rank->user;
    rank->status = rank_join(rank, setup);
    return NULL;
}

// Rank 0 listens and waits.
WEIR_TEST(Forked, HoldsNoListener)
{
    struct weir_transport_setup setup = ranks_setup("file");
    setup.count = 2;
    struct rank first = {.user = &setup};
    struct rank second = {.rank = 1};
    pthread_t thread;
    const int before = count_sockets();
    ASSERT_INT_EQ(pthread_create(&thread, NULL, join_first, &first), 0);
    while (access(setup.rendezvous + strlen("file:"), F_OK) != 0)
        weir_clock_sleep_ns(RANKS_SECOND / 1000);
    EXPECT_INT_GT(count_sockets(), before);
    EXPECT_INT_EQ(count_sockets_of_child(), before);
    second.status = rank_join(&second, &setup);
    pthread_join(thread, NULL);
    EXPECT_INT_EQ(first.status, WEIR_OK);
    EXPECT_INT_EQ(second.status, WEIR_OK);
    rank_leave(&first);
    rank_leave(&second);
}
