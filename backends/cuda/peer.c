// Peer access between two devices is enabled once, at the first cu_device_peer() for them. It has
// two parts: a context enables it for memory of cuMemAlloc, such as adopted memory, and a pool for
// its own memory. It is never disabled, because other code in the process shares the contexts. If
// the hardware has no path there is no access, and the driver copies through the host.
#include "backends/cuda/cu.h"

struct cu_peer {
    struct cu_peer *next;
    uint64_t id;  // of the other device, which may be closed
    bool reaches; // this device can access the other one's memory
};

static pthread_mutex_t peers_lock = PTHREAD_MUTEX_INITIALIZER; // of the lists of all devices

// Under the lock.
static const struct cu_peer *find(const struct cu_device *device, const struct cu_device *other)
{
    const struct cu_peer *at = device->peers;
    while (at && at->id != other->id)
        at = at->next;
    return at;
}

static weir_status note(struct cu_device *device, const struct cu_device *other, bool reaches)
{
    struct cu_peer *peer = device->module->host->allocate(sizeof *peer);
    if (!peer)
        return weir_host_no_memory(device->module->host, "a peer");
    *peer = (struct cu_peer){device->peers, other->id, reaches};
    device->peers = peer;
    return WEIR_OK;
}

static CUresult open_to(const struct cu_device *device, const struct cu_device *other,
                        const char **out_call)
{
    const struct cu_symbols *cu = &device->module->cu;
    CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device->listed->native;

    *out_call = "cuCtxEnablePeerAccess";
    CUresult code = cu->cuCtxEnablePeerAccess(other->context, 0);
    if (code != CUDA_SUCCESS && code != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        return code;
    *out_call = "cuMemPoolSetAccess";
    return cu->cuMemPoolSetAccess(other->pool, &access, 1);
}

// Lets `device` access memory of `other`, if it can.
static weir_status enable_access(struct cu_device *device, const struct cu_device *other)
{
    struct cu_scope scope;
    int can = 0;
    weir_status status = cu_enter(device, &scope);
    if (status < 0)
        return status;
    const char *call = "cuDeviceCanAccessPeer";
    CUresult code = device->module->cu.cuDeviceCanAccessPeer(&can, device->listed->native,
                                                             other->listed->native);
    if (code == CUDA_SUCCESS && can)
        code = open_to(device, other, &call);
    cu_leave(device, &scope);
    if (code == CUDA_SUCCESS)
        return note(device, other, can != 0);
    return cu_native_error(device, call, code, "let '%s' reach the memory of '%s'",
                           device->listed->info.name, other->listed->info.name);
}

weir_status cu_device_peer(const struct weir_link *link, weir_device *object,
                           weir_device *other_object, bool *out_peers)
{
    struct cu_device *device = cu_device_of(link, object);
    struct cu_device *other = cu_device_of(link, other_object);

    weir_status status = WEIR_OK;
    if (device->context != other->context) {
        pthread_mutex_lock(&peers_lock);
        if (!find(device, other))
            status = enable_access(device, other);
        if (status == WEIR_OK && !find(other, device))
            status = enable_access(other, device);
        pthread_mutex_unlock(&peers_lock);
    }
    *out_peers = status == WEIR_OK;
    return status;
}

bool cu_reaches_peer(const struct cu_device *device, const struct cu_device *other)
{
    if (device->context == other->context)
        return true;
    pthread_mutex_lock(&peers_lock);
    const struct cu_peer *peer = find(device, other);
    const bool reaches = peer && peer->reaches;
    pthread_mutex_unlock(&peers_lock);
    return reaches;
}

// Pinned memory of cuMemHostAlloc has one address for all devices, which registered memory need not
// have; and device memory of the caller may be of a pool that gives this device no access.
weir_status cu_device_reach(const struct weir_link *link, weir_device *object,
                            weir_device *other_object, weir_buffer *buffer_object,
                            bool *out_reaches)
{
    const struct cu_device *device = cu_device_of(link, object);
    const struct cu_device *other = cu_device_of(link, other_object);
    const struct cu_buffer *buffer = buffer_object ? cu_buffer_of(link, buffer_object) : NULL;

    if (device->context == other->context)
        *out_reaches = true;
    else if (buffer && buffer->managed)
        *out_reaches = device->attributes.concurrent_managed != 0;
    else if (buffer && (buffer->adopted || buffer->registration))
        *out_reaches = false;
    else
        *out_reaches = cu_reaches_peer(device, other);
    return WEIR_OK;
}

void cu_peers_finish(struct cu_device *device)
{
    pthread_mutex_lock(&peers_lock);
    while (device->peers) {
        struct cu_peer *peer = device->peers;
        device->peers = peer->next;
        device->module->host->release(peer);
    }
    pthread_mutex_unlock(&peers_lock);
}

weir_status cu_copy_peer(const struct cu_target *target, const struct cu_buffer *dst,
                         size_t dst_offset, const struct cu_buffer *src, size_t src_offset,
                         size_t size)
{
    const struct cu_queue *queue = target->queue;
    CUresult code =
        queue->device->module->cu.cuMemcpyPeerAsync(dst->address + dst_offset, dst->device->context,
                                                    src->address + src_offset, src->device->context,
                                                    size, queue->stream);
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    return cu_native_error(queue->device, "cuMemcpyPeerAsync", code,
                           "copy of %zu bytes from '%s' to '%s'", size,
                           src->device->listed->info.name, dst->device->listed->info.name);
}

weir_status cu_copy_peer_3d(const struct cu_target *target, const struct cu_buffer *dst,
                            const struct weir_volume *dst_volume, const struct cu_buffer *src,
                            const struct weir_volume *src_volume, const struct cu_size *size)
{
    const struct cu_queue *queue = target->queue;
    const CUDA_MEMCPY3D_PEER block = {
        .srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = src->address + src_volume->offset,
        .srcContext = src->device->context,
        .srcPitch = src_volume->pitch,
        .srcHeight = src_volume->slice_pitch / src_volume->pitch,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = dst->address + dst_volume->offset,
        .dstContext = dst->device->context,
        .dstPitch = dst_volume->pitch,
        .dstHeight = dst_volume->slice_pitch / dst_volume->pitch,
        .WidthInBytes = size->width,
        .Height = size->height,
        .Depth = size->depth,
    };
    CUresult code = queue->device->module->cu.cuMemcpy3DPeerAsync(&block, queue->stream);
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    return cu_native_error(queue->device, "cuMemcpy3DPeerAsync", code,
                           "copy of %zu bytes in rows from '%s' to '%s'",
                           size->width * size->height * size->depth, src->device->listed->info.name,
                           dst->device->listed->info.name);
}
