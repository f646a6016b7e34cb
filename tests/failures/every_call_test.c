// Every call that the CUDA and the OpenCL backend make fails once in turn, while one program runs that makes all of
// them. In each case nothing crashes or hangs, the error names the call, and no native object is left. The address
// sanitizer checks that no memory is left either. The drivers are the fake libcuda, and a library that forwards to
// the machine's own OpenCL, which should be PoCL.
#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

#include "kernels/conformance/conformance.h"
#include "tests/support/libcuda/control.h"
#include "tests/support/libcuda/image.h"
#include "tests/support/libopencl/control.h"
#include "tests/support/own.h"

#define GUARD_NS (UINT64_C(60) * 1000000000u)
#define BYTES 4096

#define CUDA_LIBRARY "tests/support/libcuda/libcuda.so.1"
#define OPENCL_LIBRARY "tests/support/libopencl/libOpenCL.so.1"
#define CUDA_SECTION "[weir]\nbackend = cuda\n[cuda]\nlibrary = " CUDA_LIBRARY "\ncache = 0\n"
#define OPENCL_SECTION "[weir]\nbackend = opencl\n[opencl]\nlibrary = " OPENCL_LIBRARY "\n"

#define TRY(call)                         \
    do {                                  \
        const weir_status tried = (call); \
        if (tried != WEIR_OK)             \
            return tried;                 \
    } while (0)

static const struct weir_test_cuda *cuda(void)
{
    return weir_test_symbol(CUDA_LIBRARY, WEIR_TEST_CUDA_SYMBOL);
}

static const struct weir_test_opencl *opencl(void)
{
    return weir_test_symbol(OPENCL_LIBRARY, WEIR_TEST_OPENCL_SYMBOL);
}

// What decides which calls are made.
struct variant {
    const char *name;
    bool is_cuda;
    const char *settings; // of the backend
    bool no_svm;
    bool cached;
    int code; // that calls fail with
};

static const struct variant shared_memory = {.name = "shared memory, programs from source"};
static const struct variant pinned_cached = {.name = "pinned memory, programs from the cache",
                                             .no_svm = true,
                                             .cached = true};
static const struct variant shared_cached = {.name = "shared memory, programs from the cache",
                                             .cached = true};
static const struct variant errors = {.name = "CUDA", .is_cuda = true, .settings = "", .code = 999};
// With attribution: whatever is called afterwards fails too, and everything can be destroyed.
static const struct variant faults = {.name = "CUDA, faults",
                                      .is_cuda = true,
                                      .settings = "attribute_faults = 1",
                                      .code = 700};

// The driver's controls.

static void fail_next(const struct variant *v, const char *name, long n)
{
    if (v->is_cuda)
        cuda()->fail(name, n, v->code);
    else
        opencl()->fail(name, n, v->code);
}

static bool has_struck(const struct variant *v)
{
    return (v->is_cuda ? cuda()->struck() : opencl()->struck()) > 0;
}

static const char *name_of(const struct variant *v, size_t index)
{
    return v->is_cuda ? cuda()->name(index) : opencl()->name(index);
}

static long calls_of(const struct variant *v, const char *name)
{
    return v->is_cuda ? cuda()->calls(name) : opencl()->calls(name);
}

static long count_live(const struct variant *v)
{
    return v->is_cuda ? cuda()->live() : 0;
}

// Streams of CUDA do nothing meanwhile, so the driver is queried: nothing is known to be complete.
static void hold(const struct variant *v, int held)
{
    if (v->is_cuda)
        cuda()->hold(held);
}

// The program.

struct objects {
    const struct variant *variant;
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queues[2];
    weir_buffer *buffers[4]; // DEVICE, HOST, wrapped, DEVICE
    weir_buffer *managed;    // if there is such memory
    weir_program *bundled;
    weir_kernel *iota;
    weir_program *built; // of OpenCL's
    weir_kernel *twice;
    weir_buffer *constant;     // of the built program
    weir_queue *queue_wrapped; // the first queue's
    weir_buffer *adopted;      // the first buffer's memory
    weir_graph *graph;
    weir_device *other; // of CUDA's, and a buffer of it
    weir_buffer *far;
};

static _Alignas(4096) unsigned char memory[BYTES];
static const unsigned char pattern[16] = {1, 2, 3};

static weir_status open_runtime(const struct variant *v, weir_runtime **out)
{
    static const char *cache;
    char text[1024];
    if (!cache)
        cache = weir_test_temp_dir();
    if (!v->is_cuda) {
        opencl()->hide_svm(v->no_svm);
        // PoCL's programs are not kept.
        opencl()->play(v->cached ? WEIR_TEST_OPENCL_ANOTHER_NAME : 0);
    }
    if (v->is_cuda)
        snprintf(text, sizeof text, CUDA_SECTION "%s\n", v->settings);
    else
        snprintf(text, sizeof text, OPENCL_SECTION "cache = %d\ncache_dir = %s\n", v->cached,
                 cache);
    return weir_open(WEIR_PARAMS(weir_open, .config_path = "test.ini", .config_text = text,
                                 .module_path = weir_test_runfile(v->is_cuda ? "backends/cuda"
                                                                             : "backends/opencl")),
                     out);
}

static weir_status create_queues(struct objects *all)
{
    struct weir_queue_params params = {.struct_size = sizeof params, .label = "first"};
    TRY(weir_queue_create(all->device, &params, &all->queues[0]));
    params.label = "timed";
    params.timing = true;
    params.priority = weir_device_limits(all->device)->priority_highest;
    return weir_queue_create(all->device, &params, &all->queues[1]);
}

static weir_status create_buffers(struct objects *all)
{
    struct weir_buffer_params params = {.struct_size = sizeof params, .size = BYTES};
    TRY(weir_buffer_create(all->device, &params, &all->buffers[0]));
    TRY(weir_buffer_create(all->device, &params, &all->buffers[3]));
    params.placement = WEIR_PLACE_HOST;
    TRY(weir_buffer_create(all->device, &params, &all->buffers[1]));
    params.placement = WEIR_PLACE_MANAGED;
    if (weir_device_limits(all->device)->managed_memory)
        TRY(weir_buffer_create(all->device, &params, &all->managed));
    return weir_buffer_wrap(all->device, WEIR_PARAMS(weir_wrap, .pointer = memory, .size = BYTES),
                            &all->buffers[2]);
}

// A bundle of one kernel, so that building it takes no time.
static weir_status create_bundled(struct objects *all)
{
    static const char text[] =
        "__kernel void iota(__global uint *out, const uint first, const uint n)\n"
        "{\n"
        "    const uint i = (uint)get_global_id(0);\n"
        "    if (i < n) out[i] = first + i;\n"
        "}\n";
    static struct weir_image images[2];
    static struct weir_bundle bundle;
    images[0] = (struct weir_image){sizeof *images, WEIR_IMAGE_OPENCL_C, "", text, sizeof text - 1};
    images[1] = *weir_test_image();
    bundle = conformance_kernels;
    bundle.images = images;
    bundle.image_count = 2;
    TRY(weir_program_create(all->device, WEIR_PARAMS(weir_program, .bundle = &bundle),
                            &all->bundled));
    return weir_kernel_create(all->bundled, "iota", &all->iota);
}

static weir_status create_built(struct objects *all)
{
    static const char source[] =
        "__kernel void twice(__global const uint *in, __global uint *out, uint n,\n"
        "                    __local uint *some)\n"
        "{\n"
        "    uint i = (uint)get_global_id(0);\n"
        "    if (i < n) out[i] = 2u * in[i];\n"
        "}\n";
    TRY(weir_program_create(all->device, WEIR_PARAMS(weir_program, .source = source), &all->built));
    TRY(weir_kernel_create(all->built, "twice", &all->twice));
    return weir_program_constant(all->built, "in", memory, 64, &all->constant);
}

// The caller's own objects: here the queue and the memory of others.
static weir_status wrap_natives(struct objects *all)
{
    struct weir_native_queue queue = {.queue = NULL};
    struct weir_native_buffer buffer = {.memory = NULL};
    TRY(weir_queue_get_native(all->queues[0], &queue));
    TRY(weir_queue_wrap(all->device, WEIR_PARAMS(weir_queue_wrap, .native = queue.queue),
                        &all->queue_wrapped));
    TRY(weir_buffer_get_native(all->buffers[0], &buffer));
    return weir_buffer_adopt(all->device,
                             WEIR_PARAMS(weir_adopt,
                                         .native = all->variant->is_cuda
                                                       ? buffer.address
                                                       : (uint64_t)(uintptr_t)buffer.memory,
                                         .size = BYTES),
                             &all->adopted);
}

static weir_status create_peer(struct objects *all)
{
    TRY(weir_device_open(all->runtime, WEIR_PARAMS(weir_device, .select = "1"), &all->other));
    return weir_buffer_create(all->other, WEIR_PARAMS(weir_buffer, .size = BYTES), &all->far);
}

static weir_status create_all(struct objects *all)
{
    TRY(open_runtime(all->variant, &all->runtime));
    TRY(weir_device_open(all->runtime, NULL, &all->device));
    TRY(create_queues(all));
    TRY(create_buffers(all));
    TRY(create_bundled(all));
    TRY(wrap_natives(all));
    return all->variant->is_cuda ? create_peer(all) : create_built(all);
}

static weir_status copy_about(struct objects *all, weir_queue *queue)
{
    for (size_t i = 0; i < 16; i++) {
        weir_buffer *dst = all->buffers[i / 4];
        weir_buffer *src = all->buffers[i % 4];
        TRY(weir_queue_copy(queue, dst, 0, src, BYTES / 2, 64));
        TRY(weir_queue_copy_2d(queue, (struct weir_plane){dst, 0, 32},
                               (struct weir_plane){src, BYTES / 2, 64}, 16, 4));
        TRY(weir_queue_copy_3d(queue, (struct weir_volume){dst, 0, 16, 64},
                               (struct weir_volume){src, BYTES / 2, 32, 64}, 16, 2, 2));
    }
    if (all->managed)
        TRY(weir_queue_copy(queue, all->managed, 0, all->buffers[1], 0, 64));
    for (size_t unit = 1; unit <= 16; unit *= 2)
        for (size_t i = 0; i < 3; i++) {
            TRY(weir_queue_fill(queue, all->buffers[i], 0, 64, pattern, unit));
            TRY(weir_queue_fill_2d(queue, (struct weir_plane){all->buffers[i], 0, 32}, 16, 3,
                                   pattern, unit));
        }
    return WEIR_OK;
}

static weir_status launch(weir_queue *queue, const struct objects *all, weir_buffer *out)
{
    return weir_queue_launch(queue, all->iota, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                             weir_out(out, 0, 64), 1u, 16u);
}

static weir_status launch_all(struct objects *all, weir_queue *queue)
{
    TRY(launch(queue, all, all->buffers[0]));
    TRY(weir_queue_launch_cooperative(queue, all->iota, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                                      weir_out(all->buffers[0], 0, 64), 1u, 16u));
    if (all->twice) // two views of one buffer
        TRY(weir_queue_launch(queue, all->twice, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                              weir_in(all->buffers[0], 0, 64),
                              weir_out(all->buffers[0], BYTES / 2, 64), 16u, weir_local(64)));
    return weir_device_limits(all->device)->host_in_kernels ? launch(queue, all, all->buffers[1])
                                                            : WEIR_OK;
}

// One queue after the other, since both use the same buffers.
static weir_status submit_all(struct objects *all)
{
    struct weir_event between;
    for (size_t i = 0; i < 2; i++) {
        TRY(copy_about(all, all->queues[i]));
        TRY(launch_all(all, all->queues[i]));
        TRY(weir_queue_record(all->queues[i], &between));
        TRY(weir_queue_wait(all->queues[!i], between));
    }
    return WEIR_OK;
}

static weir_status use_natives(struct objects *all)
{
    weir_queue *queue = all->queue_wrapped;
    TRY(weir_queue_copy(queue, all->adopted, 0, all->buffers[1], 0, 64));
    TRY(weir_queue_native(queue, own_native_nothing, NULL, weir_in(all->adopted, 0, 64)));
    if (all->far) {
        TRY(launch(queue, all, all->far));
        TRY(weir_queue_copy(queue, all->far, 0, all->buffers[0], 0, 64));
        TRY(weir_queue_copy_2d(queue, (struct weir_plane){all->far, 0, 32},
                               (struct weir_plane){all->adopted, 0, 64}, 16, 4));
        TRY(weir_queue_copy_3d(queue, (struct weir_volume){all->far, 0, 8, 32},
                               (struct weir_volume){all->adopted, 0, 8, 16}, 4, 2, 2));
    }
    return weir_queue_sync(queue, WEIR_FOREVER);
}

// Updates in place, and by building the graph again.
static weir_status update_graph(struct objects *all, const uint32_t *nodes)
{
    const uint32_t values[] = {7, 16};
    const struct weir_argument arguments[] = {
        weir_out(all->buffers[0], 0, 64),
        weir_value(&values[0], 4),
        weir_value(&values[1], 4),
    };
    TRY(weir_graph_set_copy(all->graph, nodes[0], all->buffers[0], 64, all->buffers[1], 64, 64));
    TRY(weir_graph_set_fill(all->graph, nodes[1], all->buffers[0], 64, 64, pattern, 1));
    TRY(weir_graph_set_launch(all->graph, nodes[2], weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                              arguments, 3));
    return weir_graph_set_fill(all->graph, nodes[1], all->buffers[0], 0, 64, pattern, 16);
}

// The graph is launched on the other queue after an update that builds it again, so that
// the launch has to be ordered after the previous one.
static weir_status run_graph(struct objects *all)
{
    weir_queue *queue = all->queues[0];
    uint32_t nodes[3];
    TRY(weir_capture_begin(queue));
    TRY(weir_queue_copy(queue, all->buffers[0], 0, all->buffers[1], 0, 64));
    TRY(weir_capture_node(queue, &nodes[0]));
    TRY(weir_queue_fill(queue, all->buffers[0], 0, 64, pattern, 1));
    TRY(weir_capture_node(queue, &nodes[1]));
    TRY(launch(queue, all, all->buffers[0]));
    TRY(weir_capture_node(queue, &nodes[2]));
    TRY(copy_about(all, queue));
    TRY(launch_all(all, queue));
    TRY(weir_capture_end(queue, NULL, &all->graph));
    TRY(weir_queue_graph(queue, all->graph));
    TRY(update_graph(all, nodes));
    return weir_queue_graph(all->queues[1], all->graph);
}

// The caller lets the streams go on.
static weir_status wait_for_all(struct objects *all)
{
    struct weir_event events[2];
    uint64_t time;
    char bytes[64];
    hold(all->variant, 1);
    for (size_t i = 0; i < 2; i++) {
        TRY(weir_queue_record(all->queues[i], &events[i]));
        TRY(weir_queue_wait(all->queues[!i], events[i]));
        TRY(weir_queue_flush(all->queues[i]));
    }
    const weir_status status = weir_event_query(events[0]);
    if (status < 0)
        return status;
    hold(all->variant, 0);
    TRY(weir_event_sync(events[0], GUARD_NS));
    TRY(weir_event_sync(events[1], WEIR_FOREVER));
    TRY(weir_event_time_ns(events[1], &time));
    return weir_download(all->queues[0], bytes, all->buffers[0], 0, sizeof bytes);
}

// Objects of others must outlive the work of this one. An earlier error is kept.
static void destroy_wrapped(struct objects *all)
{
    const struct weir_error first = *weir_last_error();
    if (all->queue_wrapped)
        WEIR_IGNORE(weir_queue_recover(all->queue_wrapped));
    weir_error_set(&first);
    weir_queue_destroy(&all->queue_wrapped);
    weir_buffer_destroy(&all->adopted);
}

static weir_status work(struct objects *all)
{
    TRY(create_all(all));
    TRY(use_natives(all));
    TRY(submit_all(all));
    if (all->variant->is_cuda)
        TRY(run_graph(all));
    TRY(wait_for_all(all));
    for (size_t i = 0; i < 2; i++)
        TRY(weir_queue_sync(all->queues[i], WEIR_FOREVER));
    return WEIR_OK;
}

// Destroyed objects are freed when the device is idle next. With a wrapped queue every destroy makes records, whose
// failures are not reported.
static weir_status run(struct objects *all)
{
    const weir_status status = work(all);
    hold(all->variant, 0);
    destroy_wrapped(all);
    weir_graph_destroy(&all->graph);
    weir_buffer_destroy(&all->buffers[2]);
    TRY(status);
    TRY(weir_queue_sync(all->queues[0], WEIR_FOREVER));
    return weir_device_trim(all->device);
}

static void destroy_all(struct objects *all)
{
    weir_kernel_destroy(&all->iota);
    weir_kernel_destroy(&all->twice);
    weir_program_destroy(&all->bundled);
    weir_program_destroy(&all->built);
    weir_buffer_destroy(&all->constant);
    weir_buffer_destroy(&all->managed);
    weir_buffer_destroy(&all->far);
    for (size_t i = 0; i < 4; i++)
        weir_buffer_destroy(&all->buffers[i]);
    for (size_t i = 0; i < 2; i++)
        weir_queue_destroy(&all->queues[i]);
    EXPECT_OK(weir_device_close(&all->other));
    EXPECT_OK(weir_device_close(&all->device));
    EXPECT_OK(weir_close(&all->runtime));
}

// What failures may do.

// In a list of words, with a space around each.
static bool is_one_of(const char *name, const char *names)
{
    char word[64];
    snprintf(word, sizeof word, " %s ", name);
    return strstr(names, word);
}

// A destroy function cannot report anything, and continues with the next object; destroys also query the context. For
// queries that fail there is a default. Failures that concern the cache only cost time. An allocation is tried again,
// and so are a build and enabling peer access. A record whose event cannot be shared is a marker, and a launch needs
// no kernel object for its arguments alone. A thread's mode beside captures matters to captures of others only.
static bool may_pass_unseen(const char *name)
{
    static const char unseen[] =
        " cuDeviceGetAttribute cuDevicePrimaryCtxRelease cuCtxGetCurrent "
        "cuCtxSetCurrent cuStreamDestroy cuStreamSynchronize cuStreamQuery "
        "cuEventDestroy cuMemPoolDestroy cuMemFreeAsync cuMemFreeHost cuEventQuery "
        "cuMemHostUnregister cuModuleUnload cuMemGetInfo cuEventElapsedTime "
        "cuStreamWriteValue32 cuGraphDestroy cuGraphExecDestroy cuDeviceCanAccessPeer "
        "cuCtxEnablePeerAccess cuMemPoolSetAccess cuThreadExchangeStreamCaptureMode "
        "clGetPlatformInfo clGetDeviceInfo clGetDeviceIDs clGetProgramInfo "
        "clGetProgramBuildInfo clGetEventInfo clGetEventProfilingInfo "
        "clCreateProgramWithBinary clBuildProgram clCreateKernel clFinish clFlush "
        "clEnqueueUnmapMemObject clRetainEvent clSVMAlloc clSVMFree ";
    return strncmp(name, "clRelease", strlen("clRelease")) == 0 || is_one_of(name, unseen);
}

// If the failure means that a device is missing, or less capable, the message says so. A build that is tried again has
// no signatures.
static bool may_be_about_something_else(const char *name)
{
    static const char others[] =
        " clBuildProgram clGetDeviceInfo clGetPlatformInfo clGetDeviceIDs ";
    return is_one_of(name, others);
}

// Without a current context the driver cannot destroy anything either.
static bool may_leave_objects(const char *name)
{
    return strcmp(name, "cuCtxGetCurrent") == 0 || strcmp(name, "cuCtxSetCurrent") == 0;
}

// Captures are for collectives in graphs: tests/comm/nccl_graph_test.c; calls and disabled nodes in graphs are in
// tests/cuda/graph_test.c. PoCL has no priorities, so only the older function is used. Events are retained for plugins
// that want times: launches_test.c.
static bool is_for_others(const char *name)
{
    static const char others[] =
        " cuGetErrorName cuFuncGetParamInfo cuMemGetInfo cuStreamBeginCapture "
        "cuStreamEndCapture cuGraphAddEmptyNode cuStreamGetCaptureInfo "
        "cuStreamUpdateCaptureDependencies cuGraphAddChildGraphNode "
        "cuGraphExecChildGraphNodeSetParams cuGraphAddHostNode cuGraphGetNodes "
        "cuGraphNodeSetEnabled clCreateCommandQueueWithProperties clRetainEvent ";
    return is_one_of(name, others);
}

// Returns false when there are no calls left to fail.
static bool fail_call(const struct variant *v, const char *name, long n)
{
    struct objects all = {.variant = v};
    weir_test_note("%s: call %ld of %s fails", v->name, n, name);
    const long before = count_live(v);
    fail_next(v, name, n);
    const weir_status status = run(&all);
    if (status < 0)
        EXPECT_TRUE(strlen(weir_last_error()->message) > 0);
    // A fault that a probe meets is reported by the next call.
    if (status < 0 && has_struck(v) && v->code == 700 && may_pass_unseen(name))
        EXPECT_INT_EQ(weir_last_error()->native_code, 700);
    else if (status < 0 && has_struck(v) && !may_be_about_something_else(name))
        EXPECT_CONTAINS(weir_last_error_text(), name);
    else if (status >= 0 && has_struck(v))
        EXPECT_TRUE(may_pass_unseen(name));
    destroy_all(&all);
    const bool struck = has_struck(v);
    fail_next(v, NULL, 0);
    if (!may_leave_objects(name))
        EXPECT_INT_EQ(count_live(v), before);
    return struck;
}

// Each of the first calls, and then fewer and fewer of those that are made often; with shared memory, few.
static void fail_in_turn(const struct variant *v, const char *name)
{
    for (long n = 1; fail_call(v, name, n);)
        n = !v->is_cuda && !v->no_svm ? 5 * n : n < 6 ? n + 1 : 2 * n;
}

static void succeed(const struct variant *v)
{
    struct objects all = {.variant = v};
    weir_test_note("%s: nothing fails", v->name);
    fail_next(v, NULL, 0);
    EXPECT_OK(run(&all));
    destroy_all(&all);
    EXPECT_INT_EQ(count_live(v), 0);
    weir_test_note(NULL);
}

static void fail_every_call(const struct variant *v)
{
    succeed(v); // and fills the cache
    for (size_t i = 0; name_of(v, i); i++) {
        const char *name = name_of(v, i);
        // Compiling takes long, and matters to what is asked about programs and kernels.
        const bool compiles = v->is_cuda || strstr(name, "Program") || strstr(name, "Kernel");
        if (!v->is_cuda || (!is_for_others(name) && !(v->code == 700 && may_leave_objects(name))))
            fail_in_turn(compiles || v->cached ? v : &shared_cached, name);
    }
    succeed(v);
}

WEIR_TEST(CudaFailures, EveryCallOnce)
{
    fail_every_call(&errors);
}

WEIR_TEST(CudaFailures, EveryCallMeetsAFault)
{
    fail_every_call(&faults);
}

WEIR_TEST(OpenclFailures, EveryCallOnceWithSharedMemory)
{
    fail_every_call(&shared_memory);
}

WEIR_TEST(OpenclFailures, EveryCallOnceWithPinnedMemory)
{
    fail_every_call(&pinned_cached);
}

// A call that the program does not make would not be tested.
static void expect_every_call(const struct variant *v)
{
    for (size_t i = 0; name_of(v, i); i++)
        if (calls_of(v, name_of(v, i)) == 0 && !is_for_others(name_of(v, i)))
            weir_test_fail(__FILE__, __LINE__, "%s is never called", name_of(v, i));
}

WEIR_TEST(Failures, TheProgramMakesEveryCall)
{
    succeed(&errors);
    expect_every_call(&errors);
    succeed(&shared_memory);
    succeed(&pinned_cached);
    succeed(&pinned_cached); // from the cache
    expect_every_call(&shared_memory);
}
