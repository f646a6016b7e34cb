// Shared by the files of a model.
#ifndef WEIR_PIPELINES_TRAIN_MODEL_PARTS_H
#define WEIR_PIPELINES_TRAIN_MODEL_PARTS_H

#include "pipelines/train/model.h"
#include "pipelines/train/product.h"

// The kernels, in the order of the table of names.
enum train_kernel {
    TRAIN_NARROW,
    TRAIN_WIDEN,
    TRAIN_PIECES,
    TRAIN_UNITE,
    TRAIN_ACTIVATE,
    TRAIN_CROSS_ENTROPY,
    TRAIN_SUM_RESULTS,
    TRAIN_PRODUCT,
    TRAIN_SUM_PARTS,
    TRAIN_COLUMN_SUMS,
    TRAIN_UPDATE_SGD,
    TRAIN_UPDATE_ADAM,
    TRAIN_KERNEL_COUNT
};

// The kernels' `struct view`. A dense layer has one place, of one piece of one pixel.
struct train_geometry {
    uint32_t height, width, channels, side, stride, high, across;
};

struct train_layer {
    struct weir_train_layer what;
    struct train_geometry view;
    uint32_t depth;     // numbers of a piece
    uint32_t rows;      // places of all samples
    uint32_t in_count;  // numbers of all inputs
    uint32_t out_count; // numbers of all outputs
    size_t weight_copy; // bytes, where the weight is in `copies`

    weir_buffer *pieces; // NULL: the layer's input is its pieces
    weir_buffer *output;

    struct train_product forward;   // pieces x weight -> sums
    struct train_product weight[2]; // pieces' x gradient -> weight's gradient; [1] adds
    struct train_product back;      // gradient x weight' -> sums
};

struct weir_train_model {
    char label[64];
    weir_device *device;
    struct weir_train_shape input;
    size_t layer_count;
    uint32_t batch;
    bool bf16;
    bool forward_only;
    float grid;
    weir_train_method method;
    float momentum;
    size_t element_bytes;
    size_t alignment; // of parameters in their buffers
    size_t parameter_bytes, copy_bytes;

    weir_program *program;
    weir_kernel *kernels[TRAIN_KERNEL_COUNT];
    struct train_engine engine;

    weir_buffer *parameters;
    weir_buffer *copies;    // BF16: of the weights
    weir_buffer *entry;     // the input as elements
    weir_buffer *sums;      // of the product under way
    weir_buffer *deltas[2]; // gradients of outputs: of a layer's and of those before it
    weir_buffer *results;   // of each sample: loss, right or not
    weir_buffer *states[2]; // of the method

    struct weir_train_parameter parameter[2 * WEIR_TRAIN_LAYERS_MAX];
    struct weir_train_view views[2 * WEIR_TRAIN_LAYERS_MAX]; // zeros until they are bound
    struct train_layer layers[];
};

// The name of a method's state; NULL: it has none of that index.
const char *train_state_name(weir_train_method method, size_t index);

// A gradient's range in its view.
struct train_range train_model_gradient_range(const weir_train_model *model, size_t index);

// The copy of parameter `index` that an update makes; NULL for none.
struct weir_argument train_model_copy_argument(const weir_train_model *model, size_t index);

#endif
