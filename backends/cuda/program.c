// Kernels of a bundle are found when the program is created, and loaded when they are: CUDA's lazy loading would
// load them at the first launch, and wait for the whole device.
#include <stdlib.h>

#include "backends/cuda/cu.h"
#include "backends/cuda/image.h"

// `*out_found` is false if the module lacks the kernel, which is not an error here.
static weir_status find_function(const struct cu_program *program, const char *name,
                                 CUfunction *out_function, bool *out_found)
{
    const CUresult code =
        program->device->module->cu.cuModuleGetFunction(out_function, program->module, name);
    *out_found = code == CUDA_SUCCESS;
    if (code == CUDA_SUCCESS || code == CUDA_ERROR_NOT_FOUND)
        return WEIR_OK;
    return cu_native_error(program->device, "cuModuleGetFunction", code, "load kernel '%s'", name);
}

static weir_status load_function(const struct cu_program *program, const char *name,
                                 CUfunction function)
{
    const struct cu_symbols *cu = &program->device->module->cu;
    const char *call = "cuFuncLoad";
    CUresult code;
    int registers;
    if (cu->cuFuncLoad) {
        code = cu->cuFuncLoad(function);
    } else { // older drivers load a kernel when it is queried
        call = "cuFuncGetAttribute";
        code = cu->cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
    }
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    return cu_native_error(program->device, call, code, "load kernel '%s'", name);
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
            return cu_native_error(program->device, "cuFuncGetParamInfo", code,
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
static weir_status find_bundled(const struct cu_program *program, const struct cu_image *chosen)
{
    const struct weir_bundle *bundle = chosen->bundle;
    for (uint32_t i = 0; i < bundle->kernel_count; i++) {
        CUfunction function;
        bool found;
        const char *name = weir_bundle_kernel(bundle, i)->name;
        weir_status status = find_function(program, name, &function, &found);
        if (status < 0)
            return status;
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
        weir_status status = find_function(program, all->kernels[i].name, &function, &found);
        if (status == WEIR_OK && found)
            status = load_function(program, all->kernels[i].name, function);
        if (status == WEIR_OK && found)
            status = check_parameters(program, &all->kernels[i], function);
        if (status < 0)
            return status;
        if (found)
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

static void unload(struct weir_kit_idle_entry *entry)
{
    struct cu_program *program = (struct cu_program *)(void *)entry;
    const struct cu_module *module = program->device->module;
    if (!cu_is_given_up(program->device))
        module->cu.cuModuleUnload(program->module);
    module->host->release(program);
}

static void release(struct cu_program *program)
{
    const struct weir_host *host = program->device->module->host;
    host->release(program->signatures);
    if (!program->module) {
        host->release(program);
        return;
    }
    program->idle.give_back = unload;
    weir_kit_idle_put(program->device->idle, &program->idle);
}

static weir_status create(struct cu_program *program, const struct cu_image *chosen)
{
    struct cu_scope scope;
    weir_status status = cu_enter(program->device, &scope);
    if (status < 0)
        return status;
    weir_kit_idle_settle(program->device->idle);
    status = cu_image_load(program, chosen);
    if (status == WEIR_OK)
        status = chosen->bundle ? find_bundled(program, chosen) : load_compiled(program);
    cu_leave(program->device, &scope);
    return status;
}

static weir_status create_from_source(struct cu_program *program,
                                      const struct weir_program_params *params)
{
    struct cu_image chosen = {.name = "the image"};
    struct cu_compiled compiled = {.memory = NULL};
    const char *cuda_options = params->cuda_options ? params->cuda_options : "";
    const char *options = params->options ? params->options : "";
    weir_status status =
        params->cuda_source
            ? cu_compile_cuda(program->device, params->cuda_source, cuda_options, &compiled)
            : cu_compile_opencl(program->device, params->source, options, &compiled);
    chosen.data = compiled.image;
    program->signatures = compiled.signatures;
    if (status == WEIR_OK)
        status = create(program, &chosen);
    free(compiled.memory);
    return status;
}

weir_status cu_program_create(const struct weir_link *link, weir_device *device,
                              weir_program *object, const struct weir_program_params *params,
                              void **out_data)
{
    const struct weir_host *host = link->host;
    struct cu_image chosen = {.data = NULL};
    (void)object;
    struct cu_program *program = host->allocate(sizeof *program);
    if (!program)
        return weir_host_no_memory(host, "a program");
    program->device = cu_device_of(link, device);

    weir_status status;
    if (!params->bundle) {
        status = create_from_source(program, params);
    } else {
        status = cu_image_choose(program->device, params->bundle, &chosen);
        if (status == WEIR_OK)
            status = create(program, &chosen);
    }
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
    const struct cu_symbols *cu = &device->module->cu;
    int threads = 0;
    int local = 0;
    int registers = 0;
    const char *call = "cuFuncGetAttribute";
    CUresult code =
        cu->cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel->function);
    if (code == CUDA_SUCCESS)
        code =
            cu->cuFuncGetAttribute(&local, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel->function);
    if (code == CUDA_SUCCESS)
        code = cu->cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel->function);
    if (code == CUDA_SUCCESS) {
        const unsigned used = (unsigned)local;
        call = "cuFuncSetAttribute";
        const unsigned most = device->attributes.max_local_bytes;
        kernel->max_dynamic_bytes = used < most ? most - used : 0;
        code = cu->cuFuncSetAttribute(kernel->function,
                                      CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                      (int)kernel->max_dynamic_bytes);
    }
    if (code != CUDA_SUCCESS)
        return cu_native_error(device, call, code, "prepare kernel '%s'", name);
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
    bool found;
    weir_status status = find_function(program, name, &kernel->function, &found);
    if (status < 0)
        return status;
    if (!found)
        return weir_host_fail(program->device->module->host, WEIR_ERROR_NOT_FOUND,
                              "build the program again", "kernel '%s' is not in the program", name);
    status = load_function(program, name, kernel->function);
    if (status == WEIR_OK && !program->signatures)
        status = check_parameters(program, signature, kernel->function);
    if (status < 0)
        return status;
    kernel->name = cu_keep_name(program->device, name);
    if (!kernel->name)
        return weir_host_no_memory(program->device->module->host, "a kernel");
    return prepare(program, kernel, name, info);
}

weir_status cu_kernel_create(const struct weir_link *link, weir_program *program_object,
                             weir_kernel *object, const struct weir_kernel_signature *signature,
                             struct weir_kernel_info *info, void **out_data)
{
    const struct cu_program *program = cu_program_of(link, program_object);
    struct cu_scope scope;
    (void)object;
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
