// Vendors' libraries without Weir, for what is compared with it. Declarations and loaders are those of the
// backends.
//
// Errors: false, with a sentence in `message`.
#ifndef WEIR_TESTS_BENCH_JOBS_RAW_H
#define WEIR_TESTS_BENCH_JOBS_RAW_H

#include <weir/weir.h>

#include "backends/cuda/libraries.h"
#include "backends/cuda/symbols.h"
#include "backends/opencl/symbols.h"
#include "cli/bench/bench.h"

// The driver and its first device.
struct raw_cuda {
    union {
        struct cu_symbols symbols;
        struct {
#define RAW_CALL(version, result, name, parameters) result(*name) parameters;
            CU_SYMBOLS(RAW_CALL)
        };
    };
    // The two that block, which Weir never calls; NULL where the driver lacks them.
    CUresult (*cuMemcpyHtoD)(CUdeviceptr, const void *, size_t);
    CUresult (*cuMemcpyDtoH)(void *, CUdeviceptr, size_t);
    CUdevice device;
    char name[256]; // the device's
    CUcontext context;
    CUmodule module;
};

// All of it: makes the primary context current, and loads the bundle's kernels as Weir's backend does; NULL:
// none. raw_cuda_close() accepts what was opened in part.
bool raw_cuda_open(struct raw_cuda *cu, const struct weir_bundle *bundle, char *message,
                   size_t size);
// Its three steps.
bool raw_cuda_init(struct raw_cuda *cu, char *message, size_t size);
bool raw_cuda_open_device(struct raw_cuda *cu, char *message, size_t size);
bool raw_cuda_load_kernels(struct raw_cuda *cu, const struct weir_bundle *bundle, char *message,
                           size_t size);
void raw_cuda_close(struct raw_cuda *cu);
// Names the call and the error.
bool raw_cuda_fine(const struct raw_cuda *cu, CUresult result, const char *call, char *message,
                   size_t size);
// The same as a failure of the job.
bool raw_cuda_check(struct bench *bench, const struct raw_cuda *cu, CUresult result,
                    const char *call);

struct raw_opencl {
    union {
        struct ocl_symbols symbols;
        struct {
            OCL_SYMBOLS(RAW_CALL)
#undef RAW_CALL
        };
    };
    cl_device_id device;
    char name[256];
    cl_context context;
    cl_program program; // from the source that Weir builds
};

// `wanted`: the name of the device; NULL: the first one of the first platform that has one.
bool raw_opencl_open(struct raw_opencl *cl, const char *wanted, const struct weir_bundle *bundle,
                     char *message, size_t size);
void raw_opencl_close(struct raw_opencl *cl);

struct raw_nccl {
    struct nccl_symbols nccl;
    struct cu_symbols cu;
    char name[32]; // "NCCL 2.28.9"
};

// `file` NULL: the libnccl.so.2 that is loaded, else the one that the linker finds. False also where it is
// older than what Weir takes.
bool raw_nccl_load(struct raw_nccl *raw, const char *file, char *message, size_t size);
// An id on rank 0, nothing on others.
bool raw_nccl_make_id(const struct raw_nccl *raw, uint32_t rank, ncclUniqueId *id, char *message,
                      size_t size);
// Brings rank 0's id to the other ranks of `comm`, each of which calls it with its device and queue.
weir_status raw_nccl_share(weir_device *device, weir_queue *queue, weir_comm *comm,
                           ncclUniqueId *id);
// The thread's error, for a call of NCCL or of the driver that returned `code`.
weir_status raw_nccl_refuse(const struct raw_nccl *raw, const char *call, ncclResult_t code);
weir_status raw_cuda_refuse(const char *call, CUresult code);

#endif
