// The sentences of debug mode in full, as docs/debug.md shows the first of them. core_debug_test.c has all
// calls that give them.
#define _GNU_SOURCE // MAP_ANONYMOUS
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weir/weir.h>

#include "kernels/conformance/conformance.h"
#include "tests/support/test.h"

#define BYTES 4096
#define EXPECT_OK(call) EXPECT_INT_EQ(call, WEIR_OK)
#define EXPECT_REFUSED(call) EXPECT_INT_EQ(call, WEIR_ERROR_INVALID)

struct world {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
};

static char logged[1024];

static void note_message(void *user, weir_log_level level, const char *source, const char *message)
{
    (void)user, (void)level, (void)source;
    snprintf(logged, sizeof logged, "%s", message);
}

static void begin(struct world *world)
{
    static const char text[] = "[weir]\nbackend = null\ndebug = 1\n";
    *world = (struct world){NULL};
    EXPECT_OK(weir_open(WEIR_PARAMS(weir_open, .config_text = text), &world->runtime));
    EXPECT_OK(weir_device_open_at(world->runtime, WEIR_PARAMS(weir_device, .label = "gpu"),
                                  &world->device, "main.c", 30));
    EXPECT_OK(weir_queue_create(world->device, NULL, &world->queue));
}

static void end(struct world *world)
{
    weir_queue_destroy(&world->queue);
    EXPECT_OK(weir_device_close(&world->device));
    EXPECT_OK(weir_close(&world->runtime));
}

static weir_buffer *make(struct world *world, const char *label)
{
    weir_buffer *buffer = NULL;
    EXPECT_OK(weir_buffer_create_at(world->device,
                                    WEIR_PARAMS(weir_buffer, .label = label, .size = BYTES,
                                                .placement = WEIR_PLACE_HOST),
                                    &buffer, "main.c", 41));
    return buffer;
}

WEIR_TEST(DebugWords, UseAfterADestroy)
{
    struct world world;
    begin(&world);
    weir_buffer *frames = make(&world, "frames"), *other = make(&world, "other");
    weir_buffer *gone = frames;
    weir_buffer_destroy_at(&frames, "main.c", 88);
    EXPECT_REFUSED(weir_queue_copy_at(world.queue, other, 0, gone, 0, BYTES, "main.c", 93));
    EXPECT_STR_EQ(weir_last_error_text(),
                  "weir_queue_copy: src points to the buffer 'frames', created at main.c:41, which "
                  "was destroyed at main.c:88 ['frames']; move the buffer's destroy call after the "
                  "last call that uses it (main.c:93)");
    weir_buffer_destroy(&other);
    end(&world);
}

WEIR_TEST(DebugWords, UseAfterAClose)
{
    struct world world;
    weir_queue *queue = NULL;
    begin(&world);
    weir_device *gone = world.device;
    weir_queue_destroy(&world.queue);
    EXPECT_OK(weir_device_close_at(&world.device, "main.c", 88));
    EXPECT_REFUSED(weir_queue_create_at(gone, NULL, &queue, "main.c", 93));
    EXPECT_STR_EQ(
        weir_last_error_text(),
        "weir_queue_create: device points to the device 'gpu', opened at main.c:30, which "
        "was closed at main.c:88 ['gpu']; move the device's close call after the last "
        "call that uses it (main.c:93)");
    EXPECT_OK(weir_close(&world.runtime));
}

static weir_buffer *wrap(struct world *world, void *memory)
{
    weir_buffer *buffer = NULL;
    EXPECT_OK(weir_buffer_wrap_at(world->device,
                                  WEIR_PARAMS(weir_wrap, .label = "film", .pointer = memory,
                                              .size = BYTES),
                                  &buffer, "main.c", 41));
    return buffer;
}

static weir_status wait_for_pipe(void *user)
{
    char byte;
    return read(*(const int *)user, &byte, 1) == 1 ? WEIR_OK : WEIR_ERROR_IO;
}

WEIR_TEST(DebugWords, WrappedMemoryInUse)
{
    struct world world;
    int ends[2];
    char wanted[512];
    begin(&world);
    ASSERT_INT_EQ(pipe(ends), 0);
    void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_TRUE(memory != MAP_FAILED);
    weir_buffer *used = wrap(&world, memory);
    weir_buffer *freed = wrap(&world, memory);
    EXPECT_OK(weir_queue_host_call(world.queue, wait_for_pipe, &ends[0]));
    EXPECT_OK(weir_queue_fill(world.queue, used, 0, BYTES, "x", 1));
    weir_log_set(note_message, NULL, WEIR_LOG_WARNING);
    weir_buffer_destroy_at(&used, "main.c", 88);
    weir_log_set(NULL, NULL, WEIR_LOG_ERROR);
    EXPECT_STR_EQ(logged,
                  "the buffer 'film', created at main.c:41, wraps memory of the program's and was "
                  "destroyed at main.c:88 while its device works: keep the memory until that work "
                  "has ended");
    ASSERT_INT_EQ(write(ends[1], "x", 1), 1);
    EXPECT_OK(weir_queue_sync(world.queue, WEIR_FOREVER));
    ASSERT_INT_EQ(munmap(memory, BYTES), 0);
    EXPECT_REFUSED(weir_queue_fill_at(world.queue, freed, 0, 1, "x", 1, "main.c", 93));
    snprintf(wanted, sizeof wanted,
             "weir_queue_fill: memory of the program's, 4096 bytes at %p, is not mapped any more, "
             "and the buffer 'film', created at main.c:41 wraps it ['film']; keep the memory until "
             "the buffer is destroyed and all work that uses it has ended (main.c:93)",
             memory);
    EXPECT_STR_EQ(weir_last_error_text(), wanted);
    weir_buffer_destroy(&freed);
    close(ends[0]);
    close(ends[1]);
    end(&world);
}

WEIR_TEST(DebugWords, AGridInWorkItems)
{
    struct world world;
    weir_program *program = NULL;
    weir_kernel *kernel = NULL;
    begin(&world);
    weir_buffer *buffer = make(&world, "b");
    EXPECT_OK(weir_program_create(world.device,
                                  WEIR_PARAMS(weir_program, .bundle = &conformance_kernels),
                                  &program));
    EXPECT_OK(weir_kernel_create(program, "iota", &kernel));
    const struct weir_argument arguments[] = {weir_out(buffer, 0, BYTES), weir__argument_u32(0),
                                              weir__argument_u32(1024)};
    weir_log_set(note_message, NULL, WEIR_LOG_WARNING);
    EXPECT_OK(weir_queue_launch_at(world.queue, kernel, weir_dim(1024, 1, 1), weir_dim(64, 1, 1),
                                   arguments, 3, "main.c", 93));
    weir_log_set(NULL, NULL, WEIR_LOG_ERROR);
    EXPECT_STR_EQ(logged,
                  "launch of 'iota': 1024 blocks of 64 are 65536 work-items, and its largest range "
                  "has 4096 bytes; a grid counts blocks: is it meant in work-items? "
                  "weir_queue_launch_count() takes their number (main.c:93)");
    weir_kernel_destroy(&kernel);
    weir_program_destroy(&program);
    weir_buffer_destroy(&buffer);
    end(&world);
}
