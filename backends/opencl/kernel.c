// Kernels, their launches with the arguments, and the views of buffers that are arguments.
//
// Arguments belong to a kernel object and stay there, and setting one costs about as much
// as the rest of a launch above the driver. So what an object has is remembered, and in a loop whose arguments
// stay none is set.
//
// Loops over slots of memory, as those of pipelines, come back to the same ranges of buffers in turn. A kernel
// has an object for each such choice of ranges, OCL_SETTINGS at most: the first one takes all launches, until
// ranges come that were there a few launches before.
#include <inttypes.h>

#include "backends/opencl/opencl.h"

// Views.

// Counted here, since a launch of many views would be as many calls of the driver's.
void ocl_view_release(struct ocl_view *view)
{
    const struct ocl_module *module = view->buffer->device->module;
    if (--view->users > 0)
        return;
    module->cl.clReleaseMemObject(view->memory);
    module->host->release(view);
}

// Makes a place in the list: that of the least recently used view, if it is full. Work that still uses this view keeps
// it alive.
static weir_status need_place_for_view(struct ocl_buffer *buffer)
{
    const struct weir_host *host = buffer->device->module->host;
    const uint32_t limit = buffer->device->keeps_views ? OCL_VIEW_KEPT_LIMIT : OCL_VIEW_LIMIT;
    uint32_t oldest = 0;
    if (!buffer->views)
        buffer->views = host->allocate(limit * sizeof(struct ocl_view *));
    if (!buffer->views)
        return weir_host_no_memory(host, "the views of a buffer");
    if (buffer->view_count < limit)
        return WEIR_OK;
    if (buffer->device->keeps_views)
        return weir_host_fail(host, WEIR_ERROR_UNSUPPORTED,
                              "use fewer ranges, or create the buffer with weir_buffer_create()",
                              "kernels have used %d ranges of a buffer, and this PoCL can release "
                              "none before the buffer",
                              OCL_VIEW_KEPT_LIMIT);
    for (uint32_t i = 1; i < buffer->view_count; i++)
        if (buffer->views[i]->used < buffer->views[oldest]->used)
            oldest = i;
    ocl_view_release(buffer->views[oldest]);
    buffer->views[oldest] = buffer->views[--buffer->view_count];
    return WEIR_OK;
}

// Drops views that a new one would overlap. Launches under way and the driver keep those that they use.
// NVIDIA's driver crashes when it creates a view while many overlapping ones exist. PoCL's views lie in
// one memory, and may overlap.
static void drop_overlapping_views(struct ocl_buffer *buffer, size_t offset, size_t size)
{
    uint32_t kept = 0;
    if (buffer->device->keeps_views)
        return;
    for (uint32_t i = 0; i < buffer->view_count; i++) {
        struct ocl_view *view = buffer->views[i];
        if (view->offset < offset + size && offset < view->offset + view->size)
            ocl_view_release(view);
        else
            buffer->views[kept++] = view;
    }
    buffer->view_count = kept;
}

// A view is exactly as long as its range: if two views overlap, a kernel that writes through one of
// them is undefined, and gives wrong results on NVIDIA's driver.
static weir_status create_view(struct ocl_buffer *buffer, size_t offset, size_t size,
                               struct ocl_view **out_view)
{
    const struct ocl_module *module = buffer->device->module;
    // A sub-buffer of the caller can have no sub-buffers of its own.
    const cl_buffer_region region = {.origin = buffer->origin + offset, .size = size};
    cl_int code;
    TRY(need_place_for_view(buffer));
    struct ocl_view *view = module->host->allocate(sizeof *view);
    if (!view)
        return weir_host_no_memory(module->host, "a view of a buffer");
    *view = (struct ocl_view){
        .buffer = buffer,
        .offset = offset,
        .size = size,
        .number = ++buffer->clock,
        .users = 1,
    };
    view->memory = module->cl.clCreateSubBuffer(buffer->whole ? buffer->whole : buffer->memory,
                                                CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                                                &region, &code);
    if (!view->memory) {
        module->host->release(view);
        return clc_native_error(module->host, "clCreateSubBuffer", code,
                                "no view at offset %zu of a buffer of %zu bytes", offset,
                                buffer->size);
    }
    module->host->count_driver_object();
    buffer->views[buffer->view_count++] = view;
    *out_view = view;
    return WEIR_OK;
}

// Stores a view of exactly that range of the buffer, which stays until it is put.
static weir_status take_view(struct ocl_buffer *buffer, size_t offset, size_t size,
                             struct ocl_view **out_view)
{
    struct ocl_view *view = NULL;
    weir_status status = WEIR_OK;
    pthread_mutex_lock(&buffer->lock);
    for (uint32_t i = 0; i < buffer->view_count && !view; i++)
        if (buffer->views[i]->offset == offset && buffer->views[i]->size == size)
            view = buffer->views[i];
    if (!view) {
        drop_overlapping_views(buffer, offset, size);
        status = create_view(buffer, offset, size, &view);
    }
    if (view) {
        view->used = ++buffer->clock;
        view->users++;
        *out_view = view;
    }
    pthread_mutex_unlock(&buffer->lock);
    return status;
}

// Kernel objects and arguments.

// Whether the argument can be the whole buffer object: the range begins at its start, and no other
// argument is a part of the same buffer.
static bool is_whole(const struct weir_argument *arguments, size_t count, size_t index)
{
    const struct weir_argument *argument = &arguments[index];
    if (argument->kind != WEIR_PARAMETER_BUFFER || argument->offset > 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if (i != index && arguments[i].kind == WEIR_PARAMETER_BUFFER &&
            arguments[i].buffer == argument->buffer && arguments[i].offset > 0)
            return false;
    return true;
}

// Stores how the buffer is passed, and what its object then remembers.
static weir_status choose(struct ocl_buffer *buffer, const struct weir_argument *argument,
                          cl_uint index, bool whole, struct ocl_passed *passed)
{
    if (buffer->svm || (buffer->address && !whole)) {
        const char *start = buffer->svm ? buffer->pointer : buffer->address;
        passed->address = start + argument->offset;
        passed->wanted.part = argument->offset + 1;
        return WEIR_OK;
    }
    if (buffer->pointer && !buffer->device->in_place)
        return weir_host_fail(buffer->device->module->host, WEIR_ERROR_UNSUPPORTED,
                              "use a HOST buffer of weir_buffer_create(), or a DEVICE buffer",
                              "argument %" PRIu32
                              " of the launch is wrapped memory, which kernels of "
                              "this device cannot reach",
                              index);
    if (whole) {
        passed->memory = buffer->memory;
        return WEIR_OK;
    }
    TRY(take_view(buffer, argument->offset, argument->size, &passed->view));
    passed->memory = passed->view->memory;
    passed->wanted.part = passed->view->number;
    return WEIR_OK;
}

static weir_status set_argument(const struct ocl_module *module, cl_kernel kernel, cl_uint index,
                                const struct weir_argument *argument,
                                const struct ocl_passed *passed)
{
    const void *value = argument->pointer ? argument->pointer : &argument->bits;
    const char *call = "clSetKernelArg";
    cl_int code;
    if (passed->address) {
        call = "clSetKernelArgSVMPointer";
        code = module->cl.clSetKernelArgSVMPointer(kernel, index, passed->address);
    } else if (argument->kind == WEIR_PARAMETER_BUFFER) {
        code = module->cl.clSetKernelArg(kernel, index, sizeof passed->memory, &passed->memory);
    } else {
        code = module->cl.clSetKernelArg(kernel, index, argument->size,
                                         argument->kind == WEIR_PARAMETER_LOCAL ? NULL : value);
    }
    if (code == CL_SUCCESS)
        return WEIR_OK;
    return clc_native_error(module->host, call, code,
                            "argument %" PRIu32 " of the launch, %zu bytes", index, argument->size);
}

// Only values that identify themselves are remembered: a buffer, by its id, which is never reused, with the
// range, a scalar, and a size of local memory. A view has its number, as the driver may give its address
// to a later one.
static weir_status choose_all(const struct weir_link *link, struct ocl_kernel *kernel,
                              const struct weir_argument *arguments, size_t count)
{
    weir_status status = WEIR_OK;
    for (cl_uint i = 0; i < count && status == WEIR_OK; i++) {
        const struct weir_argument *argument = &arguments[i];
        struct ocl_passed *passed = &kernel->passed[i];
        *passed = (struct ocl_passed){.wanted = {.kind = argument->kind, .part = argument->size}};
        if (argument->kind == WEIR_PARAMETER_BUFFER) {
            passed->wanted.part = 0;
            passed->wanted.bits = weir_buffer_object(argument->buffer)->id;
            status = choose(ocl_buffer_of(link, argument->buffer), argument, i,
                            is_whole(arguments, count, i), passed);
        } else if (argument->kind == WEIR_PARAMETER_VALUE) {
            passed->wanted.kind = argument->pointer ? 0 : argument->kind;
            passed->wanted.bits = argument->bits;
        }
    }
    return status;
}

// Settings.

// Of the ranges alone: scalars may change with each launch. Two choices with one key cost time only.
static uint64_t key_of(const struct ocl_passed *passed, size_t count)
{
    uint64_t key = 14695981039346656037U; // FNV-1a, by words
    for (size_t i = 0; i < count; i++) {
        const struct ocl_bound *wanted = &passed[i].wanted;
        if (wanted->kind == WEIR_PARAMETER_BUFFER)
            key = ((key ^ wanted->bits) * 1099511628211U ^ wanted->part) * 1099511628211U;
    }
    return key;
}

// Adds a kernel object without arguments. Returns the error of clCreateKernel().
static cl_int add_setting(struct ocl_kernel *kernel)
{
    const struct ocl_module *module = kernel->device->module;
    const uint32_t index = kernel->setting_count;
    cl_int code;
    const cl_kernel native = module->cl.clCreateKernel(kernel->program, kernel->name, &code);
    if (!native)
        return code;
    module->host->count_driver_object();
    kernel->settings[index] = (struct ocl_setting){
        .kernel = native,
        .bound = kernel->bound + (size_t)index * kernel->parameter_count,
    };
    kernel->setting_count++;
    return CL_SUCCESS;
}

// Another object is made for a key that was among the last ones without a setting. Else the least recently used one
// serves.
static struct ocl_setting *need_setting(struct ocl_kernel *kernel, uint64_t key)
{
    struct ocl_setting *oldest = &kernel->settings[0];
    bool seen = false;
    for (uint32_t i = 0; i < kernel->setting_count; i++) {
        struct ocl_setting *setting = &kernel->settings[i];
        if (setting->key == key)
            return setting;
        if (setting->used < oldest->used)
            oldest = setting;
    }
    for (uint32_t i = 0; i < OCL_SETTINGS; i++)
        seen |= kernel->seen[i] == key;
    kernel->seen[kernel->seen_next++ % OCL_SETTINGS] = key;
    const bool added =
        seen && kernel->setting_count < OCL_SETTINGS && add_setting(kernel) == CL_SUCCESS;
    return added ? &kernel->settings[kernel->setting_count - 1] : oldest;
}

// Stores a kernel object that has the arguments.
static weir_status bind_arguments(const struct weir_link *link, struct ocl_kernel *kernel,
                                  const struct weir_argument *arguments, size_t count,
                                  cl_kernel *out_kernel)
{
    weir_status status = choose_all(link, kernel, arguments, count);
    if (status < 0)
        return status;
    const uint64_t key = key_of(kernel->passed, count);
    struct ocl_setting *setting = need_setting(kernel, key);
    setting->key = key;
    setting->used = ++kernel->clock;
    for (cl_uint i = 0; i < count && status == WEIR_OK; i++) {
        const struct ocl_passed *passed = &kernel->passed[i];
        const struct ocl_bound *wanted = &passed->wanted, *bound = &setting->bound[i];
        if (wanted->kind && bound->kind == wanted->kind && bound->bits == wanted->bits &&
            bound->part == wanted->part)
            continue;
        status = set_argument(kernel->device->module, setting->kernel, i, &arguments[i], passed);
        setting->bound[i] = status == WEIR_OK ? *wanted : (struct ocl_bound){0};
    }
    *out_kernel = setting->kernel;
    return status;
}

static void put_views(struct ocl_kernel *kernel, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct ocl_view *view = kernel->passed[i].view;
        pthread_mutex_t *lock = view ? &view->buffer->lock : NULL;
        if (!view)
            continue;
        pthread_mutex_lock(lock);
        ocl_view_release(view);
        pthread_mutex_unlock(lock);
        kernel->passed[i].view = NULL;
    }
}

static weir_status enqueue_kernel(struct ocl_queue *queue, cl_kernel kernel,
                                  const struct weir_operation *operation)
{
    const struct ocl_module *module = queue->device->module;
    const struct weir_extent grid = operation->u.launch.grid;
    const struct weir_extent block = operation->u.launch.block;
    const size_t local[] = {block.x, block.y, block.z};
    const size_t global[] = {(size_t)grid.x * block.x, (size_t)grid.y * block.y,
                             (size_t)grid.z * block.z};
    const struct ocl_command *command = ocl_command_begin(queue);
    const cl_int code =
        module->cl.clEnqueueNDRangeKernel(queue->queue, kernel, 3, NULL, global, local,
                                          command->wait_count, command->waits, command->event);
    return ocl_command_end(queue, code, "clEnqueueNDRangeKernel",
                           "launch of %" PRIu32 " x %" PRIu32 " x %" PRIu32 " blocks of %" PRIu32
                           " x %" PRIu32 " x %" PRIu32,
                           grid.x, grid.y, grid.z, block.x, block.y, block.z);
}

// Arguments belong to the kernel object, so its lock is held from setting them to the enqueueing.
weir_status ocl_submit_launch(const struct weir_link *link, struct ocl_queue *queue,
                              const struct weir_operation *operation)
{
    struct ocl_kernel *kernel = ocl_kernel_of(link, operation->u.launch.kernel);
    cl_kernel bound;

    pthread_mutex_lock(&kernel->lock);
    weir_status status = bind_arguments(link, kernel, operation->u.launch.arguments,
                                        operation->u.launch.argument_count, &bound);
    if (status == WEIR_OK)
        status = enqueue_kernel(queue, bound, operation);
    put_views(kernel, operation->u.launch.argument_count);
    pthread_mutex_unlock(&kernel->lock);
    return status;
}

// Kernels.

// A required block is the kernel's limit: rusticl 22.3 tells less than it runs.
static weir_status read_info(const struct ocl_kernel *kernel, struct weir_extent required,
                             struct weir_kernel_info *info)
{
    const struct ocl_module *module = kernel->device->module;
    const struct ocl_symbols *cl = &module->cl;
    const cl_device_id device = kernel->device->listed->device;
    const cl_kernel native = kernel->settings[0].kernel;
    size_t items = 0;
    size_t preferred = 0;
    cl_ulong local = 0;
    cl_int code = cl->clGetKernelWorkGroupInfo(native, device, CL_KERNEL_WORK_GROUP_SIZE,
                                               sizeof items, &items, NULL);
    if (code == CL_SUCCESS)
        code = cl->clGetKernelWorkGroupInfo(native, device,
                                            CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE,
                                            sizeof preferred, &preferred, NULL);
    if (code == CL_SUCCESS)
        code = cl->clGetKernelWorkGroupInfo(native, device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local,
                                            &local, NULL);
    if (code != CL_SUCCESS)
        return clc_native_error(module->host, "clGetKernelWorkGroupInfo", code,
                                "what a kernel needs");
    const size_t least = (size_t)required.x * required.y * required.z;
    info->max_block_items = (uint32_t)(items > least ? items : least);
    info->preferred_block_items = (uint32_t)preferred;
    info->local_bytes = local;
    info->registers = 0; // OpenCL does not report them
    return WEIR_OK;
}

static void release_kernel(const struct weir_host *host, struct ocl_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->setting_count; i++)
        kernel->device->module->cl.clReleaseKernel(kernel->settings[i].kernel);
    pthread_mutex_destroy(&kernel->lock);
    host->release(kernel->bound);
    host->release(kernel->passed);
    host->release(kernel);
}

static weir_status allocate_arguments(struct ocl_kernel *kernel)
{
    const struct weir_host *host = kernel->device->module->host;
    const size_t count = (size_t)kernel->parameter_count + 1;
    kernel->bound = host->allocate(OCL_SETTINGS * count * sizeof *kernel->bound);
    kernel->passed = host->allocate(count * sizeof *kernel->passed);
    return kernel->bound && kernel->passed ? WEIR_OK : weir_host_no_memory(host, "a kernel");
}

weir_status ocl_kernel_create(const struct weir_link *link, weir_program *program_object,
                              weir_kernel *object, const struct weir_kernel_signature *signature,
                              struct weir_kernel_info *info, void **out_data)
{
    const struct weir_host *host = link->host;
    const struct ocl_program *program = ocl_program_of(link, program_object);
    struct ocl_kernel *kernel = host->allocate(sizeof *kernel);
    if (!kernel)
        return weir_host_no_memory(host, "a kernel");
    kernel->device = program->device;
    kernel->program = program->program;
    kernel->name = weir_kernel_object(object)->label;
    kernel->parameter_count = signature->parameter_count;
    pthread_mutex_init(&kernel->lock, NULL);

    weir_status status = allocate_arguments(kernel);
    const cl_int code = status == WEIR_OK ? add_setting(kernel) : CL_SUCCESS;
    if (code != CL_SUCCESS)
        status = clc_native_error(program->device->module->host, "clCreateKernel", code,
                                  "kernel '%s'", signature->name);
    if (status == WEIR_OK)
        status = read_info(kernel, signature->required_block, info);
    if (status == WEIR_OK)
        *out_data = kernel;
    else
        release_kernel(host, kernel);
    return status;
}

void ocl_kernel_destroy(const struct weir_link *link, weir_kernel *object)
{
    release_kernel(link->host, ocl_kernel_of(link, object));
}

// OpenCL does not tell. PoCL runs a block from its beginning to its end on one thread before that
// takes the next one; so blocks cannot wait for each other there.
weir_status ocl_kernel_occupancy(const struct weir_link *link, weir_kernel *object,
                                 struct weir_extent block, size_t local_bytes,
                                 struct weir_occupancy *occupancy)
{
    if (!ocl_is_pocl(ocl_kernel_of(link, object)->device))
        return WEIR_OK;
    occupancy->unit_blocks = 1;
    occupancy->unit_items = block.x * block.y * block.z;
    occupancy->limit = WEIR_OCCUPANCY_BLOCKS;
    return WEIR_OK;
}
