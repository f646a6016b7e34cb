// NCCL without Weir: a communicator and a stream for the rank of this process. Declarations and loaders are those of the backend. Ownership, threads and errors are those of bench.h, unless a comment says
// something else.
#ifndef WEIR_TESTS_BENCH_JOBS_NCCL_H
#define WEIR_TESTS_BENCH_JOBS_NCCL_H

#include "backends/cuda/libraries.h"
#include "backends/cuda/symbols.h"
#include "cli/bench/comm.h"

struct raw_nccl {
    struct nccl_symbols nccl;
    struct cu_symbols cu;
    char name[32]; // "NCCL 2.28.9"
    void *context; // that of Weir's device
    CUstream stream;
    ncclComm_t comm;
    ncclUniqueId id; // of rank 0
    bool failed;     // NCCL may still wait for what was refused
};

// On all ranks or on none, `wanted` on each. `file` NULL: the libnccl.so.2 that is loaded, else the one that the linker
// finds. False, with a sentence in `message` unless it is not wanted, also where it is older than what Weir takes.
bool raw_nccl_open(struct raw_nccl *raw, const struct bench_ranks *all, bool wanted,
                   const char *file, char *message, size_t size);

// End the command, unless the call of NCCL or of the driver has succeeded.
void raw_nccl_check(struct raw_nccl *raw, ncclResult_t code, const char *call);
void raw_nccl_check_driver(struct raw_nccl *raw, CUresult code, const char *call);
#define RAW_NCCL(raw, name, ...) raw_nccl_check((raw), (raw)->nccl.name(__VA_ARGS__), #name)
#define RAW_CU(raw, name, ...) raw_nccl_check_driver((raw), (raw)->cu.name(__VA_ARGS__), #name)

#endif
