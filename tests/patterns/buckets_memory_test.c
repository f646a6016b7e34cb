// Every allocation that creating buckets takes fails once in turn: nothing is made, nothing is leaked, and
// the communicator is aborted, so that other ranks do not wait.
#include "tests/patterns/buckets_rig.h"
#include "tests/support/memory.h"

enum {
    MOST_ALLOCATIONS = 400,
};

static struct buckets_rig rig;

// An allocation of the queue's worker or of the transport fails the communicator.
static bool is_told(weir_status status)
{
    return status == WEIR_ERROR_OUT_OF_MEMORY || status == WEIR_ERROR_COMM;
}

static void create_with(size_t cap_bytes)
{
    bool all_done = false;
    for (long i = 0; i < MOST_ALLOCATIONS && !all_done; i++) {
        buckets_rig_open(&rig, 1);
        rig.params.cap_bytes = cap_bytes;
        weir_test_fail_allocation(i);
        const weir_status status =
            weir_buckets_create_all(&rig.params, rig.comm.comms, 1, rig.buckets);
        all_done = !weir_test_allocation_failed();
        weir_test_fail_allocation(-1);
        EXPECT_INT_EQ(rig.buckets[0] != NULL, status == WEIR_OK);
        EXPECT_TRUE(status == WEIR_OK || is_told(status));
        EXPECT_INT_EQ(weir_comm_error(rig.comm.comms[0]) < 0, status != WEIR_OK);
        buckets_rig_close(&rig);
    }
    EXPECT_TRUE(all_done);
}

WEIR_TEST(BucketsMemory, Create)
{
    create_with(4096);
}

WEIR_TEST(BucketsMemory, CreateWithAMeasuredCap)
{
    create_with(WEIR_BUCKETS_AUTO);
}
