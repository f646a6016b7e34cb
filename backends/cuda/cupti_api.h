// The part of CUPTI that the backend uses: activity records. cu_check.c compares it with
// <cupti.h> where that is installed. Names and values are NVIDIA's.
//
// Records grow at their ends from one version of CUPTI to the next. The fields that are read here
// have had the same offsets since CUDA 11, so a record is accessed as bytes, by offset.
#ifndef WEIR_BACKENDS_CUDA_CUPTI_API_H
#define WEIR_BACKENDS_CUDA_CUPTI_API_H

#include <stddef.h>
#include <stdint.h>

#include "backends/cuda/symbols.h"

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
    X(cuMemcpy2DAsync_v2, 289)        \
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

#endif
