// See the header. On CUDA the functions are looked up as the backend does, so that the
// tests' driver works too.
#define _GNU_SOURCE // dl_iterate_phdr()
#include "tests/conformance/native.h"

#include <dlfcn.h>
#include <link.h>

#include "backends/clc/symbols.h"
#include "backends/cuda/symbols.h"

static void *open_driver(const char *name)
{
    void *driver = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!driver)
        weir_test_fail(__FILE__, __LINE__, "%s", dlerror());
    return driver;
}

struct search {
    const char *part; // of the library's name
    void *library;
};

static int take_library(struct dl_phdr_info *object, size_t size, void *user)
{
    struct search *search = user;
    if (strstr(object->dlpi_name, search->part))
        search->library = dlopen(object->dlpi_name, RTLD_NOW | RTLD_NOLOAD);
    return search->library != NULL;
}

static void *loaded(const char *part)
{
    struct search search = {.part = part};
    dl_iterate_phdr(take_library, &search);
    return search.library;
}

// A loader's functions know no handles of a driver that was loaded without one.
static struct ocl_symbols opencl(void)
{
    struct ocl_symbols symbols = {0};
    void *loader = loaded("libOpenCL"), *driver = loader ? NULL : loaded("libpocl");
    const ocl_get_platforms get = driver ? ocl_driver_platforms(driver) : NULL;
    cl_platform_id platform;
    if (get && get(1, &platform, NULL) == CL_SUCCESS) {
        EXPECT_TRUE(ocl_driver_symbols(platform, &symbols));
        return symbols;
    }
    loader = loader ? loader : open_driver("libOpenCL.so.1");
#define TAKE(since, name)                                     \
    {                                                         \
        void *address = loader ? dlsym(loader, #name) : NULL; \
        memcpy(&symbols.name, &address, sizeof address);      \
    }
    OCL_SYMBOLS(TAKE)
#undef TAKE
    return symbols;
}

static void *find_cuda(const char *name, int version)
{
    typedef CUresult (*get_address_function)(const char *, void **, int, cuuint64_t,
                                             CUdriverProcAddressQueryResult *);
    get_address_function get_address;
    void *driver = open_driver("libcuda.so.1"), *address = NULL;
    void *getter = driver ? dlsym(driver, "cuGetProcAddress_v2") : NULL;
    memcpy(&get_address, &getter, sizeof getter);
    return getter && get_address(name, &address, version, 0, NULL) == CUDA_SUCCESS ? address : NULL;
}

// Declares a variable of the function's name and type, found in the driver: the backend's table is its own.
static void (*find(const char *name, int version))(void)
{
    void *address = find_cuda(name, version);
    void (*function)(void) = NULL;
    if (!address)
        weir_test_fail(__FILE__, __LINE__, "the driver has no %s", name);
    memcpy(&function, &address, sizeof function);
    return function;
}

#define FIND(version, result, name, parameters) \
    result(*name) parameters = (result(*) parameters)find(#name, version)

struct native_fill native_fill_of(weir_buffer *buffer, size_t first, size_t count, uint32_t value)
{
    struct native_fill fill = {.first = first, .count = count, .value = value};
    EXPECT_OK(weir_buffer_get_native(buffer, &fill.buffer));
    return fill;
}

static bool fill_cuda(const struct weir_native_queue *native, const struct native_fill *fill)
{
    FIND(4000, CUresult, cuCtxGetCurrent, (CUcontext *));
    FIND(3020, CUresult, cuMemsetD32Async, (CUdeviceptr, unsigned, size_t, CUstream));
    CUcontext current = NULL;
    return cuCtxGetCurrent && cuMemsetD32Async && cuCtxGetCurrent(&current) == CUDA_SUCCESS &&
           current == native->context &&
           cuMemsetD32Async(fill->buffer.address + 4 * fill->first, fill->value, fill->count,
                            native->queue) == CUDA_SUCCESS;
}

static bool fill_opencl(const struct weir_native_queue *native, const struct native_fill *fill)
{
    return opencl().clEnqueueFillBuffer(native->queue, fill->buffer.memory, &fill->value,
                                        sizeof fill->value, fill->buffer.offset + 4 * fill->first,
                                        4 * fill->count, 0, NULL, NULL) == CL_SUCCESS;
}

weir_status native_fill(const struct weir_native_queue *native, void *user)
{
    struct native_fill *fill = user;
    fill->calls++;
    bool done = weir_native_is(native->api, WEIR_NATIVE_CUDA) ? fill_cuda(native, fill)
                                                              : fill_opencl(native, fill);
    return done ? WEIR_OK : WEIR_ERROR_DEVICE;
}

// Own objects. Streams and memory of CUDA need its context to be current.

static struct weir_native_device native_of(weir_device *device)
{
    struct weir_native_device native;
    EXPECT_OK(weir_device_get_native(device, &native));
    return native;
}

static void set_context(void *context)
{
    FIND(4000, CUresult, cuCtxSetCurrent, (CUcontext));
    if (cuCtxSetCurrent)
        EXPECT_INT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
}

static void *create_stream(const struct weir_native_device *native)
{
    FIND(5050, CUresult, cuStreamCreateWithPriority, (CUstream *, unsigned, int));
    CUstream stream = NULL;
    if (!cuStreamCreateWithPriority)
        return NULL;
    set_context(native->context);
    EXPECT_INT_EQ(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
    set_context(NULL);
    return stream;
}

void *native_create_queue(weir_device *device, bool out_of_order)
{
    const struct weir_native_device native = native_of(device);
    cl_int code = CL_SUCCESS;
    if (weir_native_is(native.api, WEIR_NATIVE_CUDA))
        return create_stream(&native);
    return opencl().clCreateCommandQueue(native.context, native.device,
                                         out_of_order ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0,
                                         &code);
}

static bool is_cuda(weir_device *device)
{
    return weir_native_is(native_of(device).api, WEIR_NATIVE_CUDA);
}

// A function of CUDA's driver that takes one handle; it must succeed.
static void call_cuda(weir_device *device, const char *name, int version, void *handle)
{
    CUresult (*function)(void *) = (CUresult(*)(void *))find(name, version);
    set_context(native_of(device).context);
    EXPECT_INT_EQ(function(handle), CUDA_SUCCESS);
    set_context(NULL);
}

void native_finish_queue(weir_device *device, void *queue)
{
    if (is_cuda(device))
        call_cuda(device, "cuStreamSynchronize", 2000, queue);
    else
        EXPECT_INT_EQ(opencl().clFinish(queue), CL_SUCCESS);
}

void native_destroy_queue(weir_device *device, void *queue)
{
    if (is_cuda(device))
        call_cuda(device, "cuStreamDestroy", 4000, queue);
    else
        EXPECT_INT_EQ(opencl().clReleaseCommandQueue(queue), CL_SUCCESS);
}

// On CUDA this is pinned memory, which cannot be adopted as device memory.
uint64_t native_create_memory(weir_device *device, size_t size, bool read_only)
{
    const struct weir_native_device native = native_of(device);
    cl_int code = CL_SUCCESS;
    if (weir_native_is(native.api, WEIR_NATIVE_CUDA)) {
        FIND(2020, CUresult, cuMemHostAlloc, (void **, size_t, unsigned));
        void *pointer = NULL;
        set_context(native.context);
        EXPECT_INT_EQ(cuMemHostAlloc(&pointer, size, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
        set_context(NULL);
        return (uintptr_t)pointer;
    }
    return (uintptr_t)opencl().clCreateBuffer(native.context,
                                              read_only ? CL_MEM_READ_ONLY : CL_MEM_READ_WRITE,
                                              size, NULL, &code);
}

void native_destroy_memory(weir_device *device, uint64_t memory)
{
    void *pointer = (void *)(uintptr_t)memory;
    if (is_cuda(device))
        call_cuda(device, "cuMemFreeHost", 2000, pointer);
    else
        EXPECT_INT_EQ(opencl().clReleaseMemObject(pointer), CL_SUCCESS);
}
