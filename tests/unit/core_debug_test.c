// Debug mode through the public API: objects of every kind that are used after their end, ended twice,
// or of another kind, and wrapped memory that is unmapped. core_process_test.c has what
// begins without the mode, which stays for the process.
#define _GNU_SOURCE // RTLD_DEFAULT
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weir/weir.h>

#include "core/support/debug.h"
#include "kernels/conformance/conformance.h"
#include "tests/support/device.h"

#define BYTES 4096

static bool begin(struct test_device *world)
{
    return test_device_open_by(world,
                               WEIR_PARAMS(weir_open,
                                           .config_text = "[weir]\nbackend = null\ndebug = 1\n"));
}

#define DEBUG_TEST(suite, name) \
    WEIR_TEST_WITH(suite, name, struct test_device, world, begin(world), test_device_close(world))

static weir_buffer *make_buffer(struct test_device *world, const char *label)
{
    return test_buffer(world->device, label, BYTES, WEIR_PLACE_HOST);
}

static weir_graph *capture_fill(struct test_device *world, weir_buffer *buffer)
{
    weir_graph *graph = NULL;
    EXPECT_OK(weir_capture_begin(world->queue));
    EXPECT_OK(weir_queue_fill(world->queue, buffer, 0, BYTES, "x", 1));
    EXPECT_OK(weir_capture_end(world->queue, NULL, &graph));
    return graph;
}

// The log's last message.
static char logged[1024];

static void note_message(void *user, weir_log_level level, const char *source, const char *message)
{
    snprintf(logged, sizeof logged, "%s", message);
}

static void expect_place(const char *message, const char *verb, int line)
{
    char text[128];
    snprintf(text, sizeof text, "%s at tests/unit/core_debug_test.c:%d", verb, line);
    EXPECT_CONTAINS(message, text);
}

#define REFUSED(call) (weir_error_set(NULL), (call) == WEIR_ERROR_INVALID)
#define EXPECT_REFUSED(call, part) EXPECT_FAILURE(call, WEIR_ERROR_INVALID, part)

// What a getter that has nothing to give leaves in the thread's error.
#define EXPECT_REFUSED_GETTER(call, nothing)                          \
    do {                                                              \
        weir_error_set(NULL);                                         \
        EXPECT_TRUE((call) == (nothing));                             \
        EXPECT_INT_EQ(weir_last_error()->status, WEIR_ERROR_INVALID); \
    } while (0)

// What the call, which returns nothing, logs from that level on.
#define LOGGED(level, call)                                             \
    (logged[0] = '\0', weir_log_set(note_message, NULL, level), (call), \
     weir_log_set(NULL, NULL, WEIR_LOG_ERROR))

DEBUG_TEST(Debug, BufferAfterItsEnd)
{
    weir_buffer *gone = NULL, *buffer = make_buffer(world, "frames");
    weir_buffer *source = make_buffer(world, "source");
    gone = buffer;
    const int destroyed = __LINE__ + 1;
    weir_buffer_destroy(&buffer);
    EXPECT_NULL(buffer);

    ASSERT_TRUE(REFUSED(weir_queue_copy(world->queue, source, 0, gone, 0, 0)));
    const int line = __LINE__ - 1;
    const struct weir_error *error = weir_last_error();
    EXPECT_CONTAINS(error->message,
                    "weir_queue_copy: src points to the buffer 'frames', created at");
    expect_place(error->message, "which was destroyed", destroyed);
    EXPECT_STR_EQ(error->remedy, "move the buffer's destroy call after the last call that uses it");
    EXPECT_STR_EQ(error->file, __FILE__);
    EXPECT_INT_EQ(error->line, line);

    const struct weir_plane plane = {gone, 0, 64};
    const struct weir_plane other = {source, 0, 64};
    void *pointer = world;
    uint64_t address = 1;
    EXPECT_REFUSED(weir_queue_copy_2d(world->queue, plane, other, 64, 1), "dst.buffer points to");
    EXPECT_TRUE(REFUSED(weir_queue_fill(world->queue, gone, 0, 0, "x", 1)));
    EXPECT_TRUE(REFUSED(weir_host_begin(gone, 0, 1, WEIR_ACCESS_READ, &pointer)));
    EXPECT_NULL(pointer);
    EXPECT_TRUE(REFUSED(weir_upload(world->queue, gone, 0, "x", 0)));
    EXPECT_TRUE(REFUSED(weir_buffer_address(gone, &address)));
    EXPECT_TRUE(address == 0);
    EXPECT_TRUE(REFUSED(weir_pool_free(world->queue, &gone)));
    EXPECT_NOT_NULL(gone);
    EXPECT_REFUSED_GETTER(weir_buffer_size(gone), 0);

    // A second destroy, through the pointer that was kept.
    weir_error_set(NULL);
    LOGGED(WEIR_LOG_ERROR, weir_buffer_destroy(&gone));
    EXPECT_NOT_NULL(gone);
    EXPECT_INT_EQ(weir_last_error()->status, WEIR_ERROR_INVALID);
    EXPECT_CONTAINS(logged, "weir_buffer_destroy: *buffer points to the buffer 'frames'");
    expect_place(logged, "which was destroyed", destroyed);
    EXPECT_CONTAINS(weir_last_error()->remedy, "let one place own the buffer");

    // A destroy function that tells no line, as C++ destructors call it.
    gone = source;
    weir_buffer_destroy_at(&source, NULL, 0);
    EXPECT_REFUSED(weir_queue_fill(world->queue, gone, 0, 1, "x", 1), ", which was destroyed");
    EXPECT_NULL(strstr(weir_last_error()->message, "belongs to"));
}

// A queue, a graph, a pool and a communicator without labels.
DEBUG_TEST(Debug, OthersAfterTheirEnd)
{
    struct weir_event event = {1, 1};
    struct weir_pool_statistics statistics = {.allocations = 1};
    weir_queue *queue = NULL;
    weir_pool *pool = NULL;
    weir_comm *comm = NULL, *part = NULL;
    own_buffer buffer = make_buffer(world, "b");
    weir_buffer *fresh = buffer;
    const int made = __LINE__ + 1;
    ASSERT_OK(weir_queue_create(world->device, NULL, &queue));
    ASSERT_OK(weir_pool_create(world->device, NULL, &pool));
    ASSERT_OK(weir_comm_create(world->device, NULL, &comm));
    weir_graph *graph = capture_fill(world, buffer);
    ASSERT_NOT_NULL(graph);
    weir_queue *gone = queue;
    weir_graph *gone_graph = graph;
    weir_pool *gone_pool = pool;
    weir_comm *gone_comm = comm;
    weir_queue_destroy(&queue);
    weir_graph_destroy(&graph);
    weir_pool_destroy(&pool);
    weir_comm_destroy(&comm);

    EXPECT_REFUSED(weir_queue_record(gone, &event), "queue points to a queue without a label");
    EXPECT_TRUE(event.queue == 0);
    expect_place(weir_last_error()->message, "created", made);
    EXPECT_TRUE(REFUSED(weir_queue_sync(gone, WEIR_FOREVER)));
    EXPECT_TRUE(REFUSED(weir_queue_flush(gone)));
    EXPECT_TRUE(REFUSED(weir_queue_recover(gone)));
    EXPECT_TRUE(REFUSED(weir_capture_begin(gone)));
    EXPECT_TRUE(REFUSED(weir_queue_fill(gone, buffer, 0, 1, "x", 1)));
    EXPECT_STR_EQ(weir_queue_label(gone), "");
    EXPECT_REFUSED_GETTER(weir_queue_device(gone), NULL);

    EXPECT_REFUSED(weir_queue_graph(world->queue, gone_graph),
                   "weir_queue_graph: graph points to a graph without");
    EXPECT_TRUE(REFUSED(weir_graph_set_fill(gone_graph, 0, buffer, 0, 1, "x", 1)));
    EXPECT_REFUSED_GETTER(weir_graph_node_count(gone_graph), 0);

    EXPECT_REFUSED(weir_pool_allocate(gone_pool, world->queue, 64, &fresh),
                   "pool points to a pool without a label");
    EXPECT_NULL(fresh);
    EXPECT_TRUE(REFUSED(weir_pool_trim(gone_pool, 0)));
    weir_pool_read_statistics(gone_pool, &statistics);
    EXPECT_TRUE(statistics.allocations == 0);

    EXPECT_REFUSED(weir_comm_error(gone_comm), "comm points to a communicator without a label");
    EXPECT_TRUE(REFUSED(weir_comm_abort(gone_comm, "why")));
    EXPECT_TRUE(REFUSED(weir_comm_split(gone_comm, 0, 0, NULL, &part)));
    EXPECT_TRUE(REFUSED(weir_queue_barrier(world->queue, gone_comm)));
    EXPECT_REFUSED_GETTER(weir_comm_count(gone_comm), 0);

    weir_queue_destroy(&gone);
    weir_graph_destroy(&gone_graph);
    weir_pool_destroy(&gone_pool);
    weir_comm_destroy(&gone_comm);
    EXPECT_TRUE(gone && gone_graph && gone_pool && gone_comm);
}

WEIR_TEST(Debug, DeviceAndRuntimeAfterTheirEnd)
{
    struct test_device world;
    weir_queue *queue = NULL;
    weir_device *again = NULL;
    ASSERT_TRUE(begin(&world));
    weir_device *device = world.device;
    weir_runtime *runtime = world.runtime;
    weir_queue_destroy(&world.queue);
    const int closed = __LINE__ + 1;
    ASSERT_OK(weir_device_close(&world.device));
    EXPECT_REFUSED(weir_queue_create(device, NULL, &queue),
                   "weir_queue_create: device points to the device '");
    expect_place(weir_last_error()->message, "which was closed", closed);
    EXPECT_CONTAINS(weir_last_error()->remedy, "move the device's close call after");
    EXPECT_REFUSED_GETTER(weir_device_limits(device), NULL);
    EXPECT_TRUE(REFUSED(weir_device_close(&device)));
    ASSERT_OK(weir_close(&world.runtime));
    const int closed_runtime = __LINE__ - 1;
    EXPECT_TRUE(REFUSED(weir_device_open(runtime, NULL, &again)));
    expect_place(weir_last_error()->message, "which was closed", closed_runtime);
    EXPECT_CONTAINS(weir_last_error()->message, "points to the runtime 'null', opened at");
    EXPECT_TRUE(REFUSED(weir_close(&runtime)));
    EXPECT_REFUSED_GETTER(weir_runtime_report(runtime), NULL);
    EXPECT_UINT_EQ(weir_device_count(runtime), 0);
}

// A thread's queue goes with its device.
WEIR_TEST(Debug, QueueThatWentWithItsDevice)
{
    struct test_device world;
    weir_queue *queue = NULL;
    ASSERT_TRUE(begin(&world));
    ASSERT_OK(weir_thread_queue(world.device, &queue));
    test_device_close(&world);
    EXPECT_REFUSED(weir_queue_flush(queue),
                   "the queue 'thread queue', which was destroyed with what it belongs to");
}

DEBUG_TEST(Debug, OfAnotherKind)
{
    own_buffer buffer = make_buffer(world, "frames");
    weir_queue *wrong = (weir_queue *)(void *)buffer;
    EXPECT_REFUSED(weir_queue_flush(wrong),
                   "weir_queue_flush: queue is to be a queue, and points to the buffer 'frames'");
    EXPECT_CONTAINS(weir_last_error()->remedy, "remove the cast");
    EXPECT_TRUE(REFUSED(
        weir_queue_copy(world->queue, buffer, 0, (weir_buffer *)(void *)world->device, 0, 1)));
    weir_queue_destroy(&wrong);
    EXPECT_NOT_NULL(wrong);
    EXPECT_UINT_EQ(weir_buffer_size(buffer), BYTES);

    int nothing = 0;
    EXPECT_REFUSED(weir_queue_flush((weir_queue *)(void *)&nothing),
                   "points to no object of Weir's");
}

// Of the destroyed objects the last ones are known; the memory of the others is free again.
DEBUG_TEST(Debug, ForgetsTheOldest)
{
    weir_buffer *first = make_buffer(world, "first");
    weir_buffer *gone = first;
    weir_buffer_destroy(&first);
    for (int i = 0; i < WEIR__DEBUG_KEPT; i++) {
        weir_buffer *buffer = make_buffer(world, "b");
        if (i == WEIR__DEBUG_KEPT - 1)
            EXPECT_TRUE(REFUSED(weir_queue_fill(world->queue, gone, 0, 1, "x", 1)));
        ASSERT_TRUE(buffer != gone);
        weir_buffer_destroy(&buffer);
    }
    own_queue queue = NULL; // another size: it does not get that address
    EXPECT_OK(weir_queue_create(world->device, NULL, &queue));
    EXPECT_REFUSED(weir_queue_fill(world->queue, gone, 0, 1, "x", 1), "no object of Weir's");
}

static void *map(void)
{
    void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static weir_buffer *wrap(struct test_device *world, void *memory)
{
    weir_buffer *buffer = NULL;
    EXPECT_OK(
        weir_buffer_wrap(world->device,
                         WEIR_PARAMS(weir_wrap, .label = "film", .pointer = memory, .size = BYTES),
                         &buffer));
    return buffer;
}

DEBUG_TEST(Debug, UnmappedMemory)
{
    void *memory = map();
    own_buffer other = make_buffer(world, "other");
    weir_buffer *buffer = wrap(world, memory);
    weir_graph *graph = capture_fill(world, buffer);
    ASSERT_NOT_NULL(graph);
    ASSERT_OK(weir_queue_copy(world->queue, buffer, 0, other, 0, BYTES));
    const struct weir_event event = test_record(world->queue);
    ASSERT_OK(weir_queue_sync(world->queue, WEIR_FOREVER));
    ASSERT_INT_EQ(munmap(memory, BYTES), 0);

    EXPECT_REFUSED(weir_queue_copy(world->queue, other, 0, buffer, 0, BYTES),
                   "is not mapped any more, and the buffer 'film'");
    EXPECT_CONTAINS(weir_last_error()->remedy, "keep the memory until the buffer is destroyed");
    // Calls that may end, or repeat, work which uses it.
    EXPECT_TRUE(REFUSED(weir_event_sync(event, WEIR_FOREVER)));
    EXPECT_REFUSED(weir_queue_graph(world->queue, graph),
                   "weir_queue_graph: memory of the program's");
    weir_graph_destroy(&graph);
    LOGGED(WEIR_LOG_ERROR, weir_buffer_destroy(&buffer));
    EXPECT_NULL(buffer);
    EXPECT_CONTAINS(logged, "weir_buffer_destroy: memory of the program's, 4096 bytes at ");
    EXPECT_OK(weir_queue_sync(world->queue, WEIR_FOREVER));
}

static weir_status wait_for_pipe(void *user)
{
    char byte;
    return read(*(const int *)user, &byte, 1) == 1 ? WEIR_OK : WEIR_ERROR_IO;
}

// The program may destroy it, and must keep the memory.
DEBUG_TEST(Debug, WrappedMemoryDestroyedInUse)
{
    int ends[2];
    ASSERT_INT_EQ(pipe(ends), 0);
    void *memory = map();
    weir_buffer *buffer = wrap(world, memory);
    ASSERT_OK(weir_queue_host_call(world->queue, wait_for_pipe, &ends[0]));
    ASSERT_OK(weir_queue_fill(world->queue, buffer, 0, BYTES, "x", 1));
    const int line = __LINE__ + 1;
    LOGGED(WEIR_LOG_WARNING, weir_buffer_destroy(&buffer));
    EXPECT_CONTAINS(logged, "the buffer 'film', created at");
    expect_place(logged, "wraps memory of the program's and was destroyed", line);
    EXPECT_CONTAINS(logged, "keep the memory until that work has ended");
    ASSERT_INT_EQ(write(ends[1], "x", 1), 1);
    EXPECT_OK(weir_queue_sync(world->queue, WEIR_FOREVER));
    EXPECT_INT_EQ(*(char *)memory, 'x');
    munmap(memory, BYTES);
    close(ends[0]);
    close(ends[1]);
}

DEBUG_TEST(Debug, WrappedMemoryDestroyedInAGraph)
{
    void *memory = map();
    weir_buffer *buffer = wrap(world, memory);
    weir_graph *graph = capture_fill(world, buffer);
    ASSERT_NOT_NULL(graph);
    LOGGED(WEIR_LOG_WARNING, weir_buffer_destroy(&buffer));
    EXPECT_CONTAINS(logged, "while a graph uses it: keep the memory until the graph is destroyed");
    EXPECT_OK(weir_queue_graph(world->queue, graph));
    EXPECT_OK(weir_queue_sync(world->queue, WEIR_FOREVER));
    EXPECT_INT_EQ(*(char *)memory, 'x');
    weir_graph_destroy(&graph);
    munmap(memory, BYTES);
}

// Freed memory stays mapped, as a rule, and the address sanitizer, where the program has it, knows that
// it was freed.
WEIR_TEST(Debug, FreedMemory)
{
    own_test_device world = {0};
    if (!dlsym(RTLD_DEFAULT, "__asan_region_is_poisoned"))
        WEIR_SKIP("this program has no address sanitizer");
    ASSERT_TRUE(begin(&world));
    void *memory = malloc(BYTES);
    own_buffer buffer = wrap(&world, memory);
    ASSERT_OK(weir_queue_fill(world.queue, buffer, 0, BYTES, "x", 1));
    ASSERT_OK(weir_queue_sync(world.queue, WEIR_FOREVER));
    free(memory);
    EXPECT_REFUSED(weir_queue_fill(world.queue, buffer, 0, 1, "x", 1),
                   "was freed, says the address sanitizer");
}

static bool tells_grid(struct test_device *world, weir_kernel *kernel, weir_buffer *buffer,
                       uint32_t blocks)
{
    logged[0] = '\0';
    weir_log_set(note_message, NULL, WEIR_LOG_WARNING);
    EXPECT_OK(weir_queue_launch(world->queue, kernel, weir_dim(blocks, 1, 1), weir_dim(64, 1, 1),
                                weir_out(buffer, 0, BYTES), 0u, 1024u));
    weir_log_set(NULL, NULL, WEIR_LOG_ERROR);
    return logged[0] != '\0';
}

// 1,024 words, as a grid of 1,024 blocks.
DEBUG_TEST(Debug, GridInWorkItems)
{
    own_kernel kernel = NULL;
    own_buffer buffer = make_buffer(world, "b");
    ASSERT_OK(weir_kernel_load(world->device, &conformance_kernels, "iota", &kernel));
    EXPECT_FALSE(tells_grid(world, kernel, buffer, 1024 / 64));
    EXPECT_FALSE(tells_grid(world, kernel, buffer, 65));        // no multiple of the block
    EXPECT_FALSE(tells_grid(world, kernel, buffer, 2 * BYTES)); // nor were it work-items
    EXPECT_FALSE(tells_grid(world, kernel, buffer, 128));       // half of them have a byte
    EXPECT_TRUE(tells_grid(world, kernel, buffer, 1024));
    EXPECT_CONTAINS(logged,
                    "launch of 'iota': 1024 blocks of 64 are 65536 work-items, and its largest "
                    "range has 4096 bytes; a grid counts blocks");
    EXPECT_CONTAINS(logged, "tests/unit/core_debug_test.c:");
    EXPECT_FALSE(tells_grid(world, kernel, buffer, 1024)); // once
}

DEBUG_TEST(Debug, ProgramAndKernelAfterTheirEnd)
{
    weir_program *program = NULL;
    weir_kernel *kernel = NULL, *other = NULL;
    uint32_t items = 1;
    ASSERT_OK(weir_program_load(world->device, &conformance_kernels, &program));
    weir_program *gone_program = program;
    ASSERT_OK(weir_kernel_create(program, "scale", &kernel));
    weir_buffer *buffer = make_buffer(world, "b");
    weir_buffer *gone_buffer = buffer;
    weir_kernel *gone_kernel = kernel;
    weir_buffer_destroy(&buffer);
    EXPECT_REFUSED(weir_queue_launch(world->queue, kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                     weir_in(gone_buffer, 0, 0), weir_out(gone_buffer, 0, 0), 1.0f),
                   "weir_queue_launch: argument 0 points to the buffer 'b'");
    weir_program_destroy(&program); // the kernel keeps what it needs
    EXPECT_REFUSED(weir_kernel_create(gone_program, "scale", &other),
                   "program points to the program '//kernels/conformance', created at");
    weir_program_destroy(&gone_program);
    EXPECT_NOT_NULL(gone_program);
    EXPECT_NOT_NULL(weir_kernel_get_info(kernel));
    weir_kernel_destroy(&kernel);
    EXPECT_REFUSED(weir_queue_launch(world->queue, gone_kernel, weir_dim(1, 1, 1),
                                     weir_dim(1, 1, 1), 1.0f),
                   "kernel points to the kernel 'scale'");
    EXPECT_TRUE(REFUSED(weir_kernel_suggest_block(gone_kernel, 0, &items)));
    EXPECT_REFUSED_GETTER(weir_kernel_get_info(gone_kernel), NULL);
    EXPECT_NULL(weir_kernel_on(gone_kernel, world->device));
    weir_kernel_destroy(&gone_kernel);
    EXPECT_NOT_NULL(gone_kernel);
}
