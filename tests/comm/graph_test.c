// Collectives in graphs, on each backend: each launch submits them again, with the next numbers.

#include "tests/comm/rig.h"

enum {
    RANKS = 2
};

#define TWO_TEST(suite, name) COMM_RIG_TEST(suite, name, RANKS)

static weir_status reduce_in_place(struct comm_rig *rig, uint32_t rank, weir_comm *comm,
                                   size_t first, size_t count)
{
    return weir_queue_all_reduce(rig->queues[rank], comm, rig->dst[rank], first * 4, rig->dst[rank],
                                 first * 4, count, WEIR_I32, WEIR_SUM);
}

static void begin(struct comm_rig *rig, uint32_t rank)
{
    ASSERT_OK(weir_capture_begin(rig->queues[rank]));
}

static void end(struct comm_rig *rig, uint32_t rank)
{
    ASSERT_OK(weir_capture_end(rig->queues[rank], NULL, &rig->graphs[rank]));
}

static void write_all(struct comm_rig *rig, int32_t number)
{
    const int32_t numbers[] = {number, number, number, number};
    comm_rig_write_all(rig, rig->dst, 0, numbers, 4);
}

// Each launch multiplies by 4.
static void capture_two(struct comm_rig *rig)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        begin(rig, i);
        EXPECT_OK(reduce_in_place(rig, i, rig->comms[i], 0, 4));
        EXPECT_OK(reduce_in_place(rig, i, rig->comms[i], 0, 4));
        end(rig, i);
    }
}

TWO_TEST(CommGraph, EachLaunchIsACollective)
{
    write_all(rig, 1);
    capture_two(rig);
    EXPECT_UINT_EQ(weir_graph_node_count(rig->graphs[0]), 2);
    comm_rig_expect_number(rig, 1); // nothing has run
    for (int i = 0; i < 5; i++)
        comm_rig_launch(rig);
    comm_rig_expect_number(rig, 1 << 10);
}

// Their numbers count on from launch to launch, also between collectives that are not captured.
COMM_TEXT_TEST(CommGraph, NumbersGoOn, "[comm]\ncheck = 1\n", RANKS)
{
    write_all(rig, 1);
    capture_two(rig);
    for (uint32_t i = 0; i < RANKS; i++)
        EXPECT_OK(reduce_in_place(rig, i, rig->comms[i], 0, 4));
    comm_rig_launch(rig);
    comm_rig_launch(rig);
    for (uint32_t i = 0; i < RANKS; i++)
        EXPECT_OK(reduce_in_place(rig, i, rig->comms[i], 0, 4));
    comm_rig_launch(rig);
    comm_rig_expect_number(rig, 1 << 8);
    EXPECT_OK(reduce_in_place(rig, 0, rig->comms[0], 0, 4));
    EXPECT_OK(reduce_in_place(rig, 1, rig->comms[1], 0, 3));
    COMM_RIG_EXPECT_CAUSE(rig->queues[0], "all-reduce 9 of 'grads'", " with 3");
}

// `right` fills while `left` reduces; both are in the copy at the end.
static void capture_fork(struct comm_rig *rig, uint32_t rank, uint32_t *out_fill)
{
    const int32_t seven = 7;
    weir_queue *left = rig->queues[rank];
    weir_queue *right = rig->others[rank];
    begin(rig, rank);
    EXPECT_OK(weir_queue_after(right, left));
    EXPECT_OK(reduce_in_place(rig, rank, rig->comms[rank], 0, 2));
    EXPECT_OK(weir_queue_fill(right, rig->src[rank], 0, 8, &seven, sizeof seven));
    EXPECT_OK(weir_capture_node(right, out_fill));
    EXPECT_OK(weir_queue_after(left, right));
    EXPECT_OK(weir_queue_copy(left, rig->dst[rank], 8, rig->src[rank], 0, 8));
    EXPECT_OK(reduce_in_place(rig, rank, rig->comms[rank], 2, 2));
    end(rig, rank);
}

TWO_TEST(CommGraph, Branches)
{
    static const int32_t expected[] = {8, 8, 14, 14};
    uint32_t fill;
    write_all(rig, 1);
    comm_rig_open_others(rig);
    for (uint32_t i = 0; i < RANKS; i++)
        capture_fork(rig, i, &fill);
    for (int i = 0; i < 3; i++)
        comm_rig_launch(rig);
    comm_rig_expect_all(rig, rig->dst, 0, expected, 4);
}

// One thread drives both ranks: rank 0's launches wait for rank 1's, which come later, and so do not
// hold back the thread in an update. Earlier launches keep their operands.
TWO_TEST(CommGraph, UpdatesWhileALaunchWaits)
{
    static const int32_t first[] = {14, 14};
    static const int32_t second[] = {11, 11};
    const int32_t four = 4;
    uint32_t fill = 0;
    write_all(rig, 1);
    comm_rig_open_others(rig);
    for (uint32_t i = 0; i < RANKS; i++)
        capture_fork(rig, i, &fill);
    EXPECT_OK(weir_queue_graph(rig->queues[0], rig->graphs[0]));
    EXPECT_OK(weir_graph_set_fill(rig->graphs[0], fill, rig->src[0], 0, 8, &four, sizeof four));
    EXPECT_OK(weir_queue_graph(rig->queues[1], rig->graphs[1]));
    comm_rig_expect(rig, 0, rig->dst[0], 2, first, 2);
    comm_rig_launch(rig);
    comm_rig_expect_all(rig, rig->dst, 2, second, 2);
}

// Other kinds, also those between two ranks, and one that NCCL does not take.
TWO_TEST(CommGraph, AllKinds)
{
    static const int32_t expected[] = {2, 1, 2, 2};
    static const int16_t ones[] = {1, 1};
    static const int16_t twos[] = {2, 2};
    for (uint32_t i = 0; i < RANKS; i++) {
        weir_queue *queue = rig->queues[i];
        const int32_t own[] = {(int32_t)i + 1, (int32_t)i + 1};
        const struct weir_exchange parts[] = {
            {rig->src[i], 0, 1, WEIR_I32, 1 - i, false},
            {rig->dst[i], 0, 1, WEIR_I32, 1 - i, true},
        };
        comm_rig_write(rig, i, rig->src[i], 0, own, 2);
        EXPECT_OK(weir_upload(queue, rig->src[i], 64, ones, sizeof ones));
        begin(rig, i);
        EXPECT_OK(weir_queue_exchange(queue, rig->comms[i], parts, 2));
        EXPECT_OK(weir_queue_barrier(queue, rig->comms[i]));
        EXPECT_OK(weir_queue_all_gather(queue, rig->comms[i], rig->dst[i], 4, rig->src[i], 0, 1,
                                        WEIR_I32));
        EXPECT_OK(weir_queue_broadcast(queue, rig->comms[i], rig->dst[i], 12, rig->src[i], 0, 1,
                                       WEIR_I32, 1));
        EXPECT_OK(weir_queue_all_reduce(queue, rig->comms[i], rig->dst[i], 64, rig->src[i], 64, 2,
                                        WEIR_I16, WEIR_SUM));
        end(rig, i);
    }
    comm_rig_launch(rig);
    comm_rig_launch(rig);
    comm_rig_expect(rig, 0, rig->dst[0], 0, expected, 4);
    for (uint32_t i = 0; i < RANKS; i++) {
        int16_t found[2] = {0};
        EXPECT_OK(weir_download(rig->queues[i], found, rig->dst[i], 64, sizeof found));
        EXPECT_INT_EQ(found[0], twos[0]);
        EXPECT_INT_EQ(found[1], twos[1]);
    }
}

// Of both communicators, and `again` of the first one.
static void capture_both(struct comm_rig *rig, bool again)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        begin(rig, i);
        EXPECT_OK(reduce_in_place(rig, i, rig->comms[i], 0, 2));
        EXPECT_OK(reduce_in_place(rig, i, rig->copies[i], 2, 2));
        if (again)
            EXPECT_OK(reduce_in_place(rig, i, rig->comms[i], 0, 4));
        end(rig, i);
    }
}

// Two communicators of the same ranks; on one rank the graph names them in another order.
TWO_TEST(CommGraph, TwoCommunicators)
{
    write_all(rig, 1);
    ASSERT_OK(weir_comm_create_all(rig->devices, RANKS, NULL, rig->copies));
    capture_both(rig, true);
    for (int i = 0; i < 3; i++) {
        comm_rig_launch(rig);
        for (uint32_t rank = 0; rank < RANKS; rank++)
            EXPECT_OK(reduce_in_place(rig, rank, rig->copies[rank], 0, 4));
    }
    comm_rig_expect_number(rig, 1 << 9);
}

// What a graph uses stays as long as it does.
TWO_TEST(CommGraph, CommunicatorsAreDestroyedBefore)
{
    write_all(rig, 1);
    capture_two(rig);
    comm_rig_launch(rig);
    for (uint32_t i = 0; i < RANKS; i++)
        weir_comm_destroy(&rig->comms[i]);
    comm_rig_launch(rig);
    comm_rig_expect_number(rig, 1 << 4);
}

TWO_TEST(CommGraph, OnSeveralQueues)
{
    write_all(rig, 1);
    capture_two(rig);
    comm_rig_open_others(rig);
    for (int turn = 0; turn < 4; turn++)
        for (uint32_t i = 0; i < RANKS; i++)
            EXPECT_OK(weir_queue_graph(turn % 2 ? rig->others[i] : rig->queues[i], rig->graphs[i]));
    for (uint32_t i = 0; i < RANKS; i++)
        EXPECT_OK(weir_queue_sync(rig->others[i], GUARD_NS));
    comm_rig_expect_number(rig, 1 << 8);
}

// Failures.

// After one the graph is refused with the first cause, and both queues work again.
static void expect_dead(struct comm_rig *rig)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        WEIR_IGNORE(weir_queue_sync(rig->queues[i], GUARD_NS));
        EXPECT_OK(weir_queue_recover(rig->queues[i]));
        EXPECT_INT_LT(weir_queue_graph(rig->queues[i], rig->graphs[i]), 0);
        EXPECT_INT_LT(weir_comm_error(rig->comms[i]), 0);
        EXPECT_OK(weir_queue_sync(rig->queues[i], GUARD_NS));
    }
}

TWO_TEST(CommGraph, AnAbortWhileALaunchWaits)
{
    capture_two(rig);
    comm_rig_launch(rig);
    EXPECT_OK(weir_queue_graph(rig->queues[0], rig->graphs[0]));
    EXPECT_OK(weir_comm_abort(rig->comms[1], "the loss is no number"));
    COMM_RIG_EXPECT_CAUSE(rig->queues[0], "graph_test.c:", "the loss is no number");
    expect_dead(rig);
}

// A launch that its queue's failure leaves out: the other rank hears which collective that was.
TWO_TEST(CommGraph, AQueueThatHasFailed)
{
    struct gate gate = {.status = WEIR_ERROR_SYSTEM};
    capture_two(rig);
    EXPECT_OK(weir_queue_host_call(rig->queues[0], gate_pass, &gate));
    comm_rig_launch(rig);
    gate_open(&gate);
    COMM_RIG_EXPECT_CAUSE(rig->queues[1], "all-reduce 1 of 'grads'", "rank 0 cannot take part",
                          "a host call, failed");
    expect_dead(rig);
}

// A failed queue refuses the launch: no number is used up, and the communicator lives.
TWO_TEST(CommGraph, ALaunchThatIsRefused)
{
    struct gate gate = {.is_open = 1, .status = WEIR_ERROR_SYSTEM};
    write_all(rig, 1);
    capture_two(rig);
    EXPECT_OK(weir_queue_host_call(rig->queues[0], gate_pass, &gate));
    EXPECT_INT_EQ(weir_queue_sync(rig->queues[0], GUARD_NS), WEIR_ERROR_SYSTEM);
    EXPECT_INT_EQ(weir_queue_graph(rig->queues[0], rig->graphs[0]), WEIR_ERROR_SYSTEM);
    EXPECT_OK(weir_comm_error(rig->comms[0]));
    EXPECT_OK(weir_queue_recover(rig->queues[0]));
    comm_rig_launch(rig);
    comm_rig_expect_number(rig, 4);
}

// Two communicators: the first fails, and the ranks of the second one hear of it too.
TWO_TEST(CommGraph, OneOfTwoCommunicatorsFails)
{
    ASSERT_OK(weir_comm_create_all(rig->devices, RANKS, WEIR_PARAMS(weir_comm, .label = "other"),
                                   rig->copies));
    capture_both(rig, false);
    EXPECT_OK(weir_queue_graph(rig->queues[0], rig->graphs[0]));
    EXPECT_OK(reduce_in_place(rig, 1, rig->copies[1], 2, 2));
    EXPECT_OK(weir_comm_abort(rig->comms[1], "enough"));
    COMM_RIG_EXPECT_CAUSE(rig->queues[0], "'grads'", "enough");
    COMM_RIG_AWAIT_FAILURE(rig->copies[1], "all-reduce 1 of 'other'", "rank 0 cannot take part");
}
