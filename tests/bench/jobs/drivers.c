// See the header. Libraries stay open until the process ends.
#include "tests/bench/jobs/drivers.h"

#include <stdio.h>
#include <string.h>
#include <weir/kit/symbols.h>

#include "cli/runtime/open.h"

enum {
    LISTED_MOST = 16 // platforms, and devices of one
};

// CUDA.

#define CU(name, ...) SIDE_CU(side->cu, name, __VA_ARGS__)

void side_cuda_check(const struct side_cuda *cu, CUresult result, const char *call)
{
    const char *name = NULL;
    if (result == CUDA_SUCCESS)
        return;
    if (cu->cuGetErrorName)
        cu->cuGetErrorName(result, &name);
    cli_fail(CLI_SETUP, "raw CUDA: %s failed with %s (%d)", call, name ? name : "an unknown error",
             (int)result);
}

static bool cu_init(struct side *side, char *message, size_t size)
{
    static const char *const library = "libcuda.so.1";
    static const struct weir_kit_symbol blocking[] = {
        {"cuMemcpyHtoD_v2", offsetof(struct side_cuda, cuMemcpyHtoD), true},
        {"cuMemcpyDtoH_v2", offsetof(struct side_cuda, cuMemcpyDtoH), true}};
    struct side_cuda *cu = side->cu = cli_allocate(1, sizeof *cu);
    char reason[512];
    int version;
    if (bench.runtime && strcmp(weir_runtime_backend(bench.runtime), "cuda") != 0) {
        snprintf(message, size, "this is not CUDA");
        return false;
    }
    if (!cu_symbols_load("", &cu->symbols, &version, reason, sizeof reason)) {
        snprintf(message, size, "there is no CUDA driver: %s", reason);
        return false;
    }
    void *handle = weir_kit_library_open(&library, 1, message, size);
    if (!handle || !weir_kit_symbols_load(handle, library, blocking, 2, cu, message, size))
        return false;
    const CUresult result = cu->cuInit(0);
    snprintf(message, size, "the CUDA driver cannot be used: cuInit failed with %d", (int)result);
    return result == CUDA_SUCCESS;
}

static void cu_close_queue(struct side *side, unsigned queue)
{
    if (side->cu->queues[queue])
        side->cu->cuStreamDestroy(side->cu->queues[queue]);
    side->cu->queues[queue] = NULL;
}

static void cu_close(void *object)
{
    struct side *side = object;
    struct side_cuda *cu = side->cu;
    for (unsigned i = 0; i < SIDE_QUEUES; i++)
        cu_close_queue(side, i);
    for (unsigned i = 0; i < SIDE_EVENTS + SIDE_QUEUES; i++)
        if (cu->events[i])
            cu->cuEventDestroy(cu->events[i]);
    for (unsigned i = 0; i < SIDE_MEMORIES; i++) {
        if (cu->memories[i])
            cu->cuMemFree(cu->memories[i]);
        if (side->pinned[i])
            cu->cuMemFreeHost(side->pinned[i]);
    }
    if (cu->module)
        cu->cuModuleUnload(cu->module);
    cu->cuCtxSetCurrent(NULL);
    cu->cuDevicePrimaryCtxRelease(cu->device);
}

static void cu_open_device(struct side *side)
{
    CU(cuDeviceGet, &side->cu->device, 0);
    CU(cuDevicePrimaryCtxRetain, &side->cu->context, side->cu->device);
    cli_own(cu_close, side);
    CU(cuCtxSetCurrent, side->cu->context);
}

// A cubin of the device's architecture, else the newest of its generation, else the newest PTX that it takes.
static const struct weir_image *image_for(const struct weir_bundle *bundle, unsigned architecture)
{
    const struct weir_image *cubin = NULL, *ptx = NULL;
    for (uint32_t i = 0; i < bundle->image_count; i++) {
        const struct weir_image *image = &bundle->images[i];
        const unsigned sm = weir_image_sm(image);
        if (sm > architecture)
            continue;
        if (weir_image_is(image, WEIR_IMAGE_CUBIN) && sm / 10 == architecture / 10 &&
            (!cubin || weir_image_sm(cubin) < sm))
            cubin = image;
        if (weir_image_is(image, WEIR_IMAGE_PTX) && (!ptx || weir_image_sm(ptx) < sm))
            ptx = image;
    }
    return cubin ? cubin : ptx;
}

static void cu_load(struct side *side, const struct weir_bundle *bundle)
{
    int major = 0, minor = 0;
    CU(cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
       side->cu->device);
    CU(cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
       side->cu->device);
    const struct weir_image *image = image_for(bundle, (unsigned)(10 * major + minor));
    if (!image)
        cli_fail(CLI_SETUP,
                 "this program has no CUDA kernels for sm_%d%d: it was built without a CUDA "
                 "toolkit",
                 major, minor);
    CU(cuModuleLoadDataEx, &side->cu->module, image->data, 0, NULL, NULL);
}

static void cu_kernel(struct side *side, unsigned kernel, const char *name)
{
    CU(cuModuleGetFunction, &side->cu->kernels[kernel], side->cu->module, name);
}

static void cu_open_queue(struct side *side, unsigned queue)
{
    CU(cuStreamCreateWithPriority, &side->cu->queues[queue], CU_STREAM_NON_BLOCKING, 0);
}

static void cu_memory(struct side *side, unsigned memory, size_t size)
{
    CU(cuMemAlloc, &side->cu->memories[memory], size);
}

static void cu_pinned(struct side *side, unsigned pinned, size_t size)
{
    CU(cuMemHostAlloc, &side->pinned[pinned], size, 0);
    side->pinned_last = pinned;
}

static void cu_copy(struct side *side, unsigned queue, bool up, unsigned memory, size_t at,
                    size_t size)
{
    char *host = (char *)side->pinned[up ? 0 : side->pinned_last] + at;
    const CUdeviceptr device = side->cu->memories[memory] + at;
    if (up)
        CU(cuMemcpyHtoDAsync, device, host, size, side->cu->queues[queue]);
    else
        CU(cuMemcpyDtoHAsync, host, device, size, side->cu->queues[queue]);
}

static void cu_launch(struct side *side, unsigned queue, const struct side_launch *launch)
{
    CUdeviceptr values = side->cu->memories[0] + launch->at;
    uint32_t a = launch->a;
    uint64_t b = launch->b; // whose lower half comes first
    void *arguments[] = {&values, &a, &b};
    CU(cuLaunchKernel, side->cu->kernels[launch->kernel], launch->blocks, 1, 1, launch->block, 1, 1,
       0, side->cu->queues[queue], arguments, NULL);
}

static void cu_record(struct side *side, unsigned queue, unsigned event)
{
    if (!side->cu->events[event])
        CU(cuEventCreate, &side->cu->events[event], CU_EVENT_DISABLE_TIMING);
    CU(cuEventRecord, side->cu->events[event], side->cu->queues[queue]);
}

static void cu_wait(struct side *side, unsigned queue, unsigned event)
{
    CU(cuStreamWaitEvent, side->cu->queues[queue], side->cu->events[event], 0);
}

static void cu_flush(struct side *side, unsigned queue)
{
    (void)side;
    (void)queue;
}

static void cu_sync(struct side *side, unsigned event)
{
    CU(cuEventSynchronize, side->cu->events[event]);
}

static void cu_use_context(struct side *side, bool current)
{
    side->cu->cuCtxSetCurrent(current ? side->cu->context : NULL);
}

static void cu_finish(struct side *side, unsigned queue)
{
    CU(cuStreamSynchronize, side->cu->queues[queue]);
}

// The tests' driver lacks copies that block, and refuses memory that is not pinned.
static void move_pinned(struct side *side, bool up, void *memory, size_t size)
{
    void *pinned;
    CU(cuMemHostAlloc, &pinned, size, 0);
    if (up) {
        memcpy(pinned, memory, size);
        CU(cuMemcpyHtoDAsync, side->cu->memories[0], pinned, size, side->cu->queues[0]);
    } else {
        CU(cuMemcpyDtoHAsync, pinned, side->cu->memories[0], size, side->cu->queues[0]);
    }
    cu_finish(side, 0);
    if (!up)
        memcpy(memory, pinned, size);
    CU(cuMemFreeHost, pinned);
}

static void cu_upload(struct side *side, const void *from, size_t size)
{
    if (side->cu->cuMemcpyHtoD)
        CU(cuMemcpyHtoD, side->cu->memories[0], from, size);
    else
        move_pinned(side, true, (void *)from, size);
}

static void cu_download(struct side *side, void *to, size_t size)
{
    cu_finish(side, 0);
    if (side->cu->cuMemcpyDtoH)
        CU(cuMemcpyDtoH, to, side->cu->memories[0], size);
    else
        move_pinned(side, false, to, size);
}

// All queues are captured from queue 0, to which they return.
static void cu_begin_graph(struct side *side, unsigned queues)
{
    CU(cuStreamBeginCapture, side->cu->queues[0], CU_STREAM_CAPTURE_MODE_RELAXED);
    cu_record(side, 0, SIDE_EVENTS);
    for (unsigned i = 1; i < queues; i++)
        cu_wait(side, i, SIDE_EVENTS);
}

static void *cu_end_graph(struct side *side, unsigned queues)
{
    CUgraph graph;
    CUgraphExec executable;
    for (unsigned i = 1; i < queues; i++) {
        cu_record(side, i, SIDE_EVENTS + i);
        cu_wait(side, 0, SIDE_EVENTS + i);
    }
    CU(cuStreamEndCapture, side->cu->queues[0], &graph);
    const CUresult made = side->cu->cuGraphInstantiateWithFlags(&executable, graph, 0);
    side->cu->cuGraphDestroy(graph);
    side_cuda_check(side->cu, made, "cuGraphInstantiateWithFlags");
    CU(cuGraphUpload, executable, side->cu->queues[0]);
    return executable;
}

static void cu_launch_graph(struct side *side, void *graph)
{
    CU(cuGraphLaunch, graph, side->cu->queues[0]);
}

static void cu_destroy_graph(struct side *side, void *graph)
{
    side->cu->cuGraphExecDestroy(graph);
}

const struct side_calls side_cuda_calls = {
    .name = "raw CUDA",
    .init = cu_init,
    .open_device = cu_open_device,
    .load = cu_load,
    .kernel = cu_kernel,
    .open_queue = cu_open_queue,
    .close_queue = cu_close_queue,
    .memory = cu_memory,
    .pinned = cu_pinned,
    .copy = cu_copy,
    .launch = cu_launch,
    .record = cu_record,
    .wait = cu_wait,
    .flush = cu_flush,
    .use_context = cu_use_context,
    .sync = cu_sync,
    .finish = cu_finish,
    .upload = cu_upload,
    .download = cu_download,
    .begin_graph = cu_begin_graph,
    .end_graph = cu_end_graph,
    .launch_graph = cu_launch_graph,
    .destroy_graph = cu_destroy_graph,
};

// OpenCL, as NVIDIA's overlap sample does it: pinned memory is a buffer with CL_MEM_ALLOC_HOST_PTR that stays
// mapped.

static void cl_check(cl_int code, const char *call)
{
    if (code != CL_SUCCESS)
        cli_fail(CLI_SETUP, "plain OpenCL: %s failed with %d", call, (int)code);
}

#define CL(name, ...) cl_check(side->cl->name(__VA_ARGS__), #name)
// Of those that give an object, and the error last.
#define CL_NEW(out, name, ...) ((out) = side->cl->name(__VA_ARGS__, &code), cl_check(code, #name))

static bool take_device(struct side_opencl *cl, const char *wanted, cl_platform_id platform)
{
    cl_device_id devices[LISTED_MOST];
    char name[256];
    cl_uint count = 0;
    if (cl->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, LISTED_MOST, devices, &count) !=
        CL_SUCCESS)
        return false;
    for (cl_uint i = 0; i < count && i < LISTED_MOST; i++) {
        cl->device = devices[i];
        if (cl->clGetDeviceInfo(devices[i], CL_DEVICE_NAME, sizeof name, name, NULL) ==
                CL_SUCCESS &&
            strcmp(name, wanted) == 0)
            return true;
    }
    return false;
}

static bool cl_init(struct side *side, char *message, size_t size)
{
    struct side_opencl *cl = side->cl = cli_allocate(1, sizeof *cl);
    cl_platform_id platforms[LISTED_MOST];
    cl_uint count = 0;
    char reason[200];
    if (!ocl_symbols_load("libOpenCL.so.1", &cl->symbols, reason, sizeof reason)) {
        snprintf(message, size, "there is no OpenCL: %s", reason);
        return false;
    }
    if (cl->clGetPlatformIDs(LISTED_MOST, platforms, &count) != CL_SUCCESS)
        count = 0;
    for (cl_uint i = 0; i < count && i < LISTED_MOST; i++)
        if (take_device(cl, side->wanted, platforms[i]))
            return true;
    snprintf(message, size, "the OpenCL loader lists no device %s", side->wanted);
    return false;
}

static void forget_events(struct side_opencl *cl, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        if (cl->events[i])
            cl->clReleaseEvent(cl->events[i]);
        cl->events[i] = NULL;
    }
}

static void cl_close_queue(struct side *side, unsigned queue)
{
    forget_events(side->cl, 0, SIDE_EVENTS);
    if (side->cl->queues[queue])
        side->cl->clReleaseCommandQueue(side->cl->queues[queue]);
    side->cl->queues[queue] = NULL;
}

static void cl_close(void *object)
{
    struct side *side = object;
    struct side_opencl *cl = side->cl;
    for (unsigned i = 0; i < SIDE_QUEUES; i++)
        cl_close_queue(side, i);
    for (unsigned i = 0; i < SIDE_MEMORIES; i++) {
        if (cl->memories[i])
            cl->clReleaseMemObject(cl->memories[i]);
        if (cl->mapped[i]) // which ends the mapping
            cl->clReleaseMemObject(cl->mapped[i]);
    }
    if (cl->keeper)
        cl->clReleaseCommandQueue(cl->keeper);
    for (unsigned i = 0; i < SIDE_KERNELS; i++)
        if (cl->kernels[i])
            cl->clReleaseKernel(cl->kernels[i]);
    if (cl->program)
        cl->clReleaseProgram(cl->program);
    cl->clReleaseContext(cl->context);
}

static void cl_open_device(struct side *side)
{
    cl_int code;
    CL_NEW(side->cl->context, clCreateContext, NULL, 1, &side->cl->device, NULL, NULL);
    cli_own(cl_close, side);
}

static void cl_load(struct side *side, const struct weir_bundle *bundle)
{
    const char *source = "";
    cl_int code;
    for (uint32_t i = 0; i < bundle->image_count; i++)
        if (weir_image_is(&bundle->images[i], WEIR_IMAGE_OPENCL_C))
            source = bundle->images[i].data;
    CL_NEW(side->cl->program, clCreateProgramWithSource, side->cl->context, 1, &source, NULL);
    CL(clBuildProgram, side->cl->program, 1, &side->cl->device, "-cl-std=CL1.2", NULL, NULL);
}

static void cl_kernel_of(struct side *side, unsigned kernel, const char *name)
{
    cl_int code;
    CL_NEW(side->cl->kernels[kernel], clCreateKernel, side->cl->program, name);
}

static void cl_open_queue(struct side *side, unsigned queue)
{
    cl_int code;
    CL_NEW(side->cl->queues[queue], clCreateCommandQueue, side->cl->context, side->cl->device, 0);
}

static void cl_memory(struct side *side, unsigned memory, size_t size)
{
    cl_int code;
    CL_NEW(side->cl->memories[memory], clCreateBuffer, side->cl->context, CL_MEM_READ_WRITE, size,
           NULL);
}

static void cl_pinned(struct side *side, unsigned pinned, size_t size)
{
    struct side_opencl *cl = side->cl;
    cl_int code;
    if (!cl->keeper)
        CL_NEW(cl->keeper, clCreateCommandQueue, cl->context, cl->device, 0);
    CL_NEW(cl->mapped[pinned], clCreateBuffer, cl->context,
           CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size, NULL);
    CL_NEW(side->pinned[pinned], clEnqueueMapBuffer, cl->keeper, cl->mapped[pinned], CL_TRUE,
           CL_MAP_READ | CL_MAP_WRITE, 0, size, 0, NULL, NULL);
    side->pinned_last = pinned;
}

static void cl_flush(struct side *side, unsigned queue)
{
    CL(clFlush, side->cl->queues[queue]);
}

static void cl_copy(struct side *side, unsigned queue, bool up, unsigned memory, size_t at,
                    size_t size)
{
    char *host = (char *)side->pinned[up ? 0 : side->pinned_last] + at;
    if (up)
        CL(clEnqueueWriteBuffer, side->cl->queues[queue], side->cl->memories[memory], CL_FALSE, at,
           size, host, 0, NULL, NULL);
    else
        CL(clEnqueueReadBuffer, side->cl->queues[queue], side->cl->memories[memory], CL_FALSE, at,
           size, host, 0, NULL, NULL);
}

// The kernel takes the whole buffer and starts at a global offset: no sub-buffers, which some drivers order
// against each other.
static void cl_launch(struct side *side, unsigned queue, const struct side_launch *launch)
{
    cl_kernel kernel = side->cl->kernels[launch->kernel];
    const size_t first = launch->at / sizeof(uint32_t), block = launch->block;
    const size_t count = launch->blocks * block;
    const uint64_t b = launch->b + first; // whose lower half comes first
    if (!launch->as_before) {
        CL(clSetKernelArg, kernel, 0, sizeof(cl_mem), &side->cl->memories[0]);
        CL(clSetKernelArg, kernel, 1, sizeof launch->a, &launch->a);
        CL(clSetKernelArg, kernel, 2, launch->wide ? sizeof b : sizeof(uint32_t), &b);
    }
    CL(clEnqueueNDRangeKernel, side->cl->queues[queue], kernel, 1, first ? &first : NULL, &count,
       &block, 0, NULL, NULL);
}

static void cl_record(struct side *side, unsigned queue, unsigned event)
{
    forget_events(side->cl, event, event + 1);
    CL(clEnqueueMarkerWithWaitList, side->cl->queues[queue], 0, NULL, &side->cl->events[event]);
}

static void cl_wait(struct side *side, unsigned queue, unsigned event)
{
    CL(clEnqueueBarrierWithWaitList, side->cl->queues[queue], 1, &side->cl->events[event], NULL);
}

static void cl_finish(struct side *side, unsigned queue)
{
    CL(clFinish, side->cl->queues[queue]);
}

static void cl_upload(struct side *side, const void *from, size_t size)
{
    CL(clEnqueueWriteBuffer, side->cl->queues[0], side->cl->memories[0], CL_TRUE, 0, size, from, 0,
       NULL, NULL);
}

static void cl_download(struct side *side, void *to, size_t size)
{
    CL(clEnqueueReadBuffer, side->cl->queues[0], side->cl->memories[0], CL_TRUE, 0, size, to, 0,
       NULL, NULL);
}

const struct side_calls side_opencl_calls = {
    .name = "plain OpenCL",
    .init = cl_init,
    .open_device = cl_open_device,
    .load = cl_load,
    .kernel = cl_kernel_of,
    .open_queue = cl_open_queue,
    .close_queue = cl_close_queue,
    .memory = cl_memory,
    .pinned = cl_pinned,
    .copy = cl_copy,
    .launch = cl_launch,
    .record = cl_record,
    .wait = cl_wait,
    .flush = cl_flush,
    .finish = cl_finish,
    .upload = cl_upload,
    .download = cl_download,
};

bool side_open(struct side *side, const struct side_calls *calls, const struct weir_bundle *bundle)
{
    char message[1024];
    side->calls = calls;
    if (!calls->init(side, message, sizeof message)) {
        bench_note("not measured: %s: %.250s", calls->name, message);
        return false;
    }
    calls->open_device(side);
    if (bundle)
        calls->load(side, bundle);
    return true;
}
