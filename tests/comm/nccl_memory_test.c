// Every allocation that creating a communicator of NCCL, copying it and reducing take fails once in turn:
// the call, or its queue, has the error, and nothing is leaked. Modules allocate through the library.
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

static void reduce(struct comm_rig *rig, weir_comm *comm)
{
    EXPECT_TRUE(is_told(weir_queue_all_reduce(rig->queues[0], comm, rig->dst[0], 0, rig->src[0], 0,
                                              8, WEIR_I32, WEIR_SUM)));
    EXPECT_TRUE(is_told(weir_queue_sync(rig->queues[0], WEIR_FOREVER)));
}

static void come_and_go(struct comm_rig *rig)
{
    own_comm comm = NULL;
    own_comm copy = NULL;
    weir_status status = weir_comm_create_all(rig->devices, 1, NULL, &comm);
    EXPECT_INT_EQ(comm != NULL, status == WEIR_OK);
    EXPECT_TRUE(is_told(status));
    if (comm) {
        status = weir_comm_duplicate(comm, "copy", &copy);
        EXPECT_INT_EQ(copy != NULL, status == WEIR_OK);
        EXPECT_TRUE(is_told(status));
        reduce(rig, comm);
    }
}

WEIR_TEST(CommNcclMemory, EachAllocationFailsInTurn)
{
    struct comm_rig rig;
    long failed = 0;
    comm_rig_open_ranks(&rig, "", 1);
    come_and_go(&rig); // what is allocated once
    for (long i = 0; i < MOST_ALLOCATIONS; i++) {
        weir_test_fail_allocation(i);
        come_and_go(&rig);
        const bool done = !weir_test_allocation_failed();
        weir_test_fail_allocation(-1);
        WEIR_IGNORE(weir_queue_recover(rig.queues[0]));
        if (done)
            break;
        failed++;
    }
    EXPECT_TRUE(failed > 5 && failed < MOST_ALLOCATIONS);
    comm_rig_close(&rig);
}
