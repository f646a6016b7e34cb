// Vendors' libraries without Weir, for what is compared with it. Declarations and loaders are those of the
// backends. Ownership, threads and errors are those of bench.h, unless a comment says something else.
#ifndef WEIR_TESTS_BENCH_JOBS_RAW_H
#define WEIR_TESTS_BENCH_JOBS_RAW_H

#include <weir/weir.h>

#include "backends/clc/symbols.h"
#include "backends/cuda/libraries.h"
#include "backends/cuda/symbols.h"
#include "cli/bench/comm.h"

// The driver and its first device.
struct raw_cuda {
    union {
        struct cu_symbols symbols;
        struct {
#define RAW_CALL(version, result, name, parameters) result(*name) parameters;
            CU_SYMBOLS(RAW_CALL)
#undef RAW_CALL
        };
    };
    // The two that block, which Weir never calls; NULL where the driver lacks them.
    CUresult (*cuMemcpyHtoD)(CUdeviceptr, const void *, size_t);
    CUresult (*cuMemcpyDtoH)(void *, CUdeviceptr, size_t);
    CUdevice device;
    CUcontext context;
    CUmodule module;
};

// Makes the primary context current, and loads the bundle's kernels as Weir's backend does; NULL: none. False after
// a note that `what` is not measured.
bool raw_cuda_open(const char *what, const struct weir_bundle *bundle, struct raw_cuda *cu);
// Its three steps. They end the command.
void raw_cuda_init(struct raw_cuda *cu);
void raw_cuda_open_device(struct raw_cuda *cu);
void raw_cuda_load_kernels(struct raw_cuda *cu, const struct weir_bundle *bundle);

// On any thread: false after bench_wrong(), which names the call and the error.
bool raw_cuda_fine(const struct raw_cuda *cu, CUresult result, const char *call);
void raw_cuda_check(const struct raw_cuda *cu, CUresult result, const char *call);
#define RAW_CU(cu, name, ...) raw_cuda_check(cu, (cu)->name(__VA_ARGS__), #name)

CUstream raw_cuda_stream(struct raw_cuda *cu);
CUevent raw_cuda_event(struct raw_cuda *cu);
CUdeviceptr raw_cuda_memory(struct raw_cuda *cu, size_t size);
void *raw_cuda_pinned(struct raw_cuda *cu, size_t size);
CUfunction raw_cuda_function(struct raw_cuda *cu, const char *name);

struct raw_opencl {
    union {
        struct ocl_symbols symbols;
        struct {
#define RAW_CALL(since, name) __typeof__(&(name)) name;
            OCL_SYMBOLS(RAW_CALL)
#undef RAW_CALL
        };
    };
    cl_device_id device;
    cl_context context;
    cl_program program; // from the source that Weir builds
};

// Of the device with that name. False after a note that `what` is not measured.
bool raw_opencl_open(const char *what, const char *device, const struct weir_bundle *bundle,
                     struct raw_opencl *cl);
void raw_opencl_check(cl_int code, const char *call);
#define RAW_CL(cl, name, ...) raw_opencl_check((cl)->name(__VA_ARGS__), #name)

cl_command_queue raw_opencl_queue(struct raw_opencl *cl);
cl_kernel raw_opencl_kernel(struct raw_opencl *cl, const char *name);
cl_mem raw_opencl_buffer(struct raw_opencl *cl, cl_mem_flags flags, size_t size);

struct raw_nccl {
    struct nccl_symbols nccl;
    struct cu_symbols cu;
    char name[32]; // "NCCL 2.28.9"
};

// `file` NULL: the libnccl.so.2 that is loaded, else the one that the linker finds. False, with a sentence in
// `message`, also where it is older than what Weir takes.
bool raw_nccl_load(struct raw_nccl *raw, const char *file, char *message, size_t size);
// An id on rank 0, nothing on others. Errors: the same.
bool raw_nccl_make_id(const struct raw_nccl *raw, uint32_t rank, ncclUniqueId *id, char *message,
                      size_t size);
// Brings rank 0's id to the other ranks, each of which calls it with its own.
void raw_nccl_share(const struct bench_rank *rank, ncclUniqueId *id);
// End the command, unless the call of NCCL or of the driver has succeeded.
void raw_nccl_check(const struct raw_nccl *raw, ncclResult_t code, const char *call);
void raw_nccl_check_driver(CUresult code, const char *call);

// What main() does in a process that the job `start` measures: after START_FIRST comes the side, "weir" or "raw".
#define START_FIRST "first"
int start_first(const char *side);

#endif
