// The job `overlap`: weir bench overlap beside chunks without Weir, in the common orders by the calls of the CUDA
// driver or of plain OpenCL, on memory of their own. As NVIDIA's overlap sample for OpenCL does it, every operation
// is flushed. Queues are created for each way, outside the measured time, so that those of one way do not share a
// device's channels with those of another.

#include "kernels/bench/bench.h"
#include "tests/bench/jobs/drivers.h"

enum {
    BLOCK = 256,                  // work-items of a block of the kernel
    PIECES_MAX = SIDE_EVENTS / 2, // each has two events
    LEAST = 2 << 20,              // bytes of the first piece that grows
    ALIGNMENT = BLOCK * sizeof(uint32_t)
};

enum order {
    DEPTH_FIRST,   // H_0 K_0 D_0  H_1 K_1 D_1  ...
    BREADTH_FIRST, // H_0 H_1 ...  K_0 K_1 ...  D_0 D_1 ...
    INTERLEAVED    // H_0  K_0 H_1 D_0  K_1 H_2 D_1  ...
};

enum stage {
    UP,
    MULTIPLY,
    DOWN,
    STAGES
};

struct way {
    const char *name;
    enum order order;
    unsigned queues, pieces; // as many queues as STAGES: one for each, with events between them
    bool grows; // pieces from LEAST bytes, a twentieth each, up to a 1 / `pieces` of all
    bool graph; // captured once
};

// The textbook's have as many chunks as queues.
static const struct way ways[] = {
    {"one_queue", DEPTH_FIRST, 1, 1, false, false},
    {"depth_first_2", DEPTH_FIRST, 2, 2, false, false},
    {"breadth_first_2", BREADTH_FIRST, 2, 2, false, false},
    {"interleaved_2", INTERLEAVED, 2, 2, false, false},
    {"depth_first_4", DEPTH_FIRST, 4, 4, false, false},
    {"breadth_first_4", BREADTH_FIRST, 4, 4, false, false},
    {"interleaved_4", INTERLEAVED, 4, 4, false, false},
    {"depth_first_8", DEPTH_FIRST, 8, 8, false, false},
    {"breadth_first_8", BREADTH_FIRST, 8, 8, false, false},
    {"interleaved_8", INTERLEAVED, 8, 8, false, false},
    {"depth_first_16", DEPTH_FIRST, 16, 16, false, false},
    {"one_queue_64_chunks", DEPTH_FIRST, 1, 64, false, false},
    {"depth_first_8_64_chunks", DEPTH_FIRST, 8, 64, false, false},
    {"breadth_first_8_64_chunks", BREADTH_FIRST, 8, 64, false, false},
    {"interleaved_8_64_chunks", INTERLEAVED, 8, 64, false, false},
    {"three_queues_32_chunks", INTERLEAVED, 3, 32, false, false},
    {"three_queues_64_chunks", INTERLEAVED, 3, 64, false, false},
    {"three_queues_64_chunks_breadth", BREADTH_FIRST, 3, 64, false, false},
    {"three_queues_96_chunks", INTERLEAVED, 3, 96, false, false},
    {"three_queues_growing", INTERLEAVED, 3, 64, true, false},
    {"graph_64_chunks", INTERLEAVED, 3, 64, false, true},
    {"graph_128_chunks", INTERLEAVED, 3, 128, false, true},
};

enum {
    WAYS = sizeof ways / sizeof *ways,
    GRAPHS = 2 // the last ones
};

// The side, and what is run once on it.
static struct {
    struct side side;
    size_t size;
    const struct way *way;
    unsigned count; // of its pieces
    size_t ends[PIECES_MAX];
    uint32_t rounds;
    void *graph; // NULL: none
} raw;

// The orders.

static void cut(const struct way *way)
{
    const size_t units = raw.size / ALIGNMENT, most = raw.size / way->pieces;
    const size_t equal = way->pieces < units ? way->pieces : units;
    size_t next = LEAST, end = 0;
    for (raw.count = 0; end < raw.size && raw.count < PIECES_MAX; raw.count++) {
        next = next < most ? next : most;
        if (way->grows)
            end += (next + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        else
            end = units * (raw.count + 1) / equal * ALIGNMENT;
        if (end > raw.size || raw.count + 1 == PIECES_MAX)
            end = raw.size;
        raw.ends[raw.count] = end;
        next += next / 20;
    }
}

// One operation of one piece, with the events that its stage needs `by_engine`.
static void submit(enum stage stage, unsigned piece)
{
    struct side *side = &raw.side;
    const struct side_calls *calls = side->calls;
    const size_t at = piece > 0 ? raw.ends[piece - 1] : 0;
    const size_t size = raw.ends[piece] - at;
    const uint32_t count = (uint32_t)(size / sizeof(uint32_t));
    const struct side_launch multiply = {.at = at,
                                         .size = size,
                                         .blocks = (count + BLOCK - 1) / BLOCK,
                                         .block = BLOCK,
                                         .a = raw.rounds,
                                         .b = count};
    const bool by_engine = raw.way->queues == STAGES;
    const unsigned queue = by_engine ? stage : piece % raw.way->queues;
    if (by_engine && stage != UP)
        calls->wait(side, queue, 2 * piece + (stage == DOWN));
    if (stage == MULTIPLY)
        calls->launch(side, queue, &multiply);
    else
        calls->copy(side, queue, stage == UP, at, size);
    calls->flush(side, queue);
    if (!by_engine || stage == DOWN)
        return;
    // Flushes the work that another queue waits for.
    calls->record(side, queue, 2 * piece + (stage == MULTIPLY));
    calls->flush(side, queue);
}

static void submit_all(void)
{
    const unsigned count = raw.count;
    const enum order order = raw.way->order;
    for (unsigned i = 0; order == DEPTH_FIRST && i < count * STAGES; i++)
        submit((enum stage)(i % STAGES), i / STAGES);
    for (unsigned i = 0; order == BREADTH_FIRST && i < count * STAGES; i++)
        submit((enum stage)(i / count), i % count);
    if (order != INTERLEAVED)
        return;
    submit(UP, 0);
    for (unsigned i = 0; i < count; i++) {
        submit(MULTIPLY, i);
        if (i + 1 < count)
            submit(UP, i + 1);
        submit(DOWN, i);
    }
}

static void run_once(void)
{
    struct side *side = &raw.side;
    if (raw.graph)
        side->calls->launch_graph(side, raw.graph);
    else
        submit_all();
    for (unsigned i = 0; i < raw.way->queues; i++)
        side->calls->flush(side, i);
    for (unsigned i = 0; i < raw.way->queues; i++)
        side->calls->finish(side, i);
}

static double run_times(int times)
{
    struct side *side = &raw.side;
    double ms = 0;
    raw.graph = NULL;
    if (raw.way->graph) {
        side->calls->begin_graph(side, raw.way->queues);
        submit_all();
        raw.graph = side->calls->end_graph(side, raw.way->queues);
    }
    for (int i = 0; i < times; i++) {
        const uint64_t began = cli_now_ns();
        run_once();
        ms = (double)(cli_now_ns() - began) * 1e-6;
    }
    if (raw.graph)
        side->calls->destroy_graph(side, raw.graph);
    return ms;
}

// Other rounds in each way that is checked, so that numbers that a way before has left are wrong.
static double run_way(size_t index, bool checks)
{
    struct side *side = &raw.side;
    raw.way = &ways[index];
    raw.rounds = 1 + (checks ? index % 14 : 0);
    cut(raw.way);
    side_queues(side, raw.way->queues);
    const double ms = run_times(checks ? 1 : 2);
    for (unsigned i = raw.way->queues; i-- > 0;)
        side->calls->close_queue(side, i);
    if (checks)
        (void)bench_work_compare(side->pinned[1], raw.size, OVERLAP_SEED, raw.rounds,
                                 raw.way->name);
    bench_judge();
    return ms;
}

static const char *name_of(size_t way)
{
    return ways[way].name;
}

static size_t open_raw(size_t size)
{
    const bool is_opencl = strcmp(weir_runtime_backend(bench.runtime), "opencl") == 0;
    struct side *side = &raw.side;
    raw.size = size;
    if (!side_open(side, is_opencl ? &side_opencl_calls : &side_cuda_calls, bench.device,
                   &bench_kernels))
        return 0;
    side->calls->kernel(side, 0, "advance");
    side->calls->memory(side, size);
    for (unsigned i = 0; i < 2; i++)
        side->calls->pinned(side, i, size);
    bench_work_numbers(side->pinned[0], size, OVERLAP_SEED);
    return side->calls->begin_graph ? WAYS : WAYS - GRAPHS;
}

// The job.

int job_overlap(int argc, char **argv)
{
    static const struct overlap_raw calls = {
        .open = open_raw,
        .name = name_of,
        .run = run_way,
    };
    return bench_overlap_main(&calls, argc, argv);
}
