// The job `graph`: what launching a graph of many small kernels costs the submitting thread, and how long it
// takes, beside the same kernels launched one by one: in a chain, also by the driver's own calls on CUDA; and
// forked to four queues and joined, the shape of a frame that several engines work on.
#include "kernels/conformance/conformance.h"
#include "tests/bench/jobs/drivers.h"

enum {
    COUNTS_MOST = 6,
    NODES_MOST = 10000,
    PENDING = 1000, // kernels submitted before they are waited for
    QUEUES = 4,
    NUMBERS = 256, // of each queue: 1 KiB, a multiple of what devices ask of offsets
    LAUNCHED = 64,
    PROOF = 3
};

#define BYTES ((size_t)4 * NUMBERS)

enum way {
    WEIR_GRAPH,
    WEIR_SINGLE,
    RAW_GRAPH,
    RAW_SINGLE,
    WAYS
};

static const char *const way_names[WAYS] = {"Weir, graph", "Weir, one by one", "raw CUDA, graph",
                                            "raw CUDA, one by one"};

// Some kernels on some queues.
struct shape {
    unsigned nodes, queues;
    void *graphs[2]; // of both sides
    struct bench_samples submit_us[WAYS], complete_us[WAYS];
};

struct graphs {
    uint64_t launches;
    struct bench_list nodes;
    bool has_raw;
    struct side sides[2];                 // Weir's, and that of the driver
    struct shape shapes[2 * COUNTS_MOST]; // chains, then forks
    size_t count;
};

// Launches. The first kernel is on the first queue; the others are forked after it.

static unsigned share_of(const struct shape *it, unsigned queue)
{
    const unsigned left = it->nodes - 1;
    return left / it->queues + (queue < left % it->queues);
}

static void launch(struct side *side, unsigned queue, unsigned times)
{
    const struct side_launch one = {
        .at = queue * BYTES, .size = BYTES, .blocks = 1, .block = LAUNCHED, .a = 1, .b = LAUNCHED};
    for (unsigned i = 0; i < times; i++)
        side->calls->launch(side, queue, &one);
}

// Event 0 is the fork, event i the end of queue i.
static void submit_once(struct side *side, const struct shape *it)
{
    const struct side_calls *calls = side->calls;
    launch(side, 0, 1);
    if (it->queues > 1)
        calls->record(side, 0, 0);
    for (unsigned i = 1; i < it->queues; i++) {
        calls->wait(side, i, 0);
        launch(side, i, share_of(it, i));
    }
    launch(side, 0, share_of(it, 0));
    for (unsigned i = 1; i < it->queues; i++) {
        calls->record(side, i, i);
        calls->wait(side, 0, i);
    }
}

static void submit(struct graphs *g, struct shape *it, enum way way, size_t count)
{
    struct side *side = &g->sides[way / 2];
    for (size_t i = 0; i < count; i++)
        if (way % 2 == WEIR_GRAPH)
            side->calls->launch_graph(side, it->graphs[way / 2]);
        else
            submit_once(side, it);
}

static int ways_of(const struct graphs *g, const struct shape *it)
{
    return g->has_raw && it->queues == 1 ? WAYS : RAW_GRAPH;
}

// Checking.

// The graph PROOF times and its kernels one by one once: each kernel adds 1.
static void check(struct graphs *g, struct shape *it, enum way as_graph)
{
    struct side *side = &g->sides[as_graph / 2];
    const size_t size = it->queues * BYTES;
    uint32_t numbers[QUEUES * NUMBERS];
    for (uint32_t i = 0; i < QUEUES * NUMBERS; i++)
        numbers[i] = i;
    side->calls->upload(side, numbers, size);
    submit(g, it, as_graph, PROOF);
    submit(g, it, as_graph + 1, 1);
    side->calls->finish(side, 0);
    side->calls->download(side, numbers, size);
    for (uint32_t i = 0; i < it->queues * NUMBERS; i++) {
        const unsigned queue = i / NUMBERS, times = share_of(it, queue) + !queue;
        const bool adds = i % NUMBERS < LAUNCHED && bench.runs_kernels;
        const uint32_t right = i + (adds ? (PROOF + 1) * times : 0);
        if (numbers[i] != right)
            cli_fail(CLI_FAILED,
                     "%s of %u nodes: number %u is %u and must be %u; nothing was timed",
                     way_names[as_graph], it->nodes, (unsigned)i, (unsigned)numbers[i],
                     (unsigned)right);
    }
    bench.checked++;
}

// Measuring.

static void measure_way(struct graphs *g, struct shape *it, enum way way)
{
    const size_t batch = it->nodes < PENDING ? PENDING / it->nodes : 1;
    double submitting = 0, all = 0;
    for (uint64_t done = 0; done < g->launches;) {
        const size_t count = g->launches - done < batch ? (size_t)(g->launches - done) : batch;
        const uint64_t began = cli_now_ns();
        submit(g, it, way, count);
        submitting += (double)(cli_now_ns() - began);
        g->sides[way / 2].calls->finish(&g->sides[way / 2], 0);
        all += (double)(cli_now_ns() - began);
        done += count;
    }
    bench_keep(&it->submit_us[way], submitting * 1e-3 / (double)g->launches);
    bench_keep(&it->complete_us[way], all * 1e-3 / (double)g->launches);
}

static void put_way(struct bench_table *table, const struct shape *it, int way)
{
    const int raw = way % 2 == WEIR_GRAPH ? RAW_GRAPH : RAW_SINGLE;
    const struct bench_samples submit = it->submit_us[way], complete = it->complete_us[way];
    const struct bench_samples none = {0};
    bench_number(table, "nodes", "nodes", it->nodes);
    bench_text(table, "way", "", way_names[way]);
    bench_value(table, "submit_us", "submit us", 2, submit);
    bench_value(table, "complete_us", "complete us", 2, complete);
    if (it->queues > 1)
        return;
    bench_value(table, "submit_to_raw", "x raw", 3,
                way < RAW_GRAPH ? bench_ratio(submit, it->submit_us[raw]) : none);
    bench_value(table, "complete_to_raw", "x raw", 3,
                way < RAW_GRAPH ? bench_ratio(complete, it->complete_us[raw]) : none);
    bench_plot_point(way_names[way], it->nodes, submit);
}

static void report(struct graphs *g)
{
    bench_parameter("launches", (double)g->launches);
    bench_plot("Submitting a chain of small kernels", "kernels", "microseconds");
    bench.plot.doubling = true;
    struct bench_table *tables[2] = {bench_table("graphs",
                                                 "kernels that do next to nothing, in a chain"),
                                     bench_table("forks",
                                                 "the same, forked to four queues and joined")};
    for (size_t i = 0; i < g->count; i++)
        for (int way = 0; way < ways_of(g, &g->shapes[i]); way++)
            put_way(tables[g->shapes[i].queues > 1], &g->shapes[i], way);
}

// Set-up.

static void destroy_graphs(void *object)
{
    struct graphs *g = object;
    for (size_t i = 0; i < g->count; i++)
        for (int k = 0; k < 2; k++)
            if (g->shapes[i].graphs[k])
                g->sides[k].calls->destroy_graph(&g->sides[k], g->shapes[i].graphs[k]);
}

static void add_shape(struct graphs *g, unsigned nodes, unsigned queues)
{
    struct shape *it = &g->shapes[g->count++];
    it->nodes = nodes;
    it->queues = queues;
    for (int way = 0; way < ways_of(g, it); way += 2) {
        struct side *side = &g->sides[way / 2];
        side->calls->begin_graph(side, queues);
        submit_once(side, it);
        it->graphs[way / 2] = side->calls->end_graph(side, queues);
    }
}

static bool open_side(struct side *side, const struct side_calls *calls)
{
    if (!side_open(side, calls, bench.device, &conformance_kernels))
        return false;
    side_queues(side, QUEUES);
    side->calls->kernel(side, 0, "increment");
    side->calls->memory(side, QUEUES * BYTES);
    return true;
}

static void open_all(struct graphs *g)
{
    (void)open_side(&g->sides[0], &side_weir_calls);
    g->has_raw = open_side(&g->sides[1], &side_cuda_calls);
    cli_own(destroy_graphs, g);
    for (size_t i = 0; i < 2 * g->nodes.count; i++) {
        const unsigned nodes = (unsigned)g->nodes.values[i % g->nodes.count];
        const unsigned queues = i < g->nodes.count ? 1 : QUEUES;
        // A fork with fewer has queues without a kernel.
        if (queues == 1 || nodes > QUEUES)
            add_shape(g, nodes, queues);
    }
}

static void run(void *user)
{
    struct graphs *g = user;
    open_all(g);
    for (size_t i = 0; i < g->count; i++)
        for (int way = 0; way < ways_of(g, &g->shapes[i]); way += 2)
            check(g, &g->shapes[i], (enum way)way);
    // The order of the ways changes from turn to turn.
    for (bench_start(); bench_turn();)
        for (size_t i = 0; i < g->count; i++) {
            const int ways = ways_of(g, &g->shapes[i]);
            for (int k = 0; k < ways; k++)
                measure_way(g, &g->shapes[i], (enum way)(bench.turn % 2 == 0 ? k : ways - 1 - k));
        }
    report(g);
}

int job_graph(int argc, char **argv)
{
    static struct graphs g = {
        .nodes = {.text = "1,5,20,100", .minimum = 1, .maximum = NODES_MOST, .most = COUNTS_MOST},
        .launches = 200,
    };
    static const struct cli_option options[] = {
        {"nodes", "LIST", "kernels of a graph (1,5,20,100)", CLI_VALUES, &g.nodes, 0, 0},
        {"launches", "N", "launches of a graph in a turn (200)", CLI_COUNT, &g.launches, 1,
         1000000},
    };
    static const struct bench_program program = {
        .options = options,
        .option_count = BENCH_COUNT(options),
        .run = run,
    };
    return bench_main(&program, &g, argc, argv);
}
