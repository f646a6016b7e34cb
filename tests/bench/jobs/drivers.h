// The sides of the drivers (cli/bench/side.h). Declarations and loaders of the drivers are those of the backends.
#ifndef WEIR_TESTS_BENCH_JOBS_DRIVERS_H
#define WEIR_TESTS_BENCH_JOBS_DRIVERS_H

#include "backends/clc/symbols.h"
#include "backends/cuda/libraries.h"
#include "backends/cuda/symbols.h"
#include "cli/bench/comm.h"
#include "cli/bench/side.h"

struct side_cuda {
    union {
        struct cu_symbols symbols;
        struct {
#define SIDE_CALL(version, result, name, parameters) result(*name) parameters;
            CU_SYMBOLS(SIDE_CALL)
#undef SIDE_CALL
        };
    };
    // The two that block, which Weir never calls.
    CUresult (*cuMemcpyHtoD)(CUdeviceptr, const void *, size_t);
    CUresult (*cuMemcpyDtoH)(void *, CUdeviceptr, size_t);
    CUdevice device;
    CUcontext context; // current on the thread
    CUmodule module;
    CUfunction kernels[SIDE_KERNELS];
    CUstream queues[SIDE_QUEUES];
    CUevent events[SIDE_EVENTS +
                   SIDE_QUEUES]; // the last ones of graphs: the fork, and the ends of queues
    CUdeviceptr memory;
};

struct side_opencl {
    union {
        struct ocl_symbols symbols;
        struct {
#define SIDE_CALL(since, name) __typeof__(&(name)) name;
            OCL_SYMBOLS(SIDE_CALL)
#undef SIDE_CALL
        };
    };
    cl_device_id device;
    cl_context context;
    cl_program program; // from the source that Weir builds
    cl_kernel kernels[SIDE_KERNELS];
    cl_command_queue queues[SIDE_QUEUES];
    cl_event events[SIDE_EVENTS];
    cl_mem memory;
};

extern const struct side_calls side_cuda_calls;
extern const struct side_calls side_opencl_calls;

void side_cuda_check(const struct side_cuda *cu, CUresult result, const char *call);
#define SIDE_CU(cu, name, ...) side_cuda_check(cu, (cu)->name(__VA_ARGS__), #name)

// NCCL without Weir: a communicator and a stream for the rank of this process.

struct raw_nccl {
    struct nccl_symbols nccl;
    char name[32];    // "NCCL 2.28.9"
    struct side cuda; // on Weir's device; queue 0 is the communicator's
    ncclComm_t comm;
    ncclUniqueId id;   // of rank 0
    char message[512]; // why it could not be opened
};

// On all ranks or on none. `file` NULL: the libnccl.so.2 that is loaded, else the one that the linker finds. False,
// with a sentence in `raw->message`, also where it is older than what Weir takes.
bool raw_nccl_open(struct raw_nccl *raw, const struct bench_ranks *all, const char *file);

// Ends the command, unless the call of NCCL has succeeded.
void raw_nccl_check(struct raw_nccl *raw, ncclResult_t code, const char *call);
#define RAW_NCCL(raw, name, ...) raw_nccl_check((raw), (raw)->nccl.name(__VA_ARGS__), #name)

// The jobs, as the `main` of a command.
int job_overlap(int argc, char **argv);
int job_pageable(int argc, char **argv);
int job_start(int argc, char **argv);
int job_submit(int argc, char **argv);
int job_graph(int argc, char **argv);
int job_pool(int argc, char **argv);
int job_priority(int argc, char **argv);
int job_comm(int argc, char **argv);
int job_ddp(int argc, char **argv);

// What main() does in a process that the job `start` measures: after START_FIRST comes the side, "weir" or "raw".
#define START_FIRST "first"
int start_first(const char *side);

#endif
