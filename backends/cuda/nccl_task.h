// Work of threads that nothing joins, since it may wait for other ranks without end: the creation of a
// communicator of NCCL, its end and its abort.
#ifndef WEIR_BACKENDS_CUDA_NCCL_TASK_H
#define WEIR_BACKENDS_CUDA_NCCL_TASK_H

#include "backends/cuda/nccl.h"

// Shared by the thread and one other.
struct cu_task {
    const struct weir_host *host;
    struct cu_comm_threads *comm_threads;
    CUresult (*set_context)(CUcontext);
    CUresult (*set_capture_mode)(CUstreamCaptureMode *);
    CUcontext context;
    const struct nccl_symbols *nccl;
    ncclComm_t native;
    ncclResult_t (*end)(ncclComm_t); // ncclCommDestroy or ncclCommAbort; NULL: create

    // Of a creation.
    ncclUniqueId id;
    int rank;
    int count;
    ncclResult_t code;
    bool done; // under the lock of the threads, as is what follows
    bool abandoned;
};

// NULL if out of memory. It is released with the host's release(), or by its thread.
struct cu_task *cu_task_create(const struct cu_comm *comm);

// Starts a thread that creates task->native, and belongs to what waits for it, unless that sets
// `abandoned`; or one that ends it, and to which the task belongs. False: there is no thread.
bool cu_task_start_creation(struct cu_task *task);
bool cu_task_start_end(struct cu_task *task);

// Waits, at most until then, while many ends are under way on the device: until its end each communicator has
// its memory and its threads, and NCCL's end takes longer than its creation may.
void cu_task_await_ends(struct cu_comm_threads *comm_threads, uint64_t until_ns);

// Waits for a creation. False: it takes longer.
bool cu_task_wait(struct cu_task *task, uint64_t until_ns);

// The last one to look at a creation. False: it is not done, and the task belongs to its thread.
bool cu_task_take(struct cu_task *task);

#endif
