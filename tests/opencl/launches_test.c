// A launch whose event ends with an error, while all commands after it succeed, as on PoCL 7: the failing
// library plays it. Whoever waits for it, on the queue, through another queue or in a graph, learns of it.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

#include "kernels/conformance/conformance.h"
#include "tests/support/libopencl/control.h"
#include "tests/support/test.h"

#define EXPECT_OK(call) EXPECT_INT_EQ(call, WEIR_OK)

static const char library[] = "tests/support/libopencl/libOpenCL.so.1";

enum {
    COUNT = 16,
    BYTES = COUNT * sizeof(uint32_t),
    STATUS = -1
};

struct rig {
    const struct weir_test_opencl *shim;
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queues[2];
    weir_buffer *buffer;
    weir_buffer *other;
    weir_program *program;
    weir_kernel *iota;
};

static void open_rig(struct rig *rig, const char *plugins)
{
    char text[512];
    const struct weir_open_params open = {.struct_size = sizeof open,
                                          .config_path = "test.ini",
                                          .config_text = text,
                                          .module_path = weir_test_runfile("lib/weir")};
    const struct weir_buffer_params buffer = {.struct_size = sizeof buffer, .size = BYTES};
    const struct weir_program_params program = {.struct_size = sizeof program,
                                                .bundle = &conformance_kernels};
    void *handle = dlopen(weir_test_runfile(library), RTLD_NOW | RTLD_LOCAL);
    *rig = (struct rig){.shim = handle ? dlsym(handle, WEIR_TEST_OPENCL_SYMBOL) : NULL};
    snprintf(text, sizeof text, "[weir]\nbackend = opencl\n%s[opencl]\nlibrary = %s\ncache = 0\n",
             plugins, library);
    EXPECT_TRUE(rig->shim != NULL);
    EXPECT_OK(weir_open(&open, &rig->runtime));
    EXPECT_OK(weir_device_open(rig->runtime, NULL, &rig->device));
    EXPECT_OK(weir_queue_create(rig->device, NULL, &rig->queues[0]));
    EXPECT_OK(weir_queue_create(rig->device, NULL, &rig->queues[1]));
    EXPECT_OK(weir_buffer_create(rig->device, &buffer, &rig->buffer));
    EXPECT_OK(weir_buffer_create(rig->device, &buffer, &rig->other));
    EXPECT_OK(weir_program_create(rig->device, &program, &rig->program));
    EXPECT_OK(weir_kernel_create(rig->program, "iota", &rig->iota));
}

static void close_rig(struct rig *rig)
{
    rig->shim->fail_launch(0, 0);
    weir_kernel_destroy(&rig->iota);
    weir_program_destroy(&rig->program);
    weir_buffer_destroy(&rig->other);
    weir_buffer_destroy(&rig->buffer);
    weir_queue_destroy(&rig->queues[1]);
    weir_queue_destroy(&rig->queues[0]);
    EXPECT_OK(weir_device_close(&rig->device));
    EXPECT_OK(weir_close(&rig->runtime));
}

static void launch(const struct rig *rig, weir_queue *queue, weir_buffer *buffer, uint32_t first)
{
    EXPECT_OK(weir_queue_launch(queue, rig->iota, weir_dim(1, 1, 1), weir_dim(COUNT, 1, 1),
                                weir_out(buffer, 0, BYTES), first, (uint32_t)COUNT));
}

static struct weir_event record(weir_queue *queue)
{
    struct weir_event event = {0};
    EXPECT_OK(weir_queue_record(queue, &event));
    return event;
}

static void expect_failed(weir_status status, const char *what)
{
    EXPECT_INT_EQ(status, WEIR_ERROR_DEVICE);
    EXPECT_CONTAINS(weir_last_error_text(), what);
    EXPECT_TRUE(strstr(weir_last_error_text(), "CL_DEVICE_NOT_FOUND") == NULL);
}

static void expect_works(const struct rig *rig, weir_queue *queue, uint32_t first)
{
    uint32_t numbers[COUNT] = {0};
    launch(rig, queue, rig->buffer, first);
    EXPECT_OK(weir_download(queue, numbers, rig->buffer, 0, BYTES));
    for (uint32_t i = 0; i < COUNT; i++)
        EXPECT_UINT_EQ(numbers[i], first + i);
}

WEIR_TEST(OpenclLaunches, FailureIsSeenByItsQueue)
{
    struct rig rig;
    open_rig(&rig, "");
    launch(&rig, rig.queues[0], rig.buffer, 1);
    const struct weir_event before = record(rig.queues[0]);
    rig.shim->fail_launch(2, STATUS);
    launch(&rig, rig.queues[0], rig.buffer, 2);
    launch(&rig, rig.queues[0], rig.buffer, 3);
    const struct weir_event after = record(rig.queues[0]);
    EXPECT_OK(weir_event_sync(before, WEIR_FOREVER));
    expect_failed(weir_event_sync(after, WEIR_FOREVER), "event ended with status -1");
    EXPECT_OK(weir_event_sync(before, WEIR_FOREVER));
    EXPECT_INT_EQ(weir_event_query(after), WEIR_ERROR_DEVICE);
    EXPECT_OK(weir_queue_recover(rig.queues[0]));
    expect_works(&rig, rig.queues[0], 7);
    close_rig(&rig);
}

// With an error of OpenCL's own, which is named.
WEIR_TEST(OpenclLaunches, FailureIsSeenByAQuery)
{
    struct rig rig;
    weir_status status = WEIR_NOT_READY;
    open_rig(&rig, "");
    rig.shim->fail_launch(1, -5);
    launch(&rig, rig.queues[0], rig.buffer, 1);
    const struct weir_event event = record(rig.queues[0]);
    while (status == WEIR_NOT_READY)
        status = weir_event_query(event);
    expect_failed(status, "CL_OUT_OF_RESOURCES");
    close_rig(&rig);
}

WEIR_TEST(OpenclLaunches, FailureIsSeenByADownload)
{
    struct rig rig;
    uint32_t numbers[COUNT];
    open_rig(&rig, "");
    rig.shim->fail_launch(1, STATUS);
    launch(&rig, rig.queues[0], rig.buffer, 1);
    expect_failed(weir_download(rig.queues[0], numbers, rig.buffer, 0, BYTES), "status -1");
    close_rig(&rig);
}

// The second queue is waited for only, so the first one is never asked.
WEIR_TEST(OpenclLaunches, FailurePassesThroughAWait)
{
    struct rig rig;
    open_rig(&rig, "");
    rig.shim->fail_launch(1, STATUS);
    launch(&rig, rig.queues[0], rig.buffer, 1);
    const struct weir_event first = record(rig.queues[0]);
    const struct weir_event apart = record(rig.queues[1]);
    EXPECT_OK(weir_queue_wait(rig.queues[1], first));
    launch(&rig, rig.queues[1], rig.other, 2);
    const struct weir_event second = record(rig.queues[1]);
    EXPECT_OK(weir_event_sync(apart, WEIR_FOREVER));
    expect_failed(weir_event_sync(second, WEIR_FOREVER), "waits for one");
    expect_failed(weir_event_sync(first, WEIR_FOREVER), "status -1");
    EXPECT_OK(weir_queue_recover(rig.queues[0]));
    EXPECT_OK(weir_queue_recover(rig.queues[1]));
    expect_works(&rig, rig.queues[1], 9);
    close_rig(&rig);
}

// To and fro: the failure is two waits away.
WEIR_TEST(OpenclLaunches, FailurePassesThroughTwoWaits)
{
    struct rig rig;
    open_rig(&rig, "");
    weir_queue *third = NULL;
    EXPECT_OK(weir_queue_create(rig.device, NULL, &third));
    rig.shim->fail_launch(1, STATUS);
    launch(&rig, rig.queues[0], rig.buffer, 1);
    EXPECT_OK(weir_queue_wait(rig.queues[1], record(rig.queues[0])));
    EXPECT_OK(weir_queue_wait(third, record(rig.queues[1])));
    EXPECT_OK(weir_queue_wait(rig.queues[0], record(third)));
    expect_failed(weir_event_sync(record(third), WEIR_FOREVER), "waits for one");
    weir_queue_destroy(&third);
    close_rig(&rig);
}

// The failed queue is gone before the other is waited for.
WEIR_TEST(OpenclLaunches, FailureOutlivesItsQueue)
{
    struct rig rig;
    open_rig(&rig, "");
    rig.shim->fail_launch(1, STATUS);
    launch(&rig, rig.queues[0], rig.buffer, 1);
    EXPECT_OK(weir_queue_wait(rig.queues[1], record(rig.queues[0])));
    const struct weir_event second = record(rig.queues[1]);
    weir_queue_destroy(&rig.queues[0]);
    expect_failed(weir_event_sync(second, WEIR_FOREVER), "status -1");
    close_rig(&rig);
}

// Two branches, which are replayed on queues of the graph's own.
WEIR_TEST(OpenclLaunches, FailureInAGraph)
{
    struct rig rig;
    weir_graph *graph = NULL;
    open_rig(&rig, "");
    EXPECT_OK(weir_capture_begin(rig.queues[0]));
    const struct weir_event fork = record(rig.queues[0]);
    EXPECT_OK(weir_queue_wait(rig.queues[1], fork));
    launch(&rig, rig.queues[0], rig.buffer, 1);
    launch(&rig, rig.queues[1], rig.other, 2);
    EXPECT_OK(weir_queue_wait(rig.queues[0], record(rig.queues[1])));
    EXPECT_OK(weir_capture_end(rig.queues[0], NULL, &graph));
    EXPECT_OK(weir_queue_graph(rig.queues[0], graph));
    EXPECT_OK(weir_event_sync(record(rig.queues[0]), WEIR_FOREVER));
    for (long n = 1; n <= 2; n++) {
        rig.shim->fail_launch(n, STATUS);
        EXPECT_OK(weir_queue_graph(rig.queues[0], graph));
        expect_failed(weir_event_sync(record(rig.queues[0]), WEIR_FOREVER), "status -1");
        EXPECT_OK(weir_queue_recover(rig.queues[0]));
    }
    weir_graph_destroy(&graph);
    close_rig(&rig);
}

// The driver's own, so that Weir does not know that the queue is done.
static void finish_natively(weir_queue *queue)
{
    struct weir_native_queue native = {.struct_size = sizeof native};
    void *handle = dlopen(weir_test_runfile(library), RTLD_NOW | RTLD_LOCAL);
    int (*finish)(void *) = NULL;
    void *found = dlsym(handle, "clFinish");
    memcpy(&finish, &found, sizeof finish);
    EXPECT_OK(weir_queue_get_native(queue, &native));
    EXPECT_INT_EQ(finish(native.queue), 0);
}

static void launch_many(const struct rig *rig, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        launch(rig, rig->queues[0], rig->buffer, i);
}

// Events of launches that are done are released while others are submitted.
WEIR_TEST(OpenclLaunches, ManyWithoutARecord)
{
    struct rig rig;
    open_rig(&rig, "");
    const long releases = rig.shim->calls("clReleaseEvent");
    rig.shim->fail_launch(100, STATUS);
    launch_many(&rig, 300);
    finish_natively(rig.queues[0]);
    launch_many(&rig, 300);
    EXPECT_TRUE(rig.shim->calls("clReleaseEvent") - releases >= 250);
    expect_failed(weir_event_sync(record(rig.queues[0]), WEIR_FOREVER), "operation 100 is");
    close_rig(&rig);
}

// A plugin that wants times has the events too.
WEIR_TEST(OpenclLaunches, FailureWithTimes)
{
    struct rig rig;
    char plugins[512];
    snprintf(plugins, sizeof plugins, "plugins = trace\n[trace]\nfile = %s/trace.json\n",
             weir_test_temp_dir());
    open_rig(&rig, plugins);
    expect_works(&rig, rig.queues[0], 1);
    rig.shim->fail_launch(1, STATUS);
    launch(&rig, rig.queues[0], rig.buffer, 1);
    expect_failed(weir_event_sync(record(rig.queues[0]), WEIR_FOREVER), "status -1");
    EXPECT_OK(weir_queue_recover(rig.queues[0]));
    rig.shim->fail("clRetainEvent", 1, 0);
    EXPECT_INT_EQ(weir_queue_launch(rig.queues[0], rig.iota, weir_dim(1, 1, 1),
                                    weir_dim(COUNT, 1, 1), weir_out(rig.buffer, 0, BYTES), 1u,
                                    (uint32_t)COUNT),
                  WEIR_ERROR_DEVICE);
    EXPECT_CONTAINS(weir_last_error_text(), "clRetainEvent");
    close_rig(&rig);
}
