// Opening the driver. It stays open until the process ends.
#include "tests/bench/peers/raw_cuda.h"

#include <dlfcn.h>
#include <string.h>

#include "kernels/conformance/conformance.h"
#include "tests/bench/peers/peer.h"

bool raw_cuda_fine(struct raw_cuda *cu, CUresult result, const char *call)
{
    const char *name = NULL;
    if (result == 0)
        return true;
    if (cu->cuGetErrorName)
        cu->cuGetErrorName(result, &name);
    return peer_fail("%s failed with %s (%d)", call, name ? name : "an unknown error", result);
}

static bool load(struct raw_cuda *cu)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return peer_skip("there is no CUDA driver: %s", dlerror());
#define RAW_CUDA_CALL(name, symbol, parameters)                                              \
    *(void **)&cu->name = dlsym(library, symbol);                                            \
    if (!cu->name)                                                                           \
        return peer_skip("the CUDA driver lacks %s, so it is older than this program wants", \
                         symbol);
    RAW_CUDA_CALLS(RAW_CUDA_CALL)
#undef RAW_CUDA_CALL
    return true;
}

// A cubin of the device's architecture, else the newest PTX that it takes.
static const struct weir_image *image_for(unsigned architecture)
{
    const struct weir_image *found = NULL;
    for (uint32_t i = 0; i < conformance_kernels.image_count; i++) {
        const struct weir_image *image = &conformance_kernels.images[i];
        if (weir_image_is(image, WEIR_IMAGE_CUBIN) && weir_image_sm(image) == architecture)
            return image;
        if (weir_image_is(image, WEIR_IMAGE_PTX) && weir_image_sm(image) <= architecture &&
            (!found || weir_image_sm(found) < weir_image_sm(image)))
            found = image;
    }
    return found;
}

bool raw_cuda_load_kernels(struct raw_cuda *cu)
{
    int major = 0, minor = 0;
    if (!RAW_CUDA(cu, cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                  cu->device) ||
        !RAW_CUDA(cu, cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                  cu->device))
        return false;
    const struct weir_image *image = image_for((unsigned)(10 * major + minor));
    if (!image)
        return peer_skip("this program has no CUDA kernels for sm_%d%d: it was built without a "
                         "CUDA toolkit",
                         major, minor);
    return RAW_CUDA(cu, cuModuleLoadData, &cu->module, image->data);
}

bool raw_cuda_init(struct raw_cuda *cu)
{
    if (!load(cu))
        return false;
    const CUresult result = cu->cuInit(0);
    return result == 0 ||
           peer_skip("the CUDA driver cannot be used: cuInit failed with %d", result);
}

bool raw_cuda_open_device(struct raw_cuda *cu)
{
    char name[256] = "";
    if (!RAW_CUDA(cu, cuDeviceGet, &cu->device, 0) ||
        !RAW_CUDA(cu, cuDeviceGetName, name, sizeof name, cu->device) ||
        !RAW_CUDA(cu, cuDevicePrimaryCtxRetain, &cu->context, cu->device) ||
        !RAW_CUDA(cu, cuCtxSetCurrent, cu->context))
        return false;
    peer_device(name);
    return true;
}

bool raw_cuda_open(struct raw_cuda *cu)
{
    return raw_cuda_init(cu) && raw_cuda_open_device(cu) && raw_cuda_load_kernels(cu);
}

void raw_cuda_close(struct raw_cuda *cu)
{
    if (cu->module)
        cu->cuModuleUnload(cu->module);
    if (cu->context)
        cu->cuDevicePrimaryCtxRelease(cu->device);
    memset(cu, 0, sizeof *cu);
}
