// Every call that the CUDA backend makes fails once in turn, while one program runs that
// makes all of them. In each case nothing crashes or hangs, the error names the call, and
// no native object is left. The address sanitizer checks that no memory is left either.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/rig.h"

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
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < 2 && status == WEIR_OK; i++)
        status = weir_queue_create(all->device,
                                   &(struct weir_queue_params){.struct_size =
                                                                   sizeof(struct weir_queue_params),
                                                               .timing = i == 1},
                                   &all->queues[i]);
    return status;
}

static weir_status create_buffers(struct objects *all)
{
    struct weir_buffer_params params = {.struct_size = sizeof params, .size = 4096};
    weir_status status = weir_buffer_create(all->device, &params, &all->device_buffer);
    params.placement = WEIR_PLACE_HOST;
    if (status == WEIR_OK)
        status = weir_buffer_create(all->device, &params, &all->host_buffer);
    params.placement = WEIR_PLACE_MANAGED;
    if (status == WEIR_OK)
        status = weir_buffer_create(all->device, &params, &all->managed);
    if (status == WEIR_OK)
        status = weir_buffer_wrap(all->device,
                                  &(struct weir_wrap_params){.struct_size =
                                                                 sizeof(struct weir_wrap_params),
                                                             .pointer = memory,
                                                             .size = sizeof memory},
                                  &all->wrapped);
    return status;
}

static weir_status create_kernel(struct objects *all)
{
    static struct weir_bundle bundle;
    bundle = rig_bundle(weir_test_image(), 1);
    weir_status status =
        weir_program_create(all->device,
                            &(struct weir_program_params){.struct_size =
                                                              sizeof(struct weir_program_params),
                                                          .bundle = &bundle},
                            &all->program);
    return status == WEIR_OK ? weir_kernel_create(all->program, "iota", &all->kernel) : status;
}

// The caller's own objects: here the stream of a queue and the memory of a buffer.
static weir_status create_of_others(struct objects *all)
{
    struct weir_native_queue queue;
    struct weir_native_buffer buffer;
    weir_status status = weir_queue_get_native(all->queues[0], &queue);
    if (status == WEIR_OK)
        status = weir_buffer_get_native(all->device_buffer, &buffer);
    if (status == WEIR_OK)
        status =
            weir_queue_wrap(all->device,
                            &(struct weir_queue_wrap_params){.struct_size = sizeof(
                                                                 struct weir_queue_wrap_params),
                                                             .native = queue.queue},
                            &all->queue_wrapped);
    if (status < 0)
        return status;
    return weir_buffer_adopt(all->device,
                             &(struct weir_adopt_params){.struct_size =
                                                             sizeof(struct weir_adopt_params),
                                                         .native = buffer.address,
                                                         .size = 4096},
                             &all->adopted);
}

static weir_status create_peer(struct objects *all)
{
    weir_status status =
        weir_device_open(all->runtime,
                         &(struct weir_device_params){.struct_size =
                                                          sizeof(struct weir_device_params),
                                                      .select = "1"},
                         &all->other);
    if (status < 0)
        return status;
    return weir_buffer_create(all->other,
                              &(struct weir_buffer_params){.struct_size =
                                                               sizeof(struct weir_buffer_params),
                                                           .size = 4096},
                              &all->far);
}

static weir_status create_all(struct objects *all)
{
    weir_status status = rig_open_runtime(section, &all->runtime);
    if (status == WEIR_OK)
        status = weir_device_open(all->runtime, NULL, &all->device);
    if (status == WEIR_OK)
        status = create_queues(all);
    if (status == WEIR_OK)
        status = create_buffers(all);
    if (status == WEIR_OK)
        status = create_kernel(all);
    if (status == WEIR_OK)
        status = create_of_others(all);
    return status == WEIR_OK ? create_peer(all) : status;
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
    weir_status status = weir_queue_launch(queue, all->kernel, weir_dim(1, 1, 1),
                                           weir_dim(16, 1, 1), weir_out(all->far, 0, 64), 1u, 16u);
    if (status == WEIR_OK)
        status = weir_queue_copy(queue, all->far, 0, all->device_buffer, 0, 64);
    if (status == WEIR_OK)
        status = weir_queue_copy_2d(queue, to, from, 16, 4);
    if (status == WEIR_OK)
        status = weir_queue_copy_3d(queue, (struct weir_volume){all->far, 0, 8, 32},
                                    (struct weir_volume){all->adopted, 0, 8, 16}, 4, 2, 2);
    return status == WEIR_OK
               ? weir_queue_native(queue, do_nothing, NULL, weir_in(all->adopted, 0, 64))
               : status;
}

static weir_status submit_boxes(struct objects *all, weir_queue *queue,
                                const unsigned char *pattern)
{
    const struct weir_volume to = {all->device_buffer, 0, 8, 32};
    const struct weir_volume from = {all->host_buffer, 0, 8, 16};
    const struct weir_volume back = {all->wrapped, 0, 8, 32};
    weir_status status = weir_queue_copy_3d(queue, to, from, 4, 2, 2);
    if (status == WEIR_OK)
        status = weir_queue_copy_3d(queue, back, from, 4, 2, 2);
    for (size_t unit = 1; unit <= 16 && status == WEIR_OK; unit *= 2) {
        status = weir_queue_fill_2d(queue, (struct weir_plane){all->device_buffer, 0, 32}, 16, 2,
                                    pattern, unit);
        if (status == WEIR_OK)
            status = weir_queue_fill_2d(queue, (struct weir_plane){all->host_buffer, 0, 32}, 16, 2,
                                        pattern, unit);
    }
    return status;
}

static weir_status submit_all(struct objects *all, weir_queue *queue)
{
    static const unsigned char pattern[16] = {1, 2, 3};
    const struct weir_plane to = {all->device_buffer, 0, 32};
    const struct weir_plane from = {all->host_buffer, 0, 64};
    const struct weir_plane back = {all->wrapped, 0, 32};
    weir_status status = weir_queue_copy(queue, all->device_buffer, 0, all->host_buffer, 0, 64);
    for (size_t unit = 1; unit <= 16 && status == WEIR_OK; unit *= 2) {
        status = weir_queue_fill(queue, all->device_buffer, 0, 64, pattern, unit);
        if (status == WEIR_OK)
            status = weir_queue_fill(queue, all->host_buffer, 0, 64, pattern, unit);
    }
    if (status == WEIR_OK)
        status = weir_queue_copy_2d(queue, to, from, 16, 4);
    if (status == WEIR_OK)
        status = weir_queue_copy_2d(queue, back, from, 16, 4);
    if (status == WEIR_OK)
        status = submit_boxes(all, queue, pattern);
    if (status == WEIR_OK)
        status = weir_queue_launch(queue, all->kernel, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                                   weir_out(all->device_buffer, 0, 64), 1u, 16u);
    if (status == WEIR_OK)
        status =
            weir_queue_launch_cooperative(queue, all->kernel, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                                          weir_out(all->device_buffer, 0, 64), 1u, 16u);
    if (status == WEIR_OK)
        status = weir_queue_copy(queue, all->wrapped, 0, all->host_buffer, 0, 64);
    if (status == WEIR_OK)
        status = weir_queue_copy(queue, all->managed, 0, all->host_buffer, 0, 64);
    return status == WEIR_OK ? weir_queue_copy(queue, all->wrapped, 0, all->device_buffer, 0, 64)
                             : status;
}

static weir_status wait_for_all(struct objects *all)
{
    const struct weir_test_cuda *fake = rig_fake();
    struct weir_event events[2] = {{0}, {0}};
    uint64_t time;
    weir_status status = WEIR_OK;
    fake->hold(1); // the driver is queried: nothing is known to be complete
    for (size_t i = 0; i < 2 && status == WEIR_OK; i++) {
        status = weir_queue_record(all->queues[i], &events[i]);
        if (status == WEIR_OK)
            status = weir_queue_wait(all->queues[!i], events[i]);
    }
    if (status == WEIR_OK)
        status = weir_event_query(events[0]);
    fake->hold(0);
    if (status >= 0)
        status = weir_event_sync(events[0], GUARD_NS);
    if (status == WEIR_OK)
        status = weir_event_sync(events[1], WEIR_FOREVER);
    return status == WEIR_OK ? weir_event_time_ns(events[1], &time) : status;
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
    weir_status status =
        weir_graph_set_copy(all->graph, nodes[0], all->device_buffer, 64, all->host_buffer, 64, 64);
    if (status == WEIR_OK)
        status = weir_graph_set_fill(all->graph, nodes[1], all->device_buffer, 64, 64, pattern, 1);
    if (status == WEIR_OK)
        status = weir_graph_set_launch(all->graph, nodes[2], weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                                       arguments, 3);
    return status == WEIR_OK
               ? weir_graph_set_fill(all->graph, nodes[1], all->device_buffer, 0, 64, pattern, 16)
               : status;
}

// The graph is launched on the other queue after an update that builds it again, so that
// the launch has to be ordered after the previous one.
static weir_status run_graph(struct objects *all)
{
    static const unsigned char pattern[16] = {1, 2, 3};
    weir_queue *queue = all->queues[0];
    uint32_t nodes[3];
    weir_status status = weir_capture_begin(queue);
    if (status == WEIR_OK)
        status = weir_queue_copy(queue, all->device_buffer, 0, all->host_buffer, 0, 64);
    if (status == WEIR_OK)
        status = weir_capture_node(queue, &nodes[0]);
    if (status == WEIR_OK)
        status = weir_queue_fill(queue, all->device_buffer, 0, 64, pattern, 1);
    if (status == WEIR_OK)
        status = weir_capture_node(queue, &nodes[1]);
    if (status == WEIR_OK)
        status = weir_queue_launch(queue, all->kernel, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                                   weir_out(all->device_buffer, 0, 64), 1u, 16u);
    if (status == WEIR_OK)
        status = weir_capture_node(queue, &nodes[2]);
    if (status == WEIR_OK)
        status = submit_all(all, queue);
    if (status == WEIR_OK)
        status = weir_capture_end(queue, NULL, &all->graph);
    if (status == WEIR_OK)
        status = weir_queue_graph(queue, all->graph);
    if (status == WEIR_OK)
        status = update_graph(all, nodes);
    return status == WEIR_OK ? weir_queue_graph(all->queues[1], all->graph) : status;
}

// The stream belongs to another queue, and must outlive the work of this one. An earlier
// error is kept.
static void destroy_wrapped(struct objects *all)
{
    const struct weir_error first = *weir_last_error();
    if (all->queue_wrapped)
        weir_queue_recover(all->queue_wrapped);
    weir_error_set(&first);
    weir_queue_destroy(&all->queue_wrapped);
}

static weir_status run(struct objects *all)
{
    weir_status status = create_all(all);
    struct weir_event between = {0};
    // One after the other, since both use the same buffers.
    if (status == WEIR_OK)
        status = submit_all(all, all->queues[0]);
    if (status == WEIR_OK)
        status = submit_to_peer(all, all->queue_wrapped);
    if (status == WEIR_OK)
        status = weir_queue_record(all->queues[0], &between);
    if (status == WEIR_OK)
        status = weir_queue_wait(all->queues[1], between);
    if (status == WEIR_OK)
        status = submit_all(all, all->queues[1]);
    if (status == WEIR_OK)
        status = weir_queue_record(all->queues[1], &between);
    if (status == WEIR_OK)
        status = weir_queue_wait(all->queues[0], between);
    if (status == WEIR_OK)
        status = run_graph(all);
    if (status == WEIR_OK)
        status = wait_for_all(all);
    rig_fake()->hold(0);
    // Destroyed objects are freed when the device is idle next.
    for (size_t i = 0; i < 2 && status == WEIR_OK; i++)
        status = weir_queue_sync(all->queues[i], WEIR_FOREVER);
    if (status == WEIR_OK)
        status = weir_queue_sync(all->queue_wrapped, WEIR_FOREVER);
    // With a wrapped queue every destroy makes records, whose failures are not reported.
    destroy_wrapped(all);
    weir_graph_destroy(&all->graph);
    weir_buffer_destroy(&all->wrapped);
    if (status == WEIR_OK)
        status = weir_queue_sync(all->queues[0], WEIR_FOREVER);
    return status == WEIR_OK ? weir_device_trim(all->device) : status;
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
// are in tests/cuda/graph_calls_test.c.
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

static void fail_in_turn(const char *name, int code)
{
    const struct weir_test_cuda *fake = rig_fake();
    for (long n = 1; n < 1000; n++) {
        struct objects all = {NULL};
        weir_test_note("call %ld of %s fails with %d", n, name, code);
        const long before = fake->live();
        fake->fail(name, n, code);
        weir_status status = run(&all);
        const char *text = weir_last_error_text();
        // A fault that a probe meets is reported by the next call.
        if (status < 0 && fake->struck() > 0 && code == 700 && may_pass_unseen(name))
            EXPECT_INT_EQ(weir_last_error()->native_code, 700);
        else if (status < 0 && fake->struck() > 0)
            EXPECT_CONTAINS(text, name);
        else if (fake->struck() > 0)
            EXPECT_TRUE(may_pass_unseen(name));
        destroy_all(&all);
        const bool struck = fake->struck() > 0;
        fake->fail(NULL, 0, 0);
        if (!may_leave_objects(name))
            ASSERT_INT_EQ(fake->live(), before);
        if (!struck) {
            if (n == 1) // the program makes the call at all
                weir_test_fail(__FILE__, __LINE__, "%s is never called: %s", name, text);
            return;
        }
    }
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
    weir_test_note(NULL);
}

// The same with a fault: whatever is called afterwards fails too, and everything
// can be destroyed.
WEIR_TEST(CudaFailures, EveryCallMeetsAFault)
{
    const struct weir_test_cuda *fake = rig_fake();
    ASSERT_NOT_NULL(fake);
    for (size_t i = 0; fake->name(i); i++) {
        if (is_of_the_program(fake->name(i)) && !may_leave_objects(fake->name(i)))
            fail_in_turn(fake->name(i), 700);
    }
    weir_test_note(NULL);
}

WEIR_TEST(CudaFailures, EveryCallWithAttribution)
{
    const struct weir_test_cuda *fake = rig_fake();
    ASSERT_NOT_NULL(fake);
    section = "attribute_faults = 1";
    for (size_t i = 0; fake->name(i); i++) {
        if (!is_of_the_program(fake->name(i)) || may_leave_objects(fake->name(i)))
            continue;
        fail_in_turn(fake->name(i), 999);
        fail_in_turn(fake->name(i), 700);
    }
    section = "";
    weir_test_note(NULL);
}
