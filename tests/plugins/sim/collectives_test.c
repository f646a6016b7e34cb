// Collectives in virtual time: what each takes is the model's bus bandwidth and latency.
#include <stdio.h>

#include "tests/comm/rig.h"
#include "tests/comm/trace.h"

enum {
    RANKS = 4,
    COUNT = 128, // of i32
    BYTES = 4 * COUNT,
};

// 1 byte a nanosecond, after 500 ns.
static void open_rig(struct comm_rig *rig, const char *path, const char *changes)
{
    char text[1024];
    snprintf(text, sizeof text,
             "[weir]\nplugins = trace, sim\n[trace]\nfile = %s\n[comm]\ntransport = fake\n"
             "[sim]\ngpu = k20c\nchanges = %s\n",
             path, changes);
    comm_rig_open(rig, text, RANKS, WEIR_PLACE_DEVICE);
}

static weir_status submit(struct comm_rig *rig, uint32_t r, int kind)
{
    weir_queue *queue = rig->queues[r];
    weir_comm *comm = rig->comms[r];
    weir_buffer *src = rig->src[r];
    weir_buffer *dst = rig->dst[r];
    weir_buffer *at_root = r == 0 ? dst : NULL;
    weir_buffer *of_root = r == 0 ? src : NULL;
    const bool sends = r % 2 == 0;
    const struct weir_exchange parts[] = {
        {src, 0, COUNT, WEIR_I32, (r + 1) % RANKS, false},
        {dst, 0, COUNT, WEIR_I32, (r + RANKS - 1) % RANKS, true},
    };
    switch (kind) {
    case WEIR_ALL_REDUCE:
        return weir_queue_all_reduce(queue, comm, dst, 0, src, 0, COUNT, WEIR_I32, WEIR_SUM);
    case WEIR_REDUCE:
        return weir_queue_reduce(queue, comm, at_root, 0, src, 0, COUNT, WEIR_I32, WEIR_SUM, 0);
    case WEIR_BROADCAST:
        return weir_queue_broadcast(queue, comm, dst, 0, of_root, 0, COUNT, WEIR_I32, 0);
    case WEIR_ALL_GATHER:
        return weir_queue_all_gather(queue, comm, dst, 0, src, 0, COUNT, WEIR_I32);
    case WEIR_REDUCE_SCATTER:
        return weir_queue_reduce_scatter(queue, comm, dst, 0, src, 0, COUNT, WEIR_I32, WEIR_SUM);
    case WEIR_ALL_TO_ALL:
        return weir_queue_all_to_all(queue, comm, dst, 0, src, 0, COUNT, WEIR_I32);
    case WEIR_GATHER:
        return weir_queue_gather(queue, comm, at_root, 0, src, 0, COUNT, WEIR_I32, 0);
    case WEIR_SCATTER:
        return weir_queue_scatter(queue, comm, dst, 0, of_root, 0, COUNT, WEIR_I32, 0);
    case WEIR_SEND:
        return sends ? weir_queue_send(queue, comm, src, 0, COUNT, WEIR_I32, r + 1)
                     : weir_queue_recv(queue, comm, dst, 0, COUNT, WEIR_I32, r - 1);
    case WEIR_EXCHANGE:
        return weir_queue_exchange(queue, comm, parts, 2);
    default:
        return weir_queue_barrier(queue, comm);
    }
}

static const struct {
    int kind;
    const char *name;
    uint64_t bus_bytes;
} expected[] = {
    {WEIR_ALL_REDUCE, "all-reduce", 2 * BYTES * 3 / 4},
    {WEIR_REDUCE, "reduce", BYTES},
    {WEIR_BROADCAST, "broadcast", BYTES},
    {WEIR_ALL_GATHER, "all-gather", 3 * BYTES},
    {WEIR_REDUCE_SCATTER, "reduce-scatter", 3 * BYTES},
    {WEIR_ALL_TO_ALL, "all-to-all", 3 * BYTES},
    {WEIR_GATHER, "gather", 3 * BYTES},
    {WEIR_SCATTER, "scatter", 3 * BYTES},
    {WEIR_SEND, "send", BYTES},
    {WEIR_EXCHANGE, "exchange", BYTES},
    {WEIR_BARRIER, "barrier", 0},
};

enum {
    EXPECTED = sizeof expected / sizeof *expected
};

static struct weir_trace *run_all(void)
{
    struct comm_rig rig;
    char path[COMM_TRACE_PATH_SIZE];
    comm_trace_path(path, "collectives");
    open_rig(&rig, path, "collective_gb_per_s=1, collective_latency_ns=500");
    for (size_t i = 0; i < EXPECTED; i++)
        for (uint32_t r = 0; r < RANKS; r++)
            EXPECT_OK(submit(&rig, r, expected[i].kind));
    for (uint32_t r = 0; r < RANKS; r++)
        EXPECT_OK(weir_queue_sync(rig.queues[r], WEIR_FOREVER));
    comm_rig_close(&rig);
    return comm_trace_read(path);
}

// The operations of a rank are in the order of its queue.
WEIR_TEST(SimCollectives, EachTakesWhatTheModelSays)
{
    OWN(weir_trace_destroy) struct weir_trace *trace = run_all();
    size_t found[RANKS] = {0};
    ASSERT_NOT_NULL(trace);
    for (size_t i = 0; i < trace->operation_count; i++) {
        const struct weir_trace_operation *it = &trace->operations[i];
        if (it->kind != WEIR_TRACE_COLLECTIVE)
            continue;
        ASSERT_NOT_NULL(it->collective);
        const uint32_t rank = it->collective->rank;
        const size_t which = found[rank]++;
        ASSERT_UINT_LT(which, EXPECTED);
        EXPECT_STR_EQ(it->collective->kind, expected[which].kind == WEIR_SEND && rank % 2
                                                ? "recv"
                                                : expected[which].name);
        EXPECT_TRUE(it->timed);
        EXPECT_UINT_EQ(it->end_ns - it->start_ns, 500 + expected[which].bus_bytes);
    }
    for (uint32_t r = 0; r < RANKS; r++)
        EXPECT_UINT_EQ(found[r], EXPECTED);
}

// A model that does not say what they take refuses them, and the other ranks learn why.
WEIR_TEST(SimCollectives, WithoutACost)
{
    own_comm_rig rig = {0};
    char path[512];
    comm_trace_path(path, "refused");
    open_rig(&rig, path, "");
    EXPECT_INT_EQ(submit(&rig, 0, WEIR_ALL_REDUCE), WEIR_ERROR_UNSUPPORTED);
    EXPECT_ERROR("a collective has no cost on the GPU 'Tesla K20c'",
                 "set collective_gb_per_s and collective_latency_ns in the model");
    EXPECT_INT_LT(weir_comm_error(rig.comms[0]), 0);
}
