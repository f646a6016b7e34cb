// A model with a batch on a device, for tests of training.
#ifndef WEIR_TESTS_PIPELINES_TRAIN_RIG_H
#define WEIR_TESTS_PIPELINES_TRAIN_RIG_H

#include "pipelines/train/model.h"
#include "tests/support/device.h"

#define own_model OWN(weir_train_model_destroy) weir_train_model *

// Zeroed memory, or the end of the program.
void *rig_alloc(size_t count, size_t size);

weir_buffer *rig_buffer(const struct test_device *rig, size_t bytes);

// Networks of the tests, which have all kinds of layers between them.
enum rig_network {
    RIG_MLP,
    RIG_CONVNET,
    RIG_NETWORKS
};
extern const char *const rig_network_names[RIG_NETWORKS];

// The params of a network, for `batch` samples.
struct weir_train_model_params rig_params(const struct test_device *rig, enum rig_network network,
                                          uint32_t batch);

enum {
    RIG_PARAMETERS_MAX = 16
};

// Gives a model a buffer for its gradients, with the layout of its parameters.
weir_buffer *rig_bind(const struct test_device *rig, weir_train_model *model,
                      struct weir_train_view views[RIG_PARAMETERS_MAX]);

// A model, initialised from seed 1 but for its biases, and samples, on the host and on the device.
struct rig_scene {
    struct test_device *rig;
    weir_train_model *model;
    uint32_t batch;
    size_t inputs, classes;
    size_t parameters; // numbers in the buffer of parameters
    float *values;
    uint32_t *labels;
    weir_buffer *on_device, *labels_on_device, *result, *gradients;
    struct weir_train_view views[RIG_PARAMETERS_MAX]; // of the gradients
    struct weir_train_batch samples;
};

// The scene's inputs are multiples of 1/64 from -2 to 2, from a seed; its labels go round.
bool rig_scene_open(struct rig_scene *scene, struct test_device *rig,
                    const struct weir_train_model_params *params, uint64_t seed);
void rig_scene_close(struct rig_scene *scene);
#define own_scene OWN(rig_scene_close) struct rig_scene

// Runs a forward and a backward pass, and waits. The two numbers of the result.
bool rig_scene_run(struct rig_scene *scene, float out_result[2]);

// Parameters and gradients on the host, [parameters]: the layout of the buffer of parameters.
// To be freed with free().
float *rig_scene_parameters(struct rig_scene *scene);
float *rig_scene_gradients(struct rig_scene *scene);

// The forward pass of a network in float64, written for clarity: what gradients are held against.

// The outputs of the last layer for one sample. `values` are all parameters, in the layout of
// the model's parameters; `out` has room for them.
void reference_outputs(const struct weir_train_model_params *params, const weir_train_model *model,
                       const double *values, const float *input, double *out);

// The sum of the losses of `params->batch` samples.
double reference_loss(const struct weir_train_model_params *params, const weir_train_model *model,
                      const double *values, const float *inputs, const uint32_t *labels);

#endif
