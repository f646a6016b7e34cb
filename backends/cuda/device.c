// A device uses its primary context, which the CUDA runtime, PyTorch and cuBLAS in the same process
// share. So the context is not configured here, and every entry point restores the thread's current
// context.
//
// DEVICE memory, all but the first, comes from a pool of Weir's own, in a stream that has no other work. The pool keeps
// freed memory until trim, and never makes an allocation wait for work in another stream
// (REUSE_ALLOW_INTERNAL_DEPENDENCIES off), so a wait for that stream after an allocation waits for
// nothing else.
#include <string.h>
#include <unistd.h>

#include "backends/cuda/ask.h"
#include "backends/cuda/cu.h"

// The maximum number of concurrent kernels of all devices for which there are images (compute
// capability 7.5 and newer); the driver has no attribute for it. CUDA C++ programming guide,
// "resident grids per device".
#define RESIDENT_GRIDS 128
// Documented with cuEventElapsedTime().
#define TIMING_RESOLUTION_NS 500

weir_status cu_refuse_to_enter(struct cu_device *device, CUresult code)
{
    return cu_native_error(device, "cuCtxGetCurrent", code, "ask for the current context");
}

weir_status cu_change_context(struct cu_device *device, struct cu_scope *scope)
{
    CUresult code = device->module->cu.cuCtxSetCurrent(device->context);
    scope->changed = true;
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    return cu_native_error(device, "cuCtxSetCurrent", code, "enter the device's context");
}

void cu_enter_to_destroy(struct cu_device *device, struct cu_scope *scope)
{
    const struct cu_symbols *cu = &device->module->cu;
    scope->before = NULL;
    scope->changed = cu->cuCtxGetCurrent(&scope->before) == CUDA_SUCCESS &&
                     scope->before != device->context &&
                     cu->cuCtxSetCurrent(device->context) == CUDA_SUCCESS;
}

static weir_status read_attributes(struct cu_device *device)
{
    static const struct {
        CUdevice_attribute attribute;
        const char *name;
        size_t offset;
    } entries[] = {
#define CU_ATTRIBUTE(member, attribute) \
    {attribute, #attribute, offsetof(struct cu_attributes, member)},
        CU_ATTRIBUTES(CU_ATTRIBUTE)
#undef CU_ATTRIBUTE
    };
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        int value = 0;
        CUresult code = device->module->cu.cuDeviceGetAttribute(&value, entries[i].attribute,
                                                                device->listed->native);
        if (code != CUDA_SUCCESS)
            return cu_native_error(device, "cuDeviceGetAttribute", code, "ask '%s' for %s",
                                   device->listed->info.name, entries[i].name);
        const unsigned positive = value > 0 ? (unsigned)value : 0;
        memcpy((char *)&device->attributes + entries[i].offset, &positive, sizeof positive);
    }
    device->architecture = 10 * device->attributes.major + device->attributes.minor;
    return WEIR_OK;
}

static weir_status check_abilities(struct cu_device *device)
{
    const struct weir_host *host = device->module->host;
    const char *name = device->listed->info.name;
    weir_status status = read_attributes(device);
    if (status < 0)
        return status;
    if (!device->attributes.unified_addressing)
        return weir_host_fail(host, WEIR_ERROR_UNSUPPORTED,
                              "use another device, or another backend",
                              "'%s' shares no address space with the host", name);
    if (!device->attributes.memory_pools)
        return weir_host_fail(
            host, WEIR_ERROR_UNSUPPORTED,
            "a virtual GPU needs unified memory turned on; else use another device",
            "'%s' has no memory pools, and without them freeing memory would wait for "
            "the whole device",
            name);
    return WEIR_OK;
}

static weir_status create_pool(struct cu_device *device)
{
    const struct cu_symbols *cu = &device->module->cu;
    CUmemPoolProps properties;
    cuuint64_t keep_all = UINT64_MAX;
    int off = 0;

    memset(&properties, 0, sizeof properties);
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device->listed->native;
    const char *call = "cuMemPoolCreate";
    CUresult code = cu->cuMemPoolCreate(&device->pool, &properties);
    if (code == CUDA_SUCCESS) {
        device->module->host->count_driver_object();
        call = "cuMemPoolSetAttribute";
        code =
            cu->cuMemPoolSetAttribute(device->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_all);
    }
    if (code == CUDA_SUCCESS)
        code = cu->cuMemPoolSetAttribute(device->pool,
                                         CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off);
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    return cu_native_error(device, call, code, "make the pool of '%s'", device->listed->info.name);
}

static weir_status fill_context(struct cu_device *device)
{
    const struct cu_symbols *cu = &device->module->cu;
    weir_status status = create_pool(device);
    if (status < 0)
        return status;
    const char *call = "cuCtxGetStreamPriorityRange";
    CUresult code =
        cu->cuCtxGetStreamPriorityRange(&device->priority_least, &device->priority_greatest);
    if (code == CUDA_SUCCESS) {
        call = "cuStreamCreateWithPriority";
        code = cu->cuStreamCreateWithPriority(&device->memory_stream, CU_STREAM_NON_BLOCKING,
                                              device->priority_greatest);
    }
    if (code != CUDA_SUCCESS)
        return cu_native_error(device, call, code, "prepare '%s'", device->listed->info.name);
    device->module->host->count_driver_object();
    status = cu_words_init(device);
    return status < 0 ? status : cu_timeline_init(device);
}

static void empty_context(struct cu_device *device)
{
    const struct cu_symbols *cu = &device->module->cu;
    struct cu_scope scope;
    cu_enter_to_destroy(device, &scope);
    weir_kit_idle_drain(device->idle);
    cu_prints_finish(device);
    cu_blocks_release(device);
    cu_words_finish(device);
    cu_timeline_finish(device);
    const bool given_up = cu_is_given_up(device);
    if (device->memory_stream && !given_up)
        cu_await_stream(cu, device->memory_stream);
    if (device->memory_stream)
        cu->cuStreamDestroy(device->memory_stream);
    if (device->pool) // returns at once, whatever is in use
        cu->cuMemPoolDestroy(device->pool);
    cu_leave(device, &scope);
}

static void release(struct cu_device *device)
{
    const struct cu_module *module = device->module;
    cu_peers_finish(device);
    const bool alone = cu_comm_threads_leave(device->comm_threads, module->host);
    if (device->context) {
        empty_context(device);
        // A thread that NCCL does not let go still uses the context, or a kernel does.
        if (alone && !cu_is_given_up(device))
            module->cu.cuDevicePrimaryCtxRelease(device->listed->native);
    }
    cu_delist_open(device);
    pthread_mutex_destroy(&device->timeline.lock);
    pthread_mutex_destroy(&device->clock.lock);
    pthread_mutex_destroy(&device->prints.lock);
    weir_kit_idle_destroy(&device->idle);
    weir_kit_blocks_destroy(&device->blocks);
    weir_kit_blocks_destroy(&device->managed);
    weir_kit_blocks_destroy(&device->plain);
    pthread_mutex_destroy(&device->lock);
    module->host->release(device);
}

static weir_status retain_context(struct cu_device *device)
{
    CUresult code =
        device->module->cu.cuDevicePrimaryCtxRetain(&device->context, device->listed->native);
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    device->context = NULL;
    return cu_native_error(device, "cuDevicePrimaryCtxRetain", code, "open '%s'",
                           device->listed->info.name);
}

weir_status cu_device_create(const struct weir_link *link, weir_device *object,
                             const struct weir_device_setup *setup, void **out_data)
{
    struct cu_module *module = cu_module_of(link);
    struct cu_scope scope;
    struct cu_device *device = module->host->allocate(sizeof *device);
    if (!device)
        return weir_host_no_memory(module->host, "a device");
    device->module = module;
    device->id = weir_device_object(object)->id;
    device->listed = &module->listed[setup->index];
    pthread_mutex_init(&device->lock, NULL);
    pthread_mutex_init(&device->timeline.lock, NULL);
    pthread_mutex_init(&device->clock.lock, NULL);
    pthread_mutex_init(&device->prints.lock, NULL);

    device->comm_threads = cu_comm_threads_create(module->host);
    weir_status status = device->comm_threads ? cu_enlist_open(device)
                                              : weir_host_no_memory(module->host, "a device");
    if (status == WEIR_OK)
        status = check_abilities(device);
    if (status == WEIR_OK)
        status = cu_idle_init(device);
    if (status == WEIR_OK)
        status = weir_kit_blocks_create(module->host, &device->blocks);
    if (status == WEIR_OK)
        status = weir_kit_blocks_create(module->host, &device->managed);
    if (status == WEIR_OK)
        status = weir_kit_blocks_create(module->host, &device->plain);
    if (status == WEIR_OK)
        status = retain_context(device);
    if (status == WEIR_OK)
        status = cu_enter(device, &scope);
    if (status == WEIR_OK) {
        status = fill_context(device);
        cu_leave(device, &scope);
    }
    if (status < 0) {
        release(device);
        return status;
    }
    *out_data = device;
    return WEIR_OK;
}

void cu_device_destroy(const struct weir_link *link, weir_device *object)
{
    release(cu_device_of(link, object));
}

weir_status cu_device_trim(const struct weir_link *link, weir_device *object)
{
    struct cu_device *device = cu_device_of(link, object);
    struct cu_scope scope;
    weir_status status = cu_enter(device, &scope);
    if (status < 0)
        return status;
    weir_kit_idle_drain(device->idle);
    cu_blocks_release(device);
    const char *call = "cuStreamSynchronize";
    CUresult code = cu_await_stream(&device->module->cu, device->memory_stream);
    if (code == CUDA_SUCCESS) {
        call = "cuMemPoolTrimTo";
        code = device->module->cu.cuMemPoolTrimTo(device->pool, 0);
    }
    cu_leave(device, &scope);
    return code == CUDA_SUCCESS ? WEIR_OK : cu_native_error(device, call, code, "trim the device");
}

static uint64_t host_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

// In CUDA a smaller number is a higher priority, so the sign changes: on an H200 least and greatest
// are 0 and -5, which are 0 and 5 here.
static void overlap_limits(const struct cu_device *device, struct weir_limits *limits)
{
    limits->concurrent_kernels = device->attributes.concurrent_kernels ? RESIDENT_GRIDS : 1;
    // A single engine serves both directions; with several each direction has its own.
    limits->copy_engines_to_device = device->attributes.engines > 0;
    limits->copy_engines_to_host = device->attributes.engines > 0;
    limits->priority_lowest = -device->priority_least;
    limits->priority_highest = -device->priority_greatest;
}

void cu_device_limits(const struct weir_link *link, weir_device *object, struct weir_limits *limits)
{
    const struct cu_device *device = cu_device_of(link, object);
    const struct cu_attributes *has = &device->attributes;
    const uint64_t memory = device->listed->info.memory_bytes;

    limits->memory_bytes = memory;
    // HOST buffers may be larger than the device's memory.
    limits->max_buffer_bytes = memory > host_bytes() ? memory : host_bytes();
    limits->argument_alignment_bytes = CU_ALIGNMENT;
    limits->unified_memory = has->integrated != 0;
    limits->host_in_kernels = 1;
    limits->max_block_items = has->max_block_items;
    limits->max_block = weir_dim(has->max_block_x, has->max_block_y, has->max_block_z);
    limits->max_grid = weir_dim(has->max_grid_x, has->max_grid_y, has->max_grid_z);
    limits->max_local_bytes = has->max_local_bytes;
    limits->compute_units = has->multiprocessors;
    overlap_limits(device, limits);
    limits->timing_resolution_ns = TIMING_RESOLUTION_NS;
    limits->timing_history = CU_TIMING_HISTORY;
    limits->native = 1;
    limits->cuda_source = 1;
    limits->printf_to_log = 1;
    limits->managed_memory = has->concurrent_managed != 0;
    limits->byte_offsets = 1;
    limits->device_addresses = 1;
    limits->max_constant_bytes = limits->max_buffer_bytes; // it is global memory
    if (!cu_nccl_is_off(device->module->nccl))
        limits->collectives = 2;
}
