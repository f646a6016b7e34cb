// weir bench graph: what launching a graph of many small kernels costs the submitting
// thread, and how long it takes, beside the same kernels launched one by one, in a chain
// and forked to several queues, and on CUDA beside the driver's own graph of the same
// kernels.
#include <stdio.h>
#include <string.h>

#include "cli/bench/graph_forks.h"
#include "cli/bench/peer_cuda.h"
#include "cli/bench/work.h"
#include "kernels/conformance/conformance.h"

enum {
    COUNTS_MOST = 6,
    NODES_MOST = 10000,
    LAUNCHES_MOST = 1000000,
    PENDING = 1000, // kernels submitted before they are waited for
    LAUNCHED = 64,
    NUMBERS = BENCH_CUDA_NUMBERS,
    BYTES = NUMBERS * 4,
    PROOF = 3
};

enum way {
    WEIR_GRAPH,
    WEIR_SINGLE,
    RAW_GRAPH,
    RAW_SINGLE,
    WAYS
};

static const char *const way_names[WAYS] = {
    [WEIR_GRAPH] = "Weir, graph",
    [WEIR_SINGLE] = "Weir, one by one",
    [RAW_GRAPH] = "raw CUDA, graph",
    [RAW_SINGLE] = "raw CUDA, one by one",
};

struct figures {
    struct bench_samples submit_us, complete_us;
};

// One number of nodes.
struct graph_case {
    size_t nodes;
    weir_graph *graph;
    struct figures ways[WAYS];
};

struct graph_bench {
    const char *asked_nodes;
    uint64_t launches;
    struct bench_list nodes;
    struct bench *bench;
    weir_queue *queue;
    weir_program *program;
    weir_kernel *increment;
    weir_buffer *values;
    bench_cuda *peer; // NULL: not on CUDA, or without graphs
    struct graph_case cases[COUNTS_MOST];
    struct bench_forks forks;
};

// The work.

static weir_status launch_once(struct graph_bench *g)
{
    return weir_queue_launch(g->queue, g->increment, weir_dim(1, 1, 1), weir_dim(LAUNCHED, 1, 1),
                             weir_inout(g->values, 0, BYTES), 1u, (uint32_t)LAUNCHED);
}

static weir_status launch_nodes(struct graph_bench *g, size_t nodes)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < nodes && status == WEIR_OK; i++)
        status = launch_once(g);
    return status;
}

static bool submit(struct graph_bench *g, struct graph_case *it, enum way way, size_t count)
{
    weir_status status = WEIR_OK;
    if (way == RAW_GRAPH || way == RAW_SINGLE)
        return (way == RAW_GRAPH
                    ? bench_cuda_graph_launch(g->peer, count)
                    : bench_cuda_repeat(g->peer, BENCH_CUDA_LAUNCH, count * it->nodes)) ||
               bench_fail(g->bench, CLI_SETUP, "%s of %zu nodes failed", way_names[way], it->nodes);
    for (size_t i = 0; i < count && status == WEIR_OK; i++)
        status =
            way == WEIR_GRAPH ? weir_queue_graph(g->queue, it->graph) : launch_nodes(g, it->nodes);
    return status == WEIR_OK || bench_fail_weir(g->bench);
}

static bool finish(struct graph_bench *g, enum way way)
{
    if (way == RAW_GRAPH || way == RAW_SINGLE)
        return bench_cuda_finish(g->peer) ||
               bench_fail(g->bench, CLI_SETUP, "waiting for %s failed", way_names[way]);
    return weir_queue_sync(g->queue, WEIR_FOREVER) == WEIR_OK || bench_fail_weir(g->bench);
}

// Set-up.

static bool capture(struct graph_bench *g, struct graph_case *it)
{
    const struct weir_graph_params params = {.struct_size = sizeof params, .label = "bench"};
    if (weir_capture_begin(g->queue) != WEIR_OK || launch_nodes(g, it->nodes) != WEIR_OK ||
        weir_capture_end(g->queue, &params, &it->graph) != WEIR_OK) {
        bench_fail_weir(g->bench);
        weir_capture_cancel(g->queue);
        return false;
    }
    return true;
}

// The peer opens the driver's first device.
static void open_peer(struct graph_bench *g)
{
    struct weir_device_info first;
    char message[512];
    struct bench *bench = g->bench;
    if (strcmp(weir_runtime_backend(bench->runtime), "cuda") != 0)
        return;
    if (weir_device_describe(bench->runtime, 0, &first) != WEIR_OK ||
        strcmp(first.name, weir_device_get_info(bench->device)->name) != 0) {
        bench_note(bench, "not measured: raw CUDA, which is measured on the first device only");
        return;
    }
    g->peer = bench_cuda_open(&conformance_kernels, message, sizeof message);
    if (!g->peer)
        bench_note(bench, "not measured: raw CUDA: %s", message);
    else if (!bench_cuda_graph(g->peer, 1)) {
        bench_note(bench, "not measured: raw CUDA: this driver has no graphs");
        bench_cuda_close(&g->peer);
    }
}

static bool open_all(struct graph_bench *g)
{
    const struct weir_program_params params = {.struct_size = sizeof params,
                                               .label = "bench",
                                               .bundle = &conformance_kernels};
    struct bench *bench = g->bench;
    if (weir_program_create(bench->device, &params, &g->program) != WEIR_OK ||
        weir_kernel_create(g->program, "increment", &g->increment) != WEIR_OK)
        return bench_fail_weir(bench);
    if (!bench_queue(bench, "bench", 0, &g->queue) ||
        !bench_buffer(bench, "values", BYTES, WEIR_PLACE_DEVICE, &g->values))
        return false;
    for (size_t i = 0; i < g->nodes.count; i++) {
        g->cases[i].nodes = (size_t)g->nodes.values[i];
        if (!capture(g, &g->cases[i]))
            return false;
    }
    open_peer(g);
    g->forks.bench = bench;
    g->forks.increment = g->increment;
    g->forks.launches = g->launches;
    return bench_forks_open(&g->forks, &g->nodes);
}

static void close_all(struct graph_bench *g)
{
    bench_cuda_close(&g->peer);
    bench_forks_close(&g->forks);
    for (size_t i = 0; i < COUNTS_MOST; i++)
        weir_graph_destroy(&g->cases[i].graph);
    weir_buffer_destroy(&g->values);
    weir_kernel_destroy(&g->increment);
    weir_program_destroy(&g->program);
    weir_queue_destroy(&g->queue);
}

// Checking.

static bool check_numbers(struct graph_bench *g, const uint32_t *numbers, uint32_t added,
                          const char *what, size_t nodes)
{
    for (uint32_t i = 0; i < NUMBERS; i++) {
        const uint32_t right = i < LAUNCHED && g->bench->runs_kernels ? i + added : i;
        if (numbers[i] != right)
            return bench_fail_result(g->bench,
                                     "%s of %zu nodes: number %u is %u and must be %u; nothing was "
                                     "timed",
                                     what, nodes, (unsigned)i, (unsigned)numbers[i],
                                     (unsigned)right);
    }
    g->bench->checked++;
    return true;
}

// Launches the graph PROOF times and its kernels one by one once: each kernel adds 1.
static bool check_weir(struct graph_bench *g, struct graph_case *it)
{
    uint32_t numbers[NUMBERS];
    const uint32_t nodes = (uint32_t)it->nodes;
    for (uint32_t i = 0; i < NUMBERS; i++)
        numbers[i] = i;
    if (weir_upload(g->queue, g->values, 0, numbers, BYTES) != WEIR_OK)
        return bench_fail_weir(g->bench);
    if (!submit(g, it, WEIR_GRAPH, PROOF) || !submit(g, it, WEIR_SINGLE, 1))
        return false;
    if (weir_download(g->queue, numbers, g->values, 0, BYTES) != WEIR_OK)
        return bench_fail_weir(g->bench);
    return check_numbers(g, numbers, (PROOF + 1) * nodes, way_names[WEIR_GRAPH], it->nodes);
}

static bool check_raw(struct graph_bench *g, struct graph_case *it)
{
    uint32_t numbers[NUMBERS];
    if (!bench_cuda_graph(g->peer, it->nodes))
        return bench_fail(g->bench, CLI_SETUP, "raw CUDA: no graph of %zu nodes", it->nodes);
    // The copy puts the peer's initial numbers on the device.
    if (!bench_cuda_repeat(g->peer, BENCH_CUDA_COPY, 1) || !submit(g, it, RAW_GRAPH, PROOF) ||
        !submit(g, it, RAW_SINGLE, 1) || !bench_cuda_read(g->peer, numbers))
        return bench_fail(g->bench, CLI_SETUP, "raw CUDA: a graph of %zu nodes failed", it->nodes);
    return check_numbers(g, numbers, (PROOF + 1) * (uint32_t)it->nodes, way_names[RAW_GRAPH],
                         it->nodes);
}

static bool check_all(struct graph_bench *g)
{
    for (size_t i = 0; i < g->nodes.count; i++)
        if (!check_weir(g, &g->cases[i]) || (g->peer && !check_raw(g, &g->cases[i])))
            return false;
    return bench_forks_check(&g->forks);
}

// Measuring.

static bool measure_way(struct graph_bench *g, struct graph_case *it, enum way way)
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
    bench_keep(g->bench, &it->ways[way].submit_us, submitting * 1e-3 / (double)g->launches);
    bench_keep(g->bench, &it->ways[way].complete_us, all * 1e-3 / (double)g->launches);
    return true;
}

// The order of the two changes from turn to turn.
static bool measure_case(struct graph_bench *g, struct graph_case *it)
{
    const int count = g->peer ? WAYS : RAW_GRAPH;
    // The first launch of a new graph also brings it to the device.
    if (g->peer && (!bench_cuda_graph(g->peer, it->nodes) || !bench_cuda_graph_launch(g->peer, 1) ||
                    !bench_cuda_finish(g->peer)))
        return bench_fail(g->bench, CLI_SETUP, "raw CUDA: no graph of %zu nodes", it->nodes);
    for (int i = 0; i < count; i++)
        if (!measure_way(g, it, (enum way)(g->bench->turn % 2 == 0 ? i : count - 1 - i)))
            return false;
    return true;
}

static bool measure(struct graph_bench *g)
{
    const uint64_t ways = g->peer ? WAYS : RAW_GRAPH;
    const uint64_t steps = 2 * ways * g->nodes.count + bench_forks_steps(&g->forks);
    for (bench_start(g->bench, steps); bench_turn(g->bench);) {
        for (size_t i = 0; i < g->nodes.count; i++)
            if (!measure_case(g, &g->cases[i]))
                return false;
        if (!bench_forks_measure(&g->forks))
            return false;
    }
    return true;
}

// Reporting.

static void put_way(struct graph_bench *g, struct bench_table *table, const struct graph_case *it,
                    enum way way)
{
    const struct figures *own = &it->ways[way];
    const struct figures *raw = &it->ways[way == WEIR_GRAPH ? RAW_GRAPH : RAW_SINGLE];
    const struct bench_samples submits = bench_ratio(&own->submit_us, &raw->submit_us);
    const struct bench_samples completes = bench_ratio(&own->complete_us, &raw->complete_us);
    const struct bench_samples none = {0};
    const bool is_weir = way == WEIR_GRAPH || way == WEIR_SINGLE;
    const struct bench_spread spread = bench_spread(&own->submit_us);
    bench_put_number(table, (double)it->nodes);
    bench_put_text(table, "%s", way_names[way]);
    bench_put(table, &own->submit_us);
    bench_put(table, &own->complete_us);
    bench_put(table, is_weir ? &submits : &none);
    bench_put(table, is_weir ? &completes : &none);
    cli_plot_add(cli_plot_series(&g->bench->plot, way_names[way]),
                 (struct cli_plot_point){(double)it->nodes, spread.median, spread.minimum,
                                         spread.maximum});
}

static void report(struct graph_bench *g)
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
    struct bench_table *table =
        bench_table(g->bench, "graphs", "kernels that do next to nothing, in a chain", columns,
                    sizeof columns / sizeof *columns);
    bench_parameter(g->bench, "launches", (double)g->launches);
    snprintf(plot->title, sizeof plot->title, "Submitting a chain of small kernels");
    snprintf(plot->x_name, sizeof plot->x_name, "kernels");
    snprintf(plot->y_name, sizeof plot->y_name, "microseconds");
    plot->doubling = true;
    for (size_t i = 0; i < g->nodes.count; i++)
        for (int way = 0; way < (g->peer ? WAYS : RAW_GRAPH); way++)
            put_way(g, table, &g->cases[i], (enum way)way);
}

// The command.

static bool check(struct bench *bench, void *user)
{
    struct graph_bench *g = user;
    g->bench = bench;
    if (!bench_parse_list(bench, "nodes", g->asked_nodes, NULL, 1, NODES_MOST, &g->nodes))
        return false;
    for (size_t i = 1; i < g->nodes.count; i++)
        if (g->nodes.values[i] <= g->nodes.values[i - 1])
            return bench_fail(bench, CLI_USAGE, "--nodes takes rising numbers");
    return g->nodes.count <= COUNTS_MOST ||
           bench_fail(bench, CLI_USAGE, "--nodes takes at most %d values", COUNTS_MOST);
}

static bool run(struct bench *bench, void *user)
{
    struct graph_bench *g = user;
    (void)bench;
    const bool fine = open_all(g) && check_all(g) && measure(g);
    if (fine) {
        report(g);
        bench_forks_report(&g->forks);
    }
    close_all(g);
    return fine;
}

static int graph_main(int argc, char **argv)
{
    static struct graph_bench g = {.asked_nodes = "1,5,20,100", .launches = 200};
    const struct cli_option options[] = {
        {"nodes", "LIST", "kernels of a graph, rising (1,5,20,100)", CLI_TEXT, &g.asked_nodes, 0,
         0},
        {"launches", "N", "launches of a graph in a turn (200)", CLI_COUNT, &g.launches, 1,
         LAUNCHES_MOST},
    };
    const struct bench_program program = {
        .name = "graph",
        .about =
            "Launches a chain of small kernels as a graph and one by one, and on CUDA the same\n"
            "by the driver's own calls: what submitting costs, and until all is done. Then as\n"
            "many kernels forked to four queues and joined, as a graph and one by one.\n\n"
            "  weir bench graph\n"
            "  weir bench graph --nodes 20 --launches 10000 --json",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .opens_device = true,
        .check = check,
        .run = run,
    };
    return bench_main(&program, &g, argc, argv);
}

const struct cli_command cli_bench_graph = {
    .name = "graph",
    .summary = "graphs beside single launches, and beside raw CUDA graphs",
    .main = graph_main,
};
