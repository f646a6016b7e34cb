// Every call that the CUDA backend makes fails once in turn, while one program runs that
// makes all of them. In each case nothing crashes or hangs, the error names the call, and
// no native object is left. The address sanitizer checks that no memory is left either.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/rig.h"

#define TRY(call)                         \
    do {                                  \
        const weir_status tried = (call); \
        if (tried != WEIR_OK)             \
            return tried;                 \
    } while (0)

struct objects {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queues[2];
    weir_buffer *device_buffer;
    weir_buffer *host_buffer;
    weir_buffer *managed;
    weir_buffer *wrapped;
    weir_program *program;
    weir_kernel *kernel;
    weir_graph *graph;
    weir_queue *queue_wrapped;
    weir_buffer *adopted;
    weir_device *other; // and a buffer of it
    weir_buffer *far;
};

static _Alignas(4096) unsigned char memory[4096];
static const char *section = ""; // of the configuration

static weir_status create_queues(struct objects *all)
{
    for (size_t i = 0; i < 2; i++)
        TRY(weir_queue_create(all->device, WEIR_PARAMS(weir_queue, .timing = i == 1),
                              &all->queues[i]));
    return WEIR_OK;
}

static weir_status create_buffers(struct objects *all)
{
    struct weir_buffer_params params = {.struct_size = sizeof params, .size = 4096};
    TRY(weir_buffer_create(all->device, &params, &all->device_buffer));
    params.placement = WEIR_PLACE_HOST;
    TRY(weir_buffer_create(all->device, &params, &all->host_buffer));
    params.placement = WEIR_PLACE_MANAGED;
    TRY(weir_buffer_create(all->device, &params, &all->managed));
    TRY(weir_buffer_wrap(all->device,
                         WEIR_PARAMS(weir_wrap, .pointer = memory, .size = sizeof memory),
                         &all->wrapped));
    return WEIR_OK;
}

static weir_status create_kernel(struct objects *all)
{
    static struct weir_bundle bundle;
    bundle = rig_bundle(weir_test_image(), 1);
    TRY(weir_program_create(all->device, WEIR_PARAMS(weir_program, .bundle = &bundle),
                            &all->program));
    return weir_kernel_create(all->program, "iota", &all->kernel);
}

// The caller's own objects: here the stream of a queue and the memory of a buffer.
static weir_status create_of_others(struct objects *all)
{
    struct weir_native_queue queue;
    struct weir_native_buffer buffer;
    TRY(weir_queue_get_native(all->queues[0], &queue));
    TRY(weir_buffer_get_native(all->device_buffer, &buffer));
    TRY(weir_queue_wrap(all->device, WEIR_PARAMS(weir_queue_wrap, .native = queue.queue),
                        &all->queue_wrapped));
    return weir_buffer_adopt(all->device,
                             WEIR_PARAMS(weir_adopt, .native = buffer.address, .size = 4096),
                             &all->adopted);
}

static weir_status create_peer(struct objects *all)
{
    TRY(weir_device_open(all->runtime, WEIR_PARAMS(weir_device, .select = "1"), &all->other));
    return weir_buffer_create(all->other, WEIR_PARAMS(weir_buffer, .size = 4096), &all->far);
}

static weir_status create_all(struct objects *all)
{
    TRY(rig_open_runtime(section, &all->runtime));
    TRY(weir_device_open(all->runtime, NULL, &all->device));
    TRY(create_queues(all));
    TRY(create_buffers(all));
    TRY(create_kernel(all));
    TRY(create_of_others(all));
    return create_peer(all);
}

static weir_status do_nothing(const struct weir_native_queue *native, void *user)
{
    (void)native;
    (void)user;
    return WEIR_OK;
}

static weir_status submit_to_peer(struct objects *all, weir_queue *queue)
{
    const struct weir_plane to = {all->far, 0, 32};
    const struct weir_plane from = {all->adopted, 0, 64};
    TRY(weir_queue_launch(queue, all->kernel, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                          weir_out(all->far, 0, 64), 1u, 16u));
    TRY(weir_queue_copy(queue, all->far, 0, all->device_buffer, 0, 64));
    TRY(weir_queue_copy_2d(queue, to, from, 16, 4));
    TRY(weir_queue_copy_3d(queue, (struct weir_volume){all->far, 0, 8, 32},
                           (struct weir_volume){all->adopted, 0, 8, 16}, 4, 2, 2));
    return weir_queue_native(queue, do_nothing, NULL, weir_in(all->adopted, 0, 64));
}

static weir_status submit_boxes(struct objects *all, weir_queue *queue,
                                const unsigned char *pattern)
{
    const struct weir_volume to = {all->device_buffer, 0, 8, 32};
    const struct weir_volume from = {all->host_buffer, 0, 8, 16};
    const struct weir_volume back = {all->wrapped, 0, 8, 32};
    TRY(weir_queue_copy_3d(queue, to, from, 4, 2, 2));
    TRY(weir_queue_copy_3d(queue, back, from, 4, 2, 2));
    for (size_t unit = 1; unit <= 16; unit *= 2) {
        TRY(weir_queue_fill_2d(queue, (struct weir_plane){all->device_buffer, 0, 32}, 16, 2,
                               pattern, unit));
        TRY(weir_queue_fill_2d(queue, (struct weir_plane){all->host_buffer, 0, 32}, 16, 2, pattern,
                               unit));
    }
    return WEIR_OK;
}

static weir_status submit_all(struct objects *all, weir_queue *queue)
{
    static const unsigned char pattern[16] = {1, 2, 3};
    const struct weir_plane to = {all->device_buffer, 0, 32};
    const struct weir_plane from = {all->host_buffer, 0, 64};
    const struct weir_plane back = {all->wrapped, 0, 32};
    TRY(weir_queue_copy(queue, all->device_buffer, 0, all->host_buffer, 0, 64));
    for (size_t unit = 1; unit <= 16; unit *= 2) {
        TRY(weir_queue_fill(queue, all->device_buffer, 0, 64, pattern, unit));
        TRY(weir_queue_fill(queue, all->host_buffer, 0, 64, pattern, unit));
    }
    TRY(weir_queue_copy_2d(queue, to, from, 16, 4));
    TRY(weir_queue_copy_2d(queue, back, from, 16, 4));
    TRY(submit_boxes(all, queue, pattern));
    TRY(weir_queue_launch(queue, all->kernel, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                          weir_out(all->device_buffer, 0, 64), 1u, 16u));
    TRY(weir_queue_launch_cooperative(queue, all->kernel, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                                      weir_out(all->device_buffer, 0, 64), 1u, 16u));
    TRY(weir_queue_copy(queue, all->wrapped, 0, all->host_buffer, 0, 64));
    TRY(weir_queue_copy(queue, all->managed, 0, all->host_buffer, 0, 64));
    return weir_queue_copy(queue, all->wrapped, 0, all->device_buffer, 0, 64);
}

// The caller lets the streams go on.
static weir_status wait_for_all(struct objects *all)
{
    struct weir_event events[2];
    uint64_t time;
    rig_fake()->hold(1); // the driver is queried: nothing is known to be complete
    for (size_t i = 0; i < 2; i++) {
        TRY(weir_queue_record(all->queues[i], &events[i]));
        TRY(weir_queue_wait(all->queues[!i], events[i]));
    }
    const weir_status status = weir_event_query(events[0]);
    if (status < 0)
        return status;
    rig_fake()->hold(0);
    TRY(weir_event_sync(events[0], GUARD_NS));
    TRY(weir_event_sync(events[1], WEIR_FOREVER));
    return weir_event_time_ns(events[1], &time);
}

// Updates in place, and by building the graph again.
static weir_status update_graph(struct objects *all, const uint32_t *nodes)
{
    static const unsigned char pattern[16] = {1, 2, 3};
    const uint32_t values[] = {7, 16};
    const struct weir_argument arguments[] = {
        weir_out(all->device_buffer, 0, 64),
        weir_value(&values[0], 4),
        weir_value(&values[1], 4),
    };
    TRY(weir_graph_set_copy(all->graph, nodes[0], all->device_buffer, 64, all->host_buffer, 64,
                            64));
    TRY(weir_graph_set_fill(all->graph, nodes[1], all->device_buffer, 64, 64, pattern, 1));
    TRY(weir_graph_set_launch(all->graph, nodes[2], weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                              arguments, 3));
    return weir_graph_set_fill(all->graph, nodes[1], all->device_buffer, 0, 64, pattern, 16);
}

// The graph is launched on the other queue after an update that builds it again, so that
// the launch has to be ordered after the previous one.
static weir_status run_graph(struct objects *all)
{
    static const unsigned char pattern[16] = {1, 2, 3};
    weir_queue *queue = all->queues[0];
    uint32_t nodes[3];
    TRY(weir_capture_begin(queue));
    TRY(weir_queue_copy(queue, all->device_buffer, 0, all->host_buffer, 0, 64));
    TRY(weir_capture_node(queue, &nodes[0]));
    TRY(weir_queue_fill(queue, all->device_buffer, 0, 64, pattern, 1));
    TRY(weir_capture_node(queue, &nodes[1]));
    TRY(weir_queue_launch(queue, all->kernel, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                          weir_out(all->device_buffer, 0, 64), 1u, 16u));
    TRY(weir_capture_node(queue, &nodes[2]));
    TRY(submit_all(all, queue));
    TRY(weir_capture_end(queue, NULL, &all->graph));
    TRY(weir_queue_graph(queue, all->graph));
    TRY(update_graph(all, nodes));
    return weir_queue_graph(all->queues[1], all->graph);
}

// The stream belongs to another queue, and must outlive the work of this one. An earlier
// error is kept.
static void destroy_wrapped(struct objects *all)
{
    const struct weir_error first = *weir_last_error();
    if (all->queue_wrapped)
        WEIR_IGNORE(weir_queue_recover(all->queue_wrapped));
    weir_error_set(&first);
    weir_queue_destroy(&all->queue_wrapped);
}

static weir_status work(struct objects *all)
{
    struct weir_event between;
    TRY(create_all(all));
    TRY(submit_to_peer(all, all->queue_wrapped));
    // One after the other, since both use the same buffers.
    for (size_t i = 0; i < 2; i++) {
        TRY(submit_all(all, all->queues[i]));
        TRY(weir_queue_record(all->queues[i], &between));
        TRY(weir_queue_wait(all->queues[!i], between));
    }
    TRY(run_graph(all));
    TRY(wait_for_all(all));
    // Destroyed objects are freed when the device is idle next.
    for (size_t i = 0; i < 2; i++)
        TRY(weir_queue_sync(all->queues[i], WEIR_FOREVER));
    return weir_queue_sync(all->queue_wrapped, WEIR_FOREVER);
}

static weir_status run(struct objects *all)
{
    const weir_status status = work(all);
    rig_fake()->hold(0);
    // With a wrapped queue every destroy makes records, whose failures are not reported.
    destroy_wrapped(all);
    weir_graph_destroy(&all->graph);
    weir_buffer_destroy(&all->wrapped);
    TRY(status);
    TRY(weir_queue_sync(all->queues[0], WEIR_FOREVER));
    return weir_device_trim(all->device);
}

static void destroy_all(struct objects *all)
{
    weir_graph_destroy(&all->graph);
    weir_kernel_destroy(&all->kernel);
    weir_program_destroy(&all->program);
    weir_buffer_destroy(&all->wrapped);
    weir_buffer_destroy(&all->host_buffer);
    weir_buffer_destroy(&all->managed);
    destroy_wrapped(all);
    weir_buffer_destroy(&all->adopted);
    weir_buffer_destroy(&all->device_buffer);
    weir_buffer_destroy(&all->far);
    weir_queue_destroy(&all->queues[0]);
    weir_queue_destroy(&all->queues[1]);
    EXPECT_OK(weir_device_close(&all->other));
    EXPECT_OK(weir_device_close(&all->device));
    EXPECT_OK(weir_close(&all->runtime));
}

// A destroy function cannot report anything, and continues with the next object; destroys
// also query the context. Enabling peer access is tried again after a failure. A thread's mode beside captures
// matters to captures of others only.
static bool may_pass_unseen(const char *name)
{
    static const char *const names[] = {
        "cuDeviceGetAttribute",
        "cuDevicePrimaryCtxRelease",
        "cuCtxGetCurrent",
        "cuCtxSetCurrent",
        "cuStreamDestroy",
        "cuStreamSynchronize",
        "cuStreamQuery",
        "cuEventDestroy",
        "cuMemPoolDestroy",
        "cuMemFreeAsync",
        "cuMemFreeHost",
        "cuEventQuery",
        "cuMemHostUnregister",
        "cuModuleUnload",
        "cuMemGetInfo",
        "cuEventElapsedTime",
        "cuStreamWriteValue32",
        "cuGraphDestroy",
        "cuGraphExecDestroy",
        "cuDeviceCanAccessPeer",
        "cuCtxEnablePeerAccess",
        "cuMemPoolSetAccess",
        "cuThreadExchangeStreamCaptureMode",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

// Without a current context the driver cannot destroy anything either.
static bool may_leave_objects(const char *name)
{
    return strcmp(name, "cuCtxGetCurrent") == 0 || strcmp(name, "cuCtxSetCurrent") == 0;
}

// Captures are for collectives in graphs: tests/comm/nccl_graph_test.c. Calls and disabled nodes in graphs
// are in graph_test.c.
static bool is_of_the_program(const char *name)
{
    static const char *const others[] = {
        "cuGetErrorName",
        "cuFuncGetParamInfo",
        "cuMemGetInfo",
        "cuStreamBeginCapture",
        "cuStreamEndCapture",
        "cuGraphAddEmptyNode",
        "cuStreamGetCaptureInfo",
        "cuStreamUpdateCaptureDependencies",
        "cuGraphAddChildGraphNode",
        "cuGraphExecChildGraphNodeSetParams",
        "cuGraphAddHostNode",
        "cuGraphGetNodes",
        "cuGraphNodeSetEnabled",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i], name) == 0)
            return false;
    return true;
}

// Returns false when there are no calls left to fail.
static bool fail_call(const char *name, long n, int code)
{
    const struct weir_test_cuda *fake = rig_fake();
    struct objects all = {NULL};
    weir_test_note("call %ld of %s fails with %d", n, name, code);
    const long before = fake->live();
    fake->fail(name, n, code);
    const weir_status status = run(&all);
    bool struck = fake->struck() > 0;
    // A fault that a probe meets is reported by the next call.
    if (status < 0 && struck && code == 700 && may_pass_unseen(name))
        EXPECT_INT_EQ(weir_last_error()->native_code, 700);
    else if (status < 0 && struck)
        EXPECT_CONTAINS(weir_last_error_text(), name);
    else if (struck)
        EXPECT_TRUE(may_pass_unseen(name));
    destroy_all(&all);
    struck = fake->struck() > 0;
    fake->fail(NULL, 0, 0);
    if (!may_leave_objects(name))
        EXPECT_INT_EQ(fake->live(), before);
    return struck;
}

// Each of the first calls, and then fewer and fewer of those that are made often.
static void fail_in_turn(const char *name, int code)
{
    long n = 1;
    while (fail_call(name, n, code))
        n += n < 8 ? 1 : (n + 3) / 4;
    if (n == 1)
        weir_test_fail(__FILE__, __LINE__, "%s is never called", name);
}

WEIR_TEST(CudaFailures, TheProgramSucceeds)
{
    struct objects all = {NULL};
    ASSERT_NOT_NULL(rig_fake());
    EXPECT_OK(run(&all));
    destroy_all(&all);
    EXPECT_INT_EQ(rig_fake()->live(), 0);
}

WEIR_TEST(CudaFailures, EveryCallOnce)
{
    const struct weir_test_cuda *fake = rig_fake();
    ASSERT_NOT_NULL(fake);
    for (size_t i = 0; fake->name(i); i++) {
        if (is_of_the_program(fake->name(i)))
            fail_in_turn(fake->name(i), 999);
    }
}

// The same with a fault, and with attribution: whatever is called afterwards fails too, and everything
// can be destroyed.
WEIR_TEST(CudaFailures, EveryCallMeetsAFault)
{
    const struct weir_test_cuda *fake = rig_fake();
    ASSERT_NOT_NULL(fake);
    section = "attribute_faults = 1";
    for (size_t i = 0; fake->name(i); i++) {
        if (is_of_the_program(fake->name(i)) && !may_leave_objects(fake->name(i)))
            fail_in_turn(fake->name(i), 700);
    }
    section = "";
}
