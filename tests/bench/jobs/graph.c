// The job `graph`: what launching a graph of many small kernels costs the submitting thread, and how long it
// takes, beside the same kernels launched one by one: in a chain, also by the driver's own calls on CUDA; and
// forked to four queues and joined, the shape of a frame that several engines work on.
#include <stdio.h>
#include <string.h>

#include "kernels/conformance/conformance.h"
#include "tests/bench/jobs/raw.h"

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
    size_t nodes, queues;
    weir_graph *graph;
    CUgraphExec raw_graph;
    struct bench_samples submit_us[WAYS], complete_us[WAYS];
};

struct graphs {
    uint64_t launches;
    struct bench_list nodes;
    weir_queue *queues[QUEUES];
    weir_program *program;
    weir_kernel *increment;
    weir_buffer *values;
    bool has_raw;
    struct raw_cuda cu;
    CUstream stream;
    CUdeviceptr memory;
    void *pinned;
    CUfunction function;
    struct shape shapes[2 * COUNTS_MOST]; // chains, then forks
    size_t count;
};

// Weir's launches. The first kernel is on the first queue; the others are forked after it.

static size_t share_of(const struct shape *it, size_t queue)
{
    const size_t left = it->nodes - 1;
    return left / it->queues + (queue < left % it->queues);
}

static weir_status launch(const struct graphs *g, size_t queue, size_t times)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < times && status == WEIR_OK; i++)
        status =
            weir_queue_launch(g->queues[queue], g->increment, weir_dim(1, 1, 1),
                              weir_dim(LAUNCHED, 1, 1), weir_inout(g->values, queue * BYTES, BYTES),
                              1u, (uint32_t)LAUNCHED);
    return status;
}

static weir_status follow(weir_queue *to, weir_queue *from)
{
    struct weir_event event;
    const weir_status status = weir_queue_record(from, &event);
    return status == WEIR_OK ? weir_queue_wait(to, event) : status;
}

static weir_status submit_once(const struct graphs *g, const struct shape *it)
{
    struct weir_event begun;
    weir_status status = launch(g, 0, 1);
    if (status == WEIR_OK && it->queues > 1)
        status = weir_queue_record(g->queues[0], &begun);
    for (size_t i = 1; i < it->queues && status == WEIR_OK; i++)
        if ((status = weir_queue_wait(g->queues[i], begun)) == WEIR_OK)
            status = launch(g, i, share_of(it, i));
    if (status == WEIR_OK)
        status = launch(g, 0, share_of(it, 0));
    for (size_t i = 1; i < it->queues && status == WEIR_OK; i++)
        status = follow(g->queues[0], g->queues[i]);
    return status;
}

// The driver's.

static CUresult raw_once(struct graphs *g, size_t nodes)
{
    uint32_t by = 1, n = LAUNCHED;
    void *parameters[] = {&g->memory, &by, &n};
    CUresult code = CUDA_SUCCESS;
    for (size_t i = 0; i < nodes && code == CUDA_SUCCESS; i++)
        code = g->cu.cuLaunchKernel(g->function, 1, 1, 1, LAUNCHED, 1, 1, 0, g->stream, parameters,
                                    NULL);
    return code;
}

static void destroy_raw_graph(void *object, void *cu)
{
    ((struct raw_cuda *)cu)->cuGraphDestroy(object);
}

static void destroy_raw_exec(void *object, void *cu)
{
    ((struct raw_cuda *)cu)->cuGraphExecDestroy(object);
}

static void raw_capture(struct graphs *g, struct shape *it)
{
    CUgraph graph = NULL;
    RAW_CU(&g->cu, cuStreamBeginCapture, g->stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    const CUresult code = raw_once(g, it->nodes);
    const CUresult ended = g->cu.cuStreamEndCapture(g->stream, &graph);
    if (graph)
        cli_own(destroy_raw_graph, graph, &g->cu);
    raw_cuda_check(&g->cu, code, "cuLaunchKernel");
    raw_cuda_check(&g->cu, ended, "cuStreamEndCapture");
    RAW_CU(&g->cu, cuGraphInstantiateWithFlags, &it->raw_graph, graph, 0);
    cli_own(destroy_raw_exec, it->raw_graph, &g->cu);
    RAW_CU(&g->cu, cuGraphUpload, it->raw_graph, g->stream);
}

// All ways.

static void submit(struct graphs *g, struct shape *it, enum way way, size_t count)
{
    weir_status status = WEIR_OK;
    CUresult code = CUDA_SUCCESS;
    for (size_t i = 0; i < count && status == WEIR_OK && code == CUDA_SUCCESS; i++)
        if (way == WEIR_GRAPH)
            status = weir_queue_graph(g->queues[0], it->graph);
        else if (way == WEIR_SINGLE)
            status = submit_once(g, it);
        else
            code = way == RAW_GRAPH ? g->cu.cuGraphLaunch(it->raw_graph, g->stream)
                                    : raw_once(g, it->nodes);
    cli_fine(status);
    raw_cuda_check(&g->cu, code, way_names[way]);
}

static void finish(struct graphs *g, enum way way)
{
    if (way >= RAW_GRAPH)
        RAW_CU(&g->cu, cuStreamSynchronize, g->stream);
    else
        bench_sync(g->queues[0]);
}

static int ways_of(const struct graphs *g, const struct shape *it)
{
    return g->has_raw && it->queues == 1 ? WAYS : RAW_GRAPH;
}

// Checking.

// To the values of one side, or from them. `numbers` is as long as Weir's.
static void move_numbers(struct graphs *g, bool raw, bool up, uint32_t *numbers)
{
    const size_t size = QUEUES * BYTES;
    if (!raw) {
        cli_fine(up ? weir_upload(g->queues[0], g->values, 0, numbers, size)
                    : weir_download(g->queues[0], numbers, g->values, 0, size));
        return;
    }
    if (up) {
        memcpy(g->pinned, numbers, BYTES);
        RAW_CU(&g->cu, cuMemcpyHtoDAsync, g->memory, g->pinned, BYTES, g->stream);
    } else {
        RAW_CU(&g->cu, cuMemcpyDtoHAsync, g->pinned, g->memory, BYTES, g->stream);
    }
    finish(g, RAW_GRAPH);
    memcpy(numbers, g->pinned, BYTES);
}

// The graph PROOF times and its kernels one by one once: each kernel adds 1.
static void check(struct graphs *g, struct shape *it, enum way as_graph)
{
    uint32_t numbers[QUEUES * NUMBERS];
    for (uint32_t i = 0; i < QUEUES * NUMBERS; i++)
        numbers[i] = i;
    move_numbers(g, as_graph == RAW_GRAPH, true, numbers);
    submit(g, it, as_graph, PROOF);
    submit(g, it, as_graph + 1, 1);
    finish(g, as_graph);
    move_numbers(g, as_graph == RAW_GRAPH, false, numbers);
    for (uint32_t i = 0; i < it->queues * NUMBERS; i++) {
        const size_t queue = i / NUMBERS, times = share_of(it, queue) + !queue;
        const bool adds = i % NUMBERS < LAUNCHED && bench.runs_kernels;
        const uint32_t right = i + (adds ? (uint32_t)((PROOF + 1) * times) : 0);
        if (numbers[i] != right)
            cli_fail(CLI_FAILED,
                     "%s of %zu nodes: number %u is %u and must be %u; nothing was timed",
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
        finish(g, way);
        all += (double)(cli_now_ns() - began);
        done += count;
    }
    bench_keep(&it->submit_us[way], submitting * 1e-3 / (double)g->launches);
    bench_keep(&it->complete_us[way], all * 1e-3 / (double)g->launches);
}

// The order of the ways changes from turn to turn.
static void measure(struct graphs *g)
{
    for (bench_start(); bench_turn();)
        for (size_t i = 0; i < g->count; i++) {
            const int ways = ways_of(g, &g->shapes[i]);
            for (int k = 0; k < ways; k++)
                measure_way(g, &g->shapes[i], (enum way)(bench.turn % 2 == 0 ? k : ways - 1 - k));
        }
}

static void plot_way(const struct shape *it, int way)
{
    const struct bench_spread us = bench_spread(&it->submit_us[way]);
    if (it->queues == 1 && it->submit_us[way].count > 0)
        cli_plot_add(cli_plot_series(&bench.plot, way_names[way]),
                     (struct cli_plot_point){(double)it->nodes, us.median, us.minimum, us.maximum});
}

static void put_way(struct bench_table *table, const struct shape *it, int way)
{
    const int raw = way % 2 == WEIR_GRAPH ? RAW_GRAPH : RAW_SINGLE;
    const struct bench_samples none = {0};
    const struct bench_samples submits = bench_ratio(&it->submit_us[way], &it->submit_us[raw]);
    const struct bench_samples completes =
        bench_ratio(&it->complete_us[way], &it->complete_us[raw]);
    bench_row(table, (double)it->nodes, way_names[way], &it->submit_us[way], &it->complete_us[way],
              way < RAW_GRAPH ? &submits : &none, way < RAW_GRAPH ? &completes : &none);
    plot_way(it, way);
}

static void report(struct graphs *g)
{
    static const struct bench_column columns[] = {
        {"nodes", "nodes", BENCH_NUMBER, 0},
        {"way", "", BENCH_TEXT, 0},
        {"submit_us", "submit us", BENCH_SPREAD, 2},
        {"complete_us", "complete us", BENCH_SPREAD, 2},
        {"submit_to_raw", "x raw", BENCH_SPREAD, 3},
        {"complete_to_raw", "x raw", BENCH_SPREAD, 3},
    };
    bench_parameter("launches", (double)g->launches);
    bench_plot("Submitting a chain of small kernels", "kernels", "microseconds");
    bench.plot.doubling = true;
    struct bench_table *tables[2] = {
        bench_table_of("graphs", "kernels that do next to nothing, in a chain", columns, 6),
        bench_table_of("forks", "the same, forked to four queues and joined", columns, 4)};
    for (size_t i = 0; i < g->count; i++)
        for (int way = 0; way < ways_of(g, &g->shapes[i]); way++)
            put_way(tables[g->shapes[i].queues > 1], &g->shapes[i], way);
}

// Set-up.

static void destroy_graph(void *object, void *with)
{
    (void)with;
    weir_graph_destroy(object);
}

static void capture(struct graphs *g, struct shape *it)
{
    cli_fine(weir_capture_begin(g->queues[0]));
    cli_fine(submit_once(g, it));
    cli_fine(weir_capture_end(g->queues[0], WEIR_PARAMS(weir_graph, .label = "bench"), &it->graph));
    cli_own(destroy_graph, &it->graph, NULL);
}

// The driver's first device.
static void open_raw(struct graphs *g)
{
    struct weir_device_info first;
    if (strcmp(weir_runtime_backend(bench.runtime), "cuda") != 0)
        return;
    if (weir_device_describe(bench.runtime, 0, &first) != WEIR_OK ||
        strcmp(first.name, weir_device_get_info(bench.device)->name) != 0) {
        bench_note("not measured: raw CUDA, which is measured on the first device only");
        return;
    }
    g->has_raw = raw_cuda_open("raw CUDA", &conformance_kernels, &g->cu);
    if (!g->has_raw)
        return;
    g->function = raw_cuda_function(&g->cu, "increment");
    g->memory = raw_cuda_memory(&g->cu, BYTES);
    g->pinned = raw_cuda_pinned(&g->cu, BYTES);
    g->stream = raw_cuda_stream(&g->cu);
}

static void add_shape(struct graphs *g, size_t nodes, size_t queues)
{
    struct shape *it = &g->shapes[g->count++];
    it->nodes = nodes;
    it->queues = queues;
    capture(g, it);
    if (ways_of(g, it) == WAYS)
        raw_capture(g, it);
}

static void open_all(struct graphs *g)
{
    bench_kernel(bench.device, &conformance_kernels, "increment", &g->program, &g->increment);
    for (int i = 0; i < QUEUES; i++)
        bench_queue(bench.device, "bench", 0, &g->queues[i]);
    bench_buffer(bench.device, "values", QUEUES * BYTES, WEIR_PLACE_DEVICE, &g->values);
    open_raw(g);
    for (size_t i = 0; i < 2 * g->nodes.count; i++) {
        const size_t nodes = (size_t)g->nodes.values[i % g->nodes.count];
        const size_t queues = i < g->nodes.count ? 1 : QUEUES;
        // A fork with fewer has queues without a kernel.
        if (queues == 1 || nodes > QUEUES)
            add_shape(g, nodes, queues);
    }
}

static void run(void *user)
{
    struct graphs *g = user;
    open_all(g);
    for (size_t i = 0; i < g->count; i++) {
        check(g, &g->shapes[i], WEIR_GRAPH);
        if (ways_of(g, &g->shapes[i]) == WAYS)
            check(g, &g->shapes[i], RAW_GRAPH);
    }
    measure(g);
    report(g);
}

static int graph_main(int argc, char **argv)
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
        .group = "jobs",
        .name = "graph",
        .about =
            "Launches a chain of small kernels as a graph and one by one, on CUDA also by the\n"
            "driver's own calls; and as many forked to four queues and joined.\n",
        .options = options,
        .option_count = BENCH_COUNT(options),
        .opens_device = true,
        .run = run,
    };
    return bench_main(&program, &g, argc, argv);
}

const struct cli_command job_graph = {
    .name = "graph",
    .summary = "graphs beside single launches, and beside raw CUDA graphs",
    .main = graph_main,
};
