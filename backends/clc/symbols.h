// The functions of OpenCL, in one table that is filled from the loader, or from a driver itself.
#ifndef WEIR_BACKENDS_CLC_SYMBOLS_H
#define WEIR_BACKENDS_CLC_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/clc/cl_api.h"

// X(since, place, result, name, parameters). `since` is the OpenCL version times ten; functions newer than
// 1.2 may be missing from a loader, and may only be called for a device of that version. `place` is that in the table
// of a driver that is opened without the loader.
#define OCL_SYMBOLS(X)                                                                             \
    X(10, 0, cl_int, clGetPlatformIDs, (cl_uint, cl_platform_id *, cl_uint *))                     \
    X(10, 1, cl_int, clGetPlatformInfo,                                                            \
      (cl_platform_id, cl_platform_info, size_t, void *, size_t *))                                \
    X(10, 2, cl_int, clGetDeviceIDs,                                                               \
      (cl_platform_id, cl_device_type, cl_uint, cl_device_id *, cl_uint *))                        \
    X(10, 3, cl_int, clGetDeviceInfo, (cl_device_id, cl_device_info, size_t, void *, size_t *))    \
    X(10, 4, cl_context, clCreateContext,                                                          \
      (const cl_context_properties *, cl_uint, const cl_device_id *,                               \
       void (*)(const char *, const void *, size_t, void *), void *, cl_int *))                    \
    X(10, 7, cl_int, clReleaseContext, (cl_context))                                               \
    X(10, 9, cl_command_queue, clCreateCommandQueue,                                               \
      (cl_context, cl_device_id, cl_command_queue_properties, cl_int *))                           \
    X(20, 123, cl_command_queue, clCreateCommandQueueWithProperties,                               \
      (cl_context, cl_device_id, const cl_queue_properties *, cl_int *))                           \
    X(10, 10, cl_int, clRetainCommandQueue, (cl_command_queue))                                    \
    X(10, 11, cl_int, clReleaseCommandQueue, (cl_command_queue))                                   \
    X(10, 12, cl_int, clGetCommandQueueInfo,                                                       \
      (cl_command_queue, cl_command_queue_info, size_t, void *, size_t *))                         \
    X(10, 46, cl_int, clFlush, (cl_command_queue))                                                 \
    X(10, 47, cl_int, clFinish, (cl_command_queue))                                                \
    X(10, 14, cl_mem, clCreateBuffer, (cl_context, cl_mem_flags, size_t, void *, cl_int *))        \
    X(11, 82, cl_mem, clCreateSubBuffer,                                                           \
      (cl_mem, cl_mem_flags, cl_buffer_create_type, const void *, cl_int *))                       \
    X(10, 20, cl_int, clGetMemObjectInfo, (cl_mem, cl_mem_info, size_t, void *, size_t *))         \
    X(10, 17, cl_int, clRetainMemObject, (cl_mem))                                                 \
    X(10, 18, cl_int, clReleaseMemObject, (cl_mem))                                                \
    X(20, 126, void *, clSVMAlloc, (cl_context, cl_svm_mem_flags, size_t, cl_uint))                \
    X(20, 127, void, clSVMFree, (cl_context, void *))                                              \
    X(10, 56, void *, clEnqueueMapBuffer,                                                          \
      (cl_command_queue, cl_mem, cl_bool, cl_map_flags, size_t, size_t, cl_uint, const cl_event *, \
       cl_event *, cl_int *))                                                                      \
    X(10, 58, cl_int, clEnqueueUnmapMemObject,                                                     \
      (cl_command_queue, cl_mem, void *, cl_uint, const cl_event *, cl_event *))                   \
    X(10, 48, cl_int, clEnqueueReadBuffer,                                                         \
      (cl_command_queue, cl_mem, cl_bool, size_t, size_t, void *, cl_uint, const cl_event *,       \
       cl_event *))                                                                                \
    X(11, 86, cl_int, clEnqueueReadBufferRect,                                                     \
      (cl_command_queue, cl_mem, cl_bool, const size_t *, const size_t *, const size_t *, size_t,  \
       size_t, size_t, size_t, void *, cl_uint, const cl_event *, cl_event *))                     \
    X(10, 49, cl_int, clEnqueueWriteBuffer,                                                        \
      (cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void *, cl_uint, const cl_event *, \
       cl_event *))                                                                                \
    X(11, 87, cl_int, clEnqueueWriteBufferRect,                                                    \
      (cl_command_queue, cl_mem, cl_bool, const size_t *, const size_t *, const size_t *, size_t,  \
       size_t, size_t, size_t, const void *, cl_uint, const cl_event *, cl_event *))               \
    X(10, 50, cl_int, clEnqueueCopyBuffer,                                                         \
      (cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint, const cl_event *,        \
       cl_event *))                                                                                \
    X(11, 88, cl_int, clEnqueueCopyBufferRect,                                                     \
      (cl_command_queue, cl_mem, cl_mem, const size_t *, const size_t *, const size_t *, size_t,   \
       size_t, size_t, size_t, cl_uint, const cl_event *, cl_event *))                             \
    X(12, 102, cl_int, clEnqueueFillBuffer,                                                        \
      (cl_command_queue, cl_mem, const void *, size_t, size_t, size_t, cl_uint, const cl_event *,  \
       cl_event *))                                                                                \
    X(20, 129, cl_int, clEnqueueSVMMemcpy,                                                         \
      (cl_command_queue, cl_bool, void *, const void *, size_t, cl_uint, const cl_event *,         \
       cl_event *))                                                                                \
    X(20, 130, cl_int, clEnqueueSVMMemFill,                                                        \
      (cl_command_queue, void *, const void *, size_t, size_t, cl_uint, const cl_event *,          \
       cl_event *))                                                                                \
    X(10, 59, cl_int, clEnqueueNDRangeKernel,                                                      \
      (cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *,       \
       cl_uint, const cl_event *, cl_event *))                                                     \
    X(12, 105, cl_int, clEnqueueMarkerWithWaitList,                                                \
      (cl_command_queue, cl_uint, const cl_event *, cl_event *))                                   \
    X(12, 106, cl_int, clEnqueueBarrierWithWaitList,                                               \
      (cl_command_queue, cl_uint, const cl_event *, cl_event *))                                   \
    X(10, 41, cl_int, clWaitForEvents, (cl_uint, const cl_event *))                                \
    X(10, 42, cl_int, clGetEventInfo, (cl_event, cl_event_info, size_t, void *, size_t *))         \
    X(10, 45, cl_int, clGetEventProfilingInfo,                                                     \
      (cl_event, cl_profiling_info, size_t, void *, size_t *))                                     \
    X(10, 43, cl_int, clRetainEvent, (cl_event))                                                   \
    X(10, 44, cl_int, clReleaseEvent, (cl_event))                                                  \
    X(10, 26, cl_program, clCreateProgramWithSource,                                               \
      (cl_context, cl_uint, const char **, const size_t *, cl_int *))                              \
    X(10, 27, cl_program, clCreateProgramWithBinary,                                               \
      (cl_context, cl_uint, const cl_device_id *, const size_t *, const unsigned char **,          \
       cl_int *, cl_int *))                                                                        \
    X(10, 30, cl_int, clBuildProgram,                                                              \
      (cl_program, cl_uint, const cl_device_id *, const char *, void (*)(cl_program, void *),      \
       void *))                                                                                    \
    X(10, 32, cl_int, clGetProgramInfo, (cl_program, cl_program_info, size_t, void *, size_t *))   \
    X(10, 33, cl_int, clGetProgramBuildInfo,                                                       \
      (cl_program, cl_device_id, cl_program_build_info, size_t, void *, size_t *))                 \
    X(10, 29, cl_int, clReleaseProgram, (cl_program))                                              \
    X(10, 34, cl_kernel, clCreateKernel, (cl_program, const char *, cl_int *))                     \
    X(10, 35, cl_int, clCreateKernelsInProgram, (cl_program, cl_uint, cl_kernel *, cl_uint *))     \
    X(10, 37, cl_int, clReleaseKernel, (cl_kernel))                                                \
    X(10, 39, cl_int, clGetKernelInfo, (cl_kernel, cl_kernel_info, size_t, void *, size_t *))      \
    X(12, 101, cl_int, clGetKernelArgInfo,                                                         \
      (cl_kernel, cl_uint, cl_kernel_arg_info, size_t, void *, size_t *))                          \
    X(10, 40, cl_int, clGetKernelWorkGroupInfo,                                                    \
      (cl_kernel, cl_device_id, cl_kernel_work_group_info, size_t, void *, size_t *))              \
    X(10, 38, cl_int, clSetKernelArg, (cl_kernel, cl_uint, size_t, const void *))                  \
    X(20, 134, cl_int, clSetKernelArgSVMPointer, (cl_kernel, cl_uint, const void *))

struct ocl_symbols {
#define OCL_SYMBOL(since, place, result, name, parameters) result(*name) parameters;
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
