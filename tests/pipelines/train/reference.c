// See the header. Pixels outside an image are left out; nothing is gathered first.
#include "tests/pipelines/train/reference.h"

#include <math.h>
#include <string.h>

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
        const size_t weight = weir_train_model_parameter(model, 2 * i)->offset / sizeof(float);
        const size_t bias = weir_train_model_parameter(model, 2 * i + 1)->offset / sizeof(float);
        run_layer(&params->layers[i], &image, values + weight, values + bias, &next);
        image = next;
    }
    memcpy(out, image.pixels, (size_t)image.height * image.width * image.channels * sizeof(double));
}

double reference_loss(const struct weir_train_model_params *params, const weir_train_model *model,
                      const double *values, const float *inputs, const uint32_t *labels)
{
    const size_t classes = weir_train_model_outputs(model);
    double outputs[NUMBERS_MAX] = {0};
    double loss = 0;
    for (uint32_t sample = 0; sample < params->batch; sample++) {
        double sum = 0;
        if (labels[sample] >= classes)
            continue;
        reference_outputs(params, model, values, inputs + sample * weir_train_model_inputs(model),
                          outputs);
        for (size_t i = 0; i < classes; i++)
            sum += exp(outputs[i]);
        loss += log(sum) - outputs[labels[sample]];
    }
    return loss;
}
