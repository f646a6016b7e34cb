// Each fault at each operation of a run: what the calls, the events and the results say, and that
// the queues work again afterwards.
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tests/plugins/fault_rig.h"

#define GUARD_NS (UINT64_C(60) * 1000000000u)

// The last error names the plugin, the number and the way to repeat it.
static void expect_cause(int number)
{
    char part[32];
    snprintf(part, sizeof part, "(number %d, ", number);
    EXPECT_CONTAINS(weir_last_error_text(), "the plugin fault injected ");
    EXPECT_CONTAINS(weir_last_error_text(), part);
    snprintf(part, sizeof part, " --at %d PROGRAM`", number);
    EXPECT_CONTAINS(weir_last_error_text(), part);
}

static void expect_recovered(struct rig *rig)
{
    EXPECT_OK(weir_queue_recover(rig->up));
    EXPECT_OK(weir_queue_recover(rig->down));
    rig->calls = 0;
    EXPECT_OK(rig_submit(rig));
    EXPECT_OK(weir_event_sync(rig->last, GUARD_NS));
    rig_expect_results(rig);
}

static bool is_work(int operation)
{
    return operation != RIG_RECORD && operation != RIG_WAIT && operation != RIG_LAST;
}

WEIR_TEST(Fault, NothingWithoutANumber)
{
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig, ""));
    EXPECT_OK(rig_submit(&rig));
    EXPECT_OK(weir_event_sync(rig.last, GUARD_NS));
    rig_expect_results(&rig);
    rig_finish(&rig);
    EXPECT_STR_EQ(rig_log(), "");
}

WEIR_TEST(Fault, RefusesEachOperation)
{
    for (int at = 1; at <= RIG_OPERATIONS; at++) {
        struct rig rig;
        weir_test_note("operation %d", at);
        ASSERT_TRUE(rig_start(&rig, rig_section("refuse", at, "")));
        EXPECT_INT_EQ(rig_submit(&rig), WEIR_ERROR_DEVICE);
        EXPECT_INT_EQ(rig_reached(), at);
        expect_cause(at);
        EXPECT_CONTAINS(weir_last_error_text(), "a refusal");
        EXPECT_CONTAINS(weir_last_error_text(), "fault_rig.c:");
        if (at > RIG_RECORD)
            EXPECT_OK(weir_event_sync(rig.copied, GUARD_NS));
        expect_recovered(&rig);
        rig_finish(&rig);
    }
}

// The work of a queue before its fault has run, that after it has not. Work of the queue that waits
// for a failed one may have run.
static void expect_part(const struct rig *rig, int at)
{
    if (at != RIG_COPY_IN)
        EXPECT_INT_EQ(rig->calls, at > RIG_CALL ? 1 : 0);
}

static int number_of_work(int operation)
{
    int number = 0;
    for (int i = 1; i <= operation; i++)
        number += is_work(i);
    return number;
}

WEIR_TEST(Fault, FailsEachOperationLater)
{
    for (int at = 1; at <= RIG_OPERATIONS; at++) {
        struct rig rig;
        if (!is_work(at))
            continue;
        weir_test_note("operation %d", at);
        ASSERT_TRUE(rig_start(&rig, rig_section("fail", number_of_work(at), "")));
        // The failure may be known before the last operation is submitted.
        if (rig_submit(&rig) == WEIR_OK)
            EXPECT_INT_EQ(weir_event_sync(rig.last, GUARD_NS), WEIR_ERROR_DEVICE);
        expect_cause(number_of_work(at));
        EXPECT_CONTAINS(weir_last_error_text(), "a failure by a host call");
        EXPECT_CONTAINS(weir_last_error_text(), "fault_rig.c:");
        // Or before the record is.
        if (rig.copied.sequence != 0)
            EXPECT_INT_EQ(weir_event_sync(rig.copied, GUARD_NS),
                          at == RIG_COPY_IN ? WEIR_ERROR_DEVICE : WEIR_OK);
        expect_part(&rig, at);
        expect_recovered(&rig);
        rig_finish(&rig);
    }
}

WEIR_TEST(Fault, SlowsEachOperation)
{
    for (int at = 1; at <= RIG_OPERATIONS; at++) {
        struct rig rig;
        if (!is_work(at))
            continue;
        weir_test_note("operation %d", at);
        ASSERT_TRUE(rig_start(&rig, rig_section("slow", number_of_work(at), "delay_ms = 50")));
        const uint64_t start = weir_clock_now_ns();
        EXPECT_OK(rig_submit(&rig));
        EXPECT_INT_EQ(weir_event_query(rig.last), WEIR_NOT_READY);
        EXPECT_OK(weir_event_sync(rig.last, GUARD_NS));
        EXPECT_UINT_GE(weir_clock_now_ns() - start, 50000000);
        rig_expect_results(&rig);
        rig_finish(&rig);
        EXPECT_CONTAINS(rig_log(), "gets the fault 'slow'");
    }
}

WEIR_TEST(Fault, AnswersGarbageForAHostCall)
{
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig, rig_section("garbage", 1, "")));
    if (rig_submit(&rig) == WEIR_OK)
        EXPECT_INT_EQ((int)weir_event_sync(rig.last, GUARD_NS), -4711);
    expect_cause(1);
    EXPECT_INT_EQ(rig.calls, 1);
    expect_recovered(&rig);
    rig_finish(&rig);
}

WEIR_TEST(Fault, NoMemoryForEachCreation)
{
    for (int at = RIG_DEVICE; at <= RIG_GRAPH; at++) {
        struct rig rig;
        weir_test_note("creation %d", at);
        ASSERT_OK(rig_open(&rig, rig_section("memory", at, "")));
        EXPECT_INT_EQ(rig_create(&rig), WEIR_ERROR_OUT_OF_MEMORY);
        expect_cause(at);
        EXPECT_CONTAINS(weir_last_error_text(), "a lack of memory");
        rig_finish(&rig);
    }
}

// What happens to objects of a lost device.
static void expect_lost(struct rig *rig, int at)
{
    weir_buffer *buffer;
    weir_queue *queue;
    struct weir_event event;
    EXPECT_INT_EQ(weir_queue_recover(rig->down),
                  at > RIG_RECORD ? WEIR_ERROR_DEVICE_LOST : WEIR_OK);
    EXPECT_INT_EQ(weir_queue_record(rig->up, &event), WEIR_ERROR_DEVICE_LOST);
    expect_cause(at);
    EXPECT_INT_EQ(weir_queue_record(rig->down, &event), WEIR_ERROR_DEVICE_LOST);
    expect_cause(at);
    EXPECT_INT_EQ(weir_queue_recover(rig->down), WEIR_ERROR_DEVICE_LOST);
    EXPECT_INT_EQ(weir_queue_flush(rig->up), WEIR_ERROR_DEVICE_LOST);
    EXPECT_INT_EQ(weir_buffer_create(rig->device, WEIR_PARAMS(weir_buffer, .size = 4), &buffer),
                  WEIR_ERROR_DEVICE_LOST);
    EXPECT_INT_EQ(weir_queue_create(rig->device, NULL, &queue), WEIR_ERROR_DEVICE_LOST);
    EXPECT_INT_EQ(weir_device_trim(rig->device), WEIR_ERROR_DEVICE_LOST);
    expect_cause(at);
    if (at > RIG_RECORD)
        EXPECT_INT_EQ(weir_event_sync(rig->copied, GUARD_NS), WEIR_ERROR_DEVICE_LOST);
}

WEIR_TEST(Fault, LosesTheDeviceAtEachOperation)
{
    for (int at = 1; at <= RIG_OPERATIONS; at++) {
        struct rig rig;
        weir_device *again = NULL;
        weir_test_note("operation %d", at);
        ASSERT_TRUE(rig_start(&rig, rig_section("lose", at, "")));
        EXPECT_INT_EQ(rig_submit(&rig), WEIR_ERROR_DEVICE_LOST);
        EXPECT_INT_EQ(rig_reached(), at);
        expect_cause(at);
        expect_lost(&rig, at);
        EXPECT_INT_EQ(weir_device_open(rig.runtime, NULL, &again), WEIR_ERROR_DEVICE_LOST);
        EXPECT_CONTAINS(weir_last_error_text(), "has lost the device before");
        rig_finish(&rig);
    }
}

WEIR_TEST(Fault, CompleteEventsStayComplete)
{
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig, rig_section("lose", RIG_OPERATIONS + 1, "")));
    EXPECT_OK(rig_submit(&rig));
    EXPECT_OK(weir_event_sync(rig.last, GUARD_NS));
    EXPECT_INT_EQ(rig_submit(&rig), WEIR_ERROR_DEVICE_LOST);
    EXPECT_OK(weir_event_sync(rig.last, GUARD_NS));
    rig_finish(&rig);
}

// A launch of a graph that never ran, and one on another queue after it.
WEIR_TEST(Fault, FailedGraphIsLaunchedAgain)
{
    struct rig rig;
    struct weir_event event;
    ASSERT_TRUE(rig_start(&rig, rig_section("fail", 1, "kinds = graph")));
    EXPECT_OK(weir_queue_graph(rig.down, rig.graph));
    weir_status status = weir_queue_graph(rig.up, rig.graph);
    if (status == WEIR_OK)
        status = weir_queue_record(rig.up, &event);
    if (status == WEIR_OK)
        status = weir_event_sync(event, GUARD_NS);
    EXPECT_INT_EQ(status, WEIR_ERROR_DEVICE);
    expect_cause(1);
    expect_recovered(&rig);
    rig_finish(&rig);
}
