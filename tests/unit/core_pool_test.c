// Memory that comes and goes: pools, and objects that are destroyed in use.

#include "tests/unit/core_backend.h"

// Pools: the queries to the driver, and the state of a block after a failure half-way.

#define SIZE ((size_t)5000)
#define QUEUE_LIMIT 65536

// Takes the place of a plugin that refuses a kind of operation.
static struct {
    struct weir_module_ops ops;
    struct weir_link link;
    const struct weir_link *real;
    enum weir_operation_kind refused;
} spy;

static weir_status spy_submit(const struct weir_link *link, weir_queue *queue,
                              const struct weir_operation *operation)
{
    return operation->kind == spy.refused ? WEIR_ERROR_DEVICE
                                          : spy.real->ops->queue_submit(spy.real, queue, operation);
}

static void spy_on(weir_queue *queue)
{
    spy.real = queue->first;
    spy.ops = *queue->first->ops;
    spy.ops.queue_submit = spy_submit;
    spy.link = *queue->first;
    spy.link.ops = &spy.ops;
    queue->first = &spy.link;
}

static weir_pool *pool_of(const struct control *control)
{
    weir_pool *pool;
    EXPECT_OK(
        weir_pool_create(control->devices[0], WEIR_PARAMS(weir_pool, .label = "pool"), &pool));
    return pool;
}

static struct weir_pool_statistics read_statistics(const weir_pool *pool)
{
    struct weir_pool_statistics statistics;
    weir_pool_read_statistics(pool, &statistics);
    return statistics;
}

// An allocation that a link refuses returns its block, also a new one.
CONTROL_TEST(PoolCore, ARefusedAllocationKeepsTheBlock)
{
    own_queue queue = control_queue(control, "q");
    own_pool pool = pool_of(control);
    weir_buffer *buffer;

    spy_on(queue);
    for (int i = 0; i < 2; i++) {
        spy.refused = WEIR_OPERATION_POOL_ALLOCATE;
        EXPECT_FAILURE(weir_pool_allocate(pool, queue, SIZE, &buffer), WEIR_ERROR_DEVICE,
                       "a pool allocation, failed");
        EXPECT_NULL(buffer);
        EXPECT_UINT_EQ(read_statistics(pool).in_use_bytes, 0);
        EXPECT_UINT_EQ(read_statistics(pool).kept_bytes, 5120);
        EXPECT_UINT_EQ(read_statistics(pool).allocations, 0);
        EXPECT_UINT_EQ(read_statistics(pool).reused, 0);
        spy.refused = 0;
        EXPECT_OK(weir_queue_recover(queue));
    }
    ASSERT_OK(weir_pool_allocate(pool, queue, SIZE, &buffer));
    EXPECT_UINT_EQ(read_statistics(pool).reused, 1);
    // A free that a link refuses still frees.
    spy.refused = WEIR_OPERATION_POOL_FREE;
    EXPECT_INT_EQ(weir_pool_free(queue, &buffer), WEIR_ERROR_DEVICE);
    EXPECT_NULL(buffer);
    EXPECT_UINT_EQ(read_statistics(pool).kept_bytes, 5120);
    queue->first = spy.real;
    EXPECT_OK(weir_queue_recover(queue));
}

// Before a pool grows it queries whether blocks that other queues freed are idle now.
// Each queue gets one record for that, and the same record is queried until it is complete.
CONTROL_TEST(PoolCore, AsksTheDriverBeforeItGrows)
{
    own_queue first = control_queue(control, "first");
    own_queue second = control_queue(control, "second");
    own_pool pool = pool_of(control);
    weir_buffer *buffers[3];

    ASSERT_OK(weir_pool_allocate(pool, first, SIZE, &buffers[0]));
    control_stall(true);
    ASSERT_OK(weir_queue_fill(first, buffers[0], 0, SIZE, "x", 1));
    ASSERT_OK(weir_pool_free(first, &buffers[0]));
    for (int i = 0; i < 2; i++)
        ASSERT_OK(weir_pool_allocate(pool, second, SIZE, &buffers[i]));
    EXPECT_UINT_EQ(read_statistics(pool).blocked, 2);
    EXPECT_UINT_EQ(control_count(WEIR_OPERATION_RECORD), 1);
    // The queue gets more work, but the earlier record is queried.
    ASSERT_OK(weir_queue_fill(first, buffers[0], 0, SIZE, "x", 1));
    control_stall(false);
    const size_t asked = control_query_count();
    ASSERT_OK(weir_pool_allocate(pool, second, SIZE, &buffers[2]));
    EXPECT_UINT_EQ(control_query_count(), asked + 1);
    EXPECT_UINT_EQ(control_count(WEIR_OPERATION_RECORD), 1);
    EXPECT_UINT_EQ(read_statistics(pool).reused, 1);
    // A queue's own blocks need no query.
    ASSERT_OK(weir_pool_free(second, &buffers[2]));
    ASSERT_OK(weir_pool_allocate(pool, second, SIZE, &buffers[2]));
    EXPECT_UINT_EQ(control_query_count(), asked + 1);
    for (int i = 0; i < 3; i++)
        ASSERT_OK(weir_pool_free(second, &buffers[i]));
    EXPECT_OK(weir_queue_sync(first, GUARD_NS));
    EXPECT_OK(weir_queue_sync(second, GUARD_NS));
}

// Deferred destruction, with a backend whose completion the test controls.

// Each of these checks for objects that can be freed: a create, a destroy or a
// sync.
CONTROL_TEST(Object, GoesAtTheNextOpportunity)
{
    own_queue queue = control_queue(control, "q");
    for (int way = 0; way < 4; way++) {
        own_buffer used = control_buffer(control, 64);
        own_buffer other = control_buffer(control, 64);
        own_queue fresh = NULL;
        weir_test_note("way %d", way);
        control_stall(true);
        ASSERT_OK(weir_queue_fill(queue, used, 0, 64, "x", 1));
        weir_buffer_destroy(&used);
        control_stall(false);
        const size_t before = control_buffer_destroy_count();
        if (way == 0)
            ASSERT_OK(weir_queue_sync(queue, GUARD_NS));
        else if (way == 1)
            fresh = control_queue(control, "fresh");
        else if (way == 2)
            used = control_buffer(control, 64);
        else
            weir_buffer_destroy(&other);
        EXPECT_UINT_GE(control_buffer_destroy_count(), before + 1);
    }
}

// Thousands of destroyed objects in use cost each call only a few queries.
CONTROL_TEST(Object, ManyDestroyedInUseCostLittle)
{
    enum {
        BUFFERS = 3000
    };

    own_queue queue = control_queue(control, "q");
    own_buffer used = control_buffer(control, 64);
    control_stall(true);
    ASSERT_OK(weir_queue_fill(queue, used, 0, 64, "x", 1));
    const size_t before = control_query_count();
    for (int i = 0; i < BUFFERS; i++) {
        weir_buffer *buffer = control_buffer(control, 64);
        weir_buffer_destroy(&buffer);
    }
    EXPECT_UINT_LE(control_query_count() - before, 32 * BUFFERS);
    EXPECT_UINT_EQ(control_buffer_destroy_count(), 0);
    // One record is enough for all of them.
    EXPECT_UINT_EQ(control_count(WEIR_OPERATION_RECORD), 1);
    control_stall(false);
    ASSERT_OK(weir_queue_sync(queue, GUARD_NS));
    EXPECT_UINT_EQ(control_buffer_destroy_count(), BUFFERS);
}

// The record that marks the end of the work is refused: the object stays.
CONTROL_TEST(Object, StaysWhileItsEndCannotBeMarked)
{
    own_queue queue = control_queue(control, "q");
    weir_buffer *used = control_buffer(control, 64);
    control_stall(true);
    ASSERT_OK(weir_queue_fill(queue, used, 0, 64, "x", 1));
    control_refuse(WEIR_OPERATION_RECORD, 0);
    weir_buffer_destroy(&used);
    EXPECT_UINT_EQ(control_buffer_destroy_count(), 0);
    control_stall(false);
    EXPECT_INT_EQ(weir_queue_sync(queue, GUARD_NS), WEIR_ERROR_DEVICE);
    EXPECT_OK(weir_queue_recover(queue));
    EXPECT_OK(weir_queue_sync(queue, GUARD_NS));
    EXPECT_UINT_EQ(control_buffer_destroy_count(), 1);
}

// As many objects as there can be.

CONTROL_TEST(Registry, HasALimitAndSaysSo)
{
    OWN_MEMORY weir_queue **queues = calloc(QUEUE_LIMIT, sizeof(weir_queue *));
    weir_queue *more;

    ASSERT_NOT_NULL(queues);
    for (int i = 0; i < QUEUE_LIMIT; i++)
        ASSERT_OK(weir_queue_create(control->devices[0], NULL, &queues[i]));
    EXPECT_INT_EQ(weir_queue_create(control->devices[0], NULL, &more), WEIR_ERROR_OUT_OF_MEMORY);
    EXPECT_NULL(more);
    EXPECT_CONTAINS(weir_last_error()->message, "65,536");
    weir_queue_destroy(&queues[QUEUE_LIMIT / 2]);
    EXPECT_OK(weir_queue_create(control->devices[0], NULL, &queues[QUEUE_LIMIT / 2]));
    for (int i = 0; i < QUEUE_LIMIT; i++)
        weir_queue_destroy(&queues[i]);
}
