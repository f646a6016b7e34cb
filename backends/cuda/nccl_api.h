// The part of NCCL that the backend uses, in the form of version 2.18, which newer ones keep. NCCL's
// header wants those of CUDA.
#ifndef WEIR_BACKENDS_CUDA_NCCL_API_H
#define WEIR_BACKENDS_CUDA_NCCL_API_H

#include <limits.h>
#include <stddef.h>

#include "backends/cuda/symbols.h"

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
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
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
