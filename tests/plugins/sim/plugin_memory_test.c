// Every allocation of the plugin fails once in turn, while it sees a small program through its own
// slots: what it cannot place is refused, and nothing leaks. The next link accepts everything. The
// rule in BUILD makes the linker use these functions instead of the allocator.
#include <stdlib.h>

#include "plugins/sim/sim.h"
#include "tests/support/no_memory.h"
#include "tests/support/test.h"

enum {
    QUEUE_COUNT = 3,
    MOST_ALLOCATIONS = 2000,
};

static bool right; // everything that was expected; the tests' own macros may allocate

static void expect(bool condition)
{
    right = right && condition;
}

// The chain.

static weir_status keep_status(const struct weir_error *detail, size_t size)
{
    (void)size;
    return detail->status;
}

static void *allocate(size_t size)
{
    return calloc(1, size);
}

static weir_status accept(const struct weir_link *link, weir_queue *queue,
                          const struct weir_operation *operation)
{
    (void)link;
    (void)queue;
    (void)operation;
    return WEIR_OK;
}

static weir_status accept_finish(const struct weir_link *link, weir_queue *queue)
{
    (void)link;
    (void)queue;
    return WEIR_OK;
}

static weir_status accept_wait(const struct weir_link *link, weir_queue *queue, uint64_t sequence,
                               uint64_t timeout_ns)
{
    (void)link;
    (void)queue;
    (void)sequence;
    (void)timeout_ns;
    return WEIR_OK;
}

static weir_status accept_times(const struct weir_link *link, weir_queue *queue,
                                struct weir_operation_time *times, size_t time_size,
                                size_t capacity, size_t *out_count)
{
    (void)link;
    (void)queue;
    (void)times;
    (void)time_size;
    (void)capacity;
    *out_count = 0;
    return WEIR_OK;
}

static const struct weir_host host = {.struct_size = sizeof host,
                                      .error = keep_status,
                                      .allocate = allocate,
                                      .release = free};
static const struct weir_module_ops accepting = {.queue_submit = accept,
                                                 .queue_finish = accept_finish,
                                                 .event_wait = accept_wait,
                                                 .queue_times = accept_times};
static const struct weir_link next = {.struct_size = sizeof next,
                                      .ops = &accepting,
                                      .host = &host,
                                      .name = "null"};
static struct weir_link here = {.struct_size = sizeof here,
                                .next = &next,
                                .host = &host,
                                .name = "sim"};
static const struct weir_module_ops *ops;

// The front end's objects, as far as a plugin knows them.
struct thing {
    struct weir_object object;
    void *data;
    uint64_t sequence;
};

static struct thing device;
static struct thing queues[QUEUE_COUNT];
static struct thing memory;
static struct thing pinned;
static struct thing kernel;
static struct thing measured; // a kernel without a cost

#define AS(type, thing) ((type *)(void *)(thing))

static void reset(struct thing *thing)
{
    *thing = (struct thing){.object = {.label = "thing", .id = 1}};
    thing->object.data = &thing->data;
}

static bool made(weir_status status, const struct thing *thing)
{
    expect(status == WEIR_OK ? thing->data != NULL
                             : status == WEIR_ERROR_OUT_OF_MEMORY && !thing->data);
    return status == WEIR_OK;
}

static bool create_buffer(struct thing *buffer, weir_placement placement)
{
    const struct weir_buffer_setup setup = {.struct_size = sizeof setup,
                                            .size = 4096,
                                            .placement = placement};
    void *pointer;
    return made(ops->buffer_create(&here, AS(weir_device, &device), AS(weir_buffer, buffer), &setup,
                                   &buffer->data, &pointer),
                buffer);
}

static bool create_queues(void)
{
    bool all = true;
    for (int i = 0; i < QUEUE_COUNT; i++) {
        const struct weir_queue_setup setup = {.struct_size = sizeof setup, .times = true};
        all = made(ops->queue_create(&here, AS(weir_device, &device), AS(weir_queue, &queues[i]),
                                     &setup, &queues[i].data),
                   &queues[i]) &&
              all;
    }
    return all;
}

static bool create(void)
{
    static const struct weir_kernel_signature signature = {.name = "spin"};
    static const struct weir_kernel_signature other = {.name = "turn"};
    const struct weir_device_setup setup = {.struct_size = sizeof setup};
    return made(ops->device_create(&here, AS(weir_device, &device), &setup, &device.data),
                &device) &&
           create_queues() && create_buffer(&memory, WEIR_PLACE_DEVICE) &&
           create_buffer(&pinned, WEIR_PLACE_HOST) &&
           made(ops->kernel_create(&here, NULL, AS(weir_kernel, &kernel), &signature, NULL,
                                   &kernel.data),
                &kernel) &&
           made(ops->kernel_create(&here, NULL, AS(weir_kernel, &measured), &other, NULL,
                                   &measured.data),
                &measured);
}

static void destroy(void)
{
    for (int i = 0; i < QUEUE_COUNT; i++)
        if (queues[i].data)
            ops->queue_destroy(&here, AS(weir_queue, &queues[i]));
    if (memory.data)
        ops->buffer_destroy(&here, AS(weir_buffer, &memory));
    if (pinned.data)
        ops->buffer_destroy(&here, AS(weir_buffer, &pinned));
    if (kernel.data)
        ops->kernel_destroy(&here, AS(weir_kernel, &kernel));
    if (measured.data)
        ops->kernel_destroy(&here, AS(weir_kernel, &measured));
    if (device.data)
        ops->device_destroy(&here, AS(weir_device, &device));
}

// The program.

static void submit(struct thing *queue, struct weir_operation operation)
{
    operation.struct_size = sizeof operation;
    operation.sequence = ++queue->sequence;
    const weir_status status = ops->queue_submit(&here, AS(weir_queue, queue), &operation);
    expect(status == WEIR_OK || status == WEIR_ERROR_OUT_OF_MEMORY);
}

static struct weir_operation upload(void)
{
    return (struct weir_operation){.kind = WEIR_OPERATION_COPY,
                                   .u.copy = {.dst = AS(weir_buffer, &memory),
                                              .src = AS(weir_buffer, &pinned),
                                              .size = 4096}};
}

// Three branches, the last node after the others.
static void launch_graph(void)
{
    static const uint32_t before[] = {0, 1};
    struct weir_operation copies[3] = {upload(), upload(), upload()};
    struct weir_graph_node nodes[3];
    for (uint32_t i = 0; i < 3; i++)
        nodes[i] = (struct weir_graph_node){.struct_size = sizeof nodes[i],
                                            .operation = &copies[i],
                                            .branch = i,
                                            .dependency_count = i == 2 ? 2 : 0,
                                            .dependencies = before};
    submit(&queues[0],
           (struct weir_operation){.kind = WEIR_OPERATION_GRAPH, .u.graph = {NULL, nodes, 3}});
}

static void follow(struct thing *queue, struct thing *other)
{
    submit(other, (struct weir_operation){.kind = WEIR_OPERATION_RECORD});
    submit(queue, (struct weir_operation){.kind = WEIR_OPERATION_WAIT,
                                          .u.wait = {.event = {1, other->sequence},
                                                     .producer = AS(weir_queue, other)}});
}

static void fetch(void)
{
    struct weir_operation_time times[16];
    size_t count;
    expect(ops->queue_finish(&here, AS(weir_queue, &queues[0])) == WEIR_OK);
    do
        expect(ops->queue_times(&here, AS(weir_queue, &queues[0]), times, sizeof *times, 16,
                                &count) == WEIR_OK);
    while (count > 0);
}

static void launch(struct thing *queue, struct thing *which, uint32_t blocks)
{
    submit(queue, (struct weir_operation){.kind = WEIR_OPERATION_LAUNCH,
                                          .u.launch = {.kernel = AS(weir_kernel, which),
                                                       .grid = {blocks, 1, 1},
                                                       .block = {64, 1, 1}}});
}

static weir_status do_nothing(void *user)
{
    (void)user;
    return WEIR_OK;
}

static void run(void)
{
    for (int i = 0; i < 100; i++)
        submit(&queues[0], upload());
    launch(&queues[1], &kernel, 1);
    for (uint32_t i = 0; i < 40; i++)
        launch(&queues[1], &measured, i);
    submit(&queues[1], (struct weir_operation){.kind = WEIR_OPERATION_HOST_CALL,
                                               .u.host_call = {do_nothing, NULL}});
    launch_graph();
    follow(&queues[2], &queues[0]);
    for (int i = 0; i < 8; i++)
        follow(&queues[1], &queues[2]);
    expect(ops->event_wait(&here, AS(weir_queue, &queues[2]), queues[2].sequence, 0) == WEIR_OK);
    fetch();
}

// One life of a link. Returns whether nothing was refused for lack of memory.
static bool live(const char *gpu)
{
    struct weir_setting settings[] = {{.text = gpu},    {.text = ""},      {.text = ""},
                                      {.text = "none"}, {.text = "scale"}, {.text = "1"},
                                      {.integer = 0},   {.integer = 1}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        settings[i].origin = "test.ini:1";
    const struct weir_setting *const list[] = {&settings[0], &settings[1], &settings[2],
                                               &settings[3], &settings[4], &settings[5],
                                               &settings[6], &settings[7]};
    struct thing *const all[] = {&device, &queues[0], &queues[1], &queues[2],
                                 &memory, &pinned,    &kernel,    &measured};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        reset(all[i]);
    const weir_status status = ops->open(&here, list, &here.state);
    expect(status == WEIR_OK || status == WEIR_ERROR_OUT_OF_MEMORY || status == WEIR_ERROR_CONFIG);
    if (status < 0)
        return false;
    const bool whole = create();
    if (whole)
        run();
    destroy();
    ops->close(&here);
    return whole;
}

static const char *write_gpu(void)
{
    static char path[512];
    const char *folder = getenv("TEST_TMPDIR");
    snprintf(path, sizeof path, "%s/gpu.ini", folder ? folder : "/tmp");
    FILE *file = fopen(path, "w");
    if (!file)
        return "";
    fputs("[gpu]\nname = plain\nqueues = stream\ncopy_engines = 2\nkernels = 4\nchannels = 2\n"
          "h2d_gb_per_s = 1\nd2h_gb_per_s = 1\n[kernel spin]\nfixed_ns = 5\n",
          file);
    fclose(file);
    return path;
}

WEIR_TEST(Memory, EachAllocationOfThePluginFails)
{
    const char *gpu = write_gpu();
    ops = weir_module_query(WEIR_MODULE_ABI, &host)->ops;
    right = true;
    EXPECT_TRUE(live(gpu));
    long i = 0;
    for (bool failed = true; failed && i < MOST_ALLOCATIONS; i++) {
        weir_test_fail_allocation(i);
        live(gpu);
        failed = weir_test_allocation_failed();
        weir_test_fail_allocation(-1);
    }
    EXPECT_TRUE(i > 30 && i < MOST_ALLOCATIONS);
    EXPECT_TRUE(right);
}
