// A beginner's mistakes, each made in a process of its own, and what the library says about it to a program that sets
// no log callback and looks at no status. Each row has the mistake, what a message about it names, and a word of what
// to do about it; sentences are free to change.
#define _GNU_SOURCE // MAP_ANONYMOUS
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/short.h>
#include <weir/weir.h>

#include "kernels/conformance/conformance.h"
#include "tests/support/test.h"

enum {
    COUNT = 1 << 16,
    BYTES = COUNT * (int)sizeof(float),
    BLOCK = 64,
};

struct world {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue, *other;
    weir_buffer *in, *out, *host;
    weir_program *program;
    weir_kernel *scale, *sum;
};

static weir_buffer *make_buffer(weir_device *device, const char *label, size_t size,
                                weir_placement placement)
{
    weir_buffer *buffer;
    WEIR_CHECK(weir_buffer_create(device,
                                  WEIR_PARAMS(weir_buffer, .label = label, .size = size,
                                              .placement = placement),
                                  &buffer));
    return buffer;
}

static void open_world(struct world *world)
{
    WEIR_CHECK(weir_open(NULL, &world->runtime));
    WEIR_CHECK(weir_device_open(world->runtime, NULL, &world->device));
    WEIR_CHECK(
        weir_queue_create(world->device, WEIR_PARAMS(weir_queue, .label = "work"), &world->queue));
    WEIR_CHECK(
        weir_queue_create(world->device, WEIR_PARAMS(weir_queue, .label = "other"), &world->other));
    world->in = make_buffer(world->device, "in", BYTES, WEIR_PLACE_DEVICE);
    world->out = make_buffer(world->device, "out", BYTES, WEIR_PLACE_DEVICE);
    world->host = make_buffer(world->device, "host", BYTES, WEIR_PLACE_HOST);
    WEIR_CHECK(weir_program_create(world->device,
                                   WEIR_PARAMS(weir_program, .bundle = &conformance_kernels),
                                   &world->program));
    WEIR_CHECK(weir_kernel_create(world->program, "scale", &world->scale));
    WEIR_CHECK(weir_kernel_create(world->program, "block_sum", &world->sum));
}

static void close_world(struct world *world)
{
    weir_kernel_destroy(&world->scale);
    weir_kernel_destroy(&world->sum);
    weir_program_destroy(&world->program);
    weir_buffer_destroy(&world->in);
    weir_buffer_destroy(&world->out);
    weir_buffer_destroy(&world->host);
    weir_queue_destroy(&world->queue);
    weir_queue_destroy(&world->other);
    WEIR_IGNORE(weir_device_close(&world->device));
    WEIR_IGNORE(weir_close(&world->runtime));
}

// The mistakes, in the order of the table below. They print nothing, so that what is said is said by the library.

// A launch with one of the mistakes: with the range of `in`, `out` and further arguments.
#define LAUNCH(name, kernel, blocks, block, in_size, ...)                                    \
    static void name(struct world *world)                                                    \
    {                                                                                        \
        WEIR_IGNORE(weir_queue_launch(world->queue, world->kernel, weir_dim(blocks, 1, 1),   \
                                      weir_dim(block, 1, 1), weir_in(world->in, 0, in_size), \
                                      weir_out(world->out, 0, BYTES), __VA_ARGS__));         \
        WEIR_IGNORE(weir_queue_sync(world->queue, WEIR_FOREVER));                            \
    }
LAUNCH(grid_in_items, scale, COUNT, BLOCK, BYTES, 2.0f, (uint32_t)COUNT)
LAUNCH(no_blocks, scale, (BLOCK - 1) / BLOCK, BLOCK, BYTES, 2.0f, (uint32_t)BLOCK - 1)
LAUNCH(range_in_elements, scale, COUNT / BLOCK, BLOCK, COUNT, 2.0f, (uint32_t)COUNT)
LAUNCH(range_past_the_end, scale, COUNT / BLOCK, BLOCK, 2 * BYTES, 2.0f, (uint32_t)COUNT)
LAUNCH(argument_missing, scale, 1, BLOCK, BYTES, 2.0f)
LAUNCH(double_for_float, scale, 1, BLOCK, BYTES, 2.0, (uint32_t)COUNT)
LAUNCH(arguments_swapped, scale, 1, BLOCK, BYTES, (uint32_t)COUNT, 2.0f)
LAUNCH(no_local_memory, sum, 1, BLOCK, BYTES, (uint32_t)BLOCK)
LAUNCH(block_too_large, scale, 1, COUNT, BYTES, 2.0f, (uint32_t)COUNT)

static void buffer_in_elements(struct world *world)
{
    const uint32_t none = 0; // so that nothing is damaged
    weir_buffer *small = make_buffer(world->device, "small", COUNT, WEIR_PLACE_DEVICE);
    WEIR_IGNORE(weir_queue_launch(world->queue, world->scale, weir_dim(COUNT / BLOCK, 1, 1),
                                  weir_dim(BLOCK, 1, 1), weir_in(small, 0, COUNT),
                                  weir_out(small, 0, COUNT), 2.0f, none));
    WEIR_IGNORE(weir_queue_sync(world->queue, WEIR_FOREVER));
    weir_buffer_destroy(&small);
}

static void copy_too_large(struct world *world)
{
    WEIR_IGNORE(weir_queue_copy(world->queue, world->out, 0, world->in, 0, BYTES + 4));
}

static void fill_in_elements(struct world *world)
{
    const float zero = 0;
    WEIR_IGNORE(weir_queue_fill(world->queue, world->out, 0, 1023, &zero, sizeof zero));
}

static void pitch_in_elements(struct world *world)
{
    const struct weir_plane to = {world->out, 0, 64}, from = {world->in, 0, 64};
    WEIR_IGNORE(weir_queue_copy_2d(world->queue, to, from, 64 * sizeof(float), 64));
}

static void kernel_misspelt(struct world *world)
{
    weir_kernel *kernel;
    WEIR_IGNORE(weir_kernel_create(world->program, "scael", &kernel));
}

static void destroyed_twice(struct world *world)
{
    weir_buffer *again = world->in;
    weir_buffer_destroy(&world->in);
    weir_buffer_destroy(&again);
}

static void used_after_destroy(struct world *world)
{
    weir_buffer *again = world->in;
    weir_buffer_destroy(&world->in);
    WEIR_IGNORE(weir_queue_copy(world->queue, world->out, 0, again, 0, BYTES));
}

static void closed_too_early(struct world *world)
{
    weir_runtime *runtime = world->runtime;
    WEIR_IGNORE(weir_close(&runtime));
}

static void host_access_to_device_memory(struct world *world)
{
    void *pointer;
    WEIR_IGNORE(weir_host_begin(world->in, 0, BYTES, WEIR_ACCESS_READ, &pointer));
}

static void event_never_recorded(struct world *world)
{
    const struct weir_event event = {0};
    WEIR_IGNORE(weir_queue_wait(world->queue, event));
}

static weir_status sync_inside(void *user)
{
    WEIR_IGNORE(weir_queue_sync(user, WEIR_FOREVER));
    return WEIR_OK;
}

static void sync_in_a_host_call(struct world *world)
{
    WEIR_IGNORE(weir_queue_host_call(world->queue, sync_inside, world->other));
    WEIR_IGNORE(weir_queue_sync(world->queue, WEIR_FOREVER));
}

static weir_status fail(void *user)
{
    (void)user;
    return WEIR_ERROR_IO;
}

static void work_after_a_failure(struct world *world)
{
    WEIR_IGNORE(weir_queue_host_call(world->queue, fail, NULL));
    WEIR_IGNORE(weir_queue_sync(world->queue, WEIR_FOREVER));
    WEIR_IGNORE(weir_queue_copy(world->queue, world->out, 0, world->in, 0, BYTES));
}

static weir_status sleep_in_call(void *user)
{
    sleep((unsigned)(uintptr_t)user);
    return WEIR_OK;
}

// The call returns in the end, so that the process ends too.
static void stay(weir_queue *queue, unsigned seconds)
{
    WEIR_IGNORE(weir_queue_host_call(queue, sleep_in_call, (void *)(uintptr_t)seconds));
}

static void wait_of_nanoseconds(struct world *world)
{
    stay(world->queue, 1);
    WEIR_IGNORE(weir_queue_sync(world->queue, 5));
}

static void host_call_that_does_not_return(struct world *world)
{
    stay(world->queue, 5);
    WEIR_IGNORE(weir_queue_sync(world->queue, WEIR_FOREVER));
}

static void close_with_a_host_call_that_does_not_return(struct world *world)
{
    stay(world->queue, 5);
}

static void wait_for_another_queues_host_call(struct world *world)
{
    stay(world->other, 1);
    WEIR_IGNORE(weir_queue_after(world->queue, world->other));
    WEIR_IGNORE(weir_queue_sync(world->queue, WEIR_MS(20)));
}

static void wait_for_the_device(struct world *world)
{
    weir_kernel *spin;
    WEIR_CHECK(weir_kernel_create(world->program, "spin", &spin));
    WEIR_IGNORE(weir_queue_launch(world->queue, spin, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                  weir_out(world->out, 0, BYTES), 1u, (uint64_t)300000000));
    WEIR_IGNORE(weir_queue_sync(world->queue, WEIR_MS(1)));
    weir_kernel_destroy(&spin);
}

static void *map(void)
{
    void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        exit(3);
    return memory;
}

static void wrapped_memory_gone(struct world *world)
{
    void *memory = map();
    weir_buffer *wrapped;
    WEIR_CHECK(weir_buffer_wrap(world->device,
                                WEIR_PARAMS(weir_wrap, .label = "wrapped", .pointer = memory,
                                            .size = BYTES),
                                &wrapped));
    munmap(memory, BYTES);
    WEIR_IGNORE(weir_queue_copy(world->queue, world->out, 0, wrapped, 0, BYTES));
    weir_buffer_destroy(&wrapped);
}

static void upload_from_memory_that_is_gone(struct world *world)
{
    void *memory = map();
    munmap(memory, BYTES);
    WEIR_IGNORE(weir_upload(world->queue, world->in, 0, memory, BYTES));
}

// The process dies of the use.
static float *begin_and_end(struct world *world, weir_access access)
{
    void *pointer;
    WEIR_CHECK(weir_host_begin(world->host, 0, BYTES, access, &pointer));
    ((volatile float *)pointer)[0];
    WEIR_CHECK(weir_host_end(world->host, 0, BYTES, access));
    return pointer;
}

static void stale_host_pointer(struct world *world)
{
    volatile float *numbers = begin_and_end(world, WEIR_ACCESS_READ_WRITE);
    numbers[1000] = 1;
}

static void stale_host_pointer_that_is_read(struct world *world)
{
    volatile float *numbers = begin_and_end(world, WEIR_ACCESS_READ);
    (void)numbers[1000];
}

static void host_pointer_of_a_buffer_that_is_gone(struct world *world)
{
    volatile float *numbers = begin_and_end(world, WEIR_ACCESS_READ);
    weir_buffer_destroy(&world->host);
    (void)numbers[1000];
}

static void write_during_a_read(struct world *world)
{
    void *pointer;
    WEIR_CHECK(weir_host_begin(world->host, 0, BYTES, WEIR_ACCESS_READ, &pointer));
    ((volatile float *)pointer)[1000] = 1;
}

static void access_not_ended(struct world *world)
{
    void *pointer;
    WEIR_CHECK(weir_host_begin(world->host, 0, BYTES, WEIR_ACCESS_WRITE, &pointer));
    ((volatile float *)pointer)[1000] = 1;
    WEIR_IGNORE(weir_queue_copy(world->queue, world->in, 0, world->host, 0, BYTES));
    WEIR_IGNORE(weir_queue_sync(world->queue, WEIR_FOREVER));
}

static void wait_missing(struct world *world)
{
    WEIR_IGNORE(weir_queue_copy(world->queue, world->in, 0, world->out, 0, BYTES));
    WEIR_IGNORE(weir_queue_copy(world->other, world->host, 0, world->in, 0, BYTES));
    WEIR_IGNORE(weir_queue_sync(world->other, WEIR_FOREVER));
    WEIR_IGNORE(weir_queue_sync(world->queue, WEIR_FOREVER));
}

static void read_without_a_sync(struct world *world)
{
    void *pointer;
    WEIR_IGNORE(weir_queue_copy(world->queue, world->host, 0, world->in, 0, BYTES));
    WEIR_CHECK(weir_host_begin(world->host, 0, BYTES, WEIR_ACCESS_READ, &pointer));
    WEIR_CHECK(weir_host_end(world->host, 0, BYTES, WEIR_ACCESS_READ));
    WEIR_IGNORE(weir_queue_sync(world->queue, WEIR_FOREVER));
}

// The environment of the mistake.
#define DEBUG "WEIR_DEBUG=1"
#define DEVICE "WEIR_DEBUG=1 POCL_DEVICES=pthread" // not for null, where work takes no time
#define CHECK "WEIR_DEBUG=1 WEIR_PLUGINS=check"

static const struct row {
    int number;
    const char *name;
    void (*make)(struct world *world);
    const char *environment; // words that set a variable
    const char *object;      // its label, or what else tells it from others
    const char *remedy;
} rows[] = {
#define MISTAKE(name) #name, name
    {1, MISTAKE(grid_in_items), DEBUG, "'scale'", "weir_queue_launch_count"},
    {2, MISTAKE(no_blocks), DEBUG, "'scale'", "weir_queue_launch_count"},
    {3, MISTAKE(range_in_elements), DEBUG, "'in'", "Multiply it by 4"},
    {4, MISTAKE(buffer_in_elements), DEBUG, "'small'", "Multiply it by 4"},
    {5, MISTAKE(range_past_the_end), DEBUG, "'in'", "count bytes"},
    {6, MISTAKE(copy_too_large), DEBUG, "'out'", "count bytes"},
    {7, MISTAKE(fill_in_elements), DEBUG, "'out'", "count bytes"},
    {8, MISTAKE(pitch_in_elements), DEBUG, "dst", "count bytes"},
    {9, MISTAKE(argument_missing), DEBUG, "'scale'", "one for each"},
    {10, MISTAKE(double_for_float), DEBUG, "'factor'", "2.0f"},
    {11, MISTAKE(arguments_swapped), DEBUG, "'factor'", "cast"},
    {12, MISTAKE(no_local_memory), DEBUG, "scratch", "one for each"},
    {13, MISTAKE(block_too_large), DEBUG, "'scale'", "smaller block"},
    {14, MISTAKE(kernel_misspelt), DEBUG, "'scael'", "did you mean 'scale'"},
    {15, MISTAKE(destroyed_twice), DEBUG, "'in'", "own"},
    {16, MISTAKE(used_after_destroy), DEBUG, "'in'", "move"},
    {17, MISTAKE(closed_too_early), DEBUG, "device", "weir_device_close()"},
    {18, MISTAKE(host_access_to_device_memory), DEBUG, "'in'", "weir_download()"},
    {19, MISTAKE(event_never_recorded), DEBUG, "'work'", "weir_queue_record()"},
    {20, MISTAKE(wait_of_nanoseconds), DEBUG, "'work'", "WEIR_MS(5)"},
    {20, MISTAKE(wait_of_nanoseconds), "WEIR_LOG=info", "",
     ""}, // a result that is no error is not told
    {21, MISTAKE(host_call_that_does_not_return), DEBUG, "'work', whose host call", "must return"},
    {21, MISTAKE(close_with_a_host_call_that_does_not_return), DEBUG, "'work', whose host call",
     "must return"},
    {21, MISTAKE(wait_for_another_queues_host_call), DEBUG, "'other', whose host call",
     "must return"},
    {21, MISTAKE(wait_for_the_device), DEVICE, "a launch of 'spin'", "wait longer"},
    {22, MISTAKE(sync_in_a_host_call), DEBUG, "'other'", "submit a wait"},
    {23, MISTAKE(work_after_a_failure), DEBUG, "copy was refused", "weir_queue_recover()"},
    {25, MISTAKE(access_not_ended), DEBUG, "'host'", "weir_host_end()"},
    {25, MISTAKE(access_not_ended), CHECK, "'host'", "weir_host_end"},
    {26, MISTAKE(wait_missing), CHECK, "'in'", "wait on 'other'"},
    {27, MISTAKE(read_without_a_sync), CHECK, "'host'", "sync with that event"},
    {28, MISTAKE(wrapped_memory_gone), DEBUG, "'wrapped'", "keep the memory"},
    {29, MISTAKE(upload_from_memory_that_is_gone), DEBUG, "weir_upload: memory", "keep the memory"},
    {30, MISTAKE(stale_host_pointer), DEBUG, "'host'", "weir_host_begin()"},
    {30, MISTAKE(stale_host_pointer_that_is_read), DEBUG, "'host'", "weir_host_begin()"},
    {30, MISTAKE(host_pointer_of_a_buffer_that_is_gone), DEBUG, "'host'", "destruction"},
    {30, MISTAKE(write_during_a_read), DEBUG, "'host'", "WEIR_ACCESS_WRITE"},
#undef MISTAKE
};

static void make_and_exit(const struct row *row, FILE *said)
{
    char words[256];
    char *at = words;
    struct world world = {0};
    dup2(fileno(said), STDOUT_FILENO);
    dup2(fileno(said), STDERR_FILENO);
    alarm(60);
    snprintf(words, sizeof words, "%s", row->environment);
    for (char *word = strtok_r(words, " ", &at); word; word = strtok_r(NULL, " ", &at))
        putenv(word);
    open_world(&world);
    row->make(&world);
    close_world(&world);
    exit(0);
}

// What the mistake's process prints; "" if it cannot be run.
static void make(const struct row *row, char *text, size_t size)
{
    FILE *said = tmpfile();
    text[0] = '\0';
    ASSERT_NOT_NULL(said);
    fflush(NULL);
    const pid_t child = fork(); // nothing of Weir is used in this process
    if (child == 0)
        make_and_exit(row, said);
    EXPECT_INT_EQ(waitpid(child, NULL, 0), child);
    rewind(said);
    text[fread(text, 1, size - 1, said)] = '\0';
    fclose(said);
}

// The message is one of the library's, and about a line of the mistakes.
static void expect_message(const struct row *row, const char *text)
{
    if (!row->object[0]) {
        EXPECT_STR_EQ(text, "");
        return;
    }
    EXPECT_CONTAINS(text, "weir: ");
    EXPECT_CONTAINS(text, "mistakes_test.c:");
    EXPECT_CONTAINS(text, row->object);
    EXPECT_CONTAINS(text, row->remedy);
}

WEIR_TEST(Mistakes, AreNamedWithWhatToDo)
{
    static char text[1 << 16];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].environment, DEVICE) == 0 && strcmp(getenv("WEIR_BACKEND"), "null") == 0)
            continue;
        make(&rows[i], text, sizeof text);
        expect_message(&rows[i], text);
        printf("%2d %s\n%s", rows[i].number, rows[i].name, text);
    }
}

// Nothing is printed unless the user asks, and WEIR_LOG alone asks too.
WEIR_TEST(Mistakes, AreToldToThoseWhoAsk)
{
    static char text[1 << 16];
    static const char *const silent[] = {"WEIR_DEBUG=0", "WEIR_DEBUG=1 WEIR_LOG=off", ""};
    static const char *const loud[] = {"WEIR_LOG=error", "WEIR_LOG=info WEIR_DEBUG=0",
                                       "WEIR_LOG=wrong", "WEIR_DEBUG=2"};
    struct row row = {.make = copy_too_large};
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) {
        row.environment = silent[i];
        make(&row, text, sizeof text);
        EXPECT_STR_EQ(text, "");
    }
    for (size_t i = 0; i < sizeof loud / sizeof *loud; i++) {
        row.environment = loud[i];
        make(&row, text, sizeof text);
        EXPECT_CONTAINS(text, "weir: error: ");
    }
}
