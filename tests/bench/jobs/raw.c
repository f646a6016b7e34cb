// See the header. Libraries stay open until the process ends.
#include "tests/bench/jobs/raw.h"

#include <stdio.h>
#include <string.h>
#include <weir/kit/symbols.h>

enum {
    LISTED_MOST = 16 // platforms, and devices of one
};

// CUDA.

static void describe(const struct raw_cuda *cu, CUresult result, const char *call, char *message,
                     size_t size)
{
    const char *name = NULL;
    if (cu->cuGetErrorName)
        cu->cuGetErrorName(result, &name);
    snprintf(message, size, "raw CUDA: %s failed with %s (%d)", call,
             name ? name : "an unknown error", (int)result);
}

bool raw_cuda_fine(const struct raw_cuda *cu, CUresult result, const char *call)
{
    char message[256];
    if (result == CUDA_SUCCESS)
        return true;
    describe(cu, result, call, message, sizeof message);
    return bench_wrong("%s", message);
}

void raw_cuda_check(const struct raw_cuda *cu, CUresult result, const char *call)
{
    char message[256];
    if (result == CUDA_SUCCESS)
        return;
    describe(cu, result, call, message, sizeof message);
    cli_fail(CLI_SETUP, "%s", message);
}

static bool load(struct raw_cuda *cu, char *message, size_t size)
{
    static const char *const library = "libcuda.so.1";
    static const struct weir_kit_symbol blocking[] = {
        {"cuMemcpyHtoD_v2", offsetof(struct raw_cuda, cuMemcpyHtoD), true},
        {"cuMemcpyDtoH_v2", offsetof(struct raw_cuda, cuMemcpyDtoH), true}};
    char reason[512];
    int version;
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

void raw_cuda_init(struct raw_cuda *cu)
{
    char message[1024];
    if (!load(cu, message, sizeof message))
        cli_fail(CLI_SETUP, "%s", message);
}

static void close_device(void *object, void *with)
{
    struct raw_cuda *cu = object;
    if (cu->module)
        cu->cuModuleUnload(cu->module);
    cu->cuCtxSetCurrent(NULL);
    cu->cuDevicePrimaryCtxRelease(cu->device);
}

void raw_cuda_open_device(struct raw_cuda *cu)
{
    RAW_CU(cu, cuDeviceGet, &cu->device, 0);
    RAW_CU(cu, cuDevicePrimaryCtxRetain, &cu->context, cu->device);
    cli_own(close_device, cu, NULL);
    RAW_CU(cu, cuCtxSetCurrent, cu->context);
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

void raw_cuda_load_kernels(struct raw_cuda *cu, const struct weir_bundle *bundle)
{
    int major = 0, minor = 0;
    RAW_CU(cu, cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
           cu->device);
    RAW_CU(cu, cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
           cu->device);
    const struct weir_image *image = image_for(bundle, (unsigned)(10 * major + minor));
    if (!image)
        cli_fail(CLI_SETUP,
                 "this program has no CUDA kernels for sm_%d%d: it was built without a CUDA "
                 "toolkit",
                 major, minor);
    RAW_CU(cu, cuModuleLoadDataEx, &cu->module, image->data, 0, NULL, NULL);
}

bool raw_cuda_open(const char *what, const struct weir_bundle *bundle, struct raw_cuda *cu)
{
    char message[1024] = "this is not CUDA";
    if ((bench.runtime && strcmp(weir_runtime_backend(bench.runtime), "cuda") != 0) ||
        !load(cu, message, sizeof message)) {
        bench_note("not measured: %s: %.250s", what, message);
        return false;
    }
    raw_cuda_open_device(cu);
    if (bundle)
        raw_cuda_load_kernels(cu, bundle);
    return true;
}

static void destroy_stream(void *object, void *cu)
{
    ((struct raw_cuda *)cu)->cuStreamDestroy(object);
}

static void destroy_event(void *object, void *cu)
{
    ((struct raw_cuda *)cu)->cuEventDestroy(object);
}

static void free_memory(void *object, void *cu)
{
    ((struct raw_cuda *)cu)->cuMemFree((CUdeviceptr)(uintptr_t)object);
}

static void free_pinned(void *object, void *cu)
{
    ((struct raw_cuda *)cu)->cuMemFreeHost(object);
}

CUstream raw_cuda_stream(struct raw_cuda *cu)
{
    CUstream stream;
    RAW_CU(cu, cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, 0);
    cli_own(destroy_stream, stream, cu);
    return stream;
}

CUevent raw_cuda_event(struct raw_cuda *cu)
{
    CUevent event;
    RAW_CU(cu, cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    cli_own(destroy_event, event, cu);
    return event;
}

CUdeviceptr raw_cuda_memory(struct raw_cuda *cu, size_t size)
{
    CUdeviceptr memory;
    RAW_CU(cu, cuMemAlloc, &memory, size);
    cli_own(free_memory, (void *)(uintptr_t)memory, cu);
    return memory;
}

void *raw_cuda_pinned(struct raw_cuda *cu, size_t size)
{
    void *memory;
    RAW_CU(cu, cuMemHostAlloc, &memory, size, 0);
    cli_own(free_pinned, memory, cu);
    return memory;
}

CUfunction raw_cuda_function(struct raw_cuda *cu, const char *name)
{
    CUfunction function;
    RAW_CU(cu, cuModuleGetFunction, &function, cu->module, name);
    return function;
}

// OpenCL.

static bool take_device(struct raw_opencl *cl, cl_platform_id platform, const char *wanted)
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

static bool find_device(struct raw_opencl *cl, const char *wanted)
{
    cl_platform_id platforms[LISTED_MOST];
    cl_uint count = 0;
    if (cl->clGetPlatformIDs(LISTED_MOST, platforms, &count) != CL_SUCCESS)
        return false;
    for (cl_uint i = 0; i < count && i < LISTED_MOST; i++)
        if (take_device(cl, platforms[i], wanted))
            return true;
    return false;
}

static const char *source_of(const struct weir_bundle *bundle)
{
    for (uint32_t i = 0; i < bundle->image_count; i++)
        if (weir_image_is(&bundle->images[i], WEIR_IMAGE_OPENCL_C))
            return bundle->images[i].data;
    return "";
}

void raw_opencl_check(cl_int code, const char *call)
{
    if (code != CL_SUCCESS)
        cli_fail(CLI_SETUP, "plain OpenCL: %s failed with %d", call, (int)code);
}

static void close_opencl(void *object, void *with)
{
    struct raw_opencl *cl = object;
    if (cl->program)
        cl->clReleaseProgram(cl->program);
    cl->clReleaseContext(cl->context);
}

bool raw_opencl_open(const char *what, const char *device, const struct weir_bundle *bundle,
                     struct raw_opencl *cl)
{
    const char *source = source_of(bundle);
    char reason[512];
    cl_int code;
    if (!ocl_symbols_load("libOpenCL.so.1", &cl->symbols, reason, sizeof reason)) {
        bench_note("not measured: %s: there is no OpenCL: %.200s", what, reason);
        return false;
    }
    if (!find_device(cl, device)) {
        bench_note("not measured: %s: the OpenCL loader lists no device %s", what, device);
        return false;
    }
    cl->context = cl->clCreateContext(NULL, 1, &cl->device, NULL, NULL, &code);
    raw_opencl_check(code, "clCreateContext");
    cli_own(close_opencl, cl, NULL);
    cl->program = cl->clCreateProgramWithSource(cl->context, 1, &source, NULL, &code);
    raw_opencl_check(code, "clCreateProgramWithSource");
    RAW_CL(cl, clBuildProgram, cl->program, 1, &cl->device, "-cl-std=CL1.2", NULL, NULL);
    return true;
}

static void release_queue(void *object, void *cl)
{
    ((struct raw_opencl *)cl)->clReleaseCommandQueue(object);
}

static void release_kernel(void *object, void *cl)
{
    ((struct raw_opencl *)cl)->clReleaseKernel(object);
}

static void release_buffer(void *object, void *cl)
{
    ((struct raw_opencl *)cl)->clReleaseMemObject(object);
}

cl_command_queue raw_opencl_queue(struct raw_opencl *cl)
{
    cl_int code;
    cl_command_queue queue = cl->clCreateCommandQueue(cl->context, cl->device, 0, &code);
    raw_opencl_check(code, "clCreateCommandQueue");
    cli_own(release_queue, queue, cl);
    return queue;
}

cl_kernel raw_opencl_kernel(struct raw_opencl *cl, const char *name)
{
    cl_int code;
    cl_kernel kernel = cl->clCreateKernel(cl->program, name, &code);
    raw_opencl_check(code, "clCreateKernel");
    cli_own(release_kernel, kernel, cl);
    return kernel;
}

cl_mem raw_opencl_buffer(struct raw_opencl *cl, cl_mem_flags flags, size_t size)
{
    cl_int code;
    cl_mem buffer = cl->clCreateBuffer(cl->context, CL_MEM_READ_WRITE | flags, size, NULL, &code);
    raw_opencl_check(code, "clCreateBuffer");
    cli_own(release_buffer, buffer, cl);
    return buffer;
}

// NCCL.

static const struct weir_kit_symbol nccl_table[] = {
#define SYMBOL(result, name, parameters) {#name, offsetof(struct raw_nccl, nccl.name), false},
    NCCL_SYMBOLS(SYMBOL)
#undef SYMBOL
};

bool raw_nccl_load(struct raw_nccl *raw, const char *file, char *message, size_t size)
{
    const char *name = file ? file : "libnccl.so.2";
    int version = 0;
    if (!cu_symbols_load("", &raw->cu, &version, message, size))
        return false;
    void *library = weir_kit_library_open(&name, 1, message, size);
    if (!library || !weir_kit_symbols_load(library, name, nccl_table, BENCH_COUNT(nccl_table), raw,
                                           message, size))
        return false;
    const ncclResult_t error = raw->nccl.ncclGetVersion(&version);
    snprintf(raw->name, sizeof raw->name, "NCCL %d.%d.%d", version / 10000, version / 100 % 100,
             version % 100);
    if (error != ncclSuccess)
        snprintf(message, size, "ncclGetVersion fails: %s", raw->nccl.ncclGetErrorString(error));
    else if (version < NCCL_OLDEST)
        snprintf(message, size, "%s is older than 2.18", raw->name);
    return error == ncclSuccess && version >= NCCL_OLDEST;
}

bool raw_nccl_make_id(const struct raw_nccl *raw, uint32_t rank, ncclUniqueId *id, char *message,
                      size_t size)
{
    const ncclResult_t error = rank == 0 ? raw->nccl.ncclGetUniqueId(id) : ncclSuccess;
    if (error != ncclSuccess)
        snprintf(message, size, "ncclGetUniqueId fails: %s", raw->nccl.ncclGetErrorString(error));
    return error == ncclSuccess;
}

void raw_nccl_share(const struct bench_rank *rank, ncclUniqueId *id)
{
    const size_t size = sizeof *id;
    weir_buffer **buffer = cli_allocate(1, sizeof *buffer);
    bench_buffer(rank->device, "bench/id", size, WEIR_PLACE_DEVICE, buffer);
    cli_fine(weir_upload(rank->queue, *buffer, 0, id, size));
    cli_fine(
        weir_queue_broadcast(rank->queue, rank->comm, *buffer, 0, *buffer, 0, size, WEIR_U8, 0));
    cli_fine(weir_download(rank->queue, id, *buffer, 0, size));
}

static _Noreturn void refuse(const char *call, int code, const char *name)
{
    cli_fail(CLI_SETUP, "a raw call was refused (%s returned %s, %d)", call, name, code);
}

void raw_nccl_check(const struct raw_nccl *raw, ncclResult_t code, const char *call)
{
    if (code != ncclSuccess)
        refuse(call, (int)code, raw->nccl.ncclGetErrorString(code));
}

void raw_nccl_check_driver(CUresult code, const char *call)
{
    if (code != CUDA_SUCCESS)
        refuse(call, (int)code, "an error");
}
