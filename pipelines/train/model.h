// A small network for training: convolutions and dense layers in a row, each followed by a ReLU or
// by nothing, and softmax cross-entropy at the end. A model has its parameters, its activations and
// its kernels; everything is created with it, so that steps allocate nothing.
//
//     forward:  input -> layer 0 -> layer 1 -> ... -> softmax cross-entropy
//     backward: the last layer first; each parameter is told to the caller once its gradient has
//               been submitted, in the reverse order of the parameters
//
// Gradients are sums over the samples of the batch, not means: divide by the samples of all ranks in
// the update (struct weir_train_rates). They are float32 and lie where the caller wants them, such
// as in buckets (weir_train_model_bind()).
//
// Elements. F32: weights, activations and gradients are float32. BF16: the weights that the passes
// read, the activations and their gradients are bfloat16; sums are float32, and so are the gradients
// of parameters, the biases and the master copy of the weights, which updates change.
//
// Bits. The order of all sums is fixed: the same input gives the same bits in each run on one
// device. With `grid` activations and their gradients are rounded to multiples of it. Sums over
// samples are then exact, as long as they stay below 2^24 grid^2 (inputs count as multiples of the
// grid; weir_train_data gives multiples of 1/64): the gradients of N ranks that share a batch add up
// to the bits of one rank with the whole batch.
//
// Matrices are row-major, images [height, width, channels]. A weight is [inputs, outputs]; that of a
// convolution [side * side * channels, outputs].
//
// The command that trains checks what it is given; a model checks what depends on its input and batch.
//
// Threads: one thread at a time per model.
// Errors: a call that submits returns the queue's first failure; what it had submitted until then
// stays submitted.
#ifndef WEIR_PIPELINES_TRAIN_MODEL_H
#define WEIR_PIPELINES_TRAIN_MODEL_H

#include <weir/weir.h>

typedef struct weir_train_model weir_train_model;

#define WEIR_TRAIN_LAYERS_MAX 128

typedef enum weir_train_element {
    WEIR_TRAIN_F32 = 0,
    WEIR_TRAIN_BF16 = 1,
} weir_train_element;

// What computes the products of matrices.
typedef enum weir_train_products {
    WEIR_TRAIN_KERNELS = 0, // kernels/train, on every device
    WEIR_TRAIN_CUBLAS = 1,  // cuBLAS through native calls, on CUDA
} weir_train_products;

// How updates change parameters p, with g = scale * gradient. All of it is float32; the BF16 copy of a weight is made
// by the same launch (rounded to nearest even).
typedef enum weir_train_method {
    WEIR_TRAIN_FIXED = 0, // not at all
    // v = momentum v + g            p = p - rate v
    WEIR_TRAIN_SGD = 1,
    // m = 0.9 m + 0.1 g             v = 0.999 v + 0.001 g^2
    // p = p - rate (m / (1 - 0.9^step)) / (sqrt(v / (1 - 0.999^step)) + 1e-8)
    WEIR_TRAIN_ADAM = 2,
} weir_train_method;

typedef enum weir_train_layer_kind {
    WEIR_TRAIN_DENSE = 1,
    WEIR_TRAIN_CONVOLUTION = 2, // of side x side, with side / 2 zeros around the image
} weir_train_layer_kind;

struct weir_train_layer {
    weir_train_layer_kind kind;
    uint32_t outputs; // units, or channels: 1 ... 65536
    uint32_t side;    // CONVOLUTION: odd, 1 ... 15
    uint32_t stride;  // CONVOLUTION: 1 ... 16; an image becomes ceil(height / stride) high
    bool relu;        // after the layer; after the last one only of a model that is forward_only
};

// A vector of n numbers is {1, 1, n}.
struct weir_train_shape {
    uint32_t height;
    uint32_t width;
    uint32_t channels;
};

struct weir_train_model_params {
    const char *label;
    weir_device *device;
    struct weir_train_shape input;
    const struct weir_train_layer *layers; // needed until the call returns
    size_t layer_count;                    // 1 ... WEIR_TRAIN_LAYERS_MAX
    uint32_t batch;                        // samples of a pass
    weir_train_element element;
    weir_train_products products;
    float grid;         // 0: nothing is rounded; else a power of two, 2^-16 ... 1
    const char *cublas; // CUBLAS: its path; NULL: libcublas.so.13, else libcublas.so.12
    bool forward_only;  // no gradients: not for weir_train_model_bind(), _backward() and _update()
    weir_train_method method;
    float momentum; // SGD: 0 ... below 1
};

// Creates a model; its parameters are not set (weir_train_model_initialise(),
// weir_train_checkpoint_read()). Waits for nothing.
//
// Errors: WEIR_ERROR_INVALID for a layer or a batch of too many numbers; WEIR_ERROR_OUT_OF_MEMORY;
// WEIR_ERROR_BUILD; WEIR_ERROR_UNSUPPORTED for CUBLAS without CUDA or without the library.
weir_status weir_train_model_create(const struct weir_train_model_params *params,
                                    weir_train_model **out_model);

// Frees everything; memory that queues still use is kept until they are done. With CUBLAS wait for the
// queues first.
void weir_train_model_destroy(weir_train_model **model);

// A parameter, or a part of the method's state.
struct weir_train_parameter {
    char name[48]; // "layer3.weight", "layer3.weight.momentum"
    int rank;      // 2 of a weight, 1 of a bias
    uint64_t shape[2];
    size_t count;  // of elements
    size_t offset; // bytes, in weir_train_model_facts.parameters
};

struct weir_train_model_facts {
    // The parameters: of layer l the weight is number 2 l and the bias 2 l + 1. After them, in their order, comes the
    // method's state: a "momentum" of each with SGD; with Adam all "mean", then all "square".
    const struct weir_train_parameter *tensors;
    size_t tensor_count;
    size_t parameter_count;
    // All of these, float32, the master copy with BF16: one buffer. After changing weights in it, other
    // than by an update, call weir_train_model_refresh().
    weir_buffer *parameters;
    size_t inputs; // numbers of a sample
};

const struct weir_train_model_facts *weir_train_model_facts(const weir_train_model *model);

// Multiplications and additions of a forward pass, or of a forward and a backward pass.
double weir_train_model_flop(const weir_train_model *model, bool backward);

// Sets weights to random numbers of +-sqrt(6 / inputs) (He), biases and the state to 0. They depend on `seed` and
// the layers only, on every machine. Waits until they are on the device.
weir_status weir_train_model_initialise(weir_train_model *model, weir_queue *queue, uint64_t seed);

// Makes the BF16 copy of weights that were changed without an update. Submits nothing with F32.
weir_status weir_train_model_refresh(weir_train_model *model, weir_queue *queue);

// The place of one gradient: `count` float32 of the parameter from `offset` on, which is a multiple
// of limits.argument_alignment_bytes, or of 4 with limits.byte_offsets.
struct weir_train_view {
    weir_buffer *buffer;
    size_t offset;
};

// Says where gradients are written and read, one view for each parameter, before the first backward pass. Only while
// no pass is under way. The buffers must outlive the model, or the next call of this function.
weir_status weir_train_model_bind(weir_train_model *model, const struct weir_train_view *views);

// The samples of one pass, on the device. The forward pass alone reads them: once its work is done
// the next batch may be uploaded to the same place.
struct weir_train_batch {
    struct weir_train_view inputs; // float32 [batch, inputs]
    struct weir_train_view
        labels; // uint32 [batch], each below the count of classes; a label beyond
                // it has no class: no loss and no gradient
};

// Two float32, in a buffer of the caller's: the sum of the samples' losses, and how many samples
// were classified right.
#define WEIR_TRAIN_RESULT_BYTES 8

// Submits the forward pass and the gradient of the loss, and stores its `result`; with `accumulate` the two numbers are
// added to what is there.
weir_status weir_train_model_forward(weir_train_model *model, weir_queue *queue,
                                     const struct weir_train_batch *batch,
                                     struct weir_train_view result, bool accumulate);

// Submits the layers only and writes the last one's output to `output`, float32 [batch, outputs].
// For a frozen encoder, whose output is another model's input. `inputs` as in struct
// weir_train_batch.
weir_status weir_train_model_encode(weir_train_model *model, weir_queue *queue,
                                    struct weir_train_view inputs, struct weir_train_view output);

// Called once the work that completes the gradient of parameter `index` has been submitted to
// `queue`; may submit and record there. A negative return ends the pass.
typedef weir_status (*weir_train_ready)(void *user, size_t index, weir_queue *queue);

// Submits the backward pass of the last forward pass, once, to the same queue or to one that waits
// for it. Gradients are overwritten, or added to with `accumulate`. `ready` may be NULL.
weir_status weir_train_model_backward(weir_train_model *model, weir_queue *queue, bool accumulate,
                                      weir_train_ready ready, void *user);

struct weir_train_rates {
    float rate;    // of learning
    float scale;   // of gradients, such as 1 / (samples of all ranks)
    uint64_t step; // from 1 on
};

// Submits the update of all parameters, by one launch each, of a model with a method.
weir_status weir_train_model_update(weir_train_model *model, weir_queue *queue,
                                    const struct weir_train_rates *rates);

#endif
