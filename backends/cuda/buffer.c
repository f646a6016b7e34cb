// Memory: buffers, memory of the caller, and frees that are deferred until the device is idle.
//
// DEVICE memory is allocated from the device's pool in the memory stream, which has no other work.
// After the allocation that stream is synchronised, so every other stream may use the memory at
// once. Core destroys a buffer when no work uses it, so it can be freed in the memory stream
// without a wait.
//
// The first allocation from a pool takes the driver 7 to 11 ms, and the first one of cuMemAlloc 0.1
// (H200, driver 580). So the first DEVICE buffers, CU_PLAIN_LIMIT bytes of them, are plain memory of
// cuMemAlloc, and a program that needs no more starts sooner.
//
// HOST memory is kept by size after a destroy, because cuMemFreeHost waits for the whole device.
// Only trim, which a lack of memory brings about, and close free it. So are MANAGED and plain memory, because
// cuMemFree waits too. MANAGED memory exists only where host and device may use it at the same time, and copies
// treat it as memory of the device.
//
// Copies use the host's pointer (unified addressing), also for registered memory. Kernels use the
// device's address, which may differ for registered memory.
#include <unistd.h>

#include "backends/cuda/cu.h"

// Deferred frees.
//
// cuMemHostUnregister and cuModuleUnload wait for the whole device, and a destroy must not, so these calls are
// deferred until no queue of the device has work. Work of other libraries in the process is not considered; the calls
// then wait for it.

// Registered memory of the host. It belongs to the process and not to a device: buffers over the same memory share
// a registration, also if they are of two devices.
struct cu_registration {
    struct cu_registration *next;
    struct cu_device *device; // of the last user, while the registration is unused
    char *pointer;
    size_t size;
    size_t users;
};

static pthread_mutex_t registrations_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cu_registration *registrations;

static bool touches(const struct cu_registration *registration, const char *pointer, size_t size)
{
    return pointer < registration->pointer + registration->size &&
           registration->pointer < pointer + size;
}

// Ends unused registrations: those of the device, or if `pointer` is not NULL those that overlap the range.
static void end_unused(const struct cu_device *device, const char *pointer, size_t size)
{
    struct cu_registration *ended = NULL;
    pthread_mutex_lock(&registrations_lock);
    for (struct cu_registration **at = &registrations; *at;) {
        struct cu_registration *each = *at;
        const bool wanted = pointer ? touches(each, pointer, size) : each->device == device;
        if (each->users > 0 || !wanted) {
            at = &each->next;
            continue;
        }
        *at = each->next;
        each->next = ended;
        ended = each;
        atomic_fetch_sub(&each->device->deferred, 1);
    }
    pthread_mutex_unlock(&registrations_lock);
    while (ended) {
        struct cu_registration *next = ended->next;
        if (!cu_is_given_up(device))
            device->module->cu.cuMemHostUnregister(ended->pointer);
        device->module->host->release(ended);
        ended = next;
    }
}

static void free_deferred(struct cu_device *device)
{
    end_unused(device, NULL, 0);
    pthread_mutex_lock(&device->lock);
    struct cu_program *program = device->unloads;
    device->unloads = NULL;
    pthread_mutex_unlock(&device->lock);
    while (program) {
        struct cu_program *next = program->next;
        if (!cu_is_given_up(device))
            device->module->cu.cuModuleUnload(program->module);
        device->module->host->release(program);
        atomic_fetch_sub(&device->deferred, 1);
        program = next;
    }
}

static bool is_idle(struct cu_device *device)
{
    const struct cu_symbols *cu = &device->module->cu;
    bool idle = true;
    pthread_mutex_lock(&device->lock);
    for (const struct cu_queue *queue = device->queues; queue && idle; queue = queue->next) {
        if (queue->left)
            idle = !queue->end || cu_ask_event(cu, queue->end) == CUDA_SUCCESS;
        else
            idle = cu_ask_stream(cu, queue->stream) == CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&device->lock);
    return idle;
}

void cu_settle(struct cu_device *device)
{
    if (atomic_load_explicit(&device->deferred, memory_order_relaxed) > 0 && is_idle(device))
        free_deferred(device);
}

// Blocks.

// The list of a block is its `native`.
static void free_block(void *user, struct weir_kit_block *block)
{
    struct cu_device *device = user;
    const struct cu_symbols *cu = &device->module->cu;
    if (block->native == &device->plain)
        atomic_fetch_sub(&device->plain_bytes, block->size);
    if (!cu_is_given_up(device) && block->native == &device->blocks)
        cu->cuMemFreeHost(block->pointer);
    else if (!cu_is_given_up(device))
        cu->cuMemFree((CUdeviceptr)(uintptr_t)block->pointer);
    device->module->host->release(block);
}

void cu_free_kept(struct cu_device *device)
{
    const CUstreamCaptureMode before = cu_relax(&device->module->cu);
    free_deferred(device);
    weir_kit_blocks_empty(&device->blocks, free_block, device);
    weir_kit_blocks_empty(&device->managed, free_block, device);
    weir_kit_blocks_empty(&device->plain, free_block, device);
    cu_unrelax(&device->module->cu, before);
}

static weir_status refuse(const struct cu_buffer *buffer, const struct cu_trial *trial)
{
    const char *kind = buffer->managed ? "MANAGED" : buffer->plain ? "DEVICE" : "pinned HOST";
    const bool full = trial->code == CUDA_ERROR_OUT_OF_MEMORY && !buffer->managed;
    const long pages = sysconf(_SC_AVPHYS_PAGES);
    const long page = sysconf(_SC_PAGESIZE);
    size_t free_bytes = 0;
    size_t total = 0;
    if (full && !buffer->plain && pages >= 0 && page > 0)
        return cu_tried(trial,
                        "a %s buffer of %zu bytes was asked for, and %llu bytes of the machine's "
                        "memory are free",
                        kind, buffer->size, (unsigned long long)pages * (unsigned long long)page);
    if (full && buffer->plain && cu_of(trial)->cuMemGetInfo(&free_bytes, &total) == CUDA_SUCCESS)
        return cu_tried(trial,
                        "a %s buffer of %zu bytes was asked for, and %zu bytes of %zu are free",
                        kind, buffer->size, free_bytes, total);
    return cu_tried(trial, "cannot make a %s buffer of %zu bytes", kind, buffer->size);
}

static void allocate(struct cu_trial *trial, const struct cu_buffer *buffer, size_t size,
                     void **out_pointer)
{
    CUdeviceptr address = 0;
    if (buffer->managed)
        CU_TRY(trial, cuMemAllocManaged, &address, size, CU_MEM_ATTACH_GLOBAL);
    else if (buffer->plain)
        CU_TRY(trial, cuMemAlloc, &address, size);
    else
        CU_TRY(trial, cuMemHostAlloc, out_pointer, size,
               CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (address)
        *out_pointer = (void *)(uintptr_t)address;
}

static struct weir_kit_blocks *blocks_of(const struct cu_buffer *buffer)
{
    struct cu_device *device = buffer->device;
    return buffer->managed ? &device->managed : buffer->plain ? &device->plain : &device->blocks;
}

// Where there is no plain memory left the buffer has no block: the pool may keep memory, which it returns then.
static weir_status create_block(struct cu_buffer *buffer, size_t size)
{
    struct cu_device *device = buffer->device;
    const struct weir_host *host = device->module->host;
    struct weir_kit_block *block = host->allocate(sizeof *block);
    if (!block)
        return weir_host_no_memory(host, "a buffer");
    struct cu_trial trial = {.device = device};
    allocate(&trial, buffer, size, &block->pointer);
    if (trial.code != CUDA_SUCCESS) {
        const bool full = trial.code == CUDA_ERROR_OUT_OF_MEMORY;
        host->release(block);
        return full && buffer->plain ? WEIR_OK : refuse(buffer, &trial);
    }
    host->count_driver_object();
    block->size = size;
    block->native = blocks_of(buffer);
    buffer->block = block;
    return WEIR_OK;
}

// Memory.

// Leaves the buffer without a block if its memory is to come from the pool.
static weir_status create_plain(struct cu_buffer *buffer)
{
    struct cu_device *device = buffer->device;
    weir_status status = WEIR_OK;
    buffer->plain = true;
    buffer->block = weir_kit_block_take(&device->plain, buffer->size, 2 * buffer->size);
    if (!buffer->block) {
        if (atomic_fetch_add(&device->plain_bytes, buffer->size) + buffer->size <= CU_PLAIN_LIMIT)
            status = create_block(buffer, buffer->size);
        if (!buffer->block)
            atomic_fetch_sub(&device->plain_bytes, buffer->size);
    }
    if (buffer->block)
        buffer->address = (CUdeviceptr)(uintptr_t)buffer->block->pointer;
    return status;
}

static weir_status create_device(struct cu_buffer *buffer)
{
    struct cu_device *device = buffer->device;
    weir_status status = create_plain(buffer);
    if (status < 0 || buffer->block)
        return status;
    struct cu_trial trial = {.device = device};
    CU_TRY(&trial, cuMemAllocFromPoolAsync, &buffer->address, buffer->size, device->pool,
           device->memory_stream);
    if (trial.code != CUDA_SUCCESS) {
        buffer->address = 0;
        return refuse(buffer, &trial);
    }
    device->module->host->count_driver_object();
    CU_TRY_AWAIT(&trial, device->memory_stream);
    return cu_tried(&trial, "cannot make a DEVICE buffer of %zu bytes", buffer->size);
}

// Gets the address at which kernels access HOST memory.
static weir_status find_address(struct cu_buffer *buffer)
{
    struct cu_trial trial = {.device = buffer->device};
    CU_TRY(&trial, cuMemHostGetDevicePointer, &buffer->address, buffer->pointer, 0);
    return cu_tried(&trial, "cannot map a HOST buffer of %zu bytes", buffer->size);
}

// Memory of the caller. Adopted memory is checked here, because the driver detects wrong memory late.

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
    pthread_mutex_lock(&registrations_lock);
    const struct cu_registration *own = registrations;
    while (own && !touches(own, pointer, size))
        own = own->next;
    pthread_mutex_unlock(&registrations_lock);
    return !own;
}

// A registration that covers the range, with the caller as a further user, or NULL. Unused ones that overlap the range
// are ended first, which may wait for the device: their memory may have been unmapped since, and other memory mapped
// at its address.
static struct cu_registration *share(const struct cu_device *device, const char *pointer,
                                     size_t size)
{
    end_unused(device, pointer, size);
    pthread_mutex_lock(&registrations_lock);
    struct cu_registration *found = registrations;
    while (found && (pointer < found->pointer || pointer + size > found->pointer + found->size))
        found = found->next;
    // Another thread may have ended the last use since.
    if (found && found->users++ == 0)
        atomic_fetch_sub(&found->device->deferred, 1);
    pthread_mutex_unlock(&registrations_lock);
    return found;
}

// Registers memory of the user, or shares a registration that covers it, or stores NULL if other
// code has pinned the memory. Within the device's context.
static weir_status get_registration(struct cu_device *device, void *pointer, size_t size,
                                    struct cu_registration **out_registration)
{
    const struct cu_module *module = device->module;
    *out_registration = share(device, pointer, size);
    if (*out_registration)
        return WEIR_OK;
    CUresult code =
        module->cu.cuMemHostRegister(pointer, size,
                                     CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    if (code != CUDA_SUCCESS && is_pinned_by_others(device, pointer, size))
        return WEIR_OK;
    if (code == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
        return weir_host_fail(module->host, WEIR_ERROR_INVALID,
                              "wrap the whole range once, or end its other registration first",
                              "a part of the %zu bytes at %p is registered with CUDA already", size,
                              pointer);
    if (code != CUDA_SUCCESS)
        return CU_FAIL(device, "cuMemHostRegister", code, "cannot pin %zu bytes at %p", size,
                       pointer);
    struct cu_registration *added = module->host->allocate(sizeof *added);
    if (!added) {
        module->cu.cuMemHostUnregister(pointer);
        return weir_host_no_memory(module->host, "a buffer");
    }
    module->host->count_driver_object();
    pthread_mutex_lock(&registrations_lock);
    *added = (struct cu_registration){registrations, NULL, pointer, size, 1};
    registrations = added;
    pthread_mutex_unlock(&registrations_lock);
    *out_registration = added;
    return WEIR_OK;
}

// After the last use, ending the registration is a deferred free.
static void put(struct cu_registration *registration, struct cu_device *device)
{
    pthread_mutex_lock(&registrations_lock);
    if (--registration->users == 0) {
        registration->device = device;
        atomic_fetch_add(&device->deferred, 1);
    }
    pthread_mutex_unlock(&registrations_lock);
}

static weir_status wrap(struct cu_buffer *buffer, void *pointer)
{
    TRY(get_registration(buffer->device, pointer, buffer->size, &buffer->registration));
    buffer->adopted = !buffer->registration;
    buffer->pointer = pointer;
    return find_address(buffer);
}

// A range may consist of several allocations at adjacent addresses (PyTorch's expandable segments),
// and the driver reports one at a time.
static weir_status check_range(const struct cu_buffer *buffer, CUdeviceptr native)
{
    const struct cu_module *module = buffer->device->module;
    for (size_t there = 0; there < buffer->size;) {
        CUdeviceptr start;
        size_t size;
        CUresult code = module->cu.cuMemGetAddressRange(&start, &size, native + there);
        if (code != CUDA_SUCCESS && there == 0)
            return CU_FAIL(buffer->device, "cuMemGetAddressRange", code,
                           "cannot adopt %zu bytes at 0x%llx", buffer->size,
                           (unsigned long long)native);
        if (code != CUDA_SUCCESS || start + size <= native + there)
            return weir_host_fail(module->host, WEIR_ERROR_INVALID, "adopt as much as there is",
                                  "at 0x%llx are %zu bytes, and %zu were asked for",
                                  (unsigned long long)native, there, buffer->size);
        there = (size_t)(start + size - native);
    }
    return WEIR_OK;
}

// For memory that the driver does not know it returns CUDA_ERROR_INVALID_VALUE.
static weir_status ask(const struct cu_buffer *buffer, CUpointer_attribute what, CUdeviceptr native,
                       void *out_value)
{
    CUresult code = buffer->device->module->cu.cuPointerGetAttribute(out_value, what, native);
    if (code == CUDA_SUCCESS || code == CUDA_ERROR_INVALID_VALUE)
        return WEIR_OK;
    return CU_FAIL(buffer->device, "cuPointerGetAttribute", code,
                   "cannot adopt %zu bytes at 0x%llx", buffer->size, (unsigned long long)native);
}

static weir_status check_place(const struct cu_buffer *buffer, CUdeviceptr native,
                               weir_placement placement)
{
    const struct cu_device *device = buffer->device;
    const bool on_host = placement == WEIR_PLACE_HOST;
    CUmemorytype type = 0;
    int ordinal = device->listed->native;

    weir_status status = ask(buffer, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, native, &type);
    if (status < 0)
        return status;
    if (type != (on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE))
        return weir_host_fail(device->module->host, WEIR_ERROR_INVALID,
                              on_host ? "wrap it: weir_buffer_wrap() pins it"
                                      : "weir_buffer_wrap() takes memory of the host",
                              "CUDA knows no %s memory at 0x%llx", on_host ? "pinned" : "device",
                              (unsigned long long)native);
    if (!on_host)
        status = ask(buffer, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, native, &ordinal);
    if (status < 0 || ordinal == device->listed->native)
        return status;
    return weir_host_fail(device->module->host, WEIR_ERROR_INVALID,
                          "adopt it on the device that it is on",
                          "the memory at 0x%llx is on CUDA device %d, and '%s' is device %d",
                          (unsigned long long)native, ordinal, device->listed->info.name,
                          device->listed->native);
}

// Adopts memory of the caller: device memory or, for a HOST buffer, pinned memory of the host.
// Within the device's context.
static weir_status adopt(struct cu_buffer *buffer, CUdeviceptr native, weir_placement placement)
{
    TRY(check_place(buffer, native, placement));
    if (placement == WEIR_PLACE_DEVICE)
        TRY(check_range(buffer, native));
    buffer->adopted = true;
    if (placement == WEIR_PLACE_HOST)
        buffer->pointer = (char *)(uintptr_t)native;
    else
        buffer->address = native;
    return WEIR_OK;
}

// Buffers.

static weir_status create(struct cu_buffer *buffer, const struct weir_buffer_setup *setup)
{
    if (setup->native) {
        weir_status status = adopt(buffer, setup->native, setup->placement);
        return status < 0 || !buffer->pointer ? status : find_address(buffer);
    }
    if (setup->placement == WEIR_PLACE_DEVICE)
        return create_device(buffer);
    buffer->managed = setup->placement == WEIR_PLACE_MANAGED;
    if (!buffer->managed && setup->user_pointer)
        return wrap(buffer, setup->user_pointer);
    const size_t size = weir_kit_block_size(buffer->size);
    buffer->block = weir_kit_block_take(blocks_of(buffer), size, size);
    if (!buffer->block)
        TRY(create_block(buffer, size));
    if (!buffer->managed) {
        buffer->pointer = buffer->block->pointer;
        return find_address(buffer);
    }
    buffer->address = (CUdeviceptr)(uintptr_t)buffer->block->pointer;
    return WEIR_OK;
}

// Within the device's context.
static void release(struct cu_buffer *buffer)
{
    struct cu_device *device = buffer->device;
    if (buffer->block)
        weir_kit_block_put(buffer->block->native, buffer->block);
    else if (buffer->registration)
        put(buffer->registration, device);
    else if (buffer->address && !buffer->adopted && !cu_is_given_up(device))
        device->module->cu.cuMemFreeAsync(buffer->address, device->memory_stream);
    device->module->host->release(buffer);
}

weir_status cu_buffer_create(const struct weir_link *link, weir_device *object,
                             weir_buffer *buffer_object, const struct weir_buffer_setup *setup,
                             void **out_data, void **out_pointer)
{
    struct cu_device *device = cu_device_of(link, object);
    struct cu_scope scope;
    TRY(cu_enter(device, &scope));
    struct cu_buffer *buffer = link->host->allocate(sizeof *buffer);
    if (!buffer) {
        cu_leave(device, &scope);
        return weir_host_no_memory(link->host, "a buffer");
    }
    buffer->device = device;
    buffer->size = setup->size;
    const CUstreamCaptureMode before = cu_relax(&device->module->cu);
    weir_status status = create(buffer, setup);
    cu_unrelax(&device->module->cu, before);
    if (status < 0)
        release(buffer);
    cu_leave(device, &scope);
    if (status < 0)
        return status;
    *out_data = buffer;
    if (setup->placement == WEIR_PLACE_HOST)
        *out_pointer = buffer->pointer;
    if (buffer->managed)
        *out_pointer = buffer->block->pointer;
    return WEIR_OK;
}

void cu_buffer_destroy(const struct weir_link *link, weir_buffer *object)
{
    struct cu_buffer *buffer = cu_buffer_of(link, object);
    struct cu_device *device = buffer->device;
    struct cu_scope scope;
    cu_enter_to_destroy(device, &scope);
    release(buffer);
    cu_leave(device, &scope);
}

weir_status cu_buffer_address(const struct weir_link *link, weir_buffer *object,
                              uint64_t *out_address)
{
    *out_address = cu_buffer_of(link, object)->address;
    return WEIR_OK;
}

weir_status cu_buffer_native(const struct weir_link *link, weir_buffer *object,
                             struct weir_native_buffer *out_native)
{
    const struct cu_buffer *buffer = cu_buffer_of(link, object);
    out_native->api = WEIR_NATIVE_CUDA;
    out_native->address = buffer->address;
    out_native->host = buffer->pointer;
    return WEIR_OK;
}
