// Images of OpenCL C. An image is a range of a buffer and a layout that says what is in it: every device
// reads and writes it with the same arithmetic, and copies, waits and checks are those of the buffer.
//
//     // __kernel void blur(read_only image2d_t in, write_only image2d_t out, sampler_t how)
//     const struct weir_image_layout layout =
//         weir_image_2d(WEIR_ORDER_RGBA, WEIR_CHANNEL_FLOAT, width, height);
//     weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = weir_image_bytes(&layout)), &in);
//     ...
//     weir_queue_launch(queue, blur, grid, block, weir_image_in(in, 0, &layout),
//                       weir_image_out(out, 0, &layout), WEIR_ADDRESS_CLAMP | WEIR_FILTER_LINEAR);
//
// Rows lie one after the other, `row_pitch` bytes apart, the slices of a 3-D image and the layers of an
// array `slice_pitch` bytes. A program may set larger pitches than those of weir_image_2d().
#ifndef WEIR_IMAGE_H
#define WEIR_IMAGE_H

#include <weir/common.h>
#include <weir/launch.h>

// Numbers as in OpenCL.
typedef enum weir_channel_order {
    WEIR_ORDER_R = 0x10b0,
    WEIR_ORDER_RG = 0x10b2,
    WEIR_ORDER_RGBA = 0x10b5,
    WEIR_ORDER_BGRA = 0x10b6, // of channels of 8 bits
} weir_channel_order;

typedef enum weir_channel_type {
    WEIR_CHANNEL_SNORM_INT8 = 0x10d0,
    WEIR_CHANNEL_SNORM_INT16 = 0x10d1,
    WEIR_CHANNEL_UNORM_INT8 = 0x10d2,
    WEIR_CHANNEL_UNORM_INT16 = 0x10d3,
    WEIR_CHANNEL_SIGNED_INT8 = 0x10d7,
    WEIR_CHANNEL_SIGNED_INT16 = 0x10d8,
    WEIR_CHANNEL_SIGNED_INT32 = 0x10d9,
    WEIR_CHANNEL_UNSIGNED_INT8 = 0x10da,
    WEIR_CHANNEL_UNSIGNED_INT16 = 0x10db,
    WEIR_CHANNEL_UNSIGNED_INT32 = 0x10dc,
    WEIR_CHANNEL_HALF_FLOAT = 0x10dd,
    WEIR_CHANNEL_FLOAT = 0x10de,
} weir_channel_type;

// A sampler among the arguments of a launch: one of each kind, with `|`. ADDRESS_NONE is as
// CLAMP_TO_EDGE. REPEAT and MIRRORED_REPEAT are for normalized coordinates.
typedef enum weir_sampler {
    WEIR_COORDS_NORMALIZED = 1,
    WEIR_ADDRESS_NONE = 0,
    WEIR_ADDRESS_CLAMP_TO_EDGE = 2,
    WEIR_ADDRESS_CLAMP = 4, // to a border of zeros, with alpha 1 if the order has no alpha
    WEIR_ADDRESS_REPEAT = 6,
    WEIR_ADDRESS_MIRRORED_REPEAT = 8,
    WEIR_FILTER_NEAREST = 0x10,
    WEIR_FILTER_LINEAR = 0x20,
} weir_sampler;

// Closed: kernels get it as it is.
struct weir_image_layout {
    uint32_t width; // in pixels
    uint32_t height;
    uint32_t depth;       // slices, or layers of an array; 1, not 0, where there is one
    uint32_t row_pitch;   // bytes; a multiple of pixel_bytes
    uint32_t slice_pitch; // likewise
    uint32_t format;      // the order, and the type << 16
    uint32_t pixel_bytes;
};

// The layout of packed pixels. Pitches of 4 GiB or more do not fit it: a launch refuses such an image.
static inline struct weir_image_layout weir_image_3d(weir_channel_order order,
                                                     weir_channel_type type, uint32_t width,
                                                     uint32_t height, uint32_t depth)
{
    const uint32_t channels = order == WEIR_ORDER_R ? 1 : order == WEIR_ORDER_RG ? 2 : 4;
    uint32_t bytes = 2;
    struct weir_image_layout layout;
    if (type == WEIR_CHANNEL_SNORM_INT8 || type == WEIR_CHANNEL_UNORM_INT8 ||
        type == WEIR_CHANNEL_SIGNED_INT8 || type == WEIR_CHANNEL_UNSIGNED_INT8)
        bytes = 1;
    if (type == WEIR_CHANNEL_SIGNED_INT32 || type == WEIR_CHANNEL_UNSIGNED_INT32 ||
        type == WEIR_CHANNEL_FLOAT)
        bytes = 4;
    layout.width = width;
    layout.height = height;
    layout.depth = depth;
    layout.pixel_bytes = channels * bytes;
    layout.row_pitch = width * layout.pixel_bytes;
    layout.slice_pitch = height * layout.row_pitch;
    layout.format = (uint32_t)order | (uint32_t)type << 16;
    return layout;
}

// The same of one slice. A 1-D image has a height of 1.
static inline struct weir_image_layout weir_image_2d(weir_channel_order order,
                                                     weir_channel_type type, uint32_t width,
                                                     uint32_t height)
{
    return weir_image_3d(order, type, width, height, 1);
}

// From the first byte to the last one of a pixel. 0 for NULL.
static inline size_t weir_image_bytes(const struct weir_image_layout *layout)
{
    if (!layout || layout->width == 0 || layout->height == 0 || layout->depth == 0)
        return 0;
    return (size_t)layout->slice_pitch * (layout->depth - 1) +
           (size_t)layout->row_pitch * (layout->height - 1) +
           (size_t)layout->pixel_bytes * layout->width;
}

// An image among the arguments of a launch that begins at byte `offset` of the buffer, a multiple of 16.
// Two arguments: the range, and the layout at the pointer `layout`, which is evaluated twice. The launch
// refuses a layout that is none, one of 4 GiB or more or of more than INT32_MAX pixels in a dimension, and
// one that is larger than the range.
#define weir_image_in(buffer, offset, layout) \
    weir_in(buffer, offset, weir_image_bytes(layout)), weir__argument_layout(layout)
#define weir_image_out(buffer, offset, layout) \
    weir_out(buffer, offset, weir_image_bytes(layout)), weir__argument_layout(layout)
#define weir_image_inout(buffer, offset, layout) \
    weir_inout(buffer, offset, weir_image_bytes(layout)), weir__argument_layout(layout)
static inline struct weir_argument weir__argument_layout(const struct weir_image_layout *layout)
{
    return weir_value(layout, sizeof *layout);
}

#endif
