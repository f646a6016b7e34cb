// The null backend through the public API: results and refusals.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "tests/support/test.h"

struct fixture {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
};

static weir_status open_null(const char *section, weir_runtime **out_runtime)
{
    char text[256];

    snprintf(text, sizeof text, "[weir]\nbackend = null\n[null]\n%s\n", section);
    return weir_open(
        &(struct weir_open_params){
            .struct_size = sizeof(struct weir_open_params),
            .config_path = "test.ini",
            .config_text = text,
            .module_path = weir_test_runfile("backends/null"),
        },
        out_runtime);
}

static bool start(struct fixture *fixture)
{
    *fixture = (struct fixture){0};
    EXPECT_INT_EQ(open_null("", &fixture->runtime), WEIR_OK);
    if (!fixture->runtime)
        return false;
    EXPECT_INT_EQ(weir_device_open(fixture->runtime, NULL, &fixture->device), WEIR_OK);
    if (!fixture->device)
        return false;
    EXPECT_INT_EQ(weir_queue_create(fixture->device,
                                    &(struct weir_queue_params){.struct_size = sizeof(
                                                                    struct weir_queue_params),
                                                                .timing = true},
                                    &fixture->queue),
                  WEIR_OK);
    return fixture->queue != NULL;
}

static void finish(struct fixture *fixture)
{
    weir_queue_destroy(&fixture->queue);
    EXPECT_INT_EQ(weir_device_close(&fixture->device), WEIR_OK);
    EXPECT_INT_EQ(weir_close(&fixture->runtime), WEIR_OK);
}

static weir_buffer *make_buffer(struct fixture *fixture, size_t size, weir_placement placement)
{
    weir_buffer *buffer = NULL;

    EXPECT_INT_EQ(weir_buffer_create(fixture->device,
                                     &(struct weir_buffer_params){.struct_size = sizeof(
                                                                      struct weir_buffer_params),
                                                                  .size = size,
                                                                  .placement = placement},
                                     &buffer),
                  WEIR_OK);
    return buffer;
}

WEIR_TEST(Null, DevicesAreConfigured)
{
    weir_runtime *runtime;
    struct weir_device_info info;

    ASSERT_INT_EQ(open_null("devices = 3", &runtime), WEIR_OK);
    EXPECT_SIZE_EQ(weir_device_count(runtime), 3);
    ASSERT_INT_EQ(weir_device_describe(runtime, 2, &info), WEIR_OK);
    EXPECT_STR_EQ(info.name, "null device 2");
    EXPECT_UINT_GT(info.memory_bytes, 0);
    EXPECT_INT_EQ(weir_device_describe(runtime, 3, &info), WEIR_ERROR_NO_DEVICE);
    EXPECT_INT_EQ(weir_close(&runtime), WEIR_OK);
    EXPECT_INT_EQ(open_null("devices = 0", &runtime), WEIR_ERROR_NO_DEVICE);
    EXPECT_INT_EQ(open_null("devices = 17", &runtime), WEIR_ERROR_CONFIG);
    EXPECT_CONTAINS(weir_last_error_text(), "test.ini:4");
    EXPECT_INT_EQ(open_null("device = 1", &runtime), WEIR_ERROR_CONFIG);
    EXPECT_CONTAINS(weir_last_error_text(), "devices");
}

// Sizes around the doubling, every pattern size, and untouched bytes around.
WEIR_TEST(Null, FillsExactly)
{
    static const unsigned char pattern[16] = {1, 2,  3,  4,  5,  6,  7,  8,
                                              9, 10, 11, 12, 13, 14, 15, 16};
    struct fixture fixture;

    ASSERT_TRUE(start(&fixture));
    for (size_t unit = 1; unit <= 16; unit *= 2) {
        for (size_t count = 1; count <= 9; count++) {
            weir_buffer *buffer = make_buffer(&fixture, 256, WEIR_PLACE_HOST);
            unsigned char *bytes = NULL;
            void *pointer;

            weir_test_note("%zu patterns of %zu bytes", count, unit);
            ASSERT_INT_EQ(weir_host_begin(buffer, 0, 256, WEIR_ACCESS_READ_WRITE, &pointer),
                          WEIR_OK);
            bytes = pointer;
            memset(bytes, 0xee, 256);
            EXPECT_INT_EQ(weir_queue_fill(fixture.queue, buffer, unit, unit * count, pattern, unit),
                          WEIR_OK);
            EXPECT_INT_EQ(weir_queue_sync(fixture.queue, WEIR_FOREVER), WEIR_OK);
            EXPECT_INT_EQ(bytes[unit - 1], 0xee);
            for (size_t i = 0; i < count; i++)
                EXPECT_MEM_EQ(bytes + unit * (i + 1), pattern, unit);
            EXPECT_INT_EQ(bytes[unit * (count + 1)], 0xee);
            EXPECT_INT_EQ(weir_host_end(buffer, 0, 256, WEIR_ACCESS_READ_WRITE), WEIR_OK);
            weir_buffer_destroy(&buffer);
        }
    }
    weir_test_note(NULL);
    finish(&fixture);
}

WEIR_TEST(Null, CopiesRows)
{
    struct fixture fixture;
    unsigned char source[64];
    unsigned char result[64];

    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (unsigned char)i;
    ASSERT_TRUE(start(&fixture));
    weir_buffer *src = make_buffer(&fixture, 64, WEIR_PLACE_DEVICE);
    weir_buffer *dst = make_buffer(&fixture, 64, WEIR_PLACE_DEVICE);
    const struct weir_plane from = {src, 2, 16};
    const struct weir_plane to = {dst, 1, 10};
    const unsigned char zero = 0;

    EXPECT_INT_EQ(weir_upload(fixture.queue, src, 0, source, sizeof source), WEIR_OK);
    EXPECT_INT_EQ(weir_queue_fill(fixture.queue, dst, 0, 64, &zero, 1), WEIR_OK);
    EXPECT_INT_EQ(weir_queue_copy_2d(fixture.queue, to, from, 3, 4), WEIR_OK);
    EXPECT_INT_EQ(weir_download(fixture.queue, result, dst, 0, sizeof result), WEIR_OK);
    for (size_t i = 0; i < sizeof result; i++) {
        size_t row = i > 0 ? (i - 1) / 10 : 0;
        size_t column = i > 0 ? (i - 1) % 10 : 10;
        weir_test_note("byte %zu", i);
        EXPECT_INT_EQ(result[i], row < 4 && column < 3 ? source[2 + 16 * row + column] : 0);
    }
    weir_test_note(NULL);
    weir_buffer_destroy(&src);
    weir_buffer_destroy(&dst);
    finish(&fixture);
}

WEIR_TEST(Null, WrapsMemory)
{
    struct fixture fixture;
    unsigned char memory[32] = {0};
    weir_buffer *buffer;
    void *pointer;
    const unsigned char seven = 7;

    ASSERT_TRUE(start(&fixture));
    ASSERT_INT_EQ(weir_buffer_wrap(fixture.device,
                                   &(struct weir_wrap_params){.struct_size =
                                                                  sizeof(struct weir_wrap_params),
                                                              .pointer = memory,
                                                              .size = sizeof memory},
                                   &buffer),
                  WEIR_OK);
    EXPECT_INT_EQ(weir_queue_fill(fixture.queue, buffer, 8, 8, &seven, 1), WEIR_OK);
    EXPECT_INT_EQ(weir_queue_sync(fixture.queue, WEIR_FOREVER), WEIR_OK);
    EXPECT_INT_EQ(weir_host_begin(buffer, 0, 32, WEIR_ACCESS_READ, &pointer), WEIR_OK);
    EXPECT_PTR_EQ(pointer, memory);
    EXPECT_INT_EQ(weir_host_end(buffer, 0, 32, WEIR_ACCESS_READ), WEIR_OK);
    EXPECT_INT_EQ(memory[7], 0);
    EXPECT_INT_EQ(memory[8], 7);
    EXPECT_INT_EQ(memory[15], 7);
    EXPECT_INT_EQ(memory[16], 0);
    weir_buffer_destroy(&buffer);
    finish(&fixture);
}

// The bytes of HOST buffers are aligned as the limits promise.
WEIR_TEST(Null, BuffersAreAligned)
{
    struct fixture fixture;

    ASSERT_TRUE(start(&fixture));
    uint64_t alignment = weir_device_limits(fixture.device)->argument_alignment_bytes;
    ASSERT_UINT_GT(alignment, 0);
    for (size_t size = 1; size < 300; size += 13) {
        weir_buffer *buffer = make_buffer(&fixture, size, WEIR_PLACE_HOST);
        void *pointer;

        EXPECT_INT_EQ(weir_host_begin(buffer, 0, size, WEIR_ACCESS_WRITE, &pointer), WEIR_OK);
        EXPECT_UINT_EQ((uintptr_t)pointer % alignment, 0);
        memset(pointer, 0xff, size);
        EXPECT_INT_EQ(weir_host_end(buffer, 0, size, WEIR_ACCESS_WRITE), WEIR_OK);
        weir_buffer_destroy(&buffer);
    }
    finish(&fixture);
}

WEIR_TEST(Null, TimesOfTheLastRecords)
{
    struct fixture fixture;
    struct weir_event first;
    struct weir_event event;
    uint64_t earlier = 0;
    uint64_t time;

    ASSERT_TRUE(start(&fixture));
    uint32_t history = weir_device_limits(fixture.device)->timing_history;
    ASSERT_UINT_GT(history, 0);
    ASSERT_INT_EQ(weir_queue_record(fixture.queue, &first), WEIR_OK);
    EXPECT_INT_EQ(weir_event_time_ns(first, &time), WEIR_OK);
    for (uint32_t i = 1; i < history; i++) {
        ASSERT_INT_EQ(weir_queue_record(fixture.queue, &event), WEIR_OK);
        ASSERT_INT_EQ(weir_event_time_ns(event, &time), WEIR_OK);
        ASSERT_UINT_GE(time, earlier);
        earlier = time;
    }
    EXPECT_INT_EQ(weir_event_time_ns(first, &time), WEIR_OK);
    EXPECT_UINT_GT(time, 0);
    EXPECT_INT_EQ(weir_queue_record(fixture.queue, &event), WEIR_OK);
    EXPECT_INT_EQ(weir_event_time_ns(first, &time), WEIR_ERROR_EXPIRED);
    EXPECT_INT_EQ(weir_event_time_ns(event, &time), WEIR_OK);
    finish(&fixture);
}

WEIR_TEST(Null, ABundleNeedsAnImage)
{
    static const struct weir_bundle bundle = {.struct_size = sizeof bundle, .name = "hollow"};
    struct fixture fixture;
    weir_program *program;

    ASSERT_TRUE(start(&fixture));
    EXPECT_INT_EQ(weir_program_create(fixture.device,
                                      &(struct weir_program_params){.struct_size = sizeof(
                                                                        struct weir_program_params),
                                                                    .bundle = &bundle},
                                      &program),
                  WEIR_ERROR_UNSUPPORTED);
    EXPECT_CONTAINS(weir_last_error_text(), "bundle 'hollow' holds no image");
    finish(&fixture);
}

// A size above the machine's memory is refused with the limit, without trying.
WEIR_TEST(Null, TooLargeABufferIsRefused)
{
    struct fixture fixture;
    weir_buffer *buffer;

    ASSERT_TRUE(start(&fixture));
    EXPECT_INT_EQ(
        weir_buffer_create(fixture.device,
                           &(struct weir_buffer_params){
                               .struct_size = sizeof(struct weir_buffer_params),
                               .size = weir_device_limits(fixture.device)->max_buffer_bytes + 1},
                           &buffer),
        WEIR_ERROR_INVALID);
    EXPECT_NULL(buffer);
    finish(&fixture);
}

// An operation allocates nothing.
WEIR_TEST(Null, OperationsAllocateNothing)
{
    struct fixture fixture;
    struct weir_counters before;
    struct weir_counters after;
    struct weir_event event;
    const uint32_t pattern = 5;

    ASSERT_TRUE(start(&fixture));
    weir_buffer *src = make_buffer(&fixture, 4096, WEIR_PLACE_HOST);
    weir_buffer *dst = make_buffer(&fixture, 4096, WEIR_PLACE_DEVICE);
    weir_counters_read(&before);
    for (size_t i = 0; i < 10000; i++) {
        EXPECT_INT_EQ(weir_queue_fill(fixture.queue, src, 0, 64, &pattern, 4), WEIR_OK);
        EXPECT_INT_EQ(weir_queue_copy(fixture.queue, dst, 0, src, 0, 64), WEIR_OK);
        EXPECT_INT_EQ(weir_queue_record(fixture.queue, &event), WEIR_OK);
        EXPECT_INT_EQ(weir_queue_wait(fixture.queue, event), WEIR_OK);
    }
    weir_counters_read(&after);
    EXPECT_UINT_EQ(after.allocations, before.allocations);
    EXPECT_UINT_EQ(after.driver_objects, before.driver_objects);
    weir_buffer_destroy(&src);
    weir_buffer_destroy(&dst);
    finish(&fixture);
}
