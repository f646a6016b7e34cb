// Collectives by NCCL. What moves bytes only is called with bytes, since NCCL has no elements of 16
// bits that are integers. all-to-all, gather and scatter are sends and receives in a group, as
// NCCL's documentation has them; a rank's own part is a copy.
#include <sched.h>

#include "backends/cuda/nccl.h"

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

static ncclDataType_t type_of(weir_datatype element)
{
    static const ncclDataType_t types[] = {
        [WEIR_I8] = ncclInt8,     [WEIR_U8] = ncclUint8,      [WEIR_I32] = ncclInt32,
        [WEIR_U32] = ncclUint32,  [WEIR_I64] = ncclInt64,     [WEIR_U64] = ncclUint64,
        [WEIR_F16] = ncclFloat16, [WEIR_BF16] = ncclBfloat16, [WEIR_F32] = ncclFloat32,
        [WEIR_F64] = ncclFloat64,
    };
    return types[element];
}

static ncclRedOp_t reduction_of(weir_reduction reduction)
{
    static const ncclRedOp_t reductions[] = {
        [WEIR_SUM] = ncclSum,     [WEIR_PRODUCT] = ncclProd, [WEIR_MINIMUM] = ncclMin,
        [WEIR_MAXIMUM] = ncclMax, [WEIR_AVERAGE] = ncclAvg,
    };
    return reductions[reduction];
}

bool cu_comm_takes(const struct weir_link *link, weir_comm *comm,
                   const struct weir_operation *operation)
{
    const weir_collective kind = operation->u.collective.kind;
    const weir_datatype element = operation->u.collective.element;
    (void)link;
    (void)comm;
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
    const ncclDataType_t type = type_of(operation->u.collective.element);
    const ncclRedOp_t reduction = reduction_of(operation->u.collective.reduction);
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

// The root's own part is in its part of the larger range.
static ncclResult_t gather(struct call *call)
{
    ncclResult_t code = ncclSuccess;
    if (!call->dst)
        return trade(call, call->src, 0, NULL, 0);
    code = copy(call, call->dst + call->comm->rank * call->bytes, call->src);
    return code == ncclSuccess ? trade(call, NULL, 0, call->dst, call->bytes) : code;
}

static ncclResult_t scatter(struct call *call)
{
    ncclResult_t code = ncclSuccess;
    if (!call->src)
        return trade(call, NULL, 0, call->dst, 0);
    code = copy(call, call->dst, call->src + call->comm->rank * call->bytes);
    return code == ncclSuccess ? trade(call, call->src, call->bytes, NULL, 0) : code;
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
        return gather(call);
    case WEIR_SCATTER:
        return scatter(call);
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

// With NCCL_COMM_BLOCKING=0 a call returns before its work is in the stream, where later work of the queue would
// overtake it. An abort ends the wait.
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

weir_status cu_submit_collective(const struct weir_link *link, struct cu_queue *queue,
                                 const struct weir_operation *operation)
{
    struct cu_comm *comm = cu_comm_of(link, operation->u.collective.comm);
    const char *call;
    if (!cu_comm_begin(comm, queue, operation->u.collective.turn))
        return weir_host_fail(link->host, WEIR_ERROR_COMM, "create another communicator",
                              "the communicator was aborted");
    const ncclResult_t code = cu_nccl_call(link, comm, queue, operation, &call);
    cu_comm_end(comm, queue, operation->u.collective.turn);
    return code == ncclSuccess ? WEIR_OK : cu_nccl_error(comm, call, code);
}
