// The geometry of a network: sizes of layers and parameters, and the limits on them. Counts of
// elements are 32-bit integers in the kernels.
#include <inttypes.h>
#include <stdio.h>

#include "pipelines/train/fail.h"
#include "pipelines/train/model_parts.h"

#define COUNT_MAX INT32_MAX
// Blocks of a product lie 64 rows apart, and a grid has at most 65,535 of them.
#define ROWS_MAX 4194240u

size_t weir_train_mlp(uint32_t hidden, uint32_t width, uint32_t classes,
                      struct weir_train_layer *layers)
{
    for (uint32_t i = 0; i < hidden; i++)
        layers[i] =
            (struct weir_train_layer){.kind = WEIR_TRAIN_DENSE, .outputs = width, .relu = true};
    layers[hidden] = (struct weir_train_layer){.kind = WEIR_TRAIN_DENSE, .outputs = classes};
    return (size_t)hidden + 1;
}

size_t weir_train_convnet(uint32_t channels, uint32_t classes, struct weir_train_layer *layers)
{
    for (uint32_t i = 0; i < 2; i++)
        layers[i] = (struct weir_train_layer){.kind = WEIR_TRAIN_CONVOLUTION,
                                              .outputs = channels << i,
                                              .side = 3,
                                              .stride = 2,
                                              .relu = true};
    return 2 + weir_train_mlp(1, 4 * channels, classes, layers + 2);
}

static weir_status refuse_layer(const weir_train_model *model, size_t index, const char *what,
                                uint64_t value, const char *limits)
{
    return weir__pattern_fail(model->label, WEIR_ERROR_INVALID, NULL,
                              "layer %zu has %s %" PRIu64 "; it must be %s", index, what, value,
                              limits);
}

static weir_status check_layer(const weir_train_model *model, size_t index,
                               const struct weir_train_layer *layer)
{
    if (layer->kind != WEIR_TRAIN_DENSE && layer->kind != WEIR_TRAIN_CONVOLUTION)
        return refuse_layer(model, index, "the kind", layer->kind,
                            "WEIR_TRAIN_DENSE or WEIR_TRAIN_CONVOLUTION");
    if (layer->outputs < 1 || layer->outputs > 65536)
        return refuse_layer(model, index, "the outputs", layer->outputs, "1 ... 65536");
    if (layer->kind == WEIR_TRAIN_CONVOLUTION && (layer->side % 2 == 0 || layer->side > 15))
        return refuse_layer(model, index, "the side", layer->side, "odd, 1 ... 15");
    if (layer->kind == WEIR_TRAIN_CONVOLUTION && (layer->stride < 1 || layer->stride > 16))
        return refuse_layer(model, index, "the stride", layer->stride, "1 ... 16");
    if (layer->relu && index + 1 == model->layer_count && !model->forward_only)
        return weir__pattern_fail(
            model->label, WEIR_ERROR_INVALID, "leave it out",
            "the last layer has a ReLU, after which no class can be unlikely");
    return WEIR_OK;
}

static struct train_geometry view_of(const struct weir_train_layer *layer,
                                     const struct weir_train_shape *from)
{
    if (layer->kind == WEIR_TRAIN_DENSE)
        return (struct train_geometry){.height = 1,
                                       .width = 1,
                                       .channels = from->height * from->width * from->channels,
                                       .side = 1,
                                       .stride = 1,
                                       .high = 1,
                                       .across = 1};
    return (struct train_geometry){.height = from->height,
                                   .width = from->width,
                                   .channels = from->channels,
                                   .side = layer->side,
                                   .stride = layer->stride,
                                   .high = (from->height + layer->stride - 1) / layer->stride,
                                   .across = (from->width + layer->stride - 1) / layer->stride};
}

// The product, or more than COUNT_MAX if it is larger than that.
static uint64_t count_of(uint64_t a, uint64_t b)
{
    if (a == 0 || b == 0)
        return 0;
    return a > COUNT_MAX / b ? (uint64_t)COUNT_MAX + 1 : a * b;
}

static weir_status refuse_size(const weir_train_model *model, size_t index, const char *what,
                               const char *remedy)
{
    return weir__pattern_fail(model->label, WEIR_ERROR_INVALID, remedy,
                              "the %s of layer %zu are more than %" PRId32 " numbers", what, index,
                              COUNT_MAX);
}

static weir_status set_layer(weir_train_model *model, size_t index,
                             const struct weir_train_layer *what, struct weir_train_shape *shape)
{
    struct train_layer *layer = &model->layers[index];
    const weir_status status = check_layer(model, index, what);
    if (status != WEIR_OK)
        return status;
    layer->what = *what;
    layer->view = view_of(what, shape);
    const struct train_geometry *view = &layer->view;
    // Of the input there are at most COUNT_MAX, so these fit 64 bits.
    const uint64_t depth = (uint64_t)view->side * view->side * view->channels;
    const uint64_t rows = (uint64_t)view->high * view->across * model->batch;
    if (count_of(depth, what->outputs) > COUNT_MAX)
        return refuse_size(model, index, "weights", "choose fewer outputs or channels");
    if (rows > ROWS_MAX)
        return weir__pattern_fail(model->label, WEIR_ERROR_INVALID, "choose a smaller batch",
                                  "layer %zu has %" PRIu64 " places in a batch; %u is the limit",
                                  index, rows, ROWS_MAX);
    if (count_of(rows, depth) > COUNT_MAX || count_of(rows, what->outputs) > COUNT_MAX)
        return refuse_size(model, index, "inputs or outputs", "choose a smaller batch");
    layer->depth = (uint32_t)depth;
    layer->rows = (uint32_t)rows;
    layer->in_count = model->batch * view->height * view->width * view->channels;
    layer->out_count = layer->rows * what->outputs;
    *shape = (struct weir_train_shape){view->high, view->across, what->outputs};
    return WEIR_OK;
}

static size_t take(size_t *used, size_t alignment, size_t size)
{
    const size_t offset = *used;
    *used = (*used + size + alignment - 1) / alignment * alignment;
    return offset;
}

static void set_parameter(weir_train_model *model, size_t index, const char *what, int rank,
                          uint64_t rows, uint64_t columns)
{
    struct weir_train_parameter *parameter = &model->parameter[index];
    snprintf(parameter->name, sizeof parameter->name, "layer%zu.%s", index / 2, what);
    parameter->rank = rank;
    parameter->shape[0] = rows;
    parameter->shape[1] = columns;
    parameter->count = (size_t)(rows * (rank == 2 ? columns : 1));
    parameter->offset =
        take(&model->parameter_bytes, model->alignment, parameter->count * sizeof(float));
}

static void set_parameters(weir_train_model *model)
{
    for (size_t i = 0; i < model->layer_count; i++) {
        struct train_layer *layer = &model->layers[i];
        set_parameter(model, 2 * i, "weight", 2, layer->depth, layer->what.outputs);
        set_parameter(model, 2 * i + 1, "bias", 1, layer->what.outputs, 0);
        if (model->bf16)
            layer->weight_copy = take(&model->copy_bytes, model->alignment,
                                      (size_t)layer->depth * layer->what.outputs * 2);
    }
}

static weir_status check_input(const weir_train_model *model)
{
    const struct weir_train_shape *in = &model->input;
    const uint64_t numbers = count_of(count_of(in->height, in->width), in->channels);
    if (numbers < 1)
        return weir__pattern_fail(model->label, WEIR_ERROR_INVALID,
                                  "a vector of n numbers is {1, 1, n}",
                                  "the input is %" PRIu32 " x %" PRIu32 " x %" PRIu32
                                  ": it is empty",
                                  in->height, in->width, in->channels);
    if (numbers > COUNT_MAX)
        return weir__pattern_fail(model->label, WEIR_ERROR_INVALID, NULL,
                                  "the input is %" PRIu32 " x %" PRIu32 " x %" PRIu32
                                  ": more than %" PRId32 " numbers",
                                  in->height, in->width, in->channels, COUNT_MAX);
    if (model->batch < 1 || count_of(numbers, model->batch) > COUNT_MAX)
        return weir__pattern_fail(model->label, WEIR_ERROR_INVALID, NULL,
                                  "the batch is %" PRIu32 "; it must be 1 ... %" PRIu64
                                  " with %" PRIu64 " numbers in a sample",
                                  model->batch, (uint64_t)COUNT_MAX / numbers, numbers);
    return WEIR_OK;
}

weir_status train_model_lay_out(weir_train_model *model,
                                const struct weir_train_model_params *params)
{
    struct weir_train_shape shape = model->input;
    weir_status status = check_input(model);
    for (size_t i = 0; i < model->layer_count && status == WEIR_OK; i++)
        status = set_layer(model, i, &params->layers[i], &shape);
    if (status == WEIR_OK && shape.height * shape.width > 1 && !model->forward_only)
        status = weir__pattern_fail(model->label, WEIR_ERROR_INVALID, "end with a dense layer",
                                    "the last layer has %" PRIu32 " x %" PRIu32
                                    " places; it must have one",
                                    shape.height, shape.width);
    if (status == WEIR_OK)
        set_parameters(model);
    return status;
}
