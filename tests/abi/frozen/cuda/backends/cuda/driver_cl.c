// See the header. Nothing is kept between two calls: a program is compiled once and then cached.
#include "tests/abi/frozen/cuda/backends/cuda/driver_cl.h"

#include <dlfcn.h>
#include <string.h>
#include "tests/abi/frozen/cuda/api/weir/kit/symbols.h"

#include "tests/abi/frozen/cuda/backends/cuda/cu.h"
#include "tests/abi/frozen/cuda/base/text.h"

#define PLATFORM_LIMIT 16
#define DEVICE_LIMIT 64

typedef cl_int (*get_platforms)(cl_uint, cl_platform_id *, cl_uint *);
typedef void (*any_function)(void);

// The beginning of every object of an installable client driver.
struct _cl_platform_id {
    const any_function *dispatch;
};

// ISO C has no conversion from an object pointer to a function pointer.
static get_platforms look_up(void *library, const char *name)
{
    get_platforms function;
    void *address = dlsym(library, name);
    memcpy(&function, &address, sizeof function);
    return function;
}

static get_platforms open_driver(char *message, size_t size)
{
    static const char name[] = "libnvidia-opencl.so.1";
    const char *names[] = {name};
    void *library = weir_kit_library_open(names, 1, message, size);
    void *(*extension)(const char *) = NULL;
    get_platforms found = NULL;
    if (!library)
        return NULL;
    void *address = dlsym(library, "clGetExtensionFunctionAddress");
    memcpy(&extension, &address, sizeof extension);
    if (extension) {
        address = extension("clIcdGetPlatformIDsKHR");
        memcpy(&found, &address, sizeof found);
    }
    if (!found)
        found = look_up(library, "clIcdGetPlatformIDsKHR");
    if (!found)
        snprintf(message, size, "%s has no clIcdGetPlatformIDsKHR", name);
    return found;
}

static get_platforms open_loader(void)
{
    static const char *const names[] = {"libOpenCL.so.1"};
    char unused[256];
    void *library = weir_kit_library_open(names, 1, unused, sizeof unused);
    return library ? look_up(library, "clGetPlatformIDs") : NULL;
}

static void read_table(cl_platform_id platform, struct cu_cl *cl)
{
    const any_function *table = platform->dispatch;
#define TAKE(index, result, name, parameters) \
    memcpy(&cl->name, &table[index], sizeof(any_function));
    CU_CL_SYMBOLS(TAKE)
#undef TAKE
#define TAKE(index, name) memcpy(&cl->compiler.name, &table[index], sizeof(any_function));
    CU_CL_PLACES(TAKE)
#undef TAKE
}

// Only NVIDIA's devices have a compute capability.
static unsigned capability(const struct cu_cl *cl, cl_device_id device)
{
    cl_uint major = 0;
    cl_uint minor = 0;
    if (cl->clGetDeviceInfo(device, OCL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, sizeof major, &major,
                            NULL) != CL_SUCCESS ||
        cl->clGetDeviceInfo(device, OCL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV, sizeof minor, &minor,
                            NULL) != CL_SUCCESS)
        return 0;
    return 10 * major + minor;
}

static bool find_in_platform(cl_platform_id platform, unsigned wanted, struct cu_cl *cl)
{
    cl_device_id devices[DEVICE_LIMIT];
    cl_uint count = 0;
    read_table(platform, cl);
    if (cl->clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, DEVICE_LIMIT, devices, &count) !=
        CL_SUCCESS)
        return false;
    for (cl_uint i = 0; i < count && i < DEVICE_LIMIT; i++) {
        if (capability(cl, devices[i]) != wanted)
            continue;
        cl->device = devices[i];
        cl->clGetDeviceInfo(devices[i], CL_DRIVER_VERSION, sizeof cl->driver - 1, cl->driver, NULL);
        return true;
    }
    return false;
}

static bool find_in(get_platforms get, unsigned wanted, struct cu_cl *cl)
{
    cl_platform_id platforms[PLATFORM_LIMIT];
    cl_uint count = 0;
    bool found = false;
    if (!get || get(PLATFORM_LIMIT, platforms, &count) != CL_SUCCESS)
        return false;
    for (cl_uint i = 0; i < count && i < PLATFORM_LIMIT && !found; i++)
        found = find_in_platform(platforms[i], wanted, cl);
    return found;
}

weir_status cu_cl_find(const struct cu_device *device, struct cu_cl *out)
{
    const struct weir_host *host = device->module->host;
    char message[512] = "";
    *out = (struct cu_cl){.device = NULL};
    const get_platforms driver = open_driver(message, sizeof message);
    if (find_in(driver, device->architecture, out) ||
        find_in(driver ? NULL : open_loader(), device->architecture, out))
        return WEIR_OK;
    if (!driver)
        return weir_host_fail(
            host, WEIR_ERROR_UNSUPPORTED,
            "install the OpenCL part of the NVIDIA driver (on Debian libnvidia-opencl1 or "
            "nvidia-opencl-icd); in a container set NVIDIA_DRIVER_CAPABILITIES=compute,utility; or "
            "build the kernels with weir_kernels",
            "OpenCL C is compiled by the driver's libnvidia-opencl.so.1, which cannot be loaded: "
            "%s",
            message);
    return weir_host_fail(host, WEIR_ERROR_UNSUPPORTED,
                          "let CUDA and OpenCL see the same devices, or build the kernels with "
                          "weir_kernels",
                          "the driver's OpenCL has no device of compute capability %u.%u like '%s'",
                          device->architecture / 10, device->architecture % 10,
                          device->listed->info.name);
}
