// The plugin's memory with operations of all kinds but host calls, which the library keeps while they hold a
// queue: what is in use while a thousand are in flight is the same after five times as many of them.
#define _GNU_SOURCE // mallinfo2

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

#include "kernels/conformance/conformance.h"
#include "tests/support/test.h"

enum {
    BYTES = 4096,
    NODES = 5,
    IN_FLIGHT = 1000,
    GRAPH_EVERY = 8, // rounds of a queue
    WARM = 30000,    // the launches of graphs come at other places of the thousand each time
    MANY = 5 * WARM,
    SLACK = 8192, // bytes: what does not grow with the operations, such as the C library's
};

struct mixed {
    weir_runtime *runtime;
    weir_device *device;
    weir_program *program;
    weir_kernel *kernel;
    weir_buffer *host;
    weir_buffer *memory;
    weir_graph *graph;
    weir_queue **queues;
    uint32_t queue_count;
    struct weir_event last; // of the queue before
};

static void must(weir_status status)
{
    if (status < 0)
        fprintf(stderr, "%s\n", weir_last_error_text()), exit(1);
}

static void up(struct mixed *m, weir_queue *queue)
{
    must(weir_queue_copy(queue, m->memory, 0, m->host, 0, BYTES));
}

static void down(struct mixed *m, weir_queue *queue)
{
    must(weir_queue_copy(queue, m->host, BYTES, m->memory, BYTES, BYTES));
}

static void work(struct mixed *m, weir_queue *queue)
{
    must(weir_queue_launch(queue, m->kernel, weir_dim(4, 1, 1), weir_dim(64, 1, 1),
                           weir_out(m->memory, 0, BYTES), 7u, (uint64_t)3));
}

// An upload and a fill at once, then two kernels and a download.
static void capture(struct mixed *m)
{
    struct weir_event fork, join;
    weir_queue *queue = m->queues[0], *other = NULL;
    must(weir_queue_create(m->device, NULL, &other));
    must(weir_capture_begin(queue));
    must(weir_queue_record(queue, &fork));
    must(weir_queue_wait(other, fork));
    up(m, queue);
    must(weir_queue_fill(other, m->memory, BYTES, BYTES, "x", 1));
    must(weir_queue_record(other, &join));
    work(m, queue);
    must(weir_queue_wait(queue, join));
    work(m, queue);
    down(m, queue);
    must(weir_capture_end(queue, NULL, &m->graph));
    weir_queue_destroy(&other);
}

// `path` gets the name of a file with the kernel's cost.
static void write_costs(char *path, size_t size)
{
    const char *folder = getenv("TEST_TMPDIR");
    snprintf(path, size, "%s/weir_mixed_XXXXXX", folder ? folder : "/tmp");
    const int descriptor = mkstemp(path);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (file && fputs("[kernel spin]\nfixed_ns = 2000\nper_item_ns = 1\n", file) >= 0 &&
        fclose(file) == 0)
        return;
    fprintf(stderr, "%s cannot be written\n", path), exit(1);
}

static void open_runtime(struct mixed *m)
{
    char costs[512], config[1024];
    write_costs(costs, sizeof costs);
    snprintf(config, sizeof config, "[weir]\nbackend = null\n[sim]\ngpu = h200\ncosts = %s\n",
             costs);
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .config_path = "mixed.ini",
                                            .config_text = config,
                                            .plugins = "sim"};
    must(weir_open(&params, &m->runtime));
    must(weir_device_open(m->runtime, NULL, &m->device));
    remove(costs);
}

static struct mixed *mixed_open(uint32_t queue_count)
{
    const struct weir_bundle bundle = conformance_kernels;
    const struct weir_program_params program = {.struct_size = sizeof program, .bundle = &bundle};
    struct weir_buffer_params buffer = {.struct_size = sizeof buffer, .size = 2 * BYTES};
    struct mixed *m = calloc(1, sizeof *m);
    if (!m || !(m->queues = calloc(queue_count, sizeof *m->queues)))
        fprintf(stderr, "out of memory\n"), exit(1);
    m->queue_count = queue_count;
    open_runtime(m);
    must(weir_program_create(m->device, &program, &m->program));
    must(weir_kernel_create(m->program, "spin", &m->kernel));
    must(weir_buffer_create(m->device, &buffer, &m->memory));
    buffer.placement = WEIR_PLACE_HOST;
    must(weir_buffer_create(m->device, &buffer, &m->host));
    for (uint32_t i = 0; i < queue_count; i++)
        must(weir_queue_create(m->device, NULL, &m->queues[i]));
    capture(m);
    return m;
}

// One round of a queue; how many operations that are.
static uint64_t submit(struct mixed *m, uint64_t round)
{
    weir_queue *queue = m->queues[round % m->queue_count];
    const uint64_t turn = round / m->queue_count;
    if (m->queue_count > 1 && m->last.queue)
        must(weir_queue_wait(queue, m->last));
    up(m, queue);
    work(m, queue);
    must(weir_queue_fill(queue, m->memory, BYTES, BYTES, "y", 1));
    down(m, queue);
    if (turn % GRAPH_EVERY == GRAPH_EVERY - 1)
        must(weir_queue_graph(queue, m->graph));
    must(weir_queue_record(queue, &m->last));
    return 5 + (m->queue_count > 1) + (turn % GRAPH_EVERY == GRAPH_EVERY - 1 ? NODES : 0);
}

// Of all modules of the process.
static void note_most(size_t *most)
{
    const size_t bytes = mallinfo2().uordblks;
    if (bytes > *most)
        *most = bytes;
}

// Submits at least that many operations, and waits after each thousand. Returns the most bytes that were in use
// before one of these waits.
static size_t most_bytes(struct mixed *mixed, uint64_t operations)
{
    uint64_t done = 0, in_flight = 0;
    size_t most = 0;
    for (uint64_t round = 0; done < operations; round++) {
        const uint64_t count = submit(mixed, round);
        done += count;
        in_flight += count;
        if (in_flight < IN_FLIGHT)
            continue;
        note_most(&most);
        must(weir_event_sync(mixed->last, WEIR_FOREVER)); // which comes after all others
        in_flight = 0;
    }
    must(weir_event_sync(mixed->last, WEIR_FOREVER));
    return most;
}

static void mixed_close(struct mixed **mixed)
{
    struct mixed *m = *mixed;
    weir_graph_destroy(&m->graph);
    for (uint32_t i = 0; i < m->queue_count; i++)
        weir_queue_destroy(&m->queues[i]);
    weir_buffer_destroy(&m->memory);
    weir_buffer_destroy(&m->host);
    weir_kernel_destroy(&m->kernel);
    weir_program_destroy(&m->program);
    must(weir_device_close(&m->device));
    must(weir_close(&m->runtime));
    free(m->queues);
    free(m);
    *mixed = NULL;
}

static void compare(uint32_t queues)
{
    struct mixed *mixed = mixed_open(queues);
    const size_t few = most_bytes(mixed, WARM);
    const size_t many = most_bytes(mixed, MANY);
    mixed_close(&mixed);
    printf("%u queues: at most %zu bytes, then %zu\n", (unsigned)queues, few, many);
    EXPECT_UINT_GT(few, 0);
    EXPECT_UINT_LT(many, few + SLACK);
}

WEIR_TEST(MixedMemory, IsThatOfWhatIsInFlight)
{
    compare(1);
    compare(8);
    compare(64);
}
