// Devices: contexts and limits. One context for each opened device, so that work and
// memory of one device never wait for, or migrate to, another device.

#include "backends/opencl/opencl.h"

// The context.

// Receives the driver's messages, on any thread.
static void on_notice(const char *text, const void *data, size_t size, void *user)
{
    const struct ocl_device *device = user;
    if (!device) // Oclgrind does not tell which context it is about
        return;
    device->module->host->log(WEIR_LOG_WARNING, "opencl", text);
}

void ocl_device_text(const struct ocl_symbols *cl, cl_device_id device, cl_device_info what,
                     char *text, size_t size)
{
    char whole[1024] = "";
    if (cl->clGetDeviceInfo(device, what, sizeof whole - 1, whole, NULL) != CL_SUCCESS)
        whole[0] = '\0';
    snprintf(text, size, "%s", whole);
}

// Reads a number, which has one of three sizes; 0 if the driver does not know it.
static uint64_t number(const struct ocl_device *device, cl_device_info what)
{
    uint64_t wide = 0;
    size_t size = 0;
    cl_uint narrow;
    if (device->module->cl.clGetDeviceInfo(device->listed->device, what, sizeof wide, &wide,
                                           &size) != CL_SUCCESS)
        return 0;
    memcpy(&narrow, &wide, sizeof narrow);
    return size == sizeof narrow ? narrow : wide;
}

static bool has_extension(const struct ocl_device *device, const char *name)
{
    const struct ocl_module *module = device->module;
    size_t size = 0;
    if (module->cl.clGetDeviceInfo(device->listed->device, CL_DEVICE_EXTENSIONS, 0, NULL, &size) !=
        CL_SUCCESS)
        return false;
    char *list = module->host->allocate(size + 1);
    if (!list)
        return false;
    module->cl.clGetDeviceInfo(device->listed->device, CL_DEVICE_EXTENSIONS, size, list, NULL);

    const bool found = strstr(list, name); // no other extension's name has it in it
    module->host->release(list);
    return found;
}

// Newer functions are only used if the loader has them too.
static void find_abilities(struct ocl_device *device)
{
    const struct ocl_symbols *cl = &device->module->cl;
    static const char pocl_before[] = "PoCL ";
    char version[256];
    ocl_device_text(cl, device->listed->device, CL_DEVICE_VERSION, version, sizeof version);
    device->version = ocl_version(version);
    // NVIDIA's driver refuses all further work of a context in which a kernel failed.
    device->errors_stay = has_extension(device, "cl_nv_device_attribute_query");
    // The major version of PoCL, 7 of "OpenCL 3.0 PoCL 7.1 …"; 0: another platform.
    ocl_platform_text(cl, device->listed->platform, CL_PLATFORM_VERSION, version, sizeof version);
    const char *found = strstr(version, pocl_before);
    const unsigned long pocl = found ? strtoul(found + strlen(pocl_before), NULL, 10) : 0;
    device->no_c_2 = pocl >= 4;
    device->bad_group_functions = pocl >= 5;
    device->keeps_views = pocl >= 7;
    device->late_finish = pocl == 6;
    if (device->version < 20)
        return;

    const uint64_t svm = number(device, CL_DEVICE_SVM_CAPABILITIES);
    device->svm = (svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) && cl->clSVMAlloc && cl->clSVMFree &&
                  cl->clEnqueueSVMMemcpy && cl->clEnqueueSVMMemFill && cl->clSetKernelArgSVMPointer;
    device->svm_system = device->svm && (svm & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM);
    device->in_place = device->svm && (number(device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU);
    device->priorities =
        cl->clCreateCommandQueueWithProperties && has_extension(device, "cl_khr_priority_hints");
}

// Some drivers tell limits with which nothing can be done: Oclgrind with 4 GiB of memory tells a largest
// buffer of 0 bytes.
static weir_status check_limits(const struct ocl_device *device)
{
    const char *lack = NULL;
    if (number(device, CL_DEVICE_MAX_WORK_GROUP_SIZE) == 0)
        lack = "blocks of 0 work-items (CL_DEVICE_MAX_WORK_GROUP_SIZE)";
    if (number(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE) == 0)
        lack = "a largest buffer of 0 bytes (CL_DEVICE_MAX_MEM_ALLOC_SIZE)";
    if (!lack)
        return WEIR_OK;
    return weir_host_fail(device->module->host, WEIR_ERROR_UNSUPPORTED,
                          "choose another device, or correct the driver's settings (Oclgrind: less "
                          "than 4 GiB with --global-mem-size)",
                          "device '%s' cannot be used: its driver tells %s",
                          device->listed->info.name, lack);
}

static weir_status create_context(struct ocl_device *device)
{
    struct ocl_module *module = device->module;
    const struct ocl_symbols *cl = &module->cl;
    const struct ocl_listed *listed = device->listed;
    const cl_context_properties properties[] = {
        CL_CONTEXT_PLATFORM,
        (cl_context_properties)listed->platform,
        0,
    };
    cl_int code;

    device->context = cl->clCreateContext(properties, 1, &listed->device, on_notice, device, &code);
    if (!device->context)
        return clc_native_error(module->host, "clCreateContext", code, "cannot open device '%s'",
                                listed->info.name);
    module->host->count_driver_object();

    device->mapper = cl->clCreateCommandQueue(device->context, listed->device, 0, &code);
    if (!device->mapper)
        return clc_native_error(module->host, "clCreateCommandQueue", code,
                                "cannot open device '%s': no queue for its memory",
                                listed->info.name);
    module->host->count_driver_object();
    return WEIR_OK;
}

static void release(struct ocl_device *device)
{
    const struct ocl_module *module = device->module;
    const struct ocl_symbols *cl = &module->cl;
    if (device->clock.marker)
        cl->clReleaseEvent(device->clock.marker);
    if (device->clock.queue)
        cl->clReleaseCommandQueue(device->clock.queue);
    if (device->mapper)
        cl->clReleaseCommandQueue(device->mapper);
    if (device->context)
        cl->clReleaseContext(device->context);
    pthread_mutex_destroy(&device->clock.lock);
    pthread_mutex_destroy(&device->pending_lock);
    weir_kit_blocks_finish(&device->spares);
    module->host->release(device);
}

weir_status ocl_device_create(const struct weir_link *link, weir_device *object,
                              const struct weir_device_setup *setup, void **out_data)
{
    struct ocl_module *module = ocl_module_of(link);
    struct ocl_device *device = module->host->allocate(sizeof *device);
    if (!device)
        return weir_host_no_memory(module->host, "a device");

    pthread_mutex_init(&device->clock.lock, NULL);
    pthread_mutex_init(&device->pending_lock, NULL);
    weir_kit_blocks_init(&device->spares);
    device->module = module;
    device->listed = &module->listed[setup->index];
    find_abilities(device);
    weir_status status = check_limits(device);
    if (status == WEIR_OK)
        status = create_context(device);
    if (status < 0) {
        release(device);
        return status;
    }
    *out_data = device;
    return WEIR_OK;
}

cl_int ocl_finish(const struct ocl_device *device, cl_command_queue queue)
{
    const struct ocl_symbols *cl = &device->module->cl;
    cl_event last = NULL;
    if (!device->late_finish ||
        cl->clEnqueueMarkerWithWaitList(queue, 0, NULL, &last) != CL_SUCCESS)
        return cl->clFinish(queue);
    cl_int code = cl->clFlush(queue);
    if (code == CL_SUCCESS)
        code = cl->clWaitForEvents(1, &last);
    cl->clReleaseEvent(last);
    // Which command failed is told by those that ask for it.
    return code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST ? CL_SUCCESS : code;
}

void ocl_device_destroy(const struct weir_link *link, weir_device *object)
{
    struct ocl_device *device = ocl_device_of(link, object);
    ocl_spares_release(device);
    ocl_finish(device, device->mapper); // their unmaps
    release(device);
}

weir_status ocl_device_trim(const struct weir_link *link, weir_device *object)
{
    ocl_spares_release(ocl_device_of(link, object));
    return WEIR_OK;
}

static uint32_t at_most_32_bits(uint64_t value)
{
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static struct weir_extent largest_block(const struct ocl_device *device)
{
    size_t sizes[16] = {1, 1, 1};
    const uint64_t dimensions = number(device, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS);
    if (dimensions <= sizeof sizes / sizeof *sizes)
        device->module->cl.clGetDeviceInfo(device->listed->device, CL_DEVICE_MAX_WORK_ITEM_SIZES,
                                           dimensions * sizeof *sizes, sizes, NULL);
    return weir_dim(at_most_32_bits(sizes[0]), at_most_32_bits(sizes[1]),
                    at_most_32_bits(sizes[2]));
}

// OpenCL itself reports neither engines nor concurrency, so the minimum is assumed. NVIDIA's
// extension reports the engines.
static void overlap_limits(const struct ocl_device *device, struct weir_limits *limits)
{
    limits->concurrent_kernels = 1;
    if (device->errors_stay && number(device, OCL_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT_NV) > 0) {
        limits->copy_engines_to_device = 1;
        limits->copy_engines_to_host = 1;
    }
    if (device->priorities) {
        limits->priority_lowest = -1;
        limits->priority_highest = 1;
    }
}

static weir_device_kind kind_of(uint64_t type)
{
    return type & CL_DEVICE_TYPE_GPU           ? WEIR_DEVICE_GPU
           : type & CL_DEVICE_TYPE_CPU         ? WEIR_DEVICE_CPU
           : type & CL_DEVICE_TYPE_ACCELERATOR ? WEIR_DEVICE_ACCELERATOR
                                               : WEIR_DEVICE_OTHER;
}

void ocl_device_limits(const struct weir_link *link, weir_device *object,
                       struct weir_limits *limits)
{
    const struct ocl_device *device = ocl_device_of(link, object);
    // Blocks times their size must fit a size_t of the device.
    const uint32_t grid = number(device, CL_DEVICE_ADDRESS_BITS) >= 64 ? UINT32_MAX : 65535;
    const uint64_t align_bits = number(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN);

    limits->memory_bytes = number(device, CL_DEVICE_GLOBAL_MEM_SIZE);
    limits->max_buffer_bytes = number(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    limits->argument_alignment_bytes = align_bits >= 8 ? align_bits / 8 : 1;
    limits->unified_memory = number(device, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
    limits->host_in_kernels = device->svm;
    limits->managed_memory = device->svm;
    limits->max_block_items = at_most_32_bits(number(device, CL_DEVICE_MAX_WORK_GROUP_SIZE));
    limits->max_block = largest_block(device);
    limits->max_grid = weir_dim(grid, grid, grid);
    limits->max_local_bytes = number(device, CL_DEVICE_LOCAL_MEM_SIZE);
    limits->compute_units = at_most_32_bits(number(device, CL_DEVICE_MAX_COMPUTE_UNITS));
    overlap_limits(device, limits);
    limits->timing_resolution_ns =
        at_most_32_bits(number(device, CL_DEVICE_PROFILING_TIMER_RESOLUTION));
    // Mesa's rusticl 22.3 has no times, and tells 0.
    limits->timing_history = limits->timing_resolution_ns > 0 ? OCL_TIMING_HISTORY : 0;
    limits->native = 1;
    limits->byte_offsets = device->in_place;
    limits->device_addresses = device->in_place;
    limits->max_constant_bytes = number(device, CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE);
    limits->kind = kind_of(number(device, CL_DEVICE_TYPE));
}

// kDLOpenCL of <dlpack/dlpack.h>.
#define DLPACK_OPENCL 4

weir_status ocl_device_native(const struct weir_link *link, weir_device *object,
                              struct weir_native_device *out_native)
{
    const struct ocl_device *device = ocl_device_of(link, object);
    out_native->api = WEIR_NATIVE_OPENCL;
    out_native->context = device->context;
    out_native->device = device->listed->device;
    out_native->ordinal = (int)(device->listed - device->module->listed);
    out_native->dlpack = DLPACK_OPENCL;
    return WEIR_OK;
}
