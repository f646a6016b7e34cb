// Memory of the CUDA backend: its caches, wrapped memory, shortages, pools, staging; and the calls of the legacy queue.

#include "tests/cuda/rig.h"

enum {
    PLAIN_BYTES = 1 << 25, // CU_PLAIN_LIMIT of the backend
    POOL_BYTES = 5000
};

static const unsigned char pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static struct weir_plane plane_of(weir_buffer *buffer, size_t offset, size_t pitch)
{
    return (struct weir_plane){buffer, offset, pitch};
}

RIG_TEST(CudaMemory, PinnedMemoryIsCachedUntilTrim)
{
    const struct weir_test_cuda *fake = rig_fake();
    const long allocated = fake->calls("cuMemHostAlloc");
    const long freed = fake->calls("cuMemFreeHost");
    for (size_t i = 0; i < 100; i++) {
        own_buffer buffer = rig_buffer(rig, 1000000 + i, WEIR_PLACE_HOST);
        memset(rig_bytes(buffer), 1, 1000000 + i);
    }
    EXPECT_INT_EQ(fake->calls("cuMemHostAlloc"), allocated + 1);
    EXPECT_INT_EQ(fake->calls("cuMemFreeHost"), freed);
    EXPECT_OK(weir_device_trim(rig->device));
    EXPECT_INT_EQ(fake->calls("cuMemFreeHost"), freed + 1);
}

RIG_TEST(CudaMemory, OutOfDeviceMemorySaysHowMuchIsFree)
{
    weir_buffer *buffer;
    const struct weir_test_cuda *fake = rig_fake();
    own_buffer some = rig_buffer(rig, (size_t)1 << 29, WEIR_PLACE_DEVICE);
    const long trimmed = fake->calls("cuMemPoolTrimTo");
    EXPECT_FAILURE(weir_buffer_create(rig->device,
                                      WEIR_PARAMS(weir_buffer, .size = (size_t)700 << 20), &buffer),
                   WEIR_ERROR_OUT_OF_MEMORY,
                   "734003200 bytes was asked for, and 536870912 bytes of 1073741824 are free",
                   "CUDA_ERROR_OUT_OF_MEMORY");
    EXPECT_NULL(buffer);
    // Before it is tried again, and then, since the pool keeps what a driver had got for it.
    EXPECT_INT_EQ(fake->calls("cuMemPoolTrimTo"), trimmed + 2);
}

// After a refusal the caches are returned and the allocation is tried again.
RIG_TEST(CudaMemory, AShortageEmptiesTheCaches)
{
    weir_buffer *buffer;
    const struct weir_test_cuda *fake = rig_fake();
    weir_buffer *cached = rig_buffer(rig, 5 << 20, WEIR_PLACE_HOST);
    weir_buffer_destroy(&cached);
    const long freed = fake->calls("cuMemFreeHost");
    fake->fail("cuMemHostAlloc", 1, 2);
    weir_error_set(NULL);
    buffer = rig_buffer(rig, 64, WEIR_PLACE_HOST);
    EXPECT_INT_EQ(weir_last_error()->status, WEIR_OK);
    EXPECT_INT_EQ(fake->struck(), 1);
    EXPECT_INT_EQ(fake->calls("cuMemFreeHost"), freed + 1);
    weir_buffer_destroy(&buffer);

    cached = rig_buffer(rig, 64, WEIR_PLACE_DEVICE);
    weir_buffer_destroy(&cached);
    const long plain = fake->calls("cuMemFree");
    const long trimmed = fake->calls("cuMemPoolTrimTo");
    fake->fail("cuMemAllocFromPoolAsync", 1, 2);
    buffer = rig_buffer(rig, PLAIN_BYTES + 1, WEIR_PLACE_DEVICE);
    EXPECT_INT_EQ(fake->struck(), 1);
    EXPECT_INT_EQ(fake->calls("cuMemPoolTrimTo"), trimmed + 1);
    EXPECT_INT_EQ(fake->calls("cuMemFree"), plain + 1);
    weir_buffer_destroy(&buffer);
    fake->fail(NULL, 0, 0);
}

// The pool's first allocation takes long, so the first buffers do without it; their memory is kept, since
// freeing it would wait for the device.
RIG_TEST(CudaMemory, TheFirstIsNotFromThePool)
{
    weir_buffer *buffers[3];
    const struct weir_test_cuda *fake = rig_fake();
    const long plain = fake->calls("cuMemAlloc");
    const long pooled = fake->calls("cuMemAllocFromPoolAsync");
    const long freed = fake->calls("cuMemFree");
    buffers[0] = rig_buffer(rig, PLAIN_BYTES / 2, WEIR_PLACE_DEVICE);
    buffers[1] = rig_buffer(rig, PLAIN_BYTES / 2, WEIR_PLACE_DEVICE);
    EXPECT_INT_EQ(fake->calls("cuMemAlloc") - plain, 2);
    EXPECT_INT_EQ(fake->calls("cuMemAllocFromPoolAsync") - pooled, 0);
    buffers[2] = rig_buffer(rig, 1, WEIR_PLACE_DEVICE);
    EXPECT_INT_EQ(fake->calls("cuMemAlloc") - plain, 2);
    EXPECT_INT_EQ(fake->calls("cuMemAllocFromPoolAsync") - pooled, 1);

    weir_buffer_destroy(&buffers[0]);
    EXPECT_INT_EQ(fake->calls("cuMemFree") - freed, 0);
    buffers[0] = rig_buffer(rig, PLAIN_BYTES / 3, WEIR_PLACE_DEVICE);
    EXPECT_INT_EQ(fake->calls("cuMemAlloc") - plain, 2);
    EXPECT_INT_EQ(fake->calls("cuMemAllocFromPoolAsync") - pooled, 1);
    for (int i = 0; i < 3; i++)
        weir_buffer_destroy(&buffers[i]);
    EXPECT_OK(weir_device_trim(rig->device));
    EXPECT_INT_EQ(fake->calls("cuMemFree") - freed, 2);

    // Where the driver has none left, the pool is asked, which may.
    fake->fail("cuMemAlloc", 1, 2);
    buffers[0] = rig_buffer(rig, 64, WEIR_PLACE_DEVICE);
    EXPECT_INT_EQ(fake->struck(), 1);
    EXPECT_INT_EQ(fake->calls("cuMemAllocFromPoolAsync") - pooled, 2);
    fake->fail(NULL, 0, 0);
    weir_buffer_destroy(&buffers[0]);
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

// Ending a registration waits for the whole device: a wait that ends on one queue does not end it while another one
// works.
RIG_TEST(CudaMemory, WrappedMemoryIsKeptWhileAQueueWorks)
{
    static _Alignas(4096) unsigned char memory[4096];
    const struct weir_test_cuda *fake = rig_fake();
    own_queue other = rig_queue(rig, false);
    own_buffer device = rig_buffer(rig, 64, WEIR_PLACE_DEVICE);
    const long before = fake->calls("cuMemHostUnregister");
    weir_buffer *wrapped = rig_wrap(rig, memory, sizeof memory);
    weir_buffer_destroy(&wrapped);
    const struct weir_event ended = test_record(other);
    fake->hold(1);
    EXPECT_OK(weir_queue_fill(rig->queue, device, 0, 64, pattern, 1));
    EXPECT_OK(weir_event_sync(ended, GUARD_NS));
    EXPECT_INT_EQ(fake->calls("cuMemHostUnregister"), before);
    fake->hold(0);
    EXPECT_OK(weir_queue_sync(rig->queue, GUARD_NS));
    EXPECT_INT_EQ(fake->calls("cuMemHostUnregister"), before + 1);
}

// For example PyTorch's pinned tensors.
RIG_TEST(CudaMemory, WrapsWhatIsPinnedAlready)
{
    const struct weir_test_cuda *fake = rig_fake();
    own_buffer pinned = rig_buffer(rig, 8192, WEIR_PLACE_HOST);
    own_buffer device = rig_buffer(rig, 8192, WEIR_PLACE_DEVICE);
    const long before = fake->calls("cuMemHostUnregister");
    weir_buffer *wrapped = rig_wrap(rig, rig_bytes(pinned) + 4096, 4096);
    EXPECT_OK(weir_queue_copy(rig->queue, device, 0, wrapped, 0, 4096));
    EXPECT_OK(weir_queue_sync(rig->queue, WEIR_FOREVER));
    weir_buffer_destroy(&wrapped);
    EXPECT_OK(weir_device_trim(rig->device));
    EXPECT_INT_EQ(fake->calls("cuMemHostUnregister"), before);
}

RIG_TEST(CudaMemory, WrapsMayLieInEachOther)
{
    static _Alignas(4096) unsigned char memory[4096];
    weir_buffer *refused;
    weir_buffer *whole = rig_wrap(rig, memory, 2048);
    own_buffer part = rig_wrap(rig, memory + 512, 512);
    EXPECT_FAILURE(weir_buffer_wrap(rig->device,
                                    WEIR_PARAMS(weir_wrap, .pointer = memory + 1024, .size = 2048),
                                    &refused),
                   WEIR_ERROR_INVALID, "registered with CUDA already");
    // The part keeps the registration after the whole was destroyed.
    weir_buffer_destroy(&whole);
    EXPECT_OK(weir_queue_sync(rig->queue, WEIR_FOREVER));
    EXPECT_OK(weir_queue_fill(rig->queue, part, 0, 512, pattern, 1));
    EXPECT_OK(weir_queue_sync(rig->queue, WEIR_FOREVER));
    EXPECT_INT_EQ(memory[512], 1);
    EXPECT_INT_EQ(memory[1023], 1);
    EXPECT_INT_EQ(memory[1024], 0);
}

// A warm pool makes no calls, and the legacy queue those that its header states.

static weir_pool *pool_of(struct rig *rig, weir_placement placement)
{
    weir_pool *pool = NULL;
    EXPECT_OK(weir_pool_create(rig->device, WEIR_PARAMS(weir_pool, .placement = placement), &pool));
    return pool;
}

static void use(weir_pool *pool, weir_queue *queue)
{
    weir_buffer *buffer;
    ASSERT_OK(weir_pool_allocate(pool, queue, POOL_BYTES, &buffer));
    ASSERT_OK(weir_pool_free(queue, &buffer));
}

// Also while the streams do nothing, and on another queue after an event.
RIG_TEST(CudaPools, AWarmPoolCallsNoDriver)
{
    own_queue other = rig_queue(rig, false);
    for (int placement = 0; placement < 2; placement++) {
        own_pool pool = pool_of(rig, (weir_placement)placement);
        use(pool, rig->queue);
        rig_fake()->hold(1);
        ASSERT_OK(weir_queue_after(other, rig->queue));
        const long before = rig_calls();
        for (int i = 0; i < 100; i++)
            use(pool, rig->queue);
        EXPECT_INT_EQ(rig_calls(), before);
        rig_fake()->hold(0);
        use(pool, rig->queue);
        const struct weir_event after = test_record(rig->queue);
        rig_fake()->hold(1);
        ASSERT_OK(weir_queue_wait(other, after));
        const long waited = rig_calls();
        use(pool, other);
        EXPECT_INT_EQ(rig_calls(), waited);
        rig_fake()->hold(0);
        struct weir_pool_statistics statistics;
        weir_pool_read_statistics(pool, &statistics);
        EXPECT_UINT_EQ(statistics.reused, statistics.allocations - 1);
    }
}

// An operation on it: a record and a wait for each queue that was used, and one wait on
// each of those at its next operation.
RIG_TEST(CudaPools, TheLegacyQueueCostsARecordAndAWaitForEachQueue)
{
    enum {
        QUEUES = 3
    };
    weir_queue *queues[QUEUES];
    weir_queue *legacy;
    const struct weir_test_cuda *fake = rig_fake();
    own_buffer buffer = rig_buffer(rig, 64, WEIR_PLACE_DEVICE);
    ASSERT_OK(weir_legacy_queue(rig->device, &legacy));
    fake->hold(1);
    for (int i = 0; i < QUEUES; i++) {
        queues[i] = rig_queue(rig, false);
        ASSERT_OK(weir_queue_fill(queues[i], buffer, 0, 64, "x", 1));
    }
    long records = fake->calls("cuEventRecord");
    long waits = fake->calls("cuStreamWaitEvent");
    for (int i = 0; i < 4; i++)
        ASSERT_OK(weir_queue_fill(legacy, buffer, 0, 64, "x", 1));
    EXPECT_INT_EQ(fake->calls("cuEventRecord") - records, QUEUES);
    EXPECT_INT_EQ(fake->calls("cuStreamWaitEvent") - waits, QUEUES);

    records = fake->calls("cuEventRecord");
    waits = fake->calls("cuStreamWaitEvent");
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < QUEUES; i++)
            ASSERT_OK(weir_queue_fill(queues[i], buffer, 0, 64, "x", 1));
    EXPECT_INT_EQ(fake->calls("cuEventRecord") - records, 1);
    EXPECT_INT_EQ(fake->calls("cuStreamWaitEvent") - waits, QUEUES);
    fake->hold(0);
    EXPECT_OK(weir_queue_sync(legacy, GUARD_NS));
    for (int i = 0; i < QUEUES; i++)
        weir_queue_destroy(&queues[i]);
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
    EXPECT_UINT_EQ(wrong, 0);
    memset(out, 0, size);
    EXPECT_OK(weir_queue_fill_2d(rig->queue, plane_of(dst, 0, row + 16), row, 2, pattern, 8));
    EXPECT_OK(weir_queue_sync(rig->queue, GUARD_NS));
    EXPECT_MEM_EQ(out + row - 8, pattern, 8);
    EXPECT_INT_EQ(out[row], 0);
    EXPECT_MEM_EQ(out + 2 * row + 8, pattern, 8);
    EXPECT_INT_EQ(out[2 * row + 16], 0);
}

// More than one piece of the staging memory.
RIG_TEST(CudaCopies, LargeBetweenHostBuffers)
{
    const size_t size = ((size_t)40 << 20) + 12345;
    const size_t width = 1000;
    own_buffer src = rig_buffer(rig, size, WEIR_PLACE_HOST);
    own_buffer dst = rig_buffer(rig, size, WEIR_PLACE_HOST);
    unsigned char *in = rig_bytes(src);
    unsigned char *out = rig_bytes(dst);
    for (size_t i = 0; i < size; i++)
        in[i] = (unsigned char)(i * 7 + (i >> 12));
    memset(out, 0, size);
    EXPECT_OK(weir_queue_copy(rig->queue, dst, 0, src, 0, size));
    EXPECT_OK(weir_queue_sync(rig->queue, GUARD_NS));
    EXPECT_MEM_EQ(out, in, size);
    memset(out, 0, size);
    const size_t rows = size / (2 * width);
    EXPECT_OK(weir_queue_copy_2d(rig->queue, plane_of(dst, 0, 2 * width),
                                 plane_of(src, 0, 2 * width), width, rows));
    EXPECT_OK(weir_queue_fill(rig->queue, src, 0, size / 16 * 16, pattern, 16));
    EXPECT_OK(weir_queue_sync(rig->queue, GUARD_NS));
    size_t wrong = 0;
    for (size_t i = 0; i < rows * 2 * width; i++)
        wrong += out[i] != (i % (2 * width) < width ? (unsigned char)(i * 7 + (i >> 12)) : 0);
    EXPECT_UINT_EQ(wrong, 0);
    EXPECT_MEM_EQ(in + size / 16 * 16 - 16, pattern, 16);
    fill_large(rig, dst, size);
}
