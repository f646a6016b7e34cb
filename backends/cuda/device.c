// Devices: contexts, limits, and which devices reach each other. A device uses its primary context, which
// the CUDA runtime, PyTorch and cuBLAS in the same process share. So the context is not configured here,
// and every entry point restores the thread's current context.
//
// DEVICE memory, all but the first, comes from a pool of Weir's own, in a stream that has no other work.
// The pool keeps freed memory until trim, and never makes an allocation wait for work in another stream
// (REUSE_ALLOW_INTERNAL_DEPENDENCIES off), so a wait for that stream after an allocation waits for nothing
// else.
#include <unistd.h>

#include "backends/cuda/history.h"
#include "backends/cuda/nccl.h"

// The maximum number of concurrent kernels of all devices for which there are images (compute
// capability 7.5 and newer); the driver has no attribute for it. CUDA C++ programming guide,
// "resident grids per device".
#define RESIDENT_GRIDS 128
// Documented with cuEventElapsedTime().
#define TIMING_RESOLUTION_NS 500

// kDLCUDA of <dlpack/dlpack.h>.
#define DLPACK_CUDA 2

enum {
    MOST_DEVICES = 64
};

// Peers.
//
// The first cu_device_peer() for two devices enables the access of each to the other's memory. It has
// two parts: a context enables it for memory of cuMemAlloc, such as adopted memory, and a pool for
// its own memory. It is never disabled, because other code in the process shares the contexts. If
// the hardware has no path there is no access, and the driver copies through the host.

// A bit for each GPU.
static uint64_t bit_of(const struct cu_device *device)
{
    const CUdevice native = device->listed->native;
    return native >= 0 && native < MOST_DEVICES ? UINT64_C(1) << native : 0;
}

// Lets `device` access memory of `other`, if it can. Several threads may do so at once.
static weir_status enable_access(struct cu_device *device, struct cu_device *other)
{
    CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    struct cu_scope scope;
    int can = 0;
    if (atomic_load(&other->asked_by) & bit_of(device))
        return WEIR_OK;
    TRY(cu_enter(device, &scope));
    struct cu_trial trial = {.device = device};
    CU_TRY(&trial, cuDeviceCanAccessPeer, &can, device->listed->native, other->listed->native);
    if (can) {
        access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        access.location.id = device->listed->native;
        CU_TRY(&trial, cuCtxEnablePeerAccess, other->context, 0);
        if (trial.code == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
            trial.code = CUDA_SUCCESS;
        CU_TRY(&trial, cuMemPoolSetAccess, other->pool, &access, 1);
    }
    cu_leave(device, &scope);
    if (trial.code == CUDA_SUCCESS) {
        atomic_fetch_or(&other->reached_by, can ? bit_of(device) : 0);
        atomic_fetch_or(&other->asked_by, bit_of(device));
    }
    return cu_tried(&trial, "let '%s' reach the memory of '%s'", device->listed->info.name,
                    other->listed->info.name);
}

weir_status cu_device_peer(const struct weir_link *link, weir_device *object,
                           weir_device *other_object, bool *out_peers)
{
    struct cu_device *device = cu_device_of(link, object);
    struct cu_device *other = cu_device_of(link, other_object);
    weir_status status = WEIR_OK;
    if (device->context != other->context) {
        status = enable_access(device, other);
        if (status == WEIR_OK)
            status = enable_access(other, device);
    }
    *out_peers = status == WEIR_OK;
    return status;
}

bool cu_reaches_peer(const struct cu_device *device, const struct cu_device *other)
{
    return device->context == other->context ||
           (atomic_load(&other->reached_by) & bit_of(device)) != 0;
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

// Devices that are given up.
//
// NCCL's kernels wait for other ranks, and its abort ends them; one that it does not end keeps its stream, and
// what waits for that in the driver is never let go: no call of CUDA's ends a kernel. So while there are
// communicators of NCCL the host asks in place of waiting in the driver, and once a device is given up no call
// is made that may wait for it: memory, modules and the context stay until the process ends. All that have the
// device open share its context, and so the kernel: those of other runtimes too.

#define RESTART "restart the process: a kernel that does not end leaves the device only with it"

// The devices that were given up in this process, and why; a cause is never changed.
static pthread_mutex_t causes_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir_error causes[MOST_DEVICES];
static struct cu_device *open_devices;

// The device is lost with this cause, although nothing faulted: work of it may never end. So are all others
// of this process that are open on the same GPU, in any runtime.
void cu_comm_give_up(const struct weir_link *link, weir_comm *object,
                     const struct weir_error *cause)
{
    const CUdevice native = cu_comm_of(link, object)->device->listed->native;
    pthread_mutex_lock(&causes_lock);
    if (native >= 0 && native < MOST_DEVICES && causes[native].status == WEIR_OK)
        causes[native] = *cause;
    for (struct cu_device *each = open_devices; each; each = each->next_open) {
        if (each->listed->native != native)
            continue;
        pthread_mutex_lock(&each->lock);
        if (!atomic_load(&each->lost))
            each->first_fault = *cause;
        atomic_store(&each->given_up, true);
        atomic_store(&each->lost, true);
        pthread_mutex_unlock(&each->lock);
    }
    pthread_mutex_unlock(&causes_lock);
}

// Refuses to open a device that was given up in this process; else
// cu_comm_give_up() finds it, until its release.
static weir_status enlist_open(struct cu_device *device)
{
    const CUdevice native = device->listed->native;
    struct weir_error cause = {.status = WEIR_OK};
    pthread_mutex_lock(&causes_lock);
    if (native >= 0 && native < MOST_DEVICES)
        cause = causes[native];
    if (cause.status == WEIR_OK) {
        device->next_open = open_devices;
        open_devices = device;
    }
    pthread_mutex_unlock(&causes_lock);
    if (cause.status == WEIR_OK)
        return WEIR_OK;
    return weir_host_fail(device->module->host, cause.status, RESTART,
                          "'%s': this process has lost the device before: %.600s",
                          device->listed->info.name, cause.message);
}

// Progress words of queues: history.h.

static weir_status init_words(struct cu_device *device)
{
    const struct cu_module *module = device->module;
    const size_t size = CU_WORD_COUNT * sizeof(atomic_uint);
    struct cu_words *words = &device->words;
    struct cu_trial trial = {.device = device};
    CU_TRY(&trial, cuMemHostAlloc, &words->page, size,
           CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (trial.code == CUDA_SUCCESS) {
        module->host->count_driver_object();
        memset(words->page, 0, size);
    } else {
        words->page = NULL;
    }
    CU_TRY(&trial, cuMemHostGetDevicePointer, &words->address, words->page, 0);
    return cu_tried(&trial, "pin %zu bytes for the progress of queues", size);
}

// Creation and destruction.

static weir_status read_attributes(struct cu_device *device)
{
    struct cu_trial trial = {.device = device};
    const char *asked = NULL;
    int value = 0;
#define CU_ATTRIBUTE(member, attribute, number)                                      \
    asked = trial.code == CUDA_SUCCESS ? #attribute : asked;                         \
    CU_TRY(&trial, cuDeviceGetAttribute, &value, attribute, device->listed->native); \
    device->attributes.member = value > 0 ? (unsigned)value : 0;
    CU_ATTRIBUTES(CU_ATTRIBUTE)
#undef CU_ATTRIBUTE
    device->architecture = 10 * device->attributes.major + device->attributes.minor;
    return cu_tried(&trial, "ask '%s' for %s", device->listed->info.name, asked);
}

static weir_status check_abilities(struct cu_device *device)
{
    const struct weir_host *host = device->module->host;
    const char *name = device->listed->info.name;
    TRY(read_attributes(device));
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

static weir_status fill_context(struct cu_device *device)
{
    const struct cu_module *module = device->module;
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED};
    cuuint64_t keep_all = UINT64_MAX;
    int off = 0;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device->listed->native;
    struct cu_trial trial = {.device = device};
    CU_TRY(&trial, cuMemPoolCreate, &device->pool, &properties);
    if (trial.code == CUDA_SUCCESS)
        module->host->count_driver_object();
    CU_TRY(&trial, cuMemPoolSetAttribute, device->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
           &keep_all);
    CU_TRY(&trial, cuMemPoolSetAttribute, device->pool,
           CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off);
    CU_TRY(&trial, cuCtxGetStreamPriorityRange, &device->priority_least,
           &device->priority_greatest);
    CU_TRY(&trial, cuStreamCreateWithPriority, &device->memory_stream, CU_STREAM_NON_BLOCKING,
           device->priority_greatest);
    TRY(cu_tried(&trial, "prepare '%s'", device->listed->info.name));
    module->host->count_driver_object();
    weir_status status = init_words(device);
    return status < 0 ? status : cu_timeline_init(device);
}

static void empty_context(struct cu_device *device)
{
    const struct cu_symbols *cu = &device->module->cu;
    struct cu_scope scope;
    cu_enter_to_destroy(device, &scope);
    cu_free_kept(device);
    if (device->words.page && !cu_is_given_up(device))
        cu->cuMemFreeHost(device->words.page);
    cu_timeline_finish(device);
    if (device->memory_stream && !cu_is_given_up(device))
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
    const bool alone = cu_comm_threads_leave(device->comm_threads);
    if (device->context) {
        empty_context(device);
        // The context may end now, and what it was given with it: the next one has to ask again.
        pthread_mutex_lock(&causes_lock);
        for (struct cu_device *each = open_devices; each; each = each->next_open)
            atomic_fetch_and(&each->asked_by, ~bit_of(device));
        pthread_mutex_unlock(&causes_lock);
        // A thread that NCCL does not let go still uses the context, or a kernel does.
        if (alone && !cu_is_given_up(device))
            module->cu.cuDevicePrimaryCtxRelease(device->listed->native);
    }
    struct cu_device **at = &open_devices;
    pthread_mutex_lock(&causes_lock);
    while (*at && *at != device)
        at = &(*at)->next_open;
    if (*at) // it was not refused
        *at = device->next_open;
    pthread_mutex_unlock(&causes_lock);
    pthread_mutex_destroy(&device->timeline.lock);
    pthread_mutex_destroy(&device->clock.lock);
    weir_kit_blocks_finish(&device->blocks);
    weir_kit_blocks_finish(&device->managed);
    weir_kit_blocks_finish(&device->plain);
    pthread_mutex_destroy(&device->lock);
    module->host->release(device);
}

static weir_status retain_context(struct cu_device *device)
{
    struct cu_trial trial = {.device = device};
    CU_TRY(&trial, cuDevicePrimaryCtxRetain, &device->context, device->listed->native);
    if (trial.code != CUDA_SUCCESS)
        device->context = NULL;
    return cu_tried(&trial, "open '%s'", device->listed->info.name);
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
    device->listed = &module->listed[setup->index];
    pthread_mutex_init(&device->lock, NULL);
    pthread_mutex_init(&device->timeline.lock, NULL);
    pthread_mutex_init(&device->clock.lock, NULL);
    weir_kit_blocks_init(&device->blocks);
    weir_kit_blocks_init(&device->managed);
    weir_kit_blocks_init(&device->plain);

    device->comm_threads = cu_comm_threads_create(module->host);
    weir_status status =
        device->comm_threads ? enlist_open(device) : weir_host_no_memory(module->host, "a device");
    if (status == WEIR_OK)
        status = check_abilities(device);
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
    TRY(cu_enter(device, &scope));
    const CUstreamCaptureMode before = cu_relax(&device->module->cu);
    cu_free_kept(device);
    struct cu_trial trial = {.device = device};
    CU_TRY_AWAIT(&trial, device->memory_stream);
    CU_TRY(&trial, cuMemPoolTrimTo, device->pool, 0);
    cu_unrelax(&device->module->cu, before);
    cu_leave(device, &scope);
    return cu_tried(&trial, "trim the device");
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
    limits->managed_memory = has->concurrent_managed != 0;
    limits->byte_offsets = 1;
    limits->device_addresses = 1;
    limits->max_constant_bytes = limits->max_buffer_bytes; // it is global memory
    limits->kind = WEIR_DEVICE_GPU;
    if (strcmp(device->module->nccl.setting, "off") != 0)
        limits->collectives = 2;
}

weir_status cu_device_native(const struct weir_link *link, weir_device *object,
                             struct weir_native_device *out_native)
{
    const struct cu_device *device = cu_device_of(link, object);
    out_native->api = WEIR_NATIVE_CUDA;
    out_native->context = device->context;
    out_native->ordinal = device->listed->native;
    out_native->dlpack = DLPACK_CUDA;
    return WEIR_OK;
}
