// Collectives in graphs, on each backend: each launch submits them again, with the next numbers.
#include <string.h>

#include "tests/comm/rig.h"

enum {
    RANKS = 2
};

struct graphs {
    struct comm_rig rig;
    weir_graph *graphs[RANKS];
};

static void open_two(struct graphs *g, const char *more)
{
    *g = (struct graphs){.graphs = {NULL}};
    comm_rig_open(&g->rig, more, RANKS, WEIR_PLACE_DEVICE);
}

static void close_two(struct graphs *g)
{
    for (uint32_t i = 0; i < RANKS; i++)
        weir_graph_destroy(&g->graphs[i]);
    comm_rig_close(&g->rig);
}

#define TWO_TEST(suite, name)                                                                 \
    WEIR_TEST_WITH(suite, name, struct graphs, g, (open_two(g, ""), !weir_test_has_failed()), \
                   close_two(g))

static weir_status reduce_in_place(struct comm_rig *rig, uint32_t rank, weir_comm *comm,
                                   size_t first, size_t count)
{
    return weir_queue_all_reduce(rig->queues[rank], comm, rig->dst[rank], first * 4, rig->dst[rank],
                                 first * 4, count, WEIR_I32, WEIR_SUM);
}

static void begin(struct graphs *g, uint32_t rank)
{
    ASSERT_OK(weir_capture_begin(g->rig.queues[rank]));
}

static void end(struct graphs *g, uint32_t rank)
{
    ASSERT_OK(weir_capture_end(g->rig.queues[rank], NULL, &g->graphs[rank]));
}

static void launch(struct graphs *g)
{
    for (uint32_t i = 0; i < RANKS; i++)
        EXPECT_OK(weir_queue_graph(g->rig.queues[i], g->graphs[i]));
}

static void write_all(struct graphs *g, int32_t number)
{
    const int32_t numbers[] = {number, number, number, number};
    for (uint32_t i = 0; i < RANKS; i++)
        comm_rig_write(&g->rig, i, g->rig.dst[i], 0, numbers, 4);
}

static void expect_all(struct graphs *g, int32_t number)
{
    const int32_t numbers[] = {number, number, number, number};
    for (uint32_t i = 0; i < RANKS; i++)
        comm_rig_expect(&g->rig, i, g->rig.dst[i], 0, numbers, 4);
}

// Each launch multiplies by 4.
static void capture_two(struct graphs *g)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        begin(g, i);
        EXPECT_OK(reduce_in_place(&g->rig, i, g->rig.comms[i], 0, 4));
        EXPECT_OK(reduce_in_place(&g->rig, i, g->rig.comms[i], 0, 4));
        end(g, i);
    }
}

TWO_TEST(CommGraph, EachLaunchIsACollective)
{
    write_all(g, 1);
    capture_two(g);
    EXPECT_UINT_EQ(weir_graph_node_count(g->graphs[0]), 2);
    expect_all(g, 1); // nothing has run
    for (int i = 0; i < 5; i++)
        launch(g);
    expect_all(g, 1 << 10);
}

// Their numbers count on from launch to launch, also between collectives that are not captured.
WEIR_TEST(CommGraph, NumbersGoOn)
{
    struct graphs g;
    open_two(&g, "[comm]\ncheck = 1\n");
    write_all(&g, 1);
    capture_two(&g);
    for (uint32_t i = 0; i < RANKS; i++)
        EXPECT_OK(reduce_in_place(&g.rig, i, g.rig.comms[i], 0, 4));
    launch(&g);
    launch(&g);
    for (uint32_t i = 0; i < RANKS; i++)
        EXPECT_OK(reduce_in_place(&g.rig, i, g.rig.comms[i], 0, 4));
    launch(&g);
    expect_all(&g, 1 << 8);
    EXPECT_OK(reduce_in_place(&g.rig, 0, g.rig.comms[0], 0, 4));
    EXPECT_OK(reduce_in_place(&g.rig, 1, g.rig.comms[1], 0, 3));
    COMM_RIG_EXPECT_CAUSE(g.rig.queues[0], "all-reduce 9 of 'grads'", " with 3");
    close_two(&g);
}

// `right` fills while `left` reduces; both are in the copy at the end.
static void capture_fork(struct graphs *g, uint32_t rank, weir_queue *right, uint32_t *out_fill)
{
    const int32_t seven = 7;
    struct weir_event begun;
    struct weir_event filled;
    struct comm_rig *rig = &g->rig;
    weir_queue *left = rig->queues[rank];
    begin(g, rank);
    EXPECT_OK(weir_queue_record(left, &begun));
    EXPECT_OK(weir_queue_wait(right, begun));
    EXPECT_OK(reduce_in_place(rig, rank, rig->comms[rank], 0, 2));
    EXPECT_OK(weir_queue_fill(right, rig->src[rank], 0, 8, &seven, sizeof seven));
    EXPECT_OK(weir_capture_node(right, out_fill));
    EXPECT_OK(weir_queue_record(right, &filled));
    EXPECT_OK(weir_queue_wait(left, filled));
    EXPECT_OK(weir_queue_copy(left, rig->dst[rank], 8, rig->src[rank], 0, 8));
    EXPECT_OK(reduce_in_place(rig, rank, rig->comms[rank], 2, 2));
    end(g, rank);
}

TWO_TEST(CommGraph, Branches)
{
    static const int32_t expected[] = {8, 8, 14, 14};
    weir_queue *right[RANKS];
    uint32_t fill;
    write_all(g, 1);
    for (uint32_t i = 0; i < RANKS; i++) {
        ASSERT_OK(weir_queue_create(g->rig.devices[i], NULL, &right[i]));
        capture_fork(g, i, right[i], &fill);
    }
    for (int i = 0; i < 3; i++)
        launch(g);
    for (uint32_t i = 0; i < RANKS; i++) {
        comm_rig_expect(&g->rig, i, g->rig.dst[i], 0, expected, 4);
        weir_queue_destroy(&right[i]);
    }
}

// One thread drives both ranks: rank 0's launches wait for rank 1's, which come later, and so do not
// hold back the thread in an update. Earlier launches keep their operands.
TWO_TEST(CommGraph, UpdatesWhileALaunchWaits)
{
    static const int32_t first[] = {14, 14};
    static const int32_t second[] = {11, 11};
    const int32_t four = 4;
    weir_queue *right[RANKS];
    uint32_t fill = 0;
    write_all(g, 1);
    for (uint32_t i = 0; i < RANKS; i++) {
        ASSERT_OK(weir_queue_create(g->rig.devices[i], NULL, &right[i]));
        capture_fork(g, i, right[i], &fill);
    }
    EXPECT_OK(weir_queue_graph(g->rig.queues[0], g->graphs[0]));
    EXPECT_OK(weir_graph_set_fill(g->graphs[0], fill, g->rig.src[0], 0, 8, &four, sizeof four));
    EXPECT_OK(weir_queue_graph(g->rig.queues[1], g->graphs[1]));
    comm_rig_expect(&g->rig, 0, g->rig.dst[0], 2, first, 2);
    launch(g);
    for (uint32_t i = 0; i < RANKS; i++) {
        comm_rig_expect(&g->rig, i, g->rig.dst[i], 2, second, 2);
        weir_queue_destroy(&right[i]);
    }
}

// Other kinds, also those between two ranks, and one that NCCL does not take.
TWO_TEST(CommGraph, AllKinds)
{
    static const int32_t expected[] = {2, 1, 2, 2};
    static const int16_t ones[] = {1, 1};
    static const int16_t twos[] = {2, 2};
    for (uint32_t i = 0; i < RANKS; i++) {
        struct comm_rig *rig = &g->rig;
        weir_queue *queue = rig->queues[i];
        const int32_t own[] = {(int32_t)i + 1, (int32_t)i + 1};
        const struct weir_exchange parts[] = {
            {rig->src[i], 0, 1, WEIR_I32, 1 - i, false},
            {rig->dst[i], 0, 1, WEIR_I32, 1 - i, true},
        };
        comm_rig_write(rig, i, rig->src[i], 0, own, 2);
        EXPECT_OK(weir_upload(queue, rig->src[i], 64, ones, sizeof ones));
        begin(g, i);
        EXPECT_OK(weir_queue_exchange(queue, rig->comms[i], parts, 2));
        EXPECT_OK(weir_queue_barrier(queue, rig->comms[i]));
        EXPECT_OK(weir_queue_all_gather(queue, rig->comms[i], rig->dst[i], 4, rig->src[i], 0, 1,
                                        WEIR_I32));
        EXPECT_OK(weir_queue_broadcast(queue, rig->comms[i], rig->dst[i], 12, rig->src[i], 0, 1,
                                       WEIR_I32, 1));
        EXPECT_OK(weir_queue_all_reduce(queue, rig->comms[i], rig->dst[i], 64, rig->src[i], 64, 2,
                                        WEIR_I16, WEIR_SUM));
        end(g, i);
    }
    launch(g);
    launch(g);
    comm_rig_expect(&g->rig, 0, g->rig.dst[0], 0, expected, 4);
    for (uint32_t i = 0; i < RANKS; i++) {
        int16_t found[2] = {0};
        EXPECT_OK(weir_download(g->rig.queues[i], found, g->rig.dst[i], 64, sizeof found));
        EXPECT_INT_EQ(found[0], twos[0]);
        EXPECT_INT_EQ(found[1], twos[1]);
    }
}

// Two communicators of the same ranks; on one rank the graph names them in another order.
TWO_TEST(CommGraph, TwoCommunicators)
{
    weir_comm *others[RANKS] = {NULL};
    write_all(g, 1);
    ASSERT_OK(weir_comm_create_all(g->rig.devices, RANKS, NULL, others));
    for (uint32_t i = 0; i < RANKS; i++) {
        begin(g, i);
        EXPECT_OK(reduce_in_place(&g->rig, i, g->rig.comms[i], 0, 2));
        EXPECT_OK(reduce_in_place(&g->rig, i, others[i], 2, 2));
        EXPECT_OK(reduce_in_place(&g->rig, i, g->rig.comms[i], 0, 4));
        end(g, i);
    }
    for (int i = 0; i < 3; i++) {
        launch(g);
        for (uint32_t rank = 0; rank < RANKS; rank++)
            EXPECT_OK(reduce_in_place(&g->rig, rank, others[rank], 0, 4));
    }
    expect_all(g, 1 << 9);
    weir_comm_destroy(&others[0]), weir_comm_destroy(&others[1]);
}

// What a graph uses stays as long as it does.
TWO_TEST(CommGraph, CommunicatorsAreDestroyedBefore)
{
    write_all(g, 1);
    capture_two(g);
    launch(g);
    for (uint32_t i = 0; i < RANKS; i++)
        weir_comm_destroy(&g->rig.comms[i]);
    launch(g);
    expect_all(g, 1 << 4);
}

TWO_TEST(CommGraph, OnSeveralQueues)
{
    weir_queue *others[RANKS];
    write_all(g, 1);
    capture_two(g);
    for (uint32_t i = 0; i < RANKS; i++)
        ASSERT_OK(weir_queue_create(g->rig.devices[i], NULL, &others[i]));
    for (int turn = 0; turn < 4; turn++)
        for (uint32_t i = 0; i < RANKS; i++)
            EXPECT_OK(weir_queue_graph(turn % 2 ? others[i] : g->rig.queues[i], g->graphs[i]));
    for (uint32_t i = 0; i < RANKS; i++)
        EXPECT_OK(weir_queue_sync(others[i], GUARD_NS));
    expect_all(g, 1 << 8);
    weir_queue_destroy(&others[0]), weir_queue_destroy(&others[1]);
}

// Failures.

// After one the graph is refused with the first cause, and both queues work again.
static void expect_dead(struct graphs *g)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        WEIR_IGNORE(weir_queue_sync(g->rig.queues[i], GUARD_NS));
        EXPECT_OK(weir_queue_recover(g->rig.queues[i]));
        EXPECT_INT_LT(weir_queue_graph(g->rig.queues[i], g->graphs[i]), 0);
        EXPECT_INT_LT(weir_comm_error(g->rig.comms[i]), 0);
        EXPECT_OK(weir_queue_sync(g->rig.queues[i], GUARD_NS));
    }
}

TWO_TEST(CommGraph, AnAbortWhileALaunchWaits)
{
    capture_two(g);
    launch(g);
    EXPECT_OK(weir_queue_graph(g->rig.queues[0], g->graphs[0]));
    EXPECT_OK(weir_comm_abort(g->rig.comms[1], "the loss is no number"));
    COMM_RIG_EXPECT_CAUSE(g->rig.queues[0], "graph_test.c:", "the loss is no number");
    expect_dead(g);
}

// A launch that its queue's failure leaves out: the other rank hears which collective that was.
TWO_TEST(CommGraph, AQueueThatHasFailed)
{
    struct comm_rig_gate gate = COMM_RIG_GATE;
    gate.status = WEIR_ERROR_SYSTEM;
    capture_two(g);
    EXPECT_OK(weir_queue_host_call(g->rig.queues[0], comm_rig_pass, &gate));
    launch(g);
    comm_rig_open_gate(&gate);
    COMM_RIG_EXPECT_CAUSE(g->rig.queues[1], "all-reduce 1 of 'grads'", "rank 0 cannot take part",
                          "a host call, failed");
    expect_dead(g);
}

// A failed queue refuses the launch: no number is used up, and the communicator lives.
TWO_TEST(CommGraph, ALaunchThatIsRefused)
{
    struct comm_rig_gate gate = COMM_RIG_GATE;
    gate.status = WEIR_ERROR_SYSTEM;
    gate.open = true;
    write_all(g, 1);
    capture_two(g);
    EXPECT_OK(weir_queue_host_call(g->rig.queues[0], comm_rig_pass, &gate));
    EXPECT_INT_EQ(weir_queue_sync(g->rig.queues[0], GUARD_NS), WEIR_ERROR_SYSTEM);
    EXPECT_INT_EQ(weir_queue_graph(g->rig.queues[0], g->graphs[0]), WEIR_ERROR_SYSTEM);
    EXPECT_OK(weir_comm_error(g->rig.comms[0]));
    EXPECT_OK(weir_queue_recover(g->rig.queues[0]));
    launch(g);
    expect_all(g, 4);
}

// Two communicators: the first fails, and the ranks of the second one hear of it too.
TWO_TEST(CommGraph, OneOfTwoCommunicatorsFails)
{
    weir_comm *others[RANKS] = {NULL};
    ASSERT_OK(weir_comm_create_all(g->rig.devices, RANKS, WEIR_PARAMS(weir_comm, .label = "other"),
                                   others));
    for (uint32_t i = 0; i < RANKS; i++) {
        begin(g, i);
        EXPECT_OK(reduce_in_place(&g->rig, i, g->rig.comms[i], 0, 2));
        EXPECT_OK(reduce_in_place(&g->rig, i, others[i], 2, 2));
        end(g, i);
    }
    EXPECT_OK(weir_queue_graph(g->rig.queues[0], g->graphs[0]));
    EXPECT_OK(reduce_in_place(&g->rig, 1, others[1], 2, 2));
    EXPECT_OK(weir_comm_abort(g->rig.comms[1], "enough"));
    COMM_RIG_EXPECT_CAUSE(g->rig.queues[0], "'grads'", "enough");
    COMM_RIG_AWAIT_FAILURE(others[1], "all-reduce 1 of 'other'", "rank 0 cannot take part");
    weir_comm_destroy(&others[0]), weir_comm_destroy(&others[1]);
}
