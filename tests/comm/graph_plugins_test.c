// Graphs with collectives through the plugins that ship: check looks into them, a trace has them, and in
// virtual time a collective in one takes what the model says.

#include <weir/check.h>

#include "tests/comm/rig.h"
#include "tests/comm/trace.h"

enum {
    RANKS = 2,
    COUNT = 128, // of i32
    BYTES = 4 * COUNT,
};

static void open_with(struct comm_rig *rig, const char *plugins, const char *more)
{
    char text[1024];
    snprintf(text, sizeof text, "[weir]\nplugins = %s\n[comm]\ntransport = fake\n%s", plugins,
             more);
    comm_rig_open(rig, text, RANKS, WEIR_PLACE_DEVICE);
    comm_rig_open_others(rig);
}

#define PLUGINS_TEST(suite, name, plugins, more) \
    COMM_RIG_TEST_BY(suite, name, open_with(rig, plugins, more), comm_rig_close(rig))

// Where the copy of a graph is.
enum place {
    AFTER,        // the reduction
    ON_ITS_QUEUE, // where it is after it anyway
    BESIDE,       // it, which is the mistake
};

// A fill, a reduction of it, and a copy of the result, on another branch unless it is ON_ITS_QUEUE.
static void capture(struct comm_rig *rig, uint32_t rank, enum place place)
{
    weir_queue *queue = rig->queues[rank];
    weir_queue *side = place == ON_ITS_QUEUE ? queue : rig->others[0];
    const int32_t seven = 7;
    EXPECT_OK(weir_capture_begin(queue));
    EXPECT_OK(weir_queue_fill(queue, rig->src[rank], 0, BYTES, &seven, 4));
    if (place == BESIDE)
        EXPECT_OK(weir_queue_after(side, queue));
    EXPECT_OK(COMM_RIG_REDUCE(rig, rank, COUNT));
    if (place == AFTER)
        EXPECT_OK(weir_queue_after(side, queue));
    EXPECT_OK(weir_queue_copy(side, rig->src[rank], BYTES, rig->dst[rank], 0, BYTES));
    if (place != ON_ITS_QUEUE)
        EXPECT_OK(weir_queue_after(queue, side));
    EXPECT_OK(weir_capture_end(queue, NULL, &rig->graphs[rank]));
}

static void launch(struct comm_rig *rig, int times)
{
    for (int i = 0; i < times; i++)
        comm_rig_launch(rig);
    comm_rig_sync(rig, WEIR_FOREVER);
}

static void expect_sums(struct comm_rig *rig)
{
    int32_t numbers[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        numbers[i] = 14;
    comm_rig_expect_all(rig, rig->src, COUNT, numbers, COUNT);
}

// What makes the copies' source defined.
static void write_results(struct comm_rig *rig)
{
    const int32_t zero = 0;
    for (uint32_t r = 0; r < RANKS; r++)
        EXPECT_OK(weir_queue_fill(rig->queues[r], rig->dst[r], 0, BYTES, &zero, 4));
}

PLUGINS_TEST(CommGraphPlugins, CheckLooksIntoGraphs, "check", "")
{
    struct weir_check_finding finding;
    write_results(rig);
    for (uint32_t r = 0; r < RANKS; r++)
        capture(rig, r, AFTER);
    launch(rig, 2);
    expect_sums(rig);
    EXPECT_UINT_EQ(weir_check_error_count(rig->runtime), 0);
    for (uint32_t r = 0; r < RANKS; r++) {
        weir_graph_destroy(&rig->graphs[r]);
        capture(rig, r, BESIDE);
    }
    launch(rig, 1);
    ASSERT_UINT_EQ(weir_check_error_count(rig->runtime), 1);
    EXPECT_OK(weir_check_get(rig->runtime, 0, &finding));
    EXPECT_STR_EQ(weir_check_kind_name(finding.kind), "read-after-write");
    EXPECT_STR_EQ(finding.first.operation, "collective");
    EXPECT_STR_EQ(finding.second.operation, "copy");
    EXPECT_UINT_EQ(finding.first.size, BYTES);
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
    struct comm_rig rig;
    char path[COMM_TRACE_PATH_SIZE];
    char text[900];
    comm_trace_path(path, traced[row].least_ns ? "virtual" : "graphs");
    snprintf(text, sizeof text, "[trace]\nfile = %s\n%s", path, traced[row].more);
    open_with(&rig, traced[row].plugins, text);
    for (uint32_t r = 0; r < RANKS; r++)
        capture(&rig, r, traced[row].place);
    launch(&rig, traced[row].launches);
    expect_sums(&rig);
    comm_rig_close(&rig);
    return comm_trace_read(path);
}

WEIR_TEST(CommGraphPlugins, ATraceHasTheLaunches)
{
    for (size_t row = 0; row < sizeof traced / sizeof *traced; row++) {
        size_t launches = 0;
        own_trace trace = trace_launches(row);
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
    }
}

PLUGINS_TEST(CommGraphPlugins, VirtualTimeRefusesCollectivesWithoutCosts, "sim",
             "[sim]\ngpu = k20c\n")
{
    capture(rig, 0, AFTER);
    EXPECT_FAILURE(weir_queue_graph(rig->queues[0], rig->graphs[0]), WEIR_ERROR_UNSUPPORTED,
                   "a collective has no cost");
}
