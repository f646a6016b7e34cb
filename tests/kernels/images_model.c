#include "tests/kernels/images_model.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/numbers.h"

unsigned images_channels(const struct image *image)
{
    const unsigned order = image->layout.format & 0xffff;
    return order == WEIR_ORDER_R ? 1 : order == WEIR_ORDER_RG ? 2 : 4;
}

// Bytes of any value, but that floats and halves are from -2 to 2.
void images_make(struct image *image, weir_channel_order order, weir_channel_type type,
                 uint32_t width, uint32_t height, uint32_t depth)
{
    uint32_t state = 12345u + width;
    struct weir_image_layout *layout = &image->layout;
    *layout = weir_image_3d(order, type, width, height, depth);
    layout->row_pitch += 3 * layout->pixel_bytes;
    layout->slice_pitch = (height + 1) * layout->row_pitch;
    image->size = IMAGES_OFFSET + (size_t)layout->slice_pitch * depth;
    image->data = malloc(image->size);
    if (!image->data)
        abort();
    for (size_t i = 0; i < image->size; i++)
        image->data[i] = (unsigned char)(test_next(&state) >> 8);
    for (size_t i = 0; i + 4 <= image->size; i += 4) {
        uint32_t bits;
        memcpy(&bits, image->data + i, sizeof bits);
        if (type == WEIR_CHANNEL_FLOAT)
            bits = (bits & 0x80ffffffu) | 0x3f000000u;
        if (type == WEIR_CHANNEL_HALF_FLOAT)
            bits = (bits & 0x83ff83ffu) | 0x3c003800u;
        memcpy(image->data + i, &bits, sizeof bits);
    }
}

unsigned char *images_pixel(const struct image *image, int x, int y, int z)
{
    const struct weir_image_layout *layout = &image->layout;
    return image->data + IMAGES_OFFSET + (size_t)z * layout->slice_pitch +
           (size_t)y * layout->row_pitch + (size_t)x * layout->pixel_bytes;
}

static uint32_t raw_of(const unsigned char *at, unsigned bytes)
{
    uint32_t bits = 0;
    for (unsigned i = 0; i < bytes; i++)
        bits |= (uint32_t)at[i] << 8 * i;
    return bits;
}

static int32_t signed_of(uint32_t bits, unsigned bytes)
{
    return (int32_t)(bits << (32 - 8 * bytes)) >> (32 - 8 * bytes);
}

// What a channel of the image holds, for reads of floats or of integers.
static double channel_value(const struct image *image, uint32_t bits, unsigned bytes)
{
    switch (image->layout.format >> 16) {
    case WEIR_CHANNEL_SNORM_INT8:
        return fmax(signed_of(bits, 1) / 127.0, -1);
    case WEIR_CHANNEL_SNORM_INT16:
        return fmax(signed_of(bits, 2) / 32767.0, -1);
    case WEIR_CHANNEL_UNORM_INT8:
        return bits / 255.0;
    case WEIR_CHANNEL_UNORM_INT16:
        return bits / 65535.0;
    case WEIR_CHANNEL_HALF_FLOAT:
        return test_half_value(bits);
    case WEIR_CHANNEL_FLOAT:
        return test_float_of(bits);
    case WEIR_CHANNEL_SIGNED_INT8:
    case WEIR_CHANNEL_SIGNED_INT16:
    case WEIR_CHANNEL_SIGNED_INT32:
        return signed_of(bits, bytes);
    default:
        return bits;
    }
}

// Of the pixel there, or of the border.
void images_texel(const struct image *image, int x, int y, int z, double out[4])
{
    const struct weir_image_layout *layout = &image->layout;
    const unsigned channels = images_channels(image), bytes = layout->pixel_bytes / channels;
    const bool inside = x >= 0 && y >= 0 && z >= 0 && (uint32_t)x < layout->width &&
                        (uint32_t)y < layout->height && (uint32_t)z < layout->depth;
    out[0] = out[1] = out[2] = 0;
    out[3] = channels < 4;
    for (unsigned c = 0; c < channels && inside; c++)
        out[c] =
            channel_value(image, raw_of(images_pixel(image, x, y, z) + c * bytes, bytes), bytes);
    if (inside && (layout->format & 0xffff) == WEIR_ORDER_BGRA) {
        const double blue = out[0];
        out[0] = out[2];
        out[2] = blue;
    }
}

// Coordinates, as in the tables of "Image Addressing and Filtering".

enum {
    MODES = 14
};

int images_addressed(int at, int size, unsigned sampler)
{
    if ((sampler & MODES) == WEIR_ADDRESS_CLAMP)
        return at < -1 ? -1 : at > size ? size : at;
    return at < 0 ? 0 : at > size - 1 ? size - 1 : at;
}

// The pixels on both sides and the weight of the second, or one pixel twice.
static void find(float coordinate, uint32_t extent, unsigned sampler, int out[2], double *weight)
{
    const int size = (int)extent;
    const bool linear = sampler & WEIR_FILTER_LINEAR;
    double at = coordinate;
    *weight = 0;
    if (sampler & WEIR_COORDS_NORMALIZED) {
        if ((sampler & MODES) == WEIR_ADDRESS_REPEAT)
            at -= floor(at);
        if ((sampler & MODES) == WEIR_ADDRESS_MIRRORED_REPEAT)
            at = fabs(at - 2 * rint(0.5 * at));
        at *= size;
    }
    at -= linear ? 0.5 : 0;
    at = fmax(fmin(at, 1e6), -1e6);
    out[0] = (int)floor(at);
    out[1] = out[0] + linear;
    if (linear)
        *weight = at - floor(at);
    for (int i = 0; i < 2; i++) {
        if ((sampler & MODES) == WEIR_ADDRESS_REPEAT)
            out[i] = (out[i] + size) % size;
        out[i] = images_addressed(out[i], size, sampler);
    }
}

void images_expected(const struct view *view, const float at[4], double out[4])
{
    const struct weir_image_layout *layout = &view->image->layout;
    const uint32_t sizes[3] = {layout->width, layout->height, layout->depth};
    int places[3][2] = {{0}};
    double weights[3] = {0};
    for (unsigned d = 0; d < view->dimensions; d++)
        find(at[d], sizes[d], view->sampler, places[d], &weights[d]);
    if (view->array)
        places[2][0] = places[2][1] = (int)fmax(0, fmin(rint(at[2]), (double)layout->depth - 1));
    memset(out, 0, 4 * sizeof *out);
    for (unsigned corner = 0; corner < 8; corner++) {
        double value[4], weight = 1;
        for (unsigned d = 0; d < 3; d++)
            weight *= corner >> d & 1 ? weights[d] : 1 - weights[d];
        if (weight == 0)
            continue;
        images_texel(view->image, places[0][corner & 1], places[1][corner >> 1 & 1],
                     places[2][corner >> 2], value);
        for (unsigned c = 0; c < 4; c++)
            out[c] += weight * value[c];
    }
}
