// See the header.
#include <math.h>

#include "base/random.h"
#include "tests/pipelines/train/rig.h"

const char *const rig_network_names[RIG_NETWORKS] = {"MLP", "convolutions"};

// A stride that does not divide the image, one that is larger than the side, a side of 1 with and
// without a stride.
static const struct weir_train_layer mlp[] = {
    {.kind = WEIR_TRAIN_DENSE, .outputs = 9, .relu = true},
    {.kind = WEIR_TRAIN_DENSE, .outputs = 5},
    {.kind = WEIR_TRAIN_DENSE, .outputs = 7, .relu = true},
    {.kind = WEIR_TRAIN_DENSE, .outputs = 4},
};
static const struct weir_train_layer convnet[] = {
    {.kind = WEIR_TRAIN_CONVOLUTION, .outputs = 3, .side = 3, .stride = 2, .relu = true},
    {.kind = WEIR_TRAIN_CONVOLUTION, .outputs = 4, .side = 1, .stride = 1, .relu = true},
    {.kind = WEIR_TRAIN_CONVOLUTION, .outputs = 5, .side = 5, .stride = 1},
    {.kind = WEIR_TRAIN_CONVOLUTION, .outputs = 4, .side = 1, .stride = 2, .relu = true},
    {.kind = WEIR_TRAIN_DENSE, .outputs = 3},
};

void *rig_alloc(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        fprintf(stderr, "no memory for %zu x %zu bytes\n", count, size);
        exit(EXIT_FAILURE);
    }
    return memory;
}

weir_buffer *rig_buffer(const struct test_device *rig, size_t bytes)
{
    weir_buffer *buffer = NULL;
    EXPECT_OK(weir_buffer_create(rig->device, WEIR_PARAMS(weir_buffer, .size = bytes), &buffer));
    return buffer;
}

struct weir_train_model_params rig_params(const struct test_device *rig, enum rig_network network,
                                          uint32_t batch)
{
    const bool dense = network == RIG_MLP;
    const struct weir_train_model_params params = {
        .label = rig_network_names[network],
        .device = rig->device,
        .input = dense ? (struct weir_train_shape){1, 1, 6} : (struct weir_train_shape){7, 6, 2},
        .layers = dense ? mlp : convnet,
        .layer_count = dense ? sizeof mlp / sizeof *mlp : sizeof convnet / sizeof *convnet,
        .batch = batch,
    };
    return params;
}

weir_buffer *rig_bind(const struct test_device *rig, weir_train_model *model,
                      struct weir_train_view views[RIG_PARAMETERS_MAX])
{
    weir_buffer *buffer =
        rig_buffer(rig, weir_buffer_size(weir_train_model_facts(model)->parameters));
    for (size_t i = 0; i < weir_train_model_facts(model)->parameter_count; i++)
        views[i] =
            (struct weir_train_view){buffer, weir_train_model_facts(model)->tensors[i].offset};
    EXPECT_OK(weir_train_model_bind(model, views));
    return buffer;
}

static void fill(struct rig_scene *scene, uint64_t seed)
{
    for (size_t i = 0; i < scene->batch * scene->inputs; i++)
        scene->values[i] = (float)(int)(weir_random(seed, 1, i) % 256) / 64.0f - 2.0f;
    for (uint32_t i = 0; i < scene->batch; i++)
        scene->labels[i] = i % (uint32_t)scene->classes;
}

// Biases of 0 put a ReLU whose inputs are all 0 at its kink, where it has no derivative.
static void set_biases(struct rig_scene *scene)
{
    float biases[64];
    for (size_t i = 1; i < weir_train_model_facts(scene->model)->parameter_count; i += 2) {
        const struct weir_train_parameter *p = &weir_train_model_facts(scene->model)->tensors[i];
        for (size_t k = 0; k < p->count; k++)
            biases[k] = (float)(int)(weir_random(2, i, k) % 256) / 256.0f - 0.4f;
        EXPECT_OK(weir_upload(scene->rig->queue, weir_train_model_facts(scene->model)->parameters,
                              p->offset, biases, p->count * sizeof(float)));
    }
}

static bool upload(struct rig_scene *scene)
{
    weir_queue *queue = scene->rig->queue;
    const size_t bytes = scene->batch * scene->inputs * sizeof(float);
    const size_t label_bytes = scene->batch * sizeof(uint32_t);
    scene->on_device = rig_buffer(scene->rig, bytes);
    scene->labels_on_device = rig_buffer(scene->rig, label_bytes);
    scene->result = rig_buffer(scene->rig, WEIR_TRAIN_RESULT_BYTES);
    scene->samples = (struct weir_train_batch){{scene->on_device, 0}, {scene->labels_on_device, 0}};
    EXPECT_OK(weir_upload(queue, scene->on_device, 0, scene->values, bytes));
    EXPECT_OK(weir_upload(queue, scene->labels_on_device, 0, scene->labels, label_bytes));
    return !weir_test_has_failed();
}

bool rig_scene_open(struct rig_scene *scene, struct test_device *rig,
                    const struct weir_train_model_params *params, uint64_t seed)
{
    *scene = (struct rig_scene){.rig = rig, .batch = params->batch};
    if (!IS_OK(weir_train_model_create(params, &scene->model)))
        return false;
    scene->inputs = weir_train_model_facts(scene->model)->inputs;
    scene->classes = params->layers[params->layer_count - 1].outputs;
    scene->parameters =
        weir_buffer_size(weir_train_model_facts(scene->model)->parameters) / sizeof(float);
    scene->values = rig_alloc(scene->batch * scene->inputs, sizeof(float));
    scene->labels = rig_alloc(scene->batch, sizeof(uint32_t));
    fill(scene, seed);
    scene->gradients = rig_bind(rig, scene->model, scene->views);
    EXPECT_OK(weir_train_model_initialise(scene->model, rig->queue, 1));
    set_biases(scene);
    return upload(scene);
}

void rig_scene_close(struct rig_scene *scene)
{
    free(scene->values);
    free(scene->labels);
    weir_buffer_destroy(&scene->on_device);
    weir_buffer_destroy(&scene->labels_on_device);
    weir_buffer_destroy(&scene->result);
    weir_train_model_destroy(&scene->model);
    weir_buffer_destroy(&scene->gradients);
}

bool rig_scene_run(struct rig_scene *scene, float out_result[2])
{
    weir_queue *queue = scene->rig->queue;
    const struct weir_train_view result = {scene->result, 0};
    EXPECT_OK(weir_train_model_forward(scene->model, queue, &scene->samples, result, false));
    EXPECT_OK(weir_train_model_backward(scene->model, queue, false, NULL, NULL));
    EXPECT_OK(weir_download(queue, out_result, scene->result, 0, WEIR_TRAIN_RESULT_BYTES));
    return !weir_test_has_failed();
}

float *rig_scene_parameters(struct rig_scene *scene)
{
    float *values = rig_alloc(scene->parameters, sizeof(float));
    EXPECT_OK(weir_download(scene->rig->queue, values,
                            weir_train_model_facts(scene->model)->parameters, 0,
                            scene->parameters * sizeof(float)));
    return values;
}

float *rig_scene_gradients(struct rig_scene *scene)
{
    float *values = rig_alloc(scene->parameters, sizeof(float));
    for (size_t i = 0; i < weir_train_model_facts(scene->model)->parameter_count; i++) {
        const struct weir_train_parameter *p = &weir_train_model_facts(scene->model)->tensors[i];
        const struct weir_train_view view = scene->views[i];
        EXPECT_OK(weir_download(scene->rig->queue, values + p->offset / sizeof(float), view.buffer,
                                view.offset, p->count * sizeof(float)));
    }
    return values;
}

// See the header. Pixels outside an image are left out; nothing is gathered first.

#define NUMBERS_MAX 256 // of an image

struct image {
    uint32_t height, width, channels;
    double pixels[NUMBERS_MAX];
};

// The sum of one place and output channel, with the image's pixel (y0, x0) under the corner.
static double place(const struct weir_train_layer *layer, const struct image *in, long y0, long x0,
                    const double *weight, uint32_t output)
{
    double sum = 0;
    for (uint32_t y = 0; y < layer->side; y++)
        for (uint32_t x = 0; x < layer->side; x++)
            for (uint32_t c = 0; c < in->channels; c++) {
                const long row = y0 + (long)y;
                const long column = x0 + (long)x;
                if (row < 0 || column < 0 || row >= (long)in->height || column >= (long)in->width)
                    continue;
                const size_t from = ((size_t)row * in->width + (size_t)column) * in->channels + c;
                const size_t at = ((size_t)y * layer->side + x) * in->channels + c;
                sum += in->pixels[from] * weight[at * layer->outputs + output];
            }
    return sum;
}

static void run_layer(const struct weir_train_layer *what, const struct image *in,
                      const double *weight, const double *bias, struct image *out)
{
    struct weir_train_layer layer = *what;
    struct image flat = *in;
    if (layer.kind == WEIR_TRAIN_DENSE) {
        flat.channels = in->height * in->width * in->channels;
        flat.height = flat.width = 1;
        layer.side = layer.stride = 1;
    }
    out->height = (flat.height + layer.stride - 1) / layer.stride;
    out->width = (flat.width + layer.stride - 1) / layer.stride;
    out->channels = layer.outputs;
    double *to = out->pixels;
    for (uint32_t y = 0; y < out->height; y++)
        for (uint32_t x = 0; x < out->width; x++)
            for (uint32_t o = 0; o < layer.outputs; o++) {
                const long half = (long)layer.side / 2;
                const double sum = bias[o] + place(&layer, &flat, (long)y * layer.stride - half,
                                                   (long)x * layer.stride - half, weight, o);
                *to++ = layer.relu && sum < 0 ? 0 : sum;
            }
}

void reference_outputs(const struct weir_train_model_params *params, const weir_train_model *model,
                       const double *values, const float *input, double *out)
{
    const struct weir_train_shape *shape = &params->input;
    const size_t inputs = (size_t)shape->height * shape->width * shape->channels;
    struct image image = {shape->height, shape->width, shape->channels, {0}};
    struct image next;
    for (size_t i = 0; i < inputs; i++)
        image.pixels[i] = (double)input[i];
    for (size_t i = 0; i < params->layer_count; i++) {
        const size_t weight = weir_train_model_facts(model)->tensors[2 * i].offset / sizeof(float);
        const size_t bias =
            weir_train_model_facts(model)->tensors[2 * i + 1].offset / sizeof(float);
        run_layer(&params->layers[i], &image, values + weight, values + bias, &next);
        image = next;
    }
    memcpy(out, image.pixels, (size_t)image.height * image.width * image.channels * sizeof(double));
}

double reference_loss(const struct weir_train_model_params *params, const weir_train_model *model,
                      const double *values, const float *inputs, const uint32_t *labels)
{
    const size_t classes = params->layers[params->layer_count - 1].outputs;
    double outputs[NUMBERS_MAX] = {0};
    double loss = 0;
    for (uint32_t sample = 0; sample < params->batch; sample++) {
        double sum = 0;
        if (labels[sample] >= classes)
            continue;
        reference_outputs(params, model, values,
                          inputs + sample * weir_train_model_facts(model)->inputs, outputs);
        for (size_t i = 0; i < classes; i++)
            sum += exp(outputs[i]);
        loss += log(sum) - outputs[labels[sample]];
    }
    return loss;
}
