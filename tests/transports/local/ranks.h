// Ranks as threads, for tests of the transport "local": each joins, runs a body, and leaves.
#ifndef WEIR_TESTS_TRANSPORTS_RANKS_H
#define WEIR_TESTS_TRANSPORTS_RANKS_H

#include <pthread.h>
#include <semaphore.h>

#include "tests/transports/rank.h"

#define RANKS_MAX 8

// A setup at a rendezvous "process:" or "file:" that no other call has had.
struct weir_transport_setup ranks_setup(const char *wire);
// sem_wait(), whatever interrupts it.
void ranks_await(sem_t *semaphore);
// Goes on in a group of the ranks that are left, and leaves the one before. The error is in rank->error.
weir_status rank_shrink(struct rank *rank, uint64_t timeout_ns);

// A rank that joins on a thread of its own. rank_await() waits until it has, or has not.
struct joiner {
    pthread_t thread;
    struct rank rank;
    struct weir_transport_setup setup;
    sem_t *failed;                          // posted if it has not; NULL: nothing is
    weir_status (*body)(struct rank *rank); // NULL: it stays
};

void rank_start(struct joiner *joiner, uint32_t rank, struct weir_transport_setup setup);
weir_status rank_await(struct joiner *joiner);
// All of them have joined, and leave.
void ranks_expect_joined(struct joiner *joiners, int count);

// The call, or what it was, has come to that status, and the rank's error has the words. For files with tests/support/test.h.
#define EXPECT_RANK(call, wanted, rank, words)        \
    do {                                              \
        EXPECT_INT_EQ(call, wanted);                  \
        EXPECT_CONTAINS((rank).error.message, words); \
    } while (0)

// Runs `body` on `count` threads, each with its rank of a new group, and joins them all.
void ranks_run(const char *wire, uint32_t count, weir_status (*body)(struct rank *rank), void *user,
               struct rank *out_ranks);
// The same with a body that goes well on all ranks.
void ranks_expect(const char *wire, uint32_t count, weir_status (*body)(struct rank *rank),
                  void *user);

#endif
