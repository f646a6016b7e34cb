// Requirements on the CUDA backend beyond the conformance suite: contexts, calls that must not
// wait, records. All with the fake libcuda, which refuses calls that the real one would
// only execute slowly. Copies, memory and images have files of their own.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cuda/rig.h"

static const unsigned char pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static struct weir_plane plane_of(weir_buffer *buffer, size_t offset, size_t pitch)
{
    return (struct weir_plane){buffer, offset, pitch};
}

// Contexts.

// The whole life of a device on a thread that has its own current context, or none.
static void live_beside(int foreign)
{
    struct rig rig;
    const struct weir_test_cuda *fake = rig_fake();
    struct weir_event event;
    ASSERT_NOT_NULL(fake);
    fake->set_foreign_context(foreign);
    ASSERT_TRUE(rig_start(&rig));
    EXPECT_INT_EQ(fake->has_foreign_context(), foreign);
    weir_buffer *buffer = rig_buffer(&rig, 64, WEIR_PLACE_DEVICE);
    weir_program *program = rig_program(&rig);
    weir_kernel *kernel = rig_kernel(program, "iota");
    EXPECT_INT_EQ(fake->has_foreign_context(), foreign);
    EXPECT_OK(weir_queue_launch(rig.queue, kernel, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                                weir_out(buffer, 0, 64), 3u, 16u));
    EXPECT_INT_EQ(fake->has_foreign_context(), foreign);
    EXPECT_OK(weir_queue_record(rig.queue, &event));
    EXPECT_OK(weir_event_sync(event, GUARD_NS));
    EXPECT_OK(weir_event_sync(event, WEIR_FOREVER));
    EXPECT_OK(weir_device_trim(rig.device));
    EXPECT_INT_EQ(fake->has_foreign_context(), foreign);
    fake->fail("cuMemsetD8Async", 1, 999);
    EXPECT_INT_EQ(weir_queue_fill(rig.queue, buffer, 0, 64, pattern, 1), WEIR_ERROR_DEVICE);
    EXPECT_INT_EQ(fake->has_foreign_context(), foreign);
    weir_kernel_destroy(&kernel);
    weir_program_destroy(&program);
    weir_buffer_destroy(&buffer);
    rig_finish(&rig);
    EXPECT_INT_EQ(fake->has_foreign_context(), foreign);
    fake->set_foreign_context(0);
}

WEIR_TEST(CudaContext, IsLeftAsFound)
{
    live_beside(1);
    live_beside(0);
}

// Nothing blocks while the device is busy.

static void submit_everything(struct rig *rig, weir_buffer *device, weir_buffer *host,
                              weir_buffer *other)
{
    EXPECT_OK(weir_queue_copy(rig->queue, device, 0, host, 0, 64));
    EXPECT_OK(weir_queue_copy(rig->queue, host, 0, device, 0, 64));
    EXPECT_OK(weir_queue_copy(rig->queue, other, 0, host, 0, 64));
    EXPECT_OK(weir_queue_copy_2d(rig->queue, plane_of(other, 0, 8), plane_of(host, 0, 16), 4, 4));
    EXPECT_OK(weir_queue_copy_3d(rig->queue, (struct weir_volume){device, 0, 8, 32},
                                 (struct weir_volume){host, 0, 4, 16}, 4, 2, 2));
    for (size_t unit = 1; unit <= 16; unit *= 2) {
        EXPECT_OK(weir_queue_fill(rig->queue, host, 0, 64, pattern, unit));
        EXPECT_OK(weir_queue_fill(rig->queue, device, 0, 64, pattern, unit));
        EXPECT_OK(weir_queue_fill_2d(rig->queue, plane_of(host, 0, 32), 16, 2, pattern, unit));
        EXPECT_OK(weir_queue_fill_2d(rig->queue, plane_of(device, 0, 32), 16, 2, pattern, unit));
    }
}

WEIR_TEST(CudaWaits, NoSubmitCreateOrDestroyWaits)
{
    static _Alignas(4096) unsigned char memory[2 * 4096];
    struct rig rig;
    struct weir_event event;
    const struct weir_test_cuda *fake = rig_fake();
    ASSERT_TRUE(rig_start(&rig));
    weir_program *program = rig_program(&rig);
    weir_program *unused = rig_program(&rig);
    weir_buffer *device = rig_buffer(&rig, 4096, WEIR_PLACE_DEVICE);
    weir_buffer *host = rig_buffer(&rig, 4096, WEIR_PLACE_HOST);
    weir_buffer *other = rig_buffer(&rig, 4096, WEIR_PLACE_HOST);
    weir_buffer *wrapped = rig_wrap(&rig, memory, 4096);
    // A call that waited would hang, because the streams stay stopped. Freed before, so
    // that the destroys below reach the driver at once.
    EXPECT_OK(weir_queue_sync(rig.queue, GUARD_NS));
    weir_queue *idle = rig_queue(&rig, false);
    weir_buffer_destroy(&host);
    weir_buffer_destroy(&wrapped);
    weir_program_destroy(&unused);
    host = rig_buffer(&rig, 4096, WEIR_PLACE_HOST);

    fake->hold(1);
    submit_everything(&rig, device, host, other);
    EXPECT_OK(weir_queue_record(rig.queue, &event));
    EXPECT_INT_EQ(weir_event_query(event), WEIR_NOT_READY);
    EXPECT_INT_EQ(weir_event_sync(event, WEIR_MS(3)), WEIR_TIMEOUT);
    weir_queue *late = rig_queue(&rig, true);
    weir_kernel *kernel = rig_kernel(program, "iota");
    wrapped = rig_wrap(&rig, memory + 4096, 4096);
    weir_kernel_destroy(&kernel);
    weir_buffer_destroy(&host);
    weir_buffer_destroy(&wrapped);
    weir_program_destroy(&program);
    weir_queue_destroy(&late);
    weir_queue_destroy(&idle);
    fake->hold(0);

    EXPECT_OK(weir_event_sync(event, GUARD_NS));
    weir_buffer_destroy(&device);
    weir_buffer_destroy(&other);
    rig_finish(&rig);
}

// Weir does not know that the work of the queue is done, but its owner may destroy the
// stream: the fake ends the process if the stream is used afterwards.
WEIR_TEST(CudaWaits, AnIdleMomentAsksNoStreamThatWasLeft)
{
    static _Alignas(4096) unsigned char memory[4096];
    struct rig rig;
    const struct weir_test_cuda *fake = rig_fake();
    ASSERT_TRUE(rig_start(&rig));
    weir_buffer *device = rig_buffer(&rig, 4096, WEIR_PLACE_DEVICE);
    weir_buffer *wrapped = rig_wrap(&rig, memory, 4096);
    weir_buffer_destroy(&wrapped);
    void *stream = fake->create_stream();
    weir_queue *around = rig_queue_around(&rig, stream);
    fake->hold(1);
    EXPECT_OK(weir_queue_fill(around, device, 0, 64, pattern, 1));
    weir_queue_destroy(&around);
    const long before = fake->calls("cuMemHostUnregister");
    fake->hold(0);
    fake->finish_stream(stream);
    fake->destroy_stream(stream);
    EXPECT_OK(weir_queue_fill(rig.queue, device, 64, 64, pattern, 1));
    EXPECT_OK(weir_queue_sync(rig.queue, WEIR_FOREVER));
    EXPECT_INT_EQ(fake->calls("cuMemHostUnregister"), before + 1);
    weir_buffer_destroy(&device);
    rig_finish(&rig);
}

// The record at the end of a queue's work may be refused when the stream is left; then the
// stream is synchronised while it still exists.
WEIR_TEST(CudaWaits, AQueueWithoutALastRecordIsFinishedWhenItIsLeft)
{
    struct rig rig;
    const struct weir_test_cuda *fake = rig_fake();
    ASSERT_TRUE(rig_start(&rig));
    weir_buffer *device = rig_buffer(&rig, 4096, WEIR_PLACE_DEVICE);
    void *stream = fake->create_stream();
    weir_queue *around = rig_queue_around(&rig, stream);
    EXPECT_OK(weir_queue_fill(around, device, 0, 64, pattern, 1));
    fake->fail("cuEventRecord", 1, 999);
    const long waits = fake->calls("cuStreamSynchronize");
    weir_queue_destroy(&around);
    EXPECT_INT_EQ(fake->struck(), 1);
    EXPECT_INT_EQ(fake->calls("cuStreamSynchronize"), waits + 1);
    fake->fail(NULL, 0, 0);
    fake->destroy_stream(stream);
    weir_buffer_destroy(&device);
    rig_finish(&rig);
}

// Allocation synchronises the memory stream, which carries nothing but
// allocations: it may not wait for a queue that is busy.
WEIR_TEST(CudaWaits, AllocatingWaitsForNoQueue)
{
    struct rig rig;
    struct weir_event event;
    ASSERT_TRUE(rig_start(&rig));
    weir_program *program = rig_program(&rig);
    weir_kernel *spin = rig_kernel(program, "spin");
    weir_buffer *result = rig_buffer(&rig, 64, WEIR_PLACE_DEVICE);
    EXPECT_OK(weir_queue_launch(rig.queue, spin, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_out(result, 0, 64), 1u, (uint64_t)200000000));
    EXPECT_OK(weir_queue_record(rig.queue, &event));
    weir_buffer *buffer = rig_buffer(&rig, 4096, WEIR_PLACE_DEVICE);
    weir_buffer_destroy(&buffer);
    EXPECT_INT_EQ(weir_event_query(event), WEIR_NOT_READY);
    EXPECT_OK(weir_event_sync(event, WEIR_FOREVER));
    weir_buffer_destroy(&result);
    weir_kernel_destroy(&spin);
    weir_program_destroy(&program);
    rig_finish(&rig);
}

// Records.

// While the device does nothing, events cannot be reused, and all waits and queries still
// find theirs.
WEIR_TEST(CudaRecords, ManyInFlight)
{
    enum {
        COUNT = 5000
    };
    static struct weir_event events[COUNT];
    struct rig rig;
    const struct weir_test_cuda *fake = rig_fake();
    ASSERT_TRUE(rig_start(&rig));
    weir_queue *second = rig_queue(&rig, false);
    fake->hold(1);
    for (size_t i = 0; i < COUNT; i++) {
        ASSERT_OK(weir_queue_record(rig.queue, &events[i]));
        if (i % 50 == 0)
            ASSERT_OK(weir_queue_wait(second, events[i]));
    }
    EXPECT_INT_EQ(weir_event_query(events[0]), WEIR_NOT_READY);
    EXPECT_INT_EQ(weir_event_query(events[COUNT - 1]), WEIR_NOT_READY);
    fake->hold(0);
    for (size_t i = 0; i < COUNT; i += 7)
        EXPECT_OK(weir_event_sync(events[i], GUARD_NS));
    EXPECT_OK(weir_queue_sync(second, WEIR_FOREVER));
    weir_queue_destroy(&second);
    rig_finish(&rig);
}

// Waits for each 32nd.
static void record_many(struct rig *rig, int count, uint64_t timeout_ns)
{
    struct weir_event event;
    for (int i = 0; i < count; i++) {
        ASSERT_OK(weir_queue_record(rig->queue, &event));
        if (i % 32 == 31)
            ASSERT_OK(weir_event_sync(event, timeout_ns));
    }
}

WEIR_TEST(CudaRecords, EventsAreUsedAgain)
{
    struct rig rig;
    const struct weir_test_cuda *fake = rig_fake();
    ASSERT_TRUE(rig_start(&rig));
    const long created = fake->calls("cuEventCreate");
    const long asked = fake->calls("cuEventQuery");
    record_many(&rig, 10000, WEIR_FOREVER);
    // The ring doubles while the device is slower than the host, which depends on the
    // machine's load.
    EXPECT_INT_LE(fake->calls("cuEventCreate") - created, 1000);
    EXPECT_INT_LE(fake->calls("cuEventQuery") - asked, 10000 / 4);
    rig_finish(&rig);
}

static weir_status nothing(void *user)
{
    (void)user;
    return WEIR_OK;
}

// Another library captures a stream meanwhile. Records ask about old events, and a host call waits on the
// queue's own thread.
WEIR_TEST(CudaRecords, NoQuestionSpoilsACaptureOfOthers)
{
    struct rig rig;
    const struct weir_test_cuda *fake = rig_fake();
    ASSERT_TRUE(rig_start(&rig));
    (void)fake->others_capture(1);
    const long asked = fake->calls("cuEventQuery");
    record_many(&rig, 200, GUARD_NS);
    EXPECT_INT_GT(fake->calls("cuEventQuery") - asked, 0);
    EXPECT_OK(weir_queue_host_call(rig.queue, nothing, NULL));
    EXPECT_OK(weir_queue_sync(rig.queue, GUARD_NS));
    EXPECT_OK(weir_queue_sync(rig.queue, WEIR_FOREVER));
    EXPECT_INT_EQ(fake->others_capture(0), 0);
    rig_finish(&rig);
}

// Nor does a new buffer, or memory that goes back to the driver.
WEIR_TEST(CudaRecords, NoMemorySpoilsACaptureOfOthers)
{
    struct rig rig;
    const struct weir_test_cuda *fake = rig_fake();
    ASSERT_TRUE(rig_start(&rig));
    (void)fake->others_capture(1);
    for (int i = 0; i < 2; i++) {
        weir_buffer *host = rig_buffer(&rig, 4096, WEIR_PLACE_HOST);
        weir_buffer *managed = rig_buffer(&rig, 4096, WEIR_PLACE_MANAGED);
        weir_buffer *memory = rig_buffer(&rig, 4096, WEIR_PLACE_DEVICE);
        weir_buffer_destroy(&host);
        weir_buffer_destroy(&managed);
        weir_buffer_destroy(&memory);
        EXPECT_OK(weir_device_trim(rig.device));
    }
    EXPECT_INT_EQ(fake->others_capture(0), 0);
    rig_finish(&rig);
}

// Long enough for several anchors; in order on one queue, and one timeline for two.
WEIR_TEST(CudaRecords, TimesOverSeveralAnchors)
{
    struct rig rig;
    struct weir_event event;
    uint64_t times[60];
    ASSERT_TRUE(rig_start(&rig));
    weir_queue *queues[2] = {rig_queue(&rig, true), rig_queue(&rig, true)};
    for (size_t i = 0; i < 60; i++) {
        weir_queue *queue = queues[i % 2];
        ASSERT_OK(weir_queue_record(queue, &event));
        ASSERT_OK(weir_event_sync(event, WEIR_FOREVER));
        ASSERT_OK(weir_event_time_ns(event, &times[i]));
        usleep(30000);
    }
    for (size_t i = 1; i < 60; i++) {
        weir_test_note("record %zu", i);
        EXPECT_UINT_GE(times[i] - times[i - 1], 29999000);
        EXPECT_UINT_LE(times[i] - times[i - 1], UINT64_C(20000000000));
    }
    weir_test_note(NULL);
    weir_queue_destroy(&queues[0]);
    weir_queue_destroy(&queues[1]);
    rig_finish(&rig);
}
