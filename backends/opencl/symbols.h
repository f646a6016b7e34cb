// The functions of libOpenCL, in one table that is filled through dlsym().
#ifndef WEIR_BACKENDS_OPENCL_SYMBOLS_H
#define WEIR_BACKENDS_OPENCL_SYMBOLS_H

#include <stdbool.h>

#include "backends/clc/cl_api.h"

// X(since, result, name, parameters). `since` is the OpenCL version times ten; functions newer than
// 1.2 may be missing from a loader, and may only be called for a device of that version.
#define OCL_SYMBOLS(X)                                                                             \
    X(10, cl_int, clGetPlatformIDs, (cl_uint, cl_platform_id *, cl_uint *))                        \
    X(10, cl_int, clGetPlatformInfo, (cl_platform_id, cl_platform_info, size_t, void *, size_t *)) \
    X(10, cl_int, clGetDeviceIDs,                                                                  \
      (cl_platform_id, cl_device_type, cl_uint, cl_device_id *, cl_uint *))                        \
    X(10, cl_int, clGetDeviceInfo, (cl_device_id, cl_device_info, size_t, void *, size_t *))       \
    X(10, cl_context, clCreateContext,                                                             \
      (const cl_context_properties *, cl_uint, const cl_device_id *,                               \
       void (*)(const char *, const void *, size_t, void *), void *, cl_int *))                    \
    X(10, cl_int, clReleaseContext, (cl_context))                                                  \
    X(10, cl_command_queue, clCreateCommandQueue,                                                  \
      (cl_context, cl_device_id, cl_command_queue_properties, cl_int *))                           \
    X(20, cl_command_queue, clCreateCommandQueueWithProperties,                                    \
      (cl_context, cl_device_id, const cl_queue_properties *, cl_int *))                           \
    X(10, cl_int, clRetainCommandQueue, (cl_command_queue))                                        \
    X(10, cl_int, clReleaseCommandQueue, (cl_command_queue))                                       \
    X(10, cl_int, clGetCommandQueueInfo,                                                           \
      (cl_command_queue, cl_command_queue_info, size_t, void *, size_t *))                         \
    X(10, cl_int, clFlush, (cl_command_queue))                                                     \
    X(10, cl_int, clFinish, (cl_command_queue))                                                    \
    X(10, cl_mem, clCreateBuffer, (cl_context, cl_mem_flags, size_t, void *, cl_int *))            \
    X(11, cl_mem, clCreateSubBuffer,                                                               \
      (cl_mem, cl_mem_flags, cl_buffer_create_type, const void *, cl_int *))                       \
    X(10, cl_int, clGetMemObjectInfo, (cl_mem, cl_mem_info, size_t, void *, size_t *))             \
    X(10, cl_int, clRetainMemObject, (cl_mem))                                                     \
    X(10, cl_int, clReleaseMemObject, (cl_mem))                                                    \
    X(20, void *, clSVMAlloc, (cl_context, cl_svm_mem_flags, size_t, cl_uint))                     \
    X(20, void, clSVMFree, (cl_context, void *))                                                   \
    X(10, void *, clEnqueueMapBuffer,                                                              \
      (cl_command_queue, cl_mem, cl_bool, cl_map_flags, size_t, size_t, cl_uint, const cl_event *, \
       cl_event *, cl_int *))                                                                      \
    X(10, cl_int, clEnqueueUnmapMemObject,                                                         \
      (cl_command_queue, cl_mem, void *, cl_uint, const cl_event *, cl_event *))                   \
    X(10, cl_int, clEnqueueReadBuffer,                                                             \
      (cl_command_queue, cl_mem, cl_bool, size_t, size_t, void *, cl_uint, const cl_event *,       \
       cl_event *))                                                                                \
    X(11, cl_int, clEnqueueReadBufferRect,                                                         \
      (cl_command_queue, cl_mem, cl_bool, const size_t *, const size_t *, const size_t *, size_t,  \
       size_t, size_t, size_t, void *, cl_uint, const cl_event *, cl_event *))                     \
    X(10, cl_int, clEnqueueWriteBuffer,                                                            \
      (cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void *, cl_uint, const cl_event *, \
       cl_event *))                                                                                \
    X(11, cl_int, clEnqueueWriteBufferRect,                                                        \
      (cl_command_queue, cl_mem, cl_bool, const size_t *, const size_t *, const size_t *, size_t,  \
       size_t, size_t, size_t, const void *, cl_uint, const cl_event *, cl_event *))               \
    X(10, cl_int, clEnqueueCopyBuffer,                                                             \
      (cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint, const cl_event *,        \
       cl_event *))                                                                                \
    X(11, cl_int, clEnqueueCopyBufferRect,                                                         \
      (cl_command_queue, cl_mem, cl_mem, const size_t *, const size_t *, const size_t *, size_t,   \
       size_t, size_t, size_t, cl_uint, const cl_event *, cl_event *))                             \
    X(12, cl_int, clEnqueueFillBuffer,                                                             \
      (cl_command_queue, cl_mem, const void *, size_t, size_t, size_t, cl_uint, const cl_event *,  \
       cl_event *))                                                                                \
    X(20, cl_int, clEnqueueSVMMemcpy,                                                              \
      (cl_command_queue, cl_bool, void *, const void *, size_t, cl_uint, const cl_event *,         \
       cl_event *))                                                                                \
    X(20, cl_int, clEnqueueSVMMemFill,                                                             \
      (cl_command_queue, void *, const void *, size_t, size_t, cl_uint, const cl_event *,          \
       cl_event *))                                                                                \
    X(10, cl_int, clEnqueueNDRangeKernel,                                                          \
      (cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *,       \
       cl_uint, const cl_event *, cl_event *))                                                     \
    X(12, cl_int, clEnqueueMarkerWithWaitList,                                                     \
      (cl_command_queue, cl_uint, const cl_event *, cl_event *))                                   \
    X(12, cl_int, clEnqueueBarrierWithWaitList,                                                    \
      (cl_command_queue, cl_uint, const cl_event *, cl_event *))                                   \
    X(10, cl_int, clWaitForEvents, (cl_uint, const cl_event *))                                    \
    X(10, cl_int, clGetEventInfo, (cl_event, cl_event_info, size_t, void *, size_t *))             \
    X(10, cl_int, clGetEventProfilingInfo,                                                         \
      (cl_event, cl_profiling_info, size_t, void *, size_t *))                                     \
    X(10, cl_int, clRetainEvent, (cl_event))                                                       \
    X(10, cl_int, clReleaseEvent, (cl_event))                                                      \
    X(10, cl_program, clCreateProgramWithSource,                                                   \
      (cl_context, cl_uint, const char **, const size_t *, cl_int *))                              \
    X(10, cl_program, clCreateProgramWithBinary,                                                   \
      (cl_context, cl_uint, const cl_device_id *, const size_t *, const unsigned char **,          \
       cl_int *, cl_int *))                                                                        \
    X(10, cl_int, clBuildProgram,                                                                  \
      (cl_program, cl_uint, const cl_device_id *, const char *, void (*)(cl_program, void *),      \
       void *))                                                                                    \
    X(10, cl_int, clGetProgramInfo, (cl_program, cl_program_info, size_t, void *, size_t *))       \
    X(10, cl_int, clGetProgramBuildInfo,                                                           \
      (cl_program, cl_device_id, cl_program_build_info, size_t, void *, size_t *))                 \
    X(10, cl_int, clReleaseProgram, (cl_program))                                                  \
    X(10, cl_kernel, clCreateKernel, (cl_program, const char *, cl_int *))                         \
    X(10, cl_int, clCreateKernelsInProgram, (cl_program, cl_uint, cl_kernel *, cl_uint *))         \
    X(10, cl_int, clReleaseKernel, (cl_kernel))                                                    \
    X(10, cl_int, clGetKernelInfo, (cl_kernel, cl_kernel_info, size_t, void *, size_t *))          \
    X(12, cl_int, clGetKernelArgInfo,                                                              \
      (cl_kernel, cl_uint, cl_kernel_arg_info, size_t, void *, size_t *))                          \
    X(10, cl_int, clGetKernelWorkGroupInfo,                                                        \
      (cl_kernel, cl_device_id, cl_kernel_work_group_info, size_t, void *, size_t *))              \
    X(10, cl_int, clSetKernelArg, (cl_kernel, cl_uint, size_t, const void *))                      \
    X(20, cl_int, clSetKernelArgSVMPointer, (cl_kernel, cl_uint, const void *))

// The place of each, but for clGetPlatformIDs, in the table of a driver that is opened without the
// loader. X(place, name). error.c compares them with <CL/cl_icd.h> where that is installed.
#define OCL_PLACES(X)                          \
    X(1, clGetPlatformInfo)                    \
    X(2, clGetDeviceIDs)                       \
    X(3, clGetDeviceInfo)                      \
    X(4, clCreateContext)                      \
    X(7, clReleaseContext)                     \
    X(9, clCreateCommandQueue)                 \
    X(10, clRetainCommandQueue)                \
    X(11, clReleaseCommandQueue)               \
    X(12, clGetCommandQueueInfo)               \
    X(14, clCreateBuffer)                      \
    X(17, clRetainMemObject)                   \
    X(18, clReleaseMemObject)                  \
    X(20, clGetMemObjectInfo)                  \
    X(26, clCreateProgramWithSource)           \
    X(27, clCreateProgramWithBinary)           \
    X(29, clReleaseProgram)                    \
    X(30, clBuildProgram)                      \
    X(32, clGetProgramInfo)                    \
    X(33, clGetProgramBuildInfo)               \
    X(34, clCreateKernel)                      \
    X(35, clCreateKernelsInProgram)            \
    X(37, clReleaseKernel)                     \
    X(38, clSetKernelArg)                      \
    X(39, clGetKernelInfo)                     \
    X(40, clGetKernelWorkGroupInfo)            \
    X(41, clWaitForEvents)                     \
    X(42, clGetEventInfo)                      \
    X(43, clRetainEvent)                       \
    X(44, clReleaseEvent)                      \
    X(45, clGetEventProfilingInfo)             \
    X(46, clFlush)                             \
    X(47, clFinish)                            \
    X(48, clEnqueueReadBuffer)                 \
    X(49, clEnqueueWriteBuffer)                \
    X(50, clEnqueueCopyBuffer)                 \
    X(56, clEnqueueMapBuffer)                  \
    X(58, clEnqueueUnmapMemObject)             \
    X(59, clEnqueueNDRangeKernel)              \
    X(82, clCreateSubBuffer)                   \
    X(86, clEnqueueReadBufferRect)             \
    X(87, clEnqueueWriteBufferRect)            \
    X(88, clEnqueueCopyBufferRect)             \
    X(101, clGetKernelArgInfo)                 \
    X(102, clEnqueueFillBuffer)                \
    X(105, clEnqueueMarkerWithWaitList)        \
    X(106, clEnqueueBarrierWithWaitList)       \
    X(123, clCreateCommandQueueWithProperties) \
    X(126, clSVMAlloc)                         \
    X(127, clSVMFree)                          \
    X(129, clEnqueueSVMMemcpy)                 \
    X(130, clEnqueueSVMMemFill)                \
    X(134, clSetKernelArgSVMPointer)

struct ocl_symbols {
#define OCL_SYMBOL(since, result, name, parameters) result(*name) parameters;
    OCL_SYMBOLS(OCL_SYMBOL)
#undef OCL_SYMBOL
};

// Opens `library`, the loader or a driver, and fills `*symbols`. The library is never closed, because
// drivers start threads and install exit handlers.
//
// Errors: false, with a sentence in `message`.
bool ocl_symbols_load(const char *library, struct ocl_symbols *symbols, char *message,
                      size_t message_size);

#endif
