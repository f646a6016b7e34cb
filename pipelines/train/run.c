// A run: what it has, which is checked and created in the order in which each needs the one before, and the loop over its
// steps. The host submits at most TRAIN_AHEAD steps before it waits for the first of them, so that what is in flight stays
// small.
#include "pipelines/train/train.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <unistd.h>

#include "pipelines/train/checkpoint.h"
#include "pipelines/train/feed.h"
#include "pipelines/train/product.h"

// The curve: the figures of each step, which the device writes and ranks add up, a window of steps at
// a time, so that neither waits for the other at each step.

enum {
    TRAIN_WINDOW = 64,
    // There is room for two windows: while one is filled, the other is added up over the ranks and copied to the host.
    WINDOWS_BYTES = 2 * TRAIN_WINDOW * WEIR_TRAIN_RESULT_BYTES
};

struct train_curve {
    weir_buffer *sums;      // DEVICE: struct weir_train_view of each step
    weir_buffer *copy;      // HOST
    uint64_t known, sent;   // steps; those between are on their way
    struct weir_event done; // of these
};

enum {
    TRAIN_AHEAD = 2 // steps that are in flight at once
};

// What a run has.
struct train {
    const struct weir_train_run_params *params;
    weir_device *device;
    weir_queue *queue;         // that trains
    weir_train_model *encoder; // ENCDEC
    weir_train_model *model;
    uint32_t parameter_count;
    weir_buckets *buckets;
    struct weir_train_augment_params augment;
    train_feed *feed;
    struct train_curve curve;
    struct weir_train_figures *figures;
    struct weir_event submitted[TRAIN_AHEAD]; // the ends of the latest steps
};

static weir_status curve_create(struct train *train)
{
    const uint64_t steps = train->params->steps;
    struct weir_train_figures *figures = train->figures;
    figures->steps = steps;
    figures->losses = calloc(steps, sizeof *figures->losses);
    figures->right = calloc(steps, sizeof *figures->right);
    if (!figures->losses || !figures->right)
        return weir__pattern_no_memory("curve", "the curve");
    TRY(weir_buffer_create(train->device,
                           WEIR_PARAMS(weir_buffer, .label = "curve", .size = WINDOWS_BYTES),
                           &train->curve.sums));
    return weir_buffer_create(train->device,
                              WEIR_PARAMS(weir_buffer, .label = "curve", .size = WINDOWS_BYTES,
                                          .placement = WEIR_PLACE_HOST),
                              &train->curve.copy);
}

// Windows end at multiples of their size, so each is in one piece.
static size_t offset_of(uint64_t step)
{
    return step % (UINT64_C(2) * TRAIN_WINDOW) * WEIR_TRAIN_RESULT_BYTES;
}

// The figures that have become known, since step `before`.
static weir_status look(struct train *train, uint64_t before)
{
    const uint64_t known = train->curve.known;
    const float *losses = train->figures->losses;
    const struct weir_train_run_params *p = train->params;
    for (uint64_t i = before; i < known; i++)
        if (!isfinite(losses[i]))
            return weir__pattern_refuse("train", "train with a lower learning rate",
                                        "the loss of step %" PRIu64 " is %g", i + 1,
                                        (double)losses[i]);
    if (p->progress && weir_comm_rank(p->comm) == 0)
        p->progress(p->user, known, losses[known - 1]);
    return WEIR_OK;
}

// The figures of steps before `end`, which are on the host once `done` is complete, and looks at them.
static weir_status collect(struct train *train, uint64_t end, struct weir_event done)
{
    struct train_curve *curve = &train->curve;
    const struct weir_train_figures *figures = train->figures;
    void *memory;
    if (curve->known == end)
        return WEIR_OK;
    const uint64_t before = curve->known;
    const size_t offset = offset_of(before), bytes = (end - before) * WEIR_TRAIN_RESULT_BYTES;
    TRY(weir_event_sync(done, WEIR_FOREVER));
    TRY(weir_host_begin(curve->copy, offset, bytes, WEIR_ACCESS_READ, &memory));
    for (const float *sums = memory; curve->known < end; curve->known++, sums += 2) {
        figures->losses[curve->known] = sums[0] / (float)figures->samples;
        figures->right[curve->known] = sums[1] / (float)figures->samples;
    }
    TRY(weir_host_end(curve->copy, offset, bytes, WEIR_ACCESS_READ));
    return look(train, before);
}

// Sends off the steps before `end`, and collects those that are on their way.
static weir_status turn(struct train *train, uint64_t end)
{
    struct train_curve *curve = &train->curve;
    const struct weir_event done = curve->done;
    const uint64_t begin = curve->sent;
    const size_t offset = offset_of(begin), bytes = (end - begin) * WEIR_TRAIN_RESULT_BYTES;
    if (weir_comm_count(train->params->comm) > 1)
        TRY(weir_queue_all_reduce(train->queue, train->params->comm, curve->sums, offset,
                                  curve->sums, offset, bytes / sizeof(float), WEIR_F32, WEIR_SUM));
    TRY(weir_queue_copy(train->queue, curve->copy, offset, curve->sums, offset, bytes));
    TRY(weir_queue_record(train->queue, &curve->done));
    curve->sent = end;
    return collect(train, begin, done);
}

static weir_status curve_flush(struct train *train, uint64_t end)
{
    if (end > train->curve.sent)
        TRY(turn(train, end));
    return collect(train, train->curve.sent, train->curve.done);
}

// Parameters, the method's state and the curve: set from the seed or the checkpoint on rank 0, and
// sent to the others, so that all begin with the same bits whatever files they see.

enum {
    CURVES = 2
};

// Makes of the seed of the head's parameters that of the encoder's.
#define ENCODER_SEED UINT64_C(0x9e3779b97f4a7c15)

static const char *const curve_names[CURVES] = {"program.losses", "program.right"};

static float *curve_values(const struct train *train, int index)
{
    return index == 0 ? train->figures->losses : train->figures->right;
}

// The checkpoint.

static weir_status read_curve(struct train *train, const weir_io_safetensors *file)
{
    const uint64_t steps = train->figures->first_step;
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
    weir_status status = weir_train_checkpoint_read(train->params->checkpoint, train->model,
                                                    train->queue, &progress, &file);
    if (status == WEIR_OK)
        status = check_progress(train, &progress);
    if (status == WEIR_OK) {
        train->figures->first_step = progress.step;
        status = read_curve(train, file);
    }
    weir_io_safetensors_destroy(&file);
    return status;
}

// Sending.

static weir_status send(struct train *train, weir_buffer *buffer, size_t size)
{
    return weir_queue_broadcast(train->queue, train->params->comm, buffer, 0, buffer, 0, size,
                                WEIR_U8, 0);
}

// The step goes through the curve's buffer, which has no figures yet.
static weir_status send_all(struct train *train)
{
    weir_buffer *parameters = weir_train_model_facts(train->model)->parameters;
    weir_buffer *place = train->curve.sums;
    uint64_t *step = &train->figures->first_step;
    TRY(weir_upload(train->queue, place, 0, step, sizeof *step));
    TRY(send(train, place, sizeof *step));
    TRY(weir_download(train->queue, step, place, 0, sizeof *step));
    TRY(send(train, parameters, weir_buffer_size(parameters)));
    return weir_train_model_refresh(train->model, train->queue);
}

static weir_status begin_state(struct train *train)
{
    const struct weir_train_run_params *p = train->params;
    TRY(weir_train_model_initialise(train->model, train->queue, p->seed));
    if (train->encoder)
        TRY(weir_train_model_initialise(train->encoder, train->queue, p->seed ^ ENCODER_SEED));
    if (weir_comm_rank(p->comm) == 0 && p->resume &&
        (access(p->checkpoint, F_OK) == 0 || errno != ENOENT))
        TRY(read_checkpoint(train));
    if (weir_comm_count(p->comm) > 1)
        TRY(send_all(train));
    train->curve.known = train->curve.sent = train->figures->first_step;
    return WEIR_OK;
}

static weir_status write_state(struct train *train, uint64_t steps)
{
    const struct weir_train_progress progress = {.step = steps, .seed = train->params->seed};
    struct weir_io_tensor extras[CURVES];
    for (int i = 0; i < CURVES; i++)
        extras[i] = (struct weir_io_tensor){.name = curve_names[i],
                                            .dtype = WEIR_IO_F32,
                                            .rank = 1,
                                            .shape = {steps},
                                            .data = curve_values(train, i)};
    return weir_train_checkpoint_write(train->params->checkpoint, train->model, train->queue,
                                       &progress, extras, CURVES);
}

// The digest.

static uint64_t fnv(uint64_t hash, const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

// Without the gaps between parameters, which are not set.
static weir_status digest(struct train *train)
{
    struct weir_train_figures *figures = train->figures;
    weir_buffer *parameters = weir_train_model_facts(train->model)->parameters;
    const size_t size = weir_buffer_size(parameters);
    unsigned char *bytes = malloc(size);
    if (!bytes)
        return weir__pattern_no_memory("parameters", "the parameters");
    const weir_status status = weir_download(train->queue, bytes, parameters, 0, size);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < train->parameter_count && status == WEIR_OK; i++) {
        const struct weir_train_parameter *p = &weir_train_model_facts(train->model)->tensors[i];
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

static uint32_t seven_eighths(uint32_t side)
{
    return side - side / 8;
}

static struct weir_train_augment_params augmentation(const struct weir_train_run_params *p)
{
    const struct weir_train_shape shape = p->data->shape;
    struct weir_train_augment_params augment = {
        .width = shape.width,
        .height = shape.height,
        .channels = shape.channels,
        .out_width = p->crop ? (uint32_t)p->crop : seven_eighths(shape.width),
        .out_height = p->crop ? (uint32_t)p->crop : seven_eighths(shape.height),
        .seed = (uint32_t)p->seed,
        .contrast = 0.2F,
        .brightness = 0.1F,
    };
    for (int i = 0; i < WEIR_TRAIN_AUGMENT_CHANNELS_MAX; i++)
        augment.mean[i] = 0.5F, augment.deviation[i] = 0.25F;
    return augment;
}

// Models.

// Layers for the two kinds of networks, into `layers`; the count of layers is returned.

static size_t mlp(uint64_t hidden, uint64_t width, uint64_t classes,
                  struct weir_train_layer *layers)
{
    for (uint64_t i = 0; i < hidden; i++)
        layers[i] = (struct weir_train_layer){.kind = WEIR_TRAIN_DENSE,
                                              .outputs = (uint32_t)width,
                                              .relu = true};
    layers[hidden] =
        (struct weir_train_layer){.kind = WEIR_TRAIN_DENSE, .outputs = (uint32_t)classes};
    return (size_t)hidden + 1;
}

// Convolutions of 3 x 3 and stride 2 with `channels` and 2 * `channels` channels, a dense layer of
// 4 * `channels` units, then `classes`: four layers.
static size_t convnet(uint64_t channels, uint64_t classes, struct weir_train_layer *layers)
{
    for (uint32_t i = 0; i < 2; i++)
        layers[i] = (struct weir_train_layer){.kind = WEIR_TRAIN_CONVOLUTION,
                                              .outputs = (uint32_t)(channels << i),
                                              .side = 3,
                                              .stride = 2,
                                              .relu = true};
    return 2 + mlp(1, 4 * channels, classes, layers + 2);
}

static size_t network(const struct weir_train_run_params *p, uint64_t outputs,
                      struct weir_train_layer *layers)
{
    return p->network == WEIR_TRAIN_CONVNET ? convnet(p->channels, outputs, layers)
                                            : mlp(p->hidden, p->width, outputs, layers);
}

static struct weir_train_model_params usual(const struct train *train, const char *label,
                                            const struct weir_train_layer *layers, size_t count)
{
    const struct weir_train_run_params *p = train->params;
    return (struct weir_train_model_params){
        .label = label,
        .device = train->device,
        .input = p->data->shape,
        .layers = layers,
        .layer_count = count,
        .batch = (uint32_t)p->batch,
        .element = p->element,
        .products = p->products,
        .grid = p->exact ? GRID : 0,
    };
}

// Creates the model, and for a head the encoder before it.
static weir_status create_model(struct train *train)
{
    struct weir_train_layer layers[WEIR_TRAIN_LAYERS_MAX];
    const struct weir_train_run_params *p = train->params;
    const uint32_t classes = p->data->classes;
    const bool head = p->program == WEIR_TRAIN_ENCDEC;
    const size_t count = head ? mlp(1, p->width, classes, layers) : network(p, classes, layers);
    struct weir_train_model_params model = usual(train, head ? "head" : "model", layers, count);
    model.method = p->method;
    model.momentum = p->momentum;
    if (head)
        model.input = (struct weir_train_shape){1, 1, (uint32_t)p->width};
    if (p->program == WEIR_TRAIN_AUGMENT)
        model.input.width = train->augment.out_width,
        model.input.height = train->augment.out_height;
    if (head) {
        struct weir_train_layer encoding[WEIR_TRAIN_LAYERS_MAX];
        const size_t encodings = network(p, p->width, encoding);
        struct weir_train_model_params encoder = usual(train, "encoder", encoding, encodings);
        encoding[encodings - 1].relu = true;
        encoder.forward_only = true;
        TRY(weir_train_model_create(&encoder, &train->encoder));
    }
    return weir_train_model_create(&model, &train->model);
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
            &weir_train_model_facts(train->model)->tensors[count - 1 - i];
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

static weir_status create(struct train *train)
{
    const struct weir_train_run_params *params = train->params;
    train->augment = augmentation(params);
    if (params->program == WEIR_TRAIN_AUGMENT)
        TRY(weir_train_augment_check(&train->augment));
    TRY(weir_queue_create(train->device, WEIR_PARAMS(weir_queue, .label = "train", .timing = true),
                          &train->queue));
    TRY(create_model(train));
    train->parameter_count = (uint32_t)weir_train_model_facts(train->model)->parameter_count;
    TRY(create_buckets(train));
    return curve_create(train);
}

static void destroy(struct train *train)
{
    train_feed_destroy(&train->feed);
    weir_buffer_destroy(&train->curve.sums);
    weir_buffer_destroy(&train->curve.copy);
    weir_train_model_destroy(&train->model);
    weir_train_model_destroy(&train->encoder);
    weir_buckets_destroy(&train->buckets);
    weir_queue_destroy(&train->queue);
}

// One step: its passes, each forward and backward, the reduction of the gradients, and the update.

// Buckets have the parameters in the order of the backward pass.
static weir_status mark(void *user, size_t index, weir_queue *queue)
{
    const struct train *train = user;
    return weir_buckets_ready(train->buckets, train->parameter_count - 1 - (uint32_t)index, queue);
}

static weir_status do_pass(struct train *train, uint64_t step, uint32_t pass)
{
    const bool serial = train->params->serial;
    struct weir_train_batch batch;
    TRY(train_feed_next(train->feed, &batch));
    TRY(weir_train_model_forward(train->model, train->queue, &batch,
                                 (struct weir_train_view){train->curve.sums, offset_of(step)},
                                 pass > 0));
    // Only the forward pass reads the batch.
    TRY(train_feed_release(train->feed));
    TRY(weir_buckets_begin(train->buckets, pass + 1 == train->params->passes));
    TRY(weir_train_model_backward(train->model, train->queue, weir_buckets_pass(train->buckets) > 0,
                                  serial ? NULL : mark, train));
    for (uint32_t i = train->parameter_count; serial && i > 0; i--)
        TRY(mark(train, i - 1, train->queue));
    return weir_buckets_finish(train->buckets, train->queue);
}

// The checkpoint after `steps` steps, if it is due.
static weir_status save(struct train *train, uint64_t steps)
{
    const struct weir_train_run_params *p = train->params;
    if (!p->checkpoint ||
        (steps != p->steps && (p->checkpoint_every == 0 || steps % p->checkpoint_every != 0)))
        return WEIR_OK;
    const uint64_t began_ns = weir_clock_now_ns();
    TRY(curve_flush(train, steps));
    if (weir_comm_rank(p->comm) == 0)
        TRY(write_state(train, steps));
    train->figures->checkpoint_ns += weir_clock_now_ns() - began_ns;
    return WEIR_OK;
}

static weir_status advance(struct train *train, uint64_t step)
{
    const struct weir_train_rates rates = {.rate = train->params->rate,
                                           .scale = 1 / (float)train->figures->samples,
                                           .step = step + 1};
    struct weir_event *end = &train->submitted[step % TRAIN_AHEAD];
    if (end->queue)
        TRY(weir_event_sync(*end, WEIR_FOREVER));
    for (uint32_t pass = 0; pass < train->params->passes; pass++)
        TRY(do_pass(train, step, pass));
    TRY(weir_train_model_update(train->model, train->queue, &rates));
    TRY(weir_queue_record(train->queue, end));
    if ((step + 1) % TRAIN_WINDOW == 0)
        TRY(turn(train, step + 1));
    return save(train, step + 1);
}

// The first step includes what the driver compiles, so the time begins after it.
static weir_status run_steps(struct train *train)
{
    struct weir_train_figures *figures = train->figures;
    uint64_t began_ns = 0;
    for (uint64_t step = figures->first_step; step < figures->steps; step++) {
        TRY(advance(train, step));
        if (step == figures->first_step) {
            TRY(weir_queue_sync(train->queue, WEIR_FOREVER));
            figures->checkpoint_ns = 0;
            began_ns = weir_clock_now_ns();
        }
    }
    TRY(weir_queue_sync(train->queue, WEIR_FOREVER));
    if (figures->steps > figures->first_step + 1)
        figures->wall_ns = weir_clock_now_ns() - began_ns;
    return WEIR_OK;
}

static weir_status run(struct train *train)
{
    struct weir_train_figures *figures = train->figures;
    TRY(begin_state(train));
    const struct train_feed_params feed = {
        .run = train->params,
        .queue = train->queue,
        .first = figures->first_step,
        .encoder = train->encoder,
        .augment = &train->augment,
        .figures = &figures->loader,
    };
    TRY(train_feed_create(&feed, weir_train_model_facts(train->model)->inputs, &train->feed));
    TRY(run_steps(train));
    TRY(curve_flush(train, figures->steps));
    figures->flop = weir_train_model_flop(train->model, true);
    if (train->encoder)
        figures->flop += weir_train_model_flop(train->encoder, false);
    figures->flop *= (double)train->params->passes;
    weir_buckets_get_plan(train->buckets, &figures->plan);
    weir_buckets_get_statistics(train->buckets, &figures->buckets);
    return digest(train);
}

weir_status weir_train_run(const struct weir_train_run_params *params,
                           struct weir_train_figures *out_figures)
{
    struct train train = {.params = params,
                          .device = weir_comm_device(params->comm),
                          .figures = out_figures};
    *out_figures = (struct weir_train_figures){.samples = params->batch * params->passes *
                                                          weir_comm_count(params->comm)};
    weir_status status = create(&train);
    if (status == WEIR_OK)
        status = run(&train);
    if (status == WEIR_OK) {
        destroy(&train);
        return WEIR_OK;
    }
    const struct weir_error cause = *weir_last_error();
    if (params->comm)
        WEIR_IGNORE(weir_comm_abort(params->comm, cause.message)); // the other ranks learn of it
    // Work under way is waited for, since what it uses is destroyed next.
    if (train.queue)
        WEIR_IGNORE(weir_queue_sync(train.queue, WEIR_FOREVER));
    destroy(&train);
    weir_train_figures_finish(out_figures);
    return weir_error_set(&cause);
}

void weir_train_figures_finish(struct weir_train_figures *figures)
{
    free(figures->losses);
    free(figures->right);
    *figures = (struct weir_train_figures){0};
}
