// Deferred destruction, with a backend whose completion the test controls.
#include "core/object/object.h"
#include "core/support/memory.h"
#include "tests/unit/core_backend.h"

#define GUARD_NS (UINT64_C(60) * 1000000000u)

WEIR_TEST(Object, IsDestroyedWhenItsWorkIsComplete)
{
    struct control control;

    ASSERT_TRUE(control_open(&control));
    weir_queue *queue = control_queue(&control, "q");
    weir_buffer *idle = control_buffer(&control, 64);
    weir_buffer *used = control_buffer(&control, 64);
    weir_buffer_destroy(&idle); // nothing is busy
    EXPECT_SIZE_EQ(control_buffer_destroy_count(), 1);
    control_stall(true);
    ASSERT_OK(weir_queue_fill(queue, used, 0, 64, "x", 1));
    weir_buffer_destroy(&used);
    EXPECT_SIZE_EQ(control_buffer_destroy_count(), 1);
    ASSERT_OK(weir_device_trim(control.devices[0]));
    EXPECT_SIZE_EQ(control_buffer_destroy_count(), 1);
    control_stall(false);
    ASSERT_OK(weir_device_trim(control.devices[0]));
    EXPECT_SIZE_EQ(control_buffer_destroy_count(), 2);
    weir_queue_destroy(&queue);
    control_close(&control);
}

// Each of these checks for objects that can be freed: a create, a destroy or a
// sync.
WEIR_TEST(Object, GoesAtTheNextOpportunity)
{
    struct control control;

    ASSERT_TRUE(control_open(&control));
    weir_queue *queue = control_queue(&control, "q");
    for (int way = 0; way < 4; way++) {
        weir_buffer *used = control_buffer(&control, 64);
        weir_buffer *other = control_buffer(&control, 64);
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
            fresh = control_queue(&control, "fresh");
        else if (way == 2)
            used = control_buffer(&control, 64);
        else
            weir_buffer_destroy(&other);
        EXPECT_SIZE_GE(control_buffer_destroy_count(), before + 1);
        weir_buffer_destroy(&used);
        weir_buffer_destroy(&other);
        weir_queue_destroy(&fresh);
    }
    weir_queue_destroy(&queue);
    control_close(&control);
}

// Thousands of destroyed objects in use cost each call only a few queries.
WEIR_TEST(Object, ManyDestroyedInUseCostLittle)
{
    enum {
        BUFFERS = 3000
    };
    struct control control;

    ASSERT_TRUE(control_open(&control));
    weir_queue *queue = control_queue(&control, "q");
    weir_buffer *used = control_buffer(&control, 64);
    control_stall(true);
    ASSERT_OK(weir_queue_fill(queue, used, 0, 64, "x", 1));
    const size_t before = control_query_count();
    for (int i = 0; i < BUFFERS; i++) {
        weir_buffer *buffer = control_buffer(&control, 64);
        weir_buffer_destroy(&buffer);
    }
    EXPECT_SIZE_LE(control_query_count() - before, 32 * BUFFERS);
    EXPECT_SIZE_EQ(control_buffer_destroy_count(), 0);
    // One record is enough for all of them.
    EXPECT_SIZE_EQ(control_count(WEIR_OPERATION_RECORD), 1);
    control_stall(false);
    ASSERT_OK(weir_queue_sync(queue, GUARD_NS));
    EXPECT_SIZE_EQ(control_buffer_destroy_count(), BUFFERS);
    weir_buffer_destroy(&used);
    weir_queue_destroy(&queue);
    control_close(&control);
}

// The record that marks the end of the work is refused: the object stays.
WEIR_TEST(Object, StaysWhileItsEndCannotBeMarked)
{
    struct control control;

    ASSERT_TRUE(control_open(&control));
    weir_queue *queue = control_queue(&control, "q");
    weir_buffer *used = control_buffer(&control, 64);
    control_stall(true);
    ASSERT_OK(weir_queue_fill(queue, used, 0, 64, "x", 1));
    control_refuse(WEIR_OPERATION_RECORD, 0);
    weir_buffer_destroy(&used);
    EXPECT_SIZE_EQ(control_buffer_destroy_count(), 0);
    control_stall(false);
    EXPECT_INT_EQ(weir_queue_sync(queue, GUARD_NS), WEIR_ERROR_DEVICE);
    EXPECT_OK(weir_queue_recover(queue));
    EXPECT_OK(weir_queue_sync(queue, GUARD_NS));
    EXPECT_SIZE_EQ(control_buffer_destroy_count(), 1);
    weir_queue_destroy(&queue);
    control_close(&control);
}

// An object destroyed between two marks of one queue needs no additional record.
WEIR_TEST(Object, AddsNoRecordToAnIdleQueue)
{
    struct control control;
    struct weir_event event;

    ASSERT_TRUE(control_open(&control));
    weir_queue *queue = control_queue(&control, "q");
    weir_queue *idle = control_queue(&control, "idle");
    weir_buffer *buffers[2] = {control_buffer(&control, 64), control_buffer(&control, 64)};
    control_stall(true);
    ASSERT_OK(weir_queue_fill(queue, buffers[0], 0, 64, "x", 1));
    ASSERT_OK(weir_queue_record(queue, &event));
    weir_buffer_destroy(&buffers[0]);
    weir_buffer_destroy(&buffers[1]);
    EXPECT_SIZE_EQ(control_count(WEIR_OPERATION_RECORD), 1);
    control_stall(false);
    ASSERT_OK(weir_event_sync(event, GUARD_NS));
    EXPECT_SIZE_EQ(control_buffer_destroy_count(), 2);
    weir_queue_destroy(&queue);
    weir_queue_destroy(&idle);
    control_close(&control);
}
