// Programs, kernels, and launches with their arguments. Programs are built from OpenCL C. Their binaries
// are cached on disk; the key is everything that they depend on: source, options, platform, device and
// driver. A program whose binary the driver no longer accepts is built again. PoCL has a cache of its own.
//
// Arguments belong to a kernel object and stay there, and setting one costs about as much
// as the rest of a launch above the driver. So what an object has is remembered, and in a loop whose arguments
// stay none is set.
//
// Loops over slots of memory, as those of pipelines, come back to the same ranges of buffers in turn. A kernel
// has an object for each such choice of ranges, OCL_SETTINGS at most: the first one takes all launches, until
// ranges come that were there a few launches before.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/opencl.h"

// PoCL 3.1 ignores the barriers of a function that it does not inline. And its LLVM makes one of a
// barrier before a loop and the one at the end of it, if what precedes them is alike too: then the
// loop has two ways back, and all work-items take that of the last.
static const char pocl_before[] =
    "#define WEIR_APART void __attribute__((overloadable, convergent, nomerge))\n"
    "WEIR_APART barrier(cl_mem_fence_flags);\n"
    "#if __OPENCL_C_VERSION__ >= 200\n"
    "WEIR_APART work_group_barrier(cl_mem_fence_flags);\n"
    "WEIR_APART work_group_barrier(cl_mem_fence_flags, memory_scope);\n"
    "#endif\n"
    "#undef WEIR_APART\n"
    "#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)\n";
// The copies that it waits for are done when the function that starts them returns. work_group_all()
// of PoCL 6 is 0 whatever it is asked.
static const char group_functions[] =
    "#undef wait_group_events\n"
    "#define wait_group_events(count, events) \\\n"
    "    ((void)(count), (void)(events), barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE))\n"
    "#undef work_group_all\n"
    "#define work_group_all(predicate) (!work_group_any(!(predicate)))\n";
static const char pocl_after[] = "\n#pragma clang attribute pop\n";

// One build.
struct build {
    const struct ocl_device *device;
    struct clc_build clc;
    const char *target; // of a bundle's image: a version, options; "": 1.2, or as the user says
    char *before;
    char *options;
    char *key;
};

static bool is_pocl(const struct ocl_device *device)
{
    return strcmp(device->listed->info.platform, "Portable Computing Language") == 0;
}

static bool make_key(struct build *build)
{
    const struct ocl_module *module = build->device->module;
    const struct weir_device_info *info = &build->device->listed->info;
    char device_version[256];
    char platform_version[256] = "";
    ocl_device_text(&module->cl, build->device->listed->device, CL_DEVICE_VERSION, device_version,
                    sizeof device_version);
    module->cl.clGetPlatformInfo(build->device->listed->platform, CL_PLATFORM_VERSION,
                                 sizeof platform_version - 1, platform_version, NULL);
    build->key =
        weir_kit_format(module->host, "%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s", WEIR_VERSION_STRING,
                        info->platform, platform_version, info->name, device_version, info->driver,
                        build->options, build->clc.before, build->clc.text);
    return build->key;
}

// An entry of the cache is the text of the signatures, its zero byte, and the binary.
static bool load_binary(struct build *build, const char *entry, size_t size)
{
    const struct ocl_module *module = build->device->module;
    const struct ocl_symbols *cl = &module->cl;
    const char *end = memchr(entry, '\0', size);
    if (!end)
        return false;
    const size_t binary_size = size - (size_t)(end + 1 - entry);
    const unsigned char *binary = (const unsigned char *)end + 1;
    cl_int code;
    build->clc.signature_text = weir_kit_format(module->host, "%s", entry);
    build->clc.program =
        cl->clCreateProgramWithBinary(build->device->context, 1, &build->device->listed->device,
                                      &binary_size, &binary, NULL, &code);
    return build->clc.signature_text && build->clc.program &&
           cl->clBuildProgram(build->clc.program, 1, &build->device->listed->device, build->options,
                              NULL, NULL) == CL_SUCCESS;
}

static bool read_cache(struct build *build)
{
    const struct ocl_module *module = build->device->module;
    void *entry;
    size_t size;
    if (!weir_kit_cache_read(module->cache, build->key, &entry, &size))
        return false;
    const bool loaded = load_binary(build, entry, size);
    free(entry);
    if (!loaded) {
        module->host->log(WEIR_LOG_INFO, "opencl",
                          "the driver refuses a binary of the cache; it is built again");
        clc_drop(&build->clc);
    }
    return loaded;
}

static bool get_binary(const struct build *build, char *entry, size_t used, size_t binary_size)
{
    unsigned char *binary = (unsigned char *)entry + used;
    return binary_size > 0 &&
           build->device->module->cl.clGetProgramInfo(build->clc.program, CL_PROGRAM_BINARIES,
                                                      sizeof binary, &binary, NULL) == CL_SUCCESS;
}

static void write_cache(const struct build *build)
{
    const struct ocl_module *module = build->device->module;
    const char *text = build->clc.signature_text ? build->clc.signature_text : "";
    const size_t used = strlen(text) + 1;
    size_t binary_size = 0;
    if (!module->cache ||
        module->cl.clGetProgramInfo(build->clc.program, CL_PROGRAM_BINARY_SIZES, sizeof binary_size,
                                    &binary_size, NULL) != CL_SUCCESS)
        return;
    char *entry = module->host->allocate(used + binary_size);
    if (!entry)
        return;
    memcpy(entry, text, used);
    if (get_binary(build, entry, used, binary_size))
        weir_kit_cache_write(module->cache, build->key, entry, used + binary_size);
    module->host->release(entry);
}

// A bundle's image may need a version of OpenCL C, and options after it; the user's options come
// with source. What 2.0 has is a part of 3.0, as far as the device has it.
static char *make_user_options(const struct build *build, const struct weir_program_params *params)
{
    static const char second[] = "CL2.0";
    const struct weir_host *host = build->device->module->host;
    const char *target = build->target;
    if (build->device->no_c_2 && strncmp(target, second, strlen(second)) == 0)
        return weir_kit_format(host, "-cl-std=CL3.0%s", target + strlen(second));
    if (*target)
        return weir_kit_format(host, "-cl-std=%s", target);
    return weir_kit_format(host, "%s%s", params->options ? params->options : "",
                           params->fast ? CLC_FAST : "");
}

// PoCL keeps on disk what it compiles. To hand out a program's binary it compiles every kernel for
// blocks of any size too, which takes as long as all that launches need.
static weir_status make_program(struct build *build, const struct weir_program_params *params)
{
    const struct ocl_module *module = build->device->module;
    char *user = make_user_options(build, params);
    build->options = user ? clc_options(module->host, user, module->build_options) : NULL;
    module->host->release(user);
    build->clc.options = build->options;
    if (!build->options || !make_key(build))
        return weir_host_no_memory(module->host, "the options of a program");
    const bool keep = !is_pocl(build->device);
    if (keep && read_cache(build))
        return WEIR_OK;
    weir_status status = clc_build(&build->clc);
    if (status == WEIR_OK && keep)
        write_cache(build);
    return status;
}

static const struct weir_image *find_source(const struct weir_bundle *bundle)
{
    for (uint32_t i = 0; i < bundle->image_count; i++) {
        const struct weir_image *image = weir_bundle_image(bundle, i);
        if (weir_image_is(image, WEIR_IMAGE_OPENCL_C))
            return image;
    }
    return NULL;
}

static weir_status choose_source(struct build *build, const struct weir_program_params *params)
{
    const struct weir_host *host = build->device->module->host;
    const bool pocl = is_pocl(build->device);
    const struct weir_image *image = params->bundle ? find_source(params->bundle) : NULL;
    build->clc.text = image ? image->data : params->source;
    build->target = image ? image->target : "";
    build->clc.signatures = !params->bundle;
    build->clc.after = pocl ? pocl_after : "";
    const bool barrier = !params->bundle && strstr(params->source, WEIR_KIT_GRID_BARRIER);
    build->before =
        weir_kit_format(host, "%s%s%s%s%s", pocl ? pocl_before : "",
                        build->device->bad_group_functions ? group_functions : "",
                        barrier ? CLC_BLOCK_BARRIER : "", params->exact ? CLC_EXACT : "",
                        params->bundle ? "" : CLC_BEFORE_SOURCE);
    build->clc.before = build->before;
    if (!build->before)
        return weir_host_no_memory(host, "a program");
    if (build->clc.text || !params->bundle) // without a bundle there is source
        return WEIR_OK;
    return weir_host_fail(host, WEIR_ERROR_UNSUPPORTED,
                          "make the bundle with weir_kernels, which always embeds one",
                          "bundle '%s' has no OpenCL C image", params->bundle->name);
}

static void init_build(struct build *build, const struct ocl_device *device)
{
    build->device = device;
    build->clc = (struct clc_build){
        .cl = &device->module->cl,
        .host = device->module->host,
        .name = "opencl",
        .context = device->context,
        .device = device->listed->device,
    };
}

// Moves the results of the build to the program.
static weir_status keep(struct ocl_program *program, struct build *build)
{
    const struct weir_host *host = build->device->module->host;
    if (build->clc.signatures) {
        program->signatures = weir_kit_signatures_parse(host, build->clc.signature_text);
        if (!program->signatures)
            return weir_host_no_memory(host, "the signatures of a program");
        weir_kit_signatures_mark_barriers(program->signatures, build->clc.text);
    }
    program->program = build->clc.program;
    build->clc.program = NULL;
    host->count_driver_object();
    return WEIR_OK;
}

weir_status ocl_program_create(const struct weir_link *link, weir_device *device,
                               weir_program *object, const struct weir_program_params *params,
                               void **out_data)
{
    const struct weir_host *host = link->host;
    struct build build = {.device = NULL};
    (void)object;
    struct ocl_program *program = host->allocate(sizeof *program);
    if (!program)
        return weir_host_no_memory(host, "a program");

    program->device = ocl_device_of(link, device);
    init_build(&build, program->device);
    weir_status status = choose_source(&build, params);
    if (status == WEIR_OK)
        status = make_program(&build, params);
    if (status == WEIR_OK)
        status = keep(program, &build);
    clc_drop(&build.clc);
    host->release(build.before);
    host->release(build.options);
    host->release(build.key);
    if (status == WEIR_OK)
        *out_data = program;
    else
        host->release(program);
    return status;
}

void ocl_program_destroy(const struct weir_link *link, weir_program *object)
{
    struct ocl_program *program = ocl_program_of(link, object);
    program->device->module->cl.clReleaseProgram(program->program);
    link->host->release(program->signatures);
    link->host->release(program);
}

weir_status ocl_program_signatures(const struct weir_link *link, weir_program *object,
                                   const struct weir_kernel_signature **out_signatures,
                                   uint32_t *out_count)
{
    const struct ocl_program *program = ocl_program_of(link, object);
    *out_signatures = program->signatures ? program->signatures->kernels : NULL;
    *out_count = program->signatures ? program->signatures->kernel_count : 0;
    return WEIR_OK;
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
        (void)add_setting(kernel);
    return oldest_setting(kernel);
}

// Stores a kernel object that has the arguments.
static weir_status bind_arguments(const struct weir_link *link, struct ocl_kernel *kernel,
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

static void put_arguments(struct ocl_kernel *kernel, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (kernel->borrowed[i])
            ocl_view_put(kernel->borrowed[i]);
        kernel->borrowed[i] = NULL;
    }
}

// Stores the event in `*out_event` where it has to be asked how the launch ended.
static weir_status enqueue_kernel(struct ocl_queue *queue, cl_kernel kernel,
                                  const struct weir_operation *operation, cl_event *out_event)
{
    const struct ocl_module *module = queue->device->module;
    const struct weir_extent grid = operation->u.launch.grid;
    const struct weir_extent block = operation->u.launch.block;
    const size_t local[] = {block.x, block.y, block.z};
    const size_t global[] = {(size_t)grid.x * block.x, (size_t)grid.y * block.y,
                             (size_t)grid.z * block.z};
    const struct ocl_command *command = ocl_command_begin(queue, true);
    const cl_int code =
        module->cl.clEnqueueNDRangeKernel(queue->queue, kernel, 3, NULL, global, local,
                                          command->wait_count, command->waits, command->event);
    const cl_int shared = ocl_command_end_launch(queue, code, out_event);
    if (code != CL_SUCCESS)
        return ocl_native_error(module, "clEnqueueNDRangeKernel", code,
                                "launch of %" PRIu32 " x %" PRIu32 " x %" PRIu32
                                " blocks of %" PRIu32 " x %" PRIu32 " x %" PRIu32,
                                grid.x, grid.y, grid.z, block.x, block.y, block.z);
    if (shared != CL_SUCCESS)
        return ocl_native_error(module, "clRetainEvent", shared, "keep the event of a launch");
    return WEIR_OK;
}

// Arguments belong to the kernel object, so its lock is held from setting them to the enqueueing.
weir_status ocl_submit_launch(const struct weir_link *link, struct ocl_queue *queue,
                              const struct weir_operation *operation)
{
    struct ocl_kernel *kernel = ocl_kernel_of(link, operation->u.launch.kernel);
    cl_kernel bound;
    cl_event event = NULL;

    pthread_mutex_lock(&kernel->lock);
    weir_status status = bind_arguments(link, kernel, operation->u.launch.arguments,
                                        operation->u.launch.argument_count, &bound);
    if (status == WEIR_OK)
        status = enqueue_kernel(queue, bound, operation, &event);
    put_arguments(kernel, operation->u.launch.argument_count);
    pthread_mutex_unlock(&kernel->lock);
    return event ? ocl_launches_keep(queue, operation->sequence, event) : status;
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
        return ocl_native_error(module, "clGetKernelWorkGroupInfo", code, "what a kernel needs");
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
    host->release(kernel->name);
    host->release(kernel->bound);
    host->release(kernel->borrowed);
    host->release(kernel->given);
    host->release(kernel->wanted);
    host->release(kernel);
}

static weir_status allocate_arguments(struct ocl_kernel *kernel, const char *name)
{
    const struct weir_host *host = kernel->device->module->host;
    const size_t count = (size_t)kernel->parameter_count + 1;
    kernel->name = host->allocate(strlen(name) + 1);
    kernel->bound = host->allocate(OCL_SETTINGS * count * sizeof *kernel->bound);
    kernel->borrowed = host->allocate(count * sizeof *kernel->borrowed);
    kernel->given = host->allocate(count * sizeof *kernel->given);
    kernel->wanted = host->allocate(count * sizeof *kernel->wanted);
    if (!kernel->name || !kernel->bound || !kernel->borrowed || !kernel->given || !kernel->wanted)
        return weir_host_no_memory(host, "a kernel");
    memcpy(kernel->name, name, strlen(name) + 1);
    return WEIR_OK;
}

weir_status ocl_kernel_create(const struct weir_link *link, weir_program *program_object,
                              weir_kernel *object, const struct weir_kernel_signature *signature,
                              struct weir_kernel_info *info, void **out_data)
{
    const struct weir_host *host = link->host;
    const struct ocl_program *program = ocl_program_of(link, program_object);
    (void)object;
    struct ocl_kernel *kernel = host->allocate(sizeof *kernel);
    if (!kernel)
        return weir_host_no_memory(host, "a kernel");
    kernel->device = program->device;
    kernel->program = program->program;
    kernel->parameter_count = signature->parameter_count;
    pthread_mutex_init(&kernel->lock, NULL);

    weir_status status = allocate_arguments(kernel, signature->name);
    const cl_int code = status == WEIR_OK ? add_setting(kernel) : CL_SUCCESS;
    if (code != CL_SUCCESS)
        status = ocl_native_error(program->device->module, "clCreateKernel", code, "kernel '%s'",
                                  signature->name);
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
    (void)local_bytes;
    if (!is_pocl(ocl_kernel_of(link, object)->device))
        return WEIR_OK;
    occupancy->unit_blocks = 1;
    occupancy->unit_items = block.x * block.y * block.z;
    occupancy->limit = WEIR_OCCUPANCY_BLOCKS;
    return WEIR_OK;
}
