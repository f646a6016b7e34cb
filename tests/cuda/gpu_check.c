// Checks that the fake libcuda cannot make: a program for a machine with a GPU. It
// prints one line per check, with the figure if there is one, and exits with 1 if
// any failed.
//
//     gpu_check          all that leaves the device as it was
//     gpu_check fault    a kernel that leaves its buffer, and what is said of it,
//                        without attribute_faults and with it
//
// The environment chooses modules and configuration, as for every program.
#include "tests/cuda/gpu_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "base/clock.h"
#include "kernels/conformance/conformance.h"

weir_buffer *buffer_of(const struct bench *bench, size_t size, weir_placement placement)
{
    weir_buffer *buffer = NULL;
    if (weir_buffer_create(bench->device,
                           WEIR_PARAMS(weir_buffer, .size = size, .placement = placement),
                           &buffer) != WEIR_OK)
        check(false, "weir_buffer_create of %zu bytes", size);
    return buffer;
}

static weir_queue *queue_of(const struct bench *bench, bool timing)
{
    weir_queue *queue = NULL;
    if (weir_queue_create(bench->device, WEIR_PARAMS(weir_queue, .timing = timing), &queue) !=
        WEIR_OK)
        check(false, "weir_queue_create");
    return queue;
}

static void destroy_all(struct bench *bench)
{
    weir_buffer_destroy(&bench->memory);
    weir_buffer_destroy(&bench->pinned);
    weir_kernel_destroy(&bench->iota);
    weir_kernel_destroy(&bench->spin);
    weir_program_destroy(&bench->program);
    weir_queue_destroy(&bench->queue);
    weir_queue_destroy(&bench->other);
}

static bool create_all(struct bench *bench, const char *config)
{
    if (weir_open(WEIR_PARAMS(weir_open, .config_path = config ? "gpu_check" : NULL,
                              .config_text = config, .backend = "cuda"),
                  &bench->runtime) != WEIR_OK ||
        weir_device_open(bench->runtime, NULL, &bench->device) != WEIR_OK ||
        weir_program_create(bench->device,
                            WEIR_PARAMS(weir_program, .bundle = &conformance_kernels),
                            &bench->program) != WEIR_OK ||
        weir_kernel_create(bench->program, "iota", &bench->iota) != WEIR_OK ||
        weir_kernel_create(bench->program, "spin", &bench->spin) != WEIR_OK)
        return false;
    bench->queue = queue_of(bench, false);
    bench->other = queue_of(bench, false);
    bench->memory = buffer_of(bench, (size_t)64 << 20, WEIR_PLACE_DEVICE);
    bench->pinned = buffer_of(bench, (size_t)64 << 20, WEIR_PLACE_HOST);
    return bench->queue && bench->other && bench->memory && bench->pinned;
}

bool start_with(struct bench *bench, const char *config)
{
    memset(bench, 0, sizeof *bench);
    if (create_all(bench, config))
        return true;
    destroy_all(bench);
    WEIR_IGNORE(weir_device_close(&bench->device));
    WEIR_IGNORE(weir_close(&bench->runtime));
    return false;
}

void finish(struct bench *bench)
{
    destroy_all(bench);
    check(weir_device_close(&bench->device) == WEIR_OK, "the device closes");
    check(weir_close(&bench->runtime) == WEIR_OK, "the runtime closes");
}

static void print_device(const struct bench *bench)
{
    const struct weir_device_info *info = weir_device_get_info(bench->device);
    const struct weir_limits *limits = weir_device_limits(bench->device);
    printf("      %s, %s, %llu MiB\n", info->name, info->driver,
           (unsigned long long)(info->memory_bytes >> 20));
    printf("      priorities %d to %d, engines %u/%u, %u multiprocessors, local %llu bytes\n",
           limits->priority_lowest, limits->priority_highest, limits->copy_engines_to_device,
           limits->copy_engines_to_host, limits->compute_units,
           (unsigned long long)limits->max_local_bytes);
}

// One work-item that runs for about `milliseconds`, found by doubling.
static uint64_t steps_for(const struct bench *bench, double milliseconds)
{
    for (uint64_t steps = 100000;; steps *= 2) {
        const uint64_t begin = weir_clock_now_ns();
        WEIR_IGNORE(weir_queue_launch(bench->queue, bench->spin, weir_dim(1, 1, 1),
                                      weir_dim(1, 1, 1), weir_out(bench->memory, 0, 64), 1u,
                                      steps));
        WEIR_IGNORE(weir_queue_sync(bench->queue, WEIR_FOREVER));
        const double took = (double)(weir_clock_now_ns() - begin) * 1e-6;
        if (took > 20 || steps > UINT64_C(1) << 40)
            return (uint64_t)((double)steps * milliseconds / took);
    }
}

static weir_status spin(const struct bench *bench, uint64_t steps)
{
    return weir_queue_launch(bench->queue, bench->spin, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                             weir_out(bench->memory, 0, 64), 1u, steps);
}

// Calls that must not wait while a kernel runs.

static uint64_t clock_start;

static void end_call(const char *what)
{
    const double took = (double)(weir_clock_now_ns() - clock_start) * 1e-6;
    check(took < 20, "%8.3f ms  %s", took, what);
}

// Prints a line with the time of the call; from 20 ms on the check fails.
#define TIMED(what, call)                  \
    do {                                   \
        clock_start = weir_clock_now_ns(); \
        call;                              \
        end_call(what);                    \
    } while (0)

static void time_buffers(const struct bench *bench)
{
    static _Alignas(4096) unsigned char wrapped_memory[1 << 20];
    weir_buffer *buffer = NULL;
    TIMED("create a DEVICE buffer of 32 MiB",
          buffer = buffer_of(bench, (size_t)32 << 20, WEIR_PLACE_DEVICE));
    TIMED("destroy it", weir_buffer_destroy(&buffer));
    TIMED("create a HOST buffer of 4 MiB",
          buffer = buffer_of(bench, (size_t)4 << 20, WEIR_PLACE_HOST));
    TIMED("destroy it", weir_buffer_destroy(&buffer));
    TIMED("wrap 1 MiB",
          WEIR_IGNORE(weir_buffer_wrap(bench->device,
                                       WEIR_PARAMS(weir_wrap, .pointer = wrapped_memory,
                                                   .size = sizeof wrapped_memory),
                                       &buffer)));
    TIMED("destroy it", weir_buffer_destroy(&buffer));
}

static void time_others(const struct bench *bench, weir_program **spare)
{
    weir_kernel *kernel = NULL;
    weir_queue *queue = NULL;
    TIMED("create a queue", queue = queue_of(bench, false));
    TIMED("destroy it", weir_queue_destroy(&queue));
    TIMED("create a queue with timing", queue = queue_of(bench, true));
    TIMED("destroy it", weir_queue_destroy(&queue));
    TIMED("create a kernel", WEIR_IGNORE(weir_kernel_create(bench->program, "scale", &kernel)));
    TIMED("destroy it", weir_kernel_destroy(&kernel));
    TIMED("destroy a program", weir_program_destroy(spare));
}

static void fill_often(const struct bench *bench, weir_buffer *dst, size_t offset)
{
    static const unsigned char pattern[16] = {1, 2, 3};
    for (size_t unit = 1; unit <= 16; unit *= 2)
        WEIR_IGNORE(weir_queue_fill(bench->queue, dst, offset, 1 << 20, pattern, unit));
}

static void time_submits(const struct bench *bench, weir_buffer *second)
{
    const struct weir_plane to = {second, 0, 4096};
    const struct weir_plane from = {bench->pinned, 0, 8192};
    TIMED("submit a copy from HOST to HOST of 20 MiB",
          WEIR_IGNORE(
              weir_queue_copy(bench->queue, second, 0, bench->pinned, 0, (size_t)20 << 20)));
    TIMED("submit a 2-D copy from HOST to HOST",
          WEIR_IGNORE(weir_queue_copy_2d(bench->queue, to, from, 1000, 1000)));
    TIMED("submit five fills of a HOST buffer", fill_often(bench, second, 0));
    TIMED("submit five fills of a DEVICE buffer", fill_often(bench, bench->memory, 1 << 20));
}

static void check_waits(const struct bench *bench, uint64_t steps)
{
    struct weir_event event;
    weir_program *spare = NULL;
    WEIR_IGNORE(weir_program_create(bench->device,
                                    WEIR_PARAMS(weir_program, .bundle = &conformance_kernels),
                                    &spare));
    weir_buffer *second = buffer_of(bench, (size_t)64 << 20, WEIR_PLACE_HOST);
    printf("      beside a kernel of about 400 ms:\n");
    spin(bench, steps);
    WEIR_IGNORE(weir_queue_record(bench->queue, &event));
    time_buffers(bench);
    time_others(bench, &spare);
    time_submits(bench, second);
    check(weir_event_query(event) == WEIR_NOT_READY, "the kernel still runs after all of these");
    WEIR_IGNORE(weir_queue_sync(bench->queue, WEIR_FOREVER));
    weir_buffer_destroy(&second);
}

// Times over several anchors against the host's clock.
static void check_times(const struct bench *bench)
{
    struct weir_event events[2];
    uint64_t device_ns[2] = {0, 0};
    uint64_t host_ns[2];
    weir_queue *queue = queue_of(bench, true);
    for (int i = 0; i < 2; i++) {
        for (int pause = 0; i > 0 && pause < 30;
             pause++) { // three seconds, with records on the way
            weir_clock_sleep_ns(100000000);
            WEIR_IGNORE(weir_queue_record(queue, &events[1]));
        }
        WEIR_IGNORE(weir_queue_record(queue, &events[i]));
        WEIR_IGNORE(weir_event_sync(events[i], WEIR_FOREVER));
        host_ns[i] = weir_clock_now_ns();
        if (weir_event_time_ns(events[i], &device_ns[i]) != WEIR_OK)
            check(false, "weir_event_time_ns");
    }
    const double host = (double)(host_ns[1] - host_ns[0]) * 1e-3;
    const double device = (double)(device_ns[1] - device_ns[0]) * 1e-3;
    check(device > host - 2000 && device < host + 2000,
          "three seconds by the device's clock: %.1f us, by the host's: %.1f us", device, host);
    weir_queue_destroy(&queue);
}

// Graphs: what makes and changes them does not wait either; and a copy that only a real driver refuses.

enum {
    NODES = 20,
    LAUNCHED = 64
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
static void check_graph(struct graphs *g, uint64_t steps)
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

static void check_graphs(const struct bench *bench, uint64_t steps)
{
    struct graphs g = {
        .bench = bench,
        .values = buffer_of(bench, BYTES, WEIR_PLACE_DEVICE),
        .host = buffer_of(bench, BYTES, WEIR_PLACE_HOST),
    };
    if (weir_kernel_create(bench->program, "increment", &g.increment) == WEIR_OK) {
        printf("      graphs beside a kernel of about 400 ms:\n");
        check_graph(&g, steps);
        check_large_copy(&g);
    } else {
        check(false, "weir_kernel_create");
    }
    weir_kernel_destroy(&g.increment);
    weir_buffer_destroy(&g.values);
    weir_buffer_destroy(&g.host);
}

int main(int argc, char **argv)
{
    struct bench bench;
    if (argc > 1)
        return run_faults(argv[0], argv[1], argc > 2 ? argv[2] : "");
    if (!start_with(&bench, NULL)) {
        check(false, "opening the CUDA backend and its kernels");
        return 1;
    }
    print_device(&bench);
    const uint64_t steps = steps_for(&bench, 400);
    check_waits(&bench, steps);
    check_graphs(&bench, steps);
    check_times(&bench);
    finish(&bench);
    printf("%s\n", check_failures ? "FAILED" : "all checks passed");
    return check_failures != 0;
}
