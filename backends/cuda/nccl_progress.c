// The submission of collectives, and how far they are. NCCL tells nothing of it. Calls of a communicator
// complete in their order, so an event after the last one, recorded when comm_query asks, tells that
// all are complete; an event before a call, at most one every BEFORE_NS, that it is due.
#include "backends/cuda/nccl.h"
#include "base/clock.h"

#define BEFORE_NS UINT64_C(5000000)

void cu_comms_forget_queue(struct cu_queue *queue)
{
    pthread_mutex_lock(&queue->device->lock);
    for (struct cu_comm *comm = queue->device->comms; comm; comm = comm->next) {
        pthread_mutex_lock(&comm->lock);
        if (comm->last == queue) {
            comm->last = NULL;
            comm->done_turn = comm->next_turn;
            comm->after_pending = false;
        }
        pthread_mutex_unlock(&comm->lock);
    }
    pthread_mutex_unlock(&queue->device->lock);
}

// With the lock, within the device's context.
static CUresult look_after(struct cu_comm *comm)
{
    const struct cu_symbols *cu = &comm->device->module->cu;
    CUresult code = CUDA_SUCCESS;
    if (comm->after_pending) {
        code = cu->cuEventQuery(comm->after);
        if (code == CUDA_ERROR_NOT_READY)
            return CUDA_SUCCESS;
        comm->after_pending = false;
        comm->done_turn = comm->after_turn;
    }
    if (code != CUDA_SUCCESS || comm->done_turn == comm->next_turn || !comm->last)
        return code;
    code = cu->cuEventRecord(comm->after, comm->last->stream);
    comm->after_pending = code == CUDA_SUCCESS;
    comm->after_turn = comm->next_turn;
    return code;
}

static bool is_due(struct cu_comm *comm)
{
    const struct cu_symbols *cu = &comm->device->module->cu;
    if (comm->before_pending && cu->cuEventQuery(comm->before) != CUDA_ERROR_NOT_READY)
        comm->before_pending = false;
    return comm->inside || !comm->before_pending;
}

weir_status cu_comm_query(const struct weir_link *link, weir_comm *object,
                          struct weir_comm_progress *progress)
{
    struct cu_comm *comm = cu_comm_of(link, object);
    struct cu_scope scope;
    ncclResult_t failure = ncclSuccess;
    weir_status status = cu_enter(comm->device, &scope);
    if (status < 0)
        return status;
    pthread_mutex_lock(&comm->lock);
    CUresult code = look_after(comm);
    progress->turn = comm->done_turn;
    progress->due = is_due(comm);
    pthread_mutex_unlock(&comm->lock);
    const ncclResult_t asked = comm->nccl->api.ncclCommGetAsyncError(comm->native, &failure);
    if (code != CUDA_SUCCESS)
        status = cu_native_error(comm->device, "cuEventQuery", code, "ask how far NCCL is");
    else if (asked != ncclSuccess || (failure != ncclSuccess && failure != ncclInProgress))
        status =
            cu_nccl_error(comm, "ncclCommGetAsyncError", asked != ncclSuccess ? asked : failure);
    cu_leave(comm->device, &scope);
    return status;
}

// Submission.

// False: it was aborted.
static bool begin(struct cu_comm *comm, const struct cu_queue *queue)
{
    const struct cu_symbols *cu = &comm->device->module->cu;
    const uint64_t now_ns = weir_clock_now_ns();
    pthread_mutex_lock(&comm->lock);
    const bool alive = !comm->aborted;
    comm->inside = alive;
    if (alive && !comm->before_pending && now_ns - comm->before_ns >= BEFORE_NS) {
        comm->before_ns = now_ns;
        comm->before_pending = cu->cuEventRecord(comm->before, queue->stream) == CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&comm->lock);
    return alive;
}

static void end(struct cu_comm *comm, struct cu_queue *queue, uint32_t turn)
{
    pthread_mutex_lock(&comm->lock);
    comm->inside = false;
    comm->last = queue;
    comm->next_turn = turn + 1;
    pthread_mutex_unlock(&comm->lock);
}

weir_status cu_submit_collective(const struct weir_link *link, struct cu_queue *queue,
                                 const struct weir_operation *operation)
{
    struct cu_comm *comm = cu_comm_of(link, operation->u.collective.comm);
    const char *call;
    if (!begin(comm, queue))
        return weir_host_fail(link->host, WEIR_ERROR_COMM, "create another communicator",
                              "the communicator was aborted");
    const ncclResult_t code = cu_nccl_call(link, comm, queue, operation, &call);
    end(comm, queue, operation->u.collective.turn);
    return code == ncclSuccess ? WEIR_OK : cu_nccl_error(comm, call, code);
}
