// The step without Weir: two streams of the driver's, events between them, the same products of
// cuBLAS, and NCCL called directly on the same buckets.
//
// The context stays current, which is the one that Weir uses too.
#include <stdio.h>

#include "tests/bench/jobs/ddp.h"
#include "tests/bench/jobs/nccl.h"

struct ddp_raw {
    struct raw_nccl api; // whose stream reduces
    CUstream compute;
    CUevent reduced;
    CUevent *ready; // an event for each layer, the most that there can be buckets; NULL ends them
};

#define NCCL(raw, name, ...) raw_nccl_check(&(raw)->api, (raw)->api.nccl.name(__VA_ARGS__), #name)
#define CU(raw, name, ...) \
    raw_nccl_check_driver(&(raw)->api, (raw)->api.cu.name(__VA_ARGS__), #name)

// Opening.

static void close_raw(void *object, void *with)
{
    struct ddp_raw *raw = object;
    (void)with;
    if (raw->api.cu.cuCtxSetCurrent(raw->api.context) != CUDA_SUCCESS)
        return;
    for (size_t i = 0; raw->ready[i]; i++)
        raw->api.cu.cuEventDestroy(raw->ready[i]);
    if (raw->reduced)
        raw->api.cu.cuEventDestroy(raw->reduced);
    if (raw->compute)
        raw->api.cu.cuStreamDestroy(raw->compute);
}

struct ddp_raw *ddp_raw_open(struct ddp *ddp, char *message, size_t size)
{
    struct ddp_raw *raw = cli_allocate(1, sizeof *raw);
    snprintf(message, size, "it needs cuBLAS");
    if (!raw_nccl_open(&raw->api, &ddp->all, ddp->blas, ddp->nccl, message, size))
        return NULL;
    raw->ready = cli_allocate((size_t)ddp->layers + 1, sizeof *raw->ready);
    cli_own(close_raw, raw, NULL);
    CU(raw, cuCtxSetCurrent, raw->api.context);
    CU(raw, cuStreamCreateWithPriority, &raw->compute, CU_STREAM_NON_BLOCKING, 0);
    CU(raw, cuEventCreate, &raw->reduced, CU_EVENT_DISABLE_TIMING);
    for (size_t i = 0; i < ddp->layers; i++)
        CU(raw, cuEventCreate, &raw->ready[i], CU_EVENT_DISABLE_TIMING);
    return raw;
}

const char *ddp_raw_name(const struct ddp_raw *raw)
{
    return raw->api.name;
}

// The step.

static void multiply(const struct ddp *ddp, struct train_product *product)
{
    const struct weir_native_queue native = {.struct_size = sizeof native,
                                             .api = WEIR_NATIVE_CUDA,
                                             .context = ddp->raw->api.context,
                                             .queue = ddp->raw->compute};
    cli_fine(train_blas_multiply(&native, &product->native));
}

static void reduce(const struct ddp *ddp, const struct weir_bucket *bucket, uint64_t base)
{
    struct ddp_raw *raw = ddp->raw;
    void *address = (void *)(uintptr_t)(base + bucket->offset);
    CU(raw, cuEventRecord, raw->ready[bucket->index], raw->compute);
    CU(raw, cuStreamWaitEvent, raw->api.stream, raw->ready[bucket->index], 0);
    NCCL(raw, ncclAllReduce, address, address, bucket->size / ddp->element_size,
         ddp->bf16 ? ncclBfloat16 : ncclFloat32, ncclAvg, raw->api.comm, raw->api.stream);
}

static void go_back(const struct ddp *ddp, size_t buckets, uint64_t base)
{
    struct weir_bucket bucket;
    uint32_t done = 0;
    cli_fine(weir_buckets_get_bucket(ddp->buckets[buckets], 0, &bucket));
    for (size_t i = (size_t)ddp->layers; i-- > 0;) {
        multiply(ddp, &ddp->weight[buckets * ddp->layers + i]);
        if (++done == bucket.first + bucket.count) {
            reduce(ddp, &bucket, base);
            if (i > 0)
                cli_fine(weir_buckets_get_bucket(ddp->buckets[buckets], bucket.index + 1, &bucket));
        }
        if (i > 0)
            multiply(ddp, &ddp->back[i]);
    }
}

void ddp_raw_step(const struct ddp *ddp, size_t buckets)
{
    struct ddp_raw *raw = ddp->raw;
    // The first gradient of the backward pass is the first byte of the buckets.
    const uint64_t base = ddp->weight[buckets * ddp->layers + ddp->layers - 1].native.c;
    CU(raw, cuCtxSetCurrent, raw->api.context);
    for (size_t i = 0; i < ddp->layers; i++)
        multiply(ddp, &ddp->forward[i]);
    go_back(ddp, buckets, base);
    CU(raw, cuEventRecord, raw->reduced, raw->api.stream);
    CU(raw, cuStreamWaitEvent, raw->compute, raw->reduced, 0);
    CU(raw, cuStreamSynchronize, raw->compute);
}
