// How ranks of one process meet, and in which cases they do not.
#include "tests/support/test.h"
#include "tests/transports/local/ranks.h"

// With some luck the others have not woken when the last one to come aborts: they have joined all the same.
static weir_status abort_at_once(struct rank *rank)
{
    ranks_ops()->abort(rank->group, "the loss is not a number");
    return WEIR_OK;
}

WEIR_TEST(Hub, AllHaveJoinedWhenOneFails)
{
    for (int turn = 0; turn < 50; turn++) {
        struct rank ranks[RANKS_MAX];
        ranks_run("process", 4, abort_at_once, NULL, ranks);
        for (uint32_t i = 0; i < 4; i++)
            ASSERT_INT_EQ(ranks[i].status, WEIR_OK);
    }
    EXPECT_INT_EQ(ranks_blocks(), 1);
}

WEIR_TEST(Hub, TellsThatNoPlaceIsNamed)
{
    static const char *const places[] = {NULL, ""};
    struct rank rank = {.rank = 0};
    for (size_t i = 0; i < 2; i++) {
        struct weir_transport_setup setup = ranks_setup("process");
        setup.count = 2;
        setup.rendezvous = places[i];
        EXPECT_INT_EQ(rank_join(&rank, &setup), WEIR_ERROR_CONFIG);
        EXPECT_CONTAINS(rank.error.message,
                        "'grads': no rendezvous is named, where 2 ranks are to meet");
        EXPECT_CONTAINS(rank.error.remedy, "WEIR_COMM_RENDEZVOUS: tcp://HOST:PORT");
    }
}

WEIR_TEST(Hub, RefusesMoreRanksThanItCanServe)
{
    struct rank rank = {.rank = 0};
    struct weir_transport_setup setup = ranks_setup("process");
    setup.count = 5000;
    EXPECT_INT_EQ(rank_join(&rank, &setup), WEIR_ERROR_UNSUPPORTED);
    EXPECT_CONTAINS(rank.error.message, "at most 4096 ranks, not 5000");
}

WEIR_TEST(Hub, NeedsNoPlaceForOneRank)
{
    struct rank rank = {.rank = 0};
    struct weir_transport_setup setup = ranks_setup("process");
    setup.count = 1;
    setup.rendezvous = NULL;
    EXPECT_INT_EQ(rank_join(&rank, &setup), WEIR_OK);
    EXPECT_INT_EQ(rank_call(&rank, (struct weir_transport_call){.kind = WEIR_BARRIER}), WEIR_OK);
    rank_leave(&rank);
}

// A name is free again as soon as all ranks of a group are there.
WEIR_TEST(Hub, UsesANameAgain)
{
    struct rank first = {.rank = 0};
    struct rank second = {.rank = 0};
    struct weir_transport_setup setup = ranks_setup("process");
    setup.count = 1;
    EXPECT_INT_EQ(rank_join(&first, &setup), WEIR_OK);
    EXPECT_INT_EQ(rank_join(&second, &setup), WEIR_OK);
    EXPECT_INT_EQ(rank_call(&first, (struct weir_transport_call){.kind = WEIR_BARRIER}), WEIR_OK);
    rank_leave(&first);
    EXPECT_INT_EQ(rank_call(&second, (struct weir_transport_call){.kind = WEIR_BARRIER}), WEIR_OK);
    rank_leave(&second);
}
