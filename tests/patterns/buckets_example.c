// Two steps of a program that trains on all ranks there are, of two passes each. The "backward pass" of
// rank r fills its gradients with r + 1, in place of kernels that compute them.
#include <stdio.h>

#include "patterns/buckets.h"

enum {
    LAYERS = 3,
    STEPS = 2,
    PASSES = 2
};

static const struct weir_bucket_parameter parameters[LAYERS] = {
    // the last layer first
    {.struct_size = sizeof *parameters, .name = "head.weight", .count = 10 * 500},
    {.struct_size = sizeof *parameters, .name = "body.weight", .count = 500 * 500},
    {.struct_size = sizeof *parameters, .name = "stem.weight", .count = 500 * 784},
};

// One gradient after the other: each bucket is reduced while the rest are computed.
static weir_status backward(weir_buckets *buckets, weir_queue *queue, uint32_t rank)
{
    // Later passes add to what the first one wrote; a fill has to write the sum.
    const float gradient = (float)(rank + 1) * (float)(weir_buckets_pass(buckets) + 1);
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; i < LAYERS && status == WEIR_OK; i++) {
        struct weir_bucket_view view;
        status = weir_buckets_get_view(buckets, i, &view);
        if (status == WEIR_OK)
            status = weir_queue_fill(queue, view.buffer, view.offset, view.size, &gradient,
                                     sizeof gradient);
        if (status == WEIR_OK)
            status = weir_buckets_ready(buckets, i, queue);
    }
    return status;
}

static weir_status step(weir_buckets *buckets, weir_queue *queue, uint32_t rank)
{
    weir_status status = WEIR_OK;
    for (int pass = 1; pass <= PASSES && status == WEIR_OK; pass++) {
        status = weir_buckets_begin(buckets, pass == PASSES);
        if (status == WEIR_OK)
            status = backward(buckets, queue, rank);
        if (status == WEIR_OK)
            status = weir_buckets_finish(buckets, queue);
    }
    return status; // what is submitted to `queue` now reads the averages
}

static weir_status train(weir_device *device, weir_comm *comm, float *out_last)
{
    const struct weir_buckets_params params = {.struct_size = sizeof params,
                                               .comm = comm,
                                               .label = "grads",
                                               .element = WEIR_F32,
                                               .parameters = parameters,
                                               .parameter_count = LAYERS,
                                               .parameter_size = sizeof *parameters};
    weir_queue *queue = NULL;
    weir_buckets *buckets = NULL;
    struct weir_bucket_view view;
    weir_status status = weir_queue_create(device, NULL, &queue);
    if (status == WEIR_OK)
        status = weir_buckets_create(&params, &buckets);
    for (int i = 0; i < STEPS && status == WEIR_OK; i++)
        status = step(buckets, queue, weir_comm_rank(comm));
    if (status == WEIR_OK)
        status = weir_buckets_get_view(buckets, LAYERS - 1, &view);
    if (status == WEIR_OK)
        status = weir_download(queue, out_last, view.buffer, view.offset, sizeof *out_last);
    weir_buckets_destroy(&buckets);
    weir_queue_destroy(&queue);
    return status;
}

int main(void)
{
    const struct weir_comm_params params = {.struct_size = sizeof params, .label = "ranks"};
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    weir_comm *comm = NULL;
    float last = 0;

    if (weir_open(NULL, &runtime) || weir_device_open(runtime, NULL, &device) ||
        weir_comm_create(device, &params, &comm) || train(device, comm, &last))
        fprintf(stderr, "%s\n", weir_last_error_text());
    else
        printf("rank %u of %u: %g\n", weir_comm_rank(comm), weir_comm_count(comm), last);
    const float wanted = PASSES * (float)(weir_comm_count(comm) + 1) / 2;
    weir_comm_destroy(&comm);
    WEIR_CHECK(weir_device_close(&device));
    WEIR_CHECK(weir_close(&runtime));
    return last > 0 && last == wanted ? 0 : 1;
}
