// One step: its passes, each forward and backward, the reduction of the gradients, and the update.
#include "pipelines/train/run_parts.h"

// Buckets have the parameters in the order of the backward pass.
static weir_status mark(void *user, size_t index, weir_queue *queue)
{
    const struct train *train = user;
    return weir_buckets_ready(train->buckets, train->parameter_count - 1 - (uint32_t)index, queue);
}

static weir_status backward(struct train *train, bool last)
{
    const bool serial = train->params->serial;
    weir_status status = weir_buckets_begin(train->buckets, last);
    if (status == WEIR_OK)
        status = weir_train_model_backward(train->model, train->queue,
                                           weir_buckets_pass(train->buckets) > 0,
                                           serial ? NULL : mark, train);
    for (uint32_t i = train->parameter_count; serial && i > 0 && status == WEIR_OK; i--)
        status = mark(train, i - 1, train->queue);
    return status;
}

static weir_status do_pass(struct train *train, uint64_t step, uint32_t pass)
{
    struct weir_train_batch batch;
    weir_status status = train_feed_next(train->feed, &batch);
    if (status == WEIR_OK)
        status = weir_train_model_forward(train->model, train->queue, &batch,
                                          train_curve_place(&train->curve, step), pass > 0);
    // Only the forward pass reads the batch.
    if (status == WEIR_OK)
        status = train_feed_release(train->feed);
    if (status == WEIR_OK)
        status = backward(train, pass + 1 == train->order.passes);
    return status == WEIR_OK ? weir_buckets_finish(train->buckets, train->queue) : status;
}

weir_status train_step(struct train *train, uint64_t step)
{
    const struct weir_train_rates rates = {.rate = train->params->rate,
                                           .scale = 1 / (float)train->curve.samples,
                                           .step = step + 1};
    weir_status status = WEIR_OK;
    for (uint32_t pass = 0; pass < train->order.passes && status == WEIR_OK; pass++)
        status = do_pass(train, step, pass);
    if (status != WEIR_OK)
        return status;
    return weir_train_optimizer_update(train->optimizer, train->queue, 0, train->parameter_count,
                                       &rates);
}
