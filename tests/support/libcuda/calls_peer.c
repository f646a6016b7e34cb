// Access between two devices, and queries about streams and memory.
#include <string.h>

#include "fake.h"

// By the user's device and the owner's.
static bool pool_access[FAKE_DEVICE_LIMIT][FAKE_DEVICE_LIMIT];
static bool context_access[FAKE_DEVICE_LIMIT][FAKE_DEVICE_LIMIT];

bool fake_device_reaches(const void *pointer, size_t size)
{
    const void *start;
    size_t whole;
    enum fake_kind kind;
    int owner;
    if (!fake_memory_find(pointer, &start, &whole, &kind, &owner) ||
        !(kind & (FAKE_DEVICE | FAKE_MANAGED)))
        return false;
    const size_t before = (size_t)((const char *)pointer - (const char *)start);
    return size <= whole - before && (kind == FAKE_MANAGED || owner == fake_current->device ||
                                      pool_access[fake_current->device][owner]);
}

bool fake_arguments_reach(const struct CUfunc_st *function, void **parameters)
{
    for (size_t i = 0; i < TWIN_PARAMETERS && function->twin.sizes[i]; i++) {
        const void *pointer;
        const void *start;
        size_t whole;
        enum fake_kind kind;
        int owner;
        if (function->twin.sizes[i] != sizeof pointer)
            continue;
        memcpy(&pointer, parameters[i], sizeof pointer);
        if (fake_memory_find(pointer, &start, &whole, &kind, &owner) && kind == FAKE_DEVICE &&
            !fake_device_reaches(pointer, 1))
            return false;
    }
    return true;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    BEGIN(false);
    *can = fake_peers && device != peer;
    END;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    BEGIN(true);
    if (code == CUDA_SUCCESS && (flags || !fake_peers || peer == fake_current))
        code = FAKE_INVALID_VALUE;
    if (code == CUDA_SUCCESS && context_access[fake_current->device][peer->device])
        code = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    if (code == CUDA_SUCCESS)
        context_access[fake_current->device][peer->device] = true;
    END;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *accesses, size_t count)
{
    BEGIN(true);
    for (size_t i = 0; i < count && code == CUDA_SUCCESS; i++) {
        const int user = accesses[i].location.id;
        if (accesses[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || user < 0 ||
            user >= FAKE_DEVICE_LIMIT || !fake_peers)
            code = FAKE_INVALID_VALUE;
        else
            pool_access[user][pool->device] =
                accesses[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    END;
}

// Device memory of that context. Without access the driver copies through the host.
static bool lies_in(CUdeviceptr address, size_t size, CUcontext context)
{
    const void *pointer = (const void *)(uintptr_t)address;
    const void *start;
    size_t whole;
    enum fake_kind kind;
    int owner;
    return fake_memory_find(pointer, &start, &whole, &kind, &owner) &&
           fake_memory_holds(pointer, size, FAKE_DEVICE) && fake_context(owner) == context;
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                           CUcontext src_context, size_t size, CUstream stream)
{
    const struct fake_operation copy = {.kind = FAKE_COPY,
                                        .dst = (char *)(uintptr_t)dst,
                                        .src = (const char *)(uintptr_t)src,
                                        .width = size,
                                        .height = 1};
    BEGIN(true);
    if (code == CUDA_SUCCESS &&
        (!lies_in(dst, size, dst_context) || !lies_in(src, size, src_context)))
        code = FAKE_INVALID_VALUE;
    if (code == CUDA_SUCCESS)
        fake_stream_add(stream, &copy);
    END;
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *block, CUstream stream)
{
    const struct fake_operation copy = {
        .kind = FAKE_COPY,
        .dst = (char *)(uintptr_t)block->dstDevice,
        .src = (const char *)(uintptr_t)block->srcDevice,
        .dst_pitch = block->dstPitch,
        .src_pitch = block->srcPitch,
        .dst_slice = block->dstPitch * block->dstHeight,
        .src_slice = block->srcPitch * block->srcHeight,
        .width = block->WidthInBytes,
        .height = block->Height,
        .depth = block->Depth,
    };
    BEGIN(true);
    if (code == CUDA_SUCCESS &&
        (block->Depth == 0 || block->srcMemoryType != CU_MEMORYTYPE_DEVICE ||
         block->dstMemoryType != CU_MEMORYTYPE_DEVICE || copy.dst_pitch < copy.width ||
         copy.src_pitch < copy.width || block->dstHeight < block->Height ||
         block->srcHeight < block->Height ||
         !lies_in(block->dstDevice, fake_dst_bytes(&copy), block->dstContext) ||
         !lies_in(block->srcDevice, fake_src_bytes(&copy), block->srcContext)))
        code = FAKE_INVALID_VALUE;
    if (code == CUDA_SUCCESS)
        fake_stream_add(stream, &copy);
    END;
}

// Queries.

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    BEGIN(true);
    if (code == CUDA_SUCCESS && !fake_stream_known(stream))
        code = FAKE_INVALID_HANDLE;
    if (code == CUDA_SUCCESS)
        *context = fake_context(fake_stream_device(stream));
    END;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    BEGIN(true);
    if (code == CUDA_SUCCESS && !fake_stream_known(stream))
        code = FAKE_INVALID_HANDLE;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    END;
}

CUresult cuMemGetAddressRange(CUdeviceptr *out_start, size_t *out_size, CUdeviceptr address)
{
    const void *start;
    size_t size;
    enum fake_kind kind;
    int device;
    BEGIN(true);
    if (code == CUDA_SUCCESS &&
        (!fake_memory_find((const void *)(uintptr_t)address, &start, &size, &kind, &device) ||
         kind != FAKE_DEVICE))
        code = CUDA_ERROR_NOT_FOUND;
    if (code == CUDA_SUCCESS) {
        *out_start = (CUdeviceptr)(uintptr_t)start;
        *out_size = size;
    }
    END;
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    const void *start;
    size_t size;
    enum fake_kind kind;
    int device;
    BEGIN(true);
    if (code == CUDA_SUCCESS &&
        !fake_memory_find((const void *)(uintptr_t)address, &start, &size, &kind, &device))
        code = FAKE_INVALID_VALUE;
    if (code == CUDA_SUCCESS && attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
        const CUmemorytype type = kind == FAKE_DEVICE ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        memcpy(value, &type, sizeof type);
    } else if (code == CUDA_SUCCESS && attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
        memcpy(value, &device, sizeof device);
    } else if (code == CUDA_SUCCESS) {
        code = FAKE_INVALID_VALUE;
    }
    END;
}
