// Every allocation of the engine fails once in turn, while it sees a small program: what it cannot
// keep is not seen or refused, and nothing leaks. The program comes from a table of operations
// through the plugin's own slots; the next link accepts everything. The rule in BUILD makes the
// linker use these functions instead of the allocator.
#include <stdlib.h>
#include <string.h>

#include "plugins/check/parts.h"
#include "tests/support/test.h"

enum {
    QUEUES = 10,
    BUFFERS = 3,
    SIZE = 4096,
    MOST_ALLOCATIONS = 2000
};

static bool right; // everything that was expected; the tests' own macros may allocate

static void expect(bool condition)
{
    right = right && condition;
}

// Counts down to the allocation that fails; negative means that none does.
static long countdown = -1;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

static bool fails_now(void)
{
    return countdown >= 0 && countdown-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    return fails_now() ? NULL : __real_realloc(block, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails_now() ? NULL : __real_aligned_alloc(alignment, size);
}

// The chain.

static void ignore_log(weir_log_level level, const char *source, const char *message)
{
    (void)level;
    (void)source;
    (void)message;
}

static weir_status keep_status(const struct weir_error *detail, size_t size)
{
    (void)size;
    return detail->status;
}

// With `verify` operations fail in turn, too: those of the plugin's own, and the program's.
static bool verifies;

static weir_status accept(const struct weir_link *link, weir_queue *queue,
                          const struct weir_operation *operation)
{
    (void)link;
    (void)queue;
    if (verifies && fails_now())
        return WEIR_ERROR_OUT_OF_MEMORY;
    return operation->kind == WEIR_OPERATION_HOST_CALL
               ? operation->u.host_call.function(operation->u.host_call.user)
               : WEIR_OK;
}

static weir_status accept_finish(const struct weir_link *link, weir_queue *queue)
{
    (void)link;
    (void)queue;
    return fails_now() ? WEIR_ERROR_OUT_OF_MEMORY : WEIR_OK;
}

static weir_status create_buffer(const struct weir_link *link, weir_device *device,
                                 weir_buffer *buffer, const struct weir_buffer_setup *setup,
                                 void **out_data, void **out_pointer)
{
    (void)link;
    (void)device;
    (void)buffer;
    *out_data = *out_pointer = calloc(1, setup->size);
    return *out_data ? WEIR_OK : WEIR_ERROR_OUT_OF_MEMORY;
}

static void destroy_buffer(const struct weir_link *link, weir_buffer *buffer)
{
    free(weir_buffer_data(link, buffer));
}

static weir_status accept_note(const struct weir_link *link, const struct weir_host_note *note)
{
    (void)link;
    (void)note;
    return WEIR_OK;
}

static void accept_region(const struct weir_link *link, const char *name, uint64_t number)
{
    (void)link;
    (void)name;
    (void)number;
}

static weir_status accept_update(const struct weir_link *link, weir_graph *graph, uint32_t index,
                                 const struct weir_graph_node *node)
{
    (void)link;
    (void)graph;
    (void)index;
    (void)node;
    return WEIR_OK;
}

static weir_status no_native(const struct weir_link *link, weir_device *device,
                             struct weir_native_device *out_native)
{
    (void)link;
    (void)device;
    (void)out_native;
    return WEIR_ERROR_UNSUPPORTED;
}

static const struct weir_host host = {.struct_size = sizeof host,
                                      .log = ignore_log,
                                      .error = keep_status};
static const struct weir_module_ops accepting = {.queue_submit = accept,
                                                 .queue_finish = accept_finish,
                                                 .buffer_create = create_buffer,
                                                 .buffer_destroy = destroy_buffer,
                                                 .host_note = accept_note,
                                                 .region = accept_region,
                                                 .graph_update = accept_update,
                                                 .device_native = no_native};
static const struct weir_link next = {.struct_size = sizeof next, .ops = &accepting, .host = &host};
static struct weir_link here = {.struct_size = sizeof here,
                                .next = &next,
                                .host = &host,
                                .name = "check"};

// The front end's objects, as far as a plugin knows them.
struct thing {
    struct weir_object object;
    void *data;
    uint64_t sequence;
};

static struct thing queues[QUEUES];
static struct thing buffers[BUFFERS];
static struct thing graph;
static struct thing kernel;

#define AS(type, thing) ((type *)(void *)(thing))

static void reset(struct thing *thing, uint64_t id)
{
    *thing = (struct thing){.object = {.label = "thing", .id = id}};
    thing->object.data = &thing->data;
}

// What was created is destroyed, and what was not must have said why.
static bool made(weir_status status, const struct thing *thing)
{
    expect(status == WEIR_OK ? thing->data != NULL : status == WEIR_ERROR_OUT_OF_MEMORY);
    return status == WEIR_OK;
}

static const struct weir_module_ops *ops;

static bool create(void)
{
    static const struct weir_kernel_signature signature = {.name = "kernel"};
    bool all = true;
    for (uint64_t i = 0; i < QUEUES; i++) {
        const struct weir_queue_setup setup = {.struct_size = sizeof setup};
        reset(&queues[i], i + 1);
        all = made(ops->queue_create(&here, NULL, AS(weir_queue, &queues[i]), &setup,
                                     &queues[i].data),
                   &queues[i]) &&
              all;
    }
    for (uint64_t i = 0; i < BUFFERS; i++) {
        const struct weir_buffer_setup setup = {.struct_size = sizeof setup,
                                                .size = SIZE,
                                                .native = i == 2 ? 77 : 0};
        void *pointer;
        reset(&buffers[i], i + 1);
        all = made(ops->buffer_create(&here, NULL, AS(weir_buffer, &buffers[i]), &setup,
                                      &buffers[i].data, &pointer),
                   &buffers[i]) &&
              all;
    }
    reset(&graph, 1);
    reset(&kernel, 1);
    all = made(ops->graph_create(&here, NULL, AS(weir_graph, &graph), NULL, &graph.data), &graph) &&
          all;
    return made(ops->kernel_create(&here, NULL, AS(weir_kernel, &kernel), &signature, NULL,
                                   &kernel.data),
                &kernel) &&
           all;
}

static void destroy(void)
{
    for (int i = 0; i < QUEUES; i++)
        if (queues[i].data)
            ops->queue_destroy(&here, AS(weir_queue, &queues[i]));
    for (int i = 0; i < BUFFERS; i++)
        if (buffers[i].data)
            ops->buffer_destroy(&here, AS(weir_buffer, &buffers[i]));
    if (graph.data)
        ops->graph_destroy(&here, AS(weir_graph, &graph));
}

// The program.

static void submit(struct thing *queue, struct weir_operation operation)
{
    operation.struct_size = sizeof operation;
    operation.file = "program.c";
    operation.sequence = ++queue->sequence;
    const weir_status status = ops->queue_submit(&here, AS(weir_queue, queue), &operation);
    expect(status == WEIR_OK || status == WEIR_ERROR_OUT_OF_MEMORY);
}

static struct weir_operation fill_of(struct thing *buffer, size_t offset, size_t size)
{
    return (struct weir_operation){.kind = WEIR_OPERATION_FILL,
                                   .u.fill = {.dst = AS(weir_buffer, buffer),
                                              .dst_offset = offset,
                                              .size = size}};
}

static void follow(struct thing *queue, struct thing *other)
{
    submit(other, (struct weir_operation){.kind = WEIR_OPERATION_RECORD});
    submit(queue, (struct weir_operation){.kind = WEIR_OPERATION_WAIT,
                                          .u.wait = {.event = {other->object.id, other->sequence},
                                                     .producer = AS(weir_queue, other)}});
}

static void access(enum weir_host_note_kind kind)
{
    const struct weir_host_note note = {.struct_size = sizeof note,
                                        .kind = kind,
                                        .u.access = {AS(weir_buffer, &buffers[1]), 0, 64,
                                                     WEIR_ACCESS_WRITE}};
    expect(ops->host_note(&here, &note) == WEIR_OK);
}

static weir_status use_in_call(void *user)
{
    (void)user;
    access(WEIR_HOST_NOTE_BEGIN);
    access(WEIR_HOST_NOTE_END);
    return WEIR_OK;
}

// Two branches that write the same bytes.
static void launch_graph(void)
{
    struct weir_operation fills[2] = {fill_of(&buffers[0], 0, 8), fill_of(&buffers[0], 4, 8)};
    struct weir_graph_node nodes[2];
    for (uint32_t i = 0; i < 2; i++)
        nodes[i] = (struct weir_graph_node){.struct_size = sizeof nodes[i],
                                            .operation = &fills[i],
                                            .branch = i};
    submit(&queues[0], (struct weir_operation){.kind = WEIR_OPERATION_GRAPH,
                                               .u.graph = {AS(weir_graph, &graph), nodes, 2}});
}

// With `verify` it runs on copies, as far as there is memory for them.
static void launch(void)
{
    struct weir_argument arguments[2];
    for (size_t i = 0; i < 2; i++)
        arguments[i] = weir_inout(AS(weir_buffer, &buffers[i]), 0, SIZE);
    submit(&queues[5], (struct weir_operation){.kind = WEIR_OPERATION_LAUNCH,
                                               .u.launch = {.kernel = AS(weir_kernel, &kernel),
                                                            .arguments = arguments,
                                                            .argument_count = 2}});
}

static void run(void)
{
    ops->region(&here, "region", 1);
    for (size_t i = 0; i < 100; i++) {
        submit(&queues[i % QUEUES], fill_of(&buffers[i % 3], 32 * i, 16));
        follow(&queues[(i + 1) % QUEUES], &queues[i % QUEUES]);
    }
    submit(&queues[3], fill_of(&buffers[0], 0, SIZE)); // unordered
    launch();
    launch_graph();
    submit(&queues[1], (struct weir_operation){.kind = WEIR_OPERATION_HOST_CALL,
                                               .u.host_call = {use_in_call, NULL}});
    access(WEIR_HOST_NOTE_BEGIN);
    submit(&queues[2], fill_of(&buffers[1], 0, 8));
    access(WEIR_HOST_NOTE_END);
    check_release(here.state, &queues);
    check_acquire(here.state, &queues);
    ops->region(&here, NULL, 0);
}

// One life of a link. Returns whether nothing was refused for lack of memory.
static bool live(bool strict, bool verify)
{
    const struct weir_module *module = weir_module_query(WEIR_MODULE_ABI, &host);
    struct weir_setting values[16] = {{.text = ""}};
    const struct weir_setting *settings[16];
    for (uint32_t i = 0; i < module->key_count; i++) {
        const struct weir_key *key = weir_key_at(module->keys, module->key_size, i);
        values[i] = (struct weir_setting){.key = key, .text = key->fallback};
        if (strcmp(key->name, "threads") == 0)
            values[i].text = strict ? "strict" : "one";
        values[i].integer =
            strcmp(key->name, "hints") == 0 || (verify && strcmp(key->name, "verify") == 0);
        settings[i] = &values[i];
    }
    ops = module->ops;
    const weir_status status = ops->open(&here, settings, &here.state);
    if (status < 0) {
        expect(status == WEIR_ERROR_OUT_OF_MEMORY);
        return false;
    }
    verifies = verify;
    const bool all = create();
    if (all)
        run();
    destroy();
    ops->close(&here);
    return all;
}

static void fail_each(bool strict, bool verify)
{
    long i = 0;
    right = true;
    ASSERT_TRUE(live(strict, verify));
    for (; i < MOST_ALLOCATIONS; i++) {
        countdown = i;
        live(strict, verify);
        const bool was_last = countdown >= 0;
        countdown = -1;
        if (!right)
            WEIR_FAIL("allocation %ld", i);
        if (was_last)
            break;
    }
    EXPECT_INT_GT(i, 50);
    EXPECT_INT_LT(i, MOST_ALLOCATIONS);
}

WEIR_TEST(CheckEngineMemory, EveryAllocationFails)
{
    fail_each(false, false);
}

WEIR_TEST(CheckEngineMemory, EveryAllocationFailsWithStrictThreads)
{
    fail_each(true, false);
}

WEIR_TEST(CheckEngineMemory, EveryAllocationFailsWithVerify)
{
    fail_each(false, true);
}
