// Communicators of the ranks that are left, on each backend.
#include <pthread.h>
#include <sched.h>

#include "tests/comm/rig.h"

struct rank {
    struct comm_rig *rig;
    uint32_t index;
    weir_comm *left;
    weir_status status;
    pthread_t thread;
};

static void *shrink(void *argument)
{
    struct rank *rank = argument;
    rank->status = weir_comm_shrink(rank->rig->comms[rank->index], "left", &rank->left);
    return NULL;
}

// `gone`: a bit for each rank that is.
static bool is_left(uint32_t gone, uint32_t rank)
{
    return !(gone >> rank & 1);
}

static void shrink_all(struct comm_rig *rig, struct rank *ranks, uint32_t gone)
{
    for (uint32_t i = 0; i < rig->count; i++) {
        ranks[i] = (struct rank){.rig = rig, .index = i};
        if (is_left(gone, i))
            ASSERT_INT_EQ(pthread_create(&ranks[i].thread, NULL, shrink, &ranks[i]), 0);
    }
    for (uint32_t i = 0; i < rig->count; i++)
        if (is_left(gone, i))
            pthread_join(ranks[i].thread, NULL);
}

// The new communicators work, and are numbered without a gap.
static void expect_left(struct comm_rig *rig, struct rank *ranks, uint32_t gone)
{
    const int32_t one[] = {1};
    int32_t sum[] = {0};
    for (uint32_t i = 0; i < rig->count; i++)
        sum[0] += is_left(gone, i);
    for (uint32_t i = 0, next = 0; i < rig->count; i++) {
        if (!is_left(gone, i))
            continue;
        ASSERT_OK(ranks[i].status);
        EXPECT_UINT_EQ(weir_comm_rank(ranks[i].left), next++);
        EXPECT_UINT_EQ(weir_comm_count(ranks[i].left), (uint32_t)sum[0]);
        EXPECT_STR_EQ(weir_comm_label(ranks[i].left), "left");
        WEIR_IGNORE(weir_queue_recover(rig->queues[i]));
        comm_rig_write(rig, i, rig->src[i], 0, one, 1);
        EXPECT_OK(COMM_RIG_REDUCE_ON(rig, i, rig->queues[i], ranks[i].left, 1));
    }
    for (uint32_t i = 0; i < rig->count; i++)
        if (is_left(gone, i))
            comm_rig_expect(rig, i, rig->dst[i], 0, sum, 1);
    for (uint32_t i = 0; i < rig->count; i++)
        weir_comm_destroy(&ranks[i].left);
}

// Those that are gone have destroyed their communicators, and the others have met their absence.
static void lose(struct comm_rig *rig, uint32_t gone)
{
    for (uint32_t i = 0; i < rig->count; i++)
        if (!is_left(gone, i))
            weir_comm_destroy(&rig->comms[i]);
    for (uint32_t i = 0; i < rig->count; i++)
        if (is_left(gone, i))
            EXPECT_OK(COMM_RIG_REDUCE(rig, i, 1));
    for (uint32_t i = 0; i < rig->count; i++)
        if (is_left(gone, i))
            COMM_RIG_EXPECT_CAUSE(rig->queues[i], "destroyed the communicator",
                                  "weir_comm_shrink()");
}

WEIR_TEST(CommShrink, ToThoseThatHaveNotLeft)
{
    static const struct {
        uint32_t count, gone;
    } rows[] = {{3, 0x1}, {3, 0x4}, {4, 0x9}, {3, 0x3}};
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        own_comm_rig rig = {0};
        struct rank ranks[COMM_RIG_MOST];
        comm_rig_open(&rig, "", rows[row].count, WEIR_PLACE_DEVICE);
        const char *engine = weir_comm_engine(rig.comms[0]);
        lose(&rig, rows[row].gone);
        shrink_all(&rig, ranks, rows[row].gone);
        for (uint32_t i = 0; i < rig.count; i++)
            if (is_left(rows[row].gone, i))
                EXPECT_STR_EQ(weir_comm_engine(ranks[i].left), engine);
        expect_left(&rig, ranks, rows[row].gone);
    }
}

COMM_RIG_TEST(CommShrink, Again, 3)
{
    struct rank ranks[COMM_RIG_MOST];
    shrink_all(rig, ranks, 0);
    for (uint32_t i = 0; i < 3; i++) {
        weir_comm_destroy(&rig->comms[i]);
        rig->comms[i] = ranks[i].left;
    }
    lose(rig, 0x2);
    shrink_all(rig, ranks, 0x2);
    expect_left(rig, ranks, 0x2);
}

// Nothing has failed before: the communicator ends, and each rank says which one has ended it.
COMM_RIG_TEST(CommShrink, AllAreLeft, 2)
{
    struct rank ranks[COMM_RIG_MOST];
    shrink_all(rig, ranks, 0);
    EXPECT_FAILURE(COMM_RIG_REDUCE(rig, 0, 1), WEIR_ERROR_COMM,
                   "goes on with the ranks of 'grads' that are left", "shrink_test.c:");
    expect_left(rig, ranks, 0);
}

// A call that is under way ends first: the transport carries one call at a time.
COMM_RIG_TEST(CommShrink, WhileACallIsUnderWay, 2)
{
    struct rank ranks[COMM_RIG_MOST];
    for (int i = 0; i < 10; i++)
        EXPECT_OK(COMM_RIG_REDUCE(rig, 0, 1)); // rank 1 does not come
    shrink_all(rig, ranks, 0);
    EXPECT_INT_EQ(weir_queue_sync(rig->queues[0], GUARD_NS), WEIR_ERROR_COMM);
    expect_left(rig, ranks, 0);
}

// The other rank is told what to do: another communicator would have no ranks.
COMM_RIG_TEST(CommShrink, TheOthersAreToldTo, 2)
{
    struct rank ranks[COMM_RIG_MOST];
    for (uint32_t i = 0; i < 2; i++)
        ranks[i] = (struct rank){.rig = rig, .index = i};
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, 1));
    ASSERT_INT_EQ(pthread_create(&ranks[1].thread, NULL, shrink, &ranks[1]), 0);
    COMM_RIG_EXPECT_CAUSE(rig->queues[0], "rank 1 goes on with the ranks of 'grads' that are left",
                          "weir_comm_shrink()");
    EXPECT_FAILURE(weir_comm_error(rig->comms[0]), WEIR_ERROR_COMM, "weir_comm_shrink()");
    shrink(&ranks[0]);
    pthread_join(ranks[1].thread, NULL);
    expect_left(rig, ranks, 0);
}

// Rank 0 waits for rank 1 on one thread, and is refused on another one.
COMM_RIG_TEST(CommShrink, OnOneThread, 2)
{
    struct rank ranks[COMM_RIG_MOST] = {{.index = 0}};
    weir_comm *left;
    for (uint32_t i = 0; i < 2; i++)
        ranks[i] = (struct rank){.rig = rig, .index = i};
    ASSERT_INT_EQ(pthread_create(&ranks[0].thread, NULL, shrink, &ranks[0]), 0);
    while (weir_comm_error(rig->comms[0]) == WEIR_OK)
        sched_yield(); // it has not begun
    EXPECT_FAILURE(weir_comm_shrink(rig->comms[0], NULL, &left), WEIR_ERROR_INVALID,
                   "another thread shrinks 'grads'", "shrink_test.c:");
    EXPECT_NULL(left);
    shrink(&ranks[1]);
    pthread_join(ranks[0].thread, NULL);
    expect_left(rig, ranks, 0);
}

static weir_status shrink_in_host_call(void *user)
{
    weir_comm *left;
    EXPECT_FAILURE(weir_comm_shrink(user, NULL, &left), WEIR_ERROR_INVALID,
                   "weir_comm_shrink: a host call may submit work, and may not wait",
                   "shrink_test.c:");
    return WEIR_OK;
}

COMM_RIG_TEST(CommShrink, Refusals, 1)
{
    weir_comm *left;
    EXPECT_INT_EQ(weir_comm_shrink(NULL, NULL, &left), WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(weir_comm_shrink(rig->comms[0], NULL, NULL), WEIR_ERROR_INVALID);
    EXPECT_OK(weir_queue_host_call(rig->queues[0], shrink_in_host_call, rig->comms[0]));
    EXPECT_OK(weir_queue_sync(rig->queues[0], GUARD_NS));
    EXPECT_OK(weir_comm_error(rig->comms[0]));
}
