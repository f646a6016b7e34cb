// What a run has: checked, and created in the order in which each needs the one before.
#include "pipelines/train/run_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipelines/train/checkpoint.h"
#include "pipelines/train/product.h"

// Two windows: while one is filled, the other is added up over the ranks and copied to the host.

enum {
    WINDOW_BYTES = TRAIN_WINDOW * WEIR_TRAIN_RESULT_BYTES
};

static weir_status train_curve_create(struct train_curve *curve, weir_comm *comm, uint64_t steps,
                                      uint64_t samples)
{
    weir_device *device = weir_comm_device(comm);
    *curve = (struct train_curve){.comm = comm, .samples = samples};
    curve->losses = calloc(steps, sizeof *curve->losses);
    curve->right = calloc(steps, sizeof *curve->right);
    if (!curve->losses || !curve->right)
        return weir__pattern_no_memory("curve", "the curve");
    for (int i = 0; i < 2; i++) {
        TRY(weir_buffer_create(device,
                               WEIR_PARAMS(weir_buffer, .label = "curve", .size = WINDOW_BYTES),
                               &curve->windows[i].sums));
        TRY(weir_buffer_create(device,
                               WEIR_PARAMS(weir_buffer, .label = "curve", .size = WINDOW_BYTES,
                                           .placement = WEIR_PLACE_HOST),
                               &curve->windows[i].copy));
    }
    return WEIR_OK;
}

static void train_curve_finish(struct train_curve *curve)
{
    for (int i = 0; i < 2; i++) {
        weir_buffer_destroy(&curve->windows[i].sums);
        weir_buffer_destroy(&curve->windows[i].copy);
    }
    free(curve->losses);
    free(curve->right);
    *curve = (struct train_curve){0};
}

// Continues after `step` steps, whose figures are in the arrays.
static void train_curve_begin(struct train_curve *curve, uint64_t step)
{
    curve->first = step;
    curve->known = step;
}

struct weir_train_view train_curve_place(const struct train_curve *curve, uint64_t step)
{
    return (struct weir_train_view){curve->windows[curve->current].sums,
                                    (step - curve->first) * WEIR_TRAIN_RESULT_BYTES};
}

static weir_status collect(struct train_curve *curve, struct train_curve_window *window)
{
    void *memory;
    if (window->count == 0)
        return WEIR_OK;
    const size_t bytes = window->count * (size_t)WEIR_TRAIN_RESULT_BYTES;
    TRY(weir_event_sync(window->done, WEIR_FOREVER));
    TRY(weir_host_begin(window->copy, 0, bytes, WEIR_ACCESS_READ, &memory));
    const float *sums = memory;
    for (uint32_t i = 0; i < window->count; i++) {
        curve->losses[window->first + i] = sums[2 * (size_t)i] / (float)curve->samples;
        curve->right[window->first + i] = sums[2 * (size_t)i + 1] / (float)curve->samples;
    }
    curve->known = window->first + window->count;
    window->count = 0;
    return weir_host_end(window->copy, 0, bytes, WEIR_ACCESS_READ);
}

static weir_status submit(struct train_curve *curve, struct train_curve_window *window,
                          weir_queue *queue)
{
    const size_t count = window->count * (size_t)WEIR_TRAIN_RESULT_BYTES / sizeof(float);
    if (weir_comm_count(curve->comm) > 1)
        TRY(weir_queue_all_reduce(queue, curve->comm, window->sums, 0, window->sums, 0, count,
                                  WEIR_F32, WEIR_SUM));
    TRY(weir_queue_copy(queue, window->copy, 0, window->sums, 0, count * sizeof(float)));
    return weir_queue_record(queue, &window->done);
}

// Sends the current window off, and reads the other one.
static weir_status turn(struct train_curve *curve, weir_queue *queue, uint64_t end)
{
    struct train_curve_window *window = &curve->windows[curve->current];
    window->first = curve->first;
    window->count = (uint32_t)(end - curve->first);
    curve->first = end;
    curve->current ^= 1;
    TRY(submit(curve, window, queue));
    return collect(curve, &curve->windows[curve->current]);
}

weir_status train_curve_step(struct train_curve *curve, weir_queue *queue, uint64_t step)
{
    return step + 1 - curve->first == TRAIN_WINDOW ? turn(curve, queue, step + 1) : WEIR_OK;
}

weir_status train_curve_flush(struct train_curve *curve, weir_queue *queue, uint64_t end)
{
    if (end > curve->first)
        TRY(turn(curve, queue, end));
    return collect(curve, &curve->windows[curve->current ^ 1]);
}

// Parameters, the optimizer's state and the curve: set from the seed or the checkpoint on rank 0, and
// sent to the others, so that all begin with the same bits whatever files they see.

enum {
    CURVES = 2
};

static const char *const curve_names[CURVES] = {"program.losses", "program.right"};

static float *curve_values(const struct train *train, int index)
{
    return index == 0 ? train->curve.losses : train->curve.right;
}

// Of the seed of the head's parameters, a seed for the encoder's.
static uint64_t encoder_seed(uint64_t seed)
{
    return seed ^ UINT64_C(0x9e3779b97f4a7c15);
}

static weir_status initialise(struct train *train)
{
    const uint64_t seed = train->params->seed;
    TRY(weir_train_model_initialise(train->model, train->queue, seed));
    TRY(weir_train_optimizer_reset(train->optimizer, train->queue));
    if (train->encoder)
        TRY(weir_train_model_initialise(train->encoder, train->queue, encoder_seed(seed)));
    return WEIR_OK;
}

// The checkpoint.

static weir_status read_curve(struct train *train, const weir_io_safetensors *file)
{
    const uint64_t steps = train->first_step;
    for (int i = 0; i < CURVES; i++) {
        struct weir_io_error error;
        const float *values;
        if (!weir_io_safetensors_find(file, curve_names[i], 1, &steps, &values, &error))
            return weir__pattern_fail("train", WEIR_ERROR_IO, NULL, "%s: %s",
                                      train->params->checkpoint, error.message);
        if (steps > 0)
            memcpy(curve_values(train, i), values, steps * sizeof *values);
    }
    return WEIR_OK;
}

static weir_status check_progress(const struct train *train,
                                  const struct weir_train_progress *progress)
{
    const struct weir_train_run_params *p = train->params;
    if (progress->seed != p->seed)
        return weir__pattern_refuse("train", "resume with that seed",
                                    "%s is of a run with the seed %" PRIu64
                                    ", this one has %" PRIu64,
                                    p->checkpoint, progress->seed, p->seed);
    if (progress->step > p->steps)
        return weir__pattern_refuse("train", "ask for more steps",
                                    "%s has done %" PRIu64
                                    " steps, and this run is to have %" PRIu64,
                                    p->checkpoint, progress->step, p->steps);
    return WEIR_OK;
}

static weir_status read_checkpoint(struct train *train)
{
    struct weir_train_progress progress;
    weir_io_safetensors *file = NULL;
    weir_status status =
        weir_train_checkpoint_read(train->params->checkpoint, train->model, train->optimizer,
                                   train->queue, &progress, &file);
    if (status == WEIR_OK)
        status = check_progress(train, &progress);
    if (status == WEIR_OK) {
        train->first_step = progress.step;
        status = read_curve(train, file);
    }
    weir_io_safetensors_destroy(&file);
    return status;
}

static bool has_checkpoint(const struct train *train)
{
    return train->params->resume &&
           (access(train->params->checkpoint, F_OK) == 0 || errno != ENOENT);
}

// Sending.

static weir_status send(struct train *train, weir_buffer *buffer)
{
    return weir_queue_broadcast(train->queue, train->params->comm, buffer, 0, buffer, 0,
                                weir_buffer_size(buffer), WEIR_U8, 0);
}

static weir_status send_step(struct train *train, weir_buffer *place)
{
    weir_status status =
        weir_upload(train->queue, place, 0, &train->first_step, sizeof train->first_step);
    if (status == WEIR_OK)
        status = send(train, place);
    if (status == WEIR_OK)
        status =
            weir_download(train->queue, &train->first_step, place, 0, sizeof train->first_step);
    return status;
}

static weir_status send_all(struct train *train)
{
    weir_buffer *buffer = NULL;
    const char *unused;
    TRY(weir_buffer_create(train->device,
                           WEIR_PARAMS(weir_buffer, .label = "step", .size = sizeof(uint64_t)),
                           &buffer));
    const weir_status status = send_step(train, buffer);
    weir_buffer_destroy(&buffer);
    TRY(status);
    TRY(send(train, weir_train_model_parameters(train->model)));
    for (size_t i = 0; weir_train_optimizer_state(train->optimizer, i, &unused, &buffer); i++)
        TRY(send(train, buffer));
    return weir_train_model_refresh(train->model, train->queue);
}

weir_status train_state_begin(struct train *train)
{
    TRY(initialise(train));
    if (train->order.rank == 0 && has_checkpoint(train))
        TRY(read_checkpoint(train));
    if (train->order.ranks > 1)
        TRY(send_all(train));
    train_curve_begin(&train->curve, train->first_step);
    return WEIR_OK;
}

weir_status train_state_write(struct train *train, uint64_t steps)
{
    const struct weir_train_progress progress = {.step = steps, .seed = train->params->seed};
    struct weir_io_tensor extras[CURVES];
    for (int i = 0; i < CURVES; i++)
        extras[i] = (struct weir_io_tensor){.name = curve_names[i],
                                            .dtype = WEIR_IO_F32,
                                            .rank = 1,
                                            .shape = {steps},
                                            .data = curve_values(train, i),
                                            .size_bytes = steps * sizeof(float)};
    return weir_train_checkpoint_write(train->params->checkpoint, train->model, train->optimizer,
                                       train->queue, &progress, extras, CURVES);
}

// The digest.

static uint64_t fnv(uint64_t hash, const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

// Without the gaps between parameters, which are not set.
weir_status train_digest(struct train *train, struct weir_train_figures *figures)
{
    weir_buffer *parameters = weir_train_model_parameters(train->model);
    const size_t size = weir_buffer_size(parameters);
    unsigned char *bytes = malloc(size);
    if (!bytes)
        return weir__pattern_no_memory("parameters", "the parameters");
    const weir_status status = weir_download(train->queue, bytes, parameters, 0, size);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    figures->parameters = 0;
    for (uint32_t i = 0; i < train->parameter_count && status == WEIR_OK; i++) {
        const struct weir_train_parameter *p = weir_train_model_parameter(train->model, i);
        hash = fnv(hash, bytes + p->offset, p->count * sizeof(float));
        figures->parameters += p->count;
    }
    figures->parameters_digest = hash;
    free(bytes);
    return status;
}

enum {
    PARAMETERS_MAX = 2 * WEIR_TRAIN_LAYERS_MAX
};

// Of activations, where sums are to be exact.
#define GRID 0x1p-6F

static const char name[] = "train";

static weir_status check_counts(const struct weir_train_run_params *p)
{
    if (p->steps < 1 || p->steps > WEIR_TRAIN_STEPS_MAX)
        return weir__pattern_refuse(name, NULL, "%" PRIu64 " steps; 1 to %" PRIu64 " are possible",
                                    p->steps, WEIR_TRAIN_STEPS_MAX);
    if (p->passes < 1 || p->passes > WEIR_TRAIN_PASSES_MAX)
        return weir__pattern_refuse(name, NULL, "a step of %u passes; 1 to %d are possible",
                                    p->passes, WEIR_TRAIN_PASSES_MAX);
    if (p->batch < 1 || p->batch > WEIR_TRAIN_BATCH_MAX)
        return weir__pattern_refuse(name, NULL, "a batch of %u samples; 1 to %d are possible",
                                    p->batch, WEIR_TRAIN_BATCH_MAX);
    if (!(p->rate > 0 && isfinite(p->rate)))
        return weir__pattern_refuse(name, NULL, "a learning rate of %g; it is above 0",
                                    (double)p->rate);
    return WEIR_OK;
}

static weir_status check(const struct weir_train_run_params *p)
{
    if (!p->comm || !p->data)
        return weir__pattern_refuse(name, "set it in the params", "weir_train_run: %s is NULL",
                                    p->comm ? "data" : "comm");
    if (p->program < WEIR_TRAIN_DDP || p->program > WEIR_TRAIN_ENCDEC)
        return weir__pattern_refuse(name, NULL, "there is no program %d", (int)p->program);
    if (p->exact && p->program == WEIR_TRAIN_AUGMENT)
        return weir__pattern_refuse(
            name, "train with another program, or not exactly",
            "augmented images are no integers, so sums over them are not exact");
    if (p->resume && !p->checkpoint)
        return weir__pattern_refuse(name, "name a checkpoint",
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
        return weir__pattern_refuse(name, NULL,
                                    "images of %u channels; augmentation takes up to %d",
                                    augment->channels, WEIR_TRAIN_AUGMENT_CHANNELS_MAX);
    if (augment->out_width > augment->width || augment->out_height > augment->height)
        return weir__pattern_refuse(name, "cut out fewer pixels, or take larger images",
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
        return weir__pattern_refuse(name, NULL, "%u hidden layers; at most %d are possible",
                                    p->hidden, WEIR_TRAIN_LAYERS_MAX - 1);
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
    if (head)
        TRY(create_encoder(train));
    return weir_train_model_create(&model, &train->model);
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
        TRY(weir_buckets_get_view(train->buckets, train->parameter_count - 1 - i, &view));
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
    TRY(weir_buckets_create(&buckets, &train->buckets));
    return bind_views(train);
}

// All of it.

static weir_status prepare(struct train *train)
{
    const struct weir_train_run_params *p = train->params;
    TRY(check(p));
    TRY(check_network(p));
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
