// Programs. They are built from OpenCL C. Their binaries are cached on disk; the key is everything that they
// depend on: source, options, platform, device and driver. A program whose binary the driver no longer accepts
// is built again. PoCL has a cache of its own.

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

static bool make_key(struct build *build)
{
    const struct ocl_module *module = build->device->module;
    const struct weir_device_info *info = &build->device->listed->info;
    char device_version[256], platform_version[256];
    ocl_device_text(&module->cl, build->device->listed->device, CL_DEVICE_VERSION, device_version,
                    sizeof device_version);
    ocl_platform_text(&module->cl, build->device->listed->platform, CL_PLATFORM_VERSION,
                      platform_version, sizeof platform_version);
    build->key = weir_kit_format(module->host, "heads\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s",
                                 WEIR_VERSION_STRING, info->platform, platform_version, info->name,
                                 device_version, info->driver, build->options, build->clc.before,
                                 build->clc.text);
    return build->key;
}

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
    build->clc.heads = strdup(entry);
    build->clc.program =
        cl->clCreateProgramWithBinary(build->device->context, 1, &build->device->listed->device,
                                      &binary_size, &binary, NULL, &code);
    return build->clc.heads && build->clc.program &&
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

static void write_cache(const struct build *build)
{
    const struct ocl_module *module = build->device->module;
    char *entry = NULL;
    size_t size;
    if (module->cache && clc_entry(&build->clc, &entry, &size) == CL_SUCCESS &&
        size > strlen(entry) + 1)
        weir_kit_cache_write(module->cache, build->key, entry, size);
    free(entry);
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
    const bool keep = !ocl_is_pocl(build->device);
    if (keep && read_cache(build))
        return WEIR_OK;
    weir_status status = clc_build(&build->clc);
    if (status == WEIR_OK && keep)
        write_cache(build);
    return status;
}

static weir_status choose_source(struct build *build, const struct weir_program_params *params)
{
    const struct weir_host *host = build->device->module->host;
    const bool pocl = ocl_is_pocl(build->device);
    const uint32_t count = params->bundle ? params->bundle->image_count : 0;
    build->clc.text = params->source;
    build->target = "";
    for (uint32_t i = 0; i < count; i++) {
        const struct weir_image *image = weir_bundle_image(params->bundle, i);
        if (!weir_image_is(image, WEIR_IMAGE_OPENCL_C))
            continue;
        build->clc.text = image->data;
        build->target = image->target;
        break;
    }
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

weir_status ocl_program_create(const struct weir_link *link, weir_device *device,
                               weir_program *object, const struct weir_program_params *params,
                               void **out_data)
{
    const struct weir_host *host = link->host;
    struct ocl_device *own = ocl_device_of(link, device);
    struct build build = {.device = own,
                          .clc = {.cl = &own->module->cl,
                                  .host = host,
                                  .name = "opencl",
                                  .context = own->context,
                                  .device = own->listed->device}};
    struct ocl_program *program = host->allocate(sizeof *program);
    if (!program)
        return weir_host_no_memory(host, "a program");

    program->device = own;
    weir_status status = choose_source(&build, params);
    if (status == WEIR_OK)
        status = make_program(&build, params);
    if (status == WEIR_OK && build.clc.signatures)
        status = weir_kit_signatures_read(host, build.clc.heads, &program->signatures);
    if (status == WEIR_OK) {
        program->program = build.clc.program;
        build.clc.program = NULL;
        host->count_driver_object();
        *out_data = program;
    }
    clc_drop(&build.clc);
    host->release(build.before);
    host->release(build.options);
    host->release(build.key);
    if (status < 0)
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
