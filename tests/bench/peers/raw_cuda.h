// The driver API for peers that use it directly: opened at run time, so that they build
// without a toolkit. Names, types and values are NVIDIA's.
#ifndef WEIR_TESTS_BENCH_PEERS_RAW_CUDA_H
#define WEIR_TESTS_BENCH_PEERS_RAW_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

enum {
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
};

// X(member, symbol, parameters): the symbol is the function's name with the version that
// <cuda.h> gives it.
#define RAW_CUDA_CALLS(X)                                                                          \
    X(cuGetErrorName, "cuGetErrorName", (CUresult, const char **))                                 \
    X(cuInit, "cuInit", (unsigned))                                                                \
    X(cuDeviceGet, "cuDeviceGet", (CUdevice *, int))                                               \
    X(cuDeviceGetName, "cuDeviceGetName", (char *, int, CUdevice))                                 \
    X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *, int, CUdevice))                        \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))               \
    X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice))                       \
    X(cuCtxSetCurrent, "cuCtxSetCurrent", (CUcontext))                                             \
    X(cuStreamCreate, "cuStreamCreate", (CUstream *, unsigned))                                    \
    X(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream))                                           \
    X(cuStreamSynchronize, "cuStreamSynchronize", (CUstream))                                      \
    X(cuStreamWaitEvent, "cuStreamWaitEvent", (CUstream, CUevent, unsigned))                       \
    X(cuEventCreate, "cuEventCreate", (CUevent *, unsigned))                                       \
    X(cuEventDestroy, "cuEventDestroy_v2", (CUevent))                                              \
    X(cuEventRecord, "cuEventRecord", (CUevent, CUstream))                                         \
    X(cuEventSynchronize, "cuEventSynchronize", (CUevent))                                         \
    X(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr *, size_t))                                        \
    X(cuMemFree, "cuMemFree_v2", (CUdeviceptr))                                                    \
    X(cuMemHostAlloc, "cuMemHostAlloc", (void **, size_t, unsigned))                               \
    X(cuMemFreeHost, "cuMemFreeHost", (void *))                                                    \
    X(cuMemsetD8Async, "cuMemsetD8Async", (CUdeviceptr, unsigned char, size_t, CUstream))          \
    X(cuMemcpyHtoD, "cuMemcpyHtoD_v2", (CUdeviceptr, const void *, size_t))                        \
    X(cuMemcpyDtoH, "cuMemcpyDtoH_v2", (void *, CUdeviceptr, size_t))                              \
    X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void *, size_t, CUstream))    \
    X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void *, CUdeviceptr, size_t, CUstream))          \
    X(cuModuleLoadData, "cuModuleLoadData", (CUmodule *, const void *))                            \
    X(cuModuleUnload, "cuModuleUnload", (CUmodule))                                                \
    X(cuModuleGetFunction, "cuModuleGetFunction", (CUfunction *, CUmodule, const char *))          \
    X(cuLaunchKernel, "cuLaunchKernel",                                                            \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, \
       void **, void **))                                                                          \
    X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (CUstream, int))                            \
    X(cuStreamEndCapture, "cuStreamEndCapture", (CUstream, CUgraph *))                             \
    X(cuGraphInstantiate, "cuGraphInstantiateWithFlags",                                           \
      (CUgraphExec *, CUgraph, unsigned long long))                                                \
    X(cuGraphLaunch, "cuGraphLaunch", (CUgraphExec, CUstream))                                     \
    X(cuGraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec))                                     \
    X(cuGraphDestroy, "cuGraphDestroy", (CUgraph))

struct raw_cuda {
#define RAW_CUDA_CALL(name, symbol, parameters) CUresult(*name) parameters;
    RAW_CUDA_CALLS(RAW_CUDA_CALL)
#undef RAW_CUDA_CALL
    CUdevice device;
    CUcontext context;
    CUmodule module; // the conformance kernels, as Weir's backend loads them
};

// Opens the driver and its first device, makes its primary context current, and loads
// the conformance kernels. Without a driver or a device the peer is skipped.
//
// Errors: false after peer_skip() or peer_fail(); raw_cuda_close() frees what was
// created.
bool raw_cuda_open(struct raw_cuda *cu);
// Its three steps.
bool raw_cuda_init(struct raw_cuda *cu);
bool raw_cuda_open_device(struct raw_cuda *cu);
bool raw_cuda_load_kernels(struct raw_cuda *cu);
void raw_cuda_close(struct raw_cuda *cu);

// False after peer_fail() with the call and the error's name, unless `result` is 0.
bool raw_cuda_fine(struct raw_cuda *cu, CUresult result, const char *call);
#define RAW_CUDA(cu, name, ...) raw_cuda_fine(cu, (cu)->name(__VA_ARGS__), #name)

#endif
