// Streams, events, modules and launches.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

struct CUevent_st {
    unsigned flags;
    struct fake_fence *fence; // of the last record; NULL: never recorded
};

struct CUmod_st {
    const char *image; // borrowed for as long as the load takes, and copied
    size_t size;
};

// Streams and events. Destroying works in a dead context too, and reports its
// error.

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    ADMIT(true);
    REFUSE(flags != CU_STREAM_NON_BLOCKING || priority > 0 || priority < -5, FAKE_INVALID_VALUE);
    *stream = fake_stream_create(fake_current->device);
    END;
}

CUresult cuStreamDestroy(CUstream stream)
{
    BEGIN(true);
    if (fake_stream_known(stream))
        fake_stream_destroy(stream);
    END;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    ADMIT(true);
    REFUSE(!fake_stream_known(stream),
           FAKE_INVALID_HANDLE); // its owner has destroyed the wrapped stream
    REFUSE(fake_capture_spoil(stream), FAKE_CAPTURE_UNSUPPORTED);
    fake_stream_finish(stream);
    code = fake_sticky;
    END;
}

CUresult cuStreamQuery(CUstream stream)
{
    ADMIT(true);
    fake_stream_check(stream, "cuStreamQuery");
    REFUSE(!fake_stream_idle(stream), CUDA_ERROR_NOT_READY);
    END;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    ADMIT(true);
    fake_stream_check(stream, "cuStreamWaitEvent");
    if (event->fence) {
        fake_fence_retain(event->fence);
        fake_stream_add(stream, &(struct fake_operation){.kind = FAKE_WAIT, .fence = event->fence});
    }
    END;
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                              unsigned flags)
{
    const struct fake_operation write = {.kind = FAKE_WRITE,
                                         .dst = (char *)(uintptr_t)address,
                                         .value = value};
    ADMIT(true);
    REFUSE(flags != CU_STREAM_WRITE_VALUE_DEFAULT || address % sizeof value ||
               !fake_memory_holds(write.dst, sizeof value, FAKE_DEVICE | FAKE_HOST),
           FAKE_INVALID_VALUE);
    fake_stream_add(stream, &write);
    END;
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    ADMIT(true);
    *event = calloc(1, sizeof **event);
    REFUSE(!*event, CUDA_ERROR_OUT_OF_MEMORY);
    (*event)->flags = flags;
    fake_live++;
    END;
}

CUresult cuEventDestroy(CUevent event)
{
    BEGIN(true);
    fake_fence_release(event->fence);
    free(event);
    fake_live--;
    END;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    ADMIT(true);
    fake_stream_check(stream, "cuEventRecord");
    fake_fence_release(event->fence);
    event->fence = fake_fence_create();
    if (fake_stream_idle(stream) && !fake_held && fake_sticky == CUDA_SUCCESS) {
        fake_fence_reach(event->fence);
    } else {
        fake_fence_retain(event->fence);
        fake_stream_add(stream,
                        &(struct fake_operation){.kind = FAKE_SIGNAL, .fence = event->fence});
    }
    END;
}

CUresult cuEventQuery(CUevent event)
{
    ADMIT(true);
    REFUSE(event->fence && !event->fence->done, CUDA_ERROR_NOT_READY);
    END;
}

CUresult cuEventSynchronize(CUevent event)
{
    ADMIT(true);
    if (event->fence) {
        fake_fence_wait(event->fence);
        code = fake_sticky;
    }
    END;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    ADMIT(true);
    REFUSE(!start->fence || !end->fence || ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING),
           FAKE_INVALID_HANDLE);
    REFUSE(!start->fence->done || !end->fence->done, CUDA_ERROR_NOT_READY);
    *milliseconds = (float)((double)(int64_t)(end->fence->time_ns - start->fence->time_ns) * 1e-6);
    END;
}

// Modules. An image is a cubin, PTX, or text that begins with "fake"; a kernel is
// in it if its name is. As the real loader, this one refuses PTX that is OpenCL's.

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

// A cubin's architecture is in its header's flags, since CUDA 13 in the second
// byte.
static CUresult check_cubin(const char *image)
{
    uint32_t flags;
    memcpy(&flags, image + 48, sizeof flags);
    const unsigned low = flags & 0xff;
    const unsigned made_for = low >= 50 ? low : flags >> 8 & 0xff;
    const unsigned has = (unsigned)fake_architecture;
    return made_for / 10 == has / 10 && made_for <= has ? CUDA_SUCCESS
                                                        : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

static CUresult check_image(const char *image)
{
    const char *ptx = strstr(image, ".version ");
    if (memcmp(image, "\177ELF", 4) == 0)
        return check_cubin(image);
    if (strncmp(image, "fake", 4) == 0)
        return CUDA_SUCCESS;
    if (!ptx || strstr(ptx, ".ptr .shared") || strstr(ptx, "texmode_independent"))
        return CUDA_ERROR_INVALID_IMAGE;
    return strtol(ptx + 9, NULL, 10) + 4 > fake_version / 1000 ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION
                                                               : CUDA_SUCCESS;
}

// The driver's declaration has no const.
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned option_count,
                            CUjit_option *options, // NOLINT(readability-non-const-parameter)
                            void **values)
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

CUresult cuModuleUnload(CUmodule module)
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

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    ADMIT(true);
    *function = NULL;
    const struct CUfunc_st *twin =
        holds_name(module, name) ? (const struct CUfunc_st *)twin_find(name) : NULL;
    *function = (CUfunction)(uintptr_t)twin;
    code = twin ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
    END;
}

SIMPLE(cuFuncLoad, (CUfunction function), true, )

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    BEGIN(true);
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? (int)function->twin.max_threads
             : attribute == CU_FUNC_ATTRIBUTE_NUM_REGS            ? fake_registers
             : attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES   ? fake_own_local
                                                                  : 0;
    END;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    ADMIT(true);
    REFUSE(attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
               value > FAKE_LOCAL_LIMIT,
           FAKE_INVALID_VALUE);
    END;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size)
{
    ADMIT(true);
    *offset = 0;
    *size = 0;
    REFUSE(index >= TWIN_PARAMETERS || function->twin.sizes[index] == 0, FAKE_INVALID_VALUE);
    *size = function->twin.sizes[index];
    END;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static int resident_blocks(unsigned items, size_t local_bytes)
{
    const size_t warps = (items + 31) / 32;
    const size_t by_items = FAKE_UNIT_ITEMS / (32 * warps);
    const size_t by_local =
        FAKE_UNIT_LOCAL / (local_bytes + (size_t)fake_own_local + FAKE_RESERVED_LOCAL);
    const size_t by_registers = FAKE_UNIT_REGISTERS / ((size_t)fake_registers * 32) / warps;
    return (int)least(least(by_items, by_local), least(by_registers, FAKE_UNIT_BLOCKS));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int items,
                                                     size_t local_bytes)
{
    ADMIT(true);
    *blocks = 0;
    REFUSE(items <= 0, FAKE_INVALID_VALUE);
    *blocks = resident_blocks((unsigned)items, local_bytes);
    END;
}

static unsigned size_of(const uint32_t *extent)
{
    return extent[0] * extent[1] * extent[2];
}

bool fake_launch_ends(const struct fake_operation *operation)
{
    const struct twin_launch *launch = &operation->launch;
    const unsigned most =
        FAKE_UNITS * (unsigned)resident_blocks(size_of(launch->block), operation->local_bytes);
    return operation->cooperative
               ? size_of(launch->grid) <= most
               : !twin_has_grid_barrier(&operation->function->twin) || size_of(launch->grid) == 1;
}

// Of those that are addresses of device memory, the current context may use all.
static bool arguments_reach(const struct CUfunc_st *function, void **parameters)
{
    bool reach = true;
    for (size_t i = 0; i < TWIN_PARAMETERS && function->twin.sizes[i]; i++) {
        uintptr_t address = 0;
        if (function->twin.sizes[i] == sizeof address)
            memcpy(&address, parameters[i], sizeof address);
        const struct fake_range *range = fake_memory_find(address);
        reach = reach && (!range || range->kind != FAKE_DEVICE || fake_device_reaches(range));
    }
    return reach;
}

bool fake_launch_read(const CUDA_KERNEL_NODE_PARAMS *params, struct fake_operation *out_launch)
{
    const struct CUfunc_st *function = params->func;
    struct twin_launch *launch = &out_launch->launch;
    *out_launch = (struct fake_operation){
        .kind = FAKE_LAUNCH,
        .function = function,
        .launch = {.grid = {params->gridDimX, params->gridDimY, params->gridDimZ},
                   .block = {params->blockDimX, params->blockDimY, params->blockDimZ}},
        .local_bytes = params->sharedMemBytes,
    };
    for (size_t i = 0; i < TWIN_PARAMETERS && function->twin.sizes[i]; i++)
        memcpy(launch->values[i], params->kernelParams[i], function->twin.sizes[i]);
    return !params->extra && !params->kern && params->sharedMemBytes <= FAKE_LOCAL_LIMIT &&
           size_of(launch->block) <= function->twin.max_threads && launch->grid[0] > 0 &&
           launch->grid[1] <= 65535 && launch->grid[2] <= 65535 &&
           arguments_reach(function, params->kernelParams);
}

// Of a kernel, and of one whose blocks may wait for each other.
#define LAUNCH(name, parameters, extra_, is_cooperative, too_large)            \
    CUresult name parameters                                                   \
    {                                                                          \
        const CUDA_KERNEL_NODE_PARAMS params = {.func = function,              \
                                                .gridDimX = grid_x,            \
                                                .gridDimY = grid_y,            \
                                                .gridDimZ = grid_z,            \
                                                .blockDimX = block_x,          \
                                                .blockDimY = block_y,          \
                                                .blockDimZ = block_z,          \
                                                .sharedMemBytes = local_bytes, \
                                                .kernelParams = arguments,     \
                                                .extra = (extra_)};            \
        struct fake_operation launch;                                          \
        ADMIT(true);                                                           \
        REFUSE(!fake_launch_read(&params, &launch), FAKE_INVALID_VALUE);       \
        launch.cooperative = (is_cooperative);                                 \
        REFUSE(!fake_launch_ends(&launch), too_large);                         \
        fake_stream_add(stream, &launch);                                      \
        END;                                                                   \
    }
LAUNCH(cuLaunchCooperativeKernel,
       (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
        unsigned block_y, unsigned block_z, unsigned local_bytes, CUstream stream,
        void **arguments),
       NULL, true, FAKE_TOO_LARGE)
LAUNCH(cuLaunchKernel,
       (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
        unsigned block_y, unsigned block_z, unsigned local_bytes, CUstream stream, void **arguments,
        void **extra),
       extra, false, FAKE_INVALID_VALUE)
