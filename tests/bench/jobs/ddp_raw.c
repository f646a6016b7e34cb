// The step without Weir: two streams of the driver's, events between them, the same products of
// cuBLAS, and NCCL called directly on the same buckets.
//
// The context stays current, which is the one that Weir uses too.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/jobs/ddp.h"
#include "tests/bench/jobs/raw.h"

struct ddp_raw {
    struct raw_nccl api;
    CUcontext context;
    CUstream compute, reduce;
    CUevent reduced;
    CUevent *ready; // an event for each layer, the most that there can be buckets; NULL ends them
    ncclComm_t comm;
    ncclUniqueId id; // of rank 0
};

// Opening.

static bool make_streams(struct ddp_raw *raw, size_t layers, char *message, size_t size)
{
    int error = raw->api.cu.cuCtxSetCurrent(raw->context);
    raw->ready = calloc(layers + 1, sizeof *raw->ready);
    error = raw->ready ? error : -1;
    error = error
                ? error
                : raw->api.cu.cuStreamCreateWithPriority(&raw->compute, CU_STREAM_NON_BLOCKING, 0);
    error = error ? error
                  : raw->api.cu.cuStreamCreateWithPriority(&raw->reduce, CU_STREAM_NON_BLOCKING, 0);
    error = error ? error : raw->api.cu.cuEventCreate(&raw->reduced, CU_EVENT_DISABLE_TIMING);
    for (size_t i = 0; i < layers && error == 0; i++)
        error = raw->api.cu.cuEventCreate(&raw->ready[i], CU_EVENT_DISABLE_TIMING);
    if (error != 0)
        snprintf(message, size, "the driver refused streams and events (%d)", error);
    return error == 0;
}

static bool join(struct ddp *ddp, struct ddp_raw *raw, char *message, size_t size)
{
    struct ddp_rank *rank = &ddp->ranks[0];
    if (raw_nccl_share(rank->place->device, rank->place->queue, rank->place->comm, &raw->id) !=
        WEIR_OK) {
        snprintf(message, size, "%s", weir_last_error_text());
        return false;
    }
    int error = raw->api.cu.cuCtxSetCurrent(raw->context) ? ncclUnhandledCudaError : 0;
    if (error == 0)
        error = raw->api.nccl.ncclCommInitRank(&raw->comm, (int)ddp->all.count, raw->id,
                                               (int)ddp->all.first);
    if (error != 0)
        snprintf(message, size, "%s refused a communicator: %s", raw->api.name,
                 raw->api.nccl.ncclGetErrorString(error));
    return error == 0;
}

static bool prepare(struct ddp *ddp, struct ddp_raw *raw, char *message, size_t size)
{
    struct weir_native_device native;
    if (ddp->all.local_count > 1) {
        snprintf(message, size, "it is for one rank a process, as under weir launch");
        return false;
    }
    if (!ddp->blas || weir_device_get_native(ddp->all.ranks[0].device, &native) < 0) {
        snprintf(message, size, "it needs cuBLAS");
        return false;
    }
    raw->context = native.context;
    return raw_nccl_load(&raw->api, ddp->nccl, message, size) &&
           make_streams(raw, (size_t)ddp->layers, message, size) &&
           raw_nccl_make_id(&raw->api, ddp->all.first, &raw->id, message, size);
}

// All ranks have it, or none: a communicator waits for all.
struct ddp_raw *ddp_raw_open(struct ddp *ddp, char *message, size_t size)
{
    struct ddp_raw *raw = calloc(1, sizeof *raw);
    message[0] = '\0';
    const bool ready = raw && prepare(ddp, raw, message, size);
    const double lacking = bench_ranks_slowest(&ddp->all, ready ? 0 : 1);
    if (lacking != 0 && message[0] == '\0')
        snprintf(message, size, "%s",
                 lacking < 0 ? weir_last_error_text() : "another rank lacks something");
    if (!ready || lacking != 0 || !join(ddp, raw, message, size))
        ddp_raw_close(&raw);
    return raw;
}

void ddp_raw_close(struct ddp_raw **raw)
{
    struct ddp_raw *gone = *raw;
    *raw = NULL;
    if (!gone)
        return;
    if (gone->ready && gone->api.cu.cuCtxSetCurrent(gone->context) == 0) {
        if (gone->comm)
            gone->api.nccl.ncclCommDestroy(gone->comm);
        for (size_t i = 0; gone->ready[i]; i++)
            gone->api.cu.cuEventDestroy(gone->ready[i]);
        if (gone->reduced)
            gone->api.cu.cuEventDestroy(gone->reduced);
        if (gone->reduce)
            gone->api.cu.cuStreamDestroy(gone->reduce);
        if (gone->compute)
            gone->api.cu.cuStreamDestroy(gone->compute);
    }
    free(gone->ready);
    free(gone);
}

const char *ddp_raw_name(const struct ddp_raw *raw)
{
    return raw->api.name;
}

// The step.

static weir_status multiply(const struct ddp_raw *raw, struct train_product *product)
{
    const struct weir_native_queue native = {.struct_size = sizeof native,
                                             .api = WEIR_NATIVE_CUDA,
                                             .context = raw->context,
                                             .queue = raw->compute};
    return train_blas_multiply(&native, &product->native);
}

static weir_status reduce(const struct ddp *ddp, const struct ddp_raw *raw,
                          const struct weir_bucket *bucket, uint64_t base)
{
    void *address = (void *)(uintptr_t)(base + bucket->offset);
    int error = raw->api.cu.cuEventRecord(raw->ready[bucket->index], raw->compute);
    error =
        error ? error : raw->api.cu.cuStreamWaitEvent(raw->reduce, raw->ready[bucket->index], 0);
    if (error != 0)
        return raw_cuda_refuse("cuStreamWaitEvent", error);
    error = raw->api.nccl.ncclAllReduce(address, address, bucket->size / ddp->element_size,
                                        ddp->bf16 ? ncclBfloat16 : ncclFloat32, ncclAvg, raw->comm,
                                        raw->reduce);
    return error == 0 ? WEIR_OK : raw_nccl_refuse(&raw->api, "ncclAllReduce", error);
}

static weir_status go_back(const struct ddp *ddp, const struct ddp_raw *raw,
                           const struct ddp_rank *rank, size_t buckets, uint64_t base)
{
    struct weir_bucket bucket;
    weir_status status = weir_buckets_get_bucket(rank->buckets[buckets], 0, &bucket);
    uint32_t done = 0;
    for (size_t i = (size_t)ddp->layers; i-- > 0 && status == WEIR_OK;) {
        status = multiply(raw, &rank->weight[buckets * ddp->layers + i]);
        if (status == WEIR_OK && ++done == bucket.first + bucket.count) {
            status = reduce(ddp, raw, &bucket, base);
            if (status == WEIR_OK && i > 0)
                status = weir_buckets_get_bucket(rank->buckets[buckets], bucket.index + 1, &bucket);
        }
        if (status == WEIR_OK && i > 0)
            status = multiply(raw, &rank->back[i]);
    }
    return status;
}

weir_status ddp_raw_step(const struct ddp *ddp, size_t buckets)
{
    const struct ddp_raw *raw = ddp->raw;
    const struct ddp_rank *rank = &ddp->ranks[0];
    // The first gradient of the backward pass is the first byte of the buckets.
    const uint64_t base = rank->weight[buckets * ddp->layers + ddp->layers - 1].native.c;
    int error = raw->api.cu.cuCtxSetCurrent(raw->context);
    weir_status status = error == 0 ? WEIR_OK : raw_cuda_refuse("cuCtxSetCurrent", error);
    for (size_t i = 0; i < ddp->layers && status == WEIR_OK; i++)
        status = multiply(raw, &rank->forward[i]);
    if (status == WEIR_OK)
        status = go_back(ddp, raw, rank, buckets, base);
    if (status != WEIR_OK)
        return status;
    error = raw->api.cu.cuEventRecord(raw->reduced, raw->reduce);
    error = error ? error : raw->api.cu.cuStreamWaitEvent(raw->compute, raw->reduced, 0);
    error = error ? error : raw->api.cu.cuStreamSynchronize(raw->compute);
    return error == 0 ? WEIR_OK : raw_cuda_refuse("cuStreamSynchronize", error);
}
