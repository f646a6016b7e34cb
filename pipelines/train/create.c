// What a run has: checked, and created in the order in which each needs the one before.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "pipelines/train/fail.h"
#include "pipelines/train/run_parts.h"

enum {
    PARAMETERS_MAX = 2 * WEIR_TRAIN_LAYERS_MAX
};

// Of activations, where sums are to be exact.
#define GRID 0x1p-6F

static const char name[] = "train";

static weir_status check_counts(const struct weir_train_run_params *p)
{
    if (p->steps < 1 || p->steps > WEIR_TRAIN_STEPS_MAX)
        return weir__pattern_fail(name, WEIR_ERROR_INVALID, NULL,
                                  "%" PRIu64 " steps; 1 to %" PRIu64 " are possible", p->steps,
                                  WEIR_TRAIN_STEPS_MAX);
    if (p->passes < 1 || p->passes > WEIR_TRAIN_PASSES_MAX)
        return weir__pattern_fail(name, WEIR_ERROR_INVALID, NULL,
                                  "a step of %u passes; 1 to %d are possible", p->passes,
                                  WEIR_TRAIN_PASSES_MAX);
    if (p->batch < 1 || p->batch > WEIR_TRAIN_BATCH_MAX)
        return weir__pattern_fail(name, WEIR_ERROR_INVALID, NULL,
                                  "a batch of %u samples; 1 to %d are possible", p->batch,
                                  WEIR_TRAIN_BATCH_MAX);
    if (!(p->rate > 0 && isfinite(p->rate)))
        return weir__pattern_fail(name, WEIR_ERROR_INVALID, NULL,
                                  "a learning rate of %g; it is above 0", (double)p->rate);
    return WEIR_OK;
}

static weir_status check(const struct weir_train_run_params *p)
{
    if (!p->comm || !p->data)
        return weir__pattern_fail(name, WEIR_ERROR_INVALID, "set it in the params",
                                  "weir_train_run: %s is NULL", p->comm ? "data" : "comm");
    if (p->program < WEIR_TRAIN_DDP || p->program > WEIR_TRAIN_ENCDEC)
        return weir__pattern_fail(name, WEIR_ERROR_INVALID, NULL, "there is no program %d",
                                  (int)p->program);
    if (p->exact && p->program == WEIR_TRAIN_AUGMENT)
        return weir__pattern_fail(
            name, WEIR_ERROR_INVALID, "train with another program, or not exactly",
            "augmented images are no integers, so sums over them are not exact");
    if (p->resume && !p->checkpoint)
        return weir__pattern_fail(name, WEIR_ERROR_INVALID, "name a checkpoint",
                                  "there is no checkpoint to resume from");
    return check_counts(p);
}

static uint32_t seven_eighths(uint32_t side)
{
    return side - side / 8;
}

static struct weir_train_augment_params augmentation(const struct weir_train_run_params *p)
{
    const struct weir_train_shape shape = weir_train_data_shape(p->data);
    struct weir_train_augment_params augment = {
        .width = shape.width,
        .height = shape.height,
        .channels = shape.channels,
        .out_width = p->crop_width ? p->crop_width : seven_eighths(shape.width),
        .out_height = p->crop_height ? p->crop_height : seven_eighths(shape.height),
        .seed = (uint32_t)p->seed,
        .contrast = 0.2F,
        .brightness = 0.1F,
    };
    for (int i = 0; i < WEIR_TRAIN_AUGMENT_CHANNELS_MAX; i++)
        augment.mean[i] = 0.5F, augment.deviation[i] = 0.25F;
    return augment;
}

static weir_status check_augmentation(const struct weir_train_augment_params *augment)
{
    if (augment->channels > WEIR_TRAIN_AUGMENT_CHANNELS_MAX)
        return weir__pattern_fail(name, WEIR_ERROR_INVALID, NULL,
                                  "images of %u channels; augmentation takes up to %d",
                                  augment->channels, WEIR_TRAIN_AUGMENT_CHANNELS_MAX);
    if (augment->out_width > augment->width || augment->out_height > augment->height)
        return weir__pattern_fail(name, WEIR_ERROR_INVALID,
                                  "cut out fewer pixels, or take larger images",
                                  "%u x %u pixels cannot be cut out of images of %u x %u",
                                  augment->out_width, augment->out_height, augment->width,
                                  augment->height);
    return WEIR_OK;
}

// Models.

static size_t network(const struct weir_train_run_params *p, uint32_t outputs,
                      struct weir_train_layer *layers)
{
    return p->network == WEIR_TRAIN_CONVNET ? weir_train_convnet(p->channels, outputs, layers)
                                            : weir_train_mlp(p->hidden, p->width, outputs, layers);
}

static struct weir_train_model_params usual(const struct train *train, const char *label,
                                            const struct weir_train_layer *layers, size_t count)
{
    const struct weir_train_run_params *p = train->params;
    return (struct weir_train_model_params){
        .struct_size = sizeof(struct weir_train_model_params),
        .label = label,
        .device = train->device,
        .input = weir_train_data_shape(p->data),
        .layers = layers,
        .layer_count = count,
        .batch = p->batch,
        .element = p->element,
        .products = p->products,
        .grid = p->exact ? GRID : 0,
        .cublas = p->cublas,
    };
}

static weir_status check_network(const struct weir_train_run_params *p)
{
    if (p->network == WEIR_TRAIN_MLP && p->hidden > WEIR_TRAIN_LAYERS_MAX - 1)
        return weir__pattern_fail(name, WEIR_ERROR_INVALID, NULL,
                                  "%u hidden layers; at most %d are possible", p->hidden,
                                  WEIR_TRAIN_LAYERS_MAX - 1);
    return WEIR_OK;
}

static weir_status create_encoder(struct train *train)
{
    struct weir_train_layer layers[WEIR_TRAIN_LAYERS_MAX];
    const size_t count = network(train->params, train->params->width, layers);
    struct weir_train_model_params encoder = usual(train, "encoder", layers, count);
    layers[count - 1].relu = true;
    encoder.forward_only = true;
    return weir_train_model_create(&encoder, &train->encoder);
}

static weir_status create_model(struct train *train)
{
    struct weir_train_layer layers[WEIR_TRAIN_LAYERS_MAX];
    const struct weir_train_run_params *p = train->params;
    const uint32_t classes = weir_train_data_classes(p->data);
    const bool head = p->program == WEIR_TRAIN_ENCDEC;
    const size_t count =
        head ? weir_train_mlp(1, p->width, classes, layers) : network(p, classes, layers);
    struct weir_train_model_params model = usual(train, head ? "head" : "model", layers, count);
    if (head)
        model.input = (struct weir_train_shape){1, 1, p->width};
    if (p->program == WEIR_TRAIN_AUGMENT)
        model.input.width = train->augment.out_width,
        model.input.height = train->augment.out_height;
    const weir_status status = head ? create_encoder(train) : WEIR_OK;
    return status == WEIR_OK ? weir_train_model_create(&model, &train->model) : status;
}

static weir_status create_optimizer(struct train *train)
{
    const struct weir_train_optimizer_params optimizer = {
        .struct_size = sizeof optimizer,
        .model = train->model,
        .method = train->params->method,
        .momentum = train->params->momentum,
    };
    return weir_train_optimizer_create(&optimizer, &train->optimizer);
}

// Buckets.

static weir_status bind_views(struct train *train)
{
    struct weir_train_view views[PARAMETERS_MAX];
    for (uint32_t i = 0; i < train->parameter_count; i++) {
        struct weir_bucket_view view;
        const weir_status status =
            weir_buckets_get_view(train->buckets, train->parameter_count - 1 - i, &view);
        if (status != WEIR_OK)
            return status;
        views[i] = (struct weir_train_view){view.buffer, view.offset};
    }
    return weir_train_model_bind(train->model, views);
}

static weir_status create_buckets(struct train *train)
{
    struct weir_bucket_parameter parameters[PARAMETERS_MAX];
    const uint32_t count = train->parameter_count;
    for (uint32_t i = 0; i < count; i++) {
        const struct weir_train_parameter *parameter =
            weir_train_model_parameter(train->model, count - 1 - i);
        parameters[i] = (struct weir_bucket_parameter){.struct_size = sizeof *parameters,
                                                       .name = parameter->name,
                                                       .count = parameter->count};
    }
    const struct weir_buckets_params buckets = {
        .struct_size = sizeof buckets,
        .comm = train->params->comm,
        .label = "gradients",
        .element = WEIR_F32,
        .reduction = WEIR_SUM,
        .parameters = parameters,
        .parameter_count = count,
        .parameter_size = sizeof *parameters,
        .cap_bytes = train->params->bucket_bytes,
        .wire = train->params->wire,
        .timing = true,
    };
    const weir_status status = weir_buckets_create(&buckets, &train->buckets);
    return status == WEIR_OK ? bind_views(train) : status;
}

// All of it.

static weir_status prepare(struct train *train)
{
    const struct weir_train_run_params *p = train->params;
    weir_status status = check(p);
    if (status == WEIR_OK)
        status = check_network(p);
    if (status != WEIR_OK)
        return status;
    train->device = weir_comm_device(p->comm);
    train->order = (struct train_order){.seed = p->seed,
                                        .rank = weir_comm_rank(p->comm),
                                        .ranks = weir_comm_count(p->comm),
                                        .passes = p->passes,
                                        .batch = p->batch};
    train->augment = augmentation(p);
    return p->program == WEIR_TRAIN_AUGMENT ? check_augmentation(&train->augment) : WEIR_OK;
}

weir_status train_create(struct train *train, const struct weir_train_run_params *params)
{
    *train = (struct train){.params = params};
    weir_status status = prepare(train);
    if (status == WEIR_OK)
        status =
            weir_queue_create(train->device, WEIR_PARAMS(weir_queue, .label = name, .timing = true),
                              &train->queue);
    if (status == WEIR_OK)
        status = create_model(train);
    if (status == WEIR_OK)
        status = create_optimizer(train);
    if (status != WEIR_OK)
        return status;
    train->parameter_count = (uint32_t)weir_train_model_parameter_count(train->model);
    status = create_buckets(train);
    if (status != WEIR_OK)
        return status;
    return train_curve_create(&train->curve, params->comm, params->steps,
                              (uint64_t)params->batch * params->passes * train->order.ranks);
}

void train_destroy(struct train *train)
{
    train_feed_destroy(&train->feed);
    train_curve_finish(&train->curve);
    weir_train_optimizer_destroy(&train->optimizer);
    weir_train_model_destroy(&train->model);
    weir_train_model_destroy(&train->encoder);
    weir_buckets_destroy(&train->buckets);
    weir_queue_destroy(&train->queue);
}
