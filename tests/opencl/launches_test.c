// A launch whose event ends with an error, while all commands after it succeed, as on PoCL 7: the failing
// library plays it. Every wait for it, on the queue, through another queue or in a graph, fails.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/opencl/rig.h"

#define STATUS (-1)

static void expect_failed(weir_status status, const char *what)
{
    EXPECT_INT_EQ(status, WEIR_ERROR_DEVICE);
    EXPECT_CONTAINS(weir_last_error_text(), what);
    EXPECT_TRUE(strstr(weir_last_error_text(), "CL_DEVICE_NOT_FOUND") == NULL);
}

WEIR_TEST(OpenclLaunches, FailureIsSeenByItsQueue)
{
    struct opencl_rig rig;
    opencl_rig_open(&rig, "");
    opencl_rig_launch(&rig, rig.queues[0], rig.buffer, 1);
    const struct weir_event before = opencl_rig_record(rig.queues[0]);
    rig.shim->fail_launch(2, STATUS);
    opencl_rig_launch(&rig, rig.queues[0], rig.buffer, 2);
    opencl_rig_launch(&rig, rig.queues[0], rig.buffer, 3);
    const struct weir_event after = opencl_rig_record(rig.queues[0]);
    EXPECT_OK(weir_event_sync(before, WEIR_FOREVER));
    expect_failed(weir_event_sync(after, WEIR_FOREVER), "event ended with status -1");
    EXPECT_OK(weir_event_sync(before, WEIR_FOREVER));
    EXPECT_INT_EQ(weir_event_query(after), WEIR_ERROR_DEVICE);
    EXPECT_OK(weir_queue_recover(rig.queues[0]));
    opencl_rig_expect_works(&rig, rig.queues[0], 7);
    opencl_rig_close(&rig);
}

// With an error of OpenCL's own, which is named.
WEIR_TEST(OpenclLaunches, FailureIsSeenByAQuery)
{
    struct opencl_rig rig;
    weir_status status = WEIR_NOT_READY;
    opencl_rig_open(&rig, "");
    const struct weir_event event = opencl_rig_fail(&rig, -5);
    while (status == WEIR_NOT_READY)
        status = weir_event_query(event);
    expect_failed(status, "CL_OUT_OF_RESOURCES");
    opencl_rig_close(&rig);
}

WEIR_TEST(OpenclLaunches, FailureIsSeenByADownload)
{
    struct opencl_rig rig;
    uint32_t numbers[OPENCL_RIG_COUNT];
    opencl_rig_open(&rig, "");
    rig.shim->fail_launch(1, STATUS);
    opencl_rig_launch(&rig, rig.queues[0], rig.buffer, 1);
    expect_failed(weir_download(rig.queues[0], numbers, rig.buffer, 0, sizeof numbers),
                  "status -1");
    opencl_rig_close(&rig);
}

// The second queue is waited for only, so the first one is never asked.
WEIR_TEST(OpenclLaunches, FailurePassesThroughAWait)
{
    struct opencl_rig rig;
    opencl_rig_open(&rig, "");
    const struct weir_event first = opencl_rig_fail(&rig, STATUS);
    const struct weir_event apart = opencl_rig_record(rig.queues[1]);
    EXPECT_OK(weir_queue_wait(rig.queues[1], first));
    opencl_rig_launch(&rig, rig.queues[1], rig.other, 2);
    const struct weir_event second = opencl_rig_record(rig.queues[1]);
    EXPECT_OK(weir_event_sync(apart, WEIR_FOREVER));
    expect_failed(weir_event_sync(second, WEIR_FOREVER), "waits for one");
    expect_failed(weir_event_sync(first, WEIR_FOREVER), "status -1");
    opencl_rig_recover(&rig);
    opencl_rig_close(&rig);
}

// The driver ends the copy before a launch that runs in the same queue: that one is not waited for.
WEIR_TEST(OpenclLaunches, FailureIsSeenWhileALaunchRuns)
{
    struct opencl_rig rig;
    weir_kernel *spin = NULL;
    weir_status status = WEIR_NOT_READY;
    opencl_rig_open(&rig, "");
    rig.shim->play(WEIR_TEST_OPENCL_EARLY_ERRORS);
    EXPECT_OK(weir_kernel_create(rig.program, "spin", &spin));
    // Two commands are expected before a record from now on, and the second has its event.
    for (int i = 0; i < 2; i++)
        opencl_rig_launch(&rig, rig.queues[1], rig.other, 1);
    EXPECT_OK(weir_event_sync(opencl_rig_record(rig.queues[1]), WEIR_FOREVER));
    const struct weir_event first = opencl_rig_fail(&rig, -5);
    EXPECT_OK(weir_queue_launch(rig.queues[1], spin, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_out(rig.other, 0, sizeof(uint32_t)), (uint32_t)1,
                                (uint64_t)100000000));
    EXPECT_OK(weir_queue_wait(rig.queues[1], first));
    EXPECT_OK(weir_queue_copy(rig.queues[1], rig.other, 0, rig.buffer, 0, OPENCL_RIG_BYTES));
    const struct weir_event second = opencl_rig_record(rig.queues[1]);
    const long waits = rig.shim->calls("clWaitForEvents");
    while (status == WEIR_NOT_READY)
        status = weir_event_query(first);
    expect_failed(weir_event_query(second), "waits for one");
    EXPECT_INT_EQ(rig.shim->calls("clWaitForEvents"), waits);
    opencl_rig_recover(&rig);
    weir_kernel_destroy(&spin);
    opencl_rig_close(&rig);
}

// To and fro: the failure is two waits away.
WEIR_TEST(OpenclLaunches, FailurePassesThroughTwoWaits)
{
    struct opencl_rig rig;
    opencl_rig_open(&rig, "");
    weir_queue *third = NULL;
    EXPECT_OK(weir_queue_create(rig.device, NULL, &third));
    EXPECT_OK(weir_queue_wait(rig.queues[1], opencl_rig_fail(&rig, STATUS)));
    EXPECT_OK(weir_queue_wait(third, opencl_rig_record(rig.queues[1])));
    EXPECT_OK(weir_queue_wait(rig.queues[0], opencl_rig_record(third)));
    expect_failed(weir_event_sync(opencl_rig_record(third), WEIR_FOREVER), "waits for one");
    weir_queue_destroy(&third);
    opencl_rig_close(&rig);
}

// The failed queue is gone before the other is waited for.
WEIR_TEST(OpenclLaunches, FailureOutlivesItsQueue)
{
    struct opencl_rig rig;
    opencl_rig_open(&rig, "");
    EXPECT_OK(weir_queue_wait(rig.queues[1], opencl_rig_fail(&rig, STATUS)));
    const struct weir_event second = opencl_rig_record(rig.queues[1]);
    weir_queue_destroy(&rig.queues[0]);
    expect_failed(weir_event_sync(second, WEIR_FOREVER), "status -1");
    opencl_rig_close(&rig);
}

// Two branches, which are replayed on queues of the graph's own.
static weir_graph *capture_branches(const struct opencl_rig *rig)
{
    weir_graph *graph = NULL;
    EXPECT_OK(weir_capture_begin(rig->queues[0]));
    const struct weir_event fork = opencl_rig_record(rig->queues[0]);
    EXPECT_OK(weir_queue_wait(rig->queues[1], fork));
    opencl_rig_launch(rig, rig->queues[0], rig->buffer, 1);
    opencl_rig_launch(rig, rig->queues[1], rig->other, 2);
    opencl_rig_launch(rig, rig->queues[1], rig->other, 3); // whose event is the record's
    EXPECT_OK(weir_queue_wait(rig->queues[0], opencl_rig_record(rig->queues[1])));
    EXPECT_OK(weir_capture_end(rig->queues[0], NULL, &graph));
    return graph;
}

// Once the queue is recovered, the failure is not in the graph any more.
WEIR_TEST(OpenclLaunches, FailureInAGraph)
{
    struct opencl_rig rig;
    opencl_rig_open(&rig, "");
    weir_graph *graph = capture_branches(&rig);
    EXPECT_OK(weir_queue_graph(rig.queues[0], graph));
    EXPECT_OK(weir_event_sync(opencl_rig_record(rig.queues[0]), WEIR_FOREVER));
    for (long n = 1; n <= 2; n++) {
        rig.shim->fail_launch(n, STATUS);
        EXPECT_OK(weir_queue_graph(rig.queues[0], graph));
        expect_failed(weir_event_sync(opencl_rig_record(rig.queues[0]), WEIR_FOREVER), "status -1");
        EXPECT_OK(weir_queue_recover(rig.queues[0]));
        rig.shim->fail_launch(0, 0);
        EXPECT_OK(weir_queue_graph(rig.queues[0], graph));
        EXPECT_OK(weir_event_sync(opencl_rig_record(rig.queues[0]), WEIR_FOREVER));
    }
    weir_graph_destroy(&graph);
    opencl_rig_close(&rig);
}

// Another queue is recovered, and launches the graph before anything has asked the first one.
WEIR_TEST(OpenclLaunches, FailureInAGraphThatGoesOn)
{
    struct opencl_rig rig;
    opencl_rig_open(&rig, "");
    weir_graph *graph = capture_branches(&rig);
    rig.shim->fail_launch(1, STATUS);
    opencl_rig_launch(&rig, rig.queues[1], rig.buffer, 1);
    expect_failed(weir_event_sync(opencl_rig_record(rig.queues[1]), WEIR_FOREVER), "status -1");
    rig.shim->fail_launch(2, STATUS);
    EXPECT_OK(weir_queue_graph(rig.queues[0], graph));
    const struct weir_event first = opencl_rig_record(rig.queues[0]);
    EXPECT_OK(weir_queue_recover(rig.queues[1]));
    EXPECT_OK(weir_queue_graph(rig.queues[1], graph));
    expect_failed(weir_event_sync(first, WEIR_FOREVER), "status -1");
    weir_graph_destroy(&graph);
    opencl_rig_close(&rig);
}

// The driver's own, so that Weir does not know that the queue is done.
static void finish_natively(weir_queue *queue)
{
    struct weir_native_queue native = {.struct_size = sizeof native};
    void *handle = dlopen(weir_test_runfile(OPENCL_RIG_LIBRARY), RTLD_NOW | RTLD_LOCAL);
    int (*finish)(void *) = NULL;
    void *found = dlsym(handle, "clFinish");
    memcpy(&finish, &found, sizeof finish);
    EXPECT_OK(weir_queue_get_native(queue, &native));
    EXPECT_INT_EQ(finish(native.queue), 0);
}

static void launch_many(const struct opencl_rig *rig, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        opencl_rig_launch(rig, rig->queues[0], rig->buffer, i);
}

// Events of launches that are done are released while others are submitted.
WEIR_TEST(OpenclLaunches, ManyWithoutARecord)
{
    struct opencl_rig rig;
    opencl_rig_open(&rig, "");
    const long releases = rig.shim->calls("clReleaseEvent");
    rig.shim->fail_launch(100, STATUS);
    launch_many(&rig, 300);
    finish_natively(rig.queues[0]);
    launch_many(&rig, 300);
    EXPECT_TRUE(rig.shim->calls("clReleaseEvent") - releases >= 250);
    expect_failed(weir_event_sync(opencl_rig_record(rig.queues[0]), WEIR_FOREVER),
                  "operation 100 is");
    opencl_rig_close(&rig);
}

// A plugin that wants times has the events too.
WEIR_TEST(OpenclLaunches, FailureWithTimes)
{
    struct opencl_rig rig;
    char plugins[512];
    snprintf(plugins, sizeof plugins, "plugins = trace\n[trace]\nfile = %s/trace.json\n",
             weir_test_temp_dir());
    opencl_rig_open(&rig, plugins);
    opencl_rig_expect_works(&rig, rig.queues[0], 1);
    expect_failed(weir_event_sync(opencl_rig_fail(&rig, STATUS), WEIR_FOREVER), "status -1");
    EXPECT_OK(weir_queue_recover(rig.queues[0]));
    rig.shim->fail("clRetainEvent", 1, 0);
    EXPECT_INT_EQ(weir_queue_launch(rig.queues[0], rig.iota, weir_dim(1, 1, 1),
                                    weir_dim(OPENCL_RIG_COUNT, 1, 1),
                                    weir_out(rig.buffer, 0, OPENCL_RIG_BYTES), 1u,
                                    (uint32_t)OPENCL_RIG_COUNT),
                  WEIR_ERROR_DEVICE);
    EXPECT_CONTAINS(weir_last_error_text(), "clRetainEvent");
    opencl_rig_close(&rig);
}
