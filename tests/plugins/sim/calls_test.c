// Random programs of the public API on random GPUs, with queues of priorities, host calls, copies between
// two devices and graphs, each of which is launched several times: the times in their traces are those of
// the slow simulation, to the nanosecond.
#include <stdlib.h>

#include "tests/plugins/sim/calls.h"
#include "tests/plugins/sim/job.h"

static bool is_timed(const struct step *step)
{
    return step->kind != SIM_MARK && step->kind != SIM_PAUSE && step->kind != SIM_HOST;
}

// When a line's operation ran, or the nodes of its launch that have times, of which the trace has the first
// start and the last end. False: none has.
static bool expected(const struct calls *calls, int line, struct slot *out_slot)
{
    const uint32_t graph = calls->graph_of[line];
    const int first = calls->step_of[line] + (graph > 0);
    const int count = graph > 0 ? (int)calls->graphs[graph - 1].node_count : 1;
    *out_slot = (struct slot){UINT64_MAX, 0};
    for (int i = first; i < first + count; i++) {
        const struct slot *slot = &calls->program.slots[i];
        if (!is_timed(&calls->program.steps[i]))
            continue;
        if (slot->start_ns < out_slot->start_ns)
            out_slot->start_ns = slot->start_ns;
        if (slot->end_ns > out_slot->end_ns)
            out_slot->end_ns = slot->end_ns;
    }
    return out_slot->start_ns != UINT64_MAX;
}

static int count_timed(const struct calls *calls)
{
    struct slot slot;
    int count = 0;
    for (int line = 0; line < calls->line; line++)
        count += expected(calls, line, &slot);
    return count;
}

// What the trace says, from the beginning of the first operation on. Returns how many differ.
static int count_different(const struct calls *calls, const struct weir_trace *trace)
{
    uint64_t base_ns = 0;
    int compared = 0, different = 0;
    for (size_t i = 0; i < trace->operation_count; i++)
        if (trace->operations[i].line == 0)
            base_ns = trace->operations[i].start_ns - calls->program.slots[0].start_ns;
    for (size_t i = 0; i < trace->operation_count; i++) {
        const struct weir_trace_operation *operation = &trace->operations[i];
        struct slot slot;
        if (!expected(calls, operation->line, &slot))
            continue;
        compared++;
        different += !operation->timed || operation->start_ns - base_ns != slot.start_ns ||
                     operation->end_ns - base_ns != slot.end_ns;
    }
    EXPECT_INT_EQ(compared, count_timed(calls));
    return different;
}

static void run(uint64_t seed, int operations)
{
    static struct calls calls;
    const char *path = job_trace();
    if (!calls_start(&calls, seed, path, "trace, sim"))
        return;
    calls_run(&calls, operations);
    run_oracle(&calls.program);
    calls_finish(&calls);
    struct weir_trace *trace = rig_read(path);
    if (trace && count_different(&calls, trace) > 0)
        WEIR_FAIL("program %llu differs", (unsigned long long)seed);
    weir_trace_destroy(&trace);
}

WEIR_TEST(Calls, RandomPrograms)
{
    const char *count = getenv("SIM_PROGRAMS");
    const uint64_t programs = count ? strtoull(count, NULL, 10) : 120;
    for (uint64_t i = 1; i <= programs; i++)
        run(i, 10 + (int)(i % 60));
}
