// The functions of OpenCL, in one table that is filled from the loader, or from a driver itself.
#ifndef WEIR_BACKENDS_CLC_SYMBOLS_H
#define WEIR_BACKENDS_CLC_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>

// cl_nv_device_attribute_query, which Debian's headers declare in part.
#define OCL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV 0x4000
#define OCL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV 0x4001
#define OCL_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT_NV 0x4007

// X(since, name). `since` is the OpenCL version times ten; functions newer than 1.2 may be missing from a loader, and
// may only be called for a device of that version.
#define OCL_SYMBOLS(X)                        \
    X(10, clGetPlatformIDs)                   \
    X(10, clGetPlatformInfo)                  \
    X(10, clGetDeviceIDs)                     \
    X(10, clGetDeviceInfo)                    \
    X(10, clCreateContext)                    \
    X(10, clReleaseContext)                   \
    X(10, clCreateCommandQueue)               \
    X(20, clCreateCommandQueueWithProperties) \
    X(10, clRetainCommandQueue)               \
    X(10, clReleaseCommandQueue)              \
    X(10, clGetCommandQueueInfo)              \
    X(10, clFlush)                            \
    X(10, clFinish)                           \
    X(10, clCreateBuffer)                     \
    X(11, clCreateSubBuffer)                  \
    X(10, clGetMemObjectInfo)                 \
    X(10, clRetainMemObject)                  \
    X(10, clReleaseMemObject)                 \
    X(20, clSVMAlloc)                         \
    X(20, clSVMFree)                          \
    X(10, clEnqueueMapBuffer)                 \
    X(10, clEnqueueUnmapMemObject)            \
    X(10, clEnqueueReadBuffer)                \
    X(11, clEnqueueReadBufferRect)            \
    X(10, clEnqueueWriteBuffer)               \
    X(11, clEnqueueWriteBufferRect)           \
    X(10, clEnqueueCopyBuffer)                \
    X(11, clEnqueueCopyBufferRect)            \
    X(12, clEnqueueFillBuffer)                \
    X(20, clEnqueueSVMMemcpy)                 \
    X(20, clEnqueueSVMMemFill)                \
    X(10, clEnqueueNDRangeKernel)             \
    X(12, clEnqueueMarkerWithWaitList)        \
    X(12, clEnqueueBarrierWithWaitList)       \
    X(10, clWaitForEvents)                    \
    X(10, clGetEventInfo)                     \
    X(10, clGetEventProfilingInfo)            \
    X(10, clRetainEvent)                      \
    X(10, clReleaseEvent)                     \
    X(10, clCreateProgramWithSource)          \
    X(10, clCreateProgramWithBinary)          \
    X(10, clBuildProgram)                     \
    X(10, clGetProgramInfo)                   \
    X(10, clGetProgramBuildInfo)              \
    X(10, clReleaseProgram)                   \
    X(10, clCreateKernel)                     \
    X(10, clCreateKernelsInProgram)           \
    X(10, clReleaseKernel)                    \
    X(10, clGetKernelInfo)                    \
    X(12, clGetKernelArgInfo)                 \
    X(10, clGetKernelWorkGroupInfo)           \
    X(10, clSetKernelArg)                     \
    X(20, clSetKernelArgSVMPointer)

struct ocl_symbols {
#define OCL_SYMBOL(since, name) __typeof__(&(name)) name;
    OCL_SYMBOLS(OCL_SYMBOL)
#undef OCL_SYMBOL
};

// Opens `library`, the loader or a driver, and fills `*symbols`. The library is never closed, because
// drivers start threads and install exit handlers.
//
// Errors: false, with a sentence in `message`.
bool ocl_symbols_load(const char *library, struct ocl_symbols *symbols, char *message,
                      size_t message_size);

// An installable client driver (cl_khr_icd) that is opened without the loader: it lists its platforms, and its functions
// are in the table to which each of its objects points.

typedef cl_int (*ocl_get_platforms)(cl_uint, cl_platform_id *, cl_uint *);

// The driver's clIcdGetPlatformIDsKHR(), which has the parameters of clGetPlatformIDs(); NULL: the
// library, a handle of dlopen(), is no such driver.
ocl_get_platforms ocl_driver_platforms(void *library);

// Fills `*symbols` with the functions of the platform and its objects; those that are newer than the platform's
// version are NULL.
//
// Errors: false if the platform tells no version, or has not OpenCL 1.2.
bool ocl_driver_symbols(cl_platform_id platform, struct ocl_symbols *symbols);

// "OpenCL 3.0 and the vendor's text" is 30; 12 if the text begins otherwise.
uint32_t ocl_version(const char *text);

#endif
