// Controls of the libnvidia-opencl.so.1 of this folder, which stands for the OpenCL compiler of
// NVIDIA's driver. As that one it has no exported OpenCL functions but
// clGetExtensionFunctionAddress: the others are in the table at which each object begins, and which ends
// with the functions of OpenCL 1.2. It finds
// the kernels that a text defines, refuses those for which twins.c has no function, and writes PTX
// that has their parameters and none of their work, annotated as the driver's.
//
// In that driver every structure has 16 bytes, and a program in which some kernel has no
// parameters does not build with -cl-kernel-arg-info.
//
// In the process that loaded the library, a test may look up `weir_test_nvidia_opencl` in it.
#ifndef WEIR_TESTS_SUPPORT_LIBNVIDIA_OPENCL_CONTROL_H
#define WEIR_TESTS_SUPPORT_LIBNVIDIA_OPENCL_CONTROL_H

#include <stddef.h>

#define WEIR_TEST_NVIDIA_OPENCL_SYMBOL "weir_test_nvidia_opencl"

struct weir_test_nvidia_opencl {
    // Makes the n-th call of function `name` from now on, from 1, fail with CL_OUT_OF_RESOURCES.
    // NULL: nothing fails.
    void (*fail)(const char *name, long n);
    // How often the failure happened since `fail`.
    long (*struck)(void);
    // The name of function `index` of those that may be called; NULL past the last.
    const char *(*name)(size_t index);
    long (*calls)(const char *name);
    // Contexts, programs and kernels that exist.
    long (*live)(void);
    // The compute capability of the device from now on, as 90.
    void (*set_architecture)(unsigned architecture);
    // The driver's version; "580.0".
    void (*set_driver)(const char *version);
    // With 1 the PTX uses a pointer to local memory in a way that the driver's does not.
    void (*set_strange)(int strange);
    // The text and the options of the last build.
    const char *(*text)(void);
    const char *(*options)(void);
};

#endif
