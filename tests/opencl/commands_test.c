// Waits and records that are no commands of the driver's: which calls Weir makes for them, told by the library
// that forwards them, and that the order and the failures are those of commands.
#include "tests/opencl/rig.h"

#define BARRIER "clEnqueueBarrierWithWaitList"
#define MARKER "clEnqueueMarkerWithWaitList"
#define LIMIT 16 // OCL_WAIT_LIMIT of the backend

static void copy(const struct opencl_rig *rig, weir_queue *queue)
{
    EXPECT_OK(weir_queue_copy(queue, rig->other, 0, rig->buffer, 0, OPENCL_RIG_BYTES));
}

// A frame of two stages, each on its queue.
static struct weir_event submit_frame(const struct opencl_rig *rig, struct weir_event before,
                                      uint32_t number)
{
    if (before.queue != 0)
        EXPECT_OK(weir_queue_wait(rig->queues[0], before));
    opencl_rig_launch(rig, rig->queues[0], rig->buffer, number);
    opencl_rig_launch(rig, rig->queues[0], rig->buffer, number + 1);
    EXPECT_OK(weir_queue_after(rig->queues[1], rig->queues[0]));
    copy(rig, rig->queues[1]);
    return test_record(rig->queues[1]);
}

OPENCL_RIG_TEST(OpenclCommands, OfFramesAreTheirWorkAlone)
{
    struct weir_event last = {0};
    for (uint32_t i = 0; i < 2; i++)
        last = submit_frame(rig, last, i);
    const long barriers = rig->shim->calls(BARRIER);
    const long markers = rig->shim->calls(MARKER);
    for (uint32_t i = 0; i < 50; i++)
        last = submit_frame(rig, last, i);
    EXPECT_INT_EQ(rig->shim->calls(BARRIER), barriers);
    EXPECT_INT_EQ(rig->shim->calls(MARKER), markers);
    EXPECT_OK(weir_event_sync(last, WEIR_FOREVER));
    opencl_rig_expect_numbers(rig->queues[1], rig->other, 0, 50);
}

// Where all commands after a failed one fail, few events are asked how they ended, and the events of
// launches are those of records.
OPENCL_RIG_AS_TEST(OpenclCommands, OfADriverWhoseErrorsStay, WEIR_TEST_OPENCL_ERRORS_STAY)
{
    struct weir_event last = {0};
    last = submit_frame(rig, last, 0);
    const long questions = rig->shim->calls("clGetEventInfo");
    const long releases = rig->shim->calls("clReleaseEvent");
    for (uint32_t i = 0; i < 200; i++)
        last = submit_frame(rig, last, i);
    EXPECT_TRUE(rig->shim->calls("clGetEventInfo") - questions < 100);
    EXPECT_TRUE(rig->shim->calls("clReleaseEvent") - releases > 100);
    EXPECT_OK(weir_event_sync(last, WEIR_FOREVER));
    opencl_rig_expect_numbers(rig->queues[1], rig->other, 0, 200);
}

// A change of what is between two records costs a marker, once.
OPENCL_RIG_TEST(OpenclCommands, AreExpectedToBeAsManyAsBefore)
{
    for (uint32_t launches = 3; launches > 0; launches--) {
        const long markers = rig->shim->calls(MARKER);
        for (uint32_t i = 0; i < 10; i++) {
            for (uint32_t k = 0; k < launches; k++)
                opencl_rig_launch(rig, rig->queues[0], rig->buffer, k);
            (void)test_record(rig->queues[0]);
        }
        EXPECT_INT_EQ(rig->shim->calls(MARKER) - markers, 1);
    }
}

// All records take the event of the command before them, also if that is a marker.
OPENCL_RIG_TEST(OpenclCommands, ASecondRecordTakesTheSameEvent)
{
    const long markers = rig->shim->calls(MARKER);
    for (uint32_t launches = 1; launches <= 2; launches++) {
        for (uint32_t i = 0; i < launches; i++)
            opencl_rig_launch(rig, rig->queues[0], rig->buffer, launches);
        const struct weir_event first = test_record(rig->queues[0]);
        const struct weir_event second = test_record(rig->queues[0]);
        EXPECT_INT_EQ(rig->shim->calls(MARKER) - markers, launches - 1);
        EXPECT_OK(weir_event_sync(second, WEIR_FOREVER));
        EXPECT_OK(weir_event_query(first));
        opencl_rig_expect_numbers(rig->queues[0], rig->buffer, 0, launches);
        opencl_rig_launch(rig, rig->queues[0], rig->buffer, 0);
        EXPECT_OK(weir_event_sync(test_record(rig->queues[0]), WEIR_FOREVER));
    }
}

// A frame as a graph ends with the graph's record and the pipeline's.
OPENCL_RIG_TEST(OpenclCommands, OfAGraphAreItsWorkAlone)
{
    own_graph graph = NULL;
    EXPECT_OK(weir_capture_begin(rig->queues[0]));
    opencl_rig_launch(rig, rig->queues[0], rig->buffer, 7);
    copy(rig, rig->queues[0]);
    EXPECT_OK(weir_capture_end(rig->queues[0], NULL, &graph));
    EXPECT_OK(weir_queue_graph(rig->queues[0], graph));
    EXPECT_OK(weir_event_sync(test_record(rig->queues[0]), WEIR_FOREVER));
    const long markers = rig->shim->calls(MARKER);
    for (uint32_t i = 0; i < 20; i++) {
        EXPECT_OK(weir_queue_graph(rig->queues[0], graph));
        EXPECT_OK(weir_queue_after(rig->queues[1], rig->queues[0]));
        opencl_rig_launch(rig, rig->queues[1], rig->buffer, i);
        EXPECT_OK(weir_queue_after(rig->queues[0], rig->queues[1]));
    }
    EXPECT_INT_EQ(rig->shim->calls(MARKER), markers);
    opencl_rig_expect_numbers(rig->queues[0], rig->other, 0, 7);
}

// Once the list is full, its waits become a barrier.
OPENCL_RIG_TEST(OpenclCommands, WaitForManyEvents)
{
    const long barriers = rig->shim->calls(BARRIER);
    for (uint32_t i = 0; i < 2 * LIMIT + 1; i++) {
        opencl_rig_launch(rig, rig->queues[0], rig->buffer, i);
        EXPECT_OK(weir_queue_after(rig->queues[1], rig->queues[0]));
    }
    EXPECT_INT_EQ(rig->shim->calls(BARRIER) - barriers, 2);
    copy(rig, rig->queues[1]);
    EXPECT_INT_EQ(rig->shim->calls(BARRIER) - barriers, 2);
    opencl_rig_expect_numbers(rig->queues[1], rig->other, 0, 2 * LIMIT);
}

struct always {
    const struct opencl_rig *rig;
    struct weir_event event;
    long finishes;      // of queues, before it
    weir_status waited; // the status of `event` then
    weir_status status;
};

// By a marker on PoCL 6.
static long finishes(const struct opencl_rig *rig)
{
    return rig->shim->calls("clFinish") + rig->shim->calls(MARKER);
}

static void note_always(void *user, weir_status status)
{
    struct always *always = user;
    always->finishes = finishes(always->rig);
    always->waited = weir_event_query(always->event);
    always->status = status;
}

// The waits cannot be submitted. A call that always runs, and may free what the work uses, comes after
// the work before the waits, and after that for which they were, all the same.
OPENCL_RIG_TEST(OpenclCommands, RefusedWaitsBeforeACallThatAlwaysRuns)
{
    struct always always = {.rig = rig};
    opencl_rig_launch(rig, rig->queues[1], rig->other, 2);
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .size = (size_t)64 << 20};
    weir_buffer *large[2] = {NULL};
    for (int i = 0; i < 2; i++)
        EXPECT_OK(weir_buffer_create(rig->device, &params, &large[i]));
    for (int i = 0; i < 4; i++)
        EXPECT_OK(weir_queue_copy(rig->queues[0], large[0], 0, large[1], 0, params.size));
    always.event = test_record(rig->queues[0]);
    EXPECT_OK(weir_queue_flush(rig->queues[0]));
    EXPECT_OK(weir_queue_wait(rig->queues[1], always.event));
    const long before = finishes(rig);
    rig->shim->fail(BARRIER, 1, 0);
    EXPECT_OK(weir_queue_host_call_always(rig->queues[1], note_always, &always));
    EXPECT_INT_EQ(weir_queue_sync(rig->queues[1], WEIR_FOREVER), WEIR_ERROR_DEVICE);
    EXPECT_INT_EQ(rig->shim->struck(), 1);
    rig->shim->fail(NULL, 0, 0);
    EXPECT_INT_EQ(always.status, WEIR_ERROR_DEVICE);
    EXPECT_INT_EQ(always.finishes, before + 1);
    EXPECT_OK(always.waited);
    EXPECT_OK(weir_queue_recover(rig->queues[1]));
    opencl_rig_expect_works(rig, rig->queues[1], 3);
    weir_buffer_destroy(&large[0]);
    weir_buffer_destroy(&large[1]);
}

// Their time is when the device came to them.
OPENCL_RIG_TEST(OpenclCommands, RecordsWithTimesAreMarkers)
{
    own_queue queue = NULL;
    uint64_t times[2];
    EXPECT_OK(weir_queue_create(rig->device, WEIR_PARAMS(weir_queue, .timing = true), &queue));
    const long markers = rig->shim->calls(MARKER);
    opencl_rig_launch(rig, queue, rig->buffer, 1);
    const struct weir_event first = test_record(queue);
    EXPECT_OK(weir_event_sync(first, WEIR_FOREVER));
    const struct weir_event second = test_record(queue);
    EXPECT_OK(weir_event_sync(second, WEIR_FOREVER));
    EXPECT_INT_EQ(rig->shim->calls(MARKER) - markers, 2);
    EXPECT_OK(weir_event_time_ns(first, &times[0]));
    EXPECT_OK(weir_event_time_ns(second, &times[1]));
    EXPECT_TRUE(times[0] < times[1]);
}

// Where the driver tells no time of a marker that has a wait list, the waits are a barrier before it. One that is
// refused fails the record, and the queue is recovered.
OPENCL_RIG_TEST(OpenclCommands, RecordsWithTimesAfterWaits)
{
    weir_queue *queues[2] = {NULL};
    uint64_t times[2];
    rig->shim->play(WEIR_TEST_OPENCL_UNTIMED_MARKERS);
    for (int i = 0; i < 2; i++)
        EXPECT_OK(
            weir_queue_create(rig->device, WEIR_PARAMS(weir_queue, .timing = true), &queues[i]));
    opencl_rig_launch(rig, queues[0], rig->buffer, 1);
    const struct weir_event first = test_record(queues[0]);
    EXPECT_OK(weir_queue_wait(queues[1], first));
    const struct weir_event second = test_record(queues[1]);
    EXPECT_OK(weir_event_sync(second, WEIR_FOREVER));
    EXPECT_OK(weir_event_time_ns(first, &times[0]));
    EXPECT_OK(weir_event_time_ns(second, &times[1]));
    EXPECT_TRUE(times[0] <= times[1]);

    struct weir_event third = {0};
    EXPECT_OK(weir_queue_after(queues[1], queues[0]));
    rig->shim->fail(BARRIER, 1, 0);
    EXPECT_FAILURE(weir_queue_record(queues[1], &third), WEIR_ERROR_DEVICE, BARRIER);
    EXPECT_OK(weir_queue_recover(queues[1]));
    opencl_rig_expect_works(rig, queues[1], 3);
    weir_queue_destroy(&queues[0]);
    weir_queue_destroy(&queues[1]);
}

// Others.

static struct weir_native_queue native_of(weir_queue *queue)
{
    struct weir_native_queue native = {.struct_size = sizeof native};
    EXPECT_OK(weir_queue_get_native(queue, &native));
    return native;
}

// Waits that came before the handle are there already, and later ones are at once.
OPENCL_RIG_TEST(OpenclCommands, OfAQueueWhoseHandleIsKnown)
{
    const long barriers = rig->shim->calls(BARRIER);
    opencl_rig_launch(rig, rig->queues[0], rig->buffer, 1);
    EXPECT_OK(weir_queue_after(rig->queues[1], rig->queues[0]));
    EXPECT_INT_EQ(rig->shim->calls(BARRIER) - barriers, 0);
    EXPECT_TRUE(native_of(rig->queues[1]).queue != NULL);
    EXPECT_INT_EQ(rig->shim->calls(BARRIER) - barriers, 1);
    opencl_rig_launch(rig, rig->queues[0], rig->buffer, 2);
    EXPECT_OK(weir_queue_after(rig->queues[1], rig->queues[0]));
    EXPECT_INT_EQ(rig->shim->calls(BARRIER) - barriers, 2);
    const long markers = rig->shim->calls(MARKER);
    copy(rig, rig->queues[1]);
    const struct weir_event done = test_record(rig->queues[1]);
    EXPECT_INT_EQ(rig->shim->calls(MARKER) - markers, 1);
    EXPECT_OK(weir_event_sync(done, WEIR_FOREVER));
    opencl_rig_expect_numbers(rig->queues[1], rig->other, 0, 2);
}

struct native_call {
    const struct weir_test_opencl *shim;
    long barriers;
};

// Calls of Weir's, which this is none of, would be refused.
static weir_status note_barriers(const struct weir_native_queue *native, void *user)
{
    struct native_call *call = user;
    EXPECT_TRUE(native->queue != NULL);
    call->barriers = call->shim->calls(BARRIER);
    return WEIR_OK;
}

// It comes after the wait, and the record after it comes after what it submitted, which only a marker
// does.
OPENCL_RIG_TEST(OpenclCommands, OfANativeCall)
{
    struct native_call call = {.shim = rig->shim};
    const long barriers = rig->shim->calls(BARRIER);
    opencl_rig_launch(rig, rig->queues[0], rig->buffer, 1);
    opencl_rig_launch(rig, rig->queues[1], rig->other, 4);
    EXPECT_OK(weir_queue_after(rig->queues[1], rig->queues[0]));
    EXPECT_OK(weir_queue_native_array(rig->queues[1], note_barriers, &call, NULL, 0));
    EXPECT_INT_EQ(call.barriers - barriers, 1);
    const long markers = rig->shim->calls(MARKER);
    EXPECT_OK(weir_event_sync(test_record(rig->queues[1]), WEIR_FOREVER));
    EXPECT_INT_EQ(rig->shim->calls(MARKER) - markers, 1);

    opencl_rig_launch(rig, rig->queues[1], rig->other, 5);
    EXPECT_OK(weir_queue_native_array(rig->queues[1], note_barriers, &call, NULL, 0));
    EXPECT_OK(weir_event_sync(test_record(rig->queues[1]), WEIR_FOREVER));
    EXPECT_INT_EQ(rig->shim->calls(MARKER) - markers, 2);
    opencl_rig_expect_numbers(rig->queues[1], rig->other, 0, 5);
}

// Failures.

// A copy that the driver ended because the launch that it waits for had failed: the cause is the launch's.
OPENCL_RIG_TEST(OpenclCommands, ACopyAfterAFailedLaunch)
{
    const struct weir_event first = opencl_rig_fail(rig, -5);
    EXPECT_OK(weir_queue_wait(rig->queues[1], first));
    copy(rig, rig->queues[1]);
    const struct weir_event second = test_record(rig->queues[1]);
    EXPECT_FAILURE(weir_event_sync(second, WEIR_FOREVER), WEIR_ERROR_DEVICE, "waits for one",
                   "CL_OUT_OF_RESOURCES");
    EXPECT_INT_EQ(weir_event_sync(first, WEIR_FOREVER), WEIR_ERROR_DEVICE);
    opencl_rig_recover(rig);
}

// The wait for the failed launch has no command yet when the queue is recovered, and later ones do not
// inherit it.
OPENCL_RIG_TEST(OpenclCommands, ARecoveredQueueHasNoWaits)
{
    const struct weir_event first = opencl_rig_fail(rig, -1);
    EXPECT_OK(weir_queue_wait(rig->queues[1], first));
    EXPECT_INT_EQ(weir_queue_sync(rig->queues[1], WEIR_FOREVER), WEIR_ERROR_DEVICE);
    EXPECT_OK(weir_queue_recover(rig->queues[1]));
    opencl_rig_expect_works(rig, rig->queues[1], 4);
    EXPECT_INT_EQ(weir_event_sync(first, WEIR_FOREVER), WEIR_ERROR_DEVICE);
    EXPECT_OK(weir_queue_recover(rig->queues[0]));
    opencl_rig_expect_works(rig, rig->queues[0], 5);
}

// The last command is the failed launch, and no record takes its event after the recovery.
OPENCL_RIG_TEST(OpenclCommands, ARecordAfterARecovery)
{
    EXPECT_INT_EQ(weir_event_sync(opencl_rig_fail(rig, -5), WEIR_FOREVER), WEIR_ERROR_DEVICE);
    EXPECT_OK(weir_queue_recover(rig->queues[0]));
    const struct weir_event after = test_record(rig->queues[0]);
    EXPECT_OK(weir_queue_wait(rig->queues[1], after));
    copy(rig, rig->queues[1]);
    EXPECT_OK(weir_event_sync(after, WEIR_FOREVER));
    EXPECT_OK(weir_event_sync(test_record(rig->queues[1]), WEIR_FOREVER));
}

static weir_status try_to_wait(const struct opencl_rig *rig)
{
    opencl_rig_launch(rig, rig->queues[0], rig->buffer, 1);
    return weir_queue_after(rig->queues[1], rig->queues[0]);
}

static weir_status try_to_copy(const struct opencl_rig *rig)
{
    EXPECT_OK(try_to_wait(rig));
    return weir_queue_copy(rig->queues[1], rig->other, 0, rig->buffer, 0, OPENCL_RIG_BYTES);
}

static weir_status try_to_wait_often(const struct opencl_rig *rig)
{
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; i <= LIMIT && status == WEIR_OK; i++)
        status = try_to_wait(rig);
    return status;
}

static weir_status try_to_record(const struct opencl_rig *rig)
{
    struct weir_event event;
    EXPECT_OK(try_to_wait(rig));
    return weir_queue_record(rig->queues[1], &event);
}

// Each call of the driver's that may refuse. The queue works after it was recovered, and what it waited for is
// not forgotten by then.
OPENCL_RIG_TEST(OpenclCommands, ThatTheDriverRefuses)
{
    static const struct {
        const char *name;
        long n; // the call that is refused
        weir_status (*attempt)(const struct opencl_rig *rig);
    } cases[] = {
        {"clRetainEvent", 3, try_to_wait}, // after the launch and the record
        {BARRIER, 1, try_to_wait_often},
        {"clEnqueueCopyBuffer", 1, try_to_copy},
        {MARKER, 2,
         try_to_record}, // the first is the other queue's, where more commands are expected
    };
    // From now on the first launch before a record has its event, which nothing else holds.
    rig->shim->fail("clRetainEvent", 1, 0);
    opencl_rig_launch(rig, rig->queues[0], rig->buffer, 1);
    EXPECT_INT_EQ(rig->shim->struck(), 1);
    const long markers = rig->shim->calls(MARKER);
    EXPECT_OK(weir_event_sync(test_record(rig->queues[0]), WEIR_FOREVER));
    EXPECT_INT_EQ(rig->shim->calls(MARKER) - markers, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig->shim->fail(cases[i].name, cases[i].n, 0);
        EXPECT_FAILURE(cases[i].attempt(rig), WEIR_ERROR_DEVICE, cases[i].name);
        EXPECT_INT_EQ(rig->shim->struck(), 1);
        EXPECT_OK(weir_queue_recover(rig->queues[1]));
        opencl_rig_expect_works(rig, rig->queues[1], (uint32_t)i);
        opencl_rig_expect_works(rig, rig->queues[0], (uint32_t)i);
    }
    rig->shim->fail(NULL, 0, 0);
}

// The barrier that a recovery needs, whose waits are over after that, and the one of a handle.
OPENCL_RIG_TEST(OpenclCommands, WhoseBarrierIsRefused)
{
    struct weir_native_queue native = {.struct_size = sizeof native};
    EXPECT_OK(try_to_wait(rig));
    rig->shim->fail(BARRIER, 1, 0);
    EXPECT_FAILURE(weir_queue_get_native(rig->queues[1], &native), WEIR_ERROR_DEVICE, BARRIER);
    EXPECT_TRUE(native.queue == NULL);
    rig->shim->fail("clEnqueueCopyBuffer", 1, 0);
    EXPECT_INT_EQ(weir_queue_copy(rig->queues[1], rig->other, 0, rig->buffer, 0, OPENCL_RIG_BYTES),
                  WEIR_ERROR_DEVICE);
    rig->shim->fail(BARRIER, 1, 0);
    EXPECT_INT_EQ(weir_queue_recover(rig->queues[1]), WEIR_ERROR_DEVICE);
    rig->shim->fail(BARRIER, 1, 0);
    EXPECT_OK(weir_queue_recover(rig->queues[1]));
    EXPECT_INT_EQ(rig->shim->struck(), 0);
    rig->shim->fail(NULL, 0, 0);
    opencl_rig_expect_works(rig, rig->queues[1], 2);
}
