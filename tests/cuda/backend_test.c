// Requirements on the CUDA backend beyond the conformance suite: contexts, memory, calls
// that must not wait, images, faults. All with the fake libcuda, which refuses calls that
// the real one would only execute slowly.
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

// Copies and fills.

struct place {
    const char *name;
    weir_placement placement;
    size_t wrapped; // 0: not; else the misalignment of the wrapped memory, plus one
};

static const struct place places[] = {
    {"DEVICE", WEIR_PLACE_DEVICE, 0},
    {"HOST", WEIR_PLACE_HOST, 0},
    {"wrapped", WEIR_PLACE_HOST, 1},
    {"wrapped, odd", WEIR_PLACE_HOST, 4},
};

static weir_buffer *make(struct rig *rig, const struct place *place, size_t size, void *memory)
{
    return place->wrapped ? rig_wrap(rig, (char *)memory + place->wrapped - 1, size)
                          : rig_buffer(rig, size, place->placement);
}

static void fill_and_check(struct rig *rig, const struct place *place, size_t unit, size_t count)
{
    static _Alignas(16) unsigned char memory[1024];
    unsigned char result[512];
    const unsigned char before = 0xee;
    weir_buffer *buffer = make(rig, place, sizeof result, memory);
    weir_test_note("%s: %zu patterns of %zu bytes", place->name, count, unit);
    EXPECT_OK(weir_queue_fill(rig->queue, buffer, 0, sizeof result, &before, 1));
    EXPECT_OK(weir_queue_fill(rig->queue, buffer, unit, unit * count, pattern, unit));
    EXPECT_OK(weir_download(rig->queue, result, buffer, 0, sizeof result));
    EXPECT_INT_EQ(result[unit - 1], 0xee);
    for (size_t i = 0; i < count; i++)
        EXPECT_MEM_EQ(result + unit * (i + 1), pattern, unit);
    EXPECT_INT_EQ(result[unit * (count + 1)], 0xee);
    weir_buffer_destroy(&buffer);
}

WEIR_TEST(CudaCopies, FillsExactly)
{
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig));
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
        for (size_t unit = 1; unit <= 16; unit *= 2)
            for (size_t count = 1; count <= 29; count += count < 9 ? 1 : 10)
                fill_and_check(&rig, &places[p], unit, count);
    weir_test_note(NULL);
    rig_finish(&rig);
}

static void copy_rows(struct rig *rig, const struct place *to, const struct place *from)
{
    static _Alignas(16) unsigned char memory[2][1024];
    unsigned char source[256];
    unsigned char result[256];
    const unsigned char zero = 0;
    weir_buffer *dst = make(rig, to, sizeof result, memory[0]);
    weir_buffer *src = make(rig, from, sizeof source, memory[1]);
    weir_test_note("%s to %s", from->name, to->name);
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (unsigned char)(i + 1);
    EXPECT_OK(weir_upload(rig->queue, src, 0, source, sizeof source));
    EXPECT_OK(weir_queue_fill(rig->queue, dst, 0, sizeof result, &zero, 1));
    EXPECT_OK(weir_queue_copy_2d(rig->queue, plane_of(dst, 1, 10), plane_of(src, 2, 16), 3, 9));
    EXPECT_OK(weir_queue_copy(rig->queue, dst, 200, src, 100, 50));
    EXPECT_OK(weir_download(rig->queue, result, dst, 0, sizeof result));
    for (size_t i = 0; i < 200; i++) {
        const size_t row = i > 0 ? (i - 1) / 10 : 0;
        const size_t column = i > 0 ? (i - 1) % 10 : 10;
        EXPECT_INT_EQ(result[i], row < 9 && column < 3 ? source[2 + 16 * row + column] : 0);
    }
    EXPECT_MEM_EQ(result + 200, source + 100, 50);
    weir_buffer_destroy(&dst);
    weir_buffer_destroy(&src);
}

WEIR_TEST(CudaCopies, BetweenAllPlaces)
{
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig));
    for (size_t to = 0; to < sizeof places / sizeof *places; to++)
        for (size_t from = 0; from < sizeof places / sizeof *places; from++)
            copy_rows(&rig, &places[to], &places[from]);
    weir_test_note(NULL);
    rig_finish(&rig);
}

// Rows that fill the staging memory more than once, and rows that are larger.
static void fill_large(struct rig *rig, weir_buffer *dst, size_t size)
{
    const size_t rows = size / 2016;
    const size_t row = (size_t)17 << 20;
    unsigned char *out = rig_bytes(dst);
    size_t wrong = 0;
    memset(out, 0, size);
    EXPECT_OK(weir_queue_fill_2d(rig->queue, plane_of(dst, 0, 2016), 1008, rows, pattern, 16));
    EXPECT_OK(weir_queue_sync(rig->queue, GUARD_NS));
    for (size_t i = 0; i < rows * 2016; i++)
        wrong += out[i] != (i % 2016 < 1008 ? pattern[i % 16] : 0);
    EXPECT_SIZE_EQ(wrong, 0);
    memset(out, 0, size);
    EXPECT_OK(weir_queue_fill_2d(rig->queue, plane_of(dst, 0, row + 16), row, 2, pattern, 8));
    EXPECT_OK(weir_queue_sync(rig->queue, GUARD_NS));
    EXPECT_MEM_EQ(out + row - 8, pattern, 8);
    EXPECT_INT_EQ(out[row], 0);
    EXPECT_MEM_EQ(out + 2 * row + 8, pattern, 8);
    EXPECT_INT_EQ(out[2 * row + 16], 0);
}

// More than one piece of the staging memory.
WEIR_TEST(CudaCopies, LargeBetweenHostBuffers)
{
    const size_t size = ((size_t)40 << 20) + 12345;
    const size_t width = 1000;
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig));
    weir_buffer *src = rig_buffer(&rig, size, WEIR_PLACE_HOST);
    weir_buffer *dst = rig_buffer(&rig, size, WEIR_PLACE_HOST);
    unsigned char *in = rig_bytes(src);
    unsigned char *out = rig_bytes(dst);
    for (size_t i = 0; i < size; i++)
        in[i] = (unsigned char)(i * 7 + (i >> 12));
    memset(out, 0, size);
    EXPECT_OK(weir_queue_copy(rig.queue, dst, 0, src, 0, size));
    EXPECT_OK(weir_queue_sync(rig.queue, GUARD_NS));
    EXPECT_MEM_EQ(out, in, size);
    memset(out, 0, size);
    const size_t rows = size / (2 * width);
    EXPECT_OK(weir_queue_copy_2d(rig.queue, plane_of(dst, 0, 2 * width),
                                 plane_of(src, 0, 2 * width), width, rows));
    EXPECT_OK(weir_queue_fill(rig.queue, src, 0, size / 16 * 16, pattern, 16));
    EXPECT_OK(weir_queue_sync(rig.queue, GUARD_NS));
    size_t wrong = 0;
    for (size_t i = 0; i < rows * 2 * width; i++)
        wrong += out[i] != (i % (2 * width) < width ? (unsigned char)(i * 7 + (i >> 12)) : 0);
    EXPECT_SIZE_EQ(wrong, 0);
    EXPECT_MEM_EQ(in + size / 16 * 16 - 16, pattern, 16);
    fill_large(&rig, dst, size);
    weir_buffer_destroy(&src);
    weir_buffer_destroy(&dst);
    rig_finish(&rig);
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
    EXPECT_INT_EQ(weir_event_sync(event, 3000000), WEIR_TIMEOUT);
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

// Memory.

WEIR_TEST(CudaMemory, PinnedMemoryIsCachedUntilTrim)
{
    struct rig rig;
    const struct weir_test_cuda *fake = rig_fake();
    ASSERT_TRUE(rig_start(&rig));
    const long allocated = fake->calls("cuMemHostAlloc");
    const long freed = fake->calls("cuMemFreeHost");
    for (size_t i = 0; i < 100; i++) {
        weir_buffer *buffer = rig_buffer(&rig, 1000000 + i, WEIR_PLACE_HOST);
        memset(rig_bytes(buffer), 1, 1000000 + i);
        weir_buffer_destroy(&buffer);
    }
    EXPECT_INT_EQ(fake->calls("cuMemHostAlloc"), allocated + 1);
    EXPECT_INT_EQ(fake->calls("cuMemFreeHost"), freed);
    EXPECT_OK(weir_device_trim(rig.device));
    EXPECT_INT_EQ(fake->calls("cuMemFreeHost"), freed + 1);
    rig_finish(&rig);
}

WEIR_TEST(CudaMemory, SizesRoundUpByAnEighthAtMost)
{
    struct rig rig;
    const struct weir_test_cuda *fake = rig_fake();
    ASSERT_TRUE(rig_start(&rig));
    // Two sizes share a block only if they are this close.
    const long allocated = fake->calls("cuMemHostAlloc");
    weir_buffer *buffer = rig_buffer(&rig, 16 << 20, WEIR_PLACE_HOST);
    weir_buffer_destroy(&buffer);
    buffer = rig_buffer(&rig, (13 << 20), WEIR_PLACE_HOST);
    weir_buffer_destroy(&buffer);
    EXPECT_INT_EQ(fake->calls("cuMemHostAlloc"), allocated + 2);
    for (size_t size = 1; size < ((size_t)1 << 20); size = size * 3 / 2 + 1) {
        buffer = rig_buffer(&rig, size, WEIR_PLACE_HOST);
        memset(rig_bytes(buffer), 7, size);
        weir_buffer_destroy(&buffer);
    }
    rig_finish(&rig);
}

WEIR_TEST(CudaMemory, OutOfDeviceMemorySaysHowMuchIsFree)
{
    struct rig rig;
    weir_buffer *buffer;
    ASSERT_TRUE(rig_start(&rig));
    weir_buffer *some = rig_buffer(&rig, (size_t)1 << 29, WEIR_PLACE_DEVICE);
    EXPECT_INT_EQ(weir_buffer_create(rig.device,
                                     &(struct weir_buffer_params){.struct_size = sizeof(
                                                                      struct weir_buffer_params),
                                                                  .size = (size_t)700 << 20},
                                     &buffer),
                  WEIR_ERROR_OUT_OF_MEMORY);
    EXPECT_NULL(buffer);
    EXPECT_CONTAINS(weir_last_error_text(),
                    "734003200 bytes was asked for, and 536870912 bytes of 1073741824 are free");
    EXPECT_CONTAINS(weir_last_error_text(), "CUDA_ERROR_OUT_OF_MEMORY");
    weir_buffer_destroy(&some);
    rig_finish(&rig);
}

// After a refusal the caches are returned and the allocation is tried again.
WEIR_TEST(CudaMemory, AShortageEmptiesTheCaches)
{
    struct rig rig;
    weir_buffer *buffer;
    const struct weir_test_cuda *fake = rig_fake();
    ASSERT_TRUE(rig_start(&rig));
    weir_buffer *cached = rig_buffer(&rig, 5 << 20, WEIR_PLACE_HOST);
    weir_buffer_destroy(&cached);
    const long freed = fake->calls("cuMemFreeHost");
    fake->fail("cuMemHostAlloc", 1, 2);
    buffer = rig_buffer(&rig, 64, WEIR_PLACE_HOST);
    EXPECT_INT_EQ(fake->struck(), 1);
    EXPECT_INT_EQ(fake->calls("cuMemFreeHost"), freed + 1);
    weir_buffer_destroy(&buffer);

    const long trimmed = fake->calls("cuMemPoolTrimTo");
    fake->fail("cuMemAllocFromPoolAsync", 1, 2);
    buffer = rig_buffer(&rig, 64, WEIR_PLACE_DEVICE);
    EXPECT_INT_EQ(fake->struck(), 1);
    EXPECT_INT_EQ(fake->calls("cuMemPoolTrimTo"), trimmed + 1);
    weir_buffer_destroy(&buffer);
    fake->fail(NULL, 0, 0);
    rig_finish(&rig);
}

WEIR_TEST(CudaMemory, WrappedMemoryIsLetGoAtAnIdleMoment)
{
    static _Alignas(4096) unsigned char memory[4096];
    struct rig rig;
    const struct weir_test_cuda *fake = rig_fake();
    ASSERT_TRUE(rig_start(&rig));
    const long before = fake->calls("cuMemHostUnregister");
    weir_buffer *wrapped = rig_wrap(&rig, memory, sizeof memory);
    weir_buffer_destroy(&wrapped);
    EXPECT_INT_EQ(fake->calls("cuMemHostUnregister"), before);
    EXPECT_OK(weir_queue_sync(rig.queue, WEIR_FOREVER));
    EXPECT_INT_EQ(fake->calls("cuMemHostUnregister"), before + 1);

    // Memory that is wrapped again is registered again: other memory may be at this
    // address now.
    wrapped = rig_wrap(&rig, memory, sizeof memory);
    weir_buffer_destroy(&wrapped);
    const long registered = fake->calls("cuMemHostRegister");
    wrapped = rig_wrap(&rig, memory + 64, 64);
    EXPECT_INT_EQ(fake->calls("cuMemHostUnregister"), before + 2);
    EXPECT_INT_EQ(fake->calls("cuMemHostRegister"), registered + 1);
    weir_buffer_destroy(&wrapped);
    rig_finish(&rig);
    EXPECT_INT_EQ(fake->calls("cuMemHostUnregister"), before + 3);
}

// For example PyTorch's pinned tensors.
WEIR_TEST(CudaMemory, WrapsWhatIsPinnedAlready)
{
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig));
    const struct weir_test_cuda *fake = rig_fake();
    weir_buffer *pinned = rig_buffer(&rig, 8192, WEIR_PLACE_HOST);
    weir_buffer *device = rig_buffer(&rig, 8192, WEIR_PLACE_DEVICE);
    const long before = fake->calls("cuMemHostUnregister");
    weir_buffer *wrapped = rig_wrap(&rig, rig_bytes(pinned) + 4096, 4096);
    EXPECT_OK(weir_queue_copy(rig.queue, device, 0, wrapped, 0, 4096));
    EXPECT_OK(weir_queue_sync(rig.queue, WEIR_FOREVER));
    weir_buffer_destroy(&wrapped);
    EXPECT_OK(weir_device_trim(rig.device));
    EXPECT_INT_EQ(fake->calls("cuMemHostUnregister"), before);
    weir_buffer_destroy(&pinned);
    weir_buffer_destroy(&device);
    rig_finish(&rig);
}

WEIR_TEST(CudaMemory, WrapsMayLieInEachOther)
{
    static _Alignas(4096) unsigned char memory[4096];
    struct rig rig;
    weir_buffer *refused;
    ASSERT_TRUE(rig_start(&rig));
    weir_buffer *whole = rig_wrap(&rig, memory, 2048);
    weir_buffer *part = rig_wrap(&rig, memory + 512, 512);
    EXPECT_INT_EQ(weir_buffer_wrap(rig.device,
                                   &(struct weir_wrap_params){.struct_size =
                                                                  sizeof(struct weir_wrap_params),
                                                              .pointer = memory + 1024,
                                                              .size = 2048},
                                   &refused),
                  WEIR_ERROR_INVALID);
    EXPECT_CONTAINS(weir_last_error_text(), "registered with CUDA already");
    // The part keeps the registration after the whole was destroyed.
    weir_buffer_destroy(&whole);
    EXPECT_OK(weir_queue_sync(rig.queue, WEIR_FOREVER));
    EXPECT_OK(weir_queue_fill(rig.queue, part, 0, 512, pattern, 1));
    EXPECT_OK(weir_queue_sync(rig.queue, WEIR_FOREVER));
    EXPECT_INT_EQ(memory[512], 1);
    EXPECT_INT_EQ(memory[1023], 1);
    EXPECT_INT_EQ(memory[1024], 0);
    weir_buffer_destroy(&part);
    rig_finish(&rig);
}

WEIR_TEST(CudaMemory, OperationsAllocateNothing)
{
    struct rig rig;
    struct weir_counters before = {0};
    struct weir_counters after;
    struct weir_event event;
    int flat = 0;
    ASSERT_TRUE(rig_start(&rig));
    weir_program *program = rig_program(&rig);
    weir_kernel *kernel = rig_kernel(program, "iota");
    weir_buffer *src = rig_buffer(&rig, 4096, WEIR_PLACE_HOST);
    weir_buffer *dst = rig_buffer(&rig, 4096, WEIR_PLACE_DEVICE);
    weir_queue *second = rig_queue(&rig, false);
    for (size_t i = 0; i < 4000; i++) {
        EXPECT_OK(weir_queue_fill(rig.queue, src, 0, 64, pattern, 16));
        EXPECT_OK(weir_queue_copy(rig.queue, dst, 0, src, 0, 64));
        EXPECT_OK(weir_queue_launch(rig.queue, kernel, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                                    weir_out(dst, 0, 64), 1u, 16u));
        EXPECT_OK(weir_queue_record(rig.queue, &event));
        EXPECT_OK(weir_queue_wait(second, event));
        if (i % 100 == 99)
            EXPECT_OK(weir_queue_sync(second, WEIR_FOREVER));
        if (i % 500 != 499)
            continue;
        weir_counters_read(&after);
        flat += after.allocations == before.allocations &&
                after.driver_objects == before.driver_objects;
        before = after;
    }
    // Rings grow until they are large enough for the most work that was in flight, which
    // depends on the machine's load; with an allocation per operation no interval would be
    // without allocations.
    EXPECT_INT_GT(flat, 0);
    EXPECT_OK(weir_queue_sync(rig.queue, WEIR_FOREVER));
    weir_queue_destroy(&second);
    weir_buffer_destroy(&src);
    weir_buffer_destroy(&dst);
    weir_kernel_destroy(&kernel);
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

WEIR_TEST(CudaRecords, EventsAreUsedAgain)
{
    struct rig rig;
    struct weir_event event;
    const struct weir_test_cuda *fake = rig_fake();
    ASSERT_TRUE(rig_start(&rig));
    const long created = fake->calls("cuEventCreate");
    const long asked = fake->calls("cuEventQuery");
    for (size_t i = 0; i < 10000; i++) {
        ASSERT_OK(weir_queue_record(rig.queue, &event));
        if (i % 32 == 31)
            ASSERT_OK(weir_event_sync(event, WEIR_FOREVER));
    }
    // The ring doubles while the device is slower than the host, which depends on the
    // machine's load.
    EXPECT_INT_LE(fake->calls("cuEventCreate") - created, 1000);
    EXPECT_INT_LE(fake->calls("cuEventQuery") - asked, 10000 / 4);
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

// Images.

static weir_status try_images(struct rig *rig, const struct weir_image *images, uint32_t count)
{
    const struct weir_bundle bundle = rig_bundle(images, count);
    weir_program *program;
    weir_status status =
        weir_program_create(rig->device,
                            &(struct weir_program_params){.struct_size =
                                                              sizeof(struct weir_program_params),
                                                          .bundle = &bundle},
                            &program);
    weir_program_destroy(&program);
    return status;
}

WEIR_TEST(CudaImages, AreChosenByArchitecture)
{
    const struct weir_image good = *weir_test_image();
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig));
    // Only one of each is a valid image, so a wrong choice is refused.
    const struct weir_image cubins[] = {
        {sizeof(struct weir_image), WEIR_IMAGE_OPENCL_C, "", "nothing", 7},
        {sizeof(struct weir_image), WEIR_IMAGE_CUBIN, "sm_80", "nothing", 7},
        {sizeof(struct weir_image), WEIR_IMAGE_PTX, "sm_90", "nothing", 7},
        {sizeof(struct weir_image), WEIR_IMAGE_CUBIN, "sm_90", good.data, good.size},
        {sizeof(struct weir_image), WEIR_IMAGE_CUBIN, "sm_100", "nothing", 7},
    };
    EXPECT_OK(try_images(&rig, cubins, 5));
    const struct weir_image texts[] = {
        {sizeof(struct weir_image), WEIR_IMAGE_CUBIN, "sm_80", "nothing", 7},
        {sizeof(struct weir_image), WEIR_IMAGE_PTX, "sm_75", "nothing", 7},
        {sizeof(struct weir_image), WEIR_IMAGE_PTX, "sm_86", good.data, good.size},
        {sizeof(struct weir_image), WEIR_IMAGE_PTX, "sm_120", "nothing", 7},
    };
    EXPECT_OK(try_images(&rig, texts, 4));
    rig_finish(&rig);
}

// A target with a letter, such as sm_90a, is for devices of just that number, and as good as one
// without there.
WEIR_TEST(CudaImages, OfOneArchitectureAlone)
{
    const struct weir_image good = *weir_test_image();
    const struct weir_image own = {sizeof own, WEIR_IMAGE_CUBIN, "sm_90a", good.data, good.size};
    const struct weir_image own_text = {sizeof own, WEIR_IMAGE_PTX, "sm_90a", good.data, good.size};
    const struct weir_image others[] = {
        {sizeof own, WEIR_IMAGE_PTX, "sm_89a", good.data, good.size},
        {sizeof own, WEIR_IMAGE_PTX, "sm_100a", good.data, good.size},
        {sizeof own, WEIR_IMAGE_CUBIN, "sm_100a", good.data, good.size},
        {sizeof own, WEIR_IMAGE_CUBIN, "gfx90a", good.data, good.size},
    };
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig)); // of sm_90
    EXPECT_OK(try_images(&rig, &own, 1));
    EXPECT_OK(try_images(&rig, &own_text, 1));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        weir_test_note("%s", others[i].target);
        EXPECT_INT_EQ(try_images(&rig, &others[i], 1), WEIR_ERROR_UNSUPPORTED);
        EXPECT_CONTAINS(weir_last_error_text(), "no image for 'Fake GPU 0', which is sm_90");
        EXPECT_CONTAINS(weir_last_error_text(), others[i].target);
    }
    weir_test_note(NULL);
    rig_finish(&rig);
}

static char logged[1024];

static void keep_message(void *user, weir_log_level level, const char *source, const char *message)
{
    (void)user;
    (void)source;
    if (level == WEIR_LOG_INFO)
        snprintf(logged, sizeof logged, "%s", message);
}

// Where CUDA C++ stands beside the OpenCL C, which of the two runs is told, and that neither does.
WEIR_TEST(CudaImages, OfATwin)
{
    const struct weir_image images[] = {
        {sizeof *images, WEIR_IMAGE_OPENCL_C, "", "nothing", 7},
        {sizeof *images, WEIR_IMAGE_TWIN, "", "a/k.cu", 6},
        {sizeof *images, WEIR_IMAGE_CUBIN, "sm_90", weir_test_image()->data,
         weir_test_image()->size},
    };
    const struct weir_image others[] = {
        images[1],
        {sizeof *images, WEIR_IMAGE_CUBIN, "sm_80", "nothing", 7},
    };
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig)); // of sm_90
    weir_log_set(keep_message, NULL, WEIR_LOG_INFO);
    EXPECT_OK(try_images(&rig, images, 3));
    weir_log_set(NULL, NULL, WEIR_LOG_ERROR);
    EXPECT_STR_EQ(logged,
                  "bundle 'rig': the cubin sm_90, made from a/k.cu and not from its OpenCL C");
    EXPECT_INT_EQ(try_images(&rig, images, 2), WEIR_ERROR_UNSUPPORTED);
    EXPECT_CONTAINS(weir_last_error_text(),
                    "bundle 'rig' has no CUDA images: a/k.cu was not compiled");
    EXPECT_CONTAINS(weir_last_error_text(), "build it on a machine with nvcc, or without its CUDA "
                                            "C++");
    EXPECT_INT_EQ(try_images(&rig, others, 2), WEIR_ERROR_UNSUPPORTED);
    EXPECT_CONTAINS(weir_last_error_text(), "it has cubin sm_80, made from a/k.cu");
    rig_finish(&rig);
}

WEIR_TEST(CudaImages, ThatDoNotFitAreNamed)
{
    const struct weir_image foreign[] = {{sizeof(struct weir_image), WEIR_IMAGE_CUBIN, "sm_80", "x",
                                          1},
                                         {sizeof(struct weir_image), WEIR_IMAGE_PTX, "sm_100", "x",
                                          1}};
    const struct weir_image none = {sizeof(struct weir_image), WEIR_IMAGE_OPENCL_C, "", "x", 1};
    const struct weir_image broken = {sizeof(struct weir_image), WEIR_IMAGE_CUBIN, "sm_90",
                                      "nothing", 7};
    const struct weir_image lacking = {sizeof(struct weir_image), WEIR_IMAGE_CUBIN, "sm_90",
                                       "fake: vector_add scale", 22};
    const struct weir_image tomorrow = {sizeof(struct weir_image), WEIR_IMAGE_PTX, "sm_90",
                                        "// x\n.version 10.1\n", 19};
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig));
    EXPECT_INT_EQ(try_images(&rig, foreign, 2), WEIR_ERROR_UNSUPPORTED);
    EXPECT_CONTAINS(weir_last_error_text(), "no image for 'Fake GPU 0', which is sm_90; it has "
                                            "cubin sm_80, PTX sm_100");
    EXPECT_INT_EQ(try_images(&rig, &none, 1), WEIR_ERROR_UNSUPPORTED);
    EXPECT_CONTAINS(weir_last_error_text(), "bundle 'rig' has no CUDA images");
    EXPECT_INT_EQ(try_images(&rig, &broken, 1), WEIR_ERROR_UNSUPPORTED);
    EXPECT_CONTAINS(weir_last_error_text(), "does not take the cubin sm_90 of 'rig'");
    EXPECT_INT_EQ(try_images(&rig, &lacking, 1), WEIR_ERROR_NOT_FOUND);
    EXPECT_CONTAINS(weir_last_error_text(),
                    "kernel 'saxpy' is missing from the cubin sm_90 of bundle 'rig'");
    EXPECT_INT_EQ(try_images(&rig, &tomorrow, 1), WEIR_ERROR_UNSUPPORTED);
    EXPECT_CONTAINS(weir_last_error_text(), "CUDA 14 built it, and the driver supports CUDA 13.0");
    rig_finish(&rig);
}

// Each array begins at a multiple of 16 bytes, which makes this too large.
WEIR_TEST(CudaImages, LocalMemoryInAllIsChecked)
{
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig));
    weir_program *program = rig_program(&rig);
    weir_kernel *kernel = rig_kernel(program, "two_locals");
    weir_buffer *buffer = rig_buffer(&rig, 4096, WEIR_PLACE_DEVICE);
    EXPECT_INT_EQ(weir_queue_launch(rig.queue, kernel, weir_dim(1, 1, 1), weir_dim(32, 1, 1),
                                    weir_in(buffer, 0, 128), weir_out(buffer, 2048, 128),
                                    weir_local(200001), weir_local(32447)),
                  WEIR_ERROR_INVALID);
    EXPECT_CONTAINS(weir_last_error_text(), "asks for 32447 bytes of local memory; of the device's "
                                            "232448 this launch has 32432 left");
    weir_buffer_destroy(&buffer);
    weir_kernel_destroy(&kernel);
    weir_program_destroy(&program);
    rig_finish(&rig);
}

// Faults.

static void expect_lost(weir_status status)
{
    EXPECT_INT_EQ(status, WEIR_ERROR_DEVICE_LOST);
    EXPECT_STR_EQ(weir_last_error()->native_name, "CUDA_ERROR_ILLEGAL_ADDRESS");
    EXPECT_STR_EQ(weir_last_error()->native_call, "cuEventSynchronize");
}

WEIR_TEST(CudaFaults, TheFirstCauseIsReportedEverAfter)
{
    struct rig rig;
    struct weir_event event;
    weir_buffer *none;
    weir_queue *no_queue;
    const struct weir_test_cuda *fake = rig_fake();
    ASSERT_TRUE(rig_start(&rig));
    weir_queue *second = rig_queue(&rig, true);
    weir_program *program = rig_program(&rig);
    weir_kernel *kernel = rig_kernel(program, "iota");
    weir_buffer *device = rig_buffer(&rig, 4096, WEIR_PLACE_DEVICE);
    weir_buffer *host = rig_buffer(&rig, 4096, WEIR_PLACE_HOST);
    EXPECT_OK(weir_queue_record(rig.queue, &event));
    fake->hold(1); // so that the sync has to ask the driver
    EXPECT_OK(weir_queue_record(rig.queue, &event));
    fake->fail("cuEventSynchronize", 1, 700);
    expect_lost(weir_event_sync(event, WEIR_FOREVER));
    fake->fail(NULL, 0, 0);
    fake->hold(0);

    expect_lost(weir_queue_copy(second, device, 0, host, 0, 64));
    expect_lost(weir_queue_recover(rig.queue));
    expect_lost(weir_queue_create(rig.device,
                                  &(struct weir_queue_params){.struct_size =
                                                                  sizeof(struct weir_queue_params)},
                                  &no_queue));
    expect_lost(weir_buffer_create(
        rig.device,
        &(struct weir_buffer_params){.struct_size = sizeof(struct weir_buffer_params), .size = 64},
        &none));
    expect_lost(weir_device_trim(rig.device));
    weir_kernel_destroy(&kernel);
    weir_program_destroy(&program);
    weir_buffer_destroy(&device);
    weir_buffer_destroy(&host);
    weir_queue_destroy(&second);
    rig_finish(&rig);

    // A device that is opened again works.
    ASSERT_TRUE(rig_start(&rig));
    EXPECT_OK(weir_queue_sync(rig.queue, WEIR_FOREVER));
    rig_finish(&rig);
}
