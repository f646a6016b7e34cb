// A rank that is stopped in the middle of a call: the others hear of a failure meanwhile, also of one that
// has come further than the stopped one. WIRE is defined in the BUILD file.
// clang-tidy: -DWIRE='"process"'
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/support/test.h"
#include "tests/transports/local/ranks.h"

enum {
    RANKS = 3,
    COUNT = 1 << 20
};

static float memory[RANKS][COUNT];

static struct {
    pthread_t thread; // of rank 2
    sem_t begun;      // posted by each rank
    sem_t held;
    int gate[2];
} stop;

static void hold(int number)
{
    char byte;
    (void)number;
    sem_post(&stop.held);
    (void)!read(stop.gate[0], &byte, 1);
}

static void await(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        continue;
}

// Stops rank 2, and aborts rank 1's call when the others wait for it.
static void *stop_and_abort(void *argument)
{
    struct rank *rank = argument;
    for (int i = 0; i < RANKS; i++)
        await(&stop.begun);
    pthread_kill(stop.thread, SIGUSR1);
    await(&stop.held);
    weir_clock_sleep_ns(RANKS_SECOND / 20);
    ranks_ops()->abort(rank->group, "the loss is not a number");
    return NULL;
}

static weir_status sum_until_failure(struct rank *rank)
{
    weir_status status = WEIR_OK;
    for (int i = 0; status == WEIR_OK; i++) {
        if (i == 2)
            sem_post(&stop.begun);
        status = rank_call(rank, (struct weir_transport_call){.kind = WEIR_ALL_REDUCE,
                                                              .element = WEIR_F32,
                                                              .reduction = WEIR_MAXIMUM,
                                                              .count = COUNT,
                                                              .src = memory[rank->rank],
                                                              .dst = memory[rank->rank],
                                                              .timeout_ns = RANKS_PATIENCE / 3});
    }
    return status;
}

static weir_status be_aborted(struct rank *rank)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, stop_and_abort, rank) != 0)
        return WEIR_ERROR_SYSTEM;
    const weir_status status = sum_until_failure(rank);
    pthread_join(thread, NULL);
    return status;
}

static weir_status take_part(struct rank *rank)
{
    if (rank->rank == 1)
        return be_aborted(rank);
    if (rank->rank == 2)
        stop.thread = pthread_self();
    const weir_status status = sum_until_failure(rank);
    if (rank->rank == 0) // the stopped one may go on
        (void)!write(stop.gate[1], "", 1);
    return status;
}

WEIR_TEST(Stopped, OthersHearOfAFailure)
{
    const struct sigaction action = {.sa_handler = hold};
    struct rank ranks[RANKS_MAX];
    ASSERT_INT_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    ASSERT_INT_EQ(pipe(stop.gate), 0);
    sem_init(&stop.begun, 0, 0);
    sem_init(&stop.held, 0, 0);
    ranks_run(WIRE, RANKS, take_part, NULL, ranks);
    for (int i = 0; i < RANKS; i++) {
        EXPECT_INT_EQ(ranks[i].status, WEIR_ERROR_COMM);
        EXPECT_CONTAINS(ranks[i].error.message, "rank 1 has aborted 'grads': the loss");
    }
    sem_destroy(&stop.held);
    sem_destroy(&stop.begun);
    close(stop.gate[0]);
    close(stop.gate[1]);
}
