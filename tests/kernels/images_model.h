// Images on the host, and what a read of one gives by the formulas of OpenCL C, in double.
#ifndef WEIR_TESTS_KERNELS_IMAGES_MODEL_H
#define WEIR_TESTS_KERNELS_IMAGES_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/image.h>

enum {
    IMAGES_OFFSET = 512 // of a multiple of every driver's argument_alignment_bytes
};

struct image {
    struct weir_image_layout layout;
    unsigned char *data; // from byte IMAGES_OFFSET on
    size_t size;
};

struct view {
    const struct image *image;
    unsigned sampler;
    unsigned dimensions;
    bool array; // the last coordinate is a layer
};

// Bytes of any value, but that floats and halves are from -2 to 2. `data` is the caller's.
void images_make(struct image *image, weir_channel_order order, weir_channel_type type,
                 uint32_t width, uint32_t height, uint32_t depth);
unsigned images_channels(const struct image *image);
unsigned char *images_pixel(const struct image *image, int x, int y, int z);
// Of the pixel there, or of the border.
void images_texel(const struct image *image, int x, int y, int z, double out[4]);
// The coordinate of the pixel that the sampler's addressing leads to.
int images_addressed(int at, int size, unsigned sampler);
void images_expected(const struct view *view, const float at[4], double out[4]);

#endif
