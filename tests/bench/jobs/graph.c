// The job `graph`: what launching a graph of many small kernels costs the submitting thread, and how long it
// takes, beside the same kernels launched one by one: in a chain, also by the driver's own calls on CUDA; and
// forked to four queues and joined, the shape of a frame that several engines work on.
#include <stdio.h>
#include <string.h>

#include "cli/bench/work.h"
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
    const char *asked_nodes;
    uint64_t launches;
    struct bench_list nodes;
    struct bench *bench;
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

static bool raw_fine(struct graphs *g, CUresult code, const char *what)
{
    return raw_cuda_check(g->bench, &g->cu, code, what);
}

static bool raw_capture(struct graphs *g, struct shape *it)
{
    CUgraph graph = NULL;
    const bool fine =
        raw_fine(g, g->cu.cuStreamBeginCapture(g->stream, CU_STREAM_CAPTURE_MODE_RELAXED),
                 "cuStreamBeginCapture") &&
        raw_fine(g, raw_once(g, it->nodes), "cuLaunchKernel") &&
        raw_fine(g, g->cu.cuStreamEndCapture(g->stream, &graph), "cuStreamEndCapture") &&
        raw_fine(g, g->cu.cuGraphInstantiateWithFlags(&it->raw_graph, graph, 0),
                 "cuGraphInstantiateWithFlags") &&
        raw_fine(g, g->cu.cuGraphUpload(it->raw_graph, g->stream), "cuGraphUpload");
    if (graph)
        g->cu.cuGraphDestroy(graph);
    return fine;
}

// All ways.

static bool submit(struct graphs *g, struct shape *it, enum way way, size_t count)
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
    return (status == WEIR_OK || bench_fail_weir(g->bench)) && raw_fine(g, code, way_names[way]);
}

static bool finish(struct graphs *g, enum way way)
{
    if (way >= RAW_GRAPH)
        return raw_fine(g, g->cu.cuStreamSynchronize(g->stream), "cuStreamSynchronize");
    return bench_fine(g->bench, weir_queue_sync(g->queues[0], WEIR_FOREVER));
}

static int ways_of(const struct graphs *g, const struct shape *it)
{
    return g->has_raw && it->queues == 1 ? WAYS : RAW_GRAPH;
}

// Checking.

// To the values of one side, or from them. `numbers` is as long as Weir's.
static bool move_numbers(struct graphs *g, bool raw, bool up, uint32_t *numbers)
{
    const size_t size = QUEUES * BYTES;
    if (!raw) {
        const weir_status status = up ? weir_upload(g->queues[0], g->values, 0, numbers, size)
                                      : weir_download(g->queues[0], numbers, g->values, 0, size);
        return bench_fine(g->bench, status);
    }
    if (up)
        memcpy(g->pinned, numbers, BYTES);
    const CUresult code = up ? g->cu.cuMemcpyHtoDAsync(g->memory, g->pinned, BYTES, g->stream)
                             : g->cu.cuMemcpyDtoHAsync(g->pinned, g->memory, BYTES, g->stream);
    if (!raw_fine(g, code, "an asynchronous copy") || !finish(g, RAW_GRAPH))
        return false;
    memcpy(numbers, g->pinned, BYTES);
    return true;
}

// The graph PROOF times and its kernels one by one once: each kernel adds 1.
static bool check(struct graphs *g, struct shape *it, enum way as_graph)
{
    uint32_t numbers[QUEUES * NUMBERS];
    for (uint32_t i = 0; i < QUEUES * NUMBERS; i++)
        numbers[i] = i;
    if (!move_numbers(g, as_graph == RAW_GRAPH, true, numbers) || !submit(g, it, as_graph, PROOF) ||
        !submit(g, it, as_graph + 1, 1) || !finish(g, as_graph) ||
        !move_numbers(g, as_graph == RAW_GRAPH, false, numbers))
        return false;
    for (uint32_t i = 0; i < it->queues * NUMBERS; i++) {
        const size_t queue = i / NUMBERS, times = share_of(it, queue) + !queue;
        const bool adds = i % NUMBERS < LAUNCHED && g->bench->runs_kernels;
        const uint32_t right = i + (adds ? (uint32_t)((PROOF + 1) * times) : 0);
        if (numbers[i] != right)
            return bench_fail_result(
                g->bench, "%s of %zu nodes: number %u is %u and must be %u; nothing was timed",
                way_names[as_graph], it->nodes, (unsigned)i, (unsigned)numbers[i], (unsigned)right);
    }
    g->bench->checked++;
    return true;
}

static bool check_all(struct graphs *g)
{
    for (size_t i = 0; i < g->count; i++)
        if (!check(g, &g->shapes[i], WEIR_GRAPH) ||
            (ways_of(g, &g->shapes[i]) == WAYS && !check(g, &g->shapes[i], RAW_GRAPH)))
            return false;
    return true;
}

// Measuring.

static bool measure_way(struct graphs *g, struct shape *it, enum way way)
{
    const size_t batch = it->nodes < PENDING ? PENDING / it->nodes : 1;
    double submitting = 0, all = 0;
    for (uint64_t done = 0; done < g->launches;) {
        const size_t count = g->launches - done < batch ? (size_t)(g->launches - done) : batch;
        const uint64_t began = cli_now_ns();
        if (!submit(g, it, way, count))
            return false;
        submitting += (double)(cli_now_ns() - began);
        if (!finish(g, way))
            return false;
        all += (double)(cli_now_ns() - began);
        done += count;
    }
    bench_keep(g->bench, &it->submit_us[way], submitting * 1e-3 / (double)g->launches);
    bench_keep(g->bench, &it->complete_us[way], all * 1e-3 / (double)g->launches);
    return true;
}

// The order of the ways changes from turn to turn.
static bool measure(struct graphs *g)
{
    for (bench_start(g->bench); bench_turn(g->bench);)
        for (size_t i = 0; i < g->count; i++) {
            const int ways = ways_of(g, &g->shapes[i]);
            for (int k = 0; k < ways; k++)
                if (!measure_way(g, &g->shapes[i],
                                 (enum way)(g->bench->turn % 2 == 0 ? k : ways - 1 - k)))
                    return false;
        }
    return true;
}

static void put_way(struct graphs *g, struct bench_table *table, const struct shape *it, int way)
{
    const int raw = way % 2 == WEIR_GRAPH ? RAW_GRAPH : RAW_SINGLE;
    const struct bench_samples none = {0};
    const struct bench_samples submits = bench_ratio(&it->submit_us[way], &it->submit_us[raw]);
    const struct bench_samples completes =
        bench_ratio(&it->complete_us[way], &it->complete_us[raw]);
    bench_row(table, (double)it->nodes, way_names[way], &it->submit_us[way], &it->complete_us[way],
              way < RAW_GRAPH ? &submits : &none, way < RAW_GRAPH ? &completes : &none);
    if (it->queues == 1)
        bench_plot_point(g->bench, way_names[way], (double)it->nodes, &it->submit_us[way]);
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
    struct cli_plot *plot = &g->bench->plot;
    bench_parameter(g->bench, "launches", (double)g->launches);
    snprintf(plot->title, sizeof plot->title, "Submitting a chain of small kernels");
    snprintf(plot->x_name, sizeof plot->x_name, "kernels");
    snprintf(plot->y_name, sizeof plot->y_name, "microseconds");
    plot->doubling = true;
    struct bench_table *tables[2] = {
        bench_table(g->bench, "graphs", "kernels that do next to nothing, in a chain", columns, 6),
        bench_table(g->bench, "forks", "the same, forked to four queues and joined", columns, 4)};
    for (size_t i = 0; i < g->count; i++)
        for (int way = 0; way < ways_of(g, &g->shapes[i]); way++)
            put_way(g, tables[g->shapes[i].queues > 1], &g->shapes[i], way);
}

// Set-up.

static bool capture(struct graphs *g, struct shape *it)
{
    const struct weir_graph_params params = {.struct_size = sizeof params, .label = "bench"};
    if (weir_capture_begin(g->queues[0]) == WEIR_OK && submit_once(g, it) == WEIR_OK &&
        weir_capture_end(g->queues[0], &params, &it->graph) == WEIR_OK)
        return true;
    bench_fail_weir(g->bench);
    WEIR_IGNORE(weir_capture_cancel(g->queues[0]));
    return false;
}

// The driver's first device.
static bool open_raw(struct graphs *g)
{
    const struct raw_cuda *cu = &g->cu;
    struct weir_device_info first;
    struct bench *bench = g->bench;
    char message[512];
    if (strcmp(weir_runtime_backend(bench->runtime), "cuda") != 0)
        return true;
    if (weir_device_describe(bench->runtime, 0, &first) != WEIR_OK ||
        strcmp(first.name, weir_device_get_info(bench->device)->name) != 0) {
        bench_note(bench, "not measured: raw CUDA, which is measured on the first device only");
        return true;
    }
    g->has_raw = raw_cuda_open(&g->cu, &conformance_kernels, message, sizeof message);
    if (!g->has_raw)
        bench_note(bench, "not measured: raw CUDA: %s", message);
    return !g->has_raw ||
           (raw_fine(g, cu->cuModuleGetFunction(&g->function, cu->module, "increment"),
                     "cuModuleGetFunction") &&
            raw_fine(g, cu->cuMemAlloc(&g->memory, BYTES), "cuMemAlloc") &&
            raw_fine(g, cu->cuMemHostAlloc(&g->pinned, BYTES, 0), "cuMemHostAlloc") &&
            raw_fine(g, cu->cuStreamCreateWithPriority(&g->stream, CU_STREAM_NON_BLOCKING, 0),
                     "cuStreamCreateWithPriority"));
}

static bool add_shape(struct graphs *g, size_t nodes, size_t queues)
{
    struct shape *it = &g->shapes[g->count++];
    it->nodes = nodes;
    it->queues = queues;
    return capture(g, it) && (ways_of(g, it) < WAYS || raw_capture(g, it));
}

static bool open_all(struct graphs *g)
{
    struct bench *bench = g->bench;
    if (!bench_kernel_on(bench, bench->device, &conformance_kernels, "increment", &g->program,
                         &g->increment))
        return false;
    for (int i = 0; i < QUEUES; i++)
        if (!bench_queue(bench, "bench", 0, &g->queues[i]))
            return false;
    if (!bench_buffer(bench, "values", QUEUES * BYTES, WEIR_PLACE_DEVICE, &g->values) ||
        !open_raw(g))
        return false;
    for (size_t i = 0; i < 2 * g->nodes.count; i++) {
        const size_t nodes = (size_t)g->nodes.values[i % g->nodes.count];
        const size_t queues = i < g->nodes.count ? 1 : QUEUES;
        // A fork with fewer has queues without a kernel.
        if ((queues == 1 || nodes > QUEUES) && !add_shape(g, nodes, queues))
            return false;
    }
    return true;
}

static void close_all(struct graphs *g)
{
    for (size_t i = 0; i < g->count; i++) {
        weir_graph_destroy(&g->shapes[i].graph);
        if (g->shapes[i].raw_graph)
            g->cu.cuGraphExecDestroy(g->shapes[i].raw_graph);
    }
    if (g->stream)
        g->cu.cuStreamDestroy(g->stream);
    if (g->pinned)
        g->cu.cuMemFreeHost(g->pinned);
    if (g->memory)
        g->cu.cuMemFree(g->memory);
    raw_cuda_close(&g->cu);
    weir_buffer_destroy(&g->values);
    weir_kernel_destroy(&g->increment);
    weir_program_destroy(&g->program);
    for (int i = 0; i < QUEUES; i++)
        weir_queue_destroy(&g->queues[i]);
}

static bool check_options(struct bench *bench, void *user)
{
    struct graphs *g = user;
    g->bench = bench;
    return bench_parse_list(bench, "nodes", g->asked_nodes, NULL, 1, NODES_MOST, &g->nodes) &&
           (g->nodes.count <= COUNTS_MOST ||
            bench_fail(bench, CLI_USAGE, "--nodes takes at most %d values", COUNTS_MOST));
}

static bool run(struct bench *bench, void *user)
{
    struct graphs *g = user;
    (void)bench;
    const bool fine = open_all(g) && check_all(g) && measure(g);
    if (fine)
        report(g);
    close_all(g);
    return fine;
}

static int graph_main(int argc, char **argv)
{
    static struct graphs g = {.asked_nodes = "1,5,20,100", .launches = 200};
    const struct cli_option options[] = {
        {"nodes", "LIST", "kernels of a graph (1,5,20,100)", CLI_TEXT, &g.asked_nodes, 0, 0},
        {"launches", "N", "launches of a graph in a turn (200)", CLI_COUNT, &g.launches, 1,
         1000000},
    };
    const struct bench_program program = {
        .group = "jobs",
        .name = "graph",
        .about =
            "Launches a chain of small kernels as a graph and one by one, on CUDA also by the\n"
            "driver's own calls; and as many forked to four queues and joined.\n",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .opens_device = true,
        .check = check_options,
        .run = run,
    };
    return bench_main(&program, &g, argc, argv);
}

const struct cli_command job_graph = {
    .name = "graph",
    .summary = "graphs beside single launches, and beside raw CUDA graphs",
    .main = graph_main,
};
