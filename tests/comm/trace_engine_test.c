// Times of collectives that NCCL carries out, and of those between them that it cannot, which the front
// end carries out through the host.
#include <stdio.h>

#include "tests/comm/rig.h"
#include "tests/comm/trace.h"

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

static void work(struct comm_rig *rig)
{
    for (int i = 0; i < STEPS; i++)
        for (uint32_t r = 0; r < 2; r++)
            EXPECT_OK(weir_queue_all_reduce(rig->queues[r], rig->comms[r], rig->dst[r], 0,
                                            rig->src[r], 0, 16, steps[i].element, WEIR_SUM));
    for (uint32_t r = 0; r < 2; r++)
        EXPECT_OK(weir_queue_sync(rig->queues[r], WEIR_FOREVER));
}

static void expect_queue(const struct weir_trace *trace, const struct weir_trace_queue *queue)
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
    struct comm_rig rig;
    char path[COMM_TRACE_PATH_SIZE];
    char text[700];
    comm_trace_path(path, "engine");
    snprintf(text, sizeof text, "[weir]\nplugins = trace\n[trace]\nfile = %s\n", path);
    comm_rig_open(&rig, text, 2, WEIR_PLACE_DEVICE);
    ASSERT_INT_EQ(weir_device_limits(rig.device)->collectives, 2);
    work(&rig);
    comm_rig_close(&rig);
    struct weir_trace *trace = comm_trace_read(path);
    ASSERT_NOT_NULL(trace);
    EXPECT_UINT_EQ(trace->meta.unfinished, 0);
    ASSERT_UINT_EQ(trace->queue_count, 2);
    for (size_t i = 0; i < 2; i++)
        expect_queue(trace, &trace->queues[i]);
    weir_trace_destroy(&trace);
}
