// Memory that comes and goes: pools, and objects that are destroyed in use.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/object/object.h"
#include "core/pool/pool.h"
#include "core/queue/queue.h"
#include "core/support/memory.h"
#include "tests/unit/core_backend.h"

// Pools: the operations that plugins see, the queries to the driver, and the state of a
// block after a failure half-way.

#define GUARD_NS (UINT64_C(60) * 1000000000u)
#define SIZE ((size_t)5000)
#define QUEUE_LIMIT 65536

// Takes the place of a plugin: it notes pool operations and can refuse one.
static struct {
    struct weir_module_ops ops;
    struct weir_link link;
    const struct weir_link *real;
    struct weir_operation seen[8];
    size_t seen_size[8]; // of the buffer, then
    size_t count;
    enum weir_operation_kind refused;
} spy;

static weir_status spy_submit(const struct weir_link *link, weir_queue *queue,
                              const struct weir_operation *operation)
{
    if (operation->kind == WEIR_OPERATION_POOL_ALLOCATE ||
        operation->kind == WEIR_OPERATION_POOL_FREE) {
        spy.seen_size[spy.count % 8] = weir_buffer_size(operation->u.pool.buffer);
        spy.seen[spy.count++ % 8] = *operation;
    }
    if (operation->kind == spy.refused)
        return WEIR_ERROR_DEVICE;
    return spy.real->ops->queue_submit(spy.real, queue, operation);
}

static void spy_on(weir_queue *queue)
{
    spy.real = queue->first;
    spy.ops = *queue->first->ops;
    spy.ops.queue_submit = spy_submit;
    spy.link = *queue->first;
    spy.link.ops = &spy.ops;
    spy.count = 0;
    spy.refused = 0;
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

CONTROL_TEST(PoolCore, PluginsSeeBothEnds)
{
    weir_queue *queue = control_keep_queue(control, "q");
    own_pool pool = pool_of(control);
    weir_buffer *buffer;
    uint64_t ids[2];

    spy_on(queue);
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(weir_pool_allocate(pool, queue, SIZE + (size_t)i, &buffer));
        ids[i] = weir_buffer_object(buffer)->id;
        EXPECT_STR_EQ(weir_buffer_object(buffer)->label, "pool");
        ASSERT_OK(weir_pool_free(queue, &buffer));
    }
    ASSERT_UINT_EQ(spy.count, 4);
    for (size_t i = 0; i < 4; i++) {
        const struct weir_operation *seen = &spy.seen[i];
        EXPECT_INT_EQ(seen->kind, i % 2 ? WEIR_OPERATION_POOL_FREE : WEIR_OPERATION_POOL_ALLOCATE);
        EXPECT_UINT_EQ(seen->flags, WEIR_OPERATION_EMPTY);
        EXPECT_UINT_EQ(seen->sequence, i + 1);
        EXPECT_TRUE(seen->u.pool.pool == pool);
        EXPECT_UINT_EQ(seen->u.pool.size, SIZE + i / 2);
        EXPECT_UINT_EQ(spy.seen_size[i], SIZE + i / 2);
        EXPECT_CONTAINS(seen->file, "core_pool_test.c");
    }
    // The same memory, but another object.
    EXPECT_TRUE(spy.seen[0].u.pool.buffer == spy.seen[2].u.pool.buffer);
    EXPECT_UINT_LT(ids[0], ids[1]);
    EXPECT_UINT_EQ(control_count(WEIR_OPERATION_POOL_ALLOCATE), 0); // at the backend
    EXPECT_UINT_EQ(control_count(WEIR_OPERATION_POOL_FREE), 0);
    queue->first = spy.real;
}

// Memory that is used again belongs to another buffer.
CONTROL_TEST(PoolCore, PlacesAreThoseOfTheAllocation)
{
    weir_queue *queue = control_keep_queue(control, "q");
    own_pool pool = pool_of(control);
    weir_buffer *buffer;

    for (int i = 0; i < 2; i++) {
        char place[64];
        snprintf(place, sizeof place, "core_pool_test.c:%d)", __LINE__ + 1);
        ASSERT_OK(weir_pool_allocate(pool, queue, SIZE, &buffer));
        EXPECT_FAILURE(weir_queue_fill(queue, buffer, 0, SIZE + 1, "", 1), WEIR_ERROR_INVALID,
                       place);
        ASSERT_OK(weir_pool_free(queue, &buffer));
    }
}

// An allocation that a link refuses returns its block, also a new one.
CONTROL_TEST(PoolCore, ARefusedAllocationKeepsTheBlock)
{
    weir_queue *queue = control_keep_queue(control, "q");
    own_pool pool = pool_of(control);
    weir_buffer *buffer;

    spy_on(queue);
    for (int i = 0; i < 2; i++) {
        spy.refused = WEIR_OPERATION_POOL_ALLOCATE;
        EXPECT_FAILURE(weir_pool_allocate(pool, queue, SIZE, &buffer), WEIR_ERROR_DEVICE,
                       "a pool allocate, failed");
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
    weir_queue *first = control_keep_queue(control, "first");
    weir_queue *second = control_keep_queue(control, "second");
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

// Blocks that are in use when their pool is destroyed outlive it; idle ones are freed at
// once.
CONTROL_TEST(PoolCore, DestroyingDoesNotWait)
{
    weir_queue *queue = control_keep_queue(control, "q");
    weir_pool *pool = pool_of(control);
    weir_buffer *busy;
    weir_buffer *idle;

    ASSERT_OK(weir_pool_allocate(pool, queue, SIZE, &idle));
    ASSERT_OK(weir_pool_allocate(pool, queue, 2 * SIZE, &busy));
    ASSERT_OK(weir_pool_free(queue, &idle));
    ASSERT_OK(weir_queue_sync(queue, GUARD_NS));
    control_stall(true);
    ASSERT_OK(weir_queue_fill(queue, busy, 0, SIZE, "x", 1));
    ASSERT_OK(weir_pool_free(queue, &busy));
    weir_pool_destroy(&pool);
    EXPECT_UINT_EQ(control_buffer_destroy_count(), 1);
    control_stall(false);
    ASSERT_OK(weir_queue_sync(queue, GUARD_NS));
    EXPECT_UINT_EQ(control_buffer_destroy_count(), 2);
}

// Deferred destruction, with a backend whose completion the test controls.

// Each of these checks for objects that can be freed: a create, a destroy or a
// sync.
CONTROL_TEST(Object, GoesAtTheNextOpportunity)
{
    weir_queue *queue = control_keep_queue(control, "q");
    for (int way = 0; way < 4; way++) {
        weir_buffer *used = control_buffer(control, 64);
        weir_buffer *other = control_buffer(control, 64);
        weir_queue *fresh = NULL;
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
        weir_buffer_destroy(&used);
        weir_buffer_destroy(&other);
        weir_queue_destroy(&fresh);
    }
}

// Thousands of destroyed objects in use cost each call only a few queries.
CONTROL_TEST(Object, ManyDestroyedInUseCostLittle)
{
    enum {
        BUFFERS = 3000
    };

    weir_queue *queue = control_keep_queue(control, "q");
    weir_buffer *used = control_keep_buffer(control, 64);
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
    weir_queue *queue = control_keep_queue(control, "q");
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

// An object destroyed between two marks of one queue needs no additional record.
CONTROL_TEST(Object, AddsNoRecordToAnIdleQueue)
{
    struct weir_event event;

    weir_queue *queue = control_keep_queue(control, "q");
    control_keep_queue(control, "idle");
    weir_buffer *buffers[2] = {control_buffer(control, 64), control_buffer(control, 64)};
    control_stall(true);
    ASSERT_OK(weir_queue_fill(queue, buffers[0], 0, 64, "x", 1));
    ASSERT_OK(weir_queue_record(queue, &event));
    weir_buffer_destroy(&buffers[0]);
    weir_buffer_destroy(&buffers[1]);
    EXPECT_UINT_EQ(control_count(WEIR_OPERATION_RECORD), 1);
    control_stall(false);
    ASSERT_OK(weir_event_sync(event, GUARD_NS));
    EXPECT_UINT_EQ(control_buffer_destroy_count(), 2);
}

// As many objects as there can be.

WEIR_TEST(Registry, HasALimitAndSaysSo)
{
    struct control control;
    weir_queue **queues = calloc(QUEUE_LIMIT, sizeof(weir_queue *));
    weir_queue *more;

    ASSERT_NOT_NULL(queues);
    ASSERT_TRUE(control_open(&control));
    for (int i = 0; i < QUEUE_LIMIT; i++)
        ASSERT_OK(weir_queue_create(control.devices[0], NULL, &queues[i]));
    EXPECT_INT_EQ(weir_queue_create(control.devices[0], NULL, &more), WEIR_ERROR_OUT_OF_MEMORY);
    EXPECT_NULL(more);
    EXPECT_CONTAINS(weir_last_error()->message, "65,536");
    weir_queue_destroy(&queues[QUEUE_LIMIT / 2]);
    EXPECT_OK(weir_queue_create(control.devices[0], NULL, &queues[QUEUE_LIMIT / 2]));
    for (int i = 0; i < QUEUE_LIMIT; i++)
        weir_queue_destroy(&queues[i]);
    free(queues);
    control_close(&control);
}

static void count_line(void *user, weir_log_level level, const char *source, const char *message)
{
    *(size_t *)user += strstr(message, "the buffer without a label") != NULL;
}

// A close that is refused walks the list of what is left a few times, not once for each object.
CONTROL_TEST(Registry, ManyObjectsLeftAtClose)
{
    enum {
        LEFT = 60000
    };
    weir_buffer **buffers = calloc(LEFT, sizeof *buffers);
    size_t lines = 0;
    ASSERT_NOT_NULL(buffers);
    for (size_t i = 0; i < LEFT; i++)
        buffers[i] = control_buffer(control, 1);
    const uint64_t begin_ns = weir_clock_now_ns();
    weir_log_set(count_line, &lines, WEIR_LOG_ERROR);
    EXPECT_INT_EQ(weir_device_close(&control->devices[0]), WEIR_ERROR_INVALID);
    weir_log_set(NULL, NULL, WEIR_LOG_ERROR);
    EXPECT_UINT_LT(weir_clock_now_ns() - begin_ns, 3 * UINT64_C(1000000000));
    EXPECT_UINT_EQ(lines, LEFT);
    for (size_t i = 0; i < LEFT; i++)
        weir_buffer_destroy(&buffers[i]);
    free(buffers);
}
