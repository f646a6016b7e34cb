// NCCL and the driver's streams without Weir, for what runs beside Weir in `weir bench comm` and
// `weir bench ddp`.
//
// The few declarations are here, so that the command builds without a toolkit and without NCCL; names
// and values are theirs.
#ifndef WEIR_CLI_BENCH_NCCL_H
#define WEIR_CLI_BENCH_NCCL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/weir.h>

enum {
    BENCH_STREAM_NON_BLOCKING = 1,
    BENCH_EVENT_DISABLE_TIMING = 2,
    BENCH_NCCL_CUDA_ERROR = 1,
    BENCH_NCCL_FLOAT32 = 7,
    BENCH_NCCL_BFLOAT16 = 9,
    BENCH_NCCL_SUM = 0,
    BENCH_NCCL_AVERAGE = 4
};

// ncclUniqueId.
struct bench_nccl_id {
    char bytes[128];
};

// X(version, name, parameters): from cuGetProcAddress(), in that version.
#define BENCH_DRIVER_CALLS(X)                                     \
    X(4000, cuCtxSetCurrent, (void *))                            \
    X(5050, cuStreamCreateWithPriority, (void **, unsigned, int)) \
    X(4000, cuStreamDestroy, (void *))                            \
    X(2000, cuStreamSynchronize, (void *))                        \
    X(3020, cuStreamWaitEvent, (void *, void *, unsigned))        \
    X(2000, cuEventCreate, (void **, unsigned))                   \
    X(4000, cuEventDestroy, (void *))                             \
    X(2000, cuEventRecord, (void *, void *))

// X(name, parameters): of calls that return ncclResult_t.
#define BENCH_NCCL_CALLS(X)                                                        \
    X(ncclGetVersion, (int *))                                                     \
    X(ncclGetUniqueId, (struct bench_nccl_id *))                                   \
    X(ncclCommInitRank, (void **, int, struct bench_nccl_id, int))                 \
    X(ncclCommDestroy, (void *))                                                   \
    X(ncclCommAbort, (void *))                                                     \
    X(ncclGroupStart, (void))                                                      \
    X(ncclGroupEnd, (void))                                                        \
    X(ncclAllReduce, (const void *, void *, size_t, int, int, void *, void *))     \
    X(ncclReduce, (const void *, void *, size_t, int, int, int, void *, void *))   \
    X(ncclBroadcast, (const void *, void *, size_t, int, int, void *, void *))     \
    X(ncclAllGather, (const void *, void *, size_t, int, void *, void *))          \
    X(ncclReduceScatter, (const void *, void *, size_t, int, int, void *, void *)) \
    X(ncclSend, (const void *, size_t, int, int, void *, void *))                  \
    X(ncclRecv, (void *, size_t, int, int, void *, void *))

struct bench_driver {
#define BENCH_DRIVER_CALL(version, name, parameters) int(*name) parameters;
    BENCH_DRIVER_CALLS(BENCH_DRIVER_CALL)
#undef BENCH_DRIVER_CALL
};

struct bench_nccl {
    struct bench_driver cu;
#define BENCH_NCCL_CALL(name, parameters) int(*name) parameters;
    BENCH_NCCL_CALLS(BENCH_NCCL_CALL)
#undef BENCH_NCCL_CALL
    const char *(*ncclGetErrorString)(int);
    int version;   // 22809 is 2.28.9
    char name[32]; // "NCCL 2.28.9"
};

// `file` NULL: the libnccl.so.2 that is loaded, else the one that the linker finds.
//
// Errors: false after a sentence in `message`; also where it is older than 2.18, as Weir takes it.
bool bench_nccl_load(struct bench_nccl *nccl, const char *file, char *message, size_t size);

// An id on rank 0, nothing on others.
//
// Errors: false after a sentence in `message`.
bool bench_nccl_make_id(const struct bench_nccl *nccl, uint32_t rank, struct bench_nccl_id *id,
                        char *message, size_t size);

// Brings rank 0's id to the other ranks of `comm`, each of which calls it with its device and queue.
weir_status bench_nccl_share(weir_device *device, weir_queue *queue, weir_comm *comm,
                             struct bench_nccl_id *id);

// The thread's error, for a raw call of NCCL or of the driver that returned `code`.
weir_status bench_nccl_refuse(const struct bench_nccl *nccl, const char *call, int code);
weir_status bench_driver_refuse(const char *call, int code);

#endif
