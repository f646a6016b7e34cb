// Source that is compiled at run time: CUDA C++ by NVRTC, OpenCL C by the driver's OpenCL compiler.
#include <weir/kit/symbols.h>

#include "backends/clc/clc.h"
#include "backends/cuda/cu.h"
#include "backends/cuda/libraries.h"
#include "kernels/library/grid_barrier.h"
#include "kernels/ptx/ptx.h"

// CUDA C++.
//
// NVRTC compiles it to a cubin for the device, or to PTX if NVRTC is older
// than the device or the options ask for it. NVRTC is a large library that most programs do not
// need, so it is opened at the first use.

#define OPTION_LIMIT 64

// One compilation.
struct build {
    struct cu_device *device;
    const struct nvrtc_symbols *nvrtc;
    nvrtcProgram program;
    char target[64]; // the option that names the architecture
    bool cubin;
    const char *text;
    char *options; // cut at its spaces
    const char *list[OPTION_LIMIT];
    int count;
};

static const struct weir_kit_symbol nvrtc_functions[] = {
#define NVRTC_SYMBOL(result, name, parameters) {#name, offsetof(struct nvrtc_symbols, name), false},
    NVRTC_SYMBOLS(NVRTC_SYMBOL)
#undef NVRTC_SYMBOL
};

// A driver loads images that its own or an older CUDA version has compiled.
static const char *const for_new_drivers[] = {
    "libnvrtc.so.13",
    "/usr/local/cuda/lib64/libnvrtc.so.13",
    "libnvrtc.so.12",
    "/usr/local/cuda/lib64/libnvrtc.so.12",
};
static const char *const *const for_old_drivers = for_new_drivers + 2;

static weir_status need_compiler(struct cu_module *module)
{
    struct cu_compiler *compiler = &module->compiler;
    const bool recent = module->version >= 13000;
    char message[512] = "";
    pthread_mutex_lock(&compiler->lock);
    if (!compiler->loaded) {
        void *handle = weir_kit_library_open(recent ? for_new_drivers : for_old_drivers,
                                             recent ? 4 : 2, message, sizeof message);
        const bool complete =
            handle && weir_kit_symbols_load(handle, "libnvrtc", nvrtc_functions,
                                            sizeof nvrtc_functions / sizeof *nvrtc_functions,
                                            &compiler->nvrtc, message, sizeof message);
        compiler->loaded =
            complete &&
            compiler->nvrtc.nvrtcVersion(&compiler->major, &compiler->minor) == NVRTC_SUCCESS;
        if (complete && !compiler->loaded)
            snprintf(message, sizeof message, "nvrtcVersion fails");
    }
    const bool loaded = compiler->loaded;
    pthread_mutex_unlock(&compiler->lock);
    if (loaded)
        return WEIR_OK;
    return weir_host_fail(
        module->host, WEIR_ERROR_UNSUPPORTED,
        "install NVRTC, a part of the CUDA toolkit whose version the driver supports; "
        "or give OpenCL C, which the driver compiles",
        "CUDA C++ is compiled with NVRTC, which cannot be loaded: %s", message);
}

static weir_status refuse(const struct build *build, const char *call, nvrtcResult code,
                          const char *what)
{
    struct weir_error detail = {.status = WEIR_ERROR_BUILD, .native_code = (int)code};
    snprintf(detail.native_call, sizeof detail.native_call, "%s", call);
    snprintf(detail.native_name, sizeof detail.native_name, "%s",
             build->nvrtc->nvrtcGetErrorString(code));
    return weir_host_report(build->device->module->host, &detail, "%s", what);
}

// The device's architecture, or else the newest older one that NVRTC knows.
static weir_status choose_target(struct build *build)
{
    const unsigned wanted = build->device->architecture;
    const struct weir_host *host = build->device->module->host;
    unsigned best = 0;
    int count = 0;
    nvrtcResult code = build->nvrtc->nvrtcGetNumSupportedArchs(&count);
    if (code != NVRTC_SUCCESS || count <= 0)
        return refuse(build, "nvrtcGetNumSupportedArchs", code, "NVRTC knows no architectures");
    int *known = host->allocate((size_t)count * sizeof *known);
    if (!known)
        return weir_host_no_memory(host, "a program");
    code = build->nvrtc->nvrtcGetSupportedArchs(known);
    for (int i = 0; i < count && code == NVRTC_SUCCESS; i++) {
        if ((unsigned)known[i] <= wanted && (unsigned)known[i] > best)
            best = (unsigned)known[i];
    }
    host->release(known);
    if (best == 0)
        return weir_host_fail(host, WEIR_ERROR_UNSUPPORTED,
                              "install an older NVRTC beside the driver, or build the kernels with "
                              "weir_kernels",
                              "NVRTC %d.%d compiles for no architecture up to sm_%u",
                              build->device->module->compiler.major,
                              build->device->module->compiler.minor, wanted);
    build->cubin = best == wanted;
    snprintf(build->target, sizeof build->target, "--gpu-architecture=%s_%u",
             build->cubin ? "sm" : "compute", best);
    return WEIR_OK;
}

// An architecture of the user's, such as sm_90a, takes the place of the device's.
static weir_status need_target(struct build *build, const char *options)
{
    static const char *const names[] = {"--gpu-architecture", "-arch"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *own = strstr(options, names[i]);
        if (!own)
            continue;
        build->cubin = strncmp(own + strlen(names[i]) + 1, "sm_", 3) == 0;
        return WEIR_OK;
    }
    return choose_target(build);
}

static weir_status make_options(struct build *build, const char *options)
{
    const struct weir_host *host = build->device->module->host;
    if (build->target[0])
        build->list[build->count++] = build->target;
    build->options = host->allocate(strlen(options) + 1);
    if (!build->options)
        return weir_host_no_memory(host, "the options of a program");
    memcpy(build->options, options, strlen(options) + 1);

    char *rest = NULL;
    for (char *option = strtok_r(build->options, " \t\n", &rest); option;
         option = strtok_r(NULL, " \t\n", &rest)) {
        if (build->count == OPTION_LIMIT)
            return weir_host_fail(host, WEIR_ERROR_INVALID, "put definitions into the source",
                                  "a program has at most %d options", OPTION_LIMIT - 1);
        build->list[build->count++] = option;
    }
    return WEIR_OK;
}

static weir_status report_build(const struct build *build, nvrtcResult code, const char *options)
{
    const struct weir_host *host = build->device->module->host;
    size_t size = 0;
    char *log = NULL;
    if (build->nvrtc->nvrtcGetProgramLogSize(build->program, &size) == NVRTC_SUCCESS)
        log = host->allocate(size + 1);
    if (log && build->nvrtc->nvrtcGetProgramLog(build->program, log) != NVRTC_SUCCESS)
        log[0] = '\0';
    const struct weir_kit_build report = {
        .source = "cuda",
        .log = log,
        .options = options,
        .sought = "error",
        .failed = code != NVRTC_SUCCESS,
        .call = "nvrtcCompileProgram",
        .code = (int)code,
        .name = build->nvrtc->nvrtcGetErrorString(code),
    };
    weir_status status = weir_kit_build_report(host, &report);
    host->release(log);
    return status;
}

// PTX ends in a zero byte, which `*out_size` counts.
static weir_status take_image(const struct build *build, void **out_image, size_t *out_size)
{
    const struct nvrtc_symbols *nvrtc = build->nvrtc;
    size_t size = 0;
    nvrtcResult code = build->cubin ? nvrtc->nvrtcGetCUBINSize(build->program, &size)
                                    : nvrtc->nvrtcGetPTXSize(build->program, &size);
    char *image = code == NVRTC_SUCCESS && size > 0 ? malloc(size) : NULL;
    if (code == NVRTC_SUCCESS && !image)
        return weir_host_no_memory(build->device->module->host, "the image of a program");
    if (code == NVRTC_SUCCESS)
        code = build->cubin ? nvrtc->nvrtcGetCUBIN(build->program, image)
                            : nvrtc->nvrtcGetPTX(build->program, image);
    if (code != NVRTC_SUCCESS) {
        free(image);
        return refuse(build, build->cubin ? "nvrtcGetCUBIN" : "nvrtcGetPTX", code,
                      "NVRTC does not hand over what it compiled");
    }
    *out_image = image;
    *out_size = size;
    return WEIR_OK;
}

static weir_status compile(struct build *build, const char *options, void **out_image,
                           size_t *out_size)
{
    nvrtcResult code =
        build->nvrtc->nvrtcCreateProgram(&build->program, build->text, "source", 0, NULL, NULL);
    if (code != NVRTC_SUCCESS)
        return refuse(build, "nvrtcCreateProgram", code, "NVRTC does not take the source");
    code = build->nvrtc->nvrtcCompileProgram(build->program, build->count, build->list);
    weir_status status = report_build(build, code, options);
    if (status == WEIR_OK)
        status = take_image(build, out_image, out_size);
    build->nvrtc->nvrtcDestroyProgram(&build->program);
    return status;
}

// The key of the cache is everything that the image depends on. Files that the source includes may change, and are in
// no key.
static weir_status compile_cached(struct build *build, const char *options, void **out_image,
                                  size_t *out_size)
{
    const struct cu_module *module = build->device->module;
    const bool includes = strstr(options, "-I") || strstr(options, "-include");
    char *key = NULL;
    if (module->cache && !includes)
        key = weir_kit_format(module->host, "%s\n%s\n%s\nNVRTC %d.%d\n%s\n%s", WEIR_VERSION_STRING,
                              module->driver, build->target, module->compiler.major,
                              module->compiler.minor, options, build->text);
    weir_status status = WEIR_OK;
    if (!key || !weir_kit_cache_read(module->cache, key, out_image, out_size)) {
        status = compile(build, options, out_image, out_size);
        if (status == WEIR_OK && key)
            weir_kit_cache_write(module->cache, key, *out_image, *out_size);
    }
    module->host->release(key);
    return status;
}

static weir_status compile_cuda(struct cu_device *device, const struct weir_program_params *params,
                                struct cu_compiled *out)
{
    struct cu_module *module = device->module;
    const char *source = params->cuda_source;
    struct build build = {
        .device = device,
        .nvrtc = &module->compiler.nvrtc,
        .text = source,
    };
    size_t size;

    char *options =
        weir_kit_format(module->host, "%s%s%s", params->cuda_options ? params->cuda_options : "",
                        params->exact ? " -fmad=false" : "",
                        params->fast ? " --use_fast_math" : "");
    if (!options)
        return weir_host_no_memory(module->host, "the options of a program");
    weir_status status = need_compiler(module);
    if (status == WEIR_OK)
        status = need_target(&build, options);
    if (status == WEIR_OK)
        status = make_options(&build, options);
    if (status == WEIR_OK)
        status = compile_cached(&build, options, &out->image, &size);
    if (status == WEIR_OK)
        status = weir_kit_signatures_read(module->host, source, &out->signatures);
    module->host->release(options);
    module->host->release(build.options);
    return status;
}

// The driver's OpenCL compiler. Nothing is kept between two calls: a program is compiled once and then cached.

#define DRIVERS_OPENCL "libnvidia-opencl.so.1"
#define DEVICE_LIMIT 64

// One compilation.
struct cl_build {
    const struct cu_device *device;
    struct ocl_symbols api;
    char driver[128]; // its version
    struct clc_build clc;
    char *entry; // of the cache: clc_entry(), whose binary is PTX
    size_t size;
};

// Only NVIDIA's devices have a compute capability.
static bool has_capability(const struct ocl_symbols *cl, cl_device_id device, unsigned wanted)
{
    cl_uint major = 0;
    cl_uint minor = 0;
    return cl->clGetDeviceInfo(device, OCL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, sizeof major, &major,
                               NULL) == CL_SUCCESS &&
           cl->clGetDeviceInfo(device, OCL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV, sizeof minor, &minor,
                               NULL) == CL_SUCCESS &&
           10 * major + minor == wanted;
}

// Opens the library and finds a device with the compute capability of CUDA's, for which PTX is
// the same.
//
// Errors: WEIR_ERROR_UNSUPPORTED without the library, or if no device is found.
static weir_status find_compiler(struct cl_build *build)
{
    const struct cu_device *device = build->device;
    const struct ocl_symbols *cl = &build->api;
    const struct weir_host *host = device->module->host;
    char message[512];
    cl_platform_id platform;
    cl_device_id devices[DEVICE_LIMIT];
    cl_uint count = 0;
    if (!ocl_symbols_load(DRIVERS_OPENCL, &build->api, message, sizeof message))
        return weir_host_fail(
            host, WEIR_ERROR_UNSUPPORTED,
            "install the OpenCL part of the NVIDIA driver (on Debian libnvidia-opencl1 or "
            "nvidia-opencl-icd); in a container set NVIDIA_DRIVER_CAPABILITIES=compute,utility; or "
            "build the kernels with weir_kernels; let CUDA and OpenCL see the same devices",
            "OpenCL C is compiled by the driver's " DRIVERS_OPENCL ", which cannot be used: %s",
            message);
    if (cl->clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        cl->clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, DEVICE_LIMIT, devices, &count) !=
            CL_SUCCESS)
        count = 0;
    for (cl_uint i = 0; i < count && i < DEVICE_LIMIT; i++) {
        if (!has_capability(cl, devices[i], device->architecture))
            continue;
        build->clc.cl = cl;
        build->clc.device = devices[i];
        cl->clGetDeviceInfo(devices[i], CL_DRIVER_VERSION, sizeof build->driver - 1, build->driver,
                            NULL);
        return WEIR_OK;
    }
    return weir_host_fail(host, WEIR_ERROR_UNSUPPORTED,
                          "let CUDA and OpenCL see the same devices, or build the kernels with "
                          "weir_kernels",
                          "the driver's OpenCL has no device of compute capability %u.%u like '%s'",
                          device->architecture / 10, device->architecture % 10,
                          device->listed->info.name);
}

// OpenCL C.
//
// The driver's OpenCL compiler gives PTX, which is kept in the cache with the signatures of its kernels, and rewritten
// for CUDA's loader.

// The context is there only while a program is compiled. The driver keeps most of the device memory
// that it took (docs/kernels.md), which is why programs are looked for in the cache first.
static weir_status compile_cl(struct cl_build *build)
{
    cl_int code;
    build->clc.context = build->api.clCreateContext(NULL, 1, &build->clc.device, NULL, NULL, &code);
    if (!build->clc.context)
        return clc_native_error(build->device->module->host, "clCreateContext", code,
                                "the driver's OpenCL does not start");
    weir_status status = clc_build(&build->clc);
    if (status == WEIR_OK) {
        code = clc_entry(&build->clc, &build->entry, &build->size);
        if (code != CL_SUCCESS)
            status = clc_native_error(build->device->module->host, "clGetProgramInfo", code,
                                      "the driver does not return the PTX");
    }
    clc_drop(&build->clc);
    build->api.clReleaseContext(build->clc.context);
    return status;
}

// The key contains everything on which the image depends.
static weir_status compile_cl_cached(struct cl_build *build)
{
    const struct cu_module *module = build->device->module;
    weir_status status = WEIR_OK;
    void *entry;
    char *key = weir_kit_format(module->host, "entry\n%s\n%s\nOpenCL %s\nsm_%u\n%s\n%s\n%s",
                                WEIR_VERSION_STRING, module->driver, build->driver,
                                build->device->architecture, build->clc.options, build->clc.before,
                                build->clc.text);
    if (!key)
        return weir_host_no_memory(module->host, "a program");
    if (weir_kit_cache_read(module->cache, key, &entry, &build->size)) {
        build->entry = entry;
    } else {
        status = compile_cl(build);
        if (status == WEIR_OK)
            weir_kit_cache_write(module->cache, key, build->entry, build->size);
    }
    module->host->release(key);
    return status;
}

// Makes the entry's PTX fit for CUDA's loader.
static weir_status rewrite(const struct cl_build *build, void **out_ptx)
{
    const char *ptx = build->entry + strlen(build->entry) + 1;
    const size_t most = build->size - (size_t)(ptx - build->entry);
    char message[400] = "";
    *out_ptx = weir_ptx_for_cuda(ptx, strnlen(ptx, most), message, sizeof message);
    if (*out_ptx)
        return WEIR_OK;
    return weir_host_fail(build->device->module->host, WEIR_ERROR_BUILD,
                          "build the kernels with weir_kernels",
                          "PTX of the driver's OpenCL compiler (%s) is not understood: %s",
                          build->driver, message);
}

static weir_status compile_opencl(const struct cu_device *device,
                                  const struct weir_program_params *params, struct cu_compiled *out)
{
    const char *source = params->source;
    const struct weir_host *host = device->module->host;
    struct cl_build build = {
        .device = device,
        .clc = {.host = host, .name = "cuda", .text = source, .after = "", .signatures = true},
    };
    TRY(find_compiler(&build));
    const bool barrier = strstr(source, WEIR_KIT_GRID_BARRIER);
    char *all =
        clc_options(host, params->options ? params->options : "", params->fast ? CLC_FAST : "");
    char *before = weir_kit_format(host, "%s%s%s", barrier ? weir_library_grid_barrier : "",
                                   params->exact ? CLC_EXACT : "", CLC_BEFORE_SOURCE);
    build.clc.before = before;
    build.clc.options = all;
    weir_status status = all && before ? compile_cl_cached(&build)
                                       : weir_host_no_memory(host, "the options of a program");
    host->release(before);
    host->release(all);
    if (status == WEIR_OK)
        status = rewrite(&build, &out->image);
    if (status == WEIR_OK)
        status = weir_kit_signatures_read(host, build.entry, &out->signatures);
    free(build.entry);
    return status;
}

weir_status cu_compile(struct cu_device *device, const struct weir_program_params *params,
                       struct cu_compiled *out)
{
    return params->cuda_source ? compile_cuda(device, params, out)
                               : compile_opencl(device, params, out);
}
