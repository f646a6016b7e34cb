// Collectives through the plugins that ship.

#include <weir/check.h>

#include "tests/comm/rig.h"
#include "tests/comm/trace.h"

// A ring, and a reduction of what it brought.
static void work(struct comm_rig *rig)
{
    static const int32_t numbers[] = {5, 6};
    comm_rig_write_all(rig, rig->src, 0, numbers, 2);
    for (uint32_t r = 0; r < 2; r++) {
        const struct weir_exchange parts[] = {
            {rig->src[r], 16, 2, WEIR_I32, 1 - r, true},
            {rig->src[r], 0, 2, WEIR_I32, 1 - r, false},
        };
        EXPECT_OK(weir_queue_exchange(rig->queues[r], rig->comms[r], parts, 2));
        EXPECT_OK(weir_queue_all_reduce(rig->queues[r], rig->comms[r], rig->dst[r], 0, rig->src[r],
                                        16, 2, WEIR_I32, WEIR_SUM));
    }
    comm_rig_expect_all(rig, rig->dst, 0, (const int32_t[]){10, 12}, 2);
}

WEIR_TEST(CommPlugins, Perturb)
{
    for (int seed = 1; seed <= 3; seed++) {
        own_comm_rig rig = {0};
        char text[128];
        snprintf(text, sizeof text,
                 "[weir]\nplugins = perturb\n[perturb]\nmode = random\nseed = %d\n[comm]\n"
                 "transport = fake\n",
                 seed);
        comm_rig_open(&rig, text, 2, WEIR_PLACE_DEVICE);
        work(&rig);
    }
}

COMM_TEXT_TEST(CommPlugins, CheckKnowsWhatACollectiveUses,
               "[weir]\nplugins = check\n[comm]\ntransport = fake\n", 2)
{
    struct gate gate = {0}; // the copies come later, which nothing tells
    struct weir_check_finding finding;
    work(rig);
    EXPECT_UINT_EQ(weir_check_error_count(rig->runtime), 0);
    comm_rig_open_others(rig);
    weir_queue *other = rig->others[0];
    EXPECT_OK(weir_queue_host_call(other, gate_pass, &gate));
    COMM_RIG_REDUCE_ALL(rig, 2);
    EXPECT_OK(weir_queue_copy(other, rig->dst[1], 512, rig->dst[0], 0, 8)); // nothing orders it
    EXPECT_OK(weir_queue_copy(other, rig->src[1], 0, rig->dst[1], 512, 8)); // nor this
    ASSERT_UINT_EQ(weir_check_error_count(rig->runtime), 2);
    EXPECT_OK(weir_check_get(rig->runtime, 0, &finding));
    EXPECT_STR_EQ(weir_check_kind_name(finding.kind), "read-after-write");
    EXPECT_STR_EQ(finding.first.operation, "collective");
    EXPECT_UINT_EQ(finding.first.size, 8);
    EXPECT_OK(weir_check_get(rig->runtime, 1, &finding));
    EXPECT_STR_EQ(weir_check_kind_name(finding.kind), "write-after-read");
    EXPECT_STR_EQ(finding.first.operation, "collective");
    comm_rig_sync(rig, WEIR_FOREVER);
    gate_open(&gate);
    EXPECT_OK(weir_queue_sync(other, WEIR_FOREVER));
}

static void open_with_fault(struct comm_rig *rig, const char *fault)
{
    char text[160];
    snprintf(text, sizeof text,
             "[weir]\nplugins = fault\n[comm]\ntransport = fake\n[fault]\nfault = %s\nat = 1\n"
             "kinds = collective\n",
             fault);
    comm_rig_open(rig, text, 2, WEIR_PLACE_DEVICE);
}

#define FAULT_TEST(suite, name, fault) \
    COMM_RIG_TEST_BY(suite, name, open_with_fault(rig, fault), comm_rig_close(rig))

// The queue has given the collective its place, and then it was refused: the other rank is told.
WEIR_TEST(CommPlugins, ACollectiveIsRefused)
{
    static const char *const faults[] = {"refuse", "lose"};
    for (int i = 0; i < 2; i++) {
        own_comm_rig rig = {0};
        open_with_fault(&rig, faults[i]);
        EXPECT_INT_LT(COMM_RIG_REDUCE(&rig, 0, 2), 0);
        EXPECT_ERROR("fault");
        EXPECT_INT_LT(weir_comm_error(rig.comms[0]), 0);
        WEIR_IGNORE(COMM_RIG_REDUCE(&rig, 1, 2)); // refused, too, if the device is lost
        COMM_RIG_EXPECT_CAUSE(rig.queues[1], i ? "fault" : "rank 0 cannot take part: ");
    }
}

// The queue fails at the collective, which the submit did not tell; the other rank hears why.
FAULT_TEST(CommPlugins, ACollectiveFails, "fail")
{
    COMM_RIG_REDUCE_ALL(rig, 2);
    COMM_RIG_EXPECT_CAUSE(rig->queues[0], "a failure by a host call");
    COMM_RIG_EXPECT_CAUSE(rig->queues[1], "rank 0 cannot take part: ", "a failure by a host call");
    EXPECT_INT_LT(weir_comm_error(rig->comms[0]), 0);
    EXPECT_OK(weir_queue_recover(rig->queues[0]));
    EXPECT_INT_LT(COMM_RIG_REDUCE(rig, 0, 2), 0); // the communicator is dead
}

FAULT_TEST(CommPlugins, ASlowCollective, "slow")
{
    work(rig);
}

// The all-reduces and exchanges of work(), in the order of each queue.
static void expect_traced(const struct weir_trace *trace)
{
    size_t found = 0;
    for (size_t i = 0; i < trace->operation_count; i++) {
        const struct weir_trace_operation *it = &trace->operations[i];
        if (it->kind != WEIR_TRACE_COLLECTIVE)
            continue;
        const bool exchange = found++ % 2 == 0;
        ASSERT_NOT_NULL(it->collective);
        EXPECT_STR_EQ(it->name, exchange ? "ncclKernel_Exchange" : "ncclKernel_AllReduce_Sum_i32");
        EXPECT_STR_EQ(it->collective->kind, exchange ? "exchange" : "all-reduce");
        EXPECT_STR_EQ(it->collective->reduction, exchange ? "" : "sum");
        EXPECT_INT_EQ(it->engine, WEIR_ENGINE_COMMUNICATION);
        EXPECT_UINT_EQ(it->bytes, 8);
        EXPECT_UINT_EQ(it->collective->rank_count, 2);
        EXPECT_TRUE(it->timed);
        EXPECT_UINT_LE(it->submit_ns, it->start_ns);
        EXPECT_UINT_LT(it->start_ns, it->end_ns);
    }
    EXPECT_UINT_EQ(found, 4);
    EXPECT_UINT_EQ(trace->meta.unfinished, 0);
}

// The trace of a run of two ranks; `more` is text of the INI file.
static struct weir_trace *trace_of(void (*run)(struct comm_rig *rig), const char *more)
{
    struct comm_rig rig;
    char path[COMM_TRACE_PATH_SIZE];
    char text[700];
    comm_trace_path(path, "collectives");
    snprintf(text, sizeof text, "[weir]\nplugins = trace\n[trace]\nfile = %s\n%s", path, more);
    comm_rig_open(&rig, text, 2, WEIR_PLACE_DEVICE);
    run(&rig);
    comm_rig_close(&rig);
    return comm_trace_read(path);
}

#define FAKE "[comm]\ntransport = fake\n"

WEIR_TEST(CommPlugins, TraceHasNamesAndTimes)
{
    own_trace trace = trace_of(work, FAKE);
    ASSERT_NOT_NULL(trace);
    expect_traced(trace);
}

static void fail(struct comm_rig *rig)
{
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, 2));
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, 2));
    EXPECT_OK(weir_comm_abort(rig->comms[1], "enough"));
    COMM_RIG_EXPECT_CAUSE(rig->queues[0], "enough");
}

// A collective that does not run has no times; the one that failed has.
WEIR_TEST(CommPlugins, TraceOfAFailedCollective)
{
    size_t timed = 0;
    size_t untimed = 0;
    own_trace trace = trace_of(fail, FAKE);
    ASSERT_NOT_NULL(trace);
    for (size_t i = 0; i < trace->operation_count; i++)
        if (trace->operations[i].kind == WEIR_TRACE_COLLECTIVE)
            *(trace->operations[i].timed ? &timed : &untimed) += 1;
    EXPECT_UINT_EQ(timed, 1);
    EXPECT_UINT_EQ(untimed, 1);
}

// Times of collectives that NCCL carries out, and of those between them that it cannot, which the front end carries out
// through the host.

static const struct {
    weir_datatype element; // NCCL has no i16
    const char *name;
} steps[] = {
    {WEIR_I32, "ncclKernel_AllReduce_Sum_i32"}, {WEIR_I16, "ncclKernel_AllReduce_Sum_i16"},
    {WEIR_I16, "ncclKernel_AllReduce_Sum_i16"}, {WEIR_F32, "ncclKernel_AllReduce_Sum_f32"},
    {WEIR_I16, "ncclKernel_AllReduce_Sum_i16"},
};

enum {
    STEPS = sizeof steps / sizeof *steps
};

static void work_in_turns(struct comm_rig *rig)
{
    ASSERT_INT_EQ(weir_device_limits(rig->device)->collectives, 2);
    for (int i = 0; i < STEPS; i++)
        for (uint32_t r = 0; r < 2; r++)
            EXPECT_OK(weir_queue_all_reduce(rig->queues[r], rig->comms[r], rig->dst[r], 0,
                                            rig->src[r], 0, 16, steps[i].element, WEIR_SUM));
    comm_rig_sync(rig, WEIR_FOREVER);
}

static void expect_turns(const struct weir_trace *trace, const struct weir_trace_queue *queue)
{
    uint64_t end_ns = 0;
    size_t step = 0;
    for (size_t i = 0; i < queue->operation_count; i++) {
        const struct weir_trace_operation *it = &trace->operations[queue->first_operation + i];
        if (it->kind != WEIR_TRACE_COLLECTIVE)
            continue;
        ASSERT_UINT_LT(step, STEPS);
        weir_test_note("step %zu", step);
        EXPECT_STR_EQ(it->name, steps[step++].name);
        EXPECT_INT_EQ(it->engine, WEIR_ENGINE_COMMUNICATION);
        EXPECT_TRUE(it->timed);
        EXPECT_UINT_LE(end_ns, it->start_ns);
        EXPECT_UINT_LE(it->start_ns, it->end_ns);
        end_ns = it->end_ns;
    }
    weir_test_note(NULL);
    EXPECT_UINT_EQ(step, STEPS);
}

WEIR_TEST(CommTrace, EngineAndHostInTurns)
{
    own_trace trace = trace_of(work_in_turns, "");
    ASSERT_NOT_NULL(trace);
    EXPECT_UINT_EQ(trace->meta.unfinished, 0);
    ASSERT_UINT_EQ(trace->queue_count, 2);
    for (size_t i = 0; i < 2; i++)
        expect_turns(trace, &trace->queues[i]);
}
