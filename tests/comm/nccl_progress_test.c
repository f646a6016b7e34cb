// The pulse of communicators by NCCL. Other work of their queues may take longer than the timeout,
// between collectives and after them; ranks that are left when one has gone hear of each other.
#include <pthread.h>

#include "base/clock.h"
#include "tests/comm/nccl.h"

enum {
    RANKS = 2,
    COUNT = 8, // of numbers that a call sums
};

// The first call of a kind goes through the worker, later ones do not.
static void all_reduce_first(struct comm_rig *rig)
{
    COMM_RIG_REDUCE_ALL(rig, COUNT);
    comm_rig_sync(rig, GUARD_NS);
}

// Longer than the timeout, and none has failed.
static void outlast(const struct comm_rig *rig)
{
    weir_clock_sleep_ns(SECOND * 3 / 2);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        EXPECT_OK(weir_comm_error(rig->comms[rank]));
}

// The next call is on another queue, which is busy.
NCCL_TEST(CommNcclProgress, WorkOfTwoQueuesHasTime, RANKS, SECOND)
{
    struct gate gate = {0};
    all_reduce_first(rig);
    comm_rig_open_others(rig);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        nccl_submit_gate(rig->others[rank], &gate);
        EXPECT_OK(COMM_RIG_REDUCE(rig, rank, COUNT));
        EXPECT_OK(COMM_RIG_REDUCE_ON(rig, rank, rig->others[rank], rig->comms[rank], COUNT));
    }
    outlast(rig);
    gate_open(&gate);
    comm_rig_sync(rig, GUARD_NS);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        EXPECT_OK(weir_queue_sync(rig->others[rank], GUARD_NS));
}

// Calls of which each third has other work after it; it takes long in their middle, and after all of them.
static void submit_many(struct comm_rig *rig, uint32_t rank, int calls, struct gate *gate)
{
    for (int i = 0; i < calls; i++) {
        EXPECT_OK(COMM_RIG_REDUCE(rig, rank, COUNT));
        if (i % 3 == 0)
            EXPECT_OK(weir_queue_fill(rig->queues[rank], rig->src[rank], 0, 64, "", 1));
        if (i == calls / 2)
            nccl_submit_gate(rig->queues[rank], &gate[0]);
    }
    nccl_submit_gate(rig->queues[rank], &gate[1]);
}

static void expect_time_for_many(int calls, bool has_marks)
{
    own_comm_rig rig = {0};
    struct gate begin = {0};
    struct gate gates[2] = {0};
    nccl_open(&rig, RANKS, SECOND);
    all_reduce_first(&rig);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        nccl_submit_gate(rig.queues[rank], &begin);
        submit_many(&rig, rank, calls, gates);
    }
    gate_open(&begin);
    for (int i = 0; i < 2; i++) {
        if (has_marks)
            outlast(&rig);
        gate_open(&gates[i]);
    }
    comm_rig_sync(&rig, GUARD_NS);
}

WEIR_TEST(CommNcclProgress, ManyHaveTime)
{
    expect_time_for_many(200, true);
}

// Where a communicator has no mark left, the newest one moves on.
WEIR_TEST(CommNcclProgress, MoreCallsThanMarks)
{
    expect_time_for_many(3300, false);
}

// Another library in the process captures a stream, on its own thread: the pulse asks on and spoils
// nothing, nor do waits for what was submitted, the first call of a kind, which the queue's worker submits, or
// a communicator that ends.
NCCL_TEST(CommNcclProgress, OthersCapture, RANKS, SECOND)
{
    all_reduce_first(rig);
    (void)cuda()->others_capture(1);
    const long asked = cuda()->calls("cuEventQuery");
    for (uint32_t rank = 0; rank < RANKS; rank++)
        for (int i = 0; i < 40; i++)
            EXPECT_OK(COMM_RIG_REDUCE(rig, rank, COUNT));
    outlast(rig);
    EXPECT_INT_GT((int)(cuda()->calls("cuEventQuery") - asked), 0);
    COMM_RIG_REDUCE_ALL(rig, 4);
    comm_rig_sync(rig, GUARD_NS);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        weir_comm_destroy(&rig->comms[rank]);
    EXPECT_INT_EQ((int)cuda()->others_capture(0), 0);
}

static weir_status reduce_copy(struct comm_rig *rig, uint32_t rank)
{
    return COMM_RIG_REDUCE_ON(rig, rank, rig->queues[rank], rig->copies[rank], COUNT);
}

// A collective of another communicator is other work.
NCCL_TEST(CommNcclProgress, AnotherCommunicatorHasTime, RANKS, SECOND)
{
    ASSERT_OK(weir_comm_create_all(rig->devices, RANKS,
                                   WEIR_PARAMS(weir_comm, .timeout_ns = GUARD_NS), rig->copies));
    all_reduce_first(rig);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        EXPECT_OK(reduce_copy(rig, rank));
    comm_rig_sync(rig, GUARD_NS);
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, COUNT));
    EXPECT_OK(reduce_copy(rig, 0));
    EXPECT_OK(COMM_RIG_REDUCE(rig, 1, COUNT));
    outlast(rig);
    EXPECT_OK(reduce_copy(rig, 1));
    comm_rig_sync(rig, GUARD_NS);
}

// Ranks 0 and 1 of three, the last of which has left.
static void open_left(struct comm_rig *rig)
{
    nccl_open(rig, 3, 2 * GUARD_NS);
    all_reduce_first(rig);
    weir_comm_destroy(&rig->comms[2]);
}

#define LEFT_TEST(suite, name) COMM_RIG_TEST_BY(suite, name, open_left(rig), comm_rig_close(rig))

LEFT_TEST(CommNcclProgress, AnAbortAfterOneHasLeft)
{
    EXPECT_OK(weir_queue_send(rig->queues[0], rig->comms[0], rig->src[0], 0, 8, WEIR_I32, 1));
    EXPECT_OK(weir_queue_recv(rig->queues[1], rig->comms[1], rig->dst[1], 0, 8, WEIR_I32, 0));
    comm_rig_sync(rig, GUARD_NS);
    EXPECT_OK(weir_comm_abort(rig->comms[1], "the loss is no number"));
    COMM_RIG_AWAIT_FAILURE(rig->comms[0], "rank 1 has aborted 'grads'", "the loss is no number");
}

LEFT_TEST(CommNcclProgress, ACollectiveAfterTwoHaveLeft)
{
    weir_comm_destroy(&rig->comms[1]);
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, COUNT));
    COMM_RIG_AWAIT_FAILURE(rig->comms[0], "all-reduce 2 of 'grads'",
                           "has destroyed the communicator after");
}

static void *destroy(void *comm)
{
    weir_comm_destroy(comm);
    return NULL;
}

// The beat under way tells that it leaves, so there is none after it.
NCCL_TEST(CommNcclProgress, OneThatLeavesDuringABeat, 3, GUARD_NS)
{
    pthread_t thread;
    nccl()->hold("ncclCommGetAsyncError");
    nccl()->await_held();
    weir_clock_sleep_ns(SECOND / 20); // all ranks come to it
    ASSERT_INT_EQ(pthread_create(&thread, NULL, destroy, &rig->comms[2]), 0);
    weir_clock_sleep_ns(SECOND / 20);
    nccl()->hold(NULL);
    pthread_join(thread, NULL);
    weir_clock_sleep_ns(SECOND / 5); // some beats of the others
    EXPECT_OK(weir_comm_error(rig->comms[0]));
    EXPECT_OK(weir_comm_error(rig->comms[1]));
}

// One rank fails while the communicator is made: NCCL lets the other one wait for it, the library does
// not.
static void expect_all_told(const char *word)
{
    own_comm_rig rig = {0};
    comm_rig_open_ranks(&rig, "", RANKS);
    EXPECT_INT_LT(weir_comm_create_all(rig.devices, RANKS, NULL, rig.comms), 0);
    EXPECT_ERROR(word);
    cuda()->fail(NULL, 0, 0);
    nccl()->fail(NULL, 0, 0);
}

WEIR_TEST(CommNcclProgress, ARankThatFailsInItsCreation)
{
    nccl()->fail("ncclCommInitRank", 1, 3);
    expect_all_told("NCCL 2.28.9: the fake's error");
    nccl()->fail("ncclCommInitRank", 2, 3);
    expect_all_told("NCCL 2.28.9: the fake's error");
}

WEIR_TEST(CommNcclProgress, ARankThatFailsBeforeItsCreation)
{
    cuda()->fail("cuMemsetD8Async", 1, 2);
    expect_all_told("make a communicator");
    cuda()->fail("cuMemsetD8Async", 2, 2);
    expect_all_told("make a communicator");
}

// A mark that could not be made is none, and the next one is made. Other work after a call asks for one.
NCCL_TEST(CommNcclProgress, NoEventForMarks, RANKS, SECOND)
{
    all_reduce_first(rig);
    cuda()->fail("cuEventCreate", 1, 2);
    for (int i = 0; i < 4; i++) {
        COMM_RIG_REDUCE_ALL(rig, COUNT);
        EXPECT_OK(weir_queue_fill(rig->queues[0], rig->src[0], 0, 64, "", 1));
    }
    comm_rig_sync(rig, GUARD_NS);
    EXPECT_INT_EQ((int)cuda()->struck(), 1);
    cuda()->fail(NULL, 0, 0);
}

// One that does hang is found all the same. A failed queue's stream passes the gate when the test has ended.
NCCL_TEST(CommNcclProgress, AnAbsentRankIsTold, RANKS, SECOND)
{
    static struct gate gate;
    all_reduce_first(rig);
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, COUNT));
    nccl_submit_gate(rig->queues[0], &gate);
    COMM_RIG_AWAIT_FAILURE(rig->comms[0], "all-reduce 2 of 'grads'");
    gate_open(&gate);
    COMM_RIG_EXPECT_CAUSE(rig->queues[0], "all-reduce 2 of 'grads'",
                          "rank 1 has submitted nothing after all-reduce 1");
}
