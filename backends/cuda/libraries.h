// The parts that the backend uses of the libraries that it opens beside the driver's: NVRTC, CUPTI and NCCL.
// symbols.c compares the first two with <nvrtc.h> and <cupti.h> where these are installed. Names and values are
// NVIDIA's.
#ifndef WEIR_BACKENDS_CUDA_LIBRARIES_H
#define WEIR_BACKENDS_CUDA_LIBRARIES_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cuda/symbols.h"

// NVRTC, CUDA's run-time compiler.

#ifndef __NVRTC_H__
typedef int nvrtcResult;
typedef struct _nvrtcProgram *nvrtcProgram;
enum {
    NVRTC_SUCCESS = 0,
    NVRTC_ERROR_COMPILATION = 6
};
#endif

// X(result, name, parameters). Error names first.
#define NVRTC_SYMBOLS(X)                                                                           \
    X(const char *, nvrtcGetErrorString, (nvrtcResult))                                            \
    X(nvrtcResult, nvrtcVersion, (int *, int *))                                                   \
    X(nvrtcResult, nvrtcGetNumSupportedArchs, (int *))                                             \
    X(nvrtcResult, nvrtcGetSupportedArchs, (int *))                                                \
    X(nvrtcResult, nvrtcCreateProgram,                                                             \
      (nvrtcProgram *, const char *, const char *, int, const char *const *, const char *const *)) \
    X(nvrtcResult, nvrtcDestroyProgram, (nvrtcProgram *))                                          \
    X(nvrtcResult, nvrtcCompileProgram, (nvrtcProgram, int, const char *const *))                  \
    X(nvrtcResult, nvrtcGetProgramLogSize, (nvrtcProgram, size_t *))                               \
    X(nvrtcResult, nvrtcGetProgramLog, (nvrtcProgram, char *))                                     \
    X(nvrtcResult, nvrtcGetCUBINSize, (nvrtcProgram, size_t *))                                    \
    X(nvrtcResult, nvrtcGetCUBIN, (nvrtcProgram, char *))                                          \
    X(nvrtcResult, nvrtcGetPTXSize, (nvrtcProgram, size_t *))                                      \
    X(nvrtcResult, nvrtcGetPTX, (nvrtcProgram, char *))

struct nvrtc_symbols {
#define NVRTC_SYMBOL(result, name, parameters) result(*name) parameters;
    NVRTC_SYMBOLS(NVRTC_SYMBOL)
#undef NVRTC_SYMBOL
};

// CUPTI: activity records. They grow at their ends from one version of CUPTI to the next. The fields that are read
// here have had the same offsets since CUDA 11, so a record is accessed as bytes, by offset.

// X(name, value).
#define CUPTI_CONSTANTS(X)                          \
    X(CUPTI_SUCCESS, 0)                             \
    X(CUPTI_ACTIVITY_KIND_MEMCPY, 1)                \
    X(CUPTI_ACTIVITY_KIND_MEMSET, 2)                \
    X(CUPTI_ACTIVITY_KIND_DRIVER, 4)                \
    X(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 10)    \
    X(CUPTI_ACTIVITY_KIND_MEMCPY2, 22)              \
    X(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, 39) \
    X(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, 51)          \
    X(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, 4)   \
    X(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED, 1)

// X(name, number). The calls that operations consist of.
#define CUPTI_CALLS(X)                \
    X(cuMemsetD8Async, 216)           \
    X(cuMemsetD16Async, 218)          \
    X(cuMemsetD32Async, 220)          \
    X(cuMemsetD2D8Async, 222)         \
    X(cuMemsetD2D16Async, 224)        \
    X(cuMemsetD2D32Async, 226)        \
    X(cuMemcpyHtoDAsync_v2, 277)      \
    X(cuMemcpyDtoHAsync_v2, 279)      \
    X(cuMemcpyDtoDAsync_v2, 281)      \
    X(cuMemcpy3DAsync_v2, 291)        \
    X(cuLaunchKernel, 307)            \
    X(cuMemcpyPeerAsync, 319)         \
    X(cuMemcpy3DPeerAsync, 321)       \
    X(cuLaunchCooperativeKernel, 477) \
    X(cuGraphLaunch, 514)             \
    X(cuLaunchKernelEx, 652)

// X(kind, structure, start, end, correlation). The structures of CUDA 13.
#define CUPTI_TIMED_RECORDS(X)                                                   \
    X(CUPTI_ACTIVITY_KIND_MEMCPY, CUpti_ActivityMemcpy6, 16, 24, 44)             \
    X(CUPTI_ACTIVITY_KIND_MEMSET, CUpti_ActivityMemset4, 16, 24, 44)             \
    X(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUpti_ActivityKernel10, 16, 24, 92) \
    X(CUPTI_ACTIVITY_KIND_MEMCPY2, CUpti_ActivityMemcpyPtoP4, 16, 24, 60)        \
    X(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, CUpti_ActivityGraphTrace2, 8, 16, 4)

// Of CUpti_ActivityExternalCorrelation.
enum {
    CUPTI_EXTERNAL_KIND_AT = 4,
    CUPTI_EXTERNAL_ID_AT = 8,
    CUPTI_EXTERNAL_CORRELATION_AT = 16,
};

#ifndef CUPTI_API_VERSION
typedef int CUptiResult;
typedef unsigned CUpti_ActivityKind;
typedef unsigned CUpti_ExternalCorrelationKind;
typedef unsigned CUpti_CallbackId;
typedef struct CUpti_Activity {
    CUpti_ActivityKind kind;
} CUpti_Activity;
typedef void (*CUpti_BuffersCallbackRequestFunc)(uint8_t **, size_t *, size_t *);
typedef void (*CUpti_BuffersCallbackCompleteFunc)(CUcontext, uint32_t, uint8_t *, size_t, size_t);

enum {
#define CUPTI_CONSTANT(name, value) name = value,
    CUPTI_CONSTANTS(CUPTI_CONSTANT)
#undef CUPTI_CONSTANT
};
#endif

// X(optional, result, name, parameters).
#define CUPTI_SYMBOLS(X)                                                                      \
    X(false, CUptiResult, cuptiGetResultString, (CUptiResult, const char **))                 \
    X(false, CUptiResult, cuptiGetTimestamp, (uint64_t *))                                    \
    X(false, CUptiResult, cuptiActivityEnable, (CUpti_ActivityKind))                          \
    X(false, CUptiResult, cuptiActivityDisable, (CUpti_ActivityKind))                         \
    X(false, CUptiResult, cuptiActivityRegisterCallbacks,                                     \
      (CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc))                  \
    X(false, CUptiResult, cuptiActivityGetNextRecord, (uint8_t *, size_t, CUpti_Activity **)) \
    X(false, CUptiResult, cuptiActivityFlushAll, (uint32_t))                                  \
    X(false, CUptiResult, cuptiActivityPushExternalCorrelationId,                             \
      (CUpti_ExternalCorrelationKind, uint64_t))                                              \
    X(false, CUptiResult, cuptiActivityPopExternalCorrelationId,                              \
      (CUpti_ExternalCorrelationKind, uint64_t *))                                            \
    X(true, CUptiResult, cuptiActivityEnableDriverApi, (CUpti_CallbackId, uint8_t))

struct cupti_symbols {
#define CUPTI_SYMBOL(optional, result, name, parameters) result(*name) parameters;
    CUPTI_SYMBOLS(CUPTI_SYMBOL)
#undef CUPTI_SYMBOL
};

// NCCL, in the form of version 2.18, which newer ones keep. Its header wants those of CUDA.

#define NCCL_OLDEST 21800 // 2.18.0
#define NCCL_UNIQUE_ID_BYTES 128

typedef struct ncclComm *ncclComm_t;

typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInvalidArgument = 4,
    ncclInProgress = 7
} ncclResult_t;

typedef enum {
    ncclInt8 = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclFloat32 = 7,
    ncclFloat64 = 8,
    ncclBfloat16 = 9
} ncclDataType_t;

typedef enum {
    ncclSum = 0,
    ncclProd = 1,
    ncclMax = 2,
    ncclMin = 3,
    ncclAvg = 4
} ncclRedOp_t;

// X(result, name, parameters)
#define NCCL_SYMBOLS(X)                                                                          \
    X(ncclResult_t, ncclGetVersion, (int *))                                                     \
    X(const char *, ncclGetErrorString, (ncclResult_t))                                          \
    X(const char *, ncclGetLastError, (ncclComm_t))                                              \
    X(ncclResult_t, ncclGetUniqueId, (ncclUniqueId *))                                           \
    X(ncclResult_t, ncclCommInitRank, (ncclComm_t *, int, ncclUniqueId, int))                    \
    X(ncclResult_t, ncclCommDestroy, (ncclComm_t))                                               \
    X(ncclResult_t, ncclCommAbort, (ncclComm_t))                                                 \
    X(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t, ncclResult_t *))                         \
    X(ncclResult_t, ncclGroupStart, (void))                                                      \
    X(ncclResult_t, ncclGroupEnd, (void))                                                        \
    X(ncclResult_t, ncclAllReduce,                                                               \
      (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, CUstream))         \
    X(ncclResult_t, ncclReduce,                                                                  \
      (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t, CUstream))    \
    X(ncclResult_t, ncclBroadcast,                                                               \
      (const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, CUstream))                 \
    X(ncclResult_t, ncclAllGather,                                                               \
      (const void *, void *, size_t, ncclDataType_t, ncclComm_t, CUstream))                      \
    X(ncclResult_t, ncclReduceScatter,                                                           \
      (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, CUstream))         \
    X(ncclResult_t, ncclSend, (const void *, size_t, ncclDataType_t, int, ncclComm_t, CUstream)) \
    X(ncclResult_t, ncclRecv, (void *, size_t, ncclDataType_t, int, ncclComm_t, CUstream))

struct nccl_symbols {
#define NCCL_SYMBOL(result, name, parameters) result(*name) parameters;
    NCCL_SYMBOLS(NCCL_SYMBOL)
#undef NCCL_SYMBOL
};

#endif
