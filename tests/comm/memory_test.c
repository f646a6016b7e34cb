// Every allocation that creating and splitting a communicator and carrying out an exchange take fails
// once in turn: a call or its queue has the error, the other rank is told, and nothing is leaked.
#include "tests/comm/rig.h"
#include "tests/support/memory.h"

enum {
    MOST_ALLOCATIONS = 200,
};

static bool is_told(weir_status status)
{
    return status == WEIR_OK || status == WEIR_ERROR_OUT_OF_MEMORY || status == WEIR_ERROR_COMM;
}

static void come_and_go(struct comm_rig *rig)
{
    own_comm comm = NULL;
    own_comm copy = NULL;
    weir_status status =
        weir_comm_create(rig->device, WEIR_PARAMS(weir_comm, .label = "alone"), &comm);
    EXPECT_INT_EQ(comm != NULL, status == WEIR_OK);
    EXPECT_TRUE(is_told(status));
    if (comm) {
        status = weir_comm_duplicate(comm, "copy", &copy);
        EXPECT_INT_EQ(copy != NULL, status == WEIR_OK);
        EXPECT_TRUE(is_told(status));
    }
}

static void exchange(struct comm_rig *rig)
{
    for (uint32_t r = 0; r < 2; r++) {
        const struct weir_exchange parts[] = {
            {rig->src[r], 16, 2, WEIR_I32, 1 - r, true},
            {rig->src[r], 0, 2, WEIR_I32, 1 - r, false},
        };
        EXPECT_TRUE(is_told(weir_queue_exchange(rig->queues[r], rig->comms[r], parts, 2)));
    }
    for (uint32_t r = 0; r < 2; r++)
        EXPECT_TRUE(is_told(weir_queue_sync(rig->queues[r], WEIR_FOREVER)));
}

WEIR_TEST(CommMemory, EveryAllocationFailsOnce)
{
    long failing = 0;
    bool reached = true;
    for (; reached && failing < MOST_ALLOCATIONS; failing++) {
        struct comm_rig rig;
        comm_rig_open_fake(&rig, "", 2, WEIR_PLACE_DEVICE);
        weir_test_fail_allocation(failing);
        come_and_go(&rig);
        exchange(&rig);
        reached = weir_test_allocation_failed();
        weir_test_fail_allocation(-1);
        comm_rig_close(&rig);
    }
    EXPECT_FALSE(reached);
    EXPECT_INT_GT(failing, 5);
}
