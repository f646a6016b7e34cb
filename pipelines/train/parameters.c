// Parameters, and what else a model tells.
#include <math.h>
#include <stdlib.h>

#include "pipelines/train/fail.h"
#include "pipelines/train/model_parts.h"
#include "pipelines/train/random.h"

size_t weir_train_model_parameter_count(const weir_train_model *model)
{
    return 2 * model->layer_count;
}

const struct weir_train_parameter *weir_train_model_parameter(const weir_train_model *model,
                                                              size_t index)
{
    return index < 2 * model->layer_count ? &model->parameter[index] : NULL;
}

weir_buffer *weir_train_model_parameters(const weir_train_model *model)
{
    return model->parameters;
}

// The top 24 bits are exact in float32, so each number is rounded once.
static void set_random(float *values, size_t count, uint64_t seed, size_t stream, float most)
{
    for (size_t i = 0; i < count; i++) {
        const int32_t bits = (int32_t)(train_random(seed, stream, i) >> 40);
        values[i] = (float)(bits - (1 << 23)) * 0x1p-23f * most;
    }
}

weir_status weir_train_model_initialise(weir_train_model *model, weir_queue *queue, uint64_t seed)
{
    float *values = calloc(1, model->parameter_bytes);
    if (!values)
        return train_fail_memory(model->label);
    for (size_t i = 0; i < model->layer_count; i++) {
        const struct weir_train_parameter *weight = &model->parameter[2 * i];
        set_random(values + weight->offset / sizeof(float), weight->count, seed, i,
                   sqrtf(6.0f / (float)model->layers[i].depth));
    }
    weir_status status = weir_upload(queue, model->parameters, 0, values, model->parameter_bytes);
    free(values);
    if (status == WEIR_OK)
        status = weir_train_model_refresh(model, queue);
    return status == WEIR_OK ? weir_queue_sync(queue, WEIR_FOREVER) : status;
}

weir_status weir_train_model_refresh(weir_train_model *model, weir_queue *queue)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < model->layer_count && model->bf16 && status == WEIR_OK; i++) {
        const struct weir_train_parameter *weight = &model->parameter[2 * i];
        status = weir_queue_launch_count(queue, model->kernels[TRAIN_NARROW], weight->count,
                                         weir_in(model->parameters, weight->offset,
                                                 weight->count * sizeof(float)),
                                         train_model_copy_argument(model, 2 * i),
                                         (uint32_t)weight->count);
    }
    return status;
}

// What else a model tells.

weir_device *weir_train_model_device(const weir_train_model *model)
{
    return model->device;
}

uint32_t weir_train_model_batch(const weir_train_model *model)
{
    return model->batch;
}

size_t weir_train_model_inputs(const weir_train_model *model)
{
    return model->layers[0].in_count / model->batch;
}

size_t weir_train_model_outputs(const weir_train_model *model)
{
    return model->layers[model->layer_count - 1].out_count / model->batch;
}

double weir_train_model_flop(const weir_train_model *model, bool backward)
{
    double sum = 0;
    for (size_t i = 0; i < model->layer_count; i++) {
        const struct train_layer *layer = &model->layers[i];
        const int products = backward ? (i > 0 ? 3 : 2) : 1;
        sum += 2.0 * products * layer->rows * layer->depth * layer->what.outputs;
    }
    return sum;
}
