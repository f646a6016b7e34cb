// Memory, copies and fills.
#include <stdlib.h>
#include <string.h>

#include "fake.h"

// Memory.

CUresult cuMemGetInfo(size_t *free_bytes, size_t *total)
{
    ADMIT(true);
    *total = (size_t)FAKE_MEMORY_BYTES;
    *free_bytes = (size_t)FAKE_MEMORY_BYTES - fake_memory_used(FAKE_DEVICE, fake_current->device);
    END;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    ADMIT(true);
    *pool = calloc(1, sizeof **pool);
    REFUSE(!*pool, CUDA_ERROR_OUT_OF_MEMORY);
    (*pool)->device = properties->location.id;
    fake_live++;
    END;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    BEGIN(true);
    free(pool);
    fake_live--;
    END;
}

SIMPLE(cuMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void *value),
       true, )
SIMPLE(cuMemPoolTrimTo, (CUmemoryPool pool, size_t size), true, )

static void *allocate(size_t size, size_t alignment)
{
    return size <= SIZE_MAX - alignment
               ? aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
               : NULL;
}

static CUresult make(CUdeviceptr *address, size_t size, size_t alignment, enum fake_kind kind,
                     CUdevice device)
{
    void *memory = allocate(size, alignment);
    *address = (CUdeviceptr)(uintptr_t)memory;
    return memory && fake_memory_add(memory, size, kind, device) ? CUDA_SUCCESS
                                                                 : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult make_on_device(CUdeviceptr *address, size_t size, CUdevice device)
{
    return size > (size_t)FAKE_MEMORY_BYTES - fake_memory_used(FAKE_DEVICE, device)
               ? CUDA_ERROR_OUT_OF_MEMORY
               : make(address, size, 256, FAKE_DEVICE, device);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t size, CUmemoryPool pool,
                                 CUstream stream)
{
    *address = 0;
    ADMIT(true);
    code = make_on_device(address, size, pool->device);
    END;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t size)
{
    *address = 0;
    ADMIT(true);
    code = make_on_device(address, size, fake_current->device);
    END;
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    BEGIN(true);
    fake_stream_add(stream,
                    &(struct fake_operation){.kind = FAKE_FREE, .dst = (char *)(uintptr_t)address});
    END;
}

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t size, unsigned flags)
{
    *address = 0;
    ADMIT(true);
    REFUSE(flags != CU_MEM_ATTACH_GLOBAL || !fake_managed, FAKE_INVALID_VALUE);
    code = make(address, size, 4096, FAKE_MANAGED, fake_current->device);
    END;
}

CUresult cuMemFree(CUdeviceptr address)
{
    void *memory = (void *)(uintptr_t)address;
    BEGIN(true);
    fake_device_finish();
    if (fake_memory_remove(memory, FAKE_MANAGED | FAKE_DEVICE))
        free(memory);
    END;
}

CUresult cuMemHostAlloc(void **pointer, size_t size, unsigned flags)
{
    ADMIT(true);
    *pointer = NULL;
    REFUSE(size > (size_t)fake_pinned_bytes - fake_memory_used(FAKE_PINNED, 0),
           CUDA_ERROR_OUT_OF_MEMORY);
    *pointer = allocate(size, 4096);
    code = *pointer && fake_memory_add(*pointer, size, FAKE_PINNED, 0) ? CUDA_SUCCESS
                                                                       : CUDA_ERROR_OUT_OF_MEMORY;
    END;
}

CUresult cuMemFreeHost(void *pointer)
{
    BEGIN(true);
    fake_device_finish();
    if (fake_memory_remove(pointer, FAKE_PINNED))
        free(pointer);
    END;
}

CUresult cuMemHostRegister(void *pointer, size_t size, unsigned flags)
{
    ADMIT(true);
    REFUSE(fake_memory_overlaps(pointer, size), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    REFUSE(!fake_memory_add(pointer, size, FAKE_REGISTERED, 0), CUDA_ERROR_OUT_OF_MEMORY);
    END;
}

CUresult cuMemHostUnregister(void *pointer)
{
    BEGIN(true);
    fake_device_finish();
    if (!fake_memory_remove(pointer, FAKE_REGISTERED) && code == CUDA_SUCCESS)
        code = FAKE_NOT_REGISTERED;
    END;
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *address, void *pointer, unsigned flags)
{
    ADMIT(true);
    REFUSE(!fake_memory_holds(pointer, 1, FAKE_HOST), FAKE_INVALID_VALUE);
    *address = (CUdeviceptr)(uintptr_t)pointer;
    END;
}

// Copies and fills.

static bool may_use(const void *pointer, size_t size, int kinds)
{
    return fake_memory_holds(pointer, size, kinds) &&
           (kinds != FAKE_DEVICE || fake_device_reaches(fake_memory_find((uintptr_t)pointer)));
}

size_t fake_dst_bytes(const struct fake_operation *copy)
{
    const size_t slices = copy->depth > 1 ? copy->depth - 1 : 0;
    return slices * copy->dst_slice + (copy->height - 1) * copy->dst_pitch + copy->width;
}

size_t fake_src_bytes(const struct fake_operation *copy)
{
    const size_t slices = copy->depth > 1 ? copy->depth - 1 : 0;
    return slices * copy->src_slice + (copy->height - 1) * copy->src_pitch + copy->width;
}

static CUresult add_copy(CUstream stream, const struct fake_operation *copy, int dst_kinds,
                         int src_kinds)
{
    if (!may_use(copy->dst, fake_dst_bytes(copy), dst_kinds) ||
        !may_use(copy->src, fake_src_bytes(copy), src_kinds))
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

#define MEMCPY(name, dst_type, dst_kinds, src_type, src_kinds)                            \
    CUresult name(dst_type dst, src_type src, size_t size, CUstream stream)               \
    {                                                                                     \
        const struct fake_operation copy = copy_of((uintptr_t)dst, (uintptr_t)src, size); \
        ADMIT(true);                                                                      \
        code = add_copy(stream, &copy, dst_kinds, src_kinds);                             \
        END;                                                                              \
    }
MEMCPY(cuMemcpyHtoDAsync, CUdeviceptr, FAKE_DEVICE, const void *, FAKE_HOST)
MEMCPY(cuMemcpyDtoHAsync, void *, FAKE_HOST, CUdeviceptr, FAKE_DEVICE)
MEMCPY(cuMemcpyDtoDAsync, CUdeviceptr, FAKE_DEVICE, CUdeviceptr, FAKE_DEVICE)
#undef MEMCPY

// The two that block, which programs of CUDA call on memory of any kind.
#define BLOCKING(name, dst_type, src_type)                                            \
    __attribute__((visibility("default"))) CUresult name(dst_type, src_type, size_t); \
    CUresult name(dst_type dst, src_type src, size_t size)                            \
    {                                                                                 \
        ADMIT(true);                                                                  \
        memcpy((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, size);           \
        END;                                                                          \
    }
BLOCKING(cuMemcpyHtoD_v2, CUdeviceptr, const void *)
BLOCKING(cuMemcpyDtoH_v2, void *, CUdeviceptr)
#undef BLOCKING

bool fake_box_read(const CUDA_MEMCPY3D *box, struct fake_operation *out_copy)
{
    const bool to_host = box->dstMemoryType == CU_MEMORYTYPE_HOST;
    const bool from_host = box->srcMemoryType == CU_MEMORYTYPE_HOST;
    *out_copy = (struct fake_operation){
        .kind = FAKE_COPY,
        .dst = to_host ? box->dstHost : (char *)(uintptr_t)box->dstDevice,
        .src = from_host ? box->srcHost : (const char *)(uintptr_t)box->srcDevice,
        .dst_pitch = box->dstPitch,
        .src_pitch = box->srcPitch,
        .dst_slice = box->dstPitch * box->dstHeight,
        .src_slice = box->srcPitch * box->srcHeight,
        .width = box->WidthInBytes,
        .height = box->Height,
        .depth = box->Depth,
    };
    return !(to_host && from_host) && box->WidthInBytes && box->Height && box->Depth &&
           box->dstPitch >= box->WidthInBytes && box->srcPitch >= box->WidthInBytes &&
           box->dstHeight >= box->Height && box->srcHeight >= box->Height && !box->srcXInBytes &&
           !box->srcY && !box->srcZ && !box->dstXInBytes && !box->dstY && !box->dstZ;
}

static CUresult add_box(CUstream stream, const CUDA_MEMCPY3D *box)
{
    struct fake_operation copy;
    return fake_box_read(box, &copy)
               ? add_copy(stream, &copy,
                          box->dstMemoryType == CU_MEMORYTYPE_HOST ? FAKE_HOST : FAKE_DEVICE,
                          box->srcMemoryType == CU_MEMORYTYPE_HOST ? FAKE_HOST : FAKE_DEVICE)
               : FAKE_INVALID_VALUE;
}

CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D *box, CUstream stream)
{
    ADMIT(true);
    code = add_box(stream, box);
    END;
}

bool fake_set_read(const CUDA_MEMSET_NODE_PARAMS *set, struct fake_operation *out_set)
{
    const size_t element = set->elementSize;
    const size_t row = element * set->width;
    *out_set = (struct fake_operation){.kind = FAKE_SET,
                                       .dst = (char *)(uintptr_t)set->dst,
                                       .dst_pitch = set->pitch,
                                       .value = set->value,
                                       .element = element,
                                       .width = set->width,
                                       .height = set->height};
    return (element == 1 || element == 2 || element == 4) && set->width > 0 && set->height > 0 &&
           set->dst % element == 0 && (set->height == 1 || set->pitch >= row) &&
           set->pitch % element == 0 &&
           fake_memory_holds(out_set->dst, (set->height - 1) * set->pitch + row,
                             FAKE_DEVICE | FAKE_HOST);
}

// Of a line, and of rows.
#define MEMSET(name, parameters, pitch_, width_, height_)                    \
    CUresult name parameters                                                 \
    {                                                                        \
        const CUDA_MEMSET_NODE_PARAMS params = {.dst = dst,                  \
                                                .pitch = (pitch_),           \
                                                .value = value,              \
                                                .elementSize = sizeof value, \
                                                .width = (width_),           \
                                                .height = (height_)};        \
        struct fake_operation set;                                           \
        ADMIT(true);                                                         \
        REFUSE(!fake_set_read(&params, &set), FAKE_INVALID_VALUE);           \
        fake_stream_add(stream, &set);                                       \
        END;                                                                 \
    }
#define MEMSETS(bits, type)                                                                      \
    MEMSET(cuMemsetD##bits##Async, (CUdeviceptr dst, type value, size_t count, CUstream stream), \
           0, count, 1)                                                                          \
    MEMSET(cuMemsetD2D##bits##Async,                                                             \
           (CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height,              \
            CUstream stream),                                                                    \
           pitch, width, height)
MEMSETS(8, unsigned char)
MEMSETS(16, unsigned short)
MEMSETS(32, unsigned)
#undef MEMSETS
#undef MEMSET

// Access between two devices, and queries about streams and memory.

// By the user's device and the owner's.
static bool pool_access[FAKE_DEVICE_LIMIT][FAKE_DEVICE_LIMIT];
static bool context_access[FAKE_DEVICE_LIMIT][FAKE_DEVICE_LIMIT];

bool fake_device_reaches(const struct fake_range *range)
{
    return range->kind == FAKE_MANAGED || range->device == fake_current->device ||
           pool_access[fake_current->device][range->device];
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    BEGIN(false);
    *can = fake_peers && device != peer;
    END;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    ADMIT(true);
    REFUSE(flags || !fake_peers || peer == fake_current, FAKE_INVALID_VALUE);
    REFUSE(context_access[fake_current->device][peer->device],
           CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    context_access[fake_current->device][peer->device] = true;
    END;
}

void fake_access_end(CUdevice device)
{
    for (int i = 0; i < FAKE_DEVICE_LIMIT; i++) {
        context_access[device][i] = false;
        context_access[i][device] = false;
    }
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *accesses, size_t count)
{
    ADMIT(true);
    for (size_t i = 0; i < count; i++) {
        const int user = accesses[i].location.id;
        REFUSE(accesses[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || user < 0 ||
                   user >= FAKE_DEVICE_LIMIT || !fake_peers,
               FAKE_INVALID_VALUE);
        pool_access[user][pool->device] = accesses[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    END;
}

// Device memory of that context. Without access the driver copies through the host.
static bool lies_in(CUdeviceptr address, size_t size, CUcontext context)
{
    const struct fake_range *range = fake_memory_find(address);
    return range && fake_context(range->device) == context &&
           fake_memory_holds((const void *)(uintptr_t)address, size, FAKE_DEVICE);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                           CUcontext src_context, size_t size, CUstream stream)
{
    const struct fake_operation copy = copy_of(dst, src, size);
    ADMIT(true);
    REFUSE(!lies_in(dst, size, dst_context) || !lies_in(src, size, src_context),
           FAKE_INVALID_VALUE);
    fake_stream_add(stream, &copy);
    END;
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *block, CUstream stream)
{
    const CUDA_MEMCPY3D box = {
        .srcMemoryType = block->srcMemoryType,
        .srcDevice = block->srcDevice,
        .srcPitch = block->srcPitch,
        .srcHeight = block->srcHeight,
        .dstMemoryType = block->dstMemoryType,
        .dstDevice = block->dstDevice,
        .dstPitch = block->dstPitch,
        .dstHeight = block->dstHeight,
        .WidthInBytes = block->WidthInBytes,
        .Height = block->Height,
        .Depth = block->Depth,
    };
    struct fake_operation copy;
    ADMIT(true);
    REFUSE(block->srcMemoryType != CU_MEMORYTYPE_DEVICE ||
               block->dstMemoryType != CU_MEMORYTYPE_DEVICE || !fake_box_read(&box, &copy) ||
               !lies_in(block->dstDevice, fake_dst_bytes(&copy), block->dstContext) ||
               !lies_in(block->srcDevice, fake_src_bytes(&copy), block->srcContext),
           FAKE_INVALID_VALUE);
    fake_stream_add(stream, &copy);
    END;
}

// Queries.

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    ADMIT(true);
    REFUSE(!fake_stream_known(stream), FAKE_INVALID_HANDLE);
    *context = fake_context(fake_stream_device(stream));
    END;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    ADMIT(true);
    REFUSE(!fake_stream_known(stream), FAKE_INVALID_HANDLE);
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    END;
}

CUresult cuMemGetAddressRange(CUdeviceptr *out_start, size_t *out_size, CUdeviceptr address)
{
    ADMIT(true);
    const struct fake_range *range = fake_memory_find(address);
    REFUSE(!range || range->kind != FAKE_DEVICE, CUDA_ERROR_NOT_FOUND);
    *out_start = range->start;
    *out_size = range->size;
    END;
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    ADMIT(true);
    const struct fake_range *range = fake_memory_find(address);
    REFUSE(!range || (attribute != CU_POINTER_ATTRIBUTE_MEMORY_TYPE &&
                      attribute != CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL),
           FAKE_INVALID_VALUE);
    const CUmemorytype type =
        range->kind == FAKE_DEVICE ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
        memcpy(value, &type, sizeof type);
    else
        memcpy(value, &range->device, sizeof range->device);
    END;
}
