// NCCL without Weir, and the driver for its streams. Declarations and loaders are those of the backend. Ownership,
// threads and errors are those of bench.h, unless a comment says something else.
#ifndef WEIR_TESTS_BENCH_JOBS_NCCL_H
#define WEIR_TESTS_BENCH_JOBS_NCCL_H

#include "backends/cuda/libraries.h"
#include "backends/cuda/symbols.h"
#include "cli/bench/comm.h"

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

#endif
