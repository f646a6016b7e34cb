// Graphs with collectives through the plugins that ship: check looks into them, a trace has them, and in
// virtual time a collective in one takes what the model says.
#include <stdio.h>

#include <weir/check.h>

#include "tests/comm/rig.h"
#include "tests/comm/trace.h"

enum {
    RANKS = 2,
    COUNT = 128, // of i32
    BYTES = 4 * COUNT,
};

struct graphs {
    struct comm_rig rig;
    weir_queue *side;
    weir_graph *graphs[RANKS];
};

static void open_with(struct graphs *g, const char *plugins, const char *more)
{
    char text[1024];
    *g = (struct graphs){.graphs = {NULL}};
    snprintf(text, sizeof text, "[weir]\nplugins = %s\n[comm]\ntransport = fake\n%s", plugins,
             more);
    comm_rig_open(&g->rig, text, RANKS, WEIR_PLACE_DEVICE);
    ASSERT_OK(weir_queue_create(g->rig.device, NULL, &g->side));
}

static void close_graphs(struct graphs *g)
{
    for (uint32_t i = 0; i < RANKS; i++)
        weir_graph_destroy(&g->graphs[i]);
    weir_queue_destroy(&g->side);
    comm_rig_close(&g->rig);
}

static void follow(weir_queue *to, weir_queue *from)
{
    struct weir_event event;
    EXPECT_OK(weir_queue_record(from, &event));
    EXPECT_OK(weir_queue_wait(to, event));
}

static weir_status reduce(struct graphs *g, uint32_t rank)
{
    return weir_queue_all_reduce(g->rig.queues[rank], g->rig.comms[rank], g->rig.dst[rank], 0,
                                 g->rig.src[rank], 0, COUNT, WEIR_I32, WEIR_SUM);
}

// Where the copy of a graph is.
enum place {
    AFTER,        // the reduction
    ON_ITS_QUEUE, // where it is after it anyway
    BESIDE,       // it, which is the mistake
};

// A fill, a reduction of it, and a copy of the result, on another branch unless it is ON_ITS_QUEUE.
static void capture(struct graphs *g, uint32_t rank, enum place place)
{
    struct comm_rig *rig = &g->rig;
    weir_queue *queue = rig->queues[rank];
    weir_queue *side = place == ON_ITS_QUEUE ? queue : g->side;
    const int32_t seven = 7;
    EXPECT_OK(weir_capture_begin(queue));
    EXPECT_OK(weir_queue_fill(queue, rig->src[rank], 0, BYTES, &seven, 4));
    if (place == BESIDE)
        follow(side, queue);
    EXPECT_OK(reduce(g, rank));
    if (place == AFTER)
        follow(side, queue);
    EXPECT_OK(weir_queue_copy(side, rig->src[rank], BYTES, rig->dst[rank], 0, BYTES));
    if (place != ON_ITS_QUEUE)
        follow(queue, side);
    EXPECT_OK(weir_capture_end(queue, NULL, &g->graphs[rank]));
}

static void launch(struct graphs *g, int times)
{
    for (int i = 0; i < times; i++)
        for (uint32_t r = 0; r < RANKS; r++)
            EXPECT_OK(weir_queue_graph(g->rig.queues[r], g->graphs[r]));
    for (uint32_t r = 0; r < RANKS; r++)
        EXPECT_OK(weir_queue_sync(g->rig.queues[r], WEIR_FOREVER));
}

static void expect_sums(struct graphs *g)
{
    int32_t numbers[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        numbers[i] = 14;
    for (uint32_t r = 0; r < RANKS; r++)
        comm_rig_expect(&g->rig, r, g->rig.src[r], COUNT, numbers, COUNT);
}

// What makes the copies' source defined.
static void write_results(struct graphs *g)
{
    const int32_t zero = 0;
    for (uint32_t r = 0; r < RANKS; r++)
        EXPECT_OK(weir_queue_fill(g->rig.queues[r], g->rig.dst[r], 0, BYTES, &zero, 4));
}

WEIR_TEST(CommGraphPlugins, CheckLooksIntoGraphs)
{
    struct graphs g;
    struct weir_check_finding finding;
    open_with(&g, "check", "");
    write_results(&g);
    for (uint32_t r = 0; r < RANKS; r++)
        capture(&g, r, AFTER);
    launch(&g, 2);
    expect_sums(&g);
    EXPECT_UINT_EQ(weir_check_error_count(g.rig.runtime), 0);
    for (uint32_t r = 0; r < RANKS; r++) {
        weir_graph_destroy(&g.graphs[r]);
        capture(&g, r, BESIDE);
    }
    launch(&g, 1);
    ASSERT_UINT_EQ(weir_check_error_count(g.rig.runtime), 1);
    EXPECT_OK(weir_check_get(g.rig.runtime, 0, &finding));
    EXPECT_STR_EQ(weir_check_kind_name(finding.kind), "read-after-write");
    EXPECT_STR_EQ(finding.first.operation, "collective");
    EXPECT_STR_EQ(finding.second.operation, "copy");
    EXPECT_UINT_EQ(finding.first.size, BYTES);
    close_graphs(&g);
}

// Traces of runs of all ranks' graphs, of which each launch is one operation, with its time.
static const struct {
    const char *plugins;
    const char *more; // after the section [trace]
    enum place place;
    int launches;
    uint64_t least_ns;
} traced[] = {
    {"trace", "", ON_ITS_QUEUE, 3, 0},
    // In virtual time a launch takes at least what its collective takes: 1 byte a microsecond after 500 ns, and of 2 ranks
    // a ring moves all bytes once.
    {"trace, sim",
     "[sim]\ngpu = k20c\nchanges = collective_gb_per_s=0.001, collective_latency_ns=500\n", AFTER,
     2, 500 + UINT64_C(1000) * BYTES},
};

static struct weir_trace *trace_launches(size_t row)
{
    struct graphs g;
    char path[COMM_TRACE_PATH_SIZE];
    char text[900];
    comm_trace_path(path, traced[row].least_ns ? "virtual" : "graphs");
    snprintf(text, sizeof text, "[trace]\nfile = %s\n%s", path, traced[row].more);
    open_with(&g, traced[row].plugins, text);
    for (uint32_t r = 0; r < RANKS; r++)
        capture(&g, r, traced[row].place);
    launch(&g, traced[row].launches);
    expect_sums(&g);
    close_graphs(&g);
    return comm_trace_read(path);
}

WEIR_TEST(CommGraphPlugins, ATraceHasTheLaunches)
{
    for (size_t row = 0; row < sizeof traced / sizeof *traced; row++) {
        size_t launches = 0;
        struct weir_trace *trace = trace_launches(row);
        ASSERT_NOT_NULL(trace);
        for (size_t i = 0; i < trace->operation_count; i++) {
            const struct weir_trace_operation *it = &trace->operations[i];
            EXPECT_TRUE(it->kind != WEIR_TRACE_COLLECTIVE); // none is outside
            if (it->kind != WEIR_TRACE_GRAPH)
                continue;
            launches++;
            EXPECT_TRUE(it->timed);
            EXPECT_UINT_LE(it->submit_ns, it->start_ns);
            EXPECT_UINT_LE(it->start_ns, it->end_ns);
            EXPECT_UINT_LE(traced[row].least_ns, it->end_ns - it->start_ns);
        }
        EXPECT_UINT_EQ(launches, traced[row].launches * RANKS);
        weir_trace_destroy(&trace);
    }
}

WEIR_TEST(CommGraphPlugins, VirtualTimeRefusesCollectivesWithoutCosts)
{
    struct graphs g;
    open_with(&g, "sim", "[sim]\ngpu = k20c\n");
    capture(&g, 0, AFTER);
    EXPECT_INT_EQ(weir_queue_graph(g.rig.queues[0], g.graphs[0]), WEIR_ERROR_UNSUPPORTED);
    COMM_RIG_EXPECT_WORDS("a collective has no cost");
    close_graphs(&g);
}
