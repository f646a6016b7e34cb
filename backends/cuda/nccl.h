// What the files of NCCL share.
#ifndef WEIR_BACKENDS_CUDA_NCCL_H
#define WEIR_BACKENDS_CUDA_NCCL_H

#include "backends/cuda/cu.h"
#include "backends/cuda/libraries.h"

struct cu_task; // nccl_comm.c

// The driver takes about a thousand operations before a submit blocks.
enum {
    CU_MARKS = 1024
};

// Events among the calls of a communicator: the oldest that has not been reached first.
struct cu_mark {
    CUevent event;
    uint32_t turn;
};
struct cu_marks {
    struct cu_mark ring[CU_MARKS];
    uint32_t first;
    uint32_t count;
    uint32_t reached; // the turn of the last one that was
};

// One NCCL communicator, and threads that nothing joins and that end it.
struct cu_comm {
    struct cu_device *device;
    struct cu_nccl *nccl;
    ncclComm_t native;
    CUdeviceptr scratch;     // of barriers
    struct cu_task *parting; // for the thread that ends it, which must not lack memory
    uint32_t rank;
    uint32_t count;
    struct cu_comm *next; // in the device's list, under its lock

    // In a row of calls of one queue a call reads and writes these without the lock.
    atomic_bool aborted;
    atomic_bool inside;           // a call of NCCL is under way, which may wait for other ranks
    _Atomic uint32_t next_turn;   // one past the last call that was submitted
    _Atomic uint32_t marked_turn; // earlier ones have a mark after them; written under the lock
    struct cu_queue
        *_Atomic last; // the queue of the last call, written under the lock; NULL: that is
                       // gone, with its work done

    pthread_mutex_t lock;   // of what follows; a leaf but for the driver's records and queries
    struct cu_marks after;  // reached: calls before the turn are complete
    struct cu_marks before; // reached: the call of the turn is due
};

WEIR_DATA_OF(cu_comm_of, struct cu_comm, weir_comm)

// nccl_call.c

// Reports that `call` returned `code`.
WEIR_COLD weir_status cu_nccl_error(const struct cu_comm *comm, const char *call,
                                    ncclResult_t code);

// Before and after the launch of a graph with collectives, for all its communicators, or the first `count` of them; on
// failure none has begun.
weir_status cu_comms_begin_launch(const struct weir_link *link, struct cu_queue *queue,
                                  const struct weir_operation *launch);
void cu_comms_end_launch(const struct weir_link *link, struct cu_queue *queue,
                         const struct weir_operation *launch, uint32_t count);

// Calls NCCL for a COLLECTIVE. Within the device's context.
ncclResult_t cu_nccl_call(const struct weir_link *link, const struct cu_comm *comm,
                          const struct cu_queue *queue, const struct weir_operation *operation,
                          const char **out_call);

#endif
