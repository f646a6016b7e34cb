// One launch for each parameter. What depends on the step alone is computed on the host, in float64.
#include "pipelines/train/optimizer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "pipelines/train/model_parts.h"
#include "pipelines/train/product.h"

#define STATES_MAX 2

static const char *const state_names[][STATES_MAX] = {
    [WEIR_TRAIN_SGD] = {"momentum", NULL},
    [WEIR_TRAIN_ADAM] = {"mean", "square"},
};

struct weir_train_optimizer {
    weir_train_model *model;
    weir_train_method method;
    float momentum, beta1, beta2, epsilon;
    weir_buffer *states[STATES_MAX];
};

static float or_default(float value, float otherwise)
{
    return value == 0 ? otherwise : value;
}

static weir_status check_decay(const char *what, float value)
{
    if (value >= 0 && value < 1)
        return WEIR_OK;
    return weir__pattern_refuse("optimizer", NULL, "%s is %g; it must be 0 ... below 1", what,
                                (double)value);
}

static weir_status check(const struct weir_train_optimizer_params *params)
{
    if (!params->model)
        return weir__pattern_refuse("optimizer", NULL, "a model is needed");
    if (params->model->forward_only)
        return weir__pattern_refuse("optimizer", NULL,
                                    "the model '%s' is forward_only: it has no gradients",
                                    params->model->label);
    if (params->method != WEIR_TRAIN_SGD && params->method != WEIR_TRAIN_ADAM)
        return weir__pattern_refuse("optimizer", "pass WEIR_TRAIN_SGD or WEIR_TRAIN_ADAM",
                                    "there is no method %d", (int)params->method);
    TRY(check_decay("momentum", params->momentum));
    TRY(check_decay("beta1", params->beta1));
    TRY(check_decay("beta2", params->beta2));
    if (params->epsilon >= 0 && isfinite(params->epsilon))
        return WEIR_OK;
    return weir__pattern_refuse("optimizer", NULL,
                                "epsilon is %g; it must be above 0, or 0 for 1e-8",
                                (double)params->epsilon);
}

static weir_status create_states(weir_train_optimizer *optimizer)
{
    const char *name;
    for (size_t i = 0; i < STATES_MAX; i++) {
        if (!(name = state_names[optimizer->method][i]))
            continue;
        char label[96];
        snprintf(label, sizeof label, "%s/%s", optimizer->model->label, name);
        TRY(weir_buffer_create(optimizer->model->device,
                               WEIR_PARAMS(weir_buffer, .label = label,
                                           .size = optimizer->model->parameter_bytes),
                               &optimizer->states[i]));
    }
    return WEIR_OK;
}

weir_status weir_train_optimizer_create(const struct weir_train_optimizer_params *params,
                                        weir_train_optimizer **out_optimizer)
{
    struct weir_train_optimizer_params known;
    weir_status status;
    *out_optimizer = NULL;
    if ((status = weir__pattern_params("weir_train_optimizer_create", "weir_train_optimizer_params",
                                       params, &known, sizeof known)) ||
        (status = check(&known)))
        return status;
    weir_train_optimizer *optimizer = calloc(1, sizeof *optimizer);
    if (!optimizer)
        return weir__pattern_no_memory("optimizer", "an optimizer");
    optimizer->model = known.model;
    optimizer->method = known.method;
    optimizer->momentum = known.momentum;
    optimizer->beta1 = or_default(known.beta1, 0.9f);
    optimizer->beta2 = or_default(known.beta2, 0.999f);
    optimizer->epsilon = or_default(known.epsilon, 1e-8f);
    status = create_states(optimizer);
    if (status != WEIR_OK)
        weir_train_optimizer_destroy(&optimizer);
    *out_optimizer = optimizer;
    return status;
}

void weir_train_optimizer_destroy(weir_train_optimizer **optimizer)
{
    if (!optimizer || !*optimizer)
        return;
    for (size_t i = 0; i < STATES_MAX; i++)
        weir_buffer_destroy(&(*optimizer)->states[i]);
    free(*optimizer);
    *optimizer = NULL;
}

weir_status weir_train_optimizer_reset(weir_train_optimizer *optimizer, weir_queue *queue)
{
    const float zero = 0;
    for (size_t i = 0; i < STATES_MAX; i++)
        if (optimizer->states[i])
            TRY(weir_queue_fill(queue, optimizer->states[i], 0, optimizer->model->parameter_bytes,
                                &zero, sizeof zero));
    return WEIR_OK;
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

static weir_status update_sgd(const weir_train_optimizer *optimizer, weir_queue *queue,
                              size_t index, const struct weir_train_rates *rates)
{
    const weir_train_model *model = optimizer->model;
    const struct weir_train_parameter *parameter = &model->parameter[index];
    return weir_queue_launch_count(queue, model->kernels[TRAIN_UPDATE_SGD], parameter->count,
                                   part_of(parameter, model->parameters), gradient_of(model, index),
                                   part_of(parameter, optimizer->states[0]),
                                   train_model_copy_argument(model, index), rates->rate,
                                   rates->scale, optimizer->momentum, (uint32_t)parameter->count);
}

static weir_status update_adam(const weir_train_optimizer *optimizer, weir_queue *queue,
                               size_t index, const struct weir_train_rates *rates)
{
    const weir_train_model *model = optimizer->model;
    const struct weir_train_parameter *parameter = &model->parameter[index];
    const double step = (double)rates->step;
    const double left1 = 1 - pow((double)optimizer->beta1, step);
    const double left2 = 1 - pow((double)optimizer->beta2, step);
    return weir_queue_launch_count(queue, model->kernels[TRAIN_UPDATE_ADAM], parameter->count,
                                   part_of(parameter, model->parameters), gradient_of(model, index),
                                   part_of(parameter, optimizer->states[0]),
                                   part_of(parameter, optimizer->states[1]),
                                   train_model_copy_argument(model, index),
                                   (float)((double)rates->rate / left1), rates->scale,
                                   optimizer->beta1, 1 - optimizer->beta1, optimizer->beta2,
                                   1 - optimizer->beta2, (float)(1 / left2), optimizer->epsilon,
                                   (uint32_t)parameter->count);
}

weir_status weir_train_optimizer_update(weir_train_optimizer *optimizer, weir_queue *queue,
                                        size_t first, size_t count,
                                        const struct weir_train_rates *rates)
{
    const size_t all = weir_train_model_parameter_count(optimizer->model);
    if (first > all || count > all - first)
        return weir__pattern_refuse(
            "optimizer", NULL,
            "parameters %zu and the %zu after it are asked for; the model has %zu", first, count,
            all);
    if (rates->step == 0)
        return weir__pattern_refuse("optimizer", "count steps from 1 on", "step is 0");
    for (size_t i = first; i < first + count; i++)
        TRY(optimizer->method == WEIR_TRAIN_SGD ? update_sgd(optimizer, queue, i, rates)
                                                : update_adam(optimizer, queue, i, rates));
    return WEIR_OK;
}

bool weir_train_optimizer_state(const weir_train_optimizer *optimizer, size_t index,
                                const char **out_name, weir_buffer **out_buffer)
{
    const bool known = index < STATES_MAX && optimizer->states[index];
    *out_name = known ? state_names[optimizer->method][index] : NULL;
    *out_buffer = known ? optimizer->states[index] : NULL;
    return known;
}
