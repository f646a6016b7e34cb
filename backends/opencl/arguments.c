// The arguments of launches. They belong to a kernel object and stay there, and setting one costs about as much
// as the rest of a launch above the driver. So what an object has is remembered, and in a loop whose arguments
// stay none is set.
//
// Loops over slots of memory, as those of pipelines, come back to the same ranges of buffers in turn. A kernel
// has an object for each such choice of ranges, OCL_SETTINGS at most: the first one takes all launches, until
// ranges come that were there a few launches before.
#include <inttypes.h>

#include "backends/opencl/opencl.h"

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

// A view stays in `*out_view` until the launch was submitted.
static weir_status choose(struct ocl_buffer *buffer, const struct weir_argument *argument,
                          cl_uint index, bool whole, struct ocl_view **out_view,
                          struct ocl_given *given)
{
    if (buffer->svm || (buffer->address && !whole)) {
        const char *start = buffer->svm ? buffer->pointer : buffer->address;
        *given =
            (struct ocl_given){.address = start + argument->offset, .part = argument->offset + 1};
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
        *given = (struct ocl_given){.memory = buffer->memory};
        return WEIR_OK;
    }
    weir_status status = ocl_buffer_view(buffer, argument->offset, argument->size, out_view);
    if (status == WEIR_OK)
        *given = (struct ocl_given){.memory = (*out_view)->memory, .part = (*out_view)->number};
    return status;
}

static weir_status set_argument(const struct ocl_module *module, cl_kernel kernel, cl_uint index,
                                const struct weir_argument *argument, const struct ocl_given *given)
{
    const void *value = argument->pointer ? argument->pointer : &argument->bits;
    const char *call = "clSetKernelArg";
    cl_int code;
    if (given->address) {
        call = "clSetKernelArgSVMPointer";
        code = module->cl.clSetKernelArgSVMPointer(kernel, index, given->address);
    } else if (argument->kind == WEIR_PARAMETER_BUFFER) {
        code = module->cl.clSetKernelArg(kernel, index, sizeof given->memory, &given->memory);
    } else {
        code = module->cl.clSetKernelArg(kernel, index, argument->size,
                                         argument->kind == WEIR_PARAMETER_LOCAL ? NULL : value);
    }
    if (code == CL_SUCCESS)
        return WEIR_OK;
    return ocl_native_error(module, call, code, "argument %" PRIu32 " of the launch, %zu bytes",
                            index, argument->size);
}

// Only values that identify themselves are remembered: a buffer, by its id, which is never reused, with the
// range, a scalar, and a size of local memory. A view has its number, as the driver may give its address
// to a later one.
static struct ocl_bound bound_of(const struct weir_argument *argument,
                                 const struct ocl_given *given)
{
    if (argument->kind == WEIR_PARAMETER_BUFFER)
        return (struct ocl_bound){argument->kind, given->part,
                                  weir_buffer_object(argument->buffer)->id};
    if (argument->kind == WEIR_PARAMETER_LOCAL)
        return (struct ocl_bound){argument->kind, argument->size, 0};
    if (argument->kind == WEIR_PARAMETER_VALUE && !argument->pointer)
        return (struct ocl_bound){argument->kind, argument->size, argument->bits};
    return (struct ocl_bound){0};
}

static bool is_bound(const struct ocl_bound *bound, const struct ocl_bound *wanted)
{
    return wanted->kind && bound->kind == wanted->kind && bound->bits == wanted->bits &&
           bound->part == wanted->part;
}

static weir_status choose_all(const struct weir_link *link, struct ocl_kernel *kernel,
                              const struct weir_argument *arguments, size_t count)
{
    weir_status status = WEIR_OK;
    for (cl_uint i = 0; i < count && status == WEIR_OK; i++) {
        kernel->given[i] = (struct ocl_given){0};
        if (arguments[i].kind == WEIR_PARAMETER_BUFFER)
            status = choose(ocl_buffer_of(link, arguments[i].buffer), &arguments[i], i,
                            is_whole(arguments, count, i), &kernel->borrowed[i], &kernel->given[i]);
        kernel->wanted[i] = bound_of(&arguments[i], &kernel->given[i]);
    }
    return status;
}

// Settings.

// Of the ranges alone: scalars may change with each launch. Two choices with one key cost time only.
static uint64_t key_of(const struct ocl_bound *wanted, size_t count)
{
    uint64_t key = 14695981039346656037U; // FNV-1a, by words
    for (size_t i = 0; i < count; i++)
        if (wanted[i].kind == WEIR_PARAMETER_BUFFER)
            key = ((key ^ wanted[i].bits) * 1099511628211U ^ wanted[i].part) * 1099511628211U;
    return key;
}

static struct ocl_setting *find_setting(struct ocl_kernel *kernel, uint64_t key)
{
    for (uint32_t i = 0; i < kernel->setting_count; i++)
        if (kernel->settings[i].key == key)
            return &kernel->settings[i];
    return NULL;
}

// Returns whether the key was among the last ones that had no setting, and notes it.
static bool was_seen(struct ocl_kernel *kernel, uint64_t key)
{
    bool seen = false;
    for (uint32_t i = 0; i < OCL_SETTINGS; i++)
        seen |= kernel->seen[i] == key;
    kernel->seen[kernel->seen_next++ % OCL_SETTINGS] = key;
    return seen;
}

cl_int ocl_setting_add(struct ocl_kernel *kernel)
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

static struct ocl_setting *oldest_setting(struct ocl_kernel *kernel)
{
    struct ocl_setting *oldest = &kernel->settings[0];
    for (uint32_t i = 1; i < kernel->setting_count; i++)
        if (kernel->settings[i].used < oldest->used)
            oldest = &kernel->settings[i];
    return oldest;
}

// Without another object, the least recently used one serves.
static struct ocl_setting *need_setting(struct ocl_kernel *kernel, uint64_t key)
{
    struct ocl_setting *setting = find_setting(kernel, key);
    if (setting)
        return setting;
    if (was_seen(kernel, key) && kernel->setting_count < OCL_SETTINGS)
        (void)ocl_setting_add(kernel);
    return oldest_setting(kernel);
}

weir_status ocl_arguments_bind(const struct weir_link *link, struct ocl_kernel *kernel,
                               const struct weir_argument *arguments, size_t count,
                               cl_kernel *out_kernel)
{
    weir_status status = choose_all(link, kernel, arguments, count);
    if (status < 0)
        return status;
    const uint64_t key = key_of(kernel->wanted, count);
    struct ocl_setting *setting = need_setting(kernel, key);
    setting->key = key;
    setting->used = ++kernel->clock;
    for (cl_uint i = 0; i < count && status == WEIR_OK; i++) {
        if (is_bound(&setting->bound[i], &kernel->wanted[i]))
            continue;
        status = set_argument(kernel->device->module, setting->kernel, i, &arguments[i],
                              &kernel->given[i]);
        setting->bound[i] = status == WEIR_OK ? kernel->wanted[i] : (struct ocl_bound){0};
    }
    *out_kernel = setting->kernel;
    return status;
}

void ocl_arguments_put(struct ocl_kernel *kernel, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (kernel->borrowed[i])
            ocl_view_put(kernel->borrowed[i]);
        kernel->borrowed[i] = NULL;
    }
}
