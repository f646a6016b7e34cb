// Groups of the ranks that are left.
#include <pthread.h>

#include "tests/support/test.h"
#include "tests/transports/local/ranks.h"

struct plan {
    uint32_t leaving; // a bit for each rank that leaves before
    uint64_t timeout_ns;
    uint32_t late; // a rank that comes when the others have gone on; RANKS_MAX: none
    sem_t gone_on; // posted by each of the others
    pthread_barrier_t joined;
};

// The sum over the ranks of a group of 1, of each.
static weir_status count_ranks(struct rank *rank)
{
    int32_t one = 1;
    int32_t sum = 0;
    const weir_status status = rank_call(rank, (struct weir_transport_call){.kind = WEIR_ALL_REDUCE,
                                                                            .element = WEIR_I32,
                                                                            .reduction = WEIR_SUM,
                                                                            .count = 1,
                                                                            .src = &one,
                                                                            .dst = &sum});
    return status == WEIR_OK && (uint32_t)sum != rank->count ? WEIR_ERROR_INVALID : status;
}

static void await_others(struct plan *plan, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        ranks_await(&plan->gone_on);
}

static weir_status go_on(struct rank *rank)
{
    struct plan *plan = rank->user;
    const uint32_t count = rank->count;
    const bool is_late = rank->rank == plan->late;
    pthread_barrier_wait(&plan->joined); // what fails while others join would fail their join
    if (plan->leaving & 1u << rank->rank)
        return WEIR_OK;
    if (plan->leaving && count_ranks(rank) != WEIR_ERROR_COMM)
        return WEIR_ERROR_INVALID;
    if (is_late)
        await_others(plan, count);
    weir_status status = rank_shrink(rank, plan->timeout_ns);
    if (status == WEIR_OK)
        status = count_ranks(rank);
    if (!is_late)
        sem_post(&plan->gone_on);
    return status;
}

static void run(struct plan plan, uint32_t count, struct rank *ranks)
{
    sem_init(&plan.gone_on, 0, 0);
    pthread_barrier_init(&plan.joined, NULL, count);
    ranks_run("file", count, go_on, &plan, ranks);
    pthread_barrier_destroy(&plan.joined);
    sem_destroy(&plan.gone_on);
    EXPECT_INT_EQ(ranks_blocks(), 1);
}

static void expect_left(const struct rank *ranks, uint32_t count, uint32_t leaving)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++) {
        EXPECT_INT_EQ(ranks[i].status, WEIR_OK);
        if (!(leaving & 1u << i))
            EXPECT_UINT_EQ(ranks[i].rank, left++);
    }
    for (uint32_t i = 0; i < count; i++)
        if (!(leaving & 1u << i))
            EXPECT_UINT_EQ(ranks[i].count, left);
}

static void leave_and_go_on(uint32_t count, uint32_t leaving)
{
    struct rank ranks[RANKS_MAX];
    run((struct plan){.leaving = leaving, .timeout_ns = RANKS_PATIENCE, .late = RANKS_MAX}, count,
        ranks);
    expect_left(ranks, count, leaving);
}

WEIR_TEST(Shrink, ToThoseThatHaveNotLeft)
{
    leave_and_go_on(4, 0x4);
    leave_and_go_on(4, 0x1);
    leave_and_go_on(4, 0x8);
    leave_and_go_on(5, 0x13);
}

WEIR_TEST(Shrink, ToOne)
{
    leave_and_go_on(2, 0x1);
    leave_and_go_on(3, 0x3);
    leave_and_go_on(1, 0);
}

// Nothing has failed before.
WEIR_TEST(Shrink, ToAll)
{
    leave_and_go_on(3, 0);
}

// The others do not wait for it for ever, and it is told.
static void go_on_without(uint32_t late)
{
    struct rank ranks[RANKS_MAX];
    run((struct plan){.timeout_ns = 6 * RANKS_SECOND, .late = late}, 3, ranks);
    for (uint32_t i = 0, left = 0; i < 3; i++) {
        if (i == late)
            continue;
        EXPECT_INT_EQ(ranks[i].status, WEIR_OK);
        EXPECT_UINT_EQ(ranks[i].rank, left++);
        EXPECT_UINT_EQ(ranks[i].count, 2);
    }
    EXPECT_INT_EQ(ranks[late].status, WEIR_ERROR_COMM);
    EXPECT_CONTAINS(ranks[late].error.message,
                    "'grads': the other ranks have gone on without rank");
}

WEIR_TEST(Shrink, WithoutOneThatIsLate)
{
    go_on_without(2);
    go_on_without(0);
}

static weir_status shrink_twice(struct rank *rank)
{
    pthread_barrier_wait(rank->user); // as above
    weir_status status = rank_shrink(rank, RANKS_PATIENCE);
    pthread_barrier_wait(rank->user);
    if (status == WEIR_OK && rank->rank == 1)
        return WEIR_OK; // leaves
    if (status == WEIR_OK && count_ranks(rank) == WEIR_OK)
        return WEIR_ERROR_INVALID;
    return status == WEIR_OK ? rank_shrink(rank, RANKS_PATIENCE) : status;
}

WEIR_TEST(Shrink, Again)
{
    struct rank ranks[RANKS_MAX];
    pthread_barrier_t joined;
    pthread_barrier_init(&joined, NULL, 3);
    ranks_run("file", 3, shrink_twice, &joined, ranks);
    pthread_barrier_destroy(&joined);
    for (uint32_t i = 0; i < 3; i++)
        EXPECT_INT_EQ(ranks[i].status, WEIR_OK);
    EXPECT_UINT_EQ(ranks[0].count, 2);
    EXPECT_UINT_EQ(ranks[2].rank, 1);
}

// A rank alone, so that none waits in vain: each allocation fails once, and then all succeeds.
static weir_status shrink_without_memory(struct rank *rank)
{
    weir_status status = WEIR_ERROR_OUT_OF_MEMORY;
    for (long allowed = 0; status != WEIR_OK && allowed < 20; allowed++) {
        ranks_fail_after(allowed);
        status = rank_shrink(rank, RANKS_PATIENCE);
        ranks_fail_after(-1);
        if (status != WEIR_OK && status != WEIR_ERROR_OUT_OF_MEMORY)
            return status;
    }
    return status;
}

WEIR_TEST(Shrink, NoMemory)
{
    struct rank ranks[RANKS_MAX];
    ranks_run("file", 1, shrink_without_memory, NULL, ranks);
    EXPECT_INT_EQ(ranks[0].status, WEIR_OK);
    EXPECT_INT_EQ(ranks_blocks(), 1);
}
