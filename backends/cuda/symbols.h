// The part of the CUDA driver API that the backend uses, declared here so that
// the module builds where no CUDA toolkit is installed, and its functions, in one table that is filled
// through cuGetProcAddress(). symbols.c compares every line with <cuda.h> if that is installed. Names and
// values are NVIDIA's.
#ifndef WEIR_BACKENDS_CUDA_SYMBOLS_H
#define WEIR_BACKENDS_CUDA_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// X(name, value). They become an enumeration unless <cuda.h> has them.
#define CU_CONSTANTS(X)                                     \
    X(CUDA_SUCCESS, 0)                                      \
    X(CUDA_ERROR_INVALID_VALUE, 1)                          \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2)                          \
    X(CUDA_ERROR_DEINITIALIZED, 4)                          \
    X(CUDA_ERROR_NO_DEVICE, 100)                            \
    X(CUDA_ERROR_INVALID_IMAGE, 200)                        \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                    \
    X(CUDA_ERROR_ECC_UNCORRECTABLE, 214)                    \
    X(CUDA_ERROR_INVALID_PTX, 218)                          \
    X(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220)                 \
    X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)              \
    X(CUDA_ERROR_INVALID_SOURCE, 300)                       \
    X(CUDA_ERROR_NOT_FOUND, 500)                            \
    X(CUDA_ERROR_NOT_READY, 600)                            \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                      \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                       \
    X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704)          \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                 \
    X(CUDA_ERROR_ASSERT, 710)                               \
    X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712)       \
    X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                 \
    X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)                  \
    X(CUDA_ERROR_MISALIGNED_ADDRESS, 716)                   \
    X(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)                \
    X(CUDA_ERROR_INVALID_PC, 718)                           \
    X(CUDA_ERROR_LAUNCH_FAILED, 719)                        \
    X(CUDA_ERROR_NOT_SUPPORTED, 801)                        \
    X(CUDA_ERROR_MPS_CLIENT_TERMINATED, 810)                \
    X(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 910)            \
    X(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)           \
    X(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)               \
    X(CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                        \
    X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)   \
    X(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 2)                   \
    X(CU_JIT_ERROR_LOG_BUFFER, 5)                           \
    X(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)                \
    X(CU_STREAM_NON_BLOCKING, 1)                            \
    X(CU_STREAM_WRITE_VALUE_DEFAULT, 0)                     \
    X(CU_STREAM_CAPTURE_STATUS_NONE, 0)                     \
    X(CU_STREAM_CAPTURE_MODE_RELAXED, 2)                    \
    X(CU_STREAM_SET_CAPTURE_DEPENDENCIES, 1)                \
    X(CU_EVENT_DEFAULT, 0)                                  \
    X(CU_EVENT_BLOCKING_SYNC, 1)                            \
    X(CU_EVENT_DISABLE_TIMING, 2)                           \
    X(CU_MEMORYTYPE_HOST, 1)                                \
    X(CU_MEMORYTYPE_DEVICE, 2)                              \
    X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                  \
    X(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)               \
    X(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3)                \
    X(CU_MEM_ALLOCATION_TYPE_PINNED, 1)                     \
    X(CU_MEM_LOCATION_TYPE_DEVICE, 1)                       \
    X(CU_MEM_ATTACH_GLOBAL, 1)                              \
    X(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 3) \
    X(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 4)                 \
    X(CU_MEMHOSTALLOC_PORTABLE, 1)                          \
    X(CU_MEMHOSTALLOC_DEVICEMAP, 2)                         \
    X(CU_MEMHOSTREGISTER_PORTABLE, 1)                       \
    X(CU_MEMHOSTREGISTER_DEVICEMAP, 2)

// Attributes of a device. X(member, attribute, number).
#define CU_ATTRIBUTES(X)                                                              \
    X(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                        \
    X(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                        \
    X(unified_addressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 41)                 \
    X(memory_pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 115)                  \
    X(integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED, 18)                                 \
    X(concurrent_managed, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 89)          \
    X(warp_size, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10)                                   \
    X(max_pitch, CU_DEVICE_ATTRIBUTE_MAX_PITCH, 11)                                   \
    X(max_local_bytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)     \
    X(max_block_items, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)                  \
    X(max_block_x, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 2)                            \
    X(max_block_y, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 3)                            \
    X(max_block_z, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 4)                            \
    X(max_grid_x, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 5)                              \
    X(max_grid_y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 6)                              \
    X(max_grid_z, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 7)                              \
    X(multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                  \
    X(concurrent_kernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 31)                 \
    X(engines, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 40)                            \
    X(cooperative, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 95)                        \
    X(unit_items, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39)             \
    X(unit_blocks, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 106)            \
    X(unit_registers, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 82)       \
    X(unit_local_bytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81) \
    X(reserved_local_bytes, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 111)

// The structures' members, X(structure, type, member), in their order.
// Of a copy on one device the two members are reserved; of one between devices they are the contexts.
#define CU_BOX(X, structure, kind, of_src, of_dst) \
    X(structure, size_t, srcXInBytes)              \
    X(structure, size_t, srcY)                     \
    X(structure, size_t, srcZ)                     \
    X(structure, size_t, srcLOD)                   \
    X(structure, CUmemorytype, srcMemoryType)      \
    X(structure, const void *, srcHost)            \
    X(structure, CUdeviceptr, srcDevice)           \
    X(structure, CUarray, srcArray)                \
    X(structure, kind, of_src)                     \
    X(structure, size_t, srcPitch)                 \
    X(structure, size_t, srcHeight)                \
    X(structure, size_t, dstXInBytes)              \
    X(structure, size_t, dstY)                     \
    X(structure, size_t, dstZ)                     \
    X(structure, size_t, dstLOD)                   \
    X(structure, CUmemorytype, dstMemoryType)      \
    X(structure, void *, dstHost)                  \
    X(structure, CUdeviceptr, dstDevice)           \
    X(structure, CUarray, dstArray)                \
    X(structure, kind, of_dst)                     \
    X(structure, size_t, dstPitch)                 \
    X(structure, size_t, dstHeight)                \
    X(structure, size_t, WidthInBytes)             \
    X(structure, size_t, Height)                   \
    X(structure, size_t, Depth)
#define CU_MEMCPY3D(X, structure) CU_BOX(X, structure, void *, reserved0, reserved1)
#define CU_MEMCPY3D_PEER(X, structure) CU_BOX(X, structure, CUcontext, srcContext, dstContext)

#define CU_MEMSET_NODE(X, structure)    \
    X(structure, CUdeviceptr, dst)      \
    X(structure, size_t, pitch)         \
    X(structure, unsigned, value)       \
    X(structure, unsigned, elementSize) \
    X(structure, size_t, width)         \
    X(structure, size_t, height)

#define CU_HOST_NODE(X, structure) \
    X(structure, CUhostFn, fn)     \
    X(structure, void *, userData)

// Those of CUDA 12.
#define CU_KERNEL_NODE(X, structure)       \
    X(structure, CUfunction, func)         \
    X(structure, unsigned, gridDimX)       \
    X(structure, unsigned, gridDimY)       \
    X(structure, unsigned, gridDimZ)       \
    X(structure, unsigned, blockDimX)      \
    X(structure, unsigned, blockDimY)      \
    X(structure, unsigned, blockDimZ)      \
    X(structure, unsigned, sharedMemBytes) \
    X(structure, void **, kernelParams)    \
    X(structure, void **, extra)           \
    X(structure, CUkernel, kern)           \
    X(structure, CUcontext, ctx)

#define CU_MEM_LOCATION(X, structure) \
    X(structure, unsigned, type)      \
    X(structure, int, id)

#define CU_MEM_ACCESS(X, structure)       \
    X(structure, CUmemLocation, location) \
    X(structure, unsigned, flags)

#define CU_MEM_POOL(X, structure)         \
    X(structure, unsigned, allocType)     \
    X(structure, unsigned, handleTypes)   \
    X(structure, CUmemLocation, location) \
    X(structure, void *, win32SecurityAttributes)

// X(structure, members, rest). The rest of the pools' also covers members that later versions named; all are zero here.
#define CU_STRUCTURES(X)                         \
    X(CUmemLocation, CU_MEM_LOCATION, )          \
    X(CUDA_MEMCPY3D, CU_MEMCPY3D, )              \
    X(CUDA_MEMCPY3D_PEER, CU_MEMCPY3D_PEER, )    \
    X(CUDA_MEMSET_NODE_PARAMS, CU_MEMSET_NODE, ) \
    X(CUDA_HOST_NODE_PARAMS, CU_HOST_NODE, )     \
    X(CUDA_KERNEL_NODE_PARAMS, CU_KERNEL_NODE, ) \
    X(CUmemAccessDesc, CU_MEM_ACCESS, )          \
    X(CUmemPoolProps, CU_MEM_POOL, unsigned char reserved[64];)

// The enumerations are 32 bits wide in the driver's ABI.
#define CU_ENUMERATIONS(X)   \
    X(CUresult)              \
    X(CUdevice_attribute)    \
    X(CUfunction_attribute)  \
    X(CUjit_option)          \
    X(CUlaunchAttributeID)   \
    X(CUmemPool_attribute)   \
    X(CUmemorytype)          \
    X(CUpointer_attribute)   \
    X(CUstreamCaptureMode)   \
    X(CUstreamCaptureStatus) \
    X(CUdriverProcAddressQueryResult)

#ifndef CUDA_VERSION

#define CU_ENUMERATION(name) typedef int name;
CU_ENUMERATIONS(CU_ENUMERATION)
#undef CU_ENUMERATION
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUarray_st *CUarray;
typedef struct CUevent_st *CUevent;
typedef struct CUstream_st *CUstream;
typedef struct CUmemPoolHandle_st *CUmemoryPool;

typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUkern_st *CUkernel;

typedef void (*CUhostFn)(void *user);

typedef union CUlaunchAttributeValue_union {
    char pad[64];
    int cooperative;
} CUlaunchAttributeValue;

enum {
#define CU_CONSTANT(name, value) name = value,
#define CU_ATTRIBUTE(member, attribute, number) attribute = number,
    CU_CONSTANTS(CU_CONSTANT) CU_ATTRIBUTES(CU_ATTRIBUTE)
#undef CU_ATTRIBUTE
#undef CU_CONSTANT
};

#define CU_OWN(name) name
#else
#define CU_OWN(name) cu_own_##name
#endif

#define CU_MEMBER(structure, type, member) type member;
#define CU_STRUCTURE(name, members, rest) \
    typedef struct {                      \
        members(CU_MEMBER, name) rest     \
    } CU_OWN(name);
CU_STRUCTURES(CU_STRUCTURE)
#undef CU_MEMBER
#undef CU_STRUCTURE

// The table.

// The oldest supported driver: it has cuGetProcAddress_v2.
#define CU_OLDEST_DRIVER 12000

// X(version, result, name, parameters). `version` is the requested version of the function, to
// which the parameters belong. The function for the names of errors comes first, so that later
// failures can be named, then, adjacent in memory, those that most operations call. A function that
// is newer than CU_OLDEST_DRIVER may be missing and is then NULL.
#define CU_SYMBOLS(X)                                                                              \
    X(6000, CUresult, cuGetErrorName, (CUresult, const char **))                                   \
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
