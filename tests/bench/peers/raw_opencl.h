// OpenCL for peers that use it directly: opened at run time, declared here. Names, types
// and values are Khronos's.
#ifndef WEIR_TESTS_BENCH_PEERS_RAW_OPENCL_H
#define WEIR_TESTS_BENCH_PEERS_RAW_OPENCL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_mem *cl_mem;
typedef struct _cl_program *cl_program;
typedef struct _cl_kernel *cl_kernel;
typedef struct _cl_event *cl_event;

#define CL_DEVICE_TYPE_ALL 0xffffffffu
#define CL_DEVICE_NAME 0x102b
#define CL_MEM_READ_WRITE 1u
#define CL_MEM_ALLOC_HOST_PTR 16u
#define CL_MAP_READ 1u
#define CL_MAP_WRITE 2u

// X(result, name, parameters)
#define RAW_OPENCL_CALLS(X)                                                                        \
    X(int32_t, clGetPlatformIDs, (uint32_t, cl_platform_id *, uint32_t *))                         \
    X(int32_t, clGetDeviceIDs, (cl_platform_id, uint64_t, uint32_t, cl_device_id *, uint32_t *))   \
    X(int32_t, clGetDeviceInfo, (cl_device_id, uint32_t, size_t, void *, size_t *))                \
    X(cl_context, clCreateContext,                                                                 \
      (const intptr_t *, uint32_t, const cl_device_id *, void (*)(void), void *, int32_t *))       \
    X(int32_t, clReleaseContext, (cl_context))                                                     \
    X(cl_command_queue, clCreateCommandQueue, (cl_context, cl_device_id, uint64_t, int32_t *))     \
    X(int32_t, clReleaseCommandQueue, (cl_command_queue))                                          \
    X(cl_mem, clCreateBuffer, (cl_context, uint64_t, size_t, void *, int32_t *))                   \
    X(int32_t, clReleaseMemObject, (cl_mem))                                                       \
    X(void *, clEnqueueMapBuffer,                                                                  \
      (cl_command_queue, cl_mem, uint32_t, uint64_t, size_t, size_t, uint32_t, const cl_event *,   \
       cl_event *, int32_t *))                                                                     \
    X(int32_t, clEnqueueUnmapMemObject,                                                            \
      (cl_command_queue, cl_mem, void *, uint32_t, const cl_event *, cl_event *))                  \
    X(cl_program, clCreateProgramWithSource,                                                       \
      (cl_context, uint32_t, const char **, const size_t *, int32_t *))                            \
    X(int32_t, clBuildProgram,                                                                     \
      (cl_program, uint32_t, const cl_device_id *, const char *, void (*)(void), void *))          \
    X(int32_t, clReleaseProgram, (cl_program))                                                     \
    X(cl_kernel, clCreateKernel, (cl_program, const char *, int32_t *))                            \
    X(int32_t, clReleaseKernel, (cl_kernel))                                                       \
    X(int32_t, clSetKernelArg, (cl_kernel, uint32_t, size_t, const void *))                        \
    X(int32_t, clEnqueueNDRangeKernel,                                                             \
      (cl_command_queue, cl_kernel, uint32_t, const size_t *, const size_t *, const size_t *,      \
       uint32_t, const cl_event *, cl_event *))                                                    \
    X(int32_t, clEnqueueWriteBuffer,                                                               \
      (cl_command_queue, cl_mem, uint32_t, size_t, size_t, const void *, uint32_t,                 \
       const cl_event *, cl_event *))                                                              \
    X(int32_t, clEnqueueReadBuffer,                                                                \
      (cl_command_queue, cl_mem, uint32_t, size_t, size_t, void *, uint32_t, const cl_event *,     \
       cl_event *))                                                                                \
    X(int32_t, clEnqueueFillBuffer,                                                                \
      (cl_command_queue, cl_mem, const void *, size_t, size_t, size_t, uint32_t, const cl_event *, \
       cl_event *))                                                                                \
    X(int32_t, clEnqueueMarkerWithWaitList,                                                        \
      (cl_command_queue, uint32_t, const cl_event *, cl_event *))                                  \
    X(int32_t, clEnqueueBarrierWithWaitList,                                                       \
      (cl_command_queue, uint32_t, const cl_event *, cl_event *))                                  \
    X(int32_t, clReleaseEvent, (cl_event))                                                         \
    X(int32_t, clFlush, (cl_command_queue))                                                        \
    X(int32_t, clFinish, (cl_command_queue))

struct raw_opencl {
#define RAW_OPENCL_CALL(result, name, parameters) result(*name) parameters;
    RAW_OPENCL_CALLS(RAW_OPENCL_CALL)
#undef RAW_OPENCL_CALL
    cl_device_id device;
    cl_context context;
    cl_program program; // the conformance kernels, from the source that Weir builds
};

// Opens the loader and the first device of the first platform that has one, makes a
// context, and builds the conformance kernels.
//
// Errors: false after peer_skip() or peer_fail(); raw_opencl_close() frees what was
// created.
bool raw_opencl_open(struct raw_opencl *cl);
void raw_opencl_close(struct raw_opencl *cl);

// False after peer_fail() with the call and the error's number, unless `code` is 0.
bool raw_opencl_fine(int32_t code, const char *call);
#define RAW_OPENCL(cl, name, ...) raw_opencl_fine((cl)->name(__VA_ARGS__), #name)

#endif
