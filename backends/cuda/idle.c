// cuMemHostUnregister and cuModuleUnload wait for the whole device, so a destroy
// must not call them. What is to be given back is noted instead, and given back
// when no queue of the device has work: after a wait on the host, in program
// creation, in trim and at close. Work of others in the process is not seen; such
// a moment then lasts until that is done.
//
// Registrations are the process's, not a device's, so they stand in one list. Two
// buffers over the same memory, of two devices perhaps, share one.
#include "backends/cuda/cu.h"

struct cu_registration {
    struct cu_registration *next;
    struct cu_device *device; // of the last user, once there are none
    char *pointer;
    size_t size;
    size_t users;
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cu_registration *list;

static bool covers(const struct cu_registration *registration, const char *pointer, size_t size)
{
    return pointer >= registration->pointer &&
           pointer + size <= registration->pointer + registration->size;
}

static bool touches(const struct cu_registration *registration, const char *pointer, size_t size)
{
    return pointer < registration->pointer + registration->size &&
           registration->pointer < pointer + size;
}

// Takes registrations without users off the list: those of a device, or those
// that touch a range.
static struct cu_registration *take_unused(const struct cu_device *device, const char *pointer,
                                           size_t size)
{
    struct cu_registration *taken = NULL;
    pthread_mutex_lock(&list_lock);
    for (struct cu_registration **at = &list; *at;) {
        struct cu_registration *registration = *at;
        const bool wanted =
            device ? registration->device == device : touches(registration, pointer, size);
        if (registration->users > 0 || !wanted) {
            at = &registration->next;
            continue;
        }
        *at = registration->next;
        registration->next = taken;
        taken = registration;
        atomic_fetch_sub(&registration->device->waiting, 1);
    }
    pthread_mutex_unlock(&list_lock);
    return taken;
}

static void unregister(const struct cu_module *module, struct cu_registration *taken)
{
    while (taken) {
        struct cu_registration *next = taken->next;
        module->cu.cuMemHostUnregister(taken->pointer);
        module->host->release(taken);
        taken = next;
    }
}

static struct cu_registration *share(const char *pointer, size_t size)
{
    pthread_mutex_lock(&list_lock);
    struct cu_registration *registration = list;
    while (registration && !covers(registration, pointer, size))
        registration = registration->next;
    if (registration)
        registration->users++;
    pthread_mutex_unlock(&list_lock);
    return registration;
}

static weir_status refuse(struct cu_device *device, CUresult code, const void *pointer, size_t size)
{
    if (code == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
        return weir_host_fail(device->module->host, WEIR_ERROR_INVALID,
                              "wrap the whole range once, or let go of what registered it",
                              "a part of the %zu bytes at %p is registered with CUDA already", size,
                              pointer);
    return cu_native_error(device, "cuMemHostRegister", code, "cannot pin %zu bytes at %p", size,
                           pointer);
}

// Whether somebody else in the process has pinned the range: the driver knows its ends,
// and nothing that is registered here, and may be let go, touches it.
static bool is_pinned_by_others(const struct cu_device *device, const char *pointer, size_t size)
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
    pthread_mutex_lock(&list_lock);
    const struct cu_registration *at = list;
    while (at && !touches(at, pointer, size))
        at = at->next;
    pthread_mutex_unlock(&list_lock);
    return !at;
}

weir_status cu_registration_get(struct cu_device *device, void *pointer, size_t size,
                                struct cu_registration **out_registration)
{
    const struct cu_module *module = device->module;
    unregister(module, take_unused(NULL, pointer, size));
    *out_registration = share(pointer, size);
    if (*out_registration)
        return WEIR_OK;

    struct cu_registration *registration = module->host->allocate(sizeof *registration);
    if (!registration)
        return weir_host_no_memory(module->host, "a buffer");
    CUresult code =
        module->cu.cuMemHostRegister(pointer, size,
                                     CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    if (code != CUDA_SUCCESS) {
        module->host->release(registration);
        if (is_pinned_by_others(device, pointer, size))
            return WEIR_OK;
        return refuse(device, code, pointer, size);
    }
    module->host->count_driver_object();
    registration->pointer = pointer;
    registration->size = size;
    registration->users = 1;
    pthread_mutex_lock(&list_lock);
    registration->next = list;
    list = registration;
    pthread_mutex_unlock(&list_lock);
    *out_registration = registration;
    return WEIR_OK;
}

void cu_registration_put(struct cu_device *device, struct cu_registration *registration)
{
    pthread_mutex_lock(&list_lock);
    if (--registration->users == 0) {
        registration->device = device;
        atomic_fetch_add(&device->waiting, 1);
    }
    pthread_mutex_unlock(&list_lock);
}

void cu_idle_put(struct cu_device *device, struct cu_idle *entry)
{
    pthread_mutex_lock(&device->lock);
    entry->next = device->idle;
    device->idle = entry;
    atomic_fetch_add(&device->waiting, 1);
    pthread_mutex_unlock(&device->lock);
}

static bool has_work(const struct cu_queue *queue)
{
    const struct cu_symbols *cu = &queue->device->module->cu;
    if (queue->left)
        return queue->end && cu->cuEventQuery(queue->end) != CUDA_SUCCESS;
    return cu->cuStreamQuery(queue->stream) != CUDA_SUCCESS;
}

static bool is_idle(struct cu_device *device)
{
    bool idle = true;
    pthread_mutex_lock(&device->lock);
    for (const struct cu_queue *queue = device->queues; queue && idle; queue = queue->next)
        idle = !has_work(queue);
    pthread_mutex_unlock(&device->lock);
    return idle;
}

void cu_idle_settle(struct cu_device *device)
{
    if (atomic_load_explicit(&device->waiting, memory_order_relaxed) > 0 && is_idle(device))
        cu_idle_drain(device);
}

void cu_idle_drain(struct cu_device *device)
{
    const struct cu_module *module = device->module;
    unregister(module, take_unused(device, NULL, 0));

    pthread_mutex_lock(&device->lock);
    struct cu_idle *entry = device->idle;
    device->idle = NULL;
    pthread_mutex_unlock(&device->lock);
    while (entry) {
        struct cu_idle *next = entry->next;
        module->cu.cuModuleUnload(entry->module);
        module->host->release(entry);
        atomic_fetch_sub(&device->waiting, 1);
        entry = next;
    }
}
