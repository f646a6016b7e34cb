// The passes, layer by layer. The gradient of a layer's outputs (its delta) and of those before it
// are in two buffers in turn; the sums of a product are used up before the next one is submitted.
#include "pipelines/train/fail.h"
#include "pipelines/train/model_parts.h"

#include "kernels/train/tile.cl.h"

#define TRY(call)                      \
    do {                               \
        const weir_status try_ = call; \
        if (try_ != WEIR_OK)           \
            return try_;               \
    } while (0)

static weir_buffer *input_of(const weir_train_model *model, size_t index)
{
    return index ? model->layers[index - 1].output : model->entry;
}

// The delta of the outputs of layer `index`.
static weir_buffer *delta_of(const weir_train_model *model, size_t index)
{
    return model->deltas[(model->layer_count - 1 - index) % 2];
}

static size_t bytes_of(const weir_train_model *model, size_t count)
{
    return count * model->element_bytes;
}

static struct weir_argument bias_of(const weir_train_model *model, size_t index)
{
    const struct weir_train_parameter *bias = &model->parameter[2 * index + 1];
    return weir_in(model->parameters, bias->offset, bias->count * sizeof(float));
}

static weir_status forward_layer(weir_train_model *model, weir_queue *queue, size_t index)
{
    struct train_layer *layer = &model->layers[index];
    const uint32_t pieces = layer->rows * layer->depth;
    if (layer->pieces)
        TRY(weir_queue_launch_count(queue, model->kernels[TRAIN_PIECES], pieces,
                                    weir_in(input_of(model, index), 0,
                                            bytes_of(model, layer->in_count)),
                                    weir_out(layer->pieces, 0, bytes_of(model, pieces)),
                                    weir_value(&layer->view, sizeof layer->view), pieces));
    TRY(train_product_submit(&model->engine, queue, &layer->forward));
    return weir_queue_launch_count(
        queue, model->kernels[TRAIN_ACTIVATE], layer->out_count,
        weir_in(model->sums, 0, (size_t)layer->out_count * sizeof(float)), bias_of(model, index),
        weir_out(layer->output, 0, bytes_of(model, layer->out_count)), layer->what.outputs,
        layer->what.relu, model->grid, layer->out_count);
}

static weir_status forward_layers(weir_train_model *model, weir_queue *queue,
                                  struct weir_train_view inputs)
{
    const uint32_t count = model->layers[0].in_count;
    TRY(weir_queue_launch_count(queue, model->kernels[TRAIN_NARROW], count,
                                weir_in(inputs.buffer, inputs.offset, count * sizeof(float)),
                                weir_out(model->entry, 0, bytes_of(model, count)), count));
    for (size_t i = 0; i < model->layer_count; i++)
        TRY(forward_layer(model, queue, i));
    return WEIR_OK;
}

static struct weir_argument outputs_of(const weir_train_model *model)
{
    const struct train_layer *last = &model->layers[model->layer_count - 1];
    return weir_in(last->output, 0, bytes_of(model, last->out_count));
}

weir_status weir_train_model_encode(weir_train_model *model, weir_queue *queue,
                                    struct weir_train_view inputs, struct weir_train_view output)
{
    const uint32_t count = model->layers[model->layer_count - 1].out_count;
    TRY(forward_layers(model, queue, inputs));
    return weir_queue_launch_count(queue, model->kernels[TRAIN_WIDEN], count, outputs_of(model),
                                   weir_out(output.buffer, output.offset, count * sizeof(float)),
                                   count);
}

static weir_status submit_loss(weir_train_model *model, weir_queue *queue,
                               struct weir_train_view labels)
{
    const uint32_t count = model->layers[model->layer_count - 1].out_count;
    return weir_queue_launch_count(
        queue, model->kernels[TRAIN_CROSS_ENTROPY], model->batch, outputs_of(model),
        weir_in(labels.buffer, labels.offset, model->batch * sizeof(uint32_t)),
        weir_out(model->deltas[0], 0, bytes_of(model, count)), weir_whole_out(model->results),
        model->batch, count / model->batch, model->grid);
}

weir_status weir_train_model_forward(weir_train_model *model, weir_queue *queue,
                                     const struct weir_train_batch *batch,
                                     struct weir_train_view result, bool accumulate)
{
    TRY(forward_layers(model, queue, batch->inputs));
    TRY(submit_loss(model, queue, batch->labels));
    if (!result.buffer)
        return WEIR_OK;
    const size_t size = WEIR_TRAIN_RESULT_BYTES;
    return weir_queue_launch(queue, model->kernels[TRAIN_SUM_RESULTS], weir_dim(1, 1, 1),
                             weir_dim(TRAIN_RESULT_ITEMS, 1, 1), weir_whole_in(model->results),
                             accumulate ? weir_inout(result.buffer, result.offset, size)
                                        : weir_out(result.buffer, result.offset, size),
                             model->batch, accumulate);
}

static weir_status submit_bias(weir_train_model *model, weir_queue *queue, size_t index, bool add)
{
    const struct train_layer *layer = &model->layers[index];
    const struct train_columns columns = {
        .from = {delta_of(model, index), 0, bytes_of(model, layer->out_count)},
        .to = train_model_gradient_range(model, 2 * index + 1),
        .rows = layer->rows,
        .columns = layer->what.outputs,
        .add = add,
    };
    return train_columns_submit(&model->engine, queue, &columns);
}

// The delta of the layer before.
static weir_status submit_back(weir_train_model *model, weir_queue *queue, size_t index)
{
    struct train_layer *layer = &model->layers[index];
    const struct train_layer *before = layer - 1;
    const size_t bytes = bytes_of(model, layer->in_count);
    TRY(train_product_submit(&model->engine, queue, &layer->back));
    return weir_queue_launch_count(queue, model->kernels[TRAIN_UNITE], layer->in_count,
                                   weir_in(layer->back.c.buffer, 0, layer->back.c.size),
                                   weir_in(before->output, 0, bytes),
                                   weir_out(delta_of(model, index - 1), 0, bytes),
                                   weir_value(&layer->view, sizeof layer->view), before->what.relu,
                                   model->grid, layer->in_count);
}

static weir_status tell(weir_train_ready ready, void *user, size_t index, weir_queue *queue)
{
    return ready ? ready(user, index, queue) : WEIR_OK;
}

weir_status weir_train_model_backward(weir_train_model *model, weir_queue *queue, bool accumulate,
                                      weir_train_ready ready, void *user)
{
    if (model->forward_only)
        return weir__pattern_fail(model->label, WEIR_ERROR_INVALID,
                                  "create it without forward_only",
                                  "the model has no backward pass");
    for (size_t i = model->layer_count; i-- > 0;) {
        TRY(submit_bias(model, queue, i, accumulate));
        TRY(tell(ready, user, 2 * i + 1, queue));
        TRY(train_product_submit(&model->engine, queue, &model->layers[i].weight[accumulate]));
        TRY(tell(ready, user, 2 * i, queue));
        if (i > 0)
            TRY(submit_back(model, queue, i));
    }
    return WEIR_OK;
}
