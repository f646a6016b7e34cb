// gpu_check's graphs: creating, launching, updating and destroying them does not
// wait; the cost of these calls; and refusals that only a real driver makes.
#include <inttypes.h>

#include "base/clock.h"
#include "tests/cuda/gpu_check.h"

enum {
    NODES = 20,
    LAUNCHED = 64,
    ROUNDS = 200
};

#define BYTES ((size_t)4096)
#define LARGE ((size_t)9 << 28) // 2.25 GiB: beyond what a pitch can be

struct graphs {
    const struct bench *bench;
    weir_kernel *increment;
    weir_buffer *values; // DEVICE
    weir_buffer *host;
    weir_graph *graph;
    uint32_t nodes[3]; // launch, copy to the host, fill
};

static weir_status launch_kernel(struct graphs *g)
{
    return weir_queue_launch(g->bench->queue, g->increment, weir_dim(1, 1, 1),
                             weir_dim(LAUNCHED, 1, 1), weir_inout(g->values, 0, BYTES), 1u,
                             (uint32_t)LAUNCHED);
}

// A sequence of kernels, with a fill and a copy at its end.
static weir_status capture(struct graphs *g)
{
    weir_queue *queue = g->bench->queue;
    const unsigned char zero = 0;
    weir_status status = weir_capture_begin(queue);
    for (int i = 0; i < NODES && status == WEIR_OK; i++)
        status = launch_kernel(g);
    if (status == WEIR_OK)
        status = weir_capture_node(queue, &g->nodes[0]);
    if (status == WEIR_OK)
        status = weir_queue_copy(queue, g->host, 0, g->values, 0, BYTES);
    if (status == WEIR_OK)
        status = weir_capture_node(queue, &g->nodes[1]);
    if (status == WEIR_OK)
        status = weir_queue_fill(queue, g->values, BYTES / 2, BYTES / 2, &zero, 1);
    if (status == WEIR_OK)
        status = weir_capture_node(queue, &g->nodes[2]);
    if (status == WEIR_OK)
        return weir_capture_end(queue, NULL, &g->graph);
    WEIR_IGNORE(weir_capture_cancel(queue));
    return status;
}

static weir_status set_fill(struct graphs *g, size_t unit)
{
    static const unsigned char zeros[16];
    return weir_graph_set_fill(g->graph, g->nodes[2], g->values, BYTES / 2, BYTES / 2, zeros, unit);
}

static weir_status set_launch(struct graphs *g)
{
    const uint32_t one = 1;
    const uint32_t count = LAUNCHED;
    const struct weir_argument arguments[] = {weir_inout(g->values, 0, BYTES), weir_value(&one, 4),
                                              weir_value(&count, 4)};
    return weir_graph_set_launch(g->graph, g->nodes[0], weir_dim(1, 1, 1), weir_dim(LAUNCHED, 1, 1),
                                 arguments, 3);
}

static weir_status set_copy(struct graphs *g)
{
    return weir_graph_set_copy(g->graph, g->nodes[1], g->host, 0, g->values, 0, BYTES);
}

static weir_status start_counting(struct graphs *g)
{
    static const uint32_t zeros[BYTES / 4];
    return weir_upload(g->bench->queue, g->values, 0, zeros, BYTES);
}

static bool counted(struct graphs *g, uint32_t wanted)
{
    void *pointer;
    if (weir_queue_sync(g->bench->queue, WEIR_FOREVER) != WEIR_OK ||
        weir_queue_sync(g->bench->other, WEIR_FOREVER) != WEIR_OK ||
        weir_host_begin(g->host, 0, BYTES, WEIR_ACCESS_READ, &pointer) != WEIR_OK)
        return false;
    const uint32_t *words = pointer;
    bool good = true;
    for (int i = 0; i < LAUNCHED; i++)
        good = good && words[i] == wanted;
    return weir_host_end(g->host, 0, BYTES, WEIR_ACCESS_READ) == WEIR_OK && good;
}

// While a kernel runs on the queue.
static void check_waits(struct graphs *g, weir_status (*spin)(const struct bench *, uint64_t),
                        uint64_t steps)
{
    struct weir_event event;
    bool good = start_counting(g) == WEIR_OK && spin(g->bench, steps) == WEIR_OK &&
                weir_queue_record(g->bench->queue, &event) == WEIR_OK;
    TIMED("capture a graph of 22 nodes and make it", good = good && capture(g) == WEIR_OK);
    TIMED("launch it", good = good && weir_queue_graph(g->bench->queue, g->graph) == WEIR_OK);
    TIMED("change a copy and a launch of it",
          good = good && set_copy(g) == WEIR_OK && set_launch(g) == WEIR_OK);
    TIMED("change a fill so that it is built again, twice",
          good = good && set_fill(g, 4) == WEIR_OK && set_fill(g, 16) == WEIR_OK);
    TIMED("launch it on another queue",
          good = good && weir_queue_graph(g->bench->other, g->graph) == WEIR_OK);
    TIMED("destroy it", weir_graph_destroy(&g->graph));
    check(good && weir_event_query(event) == WEIR_NOT_READY,
          "the kernel still runs after all of these");
    check(counted(g, 2 * NODES), "both launches ran, in order");
}

// On two queues alternately, with updates in place and by building again in between.
static void check_order(struct graphs *g)
{
    weir_queue *queues[] = {g->bench->queue, g->bench->other};
    bool good = start_counting(g) == WEIR_OK && capture(g) == WEIR_OK;
    for (int i = 0; i < ROUNDS && good; i++) {
        good = weir_queue_graph(queues[i % 2], g->graph) == WEIR_OK;
        if (good && i % 3 == 0)
            good = set_fill(g, i % 2 ? 1 : 4) == WEIR_OK;
        if (good && i % 3 == 1)
            good = set_launch(g) == WEIR_OK;
    }
    check(good && counted(g, ROUNDS * NODES),
          "%d launches on two queues with updates in between count right", ROUNDS);
    weir_graph_destroy(&g->graph);
}

static void time_update(struct graphs *g, const char *what, weir_status (*update)(struct graphs *))
{
    bool good = true;
    const uint64_t start_ns = weir_clock_now_ns();
    for (int i = 0; i < ROUNDS && good; i++)
        good = update(g) == WEIR_OK;
    const double took = (double)(weir_clock_now_ns() - start_ns) * 1e-3 / ROUNDS;
    check(good, "%8.2f us  %s", took, what);
}

static weir_status set_fill_anew(struct graphs *g)
{
    static size_t unit = 1;
    unit = 5 - unit; // alternately 1 and 4
    return set_fill(g, unit);
}

static weir_status relaunch(struct graphs *g)
{
    return weir_queue_graph(g->bench->queue, g->graph);
}

static void time_updates(struct graphs *g)
{
    if (capture(g) != WEIR_OK) {
        check(false, "capture a graph");
        return;
    }
    printf("      a graph of 22 nodes:\n");
    time_update(g, "a launch", relaunch);
    WEIR_IGNORE(weir_queue_sync(g->bench->queue, WEIR_FOREVER));
    time_update(g, "an update of a copy", set_copy);
    time_update(g, "an update of a launch", set_launch);
    time_update(g, "an update of a fill that builds it again", set_fill_anew);
    weir_graph_destroy(&g->graph);
}

// A copy node is described as a box, with a pitch.
static void check_large_copy(struct graphs *g)
{
    const struct weir_limits *limits = weir_device_limits(g->bench->device);
    const struct weir_buffer_params params = {.struct_size = sizeof params, .size = LARGE};
    const unsigned char last = 77;
    unsigned char read = 0;
    weir_buffer *from = NULL;
    weir_buffer *to = NULL;
    weir_graph *graph = NULL;
    weir_queue *queue = g->bench->queue;
    if (limits->memory_bytes < 4 * (uint64_t)LARGE)
        return;
    bool good = weir_buffer_create(g->bench->device, &params, &from) == WEIR_OK &&
                weir_buffer_create(g->bench->device, &params, &to) == WEIR_OK &&
                weir_upload(queue, from, LARGE - 1, &last, 1) == WEIR_OK &&
                weir_capture_begin(queue) == WEIR_OK &&
                weir_queue_copy(queue, to, 0, from, 0, LARGE) == WEIR_OK &&
                weir_capture_end(queue, NULL, &graph) == WEIR_OK &&
                weir_queue_graph(queue, graph) == WEIR_OK &&
                weir_download(queue, &read, to, LARGE - 1, 1) == WEIR_OK;
    check(good && read == last, "a copy of 2.25 GiB in a graph");
    WEIR_IGNORE(weir_capture_cancel(queue));
    weir_graph_destroy(&graph);
    weir_buffer_destroy(&from);
    weir_buffer_destroy(&to);
}

void check_graphs(const struct bench *bench, weir_status (*spin)(const struct bench *, uint64_t),
                  uint64_t steps)
{
    struct graphs g = {
        .bench = bench,
        .values = buffer_of(bench, BYTES, WEIR_PLACE_DEVICE),
        .host = buffer_of(bench, BYTES, WEIR_PLACE_HOST),
    };
    if (weir_kernel_create(bench->program, "increment", &g.increment) == WEIR_OK) {
        printf("      graphs beside a kernel of about 400 ms:\n");
        check_waits(&g, spin, steps);
        check_order(&g);
        time_updates(&g);
        check_large_copy(&g);
    } else {
        check(false, "weir_kernel_create");
    }
    weir_kernel_destroy(&g.increment);
    weir_buffer_destroy(&g.values);
    weir_buffer_destroy(&g.host);
}
