// The functions of the fake driver, and the two that are looked up by name. See
// control.h.
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"

#define EXPORT __attribute__((visibility("default")))
#define DEVICE_LIMIT 4
#define LOCAL_LIMIT 232448

struct CUctx_st {
    int device;
    int references;
};

struct CUevent_st {
    unsigned flags;
    struct fake_fence *fence; // of the last record; NULL: never recorded
};

struct CUmod_st {
    const char *image; // borrowed for as long as the load takes, and copied
    size_t size;
};

struct CUmemPoolHandle_st {
    int device;
};

static struct CUctx_st contexts[DEVICE_LIMIT];
static struct CUctx_st foreign = {.references = 1};
static _Thread_local CUcontext current;

#ifdef FAKE_OLD_DRIVER
static int version = 11080;
#else
static int version = 13000;
#endif
static int device_count = 1;
static int architecture = 90;
static size_t memory_bytes = (size_t)1 << 30;
static bool initialised;

// The functions that the backend may call.

#define DECLARE(since, result, name, parameters) static result name parameters;
CU_SYMBOLS(DECLARE)
#undef DECLARE

struct function {
    const char *name;
    int version;
    void (*address)(void);
    long calls;
};

static struct function functions[] = {
#define ENTRY(since, result, name, parameters) {#name, since, (void (*)(void))name, 0},
    CU_SYMBOLS(ENTRY)
#undef ENTRY
};

#define FUNCTION_COUNT (sizeof functions / sizeof *functions)

static struct function *find_function(const char *name)
{
    for (size_t i = 0; i < FUNCTION_COUNT; i++) {
        if (strcmp(functions[i].name, name) == 0)
            return &functions[i];
    }
    return NULL;
}

// Failing on request.

static struct {
    const struct function *function;
    long left; // calls until it strikes
    CUresult code;
    long struck;
} failure;

static void set_failure(const char *name, long n, int code)
{
    pthread_mutex_lock(&fake_lock);
    failure.function = name ? find_function(name) : NULL;
    failure.left = n;
    failure.code = code ? code : FAKE_UNKNOWN;
    failure.struck = 0;
    pthread_mutex_unlock(&fake_lock);
}

static bool is_fatal(CUresult code)
{
    return code >= 700 && code < 800 && code != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED &&
           code != FAKE_NOT_REGISTERED;
}

// Under the lock. Counts the call, and says whether it has to fail.
static CUresult admit(const char *name, bool needs_context)
{
    struct function *function = find_function(name);
    function->calls++;
    if (failure.function == function && --failure.left == 0) {
        failure.struck++;
        if (is_fatal(failure.code))
            fake_sticky = failure.code;
        pthread_cond_broadcast(&fake_changed);
        return failure.code;
    }
    if (!initialised && strcmp(name, "cuInit") != 0)
        return 3;
    if (needs_context && (!current || current == &foreign || current->references == 0))
        return FAKE_INVALID_CONTEXT;
    return needs_context ? fake_sticky : CUDA_SUCCESS;
}

// Every function begins and ends with one of these.
#define BEGIN(needs_context)                            \
    pthread_mutex_lock(&fake_lock);                     \
    CUresult code = admit(__func__, needs_context);     \
    do {                                                \
    } while (0)
#define END                           \
    pthread_mutex_unlock(&fake_lock); \
    return code

// Errors, devices and contexts.

static CUresult cuGetErrorName(CUresult error, const char **name)
{
    switch (error) {
#define NAME(constant, value) case value: *name = #constant; return CUDA_SUCCESS;
    case 0: *name = "CUDA_SUCCESS"; return CUDA_SUCCESS;
    NAME(CUDA_ERROR_INVALID_VALUE, 1)
    NAME(CUDA_ERROR_OUT_OF_MEMORY, 2)
    NAME(CUDA_ERROR_NO_DEVICE, 100)
    NAME(CUDA_ERROR_INVALID_IMAGE, 200)
    NAME(CUDA_ERROR_INVALID_CONTEXT, 201)
    NAME(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)
    NAME(CUDA_ERROR_INVALID_HANDLE, 400)
    NAME(CUDA_ERROR_NOT_FOUND, 500)
    NAME(CUDA_ERROR_ILLEGAL_ADDRESS, 700)
    NAME(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712)
    NAME(CUDA_ERROR_LAUNCH_FAILED, 719)
    NAME(CUDA_ERROR_UNKNOWN, 999)
#undef NAME
    default:
        return FAKE_INVALID_VALUE;
    }
}

static CUresult cuGetErrorString(CUresult error, const char **text)
{
    return cuGetErrorName(error, text);
}

static CUresult cuInit(unsigned flags)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    (void)flags;
    BEGIN(false);
    if (code == CUDA_SUCCESS && (device_count == 0 || (visible && !visible[0])))
        code = CUDA_ERROR_NO_DEVICE;
    initialised = initialised || code == CUDA_SUCCESS;
    END;
}

static CUresult cuDeviceGetCount(int *count)
{
    BEGIN(false);
    *count = device_count;
    END;
}

static CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    BEGIN(false);
    *device = ordinal;
    END;
}

static CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    BEGIN(false);
    snprintf(name, (size_t)size, "Fake GPU %d", device);
    END;
}

static CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    (void)device;
    BEGIN(false);
    *bytes = memory_bytes;
    END;
}

static const int attributes[][2] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, INT32_MAX},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, INT32_MAX},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, LOCAL_LIMIT},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
};

static CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    BEGIN(false);
    *value = 0;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        *value = attributes[i][0] == attribute ? attributes[i][1] : *value;
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        *value = architecture / 10;
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
        *value = architecture % 10;
    END;
}

static CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    BEGIN(false);
    if (code == CUDA_SUCCESS) {
        *context = &contexts[device];
        contexts[device].device = device;
        contexts[device].references++;
        fake_live++;
    }
    END;
}

// The last reference takes a dead context with it.
static CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    BEGIN(false);
    if (code == CUDA_SUCCESS) {
        fake_live--;
        if (--contexts[device].references == 0)
            fake_sticky = CUDA_SUCCESS;
    }
    END;
}

static CUresult cuCtxGetCurrent(CUcontext *context)
{
    BEGIN(false);
    *context = current;
    END;
}

static CUresult cuCtxSetCurrent(CUcontext context)
{
    BEGIN(false);
    if (code == CUDA_SUCCESS)
        current = context;
    END;
}

static CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    BEGIN(true);
    *least = 0;
    *greatest = -5;
    END;
}

// Streams and events. Destroying works in a dead context as well, and reports it.

static CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    BEGIN(true);
    if (code == CUDA_SUCCESS && (flags != CU_STREAM_NON_BLOCKING || priority > 0 || priority < -5))
        code = FAKE_INVALID_VALUE;
    if (code == CUDA_SUCCESS)
        *stream = fake_stream_create();
    END;
}

static CUresult cuStreamDestroy(CUstream stream)
{
    BEGIN(true);
    if (fake_stream_known(stream))
        fake_stream_destroy(stream);
    END;
}

static CUresult cuStreamSynchronize(CUstream stream)
{
    BEGIN(true);
    if (code == CUDA_SUCCESS) {
        fake_stream_finish(stream);
        code = fake_sticky;
    }
    END;
}

static CUresult cuStreamQuery(CUstream stream)
{
    BEGIN(true);
    if (code == CUDA_SUCCESS && !fake_stream_idle(stream))
        code = CUDA_ERROR_NOT_READY;
    END;
}

static CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    (void)flags;
    BEGIN(true);
    if (code == CUDA_SUCCESS && event->fence) {
        fake_fence_retain(event->fence);
        fake_stream_add(stream, &(struct fake_operation){.kind = FAKE_WAIT, .fence = event->fence});
    }
    END;
}

static CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    BEGIN(true);
    if (code == CUDA_SUCCESS) {
        *event = calloc(1, sizeof **event);
        code = *event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (code == CUDA_SUCCESS) {
        (*event)->flags = flags;
        fake_live++;
    }
    END;
}

static CUresult cuEventDestroy(CUevent event)
{
    BEGIN(true);
    fake_fence_release(event->fence);
    free(event);
    fake_live--;
    END;
}

static CUresult cuEventRecord(CUevent event, CUstream stream)
{
    BEGIN(true);
    if (code == CUDA_SUCCESS) {
        fake_fence_release(event->fence);
        event->fence = fake_fence_create();
        fake_fence_retain(event->fence);
        fake_stream_add(stream,
                        &(struct fake_operation){.kind = FAKE_SIGNAL, .fence = event->fence});
    }
    END;
}

static CUresult cuEventQuery(CUevent event)
{
    BEGIN(true);
    if (code == CUDA_SUCCESS && event->fence && !fake_fence_done(event->fence))
        code = CUDA_ERROR_NOT_READY;
    END;
}

static CUresult cuEventSynchronize(CUevent event)
{
    BEGIN(true);
    if (code == CUDA_SUCCESS && event->fence) {
        fake_fence_wait(event->fence);
        code = fake_sticky;
    }
    END;
}

static CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    BEGIN(true);
    if (code == CUDA_SUCCESS && (!start->fence || !end->fence ||
                                 ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)))
        code = FAKE_INVALID_HANDLE;
    if (code == CUDA_SUCCESS && (!fake_fence_done(start->fence) || !fake_fence_done(end->fence)))
        code = CUDA_ERROR_NOT_READY;
    if (code == CUDA_SUCCESS)
        *milliseconds = (float)((double)(int64_t)(fake_fence_time(end->fence) -
                                                  fake_fence_time(start->fence)) *
                                1e-6);
    END;
}

// Memory.

static CUresult cuMemGetInfo(size_t *free_bytes, size_t *total)
{
    BEGIN(true);
    if (code == CUDA_SUCCESS) {
        *total = memory_bytes;
        *free_bytes = memory_bytes - fake_memory_used(current->device);
    }
    END;
}

static CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    BEGIN(true);
    if (code == CUDA_SUCCESS) {
        *pool = calloc(1, sizeof **pool);
        code = *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (code == CUDA_SUCCESS) {
        (*pool)->device = properties->location.id;
        fake_live++;
    }
    END;
}

static CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    BEGIN(true);
    free(pool);
    fake_live--;
    END;
}

static CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    (void)pool;
    (void)attribute;
    (void)value;
    BEGIN(true);
    END;
}

static CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t size)
{
    (void)pool;
    (void)size;
    BEGIN(true);
    END;
}

static void *allocate(size_t size, size_t alignment)
{
    return size <= SIZE_MAX - alignment
               ? aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
               : NULL;
}

static CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t size, CUmemoryPool pool,
                                        CUstream stream)
{
    void *memory = NULL;
    (void)stream;
    BEGIN(true);
    if (code == CUDA_SUCCESS && size > memory_bytes - fake_memory_used(pool->device))
        code = CUDA_ERROR_OUT_OF_MEMORY;
    if (code == CUDA_SUCCESS) {
        memory = allocate(size, 256);
        code = memory && fake_memory_add(memory, size, FAKE_DEVICE, pool->device)
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = (CUdeviceptr)(uintptr_t)memory;
    END;
}

static CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    BEGIN(true);
    fake_stream_add(stream, &(struct fake_operation){.kind = FAKE_FREE,
                                                     .dst = (char *)(uintptr_t)address});
    END;
}

static CUresult cuMemHostAlloc(void **pointer, size_t size, unsigned flags)
{
    (void)flags;
    BEGIN(true);
    *pointer = NULL;
    if (code == CUDA_SUCCESS) {
        *pointer = allocate(size, 4096);
        code = *pointer && fake_memory_add(*pointer, size, FAKE_PINNED, 0)
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_OUT_OF_MEMORY;
    }
    END;
}

static CUresult cuMemFreeHost(void *pointer)
{
    BEGIN(true);
    fake_device_finish();
    if (fake_memory_remove(pointer, FAKE_PINNED))
        free(pointer);
    END;
}

static CUresult cuMemHostRegister(void *pointer, size_t size, unsigned flags)
{
    (void)flags;
    BEGIN(true);
    if (code == CUDA_SUCCESS && fake_memory_overlaps(pointer, size))
        code = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (code == CUDA_SUCCESS && !fake_memory_add(pointer, size, FAKE_REGISTERED, 0))
        code = CUDA_ERROR_OUT_OF_MEMORY;
    END;
}

static CUresult cuMemHostUnregister(void *pointer)
{
    BEGIN(true);
    fake_device_finish();
    if (!fake_memory_remove(pointer, FAKE_REGISTERED) && code == CUDA_SUCCESS)
        code = FAKE_NOT_REGISTERED;
    END;
}

static CUresult cuMemHostGetDevicePointer(CUdeviceptr *address, void *pointer, unsigned flags)
{
    (void)flags;
    BEGIN(true);
    if (code == CUDA_SUCCESS && !fake_memory_holds(pointer, 1, FAKE_HOST))
        code = FAKE_INVALID_VALUE;
    *address = (CUdeviceptr)(uintptr_t)pointer;
    END;
}

// Copies and fills.

static CUresult add_copy(CUresult code, CUstream stream, const struct fake_operation *copy,
                         int dst_kinds, int src_kinds)
{
    const size_t rows = copy->height - 1;
    if (code != CUDA_SUCCESS)
        return code;
    if (!fake_memory_holds(copy->dst, rows * copy->dst_pitch + copy->width, dst_kinds) ||
        !fake_memory_holds(copy->src, rows * copy->src_pitch + copy->width, src_kinds))
        return FAKE_INVALID_VALUE;
    fake_stream_add(stream, copy);
    return CUDA_SUCCESS;
}

static struct fake_operation copy_of(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
    return (struct fake_operation){.kind = FAKE_COPY,
                                   .dst = (char *)(uintptr_t)dst,
                                   .src = (const char *)(uintptr_t)src,
                                   .width = size,
                                   .height = 1};
}

static CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void *src, size_t size, CUstream stream)
{
    const struct fake_operation copy = copy_of(dst, (CUdeviceptr)(uintptr_t)src, size);
    BEGIN(true);
    code = add_copy(code, stream, &copy, FAKE_DEVICE, FAKE_HOST);
    END;
}

static CUresult cuMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
    const struct fake_operation copy = copy_of((CUdeviceptr)(uintptr_t)dst, src, size);
    BEGIN(true);
    code = add_copy(code, stream, &copy, FAKE_HOST, FAKE_DEVICE);
    END;
}

static CUresult cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
    const struct fake_operation copy = copy_of(dst, src, size);
    BEGIN(true);
    code = add_copy(code, stream, &copy, FAKE_DEVICE, FAKE_DEVICE);
    END;
}

static CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *rectangle, CUstream stream)
{
    const bool to_host = rectangle->dstMemoryType == CU_MEMORYTYPE_HOST;
    const bool from_host = rectangle->srcMemoryType == CU_MEMORYTYPE_HOST;
    const struct fake_operation copy = {
        .kind = FAKE_COPY,
        .dst = to_host ? rectangle->dstHost : (char *)(uintptr_t)rectangle->dstDevice,
        .src = from_host ? rectangle->srcHost : (const char *)(uintptr_t)rectangle->srcDevice,
        .dst_pitch = rectangle->dstPitch,
        .src_pitch = rectangle->srcPitch,
        .width = rectangle->WidthInBytes,
        .height = rectangle->Height,
    };
    BEGIN(true);
    if (code == CUDA_SUCCESS &&
        ((to_host && from_host) || copy.dst_pitch < copy.width || copy.src_pitch < copy.width ||
         rectangle->srcXInBytes || rectangle->srcY || rectangle->dstXInBytes || rectangle->dstY))
        code = FAKE_INVALID_VALUE;
    code = add_copy(code, stream, &copy, to_host ? FAKE_HOST : FAKE_DEVICE,
                    from_host ? FAKE_HOST : FAKE_DEVICE);
    END;
}

static CUresult add_set(CUresult code, CUdeviceptr dst, uint32_t value, size_t element,
                        size_t count, CUstream stream)
{
    const struct fake_operation set = {.kind = FAKE_SET,
                                       .dst = (char *)(uintptr_t)dst,
                                       .value = value,
                                       .element = element,
                                       .width = count};
    if (code != CUDA_SUCCESS)
        return code;
    if (dst % element || !fake_memory_holds(set.dst, element * count, FAKE_DEVICE | FAKE_HOST))
        return FAKE_INVALID_VALUE;
    fake_stream_add(stream, &set);
    return CUDA_SUCCESS;
}

static CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)
{
    BEGIN(true);
    code = add_set(code, dst, value, 1, count, stream);
    END;
}

static CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count,
                                 CUstream stream)
{
    BEGIN(true);
    code = add_set(code, dst, value, 2, count, stream);
    END;
}

static CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count, CUstream stream)
{
    BEGIN(true);
    code = add_set(code, dst, value, 4, count, stream);
    END;
}

// Modules. An image is a cubin, PTX, or text that begins with "fake"; a kernel is
// in it if its name is.

static size_t image_size(const unsigned char *image)
{
    uint64_t sections;
    uint16_t entry[2];
    if (memcmp(image, "\177ELF", 4) != 0)
        return strlen((const char *)image);
    memcpy(&sections, image + 40, sizeof sections);
    memcpy(entry, image + 58, sizeof entry);
    return (size_t)sections + (size_t)entry[0] * entry[1];
}

static CUresult check_image(const char *image)
{
    const char *ptx = strstr(image, ".version ");
    if (memcmp(image, "\177ELF", 4) == 0 || strncmp(image, "fake", 4) == 0)
        return CUDA_SUCCESS;
    if (!ptx)
        return CUDA_ERROR_INVALID_IMAGE;
    return strtol(ptx + 9, NULL, 10) + 4 > version / 1000 ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION
                                                         : CUDA_SUCCESS;
}

static CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned option_count,
                                   CUjit_option *options, void **values)
{
    BEGIN(true);
    for (unsigned i = 0; i < option_count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
            snprintf(values[i], 16, "%s", code == CUDA_SUCCESS ? "" : "the log");
    }
    if (code == CUDA_SUCCESS) {
        fake_device_finish();
        code = check_image(image);
    }
    if (code == CUDA_SUCCESS) {
        const size_t size = image_size(image);
        char *copy = malloc(size);
        *module = calloc(1, sizeof **module);
        if (!copy || !*module)
            abort();
        memcpy(copy, image, size);
        **module = (struct CUmod_st){copy, size};
        fake_live++;
    }
    END;
}

static CUresult cuModuleUnload(CUmodule module)
{
    BEGIN(true);
    fake_device_finish();
    free((void *)(uintptr_t)module->image);
    free(module);
    fake_live--;
    END;
}

static bool holds_name(const struct CUmod_st *module, const char *name)
{
    const size_t length = strlen(name);
    for (size_t at = 0; at + length <= module->size; at++) {
        if (memcmp(module->image + at, name, length) == 0)
            return true;
    }
    return false;
}

static CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    BEGIN(true);
    *function = NULL;
    if (code == CUDA_SUCCESS) {
        const struct CUfunc_st *twin = holds_name(module, name) ? fake_twin(name) : NULL;
        *function = (CUfunction)(uintptr_t)twin;
        code = twin ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
    }
    END;
}

static CUresult cuFuncLoad(CUfunction function)
{
    (void)function;
    BEGIN(true);
    END;
}

static CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    BEGIN(true);
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? (int)function->max_threads
             : attribute == CU_FUNC_ATTRIBUTE_NUM_REGS            ? 16
                                                                  : 0;
    END;
}

static CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    (void)function;
    BEGIN(true);
    if (code == CUDA_SUCCESS && (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
                                 value < 0 || value > LOCAL_LIMIT))
        code = FAKE_INVALID_VALUE;
    END;
}

static CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size)
{
    BEGIN(true);
    *offset = 0;
    *size = 0;
    if (code == CUDA_SUCCESS && (index >= FAKE_PARAMETERS || function->sizes[index] == 0))
        code = FAKE_INVALID_VALUE;
    if (code == CUDA_SUCCESS)
        *size = function->sizes[index];
    END;
}

static CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                               unsigned grid_z, unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned local_bytes, CUstream stream,
                               void **parameters, void **extra)
{
    struct fake_operation operation = {
        .kind = FAKE_LAUNCH,
        .function = function,
        .launch = {.grid = {grid_x, grid_y, grid_z}, .block = {block_x, block_y, block_z}},
    };
    BEGIN(true);
    if (code == CUDA_SUCCESS &&
        (extra || local_bytes > LOCAL_LIMIT ||
         (uint64_t)block_x * block_y * block_z > function->max_threads || grid_y > 65535 ||
         grid_z > 65535))
        code = FAKE_INVALID_VALUE;
    if (code == CUDA_SUCCESS) {
        for (size_t i = 0; i < FAKE_PARAMETERS && function->sizes[i]; i++)
            memcpy(operation.launch.values[i], parameters[i], function->sizes[i]);
        fake_stream_add(stream, &operation);
    }
    END;
}

// What is looked up by name.

EXPORT CUresult cuDriverGetVersion(int *out_version);
CUresult cuDriverGetVersion(int *out_version)
{
    *out_version = version;
    return CUDA_SUCCESS;
}

#ifndef FAKE_OLD_DRIVER
static CUresult get_address(const char *name, void **address, int wanted)
{
    struct function *function = find_function(name);
    *address = NULL;
    if (!function || function->version != wanted || wanted > version)
        return CUDA_ERROR_NOT_FOUND;
    memcpy(address, &function->address, sizeof *address);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetProcAddress_v2(const char *name, void **address, int wanted, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *found);
CUresult cuGetProcAddress_v2(const char *name, void **address, int wanted, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *found)
{
    const CUresult code = get_address(name, address, wanted);
    (void)flags;
    if (found)
        *found = code != CUDA_SUCCESS;
    return code;
}
#endif

static long count_struck(void)
{
    pthread_mutex_lock(&fake_lock);
    const long struck = failure.struck;
    pthread_mutex_unlock(&fake_lock);
    return struck;
}

static long count_live(void)
{
    pthread_mutex_lock(&fake_lock);
    const long live = fake_live;
    pthread_mutex_unlock(&fake_lock);
    return live;
}

static long count_calls(const char *name)
{
    pthread_mutex_lock(&fake_lock);
    const struct function *function = find_function(name);
    const long calls = function ? function->calls : -1;
    pthread_mutex_unlock(&fake_lock);
    return calls;
}

static const char *name_of(size_t index)
{
    return index < FUNCTION_COUNT ? functions[index].name : NULL;
}

static void hold(int held)
{
    pthread_mutex_lock(&fake_lock);
    fake_held = held;
    pthread_cond_broadcast(&fake_changed);
    pthread_mutex_unlock(&fake_lock);
}

static void set_foreign(int on)
{
    current = on ? &foreign : NULL;
}

static int has_foreign(void)
{
    return current == &foreign ? 1 : current ? -1 : 0;
}

EXPORT extern const struct weir_test_cuda weir_test_cuda;
const struct weir_test_cuda weir_test_cuda = {
    .fail = set_failure,
    .struck = count_struck,
    .live = count_live,
    .calls = count_calls,
    .name = name_of,
    .hold = hold,
    .set_foreign_context = set_foreign,
    .has_foreign_context = has_foreign,
};

static long number_in(const char *variable, long fallback)
{
    const char *value = getenv(variable);
    return value && value[0] ? strtol(value, NULL, 10) : fallback;
}

__attribute__((constructor)) static void start(void)
{
    char name[64];
    long n = 0;
    int code = 0;
    version = (int)number_in("WEIR_TEST_CUDA_VERSION", version);
    device_count = (int)number_in("WEIR_TEST_CUDA_DEVICES", device_count);
    device_count = device_count < DEVICE_LIMIT ? device_count : DEVICE_LIMIT;
    architecture = (int)number_in("WEIR_TEST_CUDA_ARCH", architecture);
    memory_bytes = (size_t)number_in("WEIR_TEST_CUDA_MEMORY", (long)memory_bytes);
    const char *fail = getenv("WEIR_TEST_CUDA_FAIL");
    if (fail && sscanf(fail, "%63[^:]:%ld:%d", name, &n, &code) >= 2)
        set_failure(name, n, code);
}
