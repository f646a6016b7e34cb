// A launch whose event ends with an error, while all commands after it succeed, as on PoCL 7: the failing
// library plays it. Every wait for it, on the queue, through another queue or in a graph, fails.

#include "tests/opencl/rig.h"
#include "tests/support/memory.h"

#define STATUS (-1)

static void expect_failed(weir_status status, const char *what)
{
    EXPECT_FAILURE(status, WEIR_ERROR_DEVICE, what);
    EXPECT_NOT_CONTAINS(weir_last_error_text(), "CL_DEVICE_NOT_FOUND");
}

OPENCL_RIG_TEST(OpenclLaunches, FailureIsSeenByItsQueue)
{
    opencl_rig_launch(rig, rig->queues[0], rig->buffer, 1);
    const struct weir_event before = test_record(rig->queues[0]);
    rig->shim->fail_launch(2, STATUS);
    opencl_rig_launch(rig, rig->queues[0], rig->buffer, 2);
    opencl_rig_launch(rig, rig->queues[0], rig->buffer, 3);
    const struct weir_event after = test_record(rig->queues[0]);
    EXPECT_OK(weir_event_sync(before, WEIR_FOREVER));
    expect_failed(weir_event_sync(after, WEIR_FOREVER), "event ended with status -1");
    EXPECT_OK(weir_event_sync(before, WEIR_FOREVER));
    EXPECT_INT_EQ(weir_event_query(after), WEIR_ERROR_DEVICE);
    EXPECT_OK(weir_queue_recover(rig->queues[0]));
    opencl_rig_expect_works(rig, rig->queues[0], 7);
}

// The events of a launch and of a record after it tell nothing of it.
OPENCL_RIG_TEST(OpenclLaunches, FailureOfACopyIsSeenToo)
{
    rig->shim->fail_command("clEnqueueCopyBuffer", 1, -5);
    opencl_rig_launch(rig, rig->queues[0], rig->buffer, 1);
    EXPECT_OK(weir_queue_copy(rig->queues[0], rig->other, 0, rig->buffer, 0, OPENCL_RIG_BYTES));
    opencl_rig_launch(rig, rig->queues[0], rig->buffer, 2);
    expect_failed(weir_event_sync(test_record(rig->queues[0]), WEIR_FOREVER),
                  "CL_OUT_OF_RESOURCES");
    EXPECT_CONTAINS(weir_last_error_text(), "operation 2 is a command that failed");
    EXPECT_OK(weir_queue_recover(rig->queues[0]));
    opencl_rig_expect_works(rig, rig->queues[0], 7);
}

// With an error of OpenCL's own, which is named.
OPENCL_RIG_TEST(OpenclLaunches, FailureIsSeenByAQuery)
{
    weir_status status = WEIR_NOT_READY;
    const struct weir_event event = opencl_rig_fail(rig, -5);
    while (status == WEIR_NOT_READY)
        status = weir_event_query(event);
    expect_failed(status, "CL_OUT_OF_RESOURCES");
}

OPENCL_RIG_TEST(OpenclLaunches, FailureIsSeenByADownload)
{
    uint32_t numbers[OPENCL_RIG_COUNT];
    rig->shim->fail_launch(1, STATUS);
    opencl_rig_launch(rig, rig->queues[0], rig->buffer, 1);
    expect_failed(weir_download(rig->queues[0], numbers, rig->buffer, 0, sizeof numbers),
                  "status -1");
}

// The second queue is waited for only, so the first one is never asked.
OPENCL_RIG_TEST(OpenclLaunches, FailurePassesThroughAWait)
{
    const struct weir_event first = opencl_rig_fail(rig, STATUS);
    const struct weir_event apart = test_record(rig->queues[1]);
    EXPECT_OK(weir_queue_wait(rig->queues[1], first));
    opencl_rig_launch(rig, rig->queues[1], rig->other, 2);
    const struct weir_event second = test_record(rig->queues[1]);
    EXPECT_OK(weir_event_sync(apart, WEIR_FOREVER));
    expect_failed(weir_event_sync(second, WEIR_FOREVER), "waits for one");
    expect_failed(weir_event_sync(first, WEIR_FOREVER), "status -1");
    opencl_rig_recover(rig);
}

// The driver ends the copy before a launch that runs in the same queue: that one is not waited for.
OPENCL_RIG_TEST(OpenclLaunches, FailureIsSeenWhileALaunchRuns)
{
    own_kernel spin = NULL;
    weir_status status = WEIR_NOT_READY;
    rig->shim->play(WEIR_TEST_OPENCL_EARLY_ERRORS);
    EXPECT_OK(weir_kernel_create(rig->program, "spin", &spin));
    // Two commands are expected before a record from now on, and the second has its event.
    for (int i = 0; i < 2; i++)
        opencl_rig_launch(rig, rig->queues[1], rig->other, 1);
    EXPECT_OK(weir_event_sync(test_record(rig->queues[1]), WEIR_FOREVER));
    const struct weir_event first = opencl_rig_fail(rig, -5);
    EXPECT_OK(weir_queue_launch(rig->queues[1], spin, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_out(rig->other, 0, sizeof(uint32_t)), (uint32_t)1,
                                (uint64_t)100000000));
    EXPECT_OK(weir_queue_wait(rig->queues[1], first));
    EXPECT_OK(weir_queue_copy(rig->queues[1], rig->other, 0, rig->buffer, 0, OPENCL_RIG_BYTES));
    const struct weir_event second = test_record(rig->queues[1]);
    const long waits = rig->shim->calls("clWaitForEvents");
    while (status == WEIR_NOT_READY)
        status = weir_event_query(first);
    expect_failed(weir_event_query(second), "waits for one");
    EXPECT_INT_EQ(rig->shim->calls("clWaitForEvents"), waits);
    opencl_rig_recover(rig);
}

// To and fro: the failure is two waits away.
OPENCL_RIG_TEST(OpenclLaunches, FailurePassesThroughTwoWaits)
{
    own_queue third = NULL;
    EXPECT_OK(weir_queue_create(rig->device, NULL, &third));
    EXPECT_OK(weir_queue_wait(rig->queues[1], opencl_rig_fail(rig, STATUS)));
    EXPECT_OK(weir_queue_after(third, rig->queues[1]));
    EXPECT_OK(weir_queue_after(rig->queues[0], third));
    expect_failed(weir_event_sync(test_record(third), WEIR_FOREVER), "waits for one");
}

// The failed queue is gone before the other is waited for.
OPENCL_RIG_TEST(OpenclLaunches, FailureOutlivesItsQueue)
{
    EXPECT_OK(weir_queue_wait(rig->queues[1], opencl_rig_fail(rig, STATUS)));
    const struct weir_event second = test_record(rig->queues[1]);
    weir_queue_destroy(&rig->queues[0]);
    expect_failed(weir_event_sync(second, WEIR_FOREVER), "status -1");
}

// Two branches, which are replayed on queues of the graph's own.
static weir_graph *capture_branches(const struct opencl_rig *rig)
{
    weir_graph *graph = NULL;
    EXPECT_OK(weir_capture_begin(rig->queues[0]));
    EXPECT_OK(weir_queue_after(rig->queues[1], rig->queues[0]));
    opencl_rig_launch(rig, rig->queues[0], rig->buffer, 1);
    opencl_rig_launch(rig, rig->queues[1], rig->other, 2);
    opencl_rig_launch(rig, rig->queues[1], rig->other, 3); // whose event is the record's
    EXPECT_OK(weir_queue_after(rig->queues[0], rig->queues[1]));
    EXPECT_OK(weir_capture_end(rig->queues[0], NULL, &graph));
    return graph;
}

// Once the queue is recovered, the failure is not in the graph any more.
OPENCL_RIG_TEST(OpenclLaunches, FailureInAGraph)
{
    own_graph graph = capture_branches(rig);
    EXPECT_OK(weir_queue_graph(rig->queues[0], graph));
    EXPECT_OK(weir_event_sync(test_record(rig->queues[0]), WEIR_FOREVER));
    for (long n = 1; n <= 2; n++) {
        rig->shim->fail_launch(n, STATUS);
        EXPECT_OK(weir_queue_graph(rig->queues[0], graph));
        expect_failed(weir_event_sync(test_record(rig->queues[0]), WEIR_FOREVER), "status -1");
        EXPECT_OK(weir_queue_recover(rig->queues[0]));
        rig->shim->fail_launch(0, 0);
        EXPECT_OK(weir_queue_graph(rig->queues[0], graph));
        EXPECT_OK(weir_event_sync(test_record(rig->queues[0]), WEIR_FOREVER));
    }
}

// Another queue is recovered, and launches the graph before anything has asked the first one.
OPENCL_RIG_TEST(OpenclLaunches, FailureInAGraphThatGoesOn)
{
    own_graph graph = capture_branches(rig);
    rig->shim->fail_launch(1, STATUS);
    opencl_rig_launch(rig, rig->queues[1], rig->buffer, 1);
    expect_failed(weir_event_sync(test_record(rig->queues[1]), WEIR_FOREVER), "status -1");
    rig->shim->fail_launch(2, STATUS);
    EXPECT_OK(weir_queue_graph(rig->queues[0], graph));
    const struct weir_event first = test_record(rig->queues[0]);
    EXPECT_OK(weir_queue_recover(rig->queues[1]));
    EXPECT_OK(weir_queue_graph(rig->queues[1], graph));
    expect_failed(weir_event_sync(first, WEIR_FOREVER), "status -1");
}

// The driver's own, so that Weir does not know that the queue is done.
static void finish_natively(weir_queue *queue)
{
    struct weir_native_queue native = {.struct_size = sizeof native};
    int (*finish)(void *) = NULL;
    const void *found = weir_test_symbol(OPENCL_RIG_LIBRARY, "clFinish");
    memcpy(&finish, &found, sizeof finish);
    EXPECT_OK(weir_queue_get_native(queue, &native));
    EXPECT_INT_EQ(finish(native.queue), 0);
}

static void launch_many(const struct opencl_rig *rig, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        opencl_rig_launch(rig, rig->queues[0], rig->buffer, i);
}

// The list of events has room for 256, and none is known to be done.
OPENCL_RIG_TEST(OpenclLaunches, NoMemoryForTheEventOfACommand)
{
    const uint32_t value = 0;
    launch_many(rig, 256);
    rig->shim->fail("clGetEventInfo", 1, 0);
    weir_test_fail_allocation(0);
    EXPECT_FAILURE(weir_queue_fill(rig->queues[0], rig->buffer, 0, 4, &value, sizeof value),
                   WEIR_ERROR_OUT_OF_MEMORY, "no host memory is left for the commands of a queue");
    EXPECT_TRUE(weir_test_allocation_failed());
    weir_test_fail_allocation(-1);
    EXPECT_OK(weir_queue_recover(rig->queues[0]));
}

// Events of launches that are done are released while others are submitted.
OPENCL_RIG_TEST(OpenclLaunches, ManyWithoutARecord)
{
    const long releases = rig->shim->calls("clReleaseEvent");
    rig->shim->fail_launch(100, STATUS);
    launch_many(rig, 300);
    finish_natively(rig->queues[0]);
    launch_many(rig, 300);
    EXPECT_TRUE(rig->shim->calls("clReleaseEvent") - releases >= 250);
    expect_failed(weir_event_sync(test_record(rig->queues[0]), WEIR_FOREVER), "operation 100 is");
}

// A plugin that wants times has the events too.
WEIR_TEST(OpenclLaunches, FailureWithTimes)
{
    own_opencl_rig rig = {0};
    char plugins[512];
    snprintf(plugins, sizeof plugins, "plugins = trace\n[trace]\nfile = %s/trace.json\n",
             weir_test_temp_dir());
    opencl_rig_open(&rig, plugins);
    opencl_rig_expect_works(&rig, rig.queues[0], 1);
    expect_failed(weir_event_sync(opencl_rig_fail(&rig, STATUS), WEIR_FOREVER), "status -1");
    EXPECT_OK(weir_queue_recover(rig.queues[0]));
    rig.shim->fail("clRetainEvent", 1, 0);
    EXPECT_FAILURE(weir_queue_launch(rig.queues[0], rig.iota, weir_dim(1, 1, 1),
                                     weir_dim(OPENCL_RIG_COUNT, 1, 1),
                                     weir_out(rig.buffer, 0, OPENCL_RIG_BYTES), 1u,
                                     (uint32_t)OPENCL_RIG_COUNT),
                   WEIR_ERROR_DEVICE, "clRetainEvent");
}

// Which calls of the driver's the arguments of launches take: none in a loop whose arguments stay, whether they
// are whole buffers, parts of them or addresses.

enum {
    PART_BYTES = OPENCL_RIG_COUNT * sizeof(uint32_t)
};

static void launch(const struct opencl_rig *rig, weir_buffer *buffer, size_t offset, size_t size,
                   uint32_t first)
{
    EXPECT_OK(weir_queue_launch(rig->queues[0], rig->iota, weir_dim(1, 1, 1),
                                weir_dim(OPENCL_RIG_COUNT, 1, 1), weir_out(buffer, offset, size),
                                first, (uint32_t)OPENCL_RIG_COUNT));
}

// As on a GPU: buffers are the driver's objects, and parts of them are sub-buffers.
static void open_without_addresses(struct opencl_rig *rig)
{
    opencl_rig_begin(rig, "");
    rig->shim->hide_svm(1);
    EXPECT_OK(weir_close(&rig->runtime));
    opencl_rig_open(rig, "");
}

static void close_without_addresses(struct opencl_rig *rig)
{
    opencl_rig_close(rig);
    rig->shim->hide_svm(0);
}

#define SLOTS_TEST(suite, name)                                            \
    WEIR_TEST_WITH(suite, name, struct opencl_rig, rig,                    \
                   (open_without_addresses(rig), !weir_test_has_failed()), \
                   close_without_addresses(rig))

// The commands that a fill of rows takes: what <weir/queue.h> says.
SLOTS_TEST(OpenclCommands, OfAFillOfRows)
{
    own_buffer rows = NULL;
    EXPECT_OK(weir_buffer_create(rig->device, WEIR_PARAMS(weir_buffer, .size = 4096), &rows));
    for (size_t width = 2; width <= 4; width += 2) {
        const long fills = rig->shim->calls("clEnqueueFillBuffer");
        const long copies = rig->shim->calls("clEnqueueCopyBufferRect");
        EXPECT_OK(weir_queue_fill_2d(rig->queues[0], (struct weir_plane){rows, 0, 4}, width, 1024,
                                     "a", 1));
        EXPECT_INT_EQ(rig->shim->calls("clEnqueueFillBuffer") - fills, 1);
        EXPECT_INT_EQ(rig->shim->calls("clEnqueueCopyBufferRect") - copies, width == 2 ? 10 : 0);
    }
    EXPECT_OK(weir_queue_sync(rig->queues[0], WEIR_FOREVER));
}

// Calls that arguments take.
static long argument_calls(const struct opencl_rig *rig)
{
    static const char *const names[] = {"clSetKernelArg",    "clSetKernelArgSVMPointer",
                                        "clRetainMemObject", "clReleaseMemObject",
                                        "clCreateSubBuffer", "clCreateKernel"};
    long calls = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        calls += rig->shim->calls(names[i]);
    return calls;
}

static void expect_no_calls(const struct opencl_rig *rig, size_t offset, size_t size)
{
    launch(rig, rig->buffer, offset, size, 5);
    const long calls = argument_calls(rig);
    for (int i = 0; i < 20; i++)
        launch(rig, rig->buffer, offset, size, 5);
    EXPECT_INT_EQ(argument_calls(rig), calls);
    opencl_rig_expect_numbers(rig->queues[0], rig->buffer, offset, 5);
}

SLOTS_TEST(OpenclArguments, ThatStayAreNotSetAgain)
{
    expect_no_calls(rig, 0, OPENCL_RIG_BYTES);
    expect_no_calls(rig, 512, PART_BYTES);
}

OPENCL_RIG_TEST(OpenclArguments, OfAddressesThatStayAreNotSetAgain)
{
    expect_no_calls(rig, 0, OPENCL_RIG_BYTES);
    expect_no_calls(rig, 512, PART_BYTES);
}

// The whole and a part that begins with it, another part, and another buffer.
WEIR_TEST(OpenclArguments, OfOneKernelWithOtherRanges)
{
    struct opencl_rig rig;
    for (int addresses = 0; addresses < 2; addresses++) {
        if (addresses)
            opencl_rig_open(&rig, "");
        else
            open_without_addresses(&rig);
        for (uint32_t i = 0; i < 12; i++) {
            weir_buffer *buffer = i % 3 == 2 ? rig.other : rig.buffer;
            const size_t offset = i % 2 * 512;
            launch(&rig, buffer, offset, i % 4 == 0 ? OPENCL_RIG_BYTES : PART_BYTES, i);
            opencl_rig_expect_numbers(rig.queues[0], buffer, offset, i);
        }
        close_without_addresses(&rig);
    }
}

// Each view is gone when the next one comes, and the driver may give the next one its address. Those of
// PoCL 7 and later stay.
SLOTS_TEST(OpenclArguments, ThatOverlapThoseBefore)
{
    const bool stay = atoi(weir_device_get_info(rig->device)->driver) >= 7;
    for (uint32_t i = 0; i < 20; i++) {
        const long views = rig->shim->calls("clCreateSubBuffer");
        const long releases = rig->shim->calls("clReleaseMemObject");
        launch(rig, rig->buffer, 256 + i % 2 * 256, 512, i);
        EXPECT_INT_EQ(rig->shim->calls("clCreateSubBuffer") - views, !stay || i < 2);
        EXPECT_INT_EQ(rig->shim->calls("clReleaseMemObject") - releases, !stay && i > 0);
        opencl_rig_expect_numbers(rig->queues[0], rig->buffer, 256 + i % 2 * 256, i);
    }
}

// With all places taken, a view that the launch has just made is not the one that goes: two views of one range would be two
// memories for some drivers.
SLOTS_TEST(OpenclArguments, ARangeThatComesTwiceInALaunchIsOneView)
{
    enum {
        PLACES = 64 // OCL_VIEW_LIMIT of the backend
    };
    own_buffer parts = NULL;
    own_kernel add = NULL;
    EXPECT_OK(weir_buffer_create(rig->device, WEIR_PARAMS(weir_buffer, .size = (PLACES + 3) * 128),
                                 &parts));
    EXPECT_OK(weir_kernel_create(rig->program, "vector_add", &add));
    for (size_t i = 1; i <= PLACES; i++)
        launch(rig, parts, i * 128, PART_BYTES, 0);
    const long views = rig->shim->calls("clCreateSubBuffer");
    EXPECT_OK(weir_queue_launch(rig->queues[0], add, weir_dim(1, 1, 1),
                                weir_dim(OPENCL_RIG_COUNT, 1, 1),
                                weir_in(parts, (PLACES + 1) * 128, PART_BYTES),
                                weir_in(parts, (PLACES + 2) * 128, PART_BYTES),
                                weir_out(parts, (PLACES + 1) * 128, PART_BYTES),
                                (uint32_t)OPENCL_RIG_COUNT));
    EXPECT_INT_EQ(rig->shim->calls("clCreateSubBuffer") - views, 2);
    EXPECT_OK(weir_queue_sync(rig->queues[0], WEIR_FOREVER));
}

// A part of a buffer for each slot.
static void launch_in_slots(const struct opencl_rig *rig, size_t slots, uint32_t first)
{
    for (size_t i = 0; i < slots; i++)
        launch(rig, i % 2 ? rig->other : rig->buffer, i / 2 * 128, PART_BYTES, first);
}

// Once the slots have come twice, each has a kernel object. Only the number, which changes, is set.
SLOTS_TEST(OpenclArguments, OfSlotsInTurnAreNotSetAgain)
{
    for (uint32_t i = 0; i < 2; i++)
        launch_in_slots(rig, 4, 0);
    const long calls = argument_calls(rig);
    for (uint32_t i = 0; i < 20; i++)
        launch_in_slots(rig, 4, 0);
    EXPECT_INT_EQ(argument_calls(rig), calls);
    launch_in_slots(rig, 4, 7);
    EXPECT_INT_EQ(argument_calls(rig) - calls, 4);
    for (uint32_t i = 0; i < 4; i++)
        opencl_rig_expect_numbers(rig->queues[0], i % 2 ? rig->other : rig->buffer, i / 2 * 128, 7);
}

// Ranges that come once have no kernel object of their own, and without another object the first serves.
SLOTS_TEST(OpenclArguments, OfSlotsWithoutAnotherKernelObject)
{
    const long kernels = rig->shim->calls("clCreateKernel");
    launch_in_slots(rig, 4, 1);
    EXPECT_INT_EQ(rig->shim->calls("clCreateKernel"), kernels);
    rig->shim->fail("clCreateKernel", 1, 0);
    launch_in_slots(rig, 1, 2);
    EXPECT_INT_EQ(rig->shim->struck(), 1);
    rig->shim->fail(NULL, 0, 0);
    opencl_rig_expect_numbers(rig->queues[0], rig->buffer, 0, 2);
    opencl_rig_expect_numbers(rig->queues[0], rig->other, 0, 1);
}

// More ranges in turn than there are kernel objects: 8 are in each of the buffers.
SLOTS_TEST(OpenclArguments, OfMoreSlotsThanKernelObjects)
{
    const long kernels = rig->shim->calls("clCreateKernel");
    for (uint32_t i = 0; i < 2; i++)
        launch_in_slots(rig, 8, i);
    for (uint32_t i = 0; i < 4; i++) {
        launch_in_slots(rig, 16, i);
        launch(rig, rig->buffer, 0, OPENCL_RIG_BYTES, 90 + i);
    }
    EXPECT_INT_EQ(rig->shim->calls("clCreateKernel") - kernels, 15);
    for (size_t i = 1; i < 16; i++)
        opencl_rig_expect_numbers(rig->queues[0], i % 2 ? rig->other : rig->buffer, i / 2 * 128, 3);
    opencl_rig_expect_numbers(rig->queues[0], rig->buffer, 0, 93);
}
