// Driver calls of pools and the legacy queue: a warm pool makes none, and the legacy
// queue makes those that its header states.
#include "tests/cuda/rig.h"

#define SIZE ((size_t)5000)

static long all_calls(void)
{
    const struct weir_test_cuda *fake = rig_fake();
    long calls = 0;
    for (size_t i = 0; fake->name(i); i++)
        calls += fake->calls(fake->name(i));
    return calls;
}

static weir_pool *pool_of(struct rig *rig, weir_placement placement)
{
    const struct weir_pool_params params = {.struct_size = sizeof params, .placement = placement};
    weir_pool *pool = NULL;
    EXPECT_OK(weir_pool_create(rig->device, &params, &pool));
    return pool;
}

static void use(weir_pool *pool, weir_queue *queue)
{
    weir_buffer *buffer;
    ASSERT_OK(weir_pool_allocate(pool, queue, SIZE, &buffer));
    ASSERT_OK(weir_pool_free(queue, &buffer));
}

// Also while the streams do nothing, and on another queue after an event.
WEIR_TEST(CudaPools, AWarmPoolCallsNoDriver)
{
    struct rig rig;
    struct weir_event after;
    if (!rig_start(&rig))
        return;
    weir_queue *other = rig_queue(&rig, false);
    for (int placement = 0; placement < 2; placement++) {
        weir_pool *pool = pool_of(&rig, (weir_placement)placement);
        use(pool, rig.queue);
        rig_fake()->hold(1);
        ASSERT_OK(weir_queue_record(rig.queue, &after));
        ASSERT_OK(weir_queue_wait(other, after));
        const long before = all_calls();
        for (int i = 0; i < 100; i++)
            use(pool, rig.queue);
        EXPECT_INT_EQ(all_calls(), before);
        rig_fake()->hold(0);
        use(pool, rig.queue);
        ASSERT_OK(weir_queue_record(rig.queue, &after));
        rig_fake()->hold(1);
        ASSERT_OK(weir_queue_wait(other, after));
        const long waited = all_calls();
        use(pool, other);
        EXPECT_INT_EQ(all_calls(), waited);
        rig_fake()->hold(0);
        struct weir_pool_statistics statistics;
        weir_pool_read_statistics(pool, &statistics);
        EXPECT_UINT_EQ(statistics.reused, statistics.allocations - 1);
        weir_pool_destroy(&pool);
    }
    weir_queue_destroy(&other);
    rig_finish(&rig);
}

// An operation on it: a record and a wait for each queue that was used, and one wait on
// each of those at its next operation.
WEIR_TEST(CudaPools, TheLegacyQueueCostsARecordAndAWaitForEachQueue)
{
    enum {
        QUEUES = 3
    };
    struct rig rig;
    weir_queue *queues[QUEUES];
    weir_queue *legacy;
    if (!rig_start(&rig))
        return;
    const struct weir_test_cuda *fake = rig_fake();
    weir_buffer *buffer = rig_buffer(&rig, 64, WEIR_PLACE_DEVICE);
    ASSERT_OK(weir_legacy_queue(rig.device, &legacy));
    fake->hold(1);
    for (int i = 0; i < QUEUES; i++) {
        queues[i] = rig_queue(&rig, false);
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
    weir_buffer_destroy(&buffer);
    rig_finish(&rig);
}
