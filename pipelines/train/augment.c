// The host's form is written apart from the kernel: each is the check of the other.
#include "pipelines/train/augment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/augment/augment.h"
#include "patterns/fail.h"
#include "pipelines/train/product.h"

struct weir_train_centre {
    size_t count;
    bool whole;
    weir_kernel *kernel;
    weir_buffer *numbers;
};

weir_status weir_train_centre_create(weir_device *device, size_t count, bool whole,
                                     weir_train_centre **out_centre)
{
    weir_train_centre *centre = calloc(1, sizeof *centre);
    *out_centre = NULL;
    if (!centre)
        return weir__pattern_no_memory("batches", "batches");
    centre->count = count;
    centre->whole = whole;
    weir_status status = weir_kernel_load(device, &augment_kernels, "centre", &centre->kernel);
    if (status == WEIR_OK)
        status = weir_buffer_create(device,
                                    WEIR_PARAMS(weir_buffer, .label = "numbers",
                                                .size = count * sizeof(float)),
                                    &centre->numbers);
    if (status == WEIR_OK)
        *out_centre = centre;
    else
        weir_train_centre_destroy(&centre);
    return status;
}

void weir_train_centre_destroy(weir_train_centre **centre)
{
    if (!centre || !*centre)
        return;
    weir_buffer_destroy(&(*centre)->numbers);
    weir_kernel_destroy(&(*centre)->kernel);
    free(*centre);
    *centre = NULL;
}

weir_status weir_train_centre_submit(weir_train_centre *centre, weir_queue *queue,
                                     weir_buffer *images, weir_buffer **out_numbers)
{
    *out_numbers = centre->numbers;
    return weir_queue_launch_count(queue, centre->kernel, centre->count,
                                   weir_in(images, 0, centre->count),
                                   weir_whole_out(centre->numbers), (uint64_t)centre->count,
                                   (uint32_t)centre->whole);
}

enum {
    BLOCK = 64,
    DRAW_TOP = 0,
    DRAW_LEFT,
    DRAW_MIRRORED,
    DRAW_GAIN,
    DRAW_BIAS
};

struct weir_train_augment {
    struct weir_train_augment_params params;
    weir_kernel *kernel;
};

static weir_status check_colours(const struct weir_train_augment_params *params)
{
    if (!(params->contrast >= 0 && params->contrast <= 1))
        return weir__pattern_refuse("augment", NULL, "the contrast is %g; it is from 0 to 1",
                                    (double)params->contrast);
    if (!(params->brightness >= 0 && isfinite(params->brightness)))
        return weir__pattern_refuse("augment", NULL, "the brightness is %g; it is 0 or more",
                                    (double)params->brightness);
    for (uint32_t c = 0; c < params->channels; c++)
        if (!isfinite(params->mean[c]) ||
            !(params->deviation[c] > 0 && isfinite(params->deviation[c])))
            return weir__pattern_refuse(
                "augment", NULL,
                "channel %u has the mean %g and the deviation %g; the mean is finite, the "
                "deviation above 0",
                c, (double)params->mean[c], (double)params->deviation[c]);
    return WEIR_OK;
}

weir_status weir_train_augment_check(const struct weir_train_augment_params *params)
{
    const uint32_t most = 1 << 14;
    if (params->channels < 1 || params->channels > WEIR_TRAIN_AUGMENT_CHANNELS_MAX)
        return weir__pattern_refuse("augment", NULL, "images of %u channels; 1 to %d are possible",
                                    params->channels, WEIR_TRAIN_AUGMENT_CHANNELS_MAX);
    if (params->width > most || params->height > most)
        return weir__pattern_refuse("augment", NULL,
                                    "images of %u x %u pixels; a side has at most %u",
                                    params->width, params->height, most);
    if (params->out_width < 1 || params->out_width > params->width || params->out_height < 1 ||
        params->out_height > params->height)
        return weir__pattern_refuse("augment", "cut out fewer pixels, or take larger images",
                                    "%u x %u pixels cannot be cut out of images of %u x %u",
                                    params->out_width, params->out_height, params->width,
                                    params->height);
    return check_colours(params);
}

weir_status weir_train_augment_create(weir_device *device,
                                      const struct weir_train_augment_params *params,
                                      weir_train_augment **out_augment)
{
    *out_augment = NULL;
    TRY(weir_train_augment_check(params));
    weir_train_augment *augment = calloc(1, sizeof *augment);
    if (!augment)
        return weir__pattern_no_memory("augment", "an augmentation");
    augment->params = *params;
    const weir_status status =
        weir_kernel_load(device, &augment_kernels, "augment", &augment->kernel);
    if (status == WEIR_OK)
        *out_augment = augment;
    else
        weir_train_augment_destroy(&augment);
    return status;
}

void weir_train_augment_destroy(weir_train_augment **augment)
{
    if (!augment || !*augment)
        return;
    weir_kernel_destroy(&(*augment)->kernel);
    free(*augment);
    *augment = NULL;
}

size_t weir_train_augment_in_bytes(const struct weir_train_augment_params *params, uint32_t count)
{
    return (size_t)params->width * params->height * params->channels * count;
}

size_t weir_train_augment_out_bytes(const struct weir_train_augment_params *params, uint32_t count)
{
    return sizeof(float) * params->out_width * params->out_height * params->channels * count;
}

static float scale_of(const struct weir_train_augment_params *params, uint32_t channel)
{
    return channel < params->channels ? 1 / params->deviation[channel] : 0;
}

static float shift_of(const struct weir_train_augment_params *params, uint32_t channel)
{
    return channel < params->channels ? -params->mean[channel] / params->deviation[channel] : 0;
}

weir_status weir_train_augment_submit(weir_train_augment *augment, weir_queue *queue,
                                      weir_buffer *images, weir_buffer *out, uint32_t count,
                                      uint64_t first)
{
    const struct weir_train_augment_params *p = &augment->params;
    const size_t out_bytes = weir_train_augment_out_bytes(p, count);
    const size_t blocks = (out_bytes / sizeof(float) + BLOCK - 1) / BLOCK;
    return weir_queue_launch(
        queue, augment->kernel, weir_dim((uint32_t)blocks, 1, 1), weir_dim(BLOCK, 1, 1),
        weir_in(images, 0, weir_train_augment_in_bytes(p, count)), weir_out(out, 0, out_bytes),
        count, p->width, p->height, p->channels, p->out_width, p->out_height, first, p->seed,
        p->contrast, p->brightness,
        weir_vector(float, scale_of(p, 0), scale_of(p, 1), scale_of(p, 2), scale_of(p, 3)),
        weir_vector(float, shift_of(p, 0), shift_of(p, 1), shift_of(p, 2), shift_of(p, 3)));
}

// On the host.

static uint32_t mix(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x85ebca6bU;
    x ^= x >> 13;
    x *= 0xc2b2ae35U;
    return x ^ x >> 16;
}

static uint32_t draw(uint32_t seed, uint64_t index, uint32_t which)
{
    const uint32_t low = mix(mix(seed + 0x9e3779b9U * which) ^ (uint32_t)index);
    return mix(low + (uint32_t)(index >> 32));
}

static float between(uint32_t bits, float low, float high)
{
    return fmaf((float)(bits >> 8) * 0x1p-24F, high - low, low);
}

struct drawn {
    uint32_t top;
    uint32_t left;
    bool mirrored;
    float gain;
    float bias;
};

static struct drawn draw_all(const struct weir_train_augment_params *p, uint64_t index)
{
    return (struct drawn){
        .top = draw(p->seed, index, DRAW_TOP) % (p->height - p->out_height + 1),
        .left = draw(p->seed, index, DRAW_LEFT) % (p->width - p->out_width + 1),
        .mirrored = draw(p->seed, index, DRAW_MIRRORED) & 1,
        .gain = between(draw(p->seed, index, DRAW_GAIN), 1 - p->contrast, 1 + p->contrast),
        .bias = between(draw(p->seed, index, DRAW_BIAS), -p->brightness, p->brightness),
    };
}

static void cut(const struct weir_train_augment_params *p, const unsigned char *image,
                const struct drawn *drawn, float *out)
{
    for (uint32_t row = 0; row < p->out_height; row++) {
        const unsigned char *line = image + (size_t)(drawn->top + row) * p->width * p->channels;
        for (uint32_t column = 0; column < p->out_width; column++) {
            const uint32_t x = drawn->left + (drawn->mirrored ? p->out_width - 1 - column : column);
            for (uint32_t c = 0; c < p->channels; c++) {
                const float part = (float)line[(size_t)x * p->channels + c] * (1 / 255.0F);
                *out++ = fmaf(fmaf(part, drawn->gain, drawn->bias), scale_of(p, c), shift_of(p, c));
            }
        }
    }
}

void weir_train_augment_on_host(const struct weir_train_augment_params *params,
                                const unsigned char *images, float *out, uint32_t count,
                                uint64_t first)
{
    const size_t size = (size_t)params->out_width * params->out_height * params->channels;
    for (uint32_t i = 0; i < count; i++) {
        const struct drawn drawn = draw_all(params, first + i);
        cut(params, images + weir_train_augment_in_bytes(params, i), &drawn, out + i * size);
    }
}
