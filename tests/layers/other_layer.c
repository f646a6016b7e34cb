// Another layer: it counts launches, and tells how many there were when the process ends.
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl_layer.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

static cl_icd_dispatch table;
static const cl_icd_dispatch *next;
static atomic_uint launches;

static cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                 const size_t *offset, const size_t *global, const size_t *local,
                                 cl_uint wait_count, const cl_event *waits, cl_event *event)
{
    atomic_fetch_add(&launches, 1);
    return next->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local,
                                        wait_count, waits, event);
}

__attribute__((destructor)) static void tell(void)
{
    fprintf(stderr, "the other layer: %u launches\n", atomic_load(&launches));
}

EXPORTED cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void *value,
                                           size_t *out_size)
{
    const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    if (name != CL_LAYER_API_VERSION || (value && size < sizeof version))
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, &version, sizeof version);
    if (out_size)
        *out_size = sizeof version;
    return CL_SUCCESS;
}

EXPORTED cl_int CL_API_CALL clInitLayer(cl_uint count, const cl_icd_dispatch *driver,
                                        cl_uint *out_count, const cl_icd_dispatch **out_table)
{
    const cl_uint own = sizeof table / sizeof(void *);
    if (count < own)
        return CL_INVALID_VALUE;
    next = driver;
    table = *driver;
    table.clEnqueueNDRangeKernel = launch;
    *out_count = own;
    *out_table = &table;
    return CL_SUCCESS;
}
