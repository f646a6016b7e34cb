// What kernels print arrives at the log when their work is found complete.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/conformance/print.h"
#include "tests/cuda/rig.h"

enum {
    ITEMS = 8,
    LINES_MOST = 4096
};

static struct {
    char lines[LINES_MOST][128];
    size_t count;
    char warning[512];
    size_t warnings;
} logged;

// Called on one thread at a time here.
static void keep_log(void *user, weir_log_level level, const char *source, const char *message)
{
    if (strcmp(source, "printf") == 0) {
        EXPECT_INT_EQ(level, WEIR_LOG_INFO);
        EXPECT_TRUE(logged.count < LINES_MOST);
        if (logged.count < LINES_MOST)
            snprintf(logged.lines[logged.count++], sizeof *logged.lines, "%s", message);
    } else if (level == WEIR_LOG_WARNING && strcmp(source, "cuda") == 0) {
        snprintf(logged.warning, sizeof logged.warning, "%s", message);
        logged.warnings++;
    }
}

struct stage {
    struct rig rig;
    weir_program *program;
    weir_kernel *kernel;
    weir_buffer *results;
};

static weir_status create_program(struct stage *s, const char *kernel, const char *image_text)
{
    static struct weir_kernel_signature signature;
    const struct weir_image image = {sizeof image, WEIR_IMAGE_CUBIN, "sm_90", image_text,
                                     strlen(image_text)};
    struct weir_bundle bundle = print_kernels;
    signature = print_kernels.kernels[0];
    signature.name = kernel;
    bundle.images = &image;
    bundle.image_count = 1;
    bundle.kernels = &signature;
    bundle.kernel_count = 1;
    return weir_program_create(s->rig.device, WEIR_PARAMS(weir_program, .bundle = &bundle),
                               &s->program);
}

static bool start_with(struct stage *s, const char *section, const char *kernel)
{
    char image[128];
    memset(&logged, 0, sizeof logged);
    memset(s, 0, sizeof *s);
    weir_log_set(keep_log, NULL, WEIR_LOG_INFO);
    if (!rig_start_with(&s->rig, section))
        return false;
    snprintf(image, sizeof image, "fake image: weir_printf %s", kernel);
    EXPECT_OK(create_program(s, kernel, image));
    s->kernel = rig_kernel(s->program, kernel);
    s->results = rig_buffer(&s->rig, ITEMS * sizeof(int), WEIR_PLACE_DEVICE);
    return s->kernel && s->results;
}

static void finish(struct stage *s)
{
    weir_buffer_destroy(&s->results);
    weir_kernel_destroy(&s->kernel);
    weir_program_destroy(&s->program);
    rig_finish(&s->rig);
    weir_log_set(NULL, NULL, WEIR_LOG_INFO);
}

static void print(struct stage *s, unsigned first, unsigned count)
{
    EXPECT_OK(weir_queue_launch(s->rig.queue, s->kernel, weir_dim(1, 1, 1), weir_dim(ITEMS, 1, 1),
                                weir_out(s->results, 0, ITEMS * sizeof(int)), first, count));
}

static void expect_items(size_t start, unsigned first, unsigned count)
{
    char line[64];
    for (unsigned i = 0; i < count; i++) {
        snprintf(line, sizeof line, "item %u of print: %d%%, %.1f", first + i, -(int)i, 0.5 * i);
        EXPECT_STR_EQ(logged.lines[start + i], line);
    }
}

WEIR_TEST(CudaPrints, WhenAnEventIsWaitedForAndWhenTheDeviceCloses)
{
    struct stage s;
    struct weir_event event;
    ASSERT_TRUE(start_with(&s, "", "print_items"));
    print(&s, 1, 2);
    EXPECT_OK(weir_queue_record(s.rig.queue, &event));
    EXPECT_OK(weir_event_sync(event, GUARD_NS));
    EXPECT_UINT_EQ(logged.count, 2);
    print(&s, 7, 1);
    finish(&s);
    ASSERT_UINT_EQ(logged.count, 3);
    expect_items(2, 7, 1);
}

// 56 bytes of format and text, 32 of arguments: the ring wraps in the middle of records.
WEIR_TEST(CudaPrints, MoreThanTheRingHolds)
{
    struct stage s;
    ASSERT_TRUE(start_with(&s, "printf_bytes = 4097", "print_items"));
    for (unsigned round = 0; round < 100; round++) {
        print(&s, round, ITEMS);
        EXPECT_OK(weir_queue_sync(s.rig.queue, GUARD_NS));
    }
    ASSERT_UINT_EQ(logged.count, 100 * ITEMS);
    for (unsigned round = 0; round < 100; round++)
        expect_items((size_t)round * ITEMS, round, ITEMS);
    EXPECT_UINT_EQ(logged.warnings, 0);
    finish(&s);
}

WEIR_TEST(CudaPrints, LostRecordsAreCounted)
{
    struct stage s;
    ASSERT_TRUE(start_with(&s, "printf_bytes = 4096", "print_items"));
    for (unsigned round = 0; round < 20; round++)
        print(&s, round, ITEMS);
    EXPECT_OK(weir_queue_sync(s.rig.queue, GUARD_NS));
    EXPECT_UINT_GT(logged.count, 0);
    EXPECT_UINT_LT(logged.count, 20 * ITEMS);
    char expected[256];
    snprintf(expected, sizeof expected,
             "calls of printf lost on 'Fake GPU 0': %zu; there was no room for them in 4096 "
             "bytes; wait for the kernels more often, or set printf_bytes in [cuda] to more",
             20 * ITEMS - logged.count);
    EXPECT_STR_EQ(logged.warning, expected);
    print(&s, 1, 1);
    EXPECT_OK(weir_queue_sync(s.rig.queue, GUARD_NS));
    EXPECT_UINT_EQ(logged.warnings, 1);
    finish(&s);
}

WEIR_TEST(CudaPrints, LinesOfATextAndWhatIsNoFormat)
{
    static const char *const lines[] = {"", "two", "lines", "no newline", "(null)", "<?> <?>"};
    struct stage s;
    ASSERT_TRUE(start_with(&s, "", "print_formats"));
    print(&s, 0, 0);
    EXPECT_OK(weir_queue_sync(s.rig.queue, GUARD_NS));
    ASSERT_UINT_EQ(logged.count, sizeof lines / sizeof *lines);
    for (size_t i = 0; i < logged.count; i++)
        EXPECT_STR_EQ(logged.lines[i], lines[i]);
    finish(&s);
}

// A program that does not print takes no memory for it.
WEIR_TEST(CudaPrints, NothingWithoutPrintf)
{
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig));
    const long before = rig_fake()->calls("cuMemHostAlloc");
    weir_program *program = rig_program(&rig);
    EXPECT_INT_EQ(rig_fake()->calls("cuMemHostAlloc"), before);
    weir_program_destroy(&program);
    rig_finish(&rig);
}

// Each call that fails while a program that prints is created is an error, and leaves nothing.
WEIR_TEST(CudaPrints, CallsThatFail)
{
    static const char image[] = "fake image: weir_printf print_items";
    static const struct {
        const char *name;
        long n;
    } calls[] = {{"cuModuleGetGlobal", 1},         {"cuMemHostAlloc", 1},
                 {"cuMemHostGetDevicePointer", 1}, {"cuMemsetD32Async", 1},
                 {"cuMemsetD32Async", 2},          {"cuStreamSynchronize", 1}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct stage s = {.program = NULL};
        ASSERT_TRUE(rig_start(&s.rig));
        weir_test_note("call %ld of %s fails", calls[i].n, calls[i].name);
        rig_fake()->fail(calls[i].name, calls[i].n, 0);
        EXPECT_TRUE(create_program(&s, "print_items", image) < 0);
        EXPECT_INT_EQ(rig_fake()->struck(), 1);
        EXPECT_CONTAINS(weir_last_error_text(), calls[i].name);
        EXPECT_NULL(s.program);
        rig_fake()->fail(NULL, 0, 0);
        EXPECT_OK(create_program(&s, "print_items", image));
        weir_program_destroy(&s.program);
        rig_finish(&s.rig);
    }
}

// What was printed before a fault is told, and a record that is not whole is left out. The last test:
// a process does not recover from a fault.
WEIR_TEST(CudaPrints, ThenAFault)
{
    struct stage s;
    ASSERT_TRUE(start_with(&s, "", "print_and_fault"));
    print(&s, 5, 3);
    EXPECT_INT_EQ(weir_queue_sync(s.rig.queue, GUARD_NS), WEIR_ERROR_DEVICE_LOST);
    ASSERT_UINT_EQ(logged.count, 2);
    EXPECT_STR_EQ(logged.lines[0], "item 5 of print: 0%, 0.0");
    EXPECT_STR_EQ(logged.lines[1], "item 7 of print: -2%, 1.0");
    finish(&s);
}
