// Ranks as threads, for tests of the transport "local": each joins, runs a body, and leaves.
#ifndef WEIR_TESTS_TRANSPORTS_RANKS_H
#define WEIR_TESTS_TRANSPORTS_RANKS_H

#include <pthread.h>
#include <semaphore.h>
#include <weir/module/transport.h>

#include "tests/transports/host.h"

#define RANKS_MAX 8
#define RANKS_SECOND UINT64_C(1000000000)
// Long enough that a test fails by what it checks, and not by this, on a busy machine.
#define RANKS_PATIENCE (60 * RANKS_SECOND)

struct rank {
    void *group;
    uint32_t rank;
    uint32_t count;
    void *user;
    weir_status status;      // of join, and then of the body
    struct weir_error error; // the last one of the rank's thread
    uint64_t number;         // of rank_call()'s calls
    bool failed;             // its group, before it has left:
    struct weir_transport_cause cause;
};

const struct weir_transport_ops *ranks_ops(void);
// Opened for all tests.
void *ranks_state(void);

// A setup at a rendezvous "process:" or "file:" that no other call has had.
struct weir_transport_setup ranks_setup(const char *wire);
// Joins with ops->join; the error is in rank->error.
weir_status rank_join(struct rank *rank, const struct weir_transport_setup *setup);
// ops->run with what is not set of struct_size, line, file, number and timeout filled in.
weir_status rank_call(struct rank *rank, struct weir_transport_call call);
// ops->split, the same.
weir_status rank_split(struct rank *rank, struct weir_transport_split split, void **out_part);
void rank_leave(struct rank *rank);
// sem_wait(), whatever interrupts it.
void ranks_await(sem_t *semaphore);
// Goes on in a group of the ranks that are left, and leaves the one before. The error is in rank->error.
weir_status rank_shrink(struct rank *rank, uint64_t timeout_ns);

// A rank that joins on a thread of its own. rank_await() waits until it has, or has not.
struct joiner {
    pthread_t thread;
    struct rank rank;
    struct weir_transport_setup setup;
    sem_t *failed; // posted if it has not; NULL: nothing is
};

void rank_start(struct joiner *joiner, uint32_t rank, struct weir_transport_setup setup);
weir_status rank_await(struct joiner *joiner);

// Runs `body` on `count` threads, each with its rank of a new group, and joins them all.
void ranks_run(const char *wire, uint32_t count, weir_status (*body)(struct rank *rank), void *user,
               struct rank *out_ranks);

#endif
