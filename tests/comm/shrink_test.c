// Communicators of the ranks that are left, on each backend.
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

static void shrink_all(struct comm_rig *rig, struct rank *ranks, uint32_t gone)
{
    for (uint32_t i = 0; i < rig->count; i++) {
        ranks[i] = (struct rank){.rig = rig, .index = i};
        if (i != gone)
            ASSERT_INT_EQ(pthread_create(&ranks[i].thread, NULL, shrink, &ranks[i]), 0);
    }
    for (uint32_t i = 0; i < rig->count; i++)
        if (i != gone)
            pthread_join(ranks[i].thread, NULL);
}

static weir_status all_reduce(struct comm_rig *rig, uint32_t rank, weir_comm *comm)
{
    return weir_queue_all_reduce(rig->queues[rank], comm, rig->dst[rank], 0, rig->src[rank], 0, 1,
                                 WEIR_I32, WEIR_SUM);
}

// The new communicators work, and are numbered without a gap.
static void expect_left(struct comm_rig *rig, struct rank *ranks, uint32_t gone)
{
    const int32_t sum[] = {(int32_t)(rig->count - (gone < rig->count))};
    const int32_t one[] = {1};
    for (uint32_t i = 0, next = 0; i < rig->count; i++) {
        if (i == gone)
            continue;
        ASSERT_OK(ranks[i].status);
        EXPECT_UINT_EQ(weir_comm_rank(ranks[i].left), next++);
        EXPECT_UINT_EQ(weir_comm_count(ranks[i].left), (uint32_t)sum[0]);
        EXPECT_STR_EQ(weir_comm_label(ranks[i].left), "left");
        WEIR_IGNORE(weir_queue_recover(rig->queues[i]));
        comm_rig_write(rig, i, rig->src[i], 0, one, 1);
        EXPECT_OK(all_reduce(rig, i, ranks[i].left));
    }
    for (uint32_t i = 0; i < rig->count; i++)
        if (i != gone)
            comm_rig_expect(rig, i, rig->dst[i], 0, sum, 1);
    for (uint32_t i = 0; i < rig->count; i++)
        weir_comm_destroy(&ranks[i].left);
}

// Rank `gone` has destroyed its communicator, and the others have met its absence.
static void go_on_without(uint32_t gone)
{
    struct comm_rig rig;
    struct rank ranks[COMM_RIG_MOST];
    comm_rig_open(&rig, "", 3, WEIR_PLACE_DEVICE);
    const char *engine = weir_comm_engine(rig.comms[0]);
    weir_comm_destroy(&rig.comms[gone]);
    for (uint32_t i = 0; i < 3; i++)
        if (i != gone)
            EXPECT_OK(all_reduce(&rig, i, rig.comms[i]));
    for (uint32_t i = 0; i < 3; i++)
        if (i != gone)
            COMM_RIG_EXPECT_CAUSE(rig.queues[i], "destroyed the communicator",
                                  "weir_comm_shrink()");
    shrink_all(&rig, ranks, gone);
    EXPECT_STR_EQ(weir_comm_engine(ranks[gone ? 0 : 1].left), engine);
    expect_left(&rig, ranks, gone);
    comm_rig_close(&rig);
}

WEIR_TEST(CommShrink, WithoutTheFirst)
{
    go_on_without(0);
}

WEIR_TEST(CommShrink, WithoutTheLast)
{
    go_on_without(2);
}

// Nothing has failed before: the communicator ends, and each rank says which one has ended it.
COMM_RIG_TEST(CommShrink, AllAreLeft, 2)
{
    struct rank ranks[COMM_RIG_MOST];
    shrink_all(rig, ranks, COMM_RIG_MOST);
    EXPECT_INT_EQ(all_reduce(rig, 0, rig->comms[0]), WEIR_ERROR_COMM);
    COMM_RIG_EXPECT_WORDS("goes on with the ranks of 'grads' that are left", "shrink_test.c:");
    expect_left(rig, ranks, COMM_RIG_MOST);
}

// A call that is under way ends first: the transport carries one call at a time.
COMM_RIG_TEST(CommShrink, WhileACallIsUnderWay, 2)
{
    struct rank ranks[COMM_RIG_MOST];
    for (int i = 0; i < 10; i++)
        EXPECT_OK(all_reduce(rig, 0, rig->comms[0])); // rank 1 does not come
    shrink_all(rig, ranks, COMM_RIG_MOST);
    EXPECT_INT_EQ(weir_queue_sync(rig->queues[0], GUARD_NS), WEIR_ERROR_COMM);
    expect_left(rig, ranks, COMM_RIG_MOST);
}

// The other rank is told what to do: another communicator would have no ranks.
COMM_RIG_TEST(CommShrink, TheOthersAreToldTo, 2)
{
    struct rank ranks[COMM_RIG_MOST];
    for (uint32_t i = 0; i < 2; i++)
        ranks[i] = (struct rank){.rig = rig, .index = i};
    EXPECT_OK(all_reduce(rig, 0, rig->comms[0]));
    ASSERT_INT_EQ(pthread_create(&ranks[1].thread, NULL, shrink, &ranks[1]), 0);
    COMM_RIG_EXPECT_CAUSE(rig->queues[0], "rank 1 goes on with the ranks of 'grads' that are left",
                          "weir_comm_shrink()");
    EXPECT_INT_EQ(weir_comm_error(rig->comms[0]), WEIR_ERROR_COMM);
    COMM_RIG_EXPECT_WORDS("weir_comm_shrink()");
    shrink(&ranks[0]);
    pthread_join(ranks[1].thread, NULL);
    expect_left(rig, ranks, COMM_RIG_MOST);
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
    EXPECT_INT_EQ(weir_comm_shrink(rig->comms[0], NULL, &left), WEIR_ERROR_INVALID);
    COMM_RIG_EXPECT_WORDS("another thread shrinks 'grads'", "shrink_test.c:");
    EXPECT_NULL(left);
    shrink(&ranks[1]);
    pthread_join(ranks[0].thread, NULL);
    expect_left(rig, ranks, COMM_RIG_MOST);
}

static weir_status shrink_in_host_call(void *user)
{
    weir_comm *left;
    EXPECT_INT_EQ(weir_comm_shrink(user, NULL, &left), WEIR_ERROR_INVALID);
    COMM_RIG_EXPECT_WORDS("weir_comm_shrink waits for the other ranks", "shrink_test.c:");
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
