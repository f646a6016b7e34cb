// Updates of a model's parameters: one launch for each. What depends on the step alone is computed on the host, in
// float64.
#include <math.h>

#include "pipelines/train/model_parts.h"
#include "pipelines/train/product.h"

const char *train_state_name(weir_train_method method, size_t index)
{
    static const char *const names[][2] = {
        [WEIR_TRAIN_FIXED] = {NULL, NULL},
        [WEIR_TRAIN_SGD] = {"momentum", NULL},
        [WEIR_TRAIN_ADAM] = {"mean", "square"},
    };
    return index < 2 ? names[method][index] : NULL;
}

bool weir_train_model_state(const weir_train_model *model, size_t index, const char **out_name,
                            weir_buffer **out_buffer)
{
    *out_name = train_state_name(model->method, index);
    *out_buffer = *out_name ? model->states[index] : NULL;
    return *out_name != NULL;
}

// The range of a parameter in a buffer with the parameters' layout.
static struct weir_argument part_of(const struct weir_train_parameter *parameter,
                                    weir_buffer *buffer)
{
    return weir_inout(buffer, parameter->offset, parameter->count * sizeof(float));
}

static struct weir_argument gradient_of(const weir_train_model *model, size_t index)
{
    const struct train_range range = train_model_gradient_range(model, index);
    return weir_in(range.buffer, range.offset, range.size);
}

static weir_status update_sgd(const weir_train_model *model, weir_queue *queue, size_t index,
                              const struct weir_train_rates *rates)
{
    const struct weir_train_parameter *parameter = &model->parameter[index];
    return weir_queue_launch_count(queue, model->kernels[TRAIN_UPDATE_SGD], parameter->count,
                                   part_of(parameter, model->parameters), gradient_of(model, index),
                                   part_of(parameter, model->states[0]),
                                   train_model_copy_argument(model, index), rates->rate,
                                   rates->scale, model->momentum, (uint32_t)parameter->count);
}

static weir_status update_adam(const weir_train_model *model, weir_queue *queue, size_t index,
                               const struct weir_train_rates *rates)
{
    static const float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
    const struct weir_train_parameter *parameter = &model->parameter[index];
    const double step = (double)rates->step;
    const double left1 = 1 - pow((double)beta1, step);
    const double left2 = 1 - pow((double)beta2, step);
    return weir_queue_launch_count(queue, model->kernels[TRAIN_UPDATE_ADAM], parameter->count,
                                   part_of(parameter, model->parameters), gradient_of(model, index),
                                   part_of(parameter, model->states[0]),
                                   part_of(parameter, model->states[1]),
                                   train_model_copy_argument(model, index),
                                   (float)((double)rates->rate / left1), rates->scale, beta1,
                                   1 - beta1, beta2, 1 - beta2, (float)(1 / left2), epsilon,
                                   (uint32_t)parameter->count);
}

weir_status weir_train_model_update(weir_train_model *model, weir_queue *queue,
                                    const struct weir_train_rates *rates)
{
    for (size_t i = 0; i < 2 * model->layer_count; i++)
        TRY(model->method == WEIR_TRAIN_SGD ? update_sgd(model, queue, i, rates)
                                            : update_adam(model, queue, i, rates));
    return WEIR_OK;
}
