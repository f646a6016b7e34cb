// Makes the common mistakes of docs/migration.md, docs/graphs.md and docs/pools.md
// and prints the message of each, one per line. mistakes_test.sh searches its output
// for the pages' messages. Needs two devices.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

enum {
    BYTES = 4096
};

static const char source[] =
    "__kernel void scale(__global const float *in, __global float *out, float factor)\n"
    "{\n"
    "    uint i = (uint)get_global_id(0);\n"
    "    out[i] = in[i] * factor;\n"
    "}\n";

static weir_runtime *runtime;
static weir_device *device;
static weir_queue *left, *right;
static weir_buffer *first, *second, *host;
static weir_kernel *scale;

static void check(weir_status status)
{
    if (status < 0)
        fprintf(stderr, "%s\n", weir_last_error_text()), exit(1);
}

static void expect(weir_status status)
{
    if (status >= 0)
        fprintf(stderr, "a mistake was accepted, after: %s\n", weir_last_error_text()), exit(1);
    printf("%s\n", weir_last_error_text());
}

static weir_queue *make_queue(weir_device *of, const char *label)
{
    const struct weir_queue_params params = {.struct_size = sizeof params, .label = label};
    weir_queue *queue;
    check(weir_queue_create(of, &params, &queue));
    return queue;
}

static weir_buffer *make_buffer(weir_placement placement)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = "h",
                                              .size = BYTES,
                                              .placement = placement};
    weir_buffer *buffer;
    check(weir_buffer_create(device, &params, &buffer));
    return buffer;
}

static void launches(void)
{
    const struct weir_extent grid = weir_dim(BYTES / 256, 1, 1);
    const struct weir_extent block = weir_dim(64, 1, 1);
    expect(weir_queue_launch(left, scale, grid, weir_dim(1 << 20, 1, 1), weir_in(first, 0, BYTES),
                             weir_out(second, 0, BYTES), 2.0f));
    expect(weir_queue_launch(left, scale, grid, block, weir_in(first, 0, BYTES),
                             weir_out(second, 0, BYTES)));
    expect(weir_queue_launch(left, scale, grid, block, 2.0f, weir_in(first, 0, BYTES),
                             weir_out(second, 0, BYTES)));
    expect(weir_queue_launch(left, scale, grid, block, weir_in(first, 0, BYTES),
                             weir_out(second, 0, BYTES), 2.0));
}

static void copies(void)
{
    const struct weir_event never = {0};
    expect(weir_queue_copy(left, first, 0, host, 0, BYTES + 1));
    expect(weir_queue_copy(left, first, 0, first, 1, 4000));
    expect(weir_queue_wait(left, never));
}

static weir_status wrong_calls(void *user)
{
    weir_queue *queue;
    (void)user;
    expect(weir_queue_sync(right, WEIR_FOREVER));
    expect(weir_thread_queue(device, &queue));
    weir_error_set(NULL);
    return WEIR_ERROR_IO;
}

static void host_calls(void)
{
    check(weir_queue_host_call(left, wrong_calls, NULL));
    expect(weir_queue_sync(left, WEIR_FOREVER));
    check(weir_queue_recover(left));
}

static void others_queues(void)
{
    const struct weir_device_params params = {.struct_size = sizeof params, .select = "1"};
    weir_device *other;
    weir_queue *queue;
    struct weir_event event;
    uint64_t time_ns;
    check(weir_legacy_queue(device, &queue));
    check(weir_queue_record(queue, &event));
    check(weir_event_sync(event, WEIR_FOREVER));
    expect(weir_event_time_ns(event, &time_ns));
    weir_queue_destroy(&queue);
    printf("%s\n", weir_last_error_text());
    check(weir_device_open(runtime, &params, &other));
    queue = make_queue(other, "other");
    expect(weir_queue_launch(queue, scale, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                             weir_in(first, 0, 4), weir_out(second, 0, 4), 1.0f));
    weir_queue_destroy(&queue);
    check(weir_device_close(&other));
}

static void forget(void *user, weir_status status)
{
    (void)user;
    (void)status;
}

static weir_status succeed(void *user)
{
    (void)user;
    return WEIR_OK;
}

static void captures(weir_pool *pool)
{
    struct weir_event before, inside, join;
    weir_graph *graph;
    weir_buffer *memory, *more;
    uint32_t node;
    check(weir_pool_allocate(pool, left, BYTES, &memory));
    check(weir_queue_record(right, &before));
    check(weir_capture_begin(left));
    expect(weir_queue_sync(left, WEIR_FOREVER));
    expect(weir_queue_host_call_always(left, forget, NULL));
    expect(weir_queue_wait(left, before));
    expect(weir_pool_allocate(pool, left, BYTES, &more));
    check(weir_queue_copy(left, memory, 0, host, 0, BYTES));
    check(weir_capture_node(left, &node));
    check(weir_queue_host_call(left, succeed, NULL));
    check(weir_queue_record(left, &inside));
    check(weir_capture_end(left, NULL, &graph));
    expect(weir_queue_wait(right, inside));
    expect(weir_graph_set_fill(graph, node, memory, 0, BYTES, "", 1));
    expect(weir_graph_set_enabled(graph, node + 1, false));
    expect(weir_pool_free(left, &memory));
    weir_graph_destroy(&graph);
    check(weir_pool_free(left, &memory));

    check(weir_capture_begin(left));
    check(weir_queue_record(left, &join));
    check(weir_queue_wait(right, join));
    check(weir_queue_copy(right, second, 0, host, 0, BYTES));
    expect(weir_capture_end(left, NULL, &graph));
}

static void pools(weir_pool *pool)
{
    weir_buffer *memory, *twice;
    check(weir_pool_allocate(pool, left, BYTES, &memory));
    twice = memory;
    check(weir_pool_free(left, &memory));
    expect(weir_pool_free(left, &memory));
    expect(weir_pool_free(left, &twice));
    expect(weir_queue_copy(left, twice, 0, host, 0, 16));
    expect(weir_pool_free(left, &first));
}

static void closes(weir_pool *pool)
{
    weir_buffer *memory;
    check(weir_pool_allocate(pool, left, BYTES, &memory));
    expect(weir_device_close(&device));
    weir_queue_destroy(&left), weir_queue_destroy(&right), weir_kernel_destroy(&scale);
    weir_buffer_destroy(&host), weir_buffer_destroy(&first), weir_buffer_destroy(&second);
    expect(weir_device_close(&device));
    weir_pool_destroy(&pool);
    expect(weir_device_close(&device));
    weir_buffer_destroy(&memory);
    check(weir_device_close(&device));
    check(weir_close(&runtime));
}

static void forks(void)
{
    int status = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        expect(weir_queue_sync(left, WEIR_FOREVER));
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, &status, 0);
    if (status != 0)
        exit(1);
}

int main(void)
{
    const struct weir_device_params select = {.struct_size = sizeof select, .select = "0"};
    const struct weir_program_params code = {.struct_size = sizeof code, .source = source};
    const struct weir_pool_params named = {.struct_size = sizeof named, .label = "p"};
    weir_program *program;
    weir_pool *pool;

    check(weir_open(NULL, &runtime));
    check(weir_device_open(runtime, &select, &device));
    check(weir_pool_create(device, &named, &pool));
    check(weir_program_create(device, &code, &program));
    check(weir_kernel_create(program, "scale", &scale));
    weir_program_destroy(&program);
    left = make_queue(device, "left");
    right = make_queue(device, "right");
    host = make_buffer(WEIR_PLACE_HOST);
    first = make_buffer(WEIR_PLACE_DEVICE);
    second = make_buffer(WEIR_PLACE_DEVICE);

    launches();
    copies();
    host_calls();
    others_queues();
    captures(pool);
    pools(pool);
    forks();
    closes(pool);
    return 0;
}
