// The submission of collectives, and how far they are. NCCL tells nothing of it. Calls of a communicator
// complete in their order, so an event after one, a mark, tells that all until then are complete, and
// an event before one that it is due.
//
// A mark after each call would cost as much as a twentieth of it. So there is one when its queue gets
// other work, or another queue the next call, either of which could delay a later one; in a row of
// calls one after every CU_MARK_CALLS; and comm_query records one after the last call. There is one
// before a call if its queue has had other work.
#include "backends/cuda/ask.h"
#include "backends/cuda/nccl.h"

// A program that submits far ahead gets more.
#define FIRST_MARKS 16u

// Marks: with the lock, within the device's context.

// Makes room for as many again.
static CUresult grow(const struct cu_comm *comm, struct cu_marks *marks)
{
    const struct cu_module *module = comm->device->module;
    const uint32_t room = marks->room ? 2 * marks->room : FIRST_MARKS;
    struct cu_mark *ring = module->host->allocate(room * sizeof *ring);
    CUresult code = ring ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (!ring)
        return code;
    for (uint32_t i = 0; i < marks->room; i++)
        ring[i] = marks->ring[(marks->first + i) % marks->room];
    module->host->release(marks->ring);
    marks->ring = ring;
    marks->first = 0;
    while (marks->room < room && code == CUDA_SUCCESS) {
        code = module->cu.cuEventCreate(&ring[marks->room].event, CU_EVENT_DISABLE_TIMING);
        marks->room += code == CUDA_SUCCESS;
    }
    return code;
}

CUresult cu_comm_create_marks(struct cu_comm *comm)
{
    const CUresult code = grow(comm, &comm->after);
    return code == CUDA_SUCCESS ? grow(comm, &comm->before) : code;
}

static void destroy(const struct cu_comm *comm, struct cu_marks *marks)
{
    for (uint32_t i = 0; i < marks->room; i++)
        comm->device->module->cu.cuEventDestroy(marks->ring[i].event);
    comm->device->module->host->release(marks->ring);
}

void cu_comm_destroy_marks(struct cu_comm *comm)
{
    destroy(comm, &comm->after);
    destroy(comm, &comm->before);
}

static CUresult reach(const struct cu_comm *comm, struct cu_marks *marks, uint32_t *out_turn)
{
    while (marks->count > 0) {
        const struct cu_mark *mark = &marks->ring[marks->first];
        const CUresult code = cu_ask_event(&comm->device->module->cu, mark->event);
        if (code != CUDA_SUCCESS)
            return code == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : code;
        *out_turn = mark->turn;
        marks->first = (marks->first + 1) % marks->room;
        marks->count--;
    }
    return CUDA_SUCCESS;
}

// Those that have been reached make room, or more are made.
static bool has_room(struct cu_comm *comm, struct cu_marks *marks)
{
    uint32_t reached = comm->done_turn;
    if (marks->count == marks->room)
        (void)reach(comm, marks, &reached); // comm_query meets the error
    if (marks == &comm->after)
        comm->done_turn = reached;
    if (marks->count == marks->room)
        (void)grow(comm, marks);
    return marks->count < marks->room;
}

// Without room the newest one moves on.
static CUresult record(struct cu_comm *comm, struct cu_marks *marks, const struct cu_queue *queue,
                       uint32_t turn)
{
    const bool full = !has_room(comm, marks);
    struct cu_mark *mark = &marks->ring[(marks->first + marks->count - full) % marks->room];
    const CUresult code = comm->device->module->cu.cuEventRecord(mark->event, queue->stream);
    if (code != CUDA_SUCCESS)
        return code;
    mark->turn = turn;
    marks->count += !full;
    return CUDA_SUCCESS;
}

// A call that is submitted meanwhile may come before the mark too.
static CUresult mark_last(struct cu_comm *comm)
{
    const struct cu_queue *last = comm->last;
    const uint32_t next_turn = comm->next_turn;
    if (!last || comm->marked_turn == next_turn)
        return CUDA_SUCCESS;
    const CUresult code = record(comm, &comm->after, last, next_turn);
    if (code == CUDA_SUCCESS)
        comm->marked_turn = next_turn;
    return code;
}

// Queues.

static void for_comms_of(struct cu_queue *queue, void (*visit)(struct cu_comm *comm))
{
    pthread_mutex_lock(&queue->device->lock);
    for (struct cu_comm *comm = queue->device->comms; comm; comm = comm->next) {
        pthread_mutex_lock(&comm->lock);
        if (comm->last == queue)
            visit(comm);
        pthread_mutex_unlock(&comm->lock);
    }
    pthread_mutex_unlock(&queue->device->lock);
}

static void forget(struct cu_comm *comm)
{
    const uint32_t next_turn = comm->next_turn;
    comm->last = NULL;
    comm->done_turn = next_turn;
    comm->marked_turn = next_turn;
    comm->after.count = 0;
}

void cu_comms_forget_queue(struct cu_queue *queue)
{
    for_comms_of(queue, forget);
}

static void mark(struct cu_comm *comm)
{
    (void)mark_last(comm); // comm_query meets the error
}

void cu_comms_mark_queue(struct cu_queue *queue)
{
    queue->carried = NULL;
    for_comms_of(queue, mark);
}

// Progress.

static CUresult look(struct cu_comm *comm)
{
    CUresult code = reach(comm, &comm->after, &comm->done_turn);
    if (code == CUDA_SUCCESS && comm->after.count == 0)
        code = mark_last(comm);
    return code;
}

// Of the oldest call that is not complete.
static bool is_due(struct cu_comm *comm)
{
    uint32_t reached;
    (void)reach(comm, &comm->before, &reached); // the marks after calls meet the error
    return comm->inside || comm->before.count == 0 ||
           (int32_t)(comm->before.ring[comm->before.first].turn - comm->done_turn) > 0;
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
    CUresult code = look(comm);
    progress->turn = comm->done_turn;
    progress->due = is_due(comm);
    pthread_mutex_unlock(&comm->lock);
    // After an abort there is no native communicator.
    const ncclResult_t asked =
        comm->aborted ? ncclSuccess : comm->nccl->api.ncclCommGetAsyncError(comm->native, &failure);
    if (code != CUDA_SUCCESS)
        status = cu_native_error(comm->device, "cuEventQuery", code, "ask how far NCCL is");
    else if (asked != ncclSuccess || (failure != ncclSuccess && failure != ncclInProgress))
        status =
            cu_nccl_error(comm, "ncclCommGetAsyncError", asked != ncclSuccess ? asked : failure);
    cu_leave(comm->device, &scope);
    return status;
}

// Submission.

// Marks that fail are left out: comm_query meets the error.
void cu_comm_mark_begin(struct cu_comm *comm, struct cu_queue *queue, uint32_t turn)
{
    if (queue->carried && queue->carried != comm)
        cu_comms_mark_queue(queue);
    pthread_mutex_lock(&comm->lock);
    if (comm->last != queue)
        (void)mark_last(comm);
    if (has_room(comm, &comm->before))
        (void)record(comm, &comm->before, queue, turn);
    pthread_mutex_unlock(&comm->lock);
}

// `next_turn` changes with `last`, from which a mark takes the stream.
void cu_comm_mark_end(struct cu_comm *comm, struct cu_queue *queue, uint32_t next_turn)
{
    pthread_mutex_lock(&comm->lock);
    comm->last = queue;
    comm->next_turn = next_turn;
    if (queue->wrapped || next_turn - comm->marked_turn >= CU_MARK_CALLS)
        (void)mark_last(comm);
    queue->carried = comm;
    pthread_mutex_unlock(&comm->lock);
}
