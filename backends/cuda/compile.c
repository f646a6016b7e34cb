// CUDA C++ at run time. NVRTC compiles it to a cubin for the device, or to PTX if NVRTC is older
// than the device or the options ask for it. NVRTC is a large library that most programs do not
// need, so it is opened at the first use.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/kit/symbols.h>
#include <weir/module/error.h>

#include "backends/cuda/cu.h"
#include "backends/cuda/nvrtc_api.h"

#define OPTION_LIMIT 64

struct cu_compiler {
    pthread_mutex_t lock;
    bool loaded;
    struct nvrtc_symbols nvrtc;
    int major;
    int minor;
};

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

static const struct weir_kit_symbol table[] = {
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

struct cu_compiler *cu_compiler_create(const struct weir_host *host)
{
    struct cu_compiler *compiler = host->allocate(sizeof *compiler);
    if (compiler)
        pthread_mutex_init(&compiler->lock, NULL);
    return compiler;
}

void cu_compiler_destroy(struct cu_compiler *compiler, const struct weir_host *host)
{
    if (!compiler)
        return;
    pthread_mutex_destroy(&compiler->lock);
    host->release(compiler);
}

static bool load(struct cu_compiler *compiler, int driver, char *message, size_t message_size)
{
    const bool recent = driver >= 13000;
    void *handle = weir_kit_library_open(recent ? for_new_drivers : for_old_drivers, recent ? 4 : 2,
                                         message, message_size);
    if (!handle || !weir_kit_symbols_load(handle, "libnvrtc", table, sizeof table / sizeof *table,
                                          &compiler->nvrtc, message, message_size))
        return false;
    if (compiler->nvrtc.nvrtcVersion(&compiler->major, &compiler->minor) == NVRTC_SUCCESS)
        return true;
    snprintf(message, message_size, "nvrtcVersion fails");
    return false;
}

static weir_status need_compiler(struct cu_module *module)
{
    struct cu_compiler *compiler = module->compiler;
    char message[512] = "";
    pthread_mutex_lock(&compiler->lock);
    if (!compiler->loaded)
        compiler->loaded = load(compiler, module->version, message, sizeof message);
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
                              build->device->module->compiler->major,
                              build->device->module->compiler->minor, wanted);
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

static char *read_log(const struct build *build)
{
    size_t size = 0;
    if (build->nvrtc->nvrtcGetProgramLogSize(build->program, &size) != NVRTC_SUCCESS)
        return NULL;
    char *log = build->device->module->host->allocate(size + 1);
    if (log && build->nvrtc->nvrtcGetProgramLog(build->program, log) != NVRTC_SUCCESS)
        log[0] = '\0';
    return log;
}

static weir_status report_build(const struct build *build, nvrtcResult code, const char *options)
{
    const struct weir_host *host = build->device->module->host;
    char *log = read_log(build);
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

// The key: everything that the image depends on.
static char *make_key(const struct build *build, const char *options)
{
    const struct cu_module *module = build->device->module;
    return weir_kit_format(module->host, "%s\n%s\n%s\nNVRTC %d.%d\n%s\n%s", WEIR_VERSION_STRING,
                           module->driver, build->target, module->compiler->major,
                           module->compiler->minor, options, build->text);
}

// Files that the source includes may change, and are in no key.
static bool includes(const char *options)
{
    return strstr(options, "-I") || strstr(options, "-include") || strstr(options, "--include");
}

static weir_status compile_cached(struct build *build, const char *options, void **out_image,
                                  size_t *out_size)
{
    const struct cu_module *module = build->device->module;
    char *key = module->cache && !includes(options) ? make_key(build, options) : NULL;
    weir_status status = WEIR_OK;
    if (!key || !weir_kit_cache_read(module->cache, key, out_image, out_size)) {
        status = compile(build, options, out_image, out_size);
        if (status == WEIR_OK && key)
            weir_kit_cache_write(module->cache, key, *out_image, *out_size);
    }
    module->host->release(key);
    return status;
}

weir_status cu_compile_cuda(struct cu_device *device, const char *source, const char *options,
                            struct cu_compiled *out)
{
    struct cu_module *module = device->module;
    struct build build = {
        .device = device,
        .nvrtc = &module->compiler->nvrtc,
        .text = source,
    };
    size_t size;

    weir_status status = need_compiler(module);
    if (status == WEIR_OK)
        status = need_target(&build, options);
    if (status == WEIR_OK)
        status = make_options(&build, options);
    if (status == WEIR_OK)
        status = compile_cached(&build, options, &out->memory, &size);
    out->image = out->memory;
    if (status == WEIR_OK)
        status = weir_kit_signatures_read(module->host, source, &out->signatures);
    module->host->release(build.options);
    return status;
}
