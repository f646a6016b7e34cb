// Every call that the OpenCL backend makes fails once in turn, while one program runs
// that makes all of them. In each case nothing crashes or hangs, and the error names
// the call. The address sanitizer checks for leaks. The failing library forwards to
// the machine's own OpenCL, which should be PoCL.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "kernels/conformance/conformance.h"
#include "tests/support/libopencl/control.h"
#include "tests/support/test.h"

#define GUARD_NS (UINT64_C(60) * 1000000000u)
#define BYTES 4096

static const char library[] = "tests/support/libopencl/libOpenCL.so.1";

// The variants that decide which calls are made.
static const struct configuration {
    const char *name;
    int no_svm;
    int cached;
} configurations[] = {
    {"shared memory, programs from source", 0, 0},
    {"pinned memory, programs from the cache", 1, 1},
    {"shared memory, programs from the cache", 0, 1},
};

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
    weir_buffer *other_buffer; // DEVICE too
    weir_buffer *host_buffer;
    weir_buffer *wrapped;
    weir_queue *queue_wrapped; // the first queue's
    weir_buffer *adopted;      // the DEVICE buffer's memory
    weir_buffer *constant;     // of the built program
    weir_program *bundled;
    weir_program *built;
    weir_kernel *iota;
    weir_kernel *twice;
};

static _Alignas(4096) unsigned char memory[BYTES];

static const struct weir_test_opencl *shim(void)
{
    void *handle = dlopen(weir_test_runfile(library), RTLD_NOW | RTLD_LOCAL);
    const struct weir_test_opencl *found = handle ? dlsym(handle, WEIR_TEST_OPENCL_SYMBOL) : NULL;
    if (!found)
        weir_test_fail(__FILE__, __LINE__, "%s", dlerror());
    return found;
}

static weir_status open_runtime(const struct configuration *configuration, weir_runtime **out)
{
    static const char *cache;
    char text[1024];
    if (!cache)
        cache = weir_test_temp_dir();
    shim()->hide_svm(configuration->no_svm);
    // PoCL's programs are not kept.
    shim()->play(configuration->cached ? WEIR_TEST_OPENCL_ANOTHER_NAME : 0);
    snprintf(text, sizeof text,
             "[weir]\nbackend = opencl\n[opencl]\nlibrary = %s\ncache = %d\ncache_dir = %s\n",
             library, configuration->cached, cache);
    return weir_open(WEIR_PARAMS(weir_open, .config_path = "test.ini", .config_text = text,
                                 .module_path = weir_test_runfile("backends/opencl")),
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
    TRY(weir_buffer_create(all->device, &params, &all->device_buffer));
    TRY(weir_buffer_create(all->device, &params, &all->other_buffer));
    params.placement = WEIR_PLACE_HOST;
    TRY(weir_buffer_create(all->device, &params, &all->host_buffer));
    return weir_buffer_wrap(all->device, WEIR_PARAMS(weir_wrap, .pointer = memory, .size = BYTES),
                            &all->wrapped);
}

static weir_status wrap_natives(struct objects *all)
{
    struct weir_native_queue queue = {.queue = NULL};
    struct weir_native_buffer buffer = {.memory = NULL};
    struct weir_queue_wrap_params wrap = {.struct_size = sizeof wrap};
    struct weir_adopt_params adopt = {.struct_size = sizeof adopt, .size = BYTES};
    TRY(weir_queue_get_native(all->queues[0], &queue));
    wrap.native = queue.queue;
    TRY(weir_queue_wrap(all->device, &wrap, &all->queue_wrapped));
    TRY(weir_buffer_get_native(all->device_buffer, &buffer));
    adopt.native = (uint64_t)(uintptr_t)buffer.memory;
    return weir_buffer_adopt(all->device, &adopt, &all->adopted);
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
    static const struct weir_image image = {sizeof(struct weir_image), WEIR_IMAGE_OPENCL_C, "",
                                            text, sizeof text - 1};
    static struct weir_bundle bundle;
    bundle = conformance_kernels;
    bundle.images = &image;
    bundle.image_count = 1;
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
    return weir_kernel_create(all->built, "twice", &all->twice);
}

static weir_status create_all(struct objects *all, const struct configuration *configuration)
{
    TRY(open_runtime(configuration, &all->runtime));
    TRY(weir_device_open(all->runtime, NULL, &all->device));
    TRY(create_queues(all));
    TRY(create_buffers(all));
    TRY(wrap_natives(all));
    TRY(create_bundled(all));
    TRY(create_built(all));
    return weir_program_constant(all->built, "in", memory, 64, &all->constant);
}

static weir_status copy_about(struct objects *all, weir_queue *queue)
{
    weir_buffer *const buffers[] = {all->device_buffer, all->host_buffer, all->wrapped,
                                    all->other_buffer};
    for (size_t i = 0; i < 16; i++) {
        weir_buffer *dst = buffers[i / 4];
        weir_buffer *src = buffers[i % 4];
        const struct weir_plane to = {dst, 0, 32};
        const struct weir_plane from = {src, BYTES / 2, 64};
        TRY(weir_queue_copy(queue, dst, 0, src, BYTES / 2, 64));
        TRY(weir_queue_copy_2d(queue, to, from, 16, 4));
        TRY(weir_queue_copy_3d(queue, (struct weir_volume){dst, 0, 16, 64},
                               (struct weir_volume){src, BYTES / 2, 32, 64}, 16, 2, 2));
    }
    for (size_t unit = 1; unit <= 16; unit *= 4)
        for (size_t i = 0; i < 3; i++) {
            TRY(weir_queue_fill(queue, buffers[i], 0, 64, "0123456789abcdef", unit));
            TRY(weir_queue_fill_2d(queue, (struct weir_plane){buffers[i], 0, 32}, 16, 3,
                                   "0123456789abcdef", unit));
        }
    return WEIR_OK;
}

static weir_status launch(struct objects *all, weir_queue *queue)
{
    TRY(weir_queue_launch(queue, all->iota, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                          weir_out(all->device_buffer, 0, 64), 1u, 16u));
    // Two views of one buffer.
    TRY(weir_queue_launch(queue, all->twice, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                          weir_in(all->device_buffer, 0, 64),
                          weir_out(all->device_buffer, BYTES / 2, 64), 16u, weir_local(64)));
    if (weir_device_limits(all->device)->host_in_kernels)
        TRY(weir_queue_launch(queue, all->iota, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                              weir_out(all->host_buffer, 0, 64), 1u, 16u));
    return WEIR_OK;
}

static weir_status wait_for_all(struct objects *all)
{
    struct weir_event events[2];
    uint64_t time;
    char bytes[64];
    for (size_t i = 0; i < 2; i++) {
        TRY(weir_queue_record(all->queues[i], &events[i]));
        TRY(weir_queue_wait(all->queues[!i], events[i]));
        TRY(weir_queue_flush(all->queues[i]));
    }
    const weir_status status = weir_event_query(events[0]);
    if (status < 0)
        return status;
    TRY(weir_event_sync(events[0], GUARD_NS));
    TRY(weir_event_sync(events[1], WEIR_FOREVER));
    TRY(weir_event_time_ns(events[1], &time));
    return weir_download(all->queues[0], bytes, all->device_buffer, 0, sizeof bytes);
}

static weir_status use_natives(struct objects *all)
{
    TRY(weir_queue_copy(all->queue_wrapped, all->adopted, 0, all->host_buffer, 0, 64));
    return weir_queue_sync(all->queue_wrapped, WEIR_FOREVER);
}

// Objects of another queue must outlive the work of this one. An earlier error is
// kept.
static void destroy_wrapped(struct objects *all)
{
    const struct weir_error first = *weir_last_error();
    if (all->queue_wrapped)
        WEIR_IGNORE(weir_queue_recover(all->queue_wrapped));
    weir_error_set(&first);
    weir_queue_destroy(&all->queue_wrapped);
    weir_buffer_destroy(&all->adopted);
}

static weir_status work(struct objects *all, const struct configuration *configuration)
{
    struct weir_event between;
    TRY(create_all(all, configuration));
    // One after the other, since both use the same buffers.
    for (size_t i = 0; i < 2; i++) {
        TRY(copy_about(all, all->queues[i]));
        TRY(launch(all, all->queues[i]));
        TRY(weir_queue_record(all->queues[i], &between));
        TRY(weir_queue_wait(all->queues[!i], between));
    }
    TRY(wait_for_all(all));
    TRY(use_natives(all));
    for (size_t i = 0; i < 2; i++)
        TRY(weir_queue_sync(all->queues[i], WEIR_FOREVER));
    return WEIR_OK;
}

static weir_status run(struct objects *all, const struct configuration *configuration)
{
    const weir_status status = work(all, configuration);
    destroy_wrapped(all);
    TRY(status);
    return weir_device_trim(all->device);
}

static void destroy_all(struct objects *all)
{
    weir_kernel_destroy(&all->iota);
    weir_kernel_destroy(&all->twice);
    weir_program_destroy(&all->bundled);
    weir_program_destroy(&all->built);
    weir_buffer_destroy(&all->constant);
    weir_buffer_destroy(&all->wrapped);
    weir_buffer_destroy(&all->host_buffer);
    weir_buffer_destroy(&all->device_buffer);
    weir_buffer_destroy(&all->other_buffer);
    weir_queue_destroy(&all->queues[0]);
    weir_queue_destroy(&all->queues[1]);
    EXPECT_OK(weir_device_close(&all->device));
    EXPECT_OK(weir_close(&all->runtime));
}

// Calls that release something cannot report an error; the backend continues. For
// queries that fail there is a default. Failures that concern the cache only cost
// time. An allocation is tried again, and so is a build. A record whose event cannot be
// shared is a marker, and a launch needs no kernel object for its arguments alone.
static bool may_pass_unseen(const char *name)
{
    static const char *const unseen[] = {
        "clGetPlatformInfo",
        "clGetDeviceInfo",
        "clGetDeviceIDs",
        "clGetProgramInfo",
        "clGetProgramBuildInfo",
        "clGetEventInfo",
        "clGetEventProfilingInfo",
        "clCreateProgramWithBinary",
        "clBuildProgram",
        "clCreateKernel",
        "clFinish",
        "clFlush",
        "clEnqueueUnmapMemObject",
        "clRetainEvent",
        "clSVMAlloc",
        "clSVMFree",
    };
    if (strncmp(name, "clRelease", strlen("clRelease")) == 0)
        return true;
    for (size_t i = 0; i < sizeof unseen / sizeof *unseen; i++) {
        if (strcmp(unseen[i], name) == 0)
            return true;
    }
    return false;
}

// If the failure means that a device is missing, or less capable, the message says so.
// A build that is tried again has no signatures.
static bool may_be_about_something_else(const char *name)
{
    return strcmp(name, "clBuildProgram") == 0 || strcmp(name, "clGetDeviceInfo") == 0 ||
           strcmp(name, "clGetPlatformInfo") == 0 || strcmp(name, "clGetDeviceIDs") == 0;
}

// Returns false when there are no calls left to fail.
static bool fail_call(const struct configuration *configuration, const char *name, long n)
{
    struct objects all = {NULL};
    weir_test_note("%s: call %ld of %s fails", configuration->name, n, name);
    shim()->fail(name, n, 0);
    const weir_status status = run(&all, configuration);
    const char *text = weir_last_error_text();
    if (status < 0) {
        EXPECT_TRUE(strlen(weir_last_error()->message) > 0);
        if (!may_be_about_something_else(name))
            EXPECT_CONTAINS(text, name);
    } else if (shim()->struck() > 0) {
        EXPECT_TRUE(may_pass_unseen(name));
    }
    destroy_all(&all);
    const bool struck = shim()->struck() > 0;
    shim()->fail(NULL, 0, 0);
    return struck;
}

// Each of the first calls, and then fewer and fewer of those that are made often; with shared memory, and on a
// second device, few.
static void fail_in_turn(const struct configuration *configuration, const char *name)
{
    const char *device = getenv("POCL_DEVICES");
    const bool few = !configuration->no_svm || (device && strcmp(device, "basic") == 0);
    for (long n = 1; fail_call(configuration, name, n);)
        n = few ? 5 * n : n < 6 ? n + 1 : 2 * n;
}

static void succeed(const struct configuration *configuration)
{
    struct objects all = {NULL};
    weir_test_note("%s: nothing fails", configuration->name);
    EXPECT_INT_EQ(run(&all, configuration), WEIR_OK);
    destroy_all(&all);
}

static void fail_every_call(const struct configuration *configuration)
{
    ASSERT_NOT_NULL(shim());
    shim()->fail(NULL, 0, 0);
    succeed(configuration); // and fills the cache
    // Compiling takes long, and matters to what is asked about programs and kernels.
    for (size_t i = 0; shim()->name(i); i++)
        fail_in_turn(configuration->cached || strstr(shim()->name(i), "Program") ||
                             strstr(shim()->name(i), "Kernel")
                         ? configuration
                         : &configurations[2],
                     shim()->name(i));
    succeed(configuration);
    weir_test_note(NULL);
}

WEIR_TEST(OpenclFailures, EveryCallOnceWithSharedMemory)
{
    fail_every_call(&configurations[0]);
}

WEIR_TEST(OpenclFailures, EveryCallOnceWithPinnedMemory)
{
    fail_every_call(&configurations[1]);
}

// PoCL has no priorities, so only the older function is used. Events are retained for plugins that want
// times: launches_test.c.
static bool is_for_others(const char *name)
{
    return strcmp(name, "clCreateCommandQueueWithProperties") == 0 ||
           strcmp(name, "clRetainEvent") == 0;
}

// A call that the program does not make would not be tested.
WEIR_TEST(OpenclFailures, TheProgramMakesEveryCall)
{
    ASSERT_NOT_NULL(shim());
    succeed(&configurations[0]);
    succeed(&configurations[1]);
    succeed(&configurations[1]); // from the cache
    weir_test_note(NULL);
    for (size_t i = 0; shim()->name(i); i++)
        if (shim()->calls(shim()->name(i)) == 0 && !is_for_others(shim()->name(i)))
            weir_test_fail(__FILE__, __LINE__, "%s is never called", shim()->name(i));
}

// The commands that a fill of rows takes: what <weir/queue.h> says.
WEIR_TEST(OpenclCommands, OfAFillOfRows)
{
    struct objects all = {NULL};
    ASSERT_NOT_NULL(shim());
    ASSERT_INT_EQ(create_all(&all, &configurations[1]), WEIR_OK);
    weir_queue *queue = all.queues[0];
    long fills = shim()->calls("clEnqueueFillBuffer");
    long copies = shim()->calls("clEnqueueCopyBufferRect");
    EXPECT_OK(
        weir_queue_fill_2d(queue, (struct weir_plane){all.device_buffer, 0, 4}, 2, 1024, "a", 1));
    EXPECT_INT_EQ(shim()->calls("clEnqueueFillBuffer") - fills, 1);
    EXPECT_INT_EQ(shim()->calls("clEnqueueCopyBufferRect") - copies, 10);
    fills = shim()->calls("clEnqueueFillBuffer");
    EXPECT_OK(
        weir_queue_fill_2d(queue, (struct weir_plane){all.device_buffer, 0, 4}, 4, 1024, "a", 1));
    EXPECT_INT_EQ(shim()->calls("clEnqueueFillBuffer") - fills, 1);
    EXPECT_INT_EQ(shim()->calls("clEnqueueCopyBufferRect") - copies, 10);
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
    destroy_wrapped(&all);
    destroy_all(&all);
}
