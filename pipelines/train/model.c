// Creation and destruction of a model, and where its gradients are. Sizes are in layout.c, the passes
// in passes.c.
#include "pipelines/train/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/train/train_bf16.h"
#include "kernels/train/train_f32.h"
#include "pipelines/train/fail.h"
#include "pipelines/train/model_parts.h"

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
    weir_status status = weir_program_create(model->device, &params, &model->program);
    for (int i = 0; i < TRAIN_KERNEL_COUNT && status == WEIR_OK; i++)
        status = weir_kernel_create(model->program, kernel_names[i], &model->kernels[i]);
    model->engine.product = model->kernels[TRAIN_PRODUCT];
    model->engine.sum_parts = model->kernels[TRAIN_SUM_PARTS];
    model->engine.column_sums = model->kernels[TRAIN_COLUMN_SUMS];
    model->engine.bf16 = model->bf16;
    return status;
}

static weir_status create_buffer(weir_train_model *model, const char *what, size_t size,
                                 weir_buffer **out_buffer)
{
    char label[96];
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = label,
                                              .size = size};
    snprintf(label, sizeof label, "%s/%s", model->label, what);
    return weir_buffer_create(model->device, &params, out_buffer);
}

static weir_status create_layer(weir_train_model *model, struct train_layer *layer)
{
    const size_t pieces = (size_t)layer->rows * layer->depth * model->element_bytes;
    const bool is_its_pieces = layer->view.side == 1 && layer->view.stride == 1;
    const weir_status status =
        is_its_pieces ? WEIR_OK : create_buffer(model, "pieces", pieces, &layer->pieces);
    if (status != WEIR_OK)
        return status;
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

struct train_range train_model_weight(const weir_train_model *model, size_t index)
{
    const struct train_layer *layer = &model->layers[index];
    const size_t count = model->parameter[2 * index].count;
    if (model->bf16)
        return (struct train_range){model->copies, layer->weight_copy, count * 2};
    return (struct train_range){model->parameters, model->parameter[2 * index].offset,
                                count * sizeof(float)};
}

struct train_range train_model_gradient_range(const weir_train_model *model, size_t index)
{
    return (struct train_range){model->views[index].buffer, model->views[index].offset,
                                model->parameter[index].count * sizeof(float)};
}

struct weir_argument train_model_copy_argument(const weir_train_model *model, size_t index)
{
    if (!model->bf16 || index % 2)
        return weir_null();
    const struct train_range copy = train_model_weight(model, index / 2);
    return weir_out(copy.buffer, copy.offset, copy.size);
}

// The sizes of the products alone.
static void measure(weir_train_model *model, struct needs *needs)
{
    for (size_t i = 0; i < model->layer_count; i++) {
        struct train_layer *l = &model->layers[i];
        const uint32_t outputs = l->what.outputs;
        l->forward = (struct train_product){.m = l->rows, .n = outputs, .k = l->depth};
        raise(&needs->sums, (size_t)l->rows * outputs * sizeof(float));
        raise(&needs->parts, train_product_divide(&l->forward));
        raise(&needs->deltas, l->out_count * model->element_bytes);
        if (model->forward_only)
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
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < model->layer_count && status == WEIR_OK; i++) {
        struct train_layer *l = &model->layers[i];
        weir_buffer *input = i ? model->layers[i - 1].output : model->entry;
        const struct train_range pieces =
            elements(model, l->pieces ? l->pieces : input, (size_t)l->rows * l->depth);
        const struct train_range delta =
            elements(model, model->deltas[(model->layer_count - 1 - i) % 2], l->out_count);
        const struct train_range weight = train_model_weight(model, i);
        l->forward.a = pieces, l->forward.b = weight;
        l->forward.c = (struct train_range){model->sums, 0, (size_t)l->out_count * sizeof(float)};
        for (int add = 0; add < 2; add++)
            l->weight[add].a = pieces, l->weight[add].b = delta;
        l->back.a = delta, l->back.b = weight;
        l->back.c =
            (struct train_range){model->sums, 0, (size_t)l->rows * l->depth * sizeof(float)};
        status = train_product_prepare(&model->engine, &l->forward);
        if (status == WEIR_OK && !model->forward_only)
            status = train_product_prepare(&model->engine, &l->back);
    }
    return status;
}

static weir_status create_buffers(weir_train_model *model)
{
    struct needs needs = {0};
    weir_status status = WEIR_OK;
    measure(model, &needs);
    for (size_t i = 0; i < model->layer_count && status == WEIR_OK; i++)
        status = create_layer(model, &model->layers[i]);
    const struct {
        const char *what;
        size_t size;
        weir_buffer **out;
    } table[] = {
        {"parameters", model->parameter_bytes, &model->parameters},
        {"weights", model->copy_bytes, &model->copies},
        {"input", model->layers[0].in_count * model->element_bytes, &model->entry},
        {"sums", needs.sums, &model->sums},
        {"parts", needs.parts, &model->engine.parts},
        {"deltas0", needs.deltas, &model->deltas[0]},
        {"deltas1", model->forward_only ? 0 : needs.deltas, &model->deltas[1]},
        {"results", (size_t)model->batch * WEIR_TRAIN_RESULT_BYTES, &model->results},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table && status == WEIR_OK; i++)
        if (table[i].size)
            status = create_buffer(model, table[i].what, table[i].size, table[i].out);
    return status;
}

static weir_status create_parts(weir_train_model *model,
                                const struct weir_train_model_params *params)
{
    weir_status status;
    if ((status = train_model_lay_out(model, params)) || (status = create_kernels(model)) ||
        (status = create_buffers(model)))
        return status;
    if (params->products == WEIR_TRAIN_CUBLAS)
        status = train_blas_open(model->device, params->cublas, &model->engine.blas);
    if (status != WEIR_OK || (status = prepare(model)) || model->forward_only)
        return status;
    return weir_train_model_bind(model, NULL);
}

static bool is_power_of_two(float grid)
{
    int exponent;
    return frexpf(grid, &exponent) == 0.5f;
}

static weir_status check(const struct weir_train_model_params *params)
{
    const char *label = params->label;
    if (!params->device || !params->layers)
        return weir__pattern_fail(label, WEIR_ERROR_INVALID, NULL,
                                  "a device and layers are needed");
    if (params->layer_count < 1 || params->layer_count > WEIR_TRAIN_LAYERS_MAX)
        return weir__pattern_fail(label, WEIR_ERROR_INVALID, NULL,
                                  "layer_count is %zu; it must be 1 ... %d", params->layer_count,
                                  WEIR_TRAIN_LAYERS_MAX);
    if ((unsigned)params->element > WEIR_TRAIN_BF16)
        return weir__pattern_fail(label, WEIR_ERROR_INVALID,
                                  "pass WEIR_TRAIN_F32 or WEIR_TRAIN_BF16",
                                  "there is no element %d", (int)params->element);
    if ((unsigned)params->products > WEIR_TRAIN_CUBLAS)
        return weir__pattern_fail(label, WEIR_ERROR_INVALID,
                                  "pass WEIR_TRAIN_KERNELS or WEIR_TRAIN_CUBLAS",
                                  "there are no products %d", (int)params->products);
    if (params->grid != 0 &&
        !(params->grid >= 0x1p-16f && params->grid <= 1 && is_power_of_two(params->grid)))
        return weir__pattern_fail(label, WEIR_ERROR_INVALID, NULL,
                                  "grid is %g; it must be 0 or a power of two, 2^-16 ... 1",
                                  (double)params->grid);
    return WEIR_OK;
}

static size_t alignment_of(const weir_device *device)
{
    const size_t least = 256; // so that vectors of any size may be read
    const size_t wanted = (size_t)weir_device_limits(device)->argument_alignment_bytes;
    return wanted > least ? wanted : least;
}

weir_status weir_train_model_create(const struct weir_train_model_params *params,
                                    weir_train_model **out_model)
{
    struct weir_train_model_params known;
    weir_status status;
    *out_model = NULL;
    if ((status = weir__pattern_params("weir_train_model_create", "weir_train_model_params", params,
                                       &known, sizeof known)) ||
        (status = check(&known)))
        return status;
    weir_train_model *model = calloc(1, sizeof *model + known.layer_count * sizeof *model->layers);
    if (!model)
        return train_fail_memory(known.label);
    snprintf(model->label, sizeof model->label, "%s", known.label ? known.label : "model");
    model->device = known.device;
    model->input = known.input;
    model->layer_count = known.layer_count;
    model->batch = known.batch;
    model->bf16 = known.element == WEIR_TRAIN_BF16;
    model->element_bytes = model->bf16 ? 2 : 4;
    model->forward_only = known.forward_only;
    model->grid = known.grid;
    model->alignment = alignment_of(known.device);
    status = create_parts(model, &known);
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
    weir_buffer **buffers[] = {&m->parameters,   &m->copies,    &m->gradients, &m->entry,  &m->sums,
                               &m->engine.parts, &m->deltas[0], &m->deltas[1], &m->results};
    train_blas_close(&m->engine.blas);
    for (size_t i = 0; i < m->layer_count; i++) {
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

static weir_status bind_own(weir_train_model *model)
{
    if (!model->gradients) {
        const weir_status status =
            create_buffer(model, "gradients", model->parameter_bytes, &model->gradients);
        if (status != WEIR_OK)
            return status;
    }
    for (size_t i = 0; i < 2 * model->layer_count; i++)
        model->views[i] = (struct weir_train_view){model->gradients, model->parameter[i].offset};
    return WEIR_OK;
}

static weir_status bind_given(weir_train_model *model, const struct weir_train_view *views)
{
    for (size_t i = 0; i < 2 * model->layer_count; i++) {
        const size_t bytes = model->parameter[i].count * sizeof(float);
        const size_t room = weir_buffer_size(views[i].buffer);
        if (bytes > room || views[i].offset > room - bytes)
            return weir__pattern_fail(
                model->label, WEIR_ERROR_INVALID, NULL,
                "the gradient of %s takes %zu bytes from byte %zu of a buffer of %zu",
                model->parameter[i].name, bytes, views[i].offset, room);
    }
    for (size_t i = 0; i < 2 * model->layer_count; i++)
        model->views[i] = views[i];
    weir_buffer_destroy(&model->gradients);
    return WEIR_OK;
}

weir_status weir_train_model_bind(weir_train_model *model, const struct weir_train_view *views)
{
    if (model->forward_only)
        return weir__pattern_fail(model->label, WEIR_ERROR_INVALID, NULL,
                                  "the model is forward_only: it has no gradients");
    weir_status status = views ? bind_given(model, views) : bind_own(model);
    for (size_t i = 0; i < model->layer_count && status == WEIR_OK; i++)
        for (int add = 0; add < 2 && status == WEIR_OK; add++) {
            model->layers[i].weight[add].c = train_model_gradient_range(model, 2 * i);
            status = train_product_prepare(&model->engine, &model->layers[i].weight[add]);
        }
    return status;
}

struct weir_train_view weir_train_model_gradient(const weir_train_model *model, size_t index)
{
    const struct weir_train_view none = {NULL, 0};
    return index < 2 * model->layer_count ? model->views[index] : none;
}
