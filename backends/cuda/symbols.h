// The functions of libcuda, in one table that is filled through
// cuGetProcAddress().
#ifndef WEIR_BACKENDS_CUDA_SYMBOLS_H
#define WEIR_BACKENDS_CUDA_SYMBOLS_H

#include <stdbool.h>

#include "backends/cuda/cu_api.h"

// The oldest supported driver: it has cuGetProcAddress_v2.
#define CU_OLDEST_DRIVER 12000

// X(version, result, name, parameters). `version` is the requested version of the function, to
// which the parameters belong. The functions for the names of errors come first, so that later
// failures can be named, then, adjacent in memory, those that most operations call. A function that
// is newer than CU_OLDEST_DRIVER may be missing and is then NULL.
#define CU_SYMBOLS(X)                                                                              \
    X(6000, CUresult, cuGetErrorName, (CUresult, const char **))                                   \
    X(6000, CUresult, cuGetErrorString, (CUresult, const char **))                                 \
    X(4000, CUresult, cuCtxGetCurrent, (CUcontext *))                                              \
    X(4000, CUresult, cuLaunchKernel,                                                              \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, \
       void **, void **))                                                                          \
    X(3020, CUresult, cuMemcpyHtoDAsync, (CUdeviceptr, const void *, size_t, CUstream))            \
    X(3020, CUresult, cuMemcpyDtoHAsync, (void *, CUdeviceptr, size_t, CUstream))                  \
    X(3020, CUresult, cuMemcpyDtoDAsync, (CUdeviceptr, CUdeviceptr, size_t, CUstream))             \
    X(2000, CUresult, cuEventRecord, (CUevent, CUstream))                                          \
    X(3020, CUresult, cuStreamWaitEvent, (CUstream, CUevent, unsigned))                            \
    X(10000, CUresult, cuGraphLaunch, (CUgraphExec, CUstream))                                     \
    X(2000, CUresult, cuInit, (unsigned))                                                          \
    X(2000, CUresult, cuDeviceGetCount, (int *))                                                   \
    X(2000, CUresult, cuDeviceGet, (CUdevice *, int))                                              \
    X(2000, CUresult, cuDeviceGetName, (char *, int, CUdevice))                                    \
    X(3020, CUresult, cuDeviceTotalMem, (size_t *, CUdevice))                                      \
    X(2000, CUresult, cuDeviceGetAttribute, (int *, CUdevice_attribute, CUdevice))                 \
    X(4000, CUresult, cuDeviceCanAccessPeer, (int *, CUdevice, CUdevice))                          \
    X(7000, CUresult, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                           \
    X(11000, CUresult, cuDevicePrimaryCtxRelease, (CUdevice))                                      \
    X(4000, CUresult, cuCtxSetCurrent, (CUcontext))                                                \
    X(4000, CUresult, cuCtxEnablePeerAccess, (CUcontext, unsigned))                                \
    X(5050, CUresult, cuCtxGetStreamPriorityRange, (int *, int *))                                 \
    X(5050, CUresult, cuStreamCreateWithPriority, (CUstream *, unsigned, int))                     \
    X(4000, CUresult, cuStreamDestroy, (CUstream))                                                 \
    X(2000, CUresult, cuStreamSynchronize, (CUstream))                                             \
    X(2000, CUresult, cuStreamQuery, (CUstream))                                                   \
    X(9020, CUresult, cuStreamGetCtx, (CUstream, CUcontext *))                                     \
    X(10000, CUresult, cuStreamIsCapturing, (CUstream, CUstreamCaptureStatus *))                   \
    X(11070, CUresult, cuStreamWriteValue32, (CUstream, CUdeviceptr, cuuint32_t, unsigned))        \
    X(2000, CUresult, cuEventCreate, (CUevent *, unsigned))                                        \
    X(4000, CUresult, cuEventDestroy, (CUevent))                                                   \
    X(2000, CUresult, cuEventQuery, (CUevent))                                                     \
    X(2000, CUresult, cuEventSynchronize, (CUevent))                                               \
    X(2000, CUresult, cuEventElapsedTime, (float *, CUevent, CUevent))                             \
    X(3020, CUresult, cuMemGetInfo, (size_t *, size_t *))                                          \
    X(3020, CUresult, cuMemGetAddressRange, (CUdeviceptr *, size_t *, CUdeviceptr))                \
    X(4000, CUresult, cuPointerGetAttribute, (void *, CUpointer_attribute, CUdeviceptr))           \
    X(11020, CUresult, cuMemPoolCreate, (CUmemoryPool *, const CUmemPoolProps *))                  \
    X(11020, CUresult, cuMemPoolDestroy, (CUmemoryPool))                                           \
    X(11020, CUresult, cuMemPoolSetAttribute, (CUmemoryPool, CUmemPool_attribute, void *))         \
    X(11020, CUresult, cuMemPoolSetAccess, (CUmemoryPool, const CUmemAccessDesc *, size_t))        \
    X(11020, CUresult, cuMemPoolTrimTo, (CUmemoryPool, size_t))                                    \
    X(11020, CUresult, cuMemAllocFromPoolAsync, (CUdeviceptr *, size_t, CUmemoryPool, CUstream))   \
    X(11020, CUresult, cuMemFreeAsync, (CUdeviceptr, CUstream))                                    \
    X(3020, CUresult, cuMemAlloc, (CUdeviceptr *, size_t))                                         \
    X(6000, CUresult, cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned))                        \
    X(3020, CUresult, cuMemFree, (CUdeviceptr))                                                    \
    X(2020, CUresult, cuMemHostAlloc, (void **, size_t, unsigned))                                 \
    X(2000, CUresult, cuMemFreeHost, (void *))                                                     \
    X(6050, CUresult, cuMemHostRegister, (void *, size_t, unsigned))                               \
    X(4000, CUresult, cuMemHostUnregister, (void *))                                               \
    X(3020, CUresult, cuMemHostGetDevicePointer, (CUdeviceptr *, void *, unsigned))                \
    X(4000, CUresult, cuMemcpyPeerAsync,                                                           \
      (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream))                          \
    X(4000, CUresult, cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER *, CUstream))                 \
    X(3020, CUresult, cuMemcpy2DAsync, (const CUDA_MEMCPY2D *, CUstream))                          \
    X(3020, CUresult, cuMemcpy3DAsync, (const CUDA_MEMCPY3D *, CUstream))                          \
    X(3020, CUresult, cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream))             \
    X(3020, CUresult, cuMemsetD16Async, (CUdeviceptr, unsigned short, size_t, CUstream))           \
    X(3020, CUresult, cuMemsetD32Async, (CUdeviceptr, unsigned, size_t, CUstream))                 \
    X(3020, CUresult, cuMemsetD2D8Async,                                                           \
      (CUdeviceptr, size_t, unsigned char, size_t, size_t, CUstream))                              \
    X(3020, CUresult, cuMemsetD2D16Async,                                                          \
      (CUdeviceptr, size_t, unsigned short, size_t, size_t, CUstream))                             \
    X(3020, CUresult, cuMemsetD2D32Async,                                                          \
      (CUdeviceptr, size_t, unsigned, size_t, size_t, CUstream))                                   \
    X(2010, CUresult, cuModuleLoadDataEx,                                                          \
      (CUmodule *, const void *, unsigned, CUjit_option *, void **))                               \
    X(2000, CUresult, cuModuleUnload, (CUmodule))                                                  \
    X(2000, CUresult, cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                 \
    X(3020, CUresult, cuModuleGetGlobal, (CUdeviceptr *, size_t *, CUmodule, const char *))        \
    X(2020, CUresult, cuFuncGetAttribute, (int *, CUfunction_attribute, CUfunction))               \
    X(9000, CUresult, cuFuncSetAttribute, (CUfunction, CUfunction_attribute, int))                 \
    X(12040, CUresult, cuFuncLoad, (CUfunction))                                                   \
    X(12040, CUresult, cuFuncGetParamInfo, (CUfunction, size_t, size_t *, size_t *))               \
    X(9000, CUresult, cuLaunchCooperativeKernel,                                                   \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, \
       void **))                                                                                   \
    X(6050, CUresult, cuOccupancyMaxActiveBlocksPerMultiprocessor,                                 \
      (int *, CUfunction, int, size_t))                                                            \
    X(10000, CUresult, cuGraphCreate, (CUgraph *, unsigned))                                       \
    X(10000, CUresult, cuGraphDestroy, (CUgraph))                                                  \
    X(10010, CUresult, cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *))                 \
    X(10010, CUresult, cuStreamBeginCapture, (CUstream, CUstreamCaptureMode))                      \
    X(10000, CUresult, cuStreamEndCapture, (CUstream, CUgraph *))                                  \
    X(11030, CUresult, cuStreamGetCaptureInfo,                                                     \
      (CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *, const CUgraphNode **,           \
       size_t *))                                                                                  \
    X(11030, CUresult, cuStreamUpdateCaptureDependencies,                                          \
      (CUstream, CUgraphNode *, size_t, unsigned))                                                 \
    X(10000, CUresult, cuGraphAddEmptyNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t)) \
    X(12000, CUresult, cuGraphAddKernelNode,                                                       \
      (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_KERNEL_NODE_PARAMS *))      \
    X(11000, CUresult, cuGraphKernelNodeSetAttribute,                                              \
      (CUgraphNode, CUlaunchAttributeID, const CUlaunchAttributeValue *))                          \
    X(10000, CUresult, cuGraphAddMemcpyNode,                                                       \
      (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_MEMCPY3D *, CUcontext))     \
    X(10000, CUresult, cuGraphAddMemsetNode,                                                       \
      (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_MEMSET_NODE_PARAMS *,       \
       CUcontext))                                                                                 \
    X(11040, CUresult, cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long))  \
    X(10000, CUresult, cuGraphExecDestroy, (CUgraphExec))                                          \
    X(12000, CUresult, cuGraphExecKernelNodeSetParams,                                             \
      (CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS *))                                 \
    X(10020, CUresult, cuGraphExecMemcpyNodeSetParams,                                             \
      (CUgraphExec, CUgraphNode, const CUDA_MEMCPY3D *, CUcontext))                                \
    X(10020, CUresult, cuGraphExecMemsetNodeSetParams,                                             \
      (CUgraphExec, CUgraphNode, const CUDA_MEMSET_NODE_PARAMS *, CUcontext))                      \
    X(10000, CUresult, cuGraphAddChildGraphNode,                                                   \
      (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph))                              \
    X(11010, CUresult, cuGraphExecChildGraphNodeSetParams, (CUgraphExec, CUgraphNode, CUgraph))    \
    X(10000, CUresult, cuGraphAddHostNode,                                                         \
      (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_HOST_NODE_PARAMS *))        \
    X(10000, CUresult, cuGraphGetNodes, (CUgraph, CUgraphNode *, size_t *))                        \
    X(11060, CUresult, cuGraphNodeSetEnabled, (CUgraphExec, CUgraphNode, unsigned))                \
    X(11010, CUresult, cuGraphUpload, (CUgraphExec, CUstream))

struct cu_symbols {
#define CU_SYMBOL(version, result, name, parameters) result(*name) parameters;
    CU_SYMBOLS(CU_SYMBOL)
#undef CU_SYMBOL
};

// Opens `library`, or if that is empty libcuda.so.1, else libcuda.so, and fills `*symbols`.
// `*out_version` is the driver's CUDA version (12040: 12.4), 0 if unknown. The library is never
// closed.
//
// Errors: false, with a sentence in `message`.
bool cu_symbols_load(const char *library, struct cu_symbols *symbols, int *out_version,
                     char *message, size_t message_size);

#endif
