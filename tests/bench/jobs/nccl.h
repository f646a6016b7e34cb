// NCCL without Weir: a communicator and a stream for the rank of this process. Declarations are those of the backend.
// Ownership, threads and errors are those of bench.h, unless a comment says something else.
#ifndef WEIR_TESTS_BENCH_JOBS_NCCL_H
#define WEIR_TESTS_BENCH_JOBS_NCCL_H

#include "backends/cuda/libraries.h"
#include "cli/bench/comm.h"
#include "tests/bench/jobs/drivers.h"

struct raw_nccl {
    struct nccl_symbols nccl;
    char name[32];    // "NCCL 2.28.9"
    struct side cuda; // on Weir's device; queue 0 is the communicator's
    ncclComm_t comm;
    ncclUniqueId id; // of rank 0
};

// On all ranks or on none. `file` NULL: the libnccl.so.2 that is loaded, else the one that the linker finds. False,
// with a sentence in `message`, also where it is older than what Weir takes.
bool raw_nccl_open(struct raw_nccl *raw, const struct bench_ranks *all, const char *file,
                   char *message, size_t size);

// Ends the command, unless the call of NCCL has succeeded.
void raw_nccl_check(struct raw_nccl *raw, ncclResult_t code, const char *call);
#define RAW_NCCL(raw, name, ...) raw_nccl_check((raw), (raw)->nccl.name(__VA_ARGS__), #name)

#endif
