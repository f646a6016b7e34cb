// Opening the module: the loader library, its platforms, and their devices, which form one list.
// Everything that a machine may lack is detected here, and each case has its own message.

#include "backends/opencl/opencl.h"
#include "base/text.h"

// In the order of the key table.
enum key {
    KEY_LIBRARY,
    KEY_DRIVER,
    KEY_PLATFORM,
    KEY_CACHE,
    KEY_CACHE_DIR,
    KEY_BUILD_OPTIONS
};

static const struct weir_key keys[] = {
    [KEY_LIBRARY] =
        WEIR_TEXT_KEY("library", "libOpenCL.so.1",
                      "The OpenCL loader: a name that the dynamic linker finds, or a path."),
    [KEY_DRIVER] =
        WEIR_TEXT_KEY("driver", "",
                      "An OpenCL driver, as `library`: it is opened itself where the loader is "
                      "missing, or knows no driver."),
    [KEY_PLATFORM] = WEIR_TEXT_KEY(
        "platform", "",
        "Part of a platform's name, ignoring case: only its devices are listed; empty: "
        "those of all platforms."),
    [KEY_CACHE] = WEIR_BOOLEAN_KEY(
        "cache", "1",
        "Keep the binaries of built programs on disk, 256 MiB at most: the first build of "
        "a program takes longer, every later one is nearly free. PoCL keeps its own."),
    [KEY_CACHE_DIR] =
        WEIR_TEXT_KEY("cache_dir", "",
                      "The folder for them, in which a folder `opencl` is made; empty: `weir` in "
                      "XDG_CACHE_HOME, or in HOME/.cache."),
    [KEY_BUILD_OPTIONS] =
        WEIR_TEXT_KEY("build_options", "",
                      "Further options for the OpenCL compiler, for every program."),
};

void ocl_platform_text(const struct ocl_symbols *cl, cl_platform_id platform, cl_platform_info what,
                       char *text, size_t size)
{
    char whole[512] = "";
    if (cl->clGetPlatformInfo(platform, what, sizeof whole - 1, whole, NULL) != CL_SUCCESS)
        whole[0] = '\0';
    snprintf(text, size, "%s", whole);
}

static bool usable(const struct ocl_symbols *cl, cl_device_id device)
{
    cl_device_type type = 0;
    cl_bool available = CL_FALSE;
    cl_bool compiler = CL_FALSE;
    cl->clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    cl->clGetDeviceInfo(device, CL_DEVICE_AVAILABLE, sizeof available, &available, NULL);
    cl->clGetDeviceInfo(device, CL_DEVICE_COMPILER_AVAILABLE, sizeof compiler, &compiler, NULL);
    return available && compiler &&
           (type & (CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR));
}

static void describe(const struct ocl_symbols *cl, struct ocl_listed *listed)
{
    struct weir_device_info *info = &listed->info;
    info->struct_size = sizeof *info;
    ocl_device_text(cl, listed->device, CL_DEVICE_NAME, info->name, sizeof info->name);
    ocl_device_text(cl, listed->device, CL_DRIVER_VERSION, info->driver, sizeof info->driver);
    ocl_platform_text(cl, listed->platform, CL_PLATFORM_NAME, info->platform,
                      sizeof info->platform);
    cl->clGetDeviceInfo(listed->device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof info->memory_bytes,
                        &info->memory_bytes, NULL);
}

// What a search has found, for the message if no device is usable.
struct search {
    char platforms[300]; // names, separated by commas
    bool matched;
};

// Appends the usable devices of one platform to the list.
static weir_status list_platform(struct ocl_module *module, cl_platform_id platform)
{
    const struct ocl_symbols *cl = &module->cl;
    cl_device_id devices[64];
    cl_uint count = 0;
    cl_int code = cl->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 64, devices, &count);
    if (code != CL_SUCCESS && code != CL_DEVICE_NOT_FOUND) {
        char text[128];
        snprintf(text, sizeof text,
                 "a platform's devices cannot be listed: clGetDeviceIDs returned %s",
                 clc_native_name(code));
        module->host->log(WEIR_LOG_WARNING, "opencl", text);
    }
    if (code != CL_SUCCESS || count == 0)
        return WEIR_OK; // other platforms may have devices
    count = count < 64 ? count : 64;

    struct ocl_listed *longer =
        module->host->allocate((module->listed_count + count) * sizeof *longer);
    if (!longer)
        return weir_host_no_memory(module->host, "the list of devices");
    if (module->listed)
        memcpy(longer, module->listed, module->listed_count * sizeof *longer);
    module->host->release(module->listed);
    module->listed = longer;

    for (cl_uint i = 0; i < count; i++) {
        if (!usable(cl, devices[i]))
            continue;
        struct ocl_listed *listed = &longer[module->listed_count++];
        *listed = (struct ocl_listed){.platform = platform, .device = devices[i]};
        describe(cl, listed);
    }
    return WEIR_OK;
}

static weir_status list_platforms(struct ocl_module *module, const char *wanted,
                                  struct search *search)
{
    const struct ocl_symbols *cl = &module->cl;
    cl_platform_id platforms[32];
    cl_uint count = 0;
    cl_int code = cl->clGetPlatformIDs(32, platforms, &count);
    if (code != CL_SUCCESS && code != CL_PLATFORM_NOT_FOUND_KHR)
        return clc_native_error(module->host, "clGetPlatformIDs", code,
                                "the OpenCL platforms cannot be listed");

    for (cl_uint i = 0; i < count && i < 32; i++) {
        char name[128];
        ocl_platform_text(cl, platforms[i], CL_PLATFORM_NAME, name, sizeof name);
        const size_t used = strlen(search->platforms);
        snprintf(search->platforms + used, sizeof search->platforms - used, "%s'%s'",
                 used > 0 ? ", " : "", name);
        if (!weir_text_contains(name, wanted))
            continue;
        if (!search->matched)
            ocl_platform_text(cl, platforms[i], CL_PLATFORM_VERSION, module->driver,
                              sizeof module->driver);
        search->matched = true;
        TRY(list_platform(module, platforms[i]));
    }
    return WEIR_OK;
}

static weir_status explain_nothing(const struct ocl_module *module, const char *library,
                                   const char *wanted, const struct search *search)
{
    const struct weir_host *host = module->host;
    if (!search->platforms[0])
        return weir_host_fail(host, WEIR_ERROR_NO_DEVICE,
                              "install an OpenCL driver; for a CPU that is PoCL (Debian: "
                              "pocl-opencl-icd), and /etc/OpenCL/vendors names each driver",
                              "%s works, but no OpenCL driver is registered with it", library);
    if (!search->matched)
        return weir_host_fail(host, WEIR_ERROR_NO_DEVICE,
                              "correct or remove `platform` in [opencl]",
                              "no OpenCL platform has '%s' in its name; there is %s", wanted,
                              search->platforms);
    if (strstr(search->platforms, "Portable Computing Language"))
        return weir_host_fail(
            host, WEIR_ERROR_NO_DEVICE,
            "set POCL_CACHE_DIR to a folder that can be written, and unset "
            "POCL_DEVICES or set it to names that this PoCL knows (pthread, basic; from PoCL 6 on "
            "cpu, cpu-minimal)",
            "the OpenCL platforms have no usable device (%s); PoCL hides its own when "
            "its cache folder cannot be written or POCL_DEVICES is wrong",
            search->platforms);
    return weir_host_fail(
        host, WEIR_ERROR_NO_DEVICE,
        "check that the device is plugged in, permitted to this user and not hidden "
        "by an environment variable; clinfo shows what the driver sees",
        "the OpenCL platforms have no usable device (%s)", search->platforms);
}

static void release(struct ocl_module *module)
{
    weir_kit_cache_close(&module->cache);
    module->host->release(module->listed);
    module->host->release(module);
}

// The loader, else the driver where one is named; `*out_library` is what was opened.
static weir_status open_library(struct ocl_module *module, const char *loader, const char *driver,
                                const char **out_library)
{
    const char *kind = "loader";
    char message[512];
    cl_uint count = 0;
    *out_library = loader;
    bool found = ocl_symbols_load(loader, &module->cl, message, sizeof message);
    if (driver[0] &&
        !(found && module->cl.clGetPlatformIDs(0, NULL, &count) == CL_SUCCESS && count > 0)) {
        kind = "driver";
        *out_library = driver;
        found = ocl_symbols_load(driver, &module->cl, message, sizeof message);
    }
    if (found)
        return WEIR_OK;
    return weir_host_fail(module->host, WEIR_ERROR_MODULE,
                          "install an OpenCL loader (Debian: ocl-icd-libopencl1), or name one with "
                          "`library`, or a driver with `driver`, in [opencl]",
                          "the OpenCL %s cannot be used: %s", kind, message);
}

static weir_status start(struct ocl_module *module, const struct weir_setting *const *settings)
{
    const char *library;
    const char *wanted = settings[KEY_PLATFORM]->text;
    struct search search = {.matched = false};

    TRY(open_library(module, settings[KEY_LIBRARY]->text, settings[KEY_DRIVER]->text, &library));
    TRY(list_platforms(module, wanted, &search));
    if (module->listed_count == 0)
        TRY(explain_nothing(module, library, wanted, &search));
    module->build_options = settings[KEY_BUILD_OPTIONS]->text;
    if (settings[KEY_CACHE]->integer)
        module->cache = weir_kit_cache_open(module->host, "opencl", settings[KEY_CACHE_DIR]->text);
    return WEIR_OK;
}

// A loader and drivers make themselves ready in their first calls, and PoCL 3.1 ends in SIGSEGV where two
// threads do that at once: runtimes of several threads list their devices one after another.
static const struct weir_lock_kind start_kind = {"the lock of OpenCL's start", 0};
static struct weir_lock start_lock = WEIR_LOCK_INITIALIZER(&start_kind);

weir_status ocl_open(struct weir_link *link, const struct weir_setting *const *settings,
                     void **out_state)
{
    struct ocl_module *module = link->host->allocate(sizeof *module);
    if (!module)
        return weir_host_no_memory(link->host, "the OpenCL backend");
    module->host = link->host;
    weir_lock_take(&start_lock);
    weir_status status = start(module, settings);
    weir_lock_release(&start_lock);
    if (status < 0) {
        release(module);
        return status;
    }
    *out_state = module;
    return WEIR_OK;
}

void ocl_close(const struct weir_link *link)
{
    release(ocl_module_of(link));
}

size_t ocl_device_count(const struct weir_link *link)
{
    return ocl_module_of(link)->listed_count;
}

weir_status ocl_device_describe(const struct weir_link *link, size_t index,
                                struct weir_device_info *out_info)
{
    WEIR_WRITE(out_info, &ocl_module_of(link)->listed[index].info);
    return WEIR_OK;
}

static const char *ocl_driver_version(const struct weir_link *link)
{
    return ocl_module_of(link)->driver;
}

#define ENTRY(slot) .slot = ocl_##slot,
static const struct weir_module_ops ops = {OCL_SLOTS(ENTRY)};

static const char *const about[] = {
    "summary",
    "Runs on GPUs and CPUs through the OpenCL drivers of the system.",
    NULL,
};

WEIR_MODULE(WEIR_MODULE_BACKEND, "opencl", WEIR_VERSION_STRING, WEIR_MODULE_OPS(ops), .keys = keys,
            .key_count = sizeof keys / sizeof *keys, .driver_version = ocl_driver_version,
            .about = about)
