// Order in virtual time against the edges of the plugin `check`: if that finds no race in a program, the
// uses of memory that conflict run one after the other on each modelled GPU. Random programs, in which
// some waits are left out: where others order the same operations, `check` finds nothing.
#include <stdio.h>
#include <string.h>
#include <weir/check.h>

#include "tests/plugins/sim/job.h"

enum {
    PROGRAMS = 30,
    OPERATIONS = 40,
    STREAMS = 4,
    CELLS = 5, // of each memory, which operations use whole
    CELL = 4096,
    DEVICE_CELLS = CELLS, // the first of the device's, which come after the host's
};

static const char file[] = "program";

// An operation reads one cell, or none, and writes one.
struct operation {
    int queue;
    int reads; // -1: none
    int writes;
    struct weir_event end;
    uint64_t start_ns;
    uint64_t end_ns;
};

struct program {
    struct rig rig;
    weir_queue *queues[STREAMS];
    struct operation operations[OPERATIONS];
    int left_out; // waits
};

static uint64_t seed;

static int below(int count)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)count);
}

static bool conflict(const struct operation *a, const struct operation *b)
{
    return a->writes == b->writes || a->reads == b->writes || a->writes == b->reads;
}

// An upload, a download, a copy on the device or a kernel.
static struct operation random_operation(void)
{
    const int kind = below(4);
    const int host = below(CELLS), device = DEVICE_CELLS + below(CELLS);
    struct operation operation = {.queue = below(STREAMS), .writes = device};
    operation.reads = kind == 0 ? host : -1;
    if (kind == 1)
        operation.reads = device, operation.writes = host;
    if (kind == 2)
        operation.reads = DEVICE_CELLS + (device - DEVICE_CELLS + 1) % CELLS;
    return operation;
}

static weir_buffer *memory_of(const struct rig *rig, int cell)
{
    return cell < DEVICE_CELLS ? rig->frame : rig->memory;
}

static size_t offset_of(int cell)
{
    return (size_t)(cell % DEVICE_CELLS) * CELL;
}

// Each has a line of its own, so that each pair of them is a finding of its own.
static weir_status submit(const struct program *program, const struct operation *operation,
                          int line)
{
    weir_queue *queue = program->queues[operation->queue];
    weir_buffer *to = memory_of(&program->rig, operation->writes);
    const size_t at = offset_of(operation->writes);
    if (operation->reads >= 0)
        return weir_queue_copy_at(queue, to, at, memory_of(&program->rig, operation->reads),
                                  offset_of(operation->reads), CELL, file, line);
    const struct weir_argument arguments[] = {weir_out(to, at, CELL), weir__argument_u32(7),
                                              weir__argument_u64(3)};
    return weir_queue_launch_at(queue, program->rig.kernel, weir_dim(2, 1, 1), weir_dim(1, 1, 1),
                                arguments, 3, file, line);
}

// For an earlier operation that conflicts: its queue's record after it, or a later one; now and then the
// host waits instead, and now and then nothing does.
static void wait_for(struct program *program, int index, int earlier)
{
    const int queue = program->operations[earlier].queue;
    int last = earlier;
    for (int i = earlier + 1; i < index; i++)
        if (program->operations[i].queue == queue && below(3) == 0)
            last = i;
    const struct weir_event end = program->operations[last].end;
    const int way = below(40);
    if (way < 3)
        program->left_out++;
    else if (way == 3)
        EXPECT_OK(weir_event_sync(end, WEIR_FOREVER));
    else
        EXPECT_OK(weir_queue_wait(program->queues[program->operations[index].queue], end));
}

static void run(struct program *program)
{
    for (int i = 0; i < OPERATIONS; i++) {
        struct operation *operation = &program->operations[i];
        *operation = random_operation();
        for (int k = 0; k < i; k++)
            if (program->operations[k].queue != operation->queue &&
                conflict(operation, &program->operations[k]))
                wait_for(program, i, k);
        EXPECT_OK(submit(program, operation, i + 1));
        EXPECT_OK(weir_queue_record(program->queues[operation->queue], &operation->end));
    }
    for (int i = 0; i < STREAMS; i++)
        EXPECT_OK(weir_queue_sync(program->queues[i], WEIR_FOREVER));
}

// Each operation takes as long as several submits, so that queues have work that waits.
static bool start(struct program *program, const char *trace, const char *gpu, const char *changes)
{
    char more[128];
    *program = (struct program){.left_out = 0};
    snprintf(more, sizeof more, "changes = copy_both_latency_ns=0, copy_latency_ns=9000%s\n",
             changes);
    if (!rig_start_with(&program->rig, trace, job_section(gpu, "30000", more), "trace, check, sim"))
        return false;
    bool fine = true;
    for (int i = 0; i < STREAMS && fine; i++)
        fine = weir_queue_create(program->rig.device, NULL, &program->queues[i]) == WEIR_OK;
    EXPECT_TRUE(fine);
    return fine;
}

static void read_times(struct program *program, const char *path)
{
    struct weir_trace *trace = rig_read(path);
    for (size_t i = 0; trace && i < trace->operation_count; i++) {
        const struct weir_trace_operation *from = &trace->operations[i];
        if (strcmp(from->file, file) != 0)
            continue;
        program->operations[from->line - 1].start_ns = from->start_ns;
        program->operations[from->line - 1].end_ns = from->end_ns;
    }
    weir_trace_destroy(&trace);
}

static bool is_race(const struct weir_check_finding *found)
{
    return found->kind <= WEIR_CHECK_WRITE_AFTER_WRITE;
}

// Pairs of operations that conflict, the later one of which starts before the earlier one has ended.
static int count_overtaken(const struct program *program)
{
    int count = 0;
    for (int i = 0; i < OPERATIONS; i++)
        for (int k = 0; k < i; k++)
            count += conflict(&program->operations[i], &program->operations[k]) &&
                     program->operations[i].start_ns < program->operations[k].end_ns;
    return count;
}

struct outcome {
    int races;
    int left_out;
    int overtaken;
};

static struct outcome outcome_of(const char *gpu, const char *changes)
{
    static struct program program;
    const char *path = job_trace();
    struct outcome outcome = {0};
    if (!start(&program, path, gpu, changes))
        return outcome;
    run(&program);
    for (size_t i = 0; i < weir_check_count(program.rig.runtime); i++) {
        struct weir_check_finding found;
        EXPECT_OK(weir_check_get(program.rig.runtime, i, &found));
        outcome.races += is_race(&found);
    }
    for (int i = 0; i < STREAMS; i++)
        weir_queue_destroy(&program.queues[i]);
    rig_finish(&program.rig);
    read_times(&program, path);
    outcome.left_out = program.left_out;
    outcome.overtaken = count_overtaken(&program);
    return outcome;
}

// Programs without a race have none in virtual time, though waits were left out of them; of those with
// races some do.
static void expect_order(const char *gpu, const char *changes)
{
    int right = 0, shorter = 0, overtaken = 0;
    for (uint64_t i = 1; i <= PROGRAMS; i++) {
        seed = i;
        const struct outcome outcome = outcome_of(gpu, changes);
        if (outcome.races > 0) {
            overtaken += outcome.overtaken;
            continue;
        }
        EXPECT_INT_EQ(outcome.overtaken, 0);
        right++;
        shorter += outcome.left_out > 0;
    }
    EXPECT_TRUE(right >= PROGRAMS / 8);
    EXPECT_TRUE(shorter > 0);
    EXPECT_TRUE(overtaken > 0);
}

WEIR_TEST(Order, StreamQueues)
{
    expect_order("h200", "");
}

WEIR_TEST(Order, ChannelsAndOneCopyEngine)
{
    expect_order("tegra_x2", ", channels=2");
}

WEIR_TEST(Order, EngineQueues)
{
    expect_order("c1060", "");
}

WEIR_TEST(Order, LateSignals)
{
    expect_order("c2050", "");
}
