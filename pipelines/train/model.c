// A model: its sizes and parameters, its passes, its creation and destruction, where its gradients are, and its updates.
#include "pipelines/train/model.h"

#include <inttypes.h>
#include <math.h>

#include "base/random.h"
#include "kernels/train/tile.cl.h"
#include "kernels/train/train_bf16.h"
#include "kernels/train/train_f32.h"
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

// The parameters of a method and its state: what the names of these tensors end with.
static const char *const endings[][4] = {
    [WEIR_TRAIN_FIXED] = {""},
    [WEIR_TRAIN_SGD] = {"", ".momentum"},
    [WEIR_TRAIN_ADAM] = {"", ".mean", ".square"},
};

enum {
    TENSORS_MAX = 3 * 2 * WEIR_TRAIN_LAYERS_MAX
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
    struct weir_train_model_params params; // `label` is the copy, `layers` are not kept
    char label[WEIR__PATTERN_LABEL_SIZE];
    bool bf16;
    size_t element_bytes;
    size_t alignment; // of parameters in their buffers
    size_t parameter_bytes, copy_bytes;

    weir_program *program;
    weir_kernel *kernels[TRAIN_KERNEL_COUNT];
    struct train_engine engine;

    weir_buffer *copies;    // BF16: of the weights
    weir_buffer *entry;     // the input as elements
    weir_buffer *sums;      // of the product under way
    weir_buffer *deltas[2]; // gradients of outputs: of a layer's and of those before it
    weir_buffer *results;   // of each sample: loss, right or not

    struct weir_train_model_facts facts;
    struct weir_train_parameter parameter[TENSORS_MAX];
    struct weir_train_view views[2 * WEIR_TRAIN_LAYERS_MAX]; // zeros until they are bound
    struct train_layer layers[];
};

// The geometry of a network: sizes of layers and parameters, and the limits on them. Counts of
// elements are 32-bit integers in the kernels.

#define COUNT_MAX INT32_MAX
// Blocks of a product lie 64 rows apart, and a grid has at most 65,535 of them.
#define ROWS_MAX 4194240u

static struct train_geometry view_of(const struct weir_train_layer *layer,
                                     const struct weir_train_shape *from)
{
    if (layer->kind == WEIR_TRAIN_DENSE)
        return (struct train_geometry){.height = 1,
                                       .width = 1,
                                       .channels = from->height * from->width * from->channels,
                                       .side = 1,
                                       .stride = 1,
                                       .high = 1,
                                       .across = 1};
    return (struct train_geometry){.height = from->height,
                                   .width = from->width,
                                   .channels = from->channels,
                                   .side = layer->side,
                                   .stride = layer->stride,
                                   .high = (from->height + layer->stride - 1) / layer->stride,
                                   .across = (from->width + layer->stride - 1) / layer->stride};
}

// The product, or more than COUNT_MAX if it is larger than that.
static uint64_t count_of(uint64_t a, uint64_t b)
{
    if (a == 0 || b == 0)
        return 0;
    return a > COUNT_MAX / b ? (uint64_t)COUNT_MAX + 1 : a * b;
}

static weir_status refuse_size(const weir_train_model *model, size_t index, const char *what,
                               const char *remedy)
{
    return weir__pattern_refuse(model->label, remedy,
                                "the %s of layer %zu are more than %" PRId32 " numbers", what,
                                index, COUNT_MAX);
}

static weir_status set_layer(weir_train_model *model, size_t index,
                             const struct weir_train_layer *what, struct weir_train_shape *shape)
{
    struct train_layer *layer = &model->layers[index];
    layer->what = *what;
    layer->view = view_of(what, shape);
    const struct train_geometry *view = &layer->view;
    // Of the input there are at most COUNT_MAX, so these fit 64 bits.
    const uint64_t depth = (uint64_t)view->side * view->side * view->channels;
    const uint64_t rows = (uint64_t)view->high * view->across * model->params.batch;
    if (count_of(depth, what->outputs) > COUNT_MAX)
        return refuse_size(model, index, "weights", "choose fewer outputs or channels");
    if (rows > ROWS_MAX)
        return weir__pattern_refuse(model->label, "choose a smaller batch",
                                    "layer %zu has %" PRIu64 " places in a batch; %u is the limit",
                                    index, rows, ROWS_MAX);
    if (count_of(rows, depth) > COUNT_MAX || count_of(rows, what->outputs) > COUNT_MAX)
        return refuse_size(model, index, "inputs or outputs", "choose a smaller batch");
    layer->depth = (uint32_t)depth;
    layer->rows = (uint32_t)rows;
    layer->in_count = model->params.batch * view->height * view->width * view->channels;
    layer->out_count = layer->rows * what->outputs;
    *shape = (struct weir_train_shape){view->high, view->across, what->outputs};
    return WEIR_OK;
}

static size_t take(size_t *used, size_t alignment, size_t size)
{
    const size_t offset = *used;
    *used = (*used + size + alignment - 1) / alignment * alignment;
    return offset;
}

static void add_tensor(weir_train_model *model, size_t layer, const char *what, const char *ending,
                       int rank, uint64_t rows, uint64_t columns)
{
    struct weir_train_parameter *parameter = &model->parameter[model->facts.tensor_count++];
    snprintf(parameter->name, sizeof parameter->name, "layer%zu.%s%s", layer, what, ending);
    parameter->rank = rank;
    parameter->shape[0] = rows;
    parameter->shape[1] = columns;
    parameter->count = (size_t)(rows * (rank == 2 ? columns : 1));
    parameter->offset =
        take(&model->parameter_bytes, model->alignment, parameter->count * sizeof(float));
}

static void set_tensors(weir_train_model *model)
{
    const char *const *ending = endings[model->params.method];
    for (; *ending; ending++)
        for (size_t i = 0; i < model->params.layer_count; i++) {
            const struct train_layer *layer = &model->layers[i];
            add_tensor(model, i, "weight", *ending, 2, layer->depth, layer->what.outputs);
            add_tensor(model, i, "bias", *ending, 1, layer->what.outputs, 0);
        }
    for (size_t i = 0; i < model->params.layer_count && model->bf16; i++)
        model->layers[i].weight_copy =
            take(&model->copy_bytes, model->alignment, model->parameter[2 * i].count * 2);
}

static weir_status check_input(const weir_train_model *model)
{
    const struct weir_train_shape *in = &model->params.input;
    const uint64_t numbers = count_of(count_of(in->height, in->width), in->channels);
    if (numbers > COUNT_MAX)
        return weir__pattern_refuse(model->label, NULL,
                                    "the input is %" PRIu32 " x %" PRIu32 " x %" PRIu32
                                    ": more than %" PRId32 " numbers",
                                    in->height, in->width, in->channels, COUNT_MAX);
    if (count_of(numbers, model->params.batch) > COUNT_MAX)
        return weir__pattern_refuse(model->label, NULL,
                                    "the batch is %" PRIu32 "; it must be 1 ... %" PRIu64
                                    " with %" PRIu64 " numbers in a sample",
                                    model->params.batch, (uint64_t)COUNT_MAX / numbers, numbers);
    return WEIR_OK;
}

// Where the passes read the weight of layer `index`.
static struct train_range weight_range(const weir_train_model *model, size_t index)
{
    const struct train_layer *layer = &model->layers[index];
    const size_t count = model->parameter[2 * index].count;
    if (model->bf16)
        return (struct train_range){model->copies, layer->weight_copy, count * 2};
    return (struct train_range){model->facts.parameters, model->parameter[2 * index].offset,
                                count * sizeof(float)};
}

static struct train_range gradient_range(const weir_train_model *model, size_t index)
{
    return (struct train_range){model->views[index].buffer, model->views[index].offset,
                                model->parameter[index].count * sizeof(float)};
}

static struct weir_argument copy_argument(const weir_train_model *model, size_t index)
{
    if (!model->bf16 || index % 2)
        return weir_null();
    const struct train_range copy = weight_range(model, index / 2);
    return weir_out(copy.buffer, copy.offset, copy.size);
}

const struct weir_train_model_facts *weir_train_model_facts(const weir_train_model *model)
{
    return &model->facts;
}

weir_status weir_train_model_initialise(weir_train_model *model, weir_queue *queue, uint64_t seed)
{
    float *values = calloc(1, model->parameter_bytes);
    if (!values)
        return weir__pattern_no_memory(model->label, "the parameters");
    for (size_t i = 0; i < model->params.layer_count; i++) {
        const struct weir_train_parameter *weight = &model->parameter[2 * i];
        const float most = sqrtf(6.0f / (float)model->layers[i].depth);
        // The top 24 bits are exact in float32, so each number is rounded once.
        for (size_t k = 0; k < weight->count; k++) {
            const int32_t bits = (int32_t)(weir_random(seed, i, k) >> 40);
            values[weight->offset / sizeof(float) + k] =
                (float)(bits - (1 << 23)) * 0x1p-23f * most;
        }
    }
    const weir_status status =
        weir_upload(queue, model->facts.parameters, 0, values, model->parameter_bytes);
    free(values);
    TRY(status);
    TRY(weir_train_model_refresh(model, queue));
    return weir_queue_sync(queue, WEIR_FOREVER);
}

weir_status weir_train_model_refresh(weir_train_model *model, weir_queue *queue)
{
    for (size_t i = 0; i < model->params.layer_count && model->bf16; i++) {
        const struct weir_train_parameter *weight = &model->parameter[2 * i];
        TRY(weir_queue_launch_count(queue, model->kernels[TRAIN_NARROW], weight->count,
                                    weir_in(model->facts.parameters, weight->offset,
                                            weight->count * sizeof(float)),
                                    copy_argument(model, 2 * i), (uint32_t)weight->count));
    }
    return WEIR_OK;
}

double weir_train_model_flop(const weir_train_model *model, bool backward)
{
    double sum = 0;
    for (size_t i = 0; i < model->params.layer_count; i++) {
        const struct train_layer *layer = &model->layers[i];
        const int products = backward ? (i > 0 ? 3 : 2) : 1;
        sum += 2.0 * products * layer->rows * layer->depth * layer->what.outputs;
    }
    return sum;
}

// The passes, layer by layer. The gradient of a layer's outputs (its delta) and of those before it
// are in two buffers in turn; the sums of a product are used up before the next one is submitted.

static weir_buffer *input_of(const weir_train_model *model, size_t index)
{
    return index ? model->layers[index - 1].output : model->entry;
}

// The delta of the outputs of layer `index`.
static weir_buffer *delta_of(const weir_train_model *model, size_t index)
{
    return model->deltas[(model->params.layer_count - 1 - index) % 2];
}

static weir_status forward_layer(weir_train_model *model, weir_queue *queue, size_t index)
{
    struct train_layer *layer = &model->layers[index];
    const struct weir_train_parameter *bias = &model->parameter[2 * index + 1];
    const uint32_t pieces = layer->rows * layer->depth;
    if (layer->pieces)
        TRY(weir_queue_launch_count(queue, model->kernels[TRAIN_PIECES], pieces,
                                    weir_whole_in(input_of(model, index)),
                                    weir_whole_out(layer->pieces),
                                    weir_value(&layer->view, sizeof layer->view), pieces));
    TRY(train_product_submit(&model->engine, queue, &layer->forward));
    return weir_queue_launch_count(queue, model->kernels[TRAIN_ACTIVATE], layer->out_count,
                                   weir_in(model->sums, 0,
                                           (size_t)layer->out_count * sizeof(float)),
                                   weir_in(model->facts.parameters, bias->offset,
                                           bias->count * sizeof(float)),
                                   weir_whole_out(layer->output), layer->what.outputs,
                                   layer->what.relu, model->params.grid, layer->out_count);
}

static weir_status forward_layers(weir_train_model *model, weir_queue *queue,
                                  struct weir_train_view inputs)
{
    const uint32_t count = model->layers[0].in_count;
    TRY(weir_queue_launch_count(queue, model->kernels[TRAIN_NARROW], count,
                                weir_in(inputs.buffer, inputs.offset, count * sizeof(float)),
                                weir_whole_out(model->entry), count));
    for (size_t i = 0; i < model->params.layer_count; i++)
        TRY(forward_layer(model, queue, i));
    return WEIR_OK;
}

static struct weir_argument outputs_of(const weir_train_model *model)
{
    return weir_whole_in(model->layers[model->params.layer_count - 1].output);
}

weir_status weir_train_model_encode(weir_train_model *model, weir_queue *queue,
                                    struct weir_train_view inputs, struct weir_train_view output)
{
    const uint32_t count = model->layers[model->params.layer_count - 1].out_count;
    TRY(forward_layers(model, queue, inputs));
    return weir_queue_launch_count(queue, model->kernels[TRAIN_WIDEN], count, outputs_of(model),
                                   weir_out(output.buffer, output.offset, count * sizeof(float)),
                                   count);
}

weir_status weir_train_model_forward(weir_train_model *model, weir_queue *queue,
                                     const struct weir_train_batch *batch,
                                     struct weir_train_view result, bool accumulate)
{
    const uint32_t count = model->layers[model->params.layer_count - 1].out_count;
    const struct weir_train_view *labels = &batch->labels;
    const size_t size = WEIR_TRAIN_RESULT_BYTES;
    TRY(forward_layers(model, queue, batch->inputs));
    TRY(weir_queue_launch_count(
        queue, model->kernels[TRAIN_CROSS_ENTROPY], model->params.batch, outputs_of(model),
        weir_in(labels->buffer, labels->offset, model->params.batch * sizeof(uint32_t)),
        weir_out(model->deltas[0], 0, count * model->element_bytes), weir_whole_out(model->results),
        model->params.batch, count / model->params.batch, model->params.grid));
    return weir_queue_launch(queue, model->kernels[TRAIN_SUM_RESULTS], weir_dim(1, 1, 1),
                             weir_dim(TRAIN_RESULT_ITEMS, 1, 1), weir_whole_in(model->results),
                             accumulate ? weir_inout(result.buffer, result.offset, size)
                                        : weir_out(result.buffer, result.offset, size),
                             model->params.batch, accumulate);
}

static weir_status submit_bias(weir_train_model *model, weir_queue *queue, size_t index, bool add)
{
    const struct train_layer *layer = &model->layers[index];
    const struct train_columns columns = {
        .from = {delta_of(model, index), 0, layer->out_count * model->element_bytes},
        .to = gradient_range(model, 2 * index + 1),
        .rows = layer->rows,
        .columns = layer->what.outputs,
        .add = add,
    };
    return train_columns_submit(&model->engine, queue, &columns);
}

// The delta of the layer before.
static weir_status submit_back(weir_train_model *model, weir_queue *queue, size_t index)
{
    struct train_layer *layer = &model->layers[index];
    const struct train_layer *before = layer - 1;
    const size_t bytes = layer->in_count * model->element_bytes;
    TRY(train_product_submit(&model->engine, queue, &layer->back));
    return weir_queue_launch_count(queue, model->kernels[TRAIN_UNITE], layer->in_count,
                                   weir_in(layer->back.c.buffer, 0, layer->back.c.size),
                                   weir_whole_in(before->output),
                                   weir_out(delta_of(model, index - 1), 0, bytes),
                                   weir_value(&layer->view, sizeof layer->view), before->what.relu,
                                   model->params.grid, layer->in_count);
}

static weir_status tell(weir_train_ready ready, void *user, size_t index, weir_queue *queue)
{
    return ready ? ready(user, index, queue) : WEIR_OK;
}

weir_status weir_train_model_backward(weir_train_model *model, weir_queue *queue, bool accumulate,
                                      weir_train_ready ready, void *user)
{
    for (size_t i = model->params.layer_count; i-- > 0;) {
        TRY(submit_bias(model, queue, i, accumulate));
        TRY(tell(ready, user, 2 * i + 1, queue));
        TRY(train_product_submit(&model->engine, queue, &model->layers[i].weight[accumulate]));
        TRY(tell(ready, user, 2 * i, queue));
        if (i > 0)
            TRY(submit_back(model, queue, i));
    }
    return WEIR_OK;
}

static const char *const kernel_names[TRAIN_KERNEL_COUNT] = {
    [TRAIN_NARROW] = "narrow",           [TRAIN_WIDEN] = "widen",
    [TRAIN_PIECES] = "pieces",           [TRAIN_UNITE] = "unite",
    [TRAIN_ACTIVATE] = "activate",       [TRAIN_CROSS_ENTROPY] = "cross_entropy",
    [TRAIN_SUM_RESULTS] = "sum_results", [TRAIN_PRODUCT] = "product",
    [TRAIN_SUM_PARTS] = "sum_parts",     [TRAIN_COLUMN_SUMS] = "column_sums",
    [TRAIN_UPDATE_SGD] = "update_sgd",   [TRAIN_UPDATE_ADAM] = "update_adam",
};

// Creation.

static weir_status create_kernels(weir_train_model *model)
{
    const struct weir_program_params params = {
        .struct_size = sizeof params,
        .label = model->label,
        .bundle = model->bf16 ? &train_bf16_kernels : &train_f32_kernels,
    };
    TRY(weir_program_create(model->params.device, &params, &model->program));
    for (int i = 0; i < TRAIN_KERNEL_COUNT; i++)
        TRY(weir_kernel_create(model->program, kernel_names[i], &model->kernels[i]));
    model->engine.product = model->kernels[TRAIN_PRODUCT];
    model->engine.sum_parts = model->kernels[TRAIN_SUM_PARTS];
    model->engine.column_sums = model->kernels[TRAIN_COLUMN_SUMS];
    model->engine.bf16 = model->bf16;
    return WEIR_OK;
}

static weir_status create_buffer(weir_train_model *model, const char *what, size_t size,
                                 weir_buffer **out_buffer)
{
    char label[96];
    snprintf(label, sizeof label, "%s/%s", model->label, what);
    return weir_buffer_create(model->params.device,
                              WEIR_PARAMS(weir_buffer, .label = label, .size = size), out_buffer);
}

static weir_status create_layer(weir_train_model *model, struct train_layer *layer)
{
    const size_t pieces = (size_t)layer->rows * layer->depth * model->element_bytes;
    const bool is_its_pieces = layer->view.side == 1 && layer->view.stride == 1;
    if (!is_its_pieces)
        TRY(create_buffer(model, "pieces", pieces, &layer->pieces));
    return create_buffer(model, "activations", layer->out_count * model->element_bytes,
                         &layer->output);
}

// How large the largest of a kind has to be.
struct needs {
    size_t sums, parts, deltas; // bytes
};

static void raise(size_t *most, size_t bytes)
{
    *most = bytes > *most ? bytes : *most;
}

static struct train_range elements(const weir_train_model *model, weir_buffer *buffer, size_t count)
{
    return (struct train_range){buffer, 0, count * model->element_bytes};
}

// The sizes of the products alone.
static void measure(weir_train_model *model, struct needs *needs)
{
    for (size_t i = 0; i < model->params.layer_count; i++) {
        struct train_layer *l = &model->layers[i];
        const uint32_t outputs = l->what.outputs;
        l->forward = (struct train_product){.m = l->rows, .n = outputs, .k = l->depth};
        raise(&needs->sums, (size_t)l->rows * outputs * sizeof(float));
        raise(&needs->parts, train_product_divide(&l->forward));
        raise(&needs->deltas, l->out_count * model->element_bytes);
        if (model->params.forward_only)
            continue;
        for (int add = 0; add < 2; add++) {
            l->weight[add] = (struct train_product){
                .m = l->depth, .n = outputs, .k = l->rows, .turned_a = true, .add = add};
            raise(&needs->parts, train_product_divide(&l->weight[add]));
        }
        l->back =
            (struct train_product){.m = l->rows, .n = l->depth, .k = outputs, .turned_b = true};
        raise(&needs->parts, train_product_divide(&l->back));
        raise(&needs->parts, train_columns_divide(l->rows, outputs));
        raise(&needs->sums, (size_t)l->rows * l->depth * sizeof(float));
    }
}

// The ranges of the products, except for gradients, which are bound.
static weir_status prepare(weir_train_model *model)
{
    for (size_t i = 0; i < model->params.layer_count; i++) {
        struct train_layer *l = &model->layers[i];
        const struct train_range pieces =
            elements(model, l->pieces ? l->pieces : input_of(model, i), (size_t)l->rows * l->depth);
        const struct train_range delta = elements(model, delta_of(model, i), l->out_count);
        const struct train_range weight = weight_range(model, i);
        l->forward.a = pieces, l->forward.b = weight;
        l->forward.c = (struct train_range){model->sums, 0, (size_t)l->out_count * sizeof(float)};
        for (int add = 0; add < 2; add++)
            l->weight[add].a = pieces, l->weight[add].b = delta;
        l->back.a = delta, l->back.b = weight;
        l->back.c =
            (struct train_range){model->sums, 0, (size_t)l->rows * l->depth * sizeof(float)};
        TRY(train_product_prepare(&model->engine, &l->forward));
        if (!model->params.forward_only)
            TRY(train_product_prepare(&model->engine, &l->back));
    }
    return WEIR_OK;
}

static weir_status create_buffers(weir_train_model *model)
{
    struct needs needs = {0};
    measure(model, &needs);
    for (size_t i = 0; i < model->params.layer_count; i++)
        TRY(create_layer(model, &model->layers[i]));
    const struct {
        const char *what;
        size_t size;
        weir_buffer **out;
    } table[] = {
        {"parameters", model->parameter_bytes, &model->facts.parameters},
        {"weights", model->copy_bytes, &model->copies},
        {"input", model->layers[0].in_count * model->element_bytes, &model->entry},
        {"sums", needs.sums, &model->sums},
        {"parts", needs.parts, &model->engine.parts},
        {"deltas0", needs.deltas, &model->deltas[0]},
        {"deltas1", model->params.forward_only ? 0 : needs.deltas, &model->deltas[1]},
        {"results", (size_t)model->params.batch * WEIR_TRAIN_RESULT_BYTES, &model->results},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].size)
            TRY(create_buffer(model, table[i].what, table[i].size, table[i].out));
    return WEIR_OK;
}

static weir_status create_parts(weir_train_model *model,
                                const struct weir_train_model_params *params)
{
    struct weir_train_shape shape = params->input;
    TRY(check_input(model));
    for (size_t i = 0; i < params->layer_count; i++)
        TRY(set_layer(model, i, &params->layers[i], &shape));
    set_tensors(model);
    model->facts.tensors = model->parameter;
    model->facts.parameter_count = 2 * params->layer_count;
    model->facts.inputs = model->layers[0].in_count / params->batch;
    TRY(create_kernels(model));
    TRY(create_buffers(model));
    if (params->products == WEIR_TRAIN_CUBLAS)
        TRY(train_blas_open(params->device, params->cublas, &model->engine.blas));
    return prepare(model);
}

weir_status weir_train_model_create(const struct weir_train_model_params *params,
                                    weir_train_model **out_model)
{
    *out_model = NULL;
    weir_train_model *model =
        calloc(1, sizeof *model + params->layer_count * sizeof *model->layers);
    if (!model)
        return weir__pattern_no_memory(params->label, "a model");
    model->params = *params;
    model->params.label = weir__pattern_keep(model->label, params->label, "model");
    model->bf16 = params->element == WEIR_TRAIN_BF16;
    model->element_bytes = model->bf16 ? 2 : 4;
    model->alignment = (size_t)weir_device_limits(params->device)->argument_alignment_bytes;
    if (model->alignment < 256) // so that vectors of any size may be read
        model->alignment = 256;
    const weir_status status = create_parts(model, params);
    if (status != WEIR_OK)
        weir_train_model_destroy(&model);
    *out_model = model;
    return status;
}

void weir_train_model_destroy(weir_train_model **model)
{
    if (!model || !*model)
        return;
    weir_train_model *m = *model;
    weir_buffer **buffers[] = {&m->facts.parameters, &m->copies,    &m->entry,     &m->sums,
                               &m->engine.parts,     &m->deltas[0], &m->deltas[1], &m->results};
    train_blas_close(&m->engine.blas);
    for (size_t i = 0; i < m->params.layer_count; i++) {
        weir_buffer_destroy(&m->layers[i].pieces);
        weir_buffer_destroy(&m->layers[i].output);
    }
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        weir_buffer_destroy(buffers[i]);
    for (int i = 0; i < TRAIN_KERNEL_COUNT; i++)
        weir_kernel_destroy(&m->kernels[i]);
    weir_program_destroy(&m->program);
    free(m);
    *model = NULL;
}

// Gradients.

weir_status weir_train_model_bind(weir_train_model *model, const struct weir_train_view *views)
{
    memcpy(model->views, views, 2 * model->params.layer_count * sizeof *views);
    for (size_t i = 0; i < model->params.layer_count; i++)
        for (int add = 0; add < 2; add++) {
            model->layers[i].weight[add].c = gradient_range(model, 2 * i);
            TRY(train_product_prepare(&model->engine, &model->layers[i].weight[add]));
        }
    return WEIR_OK;
}

// Updates of the parameters: one launch for each. What depends on the step alone is computed on the host, in
// float64.

// Parameter `index`, or a part of its state.
static struct weir_argument part_of(const weir_train_model *model, size_t index, size_t part)
{
    const struct weir_train_parameter *tensor =
        &model->parameter[2 * model->params.layer_count * part + index];
    return weir_inout(model->facts.parameters, tensor->offset, tensor->count * sizeof(float));
}

static struct weir_argument gradient_of(const weir_train_model *model, size_t index)
{
    const struct train_range range = gradient_range(model, index);
    return weir_in(range.buffer, range.offset, range.size);
}

static weir_status update_sgd(const weir_train_model *model, weir_queue *queue, size_t index,
                              const struct weir_train_rates *rates)
{
    const struct weir_train_parameter *parameter = &model->parameter[index];
    return weir_queue_launch_count(queue, model->kernels[TRAIN_UPDATE_SGD], parameter->count,
                                   part_of(model, index, 0), gradient_of(model, index),
                                   part_of(model, index, 1), copy_argument(model, index),
                                   rates->rate, rates->scale, model->params.momentum,
                                   (uint32_t)parameter->count);
}

static weir_status update_adam(const weir_train_model *model, weir_queue *queue, size_t index,
                               const struct weir_train_rates *rates)
{
    static const float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
    const struct weir_train_parameter *parameter = &model->parameter[index];
    const double step = (double)rates->step;
    const double left1 = 1 - pow((double)beta1, step);
    const double left2 = 1 - pow((double)beta2, step);
    return weir_queue_launch_count(queue, model->kernels[TRAIN_UPDATE_ADAM], parameter->count,
                                   part_of(model, index, 0), gradient_of(model, index),
                                   part_of(model, index, 1), part_of(model, index, 2),
                                   copy_argument(model, index),
                                   (float)((double)rates->rate / left1), rates->scale, beta1,
                                   1 - beta1, beta2, 1 - beta2, (float)(1 / left2), epsilon,
                                   (uint32_t)parameter->count);
}

weir_status weir_train_model_update(weir_train_model *model, weir_queue *queue,
                                    const struct weir_train_rates *rates)
{
    for (size_t i = 0; i < 2 * model->params.layer_count; i++)
        TRY(model->params.method == WEIR_TRAIN_SGD ? update_sgd(model, queue, i, rates)
                                                   : update_adam(model, queue, i, rates));
    return WEIR_OK;
}
