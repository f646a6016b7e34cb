// The driver's own compiler of OpenCL C, in libnvidia-opencl.so.1. That library is an installable
// client driver: its functions are in the table to which each of its objects points, in the order
// of cl_khr_icd. symbols.c compares that order with <CL/cl_icd.h> where that is installed.
#ifndef WEIR_BACKENDS_CUDA_DRIVER_CL_H
#define WEIR_BACKENDS_CUDA_DRIVER_CL_H

#include "backends/clc/clc.h"
#include "backends/clc/icd.h"

// X(index in the table, result, name, parameters).
#define CU_CL_SYMBOLS(X)                                                                    \
    X(2, cl_int, clGetDeviceIDs,                                                            \
      (cl_platform_id, cl_device_type, cl_uint, cl_device_id *, cl_uint *))                 \
    X(3, cl_int, clGetDeviceInfo, (cl_device_id, cl_device_info, size_t, void *, size_t *)) \
    X(4, cl_context, clCreateContext,                                                       \
      (const cl_context_properties *, cl_uint, const cl_device_id *,                        \
       void (*)(const char *, const void *, size_t, void *), void *, cl_int *))             \
    X(7, cl_int, clReleaseContext, (cl_context))                                            \
    X(32, cl_int, clGetProgramInfo, (cl_program, cl_program_info, size_t, void *, size_t *))

// The places of the functions of CLC_SYMBOLS. X(index, name).
#define CU_CL_PLACES(X)              \
    X(26, clCreateProgramWithSource) \
    X(29, clReleaseProgram)          \
    X(30, clBuildProgram)            \
    X(33, clGetProgramBuildInfo)     \
    X(34, clCreateKernel)            \
    X(35, clCreateKernelsInProgram)  \
    X(37, clReleaseKernel)           \
    X(39, clGetKernelInfo)           \
    X(40, clGetKernelWorkGroupInfo)  \
    X(101, clGetKernelArgInfo)

struct cu_cl {
#define CU_CL_SYMBOL(index, result, name, parameters) result(*name) parameters;
    CU_CL_SYMBOLS(CU_CL_SYMBOL)
#undef CU_CL_SYMBOL
    struct clc_symbols compiler;
    cl_device_id device;
    char driver[128]; // its version
};

#endif
