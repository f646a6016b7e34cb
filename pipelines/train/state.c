// Parameters, the optimizer's state and the curve: set from the seed or the checkpoint on rank 0, and
// sent to the others, so that all begin with the same bits whatever files they see.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipelines/train/checkpoint.h"
#include "pipelines/train/fail.h"
#include "pipelines/train/run_parts.h"

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
    weir_status status = weir_train_model_initialise(train->model, train->queue, seed);
    if (status == WEIR_OK)
        status = weir_train_optimizer_reset(train->optimizer, train->queue);
    if (status == WEIR_OK && train->encoder)
        status = weir_train_model_initialise(train->encoder, train->queue, encoder_seed(seed));
    return status;
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
        return weir__pattern_fail("train", WEIR_ERROR_INVALID, "resume with that seed",
                                  "%s is of a run with the seed %" PRIu64 ", this one has %" PRIu64,
                                  p->checkpoint, progress->seed, p->seed);
    if (progress->step > p->steps)
        return weir__pattern_fail("train", WEIR_ERROR_INVALID, "ask for more steps",
                                  "%s has done %" PRIu64 " steps, and this run is to have %" PRIu64,
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
    weir_status status =
        weir_buffer_create(train->device,
                           WEIR_PARAMS(weir_buffer, .label = "step", .size = sizeof(uint64_t)),
                           &buffer);
    if (status == WEIR_OK)
        status = send_step(train, buffer);
    weir_buffer_destroy(&buffer);
    if (status == WEIR_OK)
        status = send(train, weir_train_model_parameters(train->model));
    for (size_t i = 0;
         status == WEIR_OK && weir_train_optimizer_state(train->optimizer, i, &unused, &buffer);
         i++)
        status = send(train, buffer);
    return status == WEIR_OK ? weir_train_model_refresh(train->model, train->queue) : status;
}

weir_status train_state_begin(struct train *train)
{
    weir_status status = initialise(train);
    if (status == WEIR_OK && train->order.rank == 0 && has_checkpoint(train))
        status = read_checkpoint(train);
    if (status == WEIR_OK && train->order.ranks > 1)
        status = send_all(train);
    train_curve_begin(&train->curve, train->first_step);
    return status;
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
        return train_fail_memory("parameters");
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
