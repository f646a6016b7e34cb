// The forward pass of a network in float64, written for clarity: what gradients are held against.
#ifndef WEIR_TESTS_PIPELINES_TRAIN_REFERENCE_H
#define WEIR_TESTS_PIPELINES_TRAIN_REFERENCE_H

#include "pipelines/train/model.h"

// The outputs of the last layer for one sample. `values` are all parameters, in the layout of
// weir_train_model_parameters(); `out` has room for them.
void reference_outputs(const struct weir_train_model_params *params, const weir_train_model *model,
                       const double *values, const float *input, double *out);

// The sum of the losses of `params->batch` samples.
double reference_loss(const struct weir_train_model_params *params, const weir_train_model *model,
                      const double *values, const float *inputs, const uint32_t *labels);

#endif
