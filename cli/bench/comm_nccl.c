// NCCL's own collectives, beside Weir's of the same ranks and on the same memory: a communicator and
// streams of their own. Ranks of one process call in a group, as NCCL wants of one thread for several
// devices, and NCCL chooses each one's device.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/comm.h"
#include "cli/bench/nccl.h"

struct raw_rank {
    void *context;
    void *stream;
    void *comm;
    char *src;
    char *dst;
};

struct comm_raw {
    struct bench_nccl api;
    struct raw_rank ranks[BENCH_RANKS_MAX];
    uint32_t local_count;
    uint32_t first;
    uint32_t count;
    struct bench_nccl_id id; // of rank 0
    bool failed;             // NCCL may still wait for what was refused
};

// Opening.

static bool take_rank(const struct comm_rank *rank, struct raw_rank *raw)
{
    struct weir_native_device device;
    struct weir_native_buffer src, dst;
    if (weir_device_get_native(rank->device, &device) < 0 ||
        strcmp(device.api, WEIR_NATIVE_CUDA) != 0 || weir_buffer_get_native(rank->src, &src) < 0 ||
        weir_buffer_get_native(rank->dst, &dst) < 0)
        return false;
    raw->context = device.context;
    raw->src = (char *)(uintptr_t)src.address;
    raw->dst = (char *)(uintptr_t)dst.address;
    return true;
}

static bool take_ranks(const struct comm_bench *b, struct comm_raw *raw, char *message, size_t size)
{
    raw->first = b->first;
    raw->count = b->count;
    for (uint32_t i = 0; i < b->local_count; i++) {
        if (!take_rank(&b->ranks[i], &raw->ranks[i])) {
            snprintf(message, size, "the device is none of CUDA");
            return false;
        }
        for (uint32_t k = 0; k < i; k++)
            if (raw->ranks[k].context == raw->ranks[i].context) {
                snprintf(message, size, "ranks share a device, which NCCL refuses");
                return false;
            }
    }
    raw->local_count = b->local_count;
    return true;
}

static bool make_streams(struct comm_raw *raw, char *message, size_t size)
{
    int error = 0;
    for (uint32_t i = 0; i < raw->local_count && error == 0; i++) {
        error = raw->api.cu.cuCtxSetCurrent(raw->ranks[i].context);
        if (error == 0)
            error = raw->api.cu.cuStreamCreateWithPriority(&raw->ranks[i].stream,
                                                           BENCH_STREAM_NON_BLOCKING, 0);
    }
    if (error != 0)
        snprintf(message, size, "the driver refused a stream (%d)", error);
    return error == 0;
}

static int init_ranks(struct comm_raw *raw)
{
    const bool grouped = raw->local_count > 1;
    int error = grouped ? raw->api.ncclGroupStart() : 0;
    for (uint32_t i = 0; i < raw->local_count && error == 0; i++) {
        error = raw->api.cu.cuCtxSetCurrent(raw->ranks[i].context) ? BENCH_NCCL_CUDA_ERROR : 0;
        if (error == 0)
            error = raw->api.ncclCommInitRank(&raw->ranks[i].comm, (int)raw->count, raw->id,
                                              (int)(raw->first + i));
    }
    const int ended = grouped ? raw->api.ncclGroupEnd() : 0;
    return error ? error : ended;
}

static bool join(const struct comm_bench *b, struct comm_raw *raw, char *message, size_t size)
{
    const struct comm_rank *rank = &b->ranks[0];
    if (b->local_count == 1 &&
        bench_nccl_share(rank->device, rank->queue, rank->comm, &raw->id) != WEIR_OK) {
        snprintf(message, size, "%s", weir_last_error_text());
        return false;
    }
    const int error = init_ranks(raw);
    if (error != 0)
        snprintf(message, size, "%s refused a communicator: %s", raw->api.name,
                 raw->api.ncclGetErrorString(error));
    return error == 0;
}

// Whether all ranks say so, since a communicator waits for all.
static bool agree(struct comm_bench *b, bool fine, char *message, size_t size)
{
    const double lacking = comm_slowest(b, fine ? 0 : 1);
    if (fine && lacking != 0)
        snprintf(message, size, "%s",
                 lacking < 0 ? weir_last_error_text() : "another rank lacks it");
    return fine && lacking == 0;
}

struct comm_raw *comm_raw_open(struct comm_bench *b, char *message, size_t size)
{
    struct comm_raw *raw = calloc(1, sizeof *raw);
    snprintf(message, size, "no memory for it");
    bool fine = raw && take_ranks(b, raw, message, size) &&
                bench_nccl_load(&raw->api, b->nccl, message, size) &&
                make_streams(raw, message, size) &&
                bench_nccl_make_id(&raw->api, raw->first, &raw->id, message, size);
    fine = agree(b, fine, message, size);
    if (fine) {
        fine = agree(b, join(b, raw, message, size), message, size);
        raw->failed = !fine;
    }
    if (!fine)
        comm_raw_close(&raw);
    return raw;
}

void comm_raw_close(struct comm_raw **pointer)
{
    struct comm_raw *raw = *pointer;
    *pointer = NULL;
    if (!raw)
        return;
    for (uint32_t i = 0; i < raw->local_count; i++) {
        struct raw_rank *rank = &raw->ranks[i];
        if (rank->comm)
            (raw->failed ? raw->api.ncclCommAbort : raw->api.ncclCommDestroy)(rank->comm);
        if (rank->stream && raw->api.cu.cuCtxSetCurrent(rank->context) == 0)
            raw->api.cu.cuStreamDestroy(rank->stream);
    }
    free(raw);
}

const char *comm_raw_name(const struct comm_raw *raw)
{
    return raw->api.name;
}

// Calls.

struct call {
    const struct bench_nccl *nccl;
    const char *name;
};

static int send(struct call *call, const struct raw_rank *rank, size_t at, size_t count,
                uint32_t peer)
{
    call->name = "ncclSend";
    return call->nccl->ncclSend(rank->src + at * sizeof(float), count, BENCH_NCCL_FLOAT32,
                                (int)peer, rank->comm, rank->stream);
}

static int receive(struct call *call, const struct raw_rank *rank, size_t at, size_t count,
                   uint32_t peer)
{
    call->name = "ncclRecv";
    return call->nccl->ncclRecv(rank->dst + at * sizeof(float), count, BENCH_NCCL_FLOAT32,
                                (int)peer, rank->comm, rank->stream);
}

static int all_to_all(struct call *call, const struct raw_rank *rank, size_t count, uint32_t ranks)
{
    int error = 0;
    for (uint32_t i = 0; i < ranks && error == 0; i++) {
        error = send(call, rank, i * count, count, i);
        error = error ? error : receive(call, rank, i * count, count, i);
    }
    return error;
}

static int exchange(struct call *call, const struct raw_rank *rank, size_t count, uint32_t own,
                    uint32_t ranks)
{
    const int error = send(call, rank, 0, count, (own + 1) % ranks);
    return error ? error : receive(call, rank, 0, count, (own + ranks - 1) % ranks);
}

static int carry(struct call *call, const struct comm_raw *raw, uint32_t index,
                 const struct comm_row *row)
{
    const struct bench_nccl *nccl = call->nccl;
    const struct raw_rank *rank = &raw->ranks[index];
    const size_t count = row->count;
    const int type = BENCH_NCCL_FLOAT32, sum = BENCH_NCCL_SUM;
    switch (row->kind) {
    case WEIR_REDUCE:
        call->name = "ncclReduce";
        return nccl->ncclReduce(rank->src, rank->dst, count, type, sum, 0, rank->comm,
                                rank->stream);
    case WEIR_BROADCAST:
        call->name = "ncclBroadcast";
        return nccl->ncclBroadcast(rank->src, rank->dst, count, type, 0, rank->comm, rank->stream);
    case WEIR_ALL_GATHER:
        call->name = "ncclAllGather";
        return nccl->ncclAllGather(rank->src, rank->dst, count, type, rank->comm, rank->stream);
    case WEIR_REDUCE_SCATTER:
        call->name = "ncclReduceScatter";
        return nccl->ncclReduceScatter(rank->src, rank->dst, count, type, sum, rank->comm,
                                       rank->stream);
    case WEIR_ALL_TO_ALL:
        return all_to_all(call, rank, count, raw->count);
    case WEIR_EXCHANGE:
        return exchange(call, rank, count, raw->first + index, raw->count);
    default:
        call->name = "ncclAllReduce";
        return nccl->ncclAllReduce(rank->src, rank->dst, count, type, sum, rank->comm,
                                   rank->stream);
    }
}

weir_status comm_raw_submit(struct comm_raw *raw, const struct comm_row *row)
{
    const bool grouped =
        raw->local_count > 1 || row->kind == WEIR_ALL_TO_ALL || row->kind == WEIR_EXCHANGE;
    struct call call = {&raw->api, "ncclGroupStart"};
    int error = grouped ? raw->api.ncclGroupStart() : 0;
    for (uint32_t i = 0; i < raw->local_count && error == 0; i++)
        error = carry(&call, raw, i, row);
    const int ended = grouped ? raw->api.ncclGroupEnd() : 0;
    if (error == 0 && ended == 0)
        return WEIR_OK;
    raw->failed = true;
    return bench_nccl_refuse(&raw->api, error ? call.name : "ncclGroupEnd", error ? error : ended);
}

// The context stays current: it is the one that Weir uses too.
weir_status comm_raw_sync(struct comm_raw *raw)
{
    for (uint32_t i = 0; i < raw->local_count; i++) {
        int error = raw->api.cu.cuCtxSetCurrent(raw->ranks[i].context);
        error = error ? error : raw->api.cu.cuStreamSynchronize(raw->ranks[i].stream);
        if (error == 0)
            continue;
        raw->failed = true;
        return bench_driver_refuse("cuStreamSynchronize", error);
    }
    return WEIR_OK;
}
