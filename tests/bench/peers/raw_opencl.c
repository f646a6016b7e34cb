// Opening OpenCL. The loader stays open until the process ends.
#include "tests/bench/peers/raw_opencl.h"

#include <dlfcn.h>
#include <string.h>

#include "kernels/conformance/conformance.h"
#include "tests/bench/peers/peer.h"

enum {
    PLATFORMS_MAX = 16
};

bool raw_opencl_fine(int32_t code, const char *call)
{
    return code == 0 || peer_fail("%s failed with %d", call, code);
}

static bool load(struct raw_opencl *cl)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return peer_skip("there is no OpenCL: %s", dlerror());
#define RAW_OPENCL_CALL(result, name, parameters) \
    *(void **)&cl->name = dlsym(library, #name);  \
    if (!cl->name)                                \
        return peer_skip("the OpenCL loader lacks %s", #name);
    RAW_OPENCL_CALLS(RAW_OPENCL_CALL)
#undef RAW_OPENCL_CALL
    return true;
}

static bool find_device(struct raw_opencl *cl)
{
    cl_platform_id platforms[PLATFORMS_MAX];
    char name[256] = "";
    uint32_t count = 0, devices = 0;
    if (cl->clGetPlatformIDs(PLATFORMS_MAX, platforms, &count) != 0)
        count = 0;
    for (uint32_t i = 0; i < count && i < PLATFORMS_MAX && !cl->device; i++)
        if (cl->clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, &cl->device, &devices) != 0)
            cl->device = NULL;
    if (!cl->device)
        return peer_skip("the OpenCL loader lists no device");
    if (!RAW_OPENCL(cl, clGetDeviceInfo, cl->device, CL_DEVICE_NAME, sizeof name - 1, name, NULL))
        return false;
    peer_device(name);
    return true;
}

static const char *source(void)
{
    for (uint32_t i = 0; i < conformance_kernels.image_count; i++)
        if (weir_image_is(&conformance_kernels.images[i], WEIR_IMAGE_OPENCL_C))
            return conformance_kernels.images[i].data;
    return "";
}

bool raw_opencl_open(struct raw_opencl *cl)
{
    const char *text = source();
    int32_t code;
    if (!load(cl) || !find_device(cl))
        return false;
    cl->context = cl->clCreateContext(NULL, 1, &cl->device, NULL, NULL, &code);
    if (!raw_opencl_fine(code, "clCreateContext"))
        return false;
    cl->program = cl->clCreateProgramWithSource(cl->context, 1, &text, NULL, &code);
    return raw_opencl_fine(code, "clCreateProgramWithSource") &&
           RAW_OPENCL(cl, clBuildProgram, cl->program, 1, &cl->device, "-cl-std=CL1.2", NULL, NULL);
}

void raw_opencl_close(struct raw_opencl *cl)
{
    if (cl->program)
        cl->clReleaseProgram(cl->program);
    if (cl->context)
        cl->clReleaseContext(cl->context);
    memset(cl, 0, sizeof *cl);
}
