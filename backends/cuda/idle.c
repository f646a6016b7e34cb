// cuMemHostUnregister and cuModuleUnload wait for the whole device, so the kit defers them until no
// queue of the device has work. Work of other libraries in the process is not considered; the calls
// then wait for it.
#include "backends/cuda/ask.h"
#include "backends/cuda/cu.h"

static struct weir_kit_registrations registrations = WEIR_KIT_REGISTRATIONS;

static bool has_work(const struct cu_queue *queue)
{
    const struct cu_symbols *cu = &queue->device->module->cu;
    if (queue->left)
        return queue->end && cu_ask_event(cu, queue->end) != CUDA_SUCCESS;
    return cu_ask_stream(cu, queue->stream) != CUDA_SUCCESS;
}

static bool is_idle(void *user)
{
    struct cu_device *device = user;
    bool idle = true;
    pthread_mutex_lock(&device->lock);
    for (const struct cu_queue *queue = device->queues; queue && idle; queue = queue->next)
        idle = !has_work(queue);
    pthread_mutex_unlock(&device->lock);
    return idle;
}

static void unregister(void *user, void *pointer)
{
    const struct cu_device *device = user;
    if (!cu_is_given_up(device))
        device->module->cu.cuMemHostUnregister(pointer);
}

weir_status cu_idle_init(struct cu_device *device)
{
    const struct weir_kit_idle_params params = {
        .host = device->module->host,
        .device = device,
        .is_idle = is_idle,
        .registrations = &registrations,
        .unregister = unregister,
    };
    return weir_kit_idle_create(&params, &device->idle);
}

static weir_status refuse(struct cu_device *device, CUresult code, const void *pointer, size_t size)
{
    if (code == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
        return weir_host_fail(device->module->host, WEIR_ERROR_INVALID,
                              "wrap the whole range once, or end its other registration first",
                              "a part of the %zu bytes at %p is registered with CUDA already", size,
                              pointer);
    return cu_native_error(device, "cuMemHostRegister", code, "cannot pin %zu bytes at %p", size,
                           pointer);
}

// Whether other code in the process has pinned the range: the driver knows its ends, and it does
// not overlap a registration of this backend, which may end.
static bool is_pinned_by_others(const struct cu_device *device, char *pointer, size_t size)
{
    const char *ends[] = {pointer, pointer + size - 1};
    for (int i = 0; i < 2; i++) {
        CUmemorytype type = 0;
        CUresult code =
            device->module->cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                     (CUdeviceptr)(uintptr_t)ends[i]);
        if (code != CUDA_SUCCESS || type != CU_MEMORYTYPE_HOST)
            return false;
    }
    return !weir_kit_registration_touches(device->idle, pointer, size);
}

weir_status cu_registration_get(struct cu_device *device, void *pointer, size_t size,
                                struct weir_kit_registration **out_registration)
{
    const struct cu_module *module = device->module;
    *out_registration = weir_kit_registration_share(device->idle, pointer, size);
    if (*out_registration)
        return WEIR_OK;
    CUresult code =
        module->cu.cuMemHostRegister(pointer, size,
                                     CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    if (code != CUDA_SUCCESS)
        return is_pinned_by_others(device, pointer, size) ? WEIR_OK
                                                          : refuse(device, code, pointer, size);
    *out_registration = weir_kit_registration_add(device->idle, pointer, size);
    if (!*out_registration) {
        module->cu.cuMemHostUnregister(pointer);
        return weir_host_no_memory(module->host, "a buffer");
    }
    module->host->count_driver_object();
    return WEIR_OK;
}
