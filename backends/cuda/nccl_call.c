// Collectives, as calls of NCCL, and how far they are.
//
// What moves bytes only is called with bytes, since NCCL has no elements of 16
// bits that are integers. all-to-all, gather and scatter are sends and receives in a group, as
// NCCL's documentation has them; a rank's own part is a copy.
#include <sched.h>

#include "backends/cuda/nccl.h"

// In a row of calls there is a mark after so many.
#define MARK_CALLS 16

weir_status cu_nccl_error(const struct cu_comm *comm, const char *call, ncclResult_t code)
{
    struct weir_error detail = {.status = WEIR_ERROR_COMM, .native_code = (int)code};
    const struct nccl_symbols *nccl = &comm->nccl->api;
    const char *last = nccl->ncclGetLastError(NULL);
    snprintf(detail.native_call, sizeof detail.native_call, "%s", call);
    snprintf(detail.native_name, sizeof detail.native_name, "%s", nccl->ncclGetErrorString(code));
    snprintf(detail.remedy, sizeof detail.remedy,
             "NCCL_DEBUG=WARN makes NCCL print what it has met");
    return weir_host_report(comm->device->module->host, &detail, "%s: %s%s%.600s",
                            comm->nccl->engine, detail.native_name, last && last[0] ? ": " : "",
                            last ? last : "");
}

// One call.
struct call {
    const struct cu_comm *comm;
    const struct nccl_symbols *nccl;
    const struct cu_queue *queue;
    const struct weir_operation *operation;
    char *dst; // NULL: this rank writes nothing
    const char *src;
    size_t bytes; // of `count` elements
    const char *name;
};

static const ncclDataType_t types[] = {
    [WEIR_I8] = ncclInt8,     [WEIR_U8] = ncclUint8,      [WEIR_I32] = ncclInt32,
    [WEIR_U32] = ncclUint32,  [WEIR_I64] = ncclInt64,     [WEIR_U64] = ncclUint64,
    [WEIR_F16] = ncclFloat16, [WEIR_BF16] = ncclBfloat16, [WEIR_F32] = ncclFloat32,
    [WEIR_F64] = ncclFloat64,
};

static const ncclRedOp_t reductions[] = {
    [WEIR_SUM] = ncclSum,     [WEIR_PRODUCT] = ncclProd, [WEIR_MINIMUM] = ncclMin,
    [WEIR_MAXIMUM] = ncclMax, [WEIR_AVERAGE] = ncclAvg,
};

bool cu_comm_takes(const struct weir_link *link, weir_comm *comm,
                   const struct weir_operation *operation)
{
    const weir_collective kind = operation->u.collective.kind;
    const weir_datatype element = operation->u.collective.element;
    if (kind != WEIR_ALL_REDUCE && kind != WEIR_REDUCE && kind != WEIR_REDUCE_SCATTER)
        return true;
    return element != WEIR_I16 && element != WEIR_U16;
}

static char *address_of(const struct weir_link *link, const weir_buffer *buffer, size_t offset)
{
    return buffer ? (char *)(uintptr_t)(cu_buffer_of(link, buffer)->address + offset) : NULL;
}

static ncclResult_t reduce(struct call *call)
{
    const struct weir_operation *operation = call->operation;
    const ncclDataType_t type = types[operation->u.collective.element];
    const ncclRedOp_t reduction = reductions[operation->u.collective.reduction];
    const size_t count = operation->u.collective.count;
    CUstream stream = call->queue->stream;
    switch (operation->u.collective.kind) {
    case WEIR_ALL_REDUCE:
        call->name = "ncclAllReduce";
        return call->nccl->ncclAllReduce(call->src, call->dst, count, type, reduction,
                                         call->comm->native, stream);
    case WEIR_REDUCE:
        call->name = "ncclReduce";
        return call->nccl->ncclReduce(call->src, call->dst, count, type, reduction,
                                      (int)operation->u.collective.root, call->comm->native,
                                      stream);
    default:
        call->name = "ncclReduceScatter";
        return call->nccl->ncclReduceScatter(call->src, call->dst, count, type, reduction,
                                             call->comm->native, stream);
    }
}

static ncclResult_t broadcast(struct call *call)
{
    call->name = "ncclBroadcast";
    return call->nccl->ncclBroadcast(call->src ? call->src : call->dst, call->dst, call->bytes,
                                     ncclInt8, (int)call->operation->u.collective.root,
                                     call->comm->native, call->queue->stream);
}

static ncclResult_t all_gather(struct call *call)
{
    call->name = "ncclAllGather";
    return call->nccl->ncclAllGather(call->src, call->dst, call->bytes, ncclInt8,
                                     call->comm->native, call->queue->stream);
}

static ncclResult_t barrier(struct call *call)
{
    void *scratch = (void *)(uintptr_t)call->comm->scratch;
    call->name = "ncclAllReduce";
    return call->nccl->ncclAllReduce(scratch, scratch, 1, ncclInt32, ncclSum, call->comm->native,
                                     call->queue->stream);
}

static ncclResult_t copy(struct call *call, char *dst, const char *src)
{
    const struct cu_symbols *cu = &call->comm->device->module->cu;
    if (dst == src || call->bytes == 0)
        return ncclSuccess;
    call->name = "cuMemcpyDtoDAsync";
    cu_watch_command(call->queue);
    return cu->cuMemcpyDtoDAsync((CUdeviceptr)(uintptr_t)dst, (CUdeviceptr)(uintptr_t)src,
                                 call->bytes, call->queue->stream) == CUDA_SUCCESS
               ? ncclSuccess
               : ncclUnhandledCudaError;
}

static ncclResult_t send(struct call *call, const char *src, size_t size, uint32_t peer)
{
    if (size == 0)
        return ncclSuccess;
    call->name = "ncclSend";
    return call->nccl->ncclSend(src, size, ncclInt8, (int)peer, call->comm->native,
                                call->queue->stream);
}

static ncclResult_t receive(struct call *call, char *dst, size_t size, uint32_t peer)
{
    if (size == 0)
        return ncclSuccess;
    call->name = "ncclRecv";
    return call->nccl->ncclRecv(dst, size, ncclInt8, (int)peer, call->comm->native,
                                call->queue->stream);
}

// This rank's own part, then a group of sends and receives with each other rank. `src` and `dst` are
// NULL where there is none, and advance by `src_step` and `dst_step` with each rank.
static ncclResult_t trade(struct call *call, const char *src, size_t src_step, char *dst,
                          size_t dst_step)
{
    const uint32_t own = call->comm->rank;
    ncclResult_t code = ncclSuccess;
    if (src && dst)
        code = copy(call, dst + own * dst_step, src + own * src_step);
    if (code != ncclSuccess)
        return code;
    call->nccl->ncclGroupStart();
    for (uint32_t i = 0; i < call->comm->count && code == ncclSuccess; i++) {
        if (i == own)
            continue;
        if (src && (src_step || i == call->operation->u.collective.root))
            code = send(call, src + i * src_step, call->bytes, i);
        if (dst && code == ncclSuccess && (dst_step || i == call->operation->u.collective.root))
            code = receive(call, dst + i * dst_step, call->bytes, i);
    }
    const ncclResult_t ended = call->nccl->ncclGroupEnd();
    return code == ncclSuccess ? ended : code;
}

// In place, what is sent is copied first.
static ncclResult_t all_to_all(struct call *call)
{
    const struct cu_device *device = call->comm->device;
    const struct cu_symbols *cu = &device->module->cu;
    const size_t size = call->bytes * call->comm->count;
    CUstream stream = call->queue->stream;
    CUdeviceptr room = 0;
    if (call->src != call->dst || size == 0)
        return trade(call, call->src, call->bytes, call->dst, call->bytes);
    call->name = "cuMemAllocFromPoolAsync";
    if (cu->cuMemAllocFromPoolAsync(&room, size, device->pool, stream) != CUDA_SUCCESS)
        return ncclUnhandledCudaError;
    ncclResult_t code = ncclUnhandledCudaError;
    call->name = "cuMemcpyDtoDAsync";
    cu_watch_command(call->queue);
    if (cu->cuMemcpyDtoDAsync(room, (CUdeviceptr)(uintptr_t)call->src, size, stream) ==
        CUDA_SUCCESS)
        code = trade(call, (const char *)(uintptr_t)room, call->bytes, call->dst, call->bytes);
    cu->cuMemFreeAsync(room, stream);
    return code;
}

static ncclResult_t exchange(const struct weir_link *link, struct call *call)
{
    ncclResult_t code = ncclSuccess;
    call->nccl->ncclGroupStart();
    for (uint32_t i = 0; i < call->operation->u.collective.exchange_count && code == ncclSuccess;
         i++) {
        const struct weir_exchange *part = &call->operation->u.collective.exchanges[i];
        const size_t size = part->count * weir_datatype_size(part->element);
        char *memory = address_of(link, part->buffer, part->offset);
        code = part->receive ? receive(call, memory, size, part->peer)
                             : send(call, memory, size, part->peer);
    }
    const ncclResult_t ended = call->nccl->ncclGroupEnd();
    return code == ncclSuccess ? ended : code;
}

static ncclResult_t carry(const struct weir_link *link, struct call *call)
{
    const uint32_t peer = call->operation->u.collective.root;
    switch (call->operation->u.collective.kind) {
    case WEIR_ALL_REDUCE:
    case WEIR_REDUCE:
    case WEIR_REDUCE_SCATTER:
        return reduce(call);
    case WEIR_BROADCAST:
        return broadcast(call);
    case WEIR_ALL_GATHER:
        return all_gather(call);
    case WEIR_ALL_TO_ALL:
        return all_to_all(call);
    case WEIR_GATHER:
        return trade(call, call->src, 0, call->dst, call->bytes);
    case WEIR_SCATTER:
        return trade(call, call->src, call->bytes, call->dst, 0);
    case WEIR_SEND:
        return send(call, call->src, call->bytes, peer);
    case WEIR_RECV:
        return receive(call, call->dst, call->bytes, peer);
    case WEIR_EXCHANGE:
        return exchange(link, call);
    case WEIR_BARRIER:
        return barrier(call);
    }
    return ncclInvalidArgument;
}

// With NCCL_COMM_BLOCKING=0 a call returns before its work is in the stream, where later work of the queue
// would overtake it. An abort ends the wait.
WEIR_COLD static ncclResult_t await_call(const struct cu_comm *comm)
{
    ncclResult_t code = ncclInProgress;
    while (code == ncclInProgress && !atomic_load(&comm->aborted)) {
        const ncclResult_t asked = comm->nccl->api.ncclCommGetAsyncError(comm->native, &code);
        code = asked == ncclSuccess ? code : asked;
        sched_yield();
    }
    return code;
}

ncclResult_t cu_nccl_call(const struct weir_link *link, const struct cu_comm *comm,
                          const struct cu_queue *queue, const struct weir_operation *operation,
                          const char **out_call)
{
    struct call call = {
        .comm = comm,
        .nccl = &comm->nccl->api,
        .queue = queue,
        .operation = operation,
        .dst = address_of(link, operation->u.collective.dst, operation->u.collective.dst_offset),
        .src = address_of(link, operation->u.collective.src, operation->u.collective.src_offset),
        .bytes =
            operation->u.collective.count * weir_datatype_size(operation->u.collective.element),
        .name = "ncclGroupEnd",
    };
    const ncclResult_t code = carry(link, &call);
    // NCCL launches one kernel for a call or a group of them, unless there is nothing to move.
    if (call.bytes || operation->u.collective.exchange_count ||
        operation->u.collective.kind == WEIR_BARRIER)
        cu_watch_command(queue);
    *out_call = call.name;
    return code == ncclInProgress ? await_call(comm) : code;
}

// Progress.
//
// The submission of collectives, and how far they are. NCCL tells nothing of it. Calls of a communicator
// complete in their order, so an event after one, a mark, tells that all until then are complete, and
// an event before one that it is due.
//
// A mark after each call would cost as much as a twentieth of it. So there is one when its queue gets
// other work, or another queue the next call, either of which could delay a later one; in a row of
// calls one after every MARK_CALLS; and comm_query records one after the last call. There is one
// before a call if its queue has had other work.

// Marks: with the lock, within the device's context.

static CUresult reach(const struct cu_comm *comm, struct cu_marks *marks)
{
    while (marks->count > 0) {
        const struct cu_mark *mark = &marks->ring[marks->first];
        const CUresult code = cu_ask_event(&comm->device->module->cu, mark->event);
        if (code != CUDA_SUCCESS)
            return code == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : code;
        marks->reached = mark->turn;
        marks->first = (marks->first + 1) % CU_MARKS;
        marks->count--;
    }
    return CUDA_SUCCESS;
}

// Where all marks of a full ring are still to be reached the newest one moves on.
static CUresult record(struct cu_comm *comm, struct cu_marks *marks, const struct cu_queue *queue,
                       uint32_t turn)
{
    if (marks->count == CU_MARKS)
        (void)reach(comm, marks); // comm_query meets the error
    const bool full = marks->count == CU_MARKS;
    struct cu_mark *mark = &marks->ring[(marks->first + marks->count - full) % CU_MARKS];
    const struct cu_symbols *cu = &comm->device->module->cu;
    CUresult code = CUDA_SUCCESS;
    if (!mark->event) // its place is used for the first time
        code = cu->cuEventCreate(&mark->event, CU_EVENT_DISABLE_TIMING);
    if (code == CUDA_SUCCESS)
        code = cu->cuEventRecord(mark->event, queue->stream);
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
    comm->marked_turn = next_turn;
    comm->after.reached = next_turn;
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

// Of the oldest call that is not complete.
static bool is_due(struct cu_comm *comm)
{
    (void)reach(comm, &comm->before); // the marks after calls meet the error
    return comm->inside || comm->before.count == 0 ||
           (int32_t)(comm->before.ring[comm->before.first].turn - comm->after.reached) > 0;
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
    CUresult code = reach(comm, &comm->after);
    if (code == CUDA_SUCCESS && comm->after.count == 0)
        code = mark_last(comm);
    progress->turn = comm->after.reached;
    progress->due = is_due(comm);
    pthread_mutex_unlock(&comm->lock);
    // After an abort there is no native communicator.
    const ncclResult_t asked =
        comm->aborted ? ncclSuccess : comm->nccl->api.ncclCommGetAsyncError(comm->native, &failure);
    if (code != CUDA_SUCCESS)
        status = CU_FAIL(comm->device, "cuEventQuery", code, "ask how far NCCL is");
    else if (asked != ncclSuccess || (failure != ncclSuccess && failure != ncclInProgress))
        status =
            cu_nccl_error(comm, "ncclCommGetAsyncError", asked != ncclSuccess ? asked : failure);
    cu_leave(comm->device, &scope);
    return status;
}

// Submission.

// Whether the queue's last work was the communicator's last call. What the program submits to a wrapped
// stream is not seen. Another thread may destroy the last queue, but not this one.
static bool continues(const struct cu_comm *comm, const struct cu_queue *queue)
{
    return atomic_load_explicit(&comm->last, memory_order_relaxed) == queue &&
           queue->carried == comm && !queue->wrapped;
}

// Before and after work of the queue that is the call `turn` of the communicator. Marks that fail are left out:
// comm_query meets the error.
static weir_status begin(struct cu_comm *comm, struct cu_queue *queue, uint32_t turn)
{
    atomic_store(&comm->inside, true); // either this sees the abort, or that sees the call
    if (atomic_load(&comm->aborted)) {
        atomic_store_explicit(&comm->inside, false, memory_order_release);
        return weir_host_fail(comm->device->module->host, WEIR_ERROR_COMM,
                              "create another communicator", "the communicator was aborted");
    }
    if (continues(comm, queue))
        return WEIR_OK;
    if (queue->carried && queue->carried != comm)
        cu_comms_mark_queue(queue);
    pthread_mutex_lock(&comm->lock);
    if (comm->last != queue)
        (void)mark_last(comm);
    (void)record(comm, &comm->before, queue, turn);
    pthread_mutex_unlock(&comm->lock);
    return WEIR_OK;
}

static void end(struct cu_comm *comm, struct cu_queue *queue, uint32_t turn)
{
    const uint32_t marked = atomic_load_explicit(&comm->marked_turn, memory_order_relaxed);
    if (continues(comm, queue) && turn + 1 - marked < MARK_CALLS) {
        atomic_store_explicit(&comm->next_turn, turn + 1, memory_order_release);
    } else {
        pthread_mutex_lock(&comm->lock);
        comm->last = queue;
        comm->next_turn = turn + 1; // it changes with `last`, from which a mark takes the stream
        if (queue->wrapped || turn + 1 - comm->marked_turn >= MARK_CALLS)
            (void)mark_last(comm);
        queue->carried = comm;
        pthread_mutex_unlock(&comm->lock);
    }
    atomic_store_explicit(&comm->inside, false, memory_order_release);
}

weir_status cu_submit_collective(const struct weir_link *link, struct cu_queue *queue,
                                 const struct weir_operation *operation)
{
    struct cu_comm *comm = cu_comm_of(link, operation->u.collective.comm);
    const char *call;
    TRY(begin(comm, queue, operation->u.collective.turn));
    const ncclResult_t code = cu_nccl_call(link, comm, queue, operation, &call);
    end(comm, queue, operation->u.collective.turn);
    return code == ncclSuccess ? WEIR_OK : cu_nccl_error(comm, call, code);
}

// The driver's memory of an all-to-all in place cannot be in a graph that may be launched again while
// it runs.
bool cu_comm_captures(const struct weir_link *link, weir_comm *comm,
                      const struct weir_operation *operation)
{
    return operation->u.collective.kind != WEIR_ALL_TO_ALL ||
           operation->u.collective.dst != operation->u.collective.src ||
           operation->u.collective.dst_offset != operation->u.collective.src_offset;
}

// Launches of graphs.

void cu_comms_end_launch(const struct weir_link *link, struct cu_queue *queue,
                         const struct weir_operation *launch, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct weir_graph_comm *own = &launch->u.graph_comms.comms[i];
        end(cu_comm_of(link, own->comm), queue, own->turn + own->count - 1);
    }
}

weir_status cu_comms_begin_launch(const struct weir_link *link, struct cu_queue *queue,
                                  const struct weir_operation *launch)
{
    weir_status status = WEIR_OK;
    uint32_t begun = 0;
    for (; begun < launch->u.graph_comms.count && status == WEIR_OK; begun += status == WEIR_OK) {
        const struct weir_graph_comm *own = &launch->u.graph_comms.comms[begun];
        status = begin(cu_comm_of(link, own->comm), queue, own->turn);
    }
    if (status < 0)
        cu_comms_end_launch(link, queue, launch, begun);
    return status;
}
