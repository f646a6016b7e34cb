// Programs are compiled from OpenCL C, of a bundle or of the caller. The binaries are cached on
// disk; the key is everything that they depend on. Tarn reports no signatures, so those of the
// caller's source are read from it.
#include <stdlib.h>
#include <string.h>

#include "trn.h"

// One compilation.
struct build {
    const struct trn_device *device;
    const char *source;
    const char *options;
    char log[4096];
    void *binary;
    size_t size;
};

static weir_status compile(struct build *build)
{
    const struct trn_module *module = build->device->module;
    tarn_result result = module->tarn.tarn_compile(build->source, build->options, &build->binary,
                                                   &build->size, build->log, sizeof build->log);
    if (result != TARN_OK && result != TARN_BUILD_FAILED)
        return trn_error(module, "tarn_compile", result, "compile a program");
    const struct weir_kit_build report = {
        .source = "tarn",
        .log = build->log,
        .options = build->options,
        .sought = "error:",
        .failed = result != TARN_OK,
        .call = "tarn_compile",
        .code = (int)result,
        .name = module->tarn.tarn_result_name(result),
    };
    return weir_kit_build_report(module->host, &report);
}

static weir_status compile_cached(struct build *build)
{
    const struct trn_module *module = build->device->module;
    char *key =
        weir_kit_format(module->host, "%s\n%s\n%s\n%s\n%s", WEIR_VERSION_STRING, module->driver,
                        build->device->info->name, build->options, build->source);
    if (!key)
        return weir_host_no_memory(module->host, "a program");
    weir_status status = WEIR_OK;
    if (!weir_kit_cache_read(module->cache, key, &build->binary, &build->size)) {
        status = compile(build);
        if (status == WEIR_OK)
            weir_kit_cache_write(module->cache, key, build->binary, build->size);
    }
    module->host->release(key);
    return status;
}

static weir_status choose_source(struct build *build, const struct weir_program_params *params)
{
    const struct weir_bundle *bundle = params->bundle;
    build->options = params->options ? params->options : "";
    build->source = params->source;
    for (uint32_t i = 0; bundle && i < bundle->image_count; i++) {
        const struct weir_image *image = weir_bundle_image(bundle, i);
        if (weir_image_is(image, WEIR_IMAGE_OPENCL_C))
            build->source = image->data;
    }
    if (build->source || !bundle) // without a bundle there is source
        return WEIR_OK;
    return weir_host_fail(build->device->module->host, WEIR_ERROR_UNSUPPORTED,
                          "make the bundle with weir_kernels, which always embeds one",
                          "bundle '%s' has no OpenCL C image", bundle->name);
}

// Only a compiler knows the sizes of structures that are passed by value.
static weir_status read_signatures(struct trn_program *program, const char *source)
{
    const struct weir_host *host = program->device->module->host;
    weir_status status = weir_kit_signatures_read(host, source, &program->signatures);
    for (uint32_t i = 0; status == WEIR_OK && i < program->signatures->kernel_count; i++) {
        const struct weir_kernel_signature *kernel = &program->signatures->kernels[i];
        for (uint32_t k = 0; k < kernel->parameter_count; k++) {
            const struct weir_parameter *parameter = &kernel->parameters[k];
            if (parameter->kind == WEIR_PARAMETER_VALUE && parameter->size == 0)
                return weir_host_fail(host, WEIR_ERROR_UNSUPPORTED, "pass the values one by one",
                                      "kernel '%s': Tarn does not tell the size of '%s'",
                                      kernel->name, parameter->type_name);
        }
    }
    return status;
}

static weir_status load(struct trn_program *program, struct build *build)
{
    const struct trn_module *module = program->device->module;
    tarn_result result =
        module->tarn.tarn_module_load(&program->module, build->binary, build->size);
    if (result != TARN_OK)
        return trn_error(module, "tarn_module_load", result, "load a program");
    module->host->count_driver_object();
    return WEIR_OK;
}

// Within the device's context.
static weir_status create(struct trn_program *program, const struct weir_program_params *params)
{
    struct build build = {.device = program->device};
    weir_kit_idle_settle(program->device->idle);
    weir_status status = choose_source(&build, params);
    if (status == WEIR_OK)
        status = compile_cached(&build);
    if (status == WEIR_OK && params->source)
        status = read_signatures(program, params->source);
    if (status == WEIR_OK)
        status = load(program, &build);
    free(build.binary);
    return status;
}

static void unload(struct weir_kit_idle_entry *entry)
{
    struct trn_program *program = (struct trn_program *)(void *)entry;
    const struct trn_module *module = program->device->module;
    module->tarn.tarn_module_unload(program->module);
    module->host->release(program);
}

static void release(struct trn_program *program)
{
    const struct weir_host *host = program->device->module->host;
    host->release(program->signatures);
    program->idle.give_back = unload;
    if (program->module)
        weir_kit_idle_put(program->device->idle, &program->idle);
    else
        host->release(program);
}

weir_status trn_program_create(const struct weir_link *link, weir_device *device,
                               weir_program *object, const struct weir_program_params *params,
                               void **out_data)
{
    tarn_context *before;
    (void)object;
    struct trn_program *program = link->host->allocate(sizeof *program);
    if (!program)
        return weir_host_no_memory(link->host, "a program");
    program->device = trn_device_of(link, device);
    weir_status status = trn_enter(program->device, &before);
    if (status == WEIR_OK) {
        status = create(program, params);
        trn_leave(program->device, before);
    }
    if (status < 0) {
        release(program);
        return status;
    }
    *out_data = program;
    return WEIR_OK;
}

void trn_program_destroy(const struct weir_link *link, weir_program *object)
{
    release(trn_program_of(link, object));
}

weir_status trn_program_signatures(const struct weir_link *link, weir_program *object,
                                   const struct weir_kernel_signature **out_signatures,
                                   uint32_t *out_count)
{
    const struct trn_program *program = trn_program_of(link, object);
    *out_signatures = program->signatures ? program->signatures->kernels : NULL;
    *out_count = program->signatures ? program->signatures->kernel_count : 0;
    return WEIR_OK;
}

static weir_status find_kernel(const struct trn_program *program, const char *name,
                               struct weir_kernel_info *info, tarn_kernel **out_kernel)
{
    const struct trn_module *module = program->device->module;
    struct tarn_kernel_info known;
    const char *call = "tarn_module_kernel";
    tarn_result result = module->tarn.tarn_module_kernel(program->module, name, out_kernel);
    if (result == TARN_OK) {
        call = "tarn_kernel_describe";
        result = module->tarn.tarn_kernel_describe(*out_kernel, &known);
    }
    if (result != TARN_OK)
        return trn_error(module, call, result, "kernel '%s'", name);
    info->max_block_items = known.max_threads;
    info->preferred_block_items = known.preferred_threads;
    info->local_bytes = known.local_bytes;
    return WEIR_OK;
}

weir_status trn_kernel_create(const struct weir_link *link, weir_program *program_object,
                              weir_kernel *object, const struct weir_kernel_signature *signature,
                              struct weir_kernel_info *info, void **out_data)
{
    const struct trn_program *program = trn_program_of(link, program_object);
    tarn_context *before;
    tarn_kernel *kernel = NULL;
    (void)object;
    if (signature->parameter_count > TRN_PARAMETER_LIMIT)
        return weir_host_fail(link->host, WEIR_ERROR_UNSUPPORTED, "pass a structure or a buffer",
                              "kernel '%s' has %u parameters; the Tarn backend passes up to %d",
                              signature->name, (unsigned)signature->parameter_count,
                              TRN_PARAMETER_LIMIT);
    weir_status status = trn_enter(program->device, &before);
    if (status < 0)
        return status;
    status = find_kernel(program, signature->name, info, &kernel);
    trn_leave(program->device, before);
    *out_data = kernel; // lives as long as the module
    return status;
}

void trn_kernel_destroy(const struct weir_link *link, weir_kernel *object)
{
    (void)link;
    (void)object;
}
