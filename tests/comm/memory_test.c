// Every allocation that creating, copying, using and shrinking a communicator takes fails once in turn: a call or its
// queue has the error, the other rank is told, and nothing is leaked. Modules allocate through the library. The
// environment names the backend and, with an engine, the devices.

#include "tests/comm/rig.h"
#include "tests/support/memory.h"

enum {
    MOST_ALLOCATIONS = 200,
};

static bool is_told(weir_status status)
{
    return status == WEIR_OK || status == WEIR_ERROR_OUT_OF_MEMORY || status == WEIR_ERROR_COMM ||
           status == WEIR_ERROR_SYSTEM;
}

static void come_and_go(struct comm_rig *rig)
{
    own_comm comm = NULL;
    own_comm copy = NULL;
    own_comm left = NULL;
    weir_status status = weir_comm_create_all(rig->devices, 1, NULL, &comm);
    EXPECT_INT_EQ(comm != NULL, status == WEIR_OK);
    EXPECT_TRUE(is_told(status));
    if (!comm)
        return;
    status = weir_comm_duplicate(comm, "copy", &copy);
    EXPECT_INT_EQ(copy != NULL, status == WEIR_OK);
    EXPECT_TRUE(is_told(status));
    EXPECT_TRUE(is_told(weir_queue_all_reduce(rig->queues[0], comm, rig->dst[0], 0, rig->src[0], 0,
                                              8, WEIR_I32, WEIR_SUM)));
    EXPECT_TRUE(is_told(weir_queue_sync(rig->queues[0], WEIR_FOREVER)));
    WEIR_IGNORE(
        weir_queue_recover(rig->queues[0])); // else it refuses what the other rank waits for
    status = weir_comm_shrink(comm, "left", &left);
    EXPECT_INT_EQ(left != NULL, status == WEIR_OK);
    EXPECT_TRUE(is_told(status) || status == WEIR_ERROR_UNSUPPORTED); // of the transport fake
}

// Of the rig's ranks, if it has communicators.
static void exchange(struct comm_rig *rig)
{
    for (uint32_t r = 0; r < 2 && rig->comms[r]; r++) {
        const struct weir_exchange parts[] = {
            {rig->src[r], 16, 2, WEIR_I32, 1 - r, true},
            {rig->src[r], 0, 2, WEIR_I32, 1 - r, false},
        };
        EXPECT_TRUE(is_told(weir_queue_exchange(rig->queues[r], rig->comms[r], parts, 2)));
    }
    for (uint32_t r = 0; r < 2 && rig->comms[r]; r++)
        EXPECT_TRUE(is_told(weir_queue_sync(rig->queues[r], WEIR_FOREVER)));
}

WEIR_TEST(CommMemory, EveryAllocationFailsOnce)
{
    const bool has_engine = getenv("WEIR_TEST_COMM_DEVICES");
    long failing = -1; // what is allocated once
    bool reached = true;
    for (; reached && failing < MOST_ALLOCATIONS; failing++) {
        own_comm_rig rig = {0};
        if (has_engine)
            comm_rig_open_ranks(&rig, "", 1);
        else
            comm_rig_open_fake(&rig, "", 2, WEIR_PLACE_DEVICE);
        weir_test_fail_allocation(failing);
        come_and_go(&rig);
        exchange(&rig);
        reached = failing < 0 || weir_test_allocation_failed();
        weir_test_fail_allocation(-1);
    }
    EXPECT_FALSE(reached);
    EXPECT_INT_GT(failing, 5);
}
