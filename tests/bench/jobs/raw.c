// See the header. Libraries stay open until the process ends.
#include "tests/bench/jobs/raw.h"

#include <stdio.h>
#include <string.h>
#include <weir/kit/symbols.h>

enum {
    LISTED_MOST = 16 // platforms, and devices of one
};

// CUDA.

bool raw_cuda_fine(const struct raw_cuda *cu, CUresult result, const char *call, char *message,
                   size_t size)
{
    const char *name = NULL;
    if (result == CUDA_SUCCESS)
        return true;
    if (cu->cuGetErrorName)
        cu->cuGetErrorName(result, &name);
    snprintf(message, size, "%s failed with %s (%d)", call, name ? name : "an unknown error",
             (int)result);
    return false;
}

bool raw_cuda_check(struct bench *bench, const struct raw_cuda *cu, CUresult result,
                    const char *call)
{
    char message[256];
    return raw_cuda_fine(cu, result, call, message, sizeof message) ||
           bench_fail(bench, CLI_SETUP, "raw CUDA: %s", message);
}

#define CUDA(name, ...) raw_cuda_fine(cu, cu->name(__VA_ARGS__), #name, message, size)

bool raw_cuda_init(struct raw_cuda *cu, char *message, size_t size)
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
    if (result != CUDA_SUCCESS)
        snprintf(message, size, "the CUDA driver cannot be used: cuInit failed with %d",
                 (int)result);
    return result == CUDA_SUCCESS;
}

bool raw_cuda_open_device(struct raw_cuda *cu, char *message, size_t size)
{
    return CUDA(cuDeviceGet, &cu->device, 0) &&
           CUDA(cuDeviceGetName, cu->name, sizeof cu->name, cu->device) &&
           CUDA(cuDevicePrimaryCtxRetain, &cu->context, cu->device) &&
           CUDA(cuCtxSetCurrent, cu->context);
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

bool raw_cuda_load_kernels(struct raw_cuda *cu, const struct weir_bundle *bundle, char *message,
                           size_t size)
{
    int major = 0, minor = 0;
    if (!CUDA(cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
              cu->device) ||
        !CUDA(cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
              cu->device))
        return false;
    const struct weir_image *image = image_for(bundle, (unsigned)(10 * major + minor));
    if (!image)
        snprintf(message, size,
                 "this program has no CUDA kernels for sm_%d%d: it was built without a CUDA "
                 "toolkit",
                 major, minor);
    return image && CUDA(cuModuleLoadDataEx, &cu->module, image->data, 0, NULL, NULL);
}

bool raw_cuda_open(struct raw_cuda *cu, const struct weir_bundle *bundle, char *message,
                   size_t size)
{
    return raw_cuda_init(cu, message, size) && raw_cuda_open_device(cu, message, size) &&
           (!bundle || raw_cuda_load_kernels(cu, bundle, message, size));
}

void raw_cuda_close(struct raw_cuda *cu)
{
    if (cu->module)
        cu->cuModuleUnload(cu->module);
    if (cu->context) {
        cu->cuCtxSetCurrent(NULL);
        cu->cuDevicePrimaryCtxRelease(cu->device);
    }
    memset(cu, 0, sizeof *cu);
}

// OpenCL.

static bool take_device(struct raw_opencl *cl, cl_platform_id platform, const char *wanted)
{
    cl_device_id devices[LISTED_MOST];
    cl_uint count = 0;
    if (cl->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, LISTED_MOST, devices, &count) !=
        CL_SUCCESS)
        return false;
    for (cl_uint i = 0; i < count && i < LISTED_MOST; i++) {
        cl->device = devices[i];
        if (cl->clGetDeviceInfo(devices[i], CL_DEVICE_NAME, sizeof cl->name - 1, cl->name, NULL) ==
                CL_SUCCESS &&
            (!wanted || strcmp(cl->name, wanted) == 0))
            return true;
    }
    return false;
}

static bool find_device(struct raw_opencl *cl, const char *wanted, char *message, size_t size)
{
    cl_platform_id platforms[LISTED_MOST];
    cl_uint count = 0;
    if (cl->clGetPlatformIDs(LISTED_MOST, platforms, &count) != CL_SUCCESS)
        count = 0;
    for (cl_uint i = 0; i < count && i < LISTED_MOST; i++)
        if (take_device(cl, platforms[i], wanted))
            return true;
    snprintf(message, size, "the OpenCL loader lists no device%s%s", wanted ? " " : "",
             wanted ? wanted : "");
    return false;
}

static const char *source_of(const struct weir_bundle *bundle)
{
    for (uint32_t i = 0; i < bundle->image_count; i++)
        if (weir_image_is(&bundle->images[i], WEIR_IMAGE_OPENCL_C))
            return bundle->images[i].data;
    return "";
}

bool raw_opencl_open(struct raw_opencl *cl, const char *wanted, const struct weir_bundle *bundle,
                     char *message, size_t size)
{
    const char *source = source_of(bundle);
    char reason[512];
    cl_int code = CL_SUCCESS;
    if (!ocl_symbols_load("libOpenCL.so.1", &cl->symbols, reason, sizeof reason)) {
        snprintf(message, size, "there is no OpenCL: %s", reason);
        return false;
    }
    if (!find_device(cl, wanted, message, size))
        return false;
    cl->context = cl->clCreateContext(NULL, 1, &cl->device, NULL, NULL, &code);
    if (code == CL_SUCCESS)
        cl->program = cl->clCreateProgramWithSource(cl->context, 1, &source, NULL, &code);
    if (code == CL_SUCCESS)
        code = cl->clBuildProgram(cl->program, 1, &cl->device, "-cl-std=CL1.2", NULL, NULL);
    if (code != CL_SUCCESS)
        snprintf(message, size, "plain OpenCL cannot set up the same work on %s (%d)", cl->name,
                 (int)code);
    return code == CL_SUCCESS;
}

void raw_opencl_close(struct raw_opencl *cl)
{
    if (cl->program)
        cl->clReleaseProgram(cl->program);
    if (cl->context)
        cl->clReleaseContext(cl->context);
    memset(cl, 0, sizeof *cl);
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
    if (!library ||
        !weir_kit_symbols_load(library, name, nccl_table, sizeof nccl_table / sizeof *nccl_table,
                               raw, message, size))
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

weir_status raw_nccl_share(weir_device *device, weir_queue *queue, weir_comm *comm,
                           ncclUniqueId *id)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = "bench/id",
                                              .size = sizeof *id};
    weir_buffer *buffer = NULL;
    weir_status status = weir_buffer_create(device, &params, &buffer);
    if (status == WEIR_OK)
        status = weir_upload(queue, buffer, 0, id, sizeof *id);
    if (status == WEIR_OK)
        status = weir_queue_broadcast(queue, comm, buffer, 0, buffer, 0, sizeof *id, WEIR_U8, 0);
    if (status == WEIR_OK)
        status = weir_download(queue, id, buffer, 0, sizeof *id);
    weir_buffer_destroy(&buffer);
    return status;
}

static weir_status refuse(weir_status status, const char *call, int code, const char *name)
{
    struct weir_error detail = {.status = status, .native_code = code};
    snprintf(detail.message, sizeof detail.message, "a raw call was refused");
    snprintf(detail.native_call, sizeof detail.native_call, "%s", call);
    snprintf(detail.native_name, sizeof detail.native_name, "%s", name);
    return weir_error_set(&detail);
}

weir_status raw_nccl_refuse(const struct raw_nccl *raw, const char *call, ncclResult_t code)
{
    return refuse(WEIR_ERROR_COMM, call, (int)code, raw->nccl.ncclGetErrorString(code));
}

weir_status raw_cuda_refuse(const char *call, CUresult code)
{
    return refuse(WEIR_ERROR_DEVICE, call, (int)code, "");
}
