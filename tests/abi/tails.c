// A plugin that writes, copies and makes structures as its own headers have them, and ends the
// program when it is handed one that it cannot read. Compiled with older, present and newer
// headers; with newer ones (NEWER), what was appended is not zero in what it writes.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/module/error.h>

enum {
    TIMES = 16,
};

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
            abort();                                                                      \
        }                                                                                 \
    } while (0)

#ifdef NEWER
#define SET_TAIL(structure) memset((structure)->newer, 0x5a, sizeof(structure)->newer)
#define CHECK_TAIL(structure) CHECK(!WEIR_HAS((structure), newer) || (structure)->newer[3] == 0)
#else
#define SET_TAIL(structure) (void)(structure)
#define CHECK_TAIL(structure) (void)(structure)
#endif

static atomic_uint submits;

static void tails_device_limits(const struct weir_link *link, weir_device *device,
                                struct weir_limits *limits)
{
    struct weir_limits mine = {.struct_size = sizeof mine};
    WEIR_WRITE(&mine, limits);
    CHECK(mine.struct_size == sizeof mine);
    CHECK(mine.max_buffer_bytes > 0);
    SET_TAIL(&mine);
    WEIR_WRITE(limits, &mine);
}

static weir_status tails_queue_create(const struct weir_link *link, weir_device *device,
                                      weir_queue *queue, const struct weir_queue_setup *setup,
                                      void **out_data)
{
    CHECK(WEIR_HAS(setup, native));
    CHECK(setup->times);
    CHECK_TAIL(setup);
    return WEIR_OK;
}

static void tails_queue_destroy(const struct weir_link *link, weir_queue *queue)
{
}

static weir_status tails_buffer_create(const struct weir_link *link, weir_device *device,
                                       weir_buffer *buffer, const struct weir_buffer_setup *setup,
                                       void **out_data, void **out_pointer)
{
    CHECK(WEIR_HAS(setup, native));
    CHECK(setup->size > 0);
    CHECK_TAIL(setup);
    return WEIR_OK;
}

static void tails_buffer_destroy(const struct weir_link *link, weir_buffer *buffer)
{
}

static void check_nodes(const struct weir_graph_node *nodes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct weir_graph_node *node = weir_graph_node_at(nodes, i);
        CHECK(node->struct_size == nodes->struct_size);
        CHECK(node->operation->sequence == i + 1);
        CHECK(WEIR_HAS(node->operation, u));
        for (uint32_t j = 0; j < node->dependency_count; j++)
            CHECK(node->dependencies[j] < i);
    }
}

static weir_status tails_graph_create(const struct weir_link *link, weir_device *device,
                                      weir_graph *graph, const struct weir_graph_setup *setup,
                                      void **out_data)
{
    CHECK_TAIL(setup);
    check_nodes(setup->nodes, setup->node_count);
    return WEIR_OK;
}

static weir_status tails_graph_update(const struct weir_link *link, weir_graph *graph,
                                      uint32_t index, const struct weir_graph_node *node)
{
    struct weir_graph_node mine = {.struct_size = sizeof mine};
    struct weir_operation operation;
    memset(&operation, 0, sizeof operation);
    weir_write(&operation, sizeof operation, node->operation, node->operation->struct_size);
    operation.struct_size = sizeof operation;
    SET_TAIL(&operation);
    WEIR_WRITE(&mine, node);
    mine.operation = &operation;
    SET_TAIL(&mine);
    return link->next->ops->graph_update(link->next, graph, index, &mine);
}

static void tails_graph_destroy(const struct weir_link *link, weir_graph *graph)
{
}

// One with the bytes of the plugin's own headers in place of the given one's.
static weir_status submit_own(const struct weir_link *next, weir_queue *queue,
                              const struct weir_operation *operation)
{
    struct weir_operation mine;
    memset(&mine, 0, sizeof mine);
    weir_write(&mine, sizeof mine, operation, operation->struct_size);
    mine.struct_size = sizeof mine;
    SET_TAIL(&mine);
    return next->ops->queue_submit(next, queue, &mine);
}

static weir_status submit_copy(const struct weir_link *next, weir_queue *queue,
                               const struct weir_operation *operation)
{
    struct weir_operation_room room;
    return next->ops->queue_submit(next, queue, weir_operation_copy(&room, operation));
}

static weir_status tails_queue_submit(const struct weir_link *link, weir_queue *queue,
                                      const struct weir_operation *operation)
{
    CHECK(operation->struct_size <= WEIR_OPERATION_BYTES_MAX);
    if (operation->kind == WEIR_OPERATION_GRAPH)
        check_nodes(operation->u.graph.nodes, operation->u.graph.node_count);
    return atomic_fetch_add(&submits, 1) % 2 ? submit_own(link->next, queue, operation)
                                             : submit_copy(link->next, queue, operation);
}

static void tails_queue_retire(const struct weir_link *link, weir_queue *queue)
{
    struct weir_operation_time times[TIMES];
    uint64_t last = 0;
    size_t count = TIMES;

    while (count == TIMES) {
        if (link->next->ops->queue_times(link->next, queue, times, sizeof *times, TIMES, &count))
            return;
        for (size_t i = 0; i < count; i++) {
            CHECK(times[i].sequence >= last && times[i].start_ns <= times[i].end_ns);
            last = times[i].sequence;
        }
    }
}

static const struct weir_module_ops tails_ops = {
    .device_limits = tails_device_limits,
    .queue_create = tails_queue_create,
    .queue_destroy = tails_queue_destroy,
    .queue_submit = tails_queue_submit,
    .buffer_create = tails_buffer_create,
    .buffer_destroy = tails_buffer_destroy,
    .graph_create = tails_graph_create,
    .graph_destroy = tails_graph_destroy,
    .graph_update = tails_graph_update,
    .queue_retire = tails_queue_retire,
};

static const struct weir_module tails_module = {
    .abi = WEIR_MODULE_ABI,
    .struct_size = sizeof tails_module,
    .kind = WEIR_MODULE_PLUGIN,
    .name = "tails",
    .version = WEIR_VERSION_STRING,
    .sanitizer = WEIR_MODULE_SANITIZER,
    .slot_count = WEIR_MODULE_SLOT_COUNT,
    .operation_kinds = WEIR_OPERATION_KINDS,
    .ops = &tails_ops,
    .wants = WEIR_MODULE_WANTS_TIMES,
#ifdef NEWER
    .newer = {1, 1, 1, 1},
#endif
};

const struct weir_module *weir_module_query(uint32_t host_abi, const struct weir_host *host)
{
    CHECK(host->struct_size >= offsetof(struct weir_host, count_driver_object));
    return &tails_module;
}
