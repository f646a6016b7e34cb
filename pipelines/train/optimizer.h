// Updates of a model's parameters from their gradients, on the device.
//
//     SGD:  v = momentum v + g            p = p - rate v
//     Adam: m = beta1 m + (1 - beta1) g   v = beta2 v + (1 - beta2) g^2
//           p = p - rate (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + epsilon)
//
// with g = scale * gradient. All of it is float32; the BF16 copy of a weight is made by the same
// launch (rounded to nearest even).
//
// Threads: one thread at a time per optimizer.
#ifndef WEIR_PIPELINES_TRAIN_OPTIMIZER_H
#define WEIR_PIPELINES_TRAIN_OPTIMIZER_H

#include <weir/weir.h>

#include "pipelines/train/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_train_optimizer weir_train_optimizer;

typedef enum weir_train_method {
    WEIR_TRAIN_SGD = 1,
    WEIR_TRAIN_ADAM = 2,
} weir_train_method;

struct weir_train_optimizer_params {
    size_t struct_size;
    weir_train_model *model;
    weir_train_method method;
    float momentum; // SGD: 0 ... below 1
    float beta1;    // ADAM: 0 ... below 1; 0: 0.9
    float beta2;    // ADAM: 0 ... below 1; 0: 0.999
    float epsilon;  // ADAM: above 0; 0: 1e-8
};

// Creates an optimizer; its state is not set (weir_train_optimizer_reset(),
// weir_train_checkpoint_read()).
//
// Ownership: the caller's, until weir_train_optimizer_destroy(). Outlived by the model.
// Errors: WEIR_ERROR_INVALID naming the field and its limits; WEIR_ERROR_OUT_OF_MEMORY.
weir_status weir_train_optimizer_create(const struct weir_train_optimizer_params *params,
                                        weir_train_optimizer **out_optimizer);
void weir_train_optimizer_destroy(weir_train_optimizer **optimizer);

// Submits zeros for the state: a first step follows.
weir_status weir_train_optimizer_reset(weir_train_optimizer *optimizer, weir_queue *queue);

struct weir_train_rates {
    float rate;    // of learning
    float scale;   // of gradients, such as 1 / (samples of all ranks)
    uint64_t step; // from 1 on
};

// Submits the update of parameters `first` to `first + count - 1`. The gradients are those of
// weir_train_model_gradient(). Each parameter is to be updated once a step, in any order, also on
// different queues.
//
// Errors: WEIR_ERROR_INVALID for parameters that the model lacks, and for a step of 0.
weir_status weir_train_optimizer_update(weir_train_optimizer *optimizer, weir_queue *queue,
                                        size_t first, size_t count,
                                        const struct weir_train_rates *rates);

// The state: "momentum" of SGD, "mean" and "square" of Adam; each a buffer of float32 with the
// layout of weir_train_model_parameters(). Its name and its buffer; false for an index that is too
// large.
bool weir_train_optimizer_state(const weir_train_optimizer *optimizer, size_t index,
                                const char **out_name, weir_buffer **out_buffer);

#ifdef __cplusplus
}
#endif

#endif
