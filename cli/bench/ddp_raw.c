// The step without Weir: two streams of the driver's, events between them, the same products of
// cuBLAS, and NCCL called directly on the same buckets.
//
// The context stays current, which is the one that Weir uses too.
//
// The few declarations are here, so that the command builds without a toolkit and without NCCL; names
// and values are theirs.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/kit/symbols.h>

#include "cli/bench/ddp.h"

enum {
    STREAM_NON_BLOCKING = 1,
    EVENT_DISABLE_TIMING = 2,
    NCCL_FLOAT32 = 7,
    NCCL_BFLOAT16 = 9,
    NCCL_AVG = 4
};

struct unique_id {
    char bytes[128];
};

struct driver_api {
    int (*set_context)(void *context);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*stream_sync)(void *stream);
    int (*stream_wait)(void *stream, void *event, unsigned flags);
    int (*event_create)(void **event, unsigned flags);
    int (*event_destroy)(void *event);
    int (*event_record)(void *event, void *stream);
};

static const struct weir_kit_symbol driver_symbols[] = {
    {"cuCtxSetCurrent", offsetof(struct driver_api, set_context), false},
    {"cuStreamCreate", offsetof(struct driver_api, stream_create), false},
    {"cuStreamDestroy_v2", offsetof(struct driver_api, stream_destroy), false},
    {"cuStreamSynchronize", offsetof(struct driver_api, stream_sync), false},
    {"cuStreamWaitEvent", offsetof(struct driver_api, stream_wait), false},
    {"cuEventCreate", offsetof(struct driver_api, event_create), false},
    {"cuEventDestroy_v2", offsetof(struct driver_api, event_destroy), false},
    {"cuEventRecord", offsetof(struct driver_api, event_record), false},
};

struct nccl_api {
    int (*get_version)(int *version);
    int (*get_unique_id)(struct unique_id *id);
    int (*init_rank)(void **comm, int count, struct unique_id id, int rank);
    int (*destroy)(void *comm);
    int (*all_reduce)(const void *src, void *dst, size_t count, int type, int reduction, void *comm,
                      void *stream);
};

static const struct weir_kit_symbol nccl_symbols[] = {
    {"ncclGetVersion", offsetof(struct nccl_api, get_version), false},
    {"ncclGetUniqueId", offsetof(struct nccl_api, get_unique_id), false},
    {"ncclCommInitRank", offsetof(struct nccl_api, init_rank), false},
    {"ncclCommDestroy", offsetof(struct nccl_api, destroy), false},
    {"ncclAllReduce", offsetof(struct nccl_api, all_reduce), false},
};

struct ddp_raw {
    struct driver_api cu;
    struct nccl_api nccl;
    void *context;
    void *compute;
    void *reduce;
    void *reduced;
    void **ready; // an event for each layer, the most that there can be buckets; NULL ends them
    void *comm;
    int version;
};

// Opening.

static bool load(struct ddp_raw *raw, const char *nccl, char *message, size_t size)
{
    const char *const driver[] = {"libcuda.so.1"};
    const char *const library[] = {nccl ? nccl : "libnccl.so.2"};
    void *cuda = weir_kit_library_open(driver, 1, message, size);
    void *opened = cuda ? weir_kit_library_open(library, 1, message, size) : NULL;
    return opened &&
           weir_kit_symbols_load(cuda, "libcuda", driver_symbols,
                                 sizeof driver_symbols / sizeof *driver_symbols, &raw->cu, message,
                                 size) &&
           weir_kit_symbols_load(opened, "libnccl", nccl_symbols,
                                 sizeof nccl_symbols / sizeof *nccl_symbols, &raw->nccl, message,
                                 size);
}

static bool make_streams(struct ddp_raw *raw, size_t layers, char *message, size_t size)
{
    int error = raw->cu.set_context(raw->context);
    raw->ready = calloc(layers + 1, sizeof(void *));
    error = raw->ready ? error : -1;
    error = error ? error : raw->cu.stream_create(&raw->compute, STREAM_NON_BLOCKING);
    error = error ? error : raw->cu.stream_create(&raw->reduce, STREAM_NON_BLOCKING);
    error = error ? error : raw->cu.event_create(&raw->reduced, EVENT_DISABLE_TIMING);
    for (size_t i = 0; i < layers && error == 0; i++)
        error = raw->cu.event_create(&raw->ready[i], EVENT_DISABLE_TIMING);
    if (error != 0)
        snprintf(message, size, "the driver refused streams and events (%d)", error);
    return error == 0;
}

// Rank 0's id comes to the others through the communicator that there is.
static bool share_id(struct ddp *ddp, struct unique_id *id)
{
    struct ddp_rank *rank = &ddp->ranks[0];
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = "ddp/id",
                                              .size = sizeof *id};
    weir_buffer *buffer = NULL;
    const bool fine = weir_buffer_create(rank->place->device, &params, &buffer) == WEIR_OK &&
                      weir_upload(rank->queue, buffer, 0, id, sizeof *id) == WEIR_OK &&
                      weir_queue_broadcast(rank->queue, rank->place->comm, buffer, 0, buffer, 0,
                                           sizeof *id, WEIR_U8, 0) == WEIR_OK &&
                      weir_download(rank->queue, id, buffer, 0, sizeof *id) == WEIR_OK;
    weir_buffer_destroy(&buffer);
    return fine;
}

static bool join(struct ddp *ddp, struct ddp_raw *raw, char *message, size_t size)
{
    struct unique_id id = {{0}};
    int error = raw->nccl.get_version(&raw->version);
    if (ddp->all.first == 0 && error == 0)
        error = raw->nccl.get_unique_id(&id);
    if (!share_id(ddp, &id)) {
        snprintf(message, size, "%s", weir_last_error_text());
        return false;
    }
    if (error == 0 && raw->cu.set_context(raw->context) == 0)
        error = raw->nccl.init_rank(&raw->comm, (int)ddp->all.count, id, (int)ddp->all.first);
    if (error != 0)
        snprintf(message, size, "NCCL refused a communicator (%d)", error);
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
    return load(raw, ddp->nccl, message, size) &&
           make_streams(raw, (size_t)ddp->layers, message, size);
}

// All ranks have it, or none: a communicator waits for all.
struct ddp_raw *ddp_raw_open(struct ddp *ddp, char *message, size_t size)
{
    struct ddp_raw *raw = calloc(1, sizeof *raw);
    message[0] = '\0';
    const bool ready = raw && prepare(ddp, raw, message, size);
    const double lacking = ddp_slowest(ddp, ready ? 0 : 1);
    if (lacking != 0 && message[0] == '\0')
        snprintf(message, size, "another rank lacks something");
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
    if (gone->ready && gone->cu.set_context(gone->context) == 0) {
        if (gone->comm)
            gone->nccl.destroy(gone->comm);
        for (size_t i = 0; gone->ready[i]; i++)
            gone->cu.event_destroy(gone->ready[i]);
        if (gone->reduced)
            gone->cu.event_destroy(gone->reduced);
        if (gone->reduce)
            gone->cu.stream_destroy(gone->reduce);
        if (gone->compute)
            gone->cu.stream_destroy(gone->compute);
    }
    free(gone->ready);
    free(gone);
}

int ddp_raw_version(const struct ddp_raw *raw)
{
    return raw->version;
}

// The step.

static weir_status refuse(const char *call, int error)
{
    struct weir_error detail = {.status = WEIR_ERROR_DEVICE, .native_code = error};
    snprintf(detail.message, sizeof detail.message, "the raw step was refused");
    snprintf(detail.native_call, sizeof detail.native_call, "%s", call);
    return weir_error_set(&detail);
}

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
    int error = raw->cu.event_record(raw->ready[bucket->index], raw->compute);
    error = error ? error : raw->cu.stream_wait(raw->reduce, raw->ready[bucket->index], 0);
    if (error != 0)
        return refuse("cuStreamWaitEvent", error);
    error = raw->nccl.all_reduce(address, address, bucket->size / ddp->element_size,
                                 ddp->bf16 ? NCCL_BFLOAT16 : NCCL_FLOAT32, NCCL_AVG, raw->comm,
                                 raw->reduce);
    return error == 0 ? WEIR_OK : refuse("ncclAllReduce", error);
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
    int error = raw->cu.set_context(raw->context);
    weir_status status = error == 0 ? WEIR_OK : refuse("cuCtxSetCurrent", error);
    for (size_t i = 0; i < ddp->layers && status == WEIR_OK; i++)
        status = multiply(raw, &rank->forward[i]);
    if (status == WEIR_OK)
        status = go_back(ddp, raw, rank, buckets, base);
    if (status != WEIR_OK)
        return status;
    error = raw->cu.event_record(raw->reduced, raw->reduce);
    error = error ? error : raw->cu.stream_wait(raw->compute, raw->reduced, 0);
    error = error ? error : raw->cu.stream_sync(raw->compute);
    return error == 0 ? WEIR_OK : refuse("cuStreamSynchronize", error);
}
