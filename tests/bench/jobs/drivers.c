// See the header. Libraries stay open, and what is made of them there, until the process ends: queues that are
// closed, and graphs, are those of single ways.
#include "tests/bench/jobs/drivers.h"

#include <weir/kit/symbols.h>

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

static void cu_close_queue(struct side *side, unsigned queue)
{
    side->cu->cuStreamDestroy(side->cu->queues[queue]);
}

// The driver refuses what is not for its device. The last image is the newest one.
static bool load_image(struct side *side, const struct weir_bundle *bundle, const char *format)
{
    for (uint32_t i = bundle->image_count; i-- > 0;)
        if (weir_image_is(&bundle->images[i], format) &&
            side->cu->cuModuleLoadDataEx(&side->cu->module, bundle->images[i].data, 0, NULL,
                                         NULL) == CUDA_SUCCESS)
            return true;
    return false;
}

static bool cu_open(struct side *side, const struct weir_bundle *bundle, char *message, size_t size)
{
    static const char *const library = "libcuda.so.1";
    static const struct weir_kit_symbol blocking[] = {
        {"cuMemcpyHtoD_v2", offsetof(struct side_cuda, cuMemcpyHtoD), false},
        {"cuMemcpyDtoH_v2", offsetof(struct side_cuda, cuMemcpyDtoH), false}};
    struct side_cuda *cu = side->cu = cli_allocate(1, sizeof *cu);
    struct weir_native_device first = {.ordinal = 0};
    int version;
    snprintf(message, size, "this is not CUDA");
    if (side->weir.device && (weir_device_get_native(side->weir.device, &first) != WEIR_OK ||
                              strcmp(first.api, WEIR_NATIVE_CUDA) != 0))
        return false;
    void *handle = weir_kit_library_open(&library, 1, message, size);
    if (!handle || !weir_kit_symbols_load(handle, library, blocking, 2, cu, message, size) ||
        !cu_symbols_load("", &cu->symbols, &version, message, size))
        return false;
    CU(cuInit, 0);
    cu->device = first.ordinal;
    CU(cuDevicePrimaryCtxRetain, &cu->context, cu->device);
    CU(cuCtxSetCurrent, cu->context);
    if (bundle && !load_image(side, bundle, WEIR_IMAGE_CUBIN) &&
        !load_image(side, bundle, WEIR_IMAGE_PTX))
        cli_fail(CLI_SETUP,
                 "raw CUDA: no image of %s is for this device; build with a CUDA toolkit",
                 bundle->name);
    return true;
}

static void cu_kernel(struct side *side, unsigned kernel, const char *name)
{
    CU(cuModuleGetFunction, &side->cu->kernels[kernel], side->cu->module, name);
}

static void cu_open_queue(struct side *side, unsigned queue)
{
    CU(cuStreamCreateWithPriority, &side->cu->queues[queue], CU_STREAM_NON_BLOCKING, 0);
}

static void cu_memory(struct side *side, size_t size)
{
    CU(cuMemAlloc, &side->cu->memory, size);
}

static void cu_pinned(struct side *side, unsigned pinned, size_t size)
{
    CU(cuMemHostAlloc, &side->pinned[pinned], size, 0);
    side->pinned_last = pinned;
}

static void cu_copy(struct side *side, unsigned queue, bool up, size_t at, size_t size)
{
    char *host = (char *)side->pinned[up ? 0 : side->pinned_last] + at;
    const CUdeviceptr device = side->cu->memory + at;
    if (up)
        CU(cuMemcpyHtoDAsync, device, host, size, side->cu->queues[queue]);
    else
        CU(cuMemcpyDtoHAsync, host, device, size, side->cu->queues[queue]);
}

static void cu_launch(struct side *side, unsigned queue, const struct side_launch *launch)
{
    CUdeviceptr values = side->cu->memory + launch->at;
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

static void cu_upload(struct side *side, const void *from, size_t size)
{
    CU(cuMemcpyHtoD, side->cu->memory, from, size);
}

static void cu_download(struct side *side, void *to, size_t size)
{
    cu_finish(side, 0);
    CU(cuMemcpyDtoH, to, side->cu->memory, size);
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
    .open = cu_open,
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
    side->cl->clReleaseCommandQueue(side->cl->queues[queue]);
}

static const char *source_of(const struct weir_bundle *bundle)
{
    for (uint32_t i = 0; i < bundle->image_count; i++)
        if (weir_image_is(&bundle->images[i], WEIR_IMAGE_OPENCL_C))
            return bundle->images[i].data;
    return "";
}

static bool cl_open(struct side *side, const struct weir_bundle *bundle, char *message, size_t size)
{
    struct side_opencl *cl = side->cl = cli_allocate(1, sizeof *cl);
    const char *source = source_of(bundle);
    struct weir_native_device native;
    cl_int code;
    snprintf(message, size, "this is not OpenCL");
    if (weir_device_get_native(side->weir.device, &native) != WEIR_OK ||
        strcmp(native.api, WEIR_NATIVE_OPENCL) != 0 ||
        !ocl_symbols_load("libOpenCL.so.1", &cl->symbols, message, size))
        return false;
    cl->device = native.device;
    CL_NEW(cl->context, clCreateContext, NULL, 1, &cl->device, NULL, NULL);
    CL_NEW(cl->program, clCreateProgramWithSource, cl->context, 1, &source, NULL);
    CL(clBuildProgram, cl->program, 1, &cl->device, "-cl-std=CL1.2", NULL, NULL);
    return true;
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

static void cl_memory(struct side *side, size_t size)
{
    cl_int code;
    CL_NEW(side->cl->memory, clCreateBuffer, side->cl->context, CL_MEM_READ_WRITE, size, NULL);
}

static void cl_pinned(struct side *side, unsigned pinned, size_t size)
{
    struct side_opencl *cl = side->cl;
    cl_command_queue queue; // of the mapping
    cl_mem memory;
    cl_int code;
    CL_NEW(queue, clCreateCommandQueue, cl->context, cl->device, 0);
    CL_NEW(memory, clCreateBuffer, cl->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size,
           NULL);
    CL_NEW(side->pinned[pinned], clEnqueueMapBuffer, queue, memory, CL_TRUE,
           CL_MAP_READ | CL_MAP_WRITE, 0, size, 0, NULL, NULL);
    side->pinned_last = pinned;
}

static void cl_flush(struct side *side, unsigned queue)
{
    CL(clFlush, side->cl->queues[queue]);
}

static void cl_copy(struct side *side, unsigned queue, bool up, size_t at, size_t size)
{
    char *host = (char *)side->pinned[up ? 0 : side->pinned_last] + at;
    if (up)
        CL(clEnqueueWriteBuffer, side->cl->queues[queue], side->cl->memory, CL_FALSE, at, size,
           host, 0, NULL, NULL);
    else
        CL(clEnqueueReadBuffer, side->cl->queues[queue], side->cl->memory, CL_FALSE, at, size, host,
           0, NULL, NULL);
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
        CL(clSetKernelArg, kernel, 0, sizeof(cl_mem), &side->cl->memory);
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
    CL(clEnqueueWriteBuffer, side->cl->queues[0], side->cl->memory, CL_TRUE, 0, size, from, 0, NULL,
       NULL);
}

static void cl_download(struct side *side, void *to, size_t size)
{
    CL(clEnqueueReadBuffer, side->cl->queues[0], side->cl->memory, CL_TRUE, 0, size, to, 0, NULL,
       NULL);
}

const struct side_calls side_opencl_calls = {
    .name = "plain OpenCL",
    .open = cl_open,
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
