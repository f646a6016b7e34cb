// What the files of NCCL share.
//
//   nccl.c         the library
//   nccl_comm.c    communicators: their creation and end
//   nccl_task.c    the threads of these
//   nccl_progress.c  their submission, and how far they are
//   nccl_call.c    collectives, as calls of NCCL
//   nccl_graph.c   collectives in graphs
#ifndef WEIR_BACKENDS_CUDA_NCCL_H
#define WEIR_BACKENDS_CUDA_NCCL_H

#include "backends/cuda/cu.h"
#include "backends/cuda/nccl_api.h"
#include "base/barrier.h"

enum {
    CU_NCCL_REASON = 384
};

struct cu_nccl {
    pthread_mutex_t lock; // while it is loaded
    const char *setting;  // "auto", "off", or a path
    bool loaded;
    atomic_uint comms; // communicators that exist
    int version;       // 22809 is 2.28.9
    char engine[32];
    struct nccl_symbols api;
};

// Loads the library at the first call. False: there is none, with a clause in `reason`.
bool cu_nccl_load(struct cu_nccl *nccl, char reason[CU_NCCL_REASON]);

struct cu_task; // nccl_task.h

// Events among the calls of a communicator: the oldest that has not been reached first.
struct cu_mark {
    CUevent event;
    uint32_t turn;
};
struct cu_marks {
    struct cu_mark *ring;
    uint32_t room;
    uint32_t first;
    uint32_t count;
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
    struct cu_comm **link;

    // In a row of calls of one queue a call reads and writes these without the lock.
    atomic_bool aborted;
    atomic_bool inside;           // a call of NCCL is under way, which may wait for other ranks
    _Atomic uint32_t next_turn;   // one past the last call that was submitted
    _Atomic uint32_t marked_turn; // earlier ones have a mark after them; written under the lock
    struct cu_queue
        *_Atomic last; // the queue of the last call, written under the lock; NULL: that is
                       // gone, with its work done

    pthread_mutex_t lock;   // of what follows; a leaf but for the driver's records and queries
    uint32_t done_turn;     // earlier ones are complete
    struct cu_marks after;  // reached: calls before the turn are complete
    struct cu_marks before; // reached: the call of the turn is due
};

static inline struct cu_comm *cu_comm_of(const struct weir_link *link, const weir_comm *comm)
{
    return weir_comm_data(link, comm);
}

// Reports that `call` returned `code`.
WEIR_COLD weir_status cu_nccl_error(const struct cu_comm *comm, const char *call,
                                    ncclResult_t code);

// nccl_progress.c: the marks of a communicator, within the device's context.
CUresult cu_comm_create_marks(struct cu_comm *comm);
void cu_comm_destroy_marks(struct cu_comm *comm);

// nccl_progress.c: the marks of a call that does not continue a row of calls of its queue.
void cu_comm_mark_begin(struct cu_comm *comm, struct cu_queue *queue, uint32_t turn);
void cu_comm_mark_end(struct cu_comm *comm, struct cu_queue *queue, uint32_t next_turn);

// In a row of calls there is a mark after so many.
#define CU_MARK_CALLS 16

// Whether the queue's last work was the communicator's last call. What the program submits to a wrapped
// stream is not seen. Another thread may destroy the last queue, but not this one.
static inline bool cu_comm_continues(const struct cu_comm *comm, const struct cu_queue *queue)
{
    return atomic_load_explicit(&comm->last, memory_order_relaxed) == queue &&
           queue->carried == comm && !queue->wrapped;
}

// Before and after work of the queue that is the call `turn` of the communicator. False: it was aborted.
static inline bool cu_comm_begin(struct cu_comm *comm, struct cu_queue *queue, uint32_t turn)
{
    atomic_store_explicit(&comm->inside, true, memory_order_relaxed);
    weir_barrier_light(); // either this sees the abort, or that sees the call
    if (atomic_load_explicit(&comm->aborted, memory_order_acquire)) {
        atomic_store_explicit(&comm->inside, false, memory_order_release);
        return false;
    }
    if (!cu_comm_continues(comm, queue))
        cu_comm_mark_begin(comm, queue, turn);
    return true;
}

static inline void cu_comm_end(struct cu_comm *comm, struct cu_queue *queue, uint32_t turn)
{
    const uint32_t marked = atomic_load_explicit(&comm->marked_turn, memory_order_relaxed);
    if (!cu_comm_continues(comm, queue) || turn + 1 - marked >= CU_MARK_CALLS)
        cu_comm_mark_end(comm, queue, turn + 1);
    else
        atomic_store_explicit(&comm->next_turn, turn + 1, memory_order_release);
    atomic_store_explicit(&comm->inside, false, memory_order_release);
}

// nccl_graph.c: the same for all communicators of a launch of a graph; on failure none has begun.
weir_status cu_comms_begin_launch(const struct weir_link *link, struct cu_queue *queue,
                                  const struct weir_operation *launch);
void cu_comms_end_launch(const struct weir_link *link, struct cu_queue *queue,
                         const struct weir_operation *launch);

// Calls NCCL for a COLLECTIVE. Within the device's context.
ncclResult_t cu_nccl_call(const struct weir_link *link, const struct cu_comm *comm,
                          const struct cu_queue *queue, const struct weir_operation *operation,
                          const char **out_call);

#endif
