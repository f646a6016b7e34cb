// Programs, kernels and the arguments of their launches.
//
// Kernels of a bundle are found when the program is created, and loaded when they are: CUDA's lazy loading
// would load them at the first launch, and wait for the whole device.

#include "backends/cuda/cu.h"
#include "base/text.h"
#include "kernels/ptx/ptx.h"

// An image, of a bundle or compiled from source.
struct image {
    const void *data;
    const struct weir_bundle *bundle; // NULL: compiled from source
    char name[64];                    // for messages
};

// Images.
//
// Of the images of a bundle the device uses a cubin of its own major architecture and at most its
// minor one, or else PTX, which the driver compiles.

static bool is_cubin(const struct weir_image *image)
{
    return weir_image_is(image, WEIR_IMAGE_CUBIN);
}

static bool suits(const struct weir_image *image, unsigned architecture)
{
    const unsigned sm = weir_image_sm(image);
    const char last = image->target[0] ? image->target[strlen(image->target) - 1] : '\0';
    if (sm == 0 || sm > architecture || (sm != architecture && (last < '0' || last > '9')))
        return false;
    return is_cubin(image) ? sm / 10 == architecture / 10 : weir_image_is(image, WEIR_IMAGE_PTX);
}

static bool is_better(const struct weir_image *image, const struct weir_image *best)
{
    if (!best)
        return true;
    if (is_cubin(image) != is_cubin(best))
        return is_cubin(image);
    return weir_image_sm(image) > weir_image_sm(best);
}

static void list_images(const struct weir_bundle *bundle, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < bundle->image_count; i++) {
        const struct weir_image *image = weir_bundle_image(bundle, i);
        if (!is_cubin(image) && !weir_image_is(image, WEIR_IMAGE_PTX))
            continue;
        weir_text_append(text, size, &used, "%s%s %s", used > 0 ? ", " : "",
                         is_cubin(image) ? "cubin" : "PTX", image->target);
    }
}

// The files that a bundle's images come from in place of its OpenCL C; NULL: they come from that.
static const char *twin_of(const struct weir_bundle *bundle)
{
    for (uint32_t i = 0; i < bundle->image_count; i++)
        if (weir_image_is(weir_bundle_image(bundle, i), WEIR_IMAGE_TWIN))
            return weir_bundle_image(bundle, i)->data;
    return NULL;
}

static weir_status refuse_bundle(const struct cu_device *device, const struct weir_bundle *bundle)
{
    const struct weir_host *host = device->module->host;
    const char *twin = twin_of(bundle);
    char have[512];
    list_images(bundle, have, sizeof have);
    if (have[0])
        return weir_host_fail(
            host, WEIR_ERROR_UNSUPPORTED,
            "build the bundle with a cubin of that architecture, or with PTX of it or "
            "an older one",
            "bundle '%s' has no image for '%s', which is sm_%u; it has %s%s%s", bundle->name,
            device->listed->info.name, device->architecture, have, twin ? ", made from " : "",
            twin ? twin : "");
    if (twin)
        return weir_host_fail(host, WEIR_ERROR_UNSUPPORTED,
                              "build it on a machine with nvcc, or without its CUDA C++, which "
                              "then leaves the OpenCL C to CUDA too",
                              "bundle '%s' has no CUDA images: %s was not compiled", bundle->name,
                              twin);
    return weir_host_fail(host, WEIR_ERROR_UNSUPPORTED,
                          "build it with weir_kernels on a machine with a CUDA toolkit",
                          "bundle '%s' has no CUDA images", bundle->name);
}

// Chooses the image of a bundle for the device.
static weir_status choose_image(const struct cu_device *device, const struct weir_bundle *bundle,
                                struct image *chosen)
{
    const struct weir_image *best = NULL;
    char message[640];
    for (uint32_t i = 0; i < bundle->image_count; i++) {
        const struct weir_image *image = weir_bundle_image(bundle, i);
        if (suits(image, device->architecture) && is_better(image, best))
            best = image;
    }
    if (!best)
        return refuse_bundle(device, bundle);
    chosen->data = best->data;
    chosen->bundle = bundle;
    snprintf(chosen->name, sizeof chosen->name, "%s %s", is_cubin(best) ? "the cubin" : "the PTX",
             best->target);
    const char *twin = twin_of(bundle);
    if (twin) { // which of two sources runs cannot be seen from outside
        snprintf(message, sizeof message, "bundle '%s': %s, made from %s and not from its OpenCL C",
                 bundle->name, chosen->name, twin);
        device->module->host->log(WEIR_LOG_INFO, "cuda", message);
    }
    return WEIR_OK;
}

// The CUDA version that built a bundle, from the version of its PTX: PTX 7 is CUDA 11, 8 is 12, 9
// is 13. 0: unknown.
static int toolkit_major(const struct weir_bundle *bundle)
{
    for (uint32_t i = 0; bundle && i < bundle->image_count; i++) {
        const struct weir_image *image = weir_bundle_image(bundle, i);
        const char *version =
            weir_image_is(image, WEIR_IMAGE_PTX) ? strstr(image->data, ".version ") : NULL;
        const long major = version ? strtol(version + strlen(".version "), NULL, 10) : 0;
        if (major > 0 && major < 100)
            return (int)major + 4;
    }
    return 0;
}

static bool is_image_error(CUresult code)
{
    return code == CUDA_ERROR_INVALID_IMAGE || code == CUDA_ERROR_NO_BINARY_FOR_GPU ||
           code == CUDA_ERROR_UNSUPPORTED_PTX_VERSION || code == CUDA_ERROR_INVALID_SOURCE ||
           code == CUDA_ERROR_INVALID_PTX;
}

// Loads it as the program's module. Within the device's context.
static weir_status load_image(struct cu_program *program, const struct image *chosen)
{
    struct cu_device *device = program->device;
    const struct cu_module *module = device->module;
    const char *of = chosen->bundle ? chosen->bundle->name : "source";
    char log[400] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    CUresult code =
        module->cu.cuModuleLoadDataEx(&program->module, chosen->data, 2, options, values);
    if (code == CUDA_SUCCESS) {
        module->host->count_driver_object();
        return WEIR_OK;
    }
    program->module = NULL;
    const int toolkit = toolkit_major(chosen->bundle);
    if (is_image_error(code) && toolkit > module->version / 1000)
        return CU_FAIL(device, "cuModuleLoadDataEx", code,
                       "the driver is too old for bundle '%s': CUDA %d built it, and the "
                       "driver supports CUDA %d.%d; install NVIDIA driver %s or newer",
                       of, toolkit, module->version / 1000, module->version % 1000 / 10,
                       toolkit >= 13 ? "580" : "525");
    return CU_FAIL(device, "cuModuleLoadDataEx", code, "'%s' does not take %s of '%s'%s%s",
                   device->listed->info.name, chosen->name, of, log[0] ? ": " : "", log);
}

// Programs.

// `*out_found` is false if the module lacks the kernel, which is not an error here.
static weir_status find_function(const struct cu_program *program, const char *name,
                                 CUfunction *out_function, bool *out_found)
{
    const CUresult code =
        program->device->module->cu.cuModuleGetFunction(out_function, program->module, name);
    *out_found = code == CUDA_SUCCESS;
    if (code == CUDA_SUCCESS || code == CUDA_ERROR_NOT_FOUND)
        return WEIR_OK;
    return CU_FAIL(program->device, "cuModuleGetFunction", code, "load kernel '%s'", name);
}

static weir_status load_function(const struct cu_program *program, const char *name,
                                 CUfunction function)
{
    struct cu_trial trial = {.device = program->device};
    int registers;
    if (program->device->module->cu.cuFuncLoad)
        CU_TRY(&trial, cuFuncLoad, function);
    else // older drivers load a kernel when it is queried
        CU_TRY(&trial, cuFuncGetAttribute, &registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
    return cu_tried(&trial, "load kernel '%s'", name);
}

// Without the function that tells sizes, structures by value have none.
static weir_status need_sizes(const struct cu_program *program,
                              const struct weir_kernel_signature *kernel)
{
    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        const struct weir_parameter *parameter = weir_signature_parameter(kernel, i);
        if (parameter->kind == WEIR_PARAMETER_VALUE && parameter->size == 0)
            return weir_host_fail(program->device->module->host, WEIR_ERROR_UNSUPPORTED,
                                  "install driver 550 or newer, or pass the values one by one",
                                  "kernel '%s': the driver (%s) does not tell the size of '%s'",
                                  kernel->name, program->device->module->driver,
                                  parameter->type_name);
    }
    return WEIR_OK;
}

static weir_status check_size(const struct cu_program *program,
                              const struct weir_kernel_signature *kernel, uint32_t index,
                              size_t size)
{
    const struct weir_parameter *parameter = weir_signature_parameter(kernel, index);
    const bool value = parameter->kind == WEIR_PARAMETER_VALUE;
    const uint32_t expected = value ? parameter->size : (uint32_t)sizeof(CUdeviceptr);
    if (value && expected == 0 && program->signatures)
        program->signatures->parameters[parameter - program->signatures->parameters].size =
            (uint32_t)size;
    else if (size != expected)
        return weir_host_fail(program->device->module->host, WEIR_ERROR_BUILD,
                              "give the kernel the same parameters wherever it is written; in "
                              "CUDA C++ spell their types out, without typedefs and macros",
                              "kernel '%s': parameter '%s' of type '%s' has %zu bytes in the "
                              "image, not %u",
                              kernel->name, parameter->name, parameter->type_name, size,
                              (unsigned)expected);
    return WEIR_OK;
}

// The image tells the sizes of parameters and not their types. Structures of run-time source get
// theirs here.
static weir_status check_parameters(const struct cu_program *program,
                                    const struct weir_kernel_signature *kernel, CUfunction function)
{
    const struct cu_symbols *cu = &program->device->module->cu;
    weir_status status = WEIR_OK;
    if (!cu->cuFuncGetParamInfo)
        return need_sizes(program, kernel);
    for (uint32_t i = 0; status == WEIR_OK; i++) {
        size_t offset;
        size_t size = 0;
        const CUresult code = cu->cuFuncGetParamInfo(function, i, &offset, &size);
        const bool past = i == kernel->parameter_count;
        if (code != CUDA_SUCCESS && code != CUDA_ERROR_INVALID_VALUE)
            return CU_FAIL(program->device, "cuFuncGetParamInfo", code,
                           "the parameters of kernel '%s'", kernel->name);
        if (past && code != CUDA_SUCCESS)
            return WEIR_OK;
        if (past || code != CUDA_SUCCESS)
            return weir_host_fail(program->device->module->host, WEIR_ERROR_BUILD,
                                  "give the kernel the same parameters wherever it is written",
                                  "kernel '%s' has %s parameters in the image than the %u of its "
                                  "signature",
                                  kernel->name, past ? "more" : "fewer",
                                  (unsigned)kernel->parameter_count);
        status = check_size(program, kernel, i, size);
    }
    return status;
}

// The kernels that a program makes are loaded and checked then: a bundle may have many of which a
// program uses few.
static weir_status find_bundled(const struct cu_program *program, const struct image *chosen)
{
    const struct weir_bundle *bundle = chosen->bundle;
    for (uint32_t i = 0; i < bundle->kernel_count; i++) {
        CUfunction function;
        bool found;
        const char *name = weir_bundle_kernel(bundle, i)->name;
        TRY(find_function(program, name, &function, &found));
        if (!found)
            return weir_host_fail(program->device->module->host, WEIR_ERROR_NOT_FOUND,
                                  "build the bundle again with weir_kernels",
                                  "kernel '%s' is missing from %s of bundle '%s'", name,
                                  chosen->name, bundle->name);
    }
    return WEIR_OK;
}

// The reader of CUDA C++ does not know which branch of an #if was compiled, nor which kernels have
// a name of C, but the module does. All are loaded here, as signatures must be complete.
static weir_status load_compiled(const struct cu_program *program)
{
    struct weir_kit_signatures *all = program->signatures;
    const uint32_t count = all->kernel_count;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        CUfunction function;
        bool found;
        TRY(find_function(program, all->kernels[i].name, &function, &found));
        if (!found)
            continue;
        TRY(load_function(program, all->kernels[i].name, function));
        TRY(check_parameters(program, &all->kernels[i], function));
        all->kernels[kept++] = all->kernels[i];
    }
    all->kernel_count = kept;
    if (kept > 0 || count == 0)
        return WEIR_OK;
    return weir_host_fail(program->device->module->host, WEIR_ERROR_BUILD,
                          "declare kernels as extern \"C\" __global__ void",
                          "no kernel of the source is in the image by its name, such as '%s'",
                          all->kernels[0].name);
}

// Unloading a module is a deferred free: buffer.c.
static void release(struct cu_program *program)
{
    struct cu_device *device = program->device;
    const struct weir_host *host = device->module->host;
    host->release(program->signatures);
    if (!program->module) {
        host->release(program);
        return;
    }
    pthread_mutex_lock(&device->lock);
    program->next = device->unloads;
    device->unloads = program;
    atomic_fetch_add(&device->deferred, 1);
    pthread_mutex_unlock(&device->lock);
}

static weir_status create(struct cu_program *program, const struct image *chosen)
{
    struct cu_scope scope;
    TRY(cu_enter(program->device, &scope));
    cu_settle(program->device);
    weir_status status = load_image(program, chosen);
    if (status == WEIR_OK)
        status = chosen->bundle ? find_bundled(program, chosen) : load_compiled(program);
    cu_leave(program->device, &scope);
    return status;
}

weir_status cu_program_create(const struct weir_link *link, weir_device *device,
                              weir_program *object, const struct weir_program_params *params,
                              void **out_data)
{
    const struct weir_host *host = link->host;
    struct image chosen = {.name = "the image"};
    struct cu_compiled compiled = {.image = NULL};
    struct cu_program *program = host->allocate(sizeof *program);
    if (!program)
        return weir_host_no_memory(host, "a program");
    program->device = cu_device_of(link, device);

    weir_status status;
    if (params->bundle) {
        status = choose_image(program->device, params->bundle, &chosen);
    } else {
        status = cu_compile(program->device, params, &compiled);
        chosen.data = compiled.image;
        program->signatures = compiled.signatures;
    }
    if (status == WEIR_OK)
        status = create(program, &chosen);
    free(compiled.image);
    if (status < 0) {
        release(program);
        return status;
    }
    *out_data = program;
    return WEIR_OK;
}

void cu_program_destroy(const struct weir_link *link, weir_program *object)
{
    release(cu_program_of(link, object));
}

weir_status cu_program_signatures(const struct weir_link *link, weir_program *object,
                                  const struct weir_kernel_signature **out_signatures,
                                  uint32_t *out_count)
{
    const struct cu_program *program = cu_program_of(link, object);
    *out_signatures = program->signatures ? program->signatures->kernels : NULL;
    *out_count = program->signatures ? program->signatures->kernel_count : 0;
    return WEIR_OK;
}

// A kernel must be allowed to use all of the local memory that a block can have.
static weir_status prepare(const struct cu_program *program, struct cu_kernel *kernel,
                           const char *name, struct weir_kernel_info *info)
{
    struct cu_device *device = program->device;
    struct cu_trial trial = {.device = device};
    int threads = 0;
    int local = 0;
    int registers = 0;
    CU_TRY(&trial, cuFuncGetAttribute, &threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
           kernel->function);
    CU_TRY(&trial, cuFuncGetAttribute, &local, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
           kernel->function);
    CU_TRY(&trial, cuFuncGetAttribute, &registers, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel->function);
    const unsigned used = (unsigned)local;
    const unsigned most = device->attributes.max_local_bytes;
    CU_TRY(&trial, cuFuncSetAttribute, kernel->function,
           CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, used < most ? (int)(most - used) : 0);
    if (trial.code != CUDA_SUCCESS)
        return cu_tried(&trial, "prepare kernel '%s'", name);
    info->max_block_items = (uint32_t)threads;
    info->preferred_block_items = device->attributes.warp_size;
    info->local_bytes = (uint64_t)local;
    info->registers = (uint32_t)registers;
    kernel->device = device;
    kernel->own_local_bytes = (unsigned)local;
    kernel->registers = (unsigned)registers;
    return WEIR_OK;
}

static weir_status find_and_prepare(const struct cu_program *program, struct cu_kernel *kernel,
                                    const struct weir_kernel_signature *signature,
                                    struct weir_kernel_info *info)
{
    const char *name = signature->name;
    struct cu_trial trial = {.device = program->device};
    CU_TRY(&trial, cuModuleGetFunction, &kernel->function, program->module, name);
    TRY(cu_tried(&trial, "load kernel '%s'", name));
    TRY(load_function(program, name, kernel->function));
    if (!program->signatures)
        TRY(check_parameters(program, signature, kernel->function));
    return prepare(program, kernel, name, info);
}

weir_status cu_kernel_create(const struct weir_link *link, weir_program *program_object,
                             weir_kernel *object, const struct weir_kernel_signature *signature,
                             struct weir_kernel_info *info, void **out_data)
{
    const struct cu_program *program = cu_program_of(link, program_object);
    struct cu_scope scope;
    if (signature->parameter_count > CU_PARAMETER_LIMIT)
        return weir_host_fail(link->host, WEIR_ERROR_UNSUPPORTED, "pass a structure or a buffer",
                              "kernel '%s' has %u parameters; the CUDA backend passes up to %d",
                              signature->name, (unsigned)signature->parameter_count,
                              CU_PARAMETER_LIMIT);
    struct cu_kernel *kernel = link->host->allocate(sizeof *kernel);
    if (!kernel)
        return weir_host_no_memory(link->host, "a kernel");
    weir_status status = cu_enter(program->device, &scope);
    if (status == WEIR_OK) {
        status = find_and_prepare(program, kernel, signature, info);
        cu_leave(program->device, &scope);
    }
    if (status < 0) {
        link->host->release(kernel);
        return status;
    }
    *out_data = kernel;
    return WEIR_OK;
}

void cu_kernel_destroy(const struct weir_link *link, weir_kernel *object)
{
    link->host->release(cu_kernel_of(link, object));
}

// Occupancy. The driver tells how many blocks a multiprocessor holds at once and not the reason, which is
// found by computing what each resource alone allows.

enum {
    WARP_REGISTERS = 256, // a warp's registers are a multiple of it, and
    LOCAL_BYTES = 128,    // a block's local memory of this
};

static size_t round_up(size_t number, size_t step)
{
    return (number + step - 1) / step * step;
}

// Of several resources that allow no further block of so many warps, the first. `local_bytes` are without those that
// the driver reserves.
static weir_occupancy_limit find_limit(const struct cu_kernel *kernel, unsigned warps,
                                       size_t local_bytes, unsigned blocks)
{
    const struct cu_attributes *has = &kernel->device->attributes;
    const size_t local = round_up(local_bytes + has->reserved_local_bytes, LOCAL_BYTES);
    const size_t of_warp = round_up((size_t)kernel->registers * has->warp_size, WARP_REGISTERS);
    if (blocks >= has->unit_items / (warps * has->warp_size))
        return WEIR_OCCUPANCY_ITEMS;
    if (blocks >= has->unit_blocks)
        return WEIR_OCCUPANCY_BLOCKS;
    if (local > 0 && blocks >= has->unit_local_bytes / local)
        return WEIR_OCCUPANCY_LOCAL_BYTES;
    if (of_warp > 0 && blocks >= has->unit_registers / of_warp / warps)
        return WEIR_OCCUPANCY_REGISTERS;
    return WEIR_OCCUPANCY_UNKNOWN;
}

weir_status cu_kernel_occupancy(const struct weir_link *link, weir_kernel *object,
                                struct weir_extent block, size_t local_bytes,
                                struct weir_occupancy *occupancy)
{
    const struct cu_kernel *kernel = cu_kernel_of(link, object);
    struct cu_device *device = kernel->device;
    const unsigned items = block.x * block.y * block.z;
    const unsigned warp = device->attributes.warp_size;
    const unsigned warps = (items + warp - 1) / warp;
    struct cu_scope scope;
    int blocks = 0;
    TRY(cu_enter(device, &scope));
    struct cu_trial trial = {.device = device};
    CU_TRY(&trial, cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, kernel->function,
           (int)items, local_bytes);
    weir_status status =
        cu_tried(&trial, "the occupancy of kernel '%s'", weir_kernel_object(object)->label);
    if (status == WEIR_OK) {
        occupancy->unit_blocks = (uint32_t)blocks;
        occupancy->unit_items = (uint32_t)blocks * warps * warp;
        occupancy->max_unit_items = device->attributes.unit_items;
        occupancy->limit =
            find_limit(kernel, warps, local_bytes + kernel->own_local_bytes, (unsigned)blocks);
        if (device->attributes.cooperative)
            occupancy->cooperative_blocks = (uint32_t)blocks * device->attributes.multiprocessors;
    }
    cu_leave(device, &scope);
    return status;
}

// Launches.

void cu_pack(const struct weir_link *link, const struct weir_operation *operation,
             struct cu_packed *packed)
{
    const struct weir_argument *arguments = operation->u.launch.arguments;
    const size_t count = operation->u.launch.argument_count;
    packed->local_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const struct weir_argument *argument = &arguments[i];
        packed->pointers[i] = &packed->places[i];
        switch (argument->kind) {
        case WEIR_PARAMETER_BUFFER:
            packed->places[i] = cu_buffer_of(link, argument->buffer)->address + argument->offset;
            break;
        case WEIR_PARAMETER_VALUE: // the driver only reads through the pointer
            packed->pointers[i] = argument->pointer ? (void *)(uintptr_t)argument->pointer
                                                    : (void *)(uintptr_t)&argument->bits;
            break;
        case WEIR_PARAMETER_LOCAL: // a pointer to local memory is an offset: kernels/ptx/ptx.h
            packed->places[i] = round_up(packed->local_bytes, WEIR_PTX_LOCAL_ALIGNMENT);
            packed->local_bytes = packed->places[i] + argument->size;
            break;
        }
    }
}
