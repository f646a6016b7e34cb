// Images over buffers against the formulas of OpenCL C, in double: every format, filter and addressing mode, with
// pitches that are larger than the pixels, at an offset.
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "tests/kernels/images.h"
#include "tests/support/device.h"
#include "tests/support/numbers.h"

// Images on the host, and what a read of one gives by the formulas of OpenCL C, in double.

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

static unsigned images_channels(const struct image *image)
{
    const unsigned order = image->layout.format & 0xffff;
    return order == WEIR_ORDER_R ? 1 : order == WEIR_ORDER_RG ? 2 : 4;
}

// Bytes of any value, but that floats and halves are from -2 to 2. `data` is the caller's.
static void images_make(struct image *image, weir_channel_order order, weir_channel_type type,
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

static unsigned char *images_pixel(const struct image *image, int x, int y, int z)
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
static void images_texel(const struct image *image, int x, int y, int z, double out[4])
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

static int images_addressed(int at, int size, unsigned sampler)
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

static void images_expected(const struct view *view, const float at[4], double out[4])
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

// The device.

enum {
    PLACES = 256,
    LINE = 64 // work-items of a block
};

struct rig {
    struct test_device on;
    weir_program *program;
    weir_kernel *kernel; // the last one that was asked for
    weir_buffer *buffers[4];
    int count;
};

static bool open_rig(struct rig *rig)
{
    *rig = (struct rig){.count = 0};
    return test_device_open(&rig->on) &&
           IS_OK(weir_program_load(rig->on.device, &images_kernels, &rig->program));
}

static void drop_buffers(struct rig *rig)
{
    while (rig->count > 0)
        weir_buffer_destroy(&rig->buffers[--rig->count]);
}

static void close_rig(struct rig *rig)
{
    drop_buffers(rig);
    weir_kernel_destroy(&rig->kernel);
    weir_program_destroy(&rig->program);
    test_device_close(&rig->on);
}

#define RIG_TEST(name) WEIR_TEST_WITH(Images, name, struct rig, rig, open_rig(rig), close_rig(rig))

// What these return is the rig's.
static weir_kernel *kernel_of(struct rig *rig, const char *name)
{
    weir_kernel_destroy(&rig->kernel);
    EXPECT_OK(weir_kernel_create(rig->program, name, &rig->kernel));
    return rig->kernel;
}

static weir_buffer *buffer_of(struct rig *rig, const void *data, size_t size)
{
    weir_buffer *buffer = test_buffer(rig->on.device, "data", size, WEIR_PLACE_DEVICE);
    EXPECT_OK(weir_upload(rig->on.queue, buffer, 0, data, size));
    return rig->buffers[rig->count++] = buffer;
}

// False: the device compiles no source.
static bool create(struct rig *rig, const char *source, weir_status wanted)
{
    weir_program_destroy(&rig->program);
    const weir_status status =
        weir_program_create(rig->on.device, WEIR_PARAMS(weir_program, .source = source),
                            &rig->program);
    if (status != WEIR_ERROR_UNSUPPORTED)
        EXPECT_INT_EQ(status, wanted);
    return status != WEIR_ERROR_UNSUPPORTED;
}

static const weir_channel_order orders[] = {WEIR_ORDER_R, WEIR_ORDER_RG, WEIR_ORDER_RGBA,
                                            WEIR_ORDER_BGRA};
static const weir_channel_type fractions[] = {WEIR_CHANNEL_SNORM_INT8, WEIR_CHANNEL_SNORM_INT16,
                                              WEIR_CHANNEL_UNORM_INT8, WEIR_CHANNEL_UNORM_INT16,
                                              WEIR_CHANNEL_HALF_FLOAT, WEIR_CHANNEL_FLOAT};
static const weir_channel_type integers[] = {
    WEIR_CHANNEL_SIGNED_INT8,   WEIR_CHANNEL_SIGNED_INT16,   WEIR_CHANNEL_SIGNED_INT32,
    WEIR_CHANNEL_UNSIGNED_INT8, WEIR_CHANNEL_UNSIGNED_INT16, WEIR_CHANNEL_UNSIGNED_INT32};

#define COUNT(array) (sizeof(array) / sizeof *(array))

// BGRA has channels of 8 bits.
static bool is_format(weir_channel_order order, weir_channel_type type)
{
    return order != WEIR_ORDER_BGRA || weir_image_2d(order, type, 1, 1).pixel_bytes == 4;
}

// Places around the image and far from it; none is so near to the middle between two pixels that rounding decides.
static void make_places(float at[PLACES][4], const struct view *view)
{
    const struct weir_image_layout *layout = &view->image->layout;
    const uint32_t sizes[4] = {layout->width, layout->height, layout->depth, 1};
    uint32_t state = 77;
    for (unsigned i = 0; i < PLACES; i++) {
        for (unsigned d = 0; d < 4; d++) {
            const bool normalized = view->sampler & WEIR_COORDS_NORMALIZED && d < view->dimensions;
            const float size = (float)sizes[d];
            float place = ((float)(test_next(&state) >> 16) / 65536 * 3 - 1) * size;
            place = floorf(place) + 0.125f + 0.25f * (float)(test_next(&state) >> 8 & 3);
            if (i == 1 && !normalized)
                place = size;
            if (i == 2 && !normalized)
                place = 0;
            if (i == 3)
                place = d == 0 ? 1e9f : -1e9f;
            at[i][d] = normalized ? place / size : place;
        }
    }
    if (view->sampler & WEIR_COORDS_NORMALIZED) // where a fraction of a large number is nothing
        at[3][0] = 5.5f, at[3][1] = -5.5f;
}

static bool is_near(double got, double wanted)
{
    return fabs(got - wanted) <= 4e-6 * (1 + fabs(wanted));
}

// `how` is the kernel's second argument.
static void compare_reads(struct rig *rig, const char *name, const struct view *view, unsigned how)
{
    const struct image *image = view->image;
    float at[PLACES][4], got[PLACES][4];
    make_places(at, view);
    memset(got, 0xff, sizeof got);
    weir_buffer *pixels = buffer_of(rig, image->data, image->size);
    weir_buffer *places = buffer_of(rig, at, sizeof at), *out = buffer_of(rig, got, sizeof got);
    EXPECT_OK(weir_queue_launch(rig->on.queue, kernel_of(rig, name), weir_dim(PLACES / LINE, 1, 1),
                                weir_dim(LINE, 1, 1),
                                weir_image_in(pixels, IMAGES_OFFSET, &image->layout), how,
                                weir_whole_in(places), weir_whole_out(out)));
    EXPECT_OK(weir_download(rig->on.queue, got, out, 0, sizeof got));
    for (unsigned i = 0; i < PLACES; i++) {
        double wanted[4];
        images_expected(view, at[i], wanted);
        for (unsigned c = 0; c < 4; c++)
            if (!is_near((double)got[i][c], wanted[c])) {
                weir_test_fail(__FILE__, __LINE__,
                               "%s, format %08x, sampler %x, at %g %g %g: channel %u is %.9g, not "
                               "%.9g",
                               name, image->layout.format, view->sampler, (double)at[i][0],
                               (double)at[i][1], (double)at[i][2], c, (double)got[i][c], wanted[c]);
                i = PLACES;
                break;
            }
    }
    drop_buffers(rig);
}

static const unsigned samplers[] = {
    WEIR_ADDRESS_CLAMP_TO_EDGE,
    WEIR_ADDRESS_CLAMP,
    WEIR_ADDRESS_CLAMP_TO_EDGE | WEIR_COORDS_NORMALIZED,
    WEIR_ADDRESS_CLAMP | WEIR_COORDS_NORMALIZED,
    WEIR_ADDRESS_REPEAT | WEIR_COORDS_NORMALIZED,
    WEIR_ADDRESS_MIRRORED_REPEAT | WEIR_COORDS_NORMALIZED,
};

static void read_format(struct rig *rig, weir_channel_order order, weir_channel_type type)
{
    static const struct {
        const char *kernel;
        uint32_t height, depth;
        unsigned dimensions;
        bool array;
    } kinds[] = {{"read_1d", 1, 1, 1, false},
                 {"read_2d", 5, 1, 2, false},
                 {"read_2d_array", 5, 3, 2, true},
                 {"read_3d", 5, 3, 3, false}};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        struct image image;
        images_make(&image, order, type, 7, kinds[k].height, kinds[k].depth);
        for (size_t s = 0; s < 2 * COUNT(samplers); s++) {
            const struct view view = {.image = &image,
                                      .sampler = samplers[s / 2] |
                                                 (s % 2 ? WEIR_FILTER_LINEAR : WEIR_FILTER_NEAREST),
                                      .dimensions = kinds[k].dimensions,
                                      .array = kinds[k].array};
            compare_reads(rig, kinds[k].kernel, &view, view.sampler);
        }
        free(image.data);
    }
}

static void read_formats(struct rig *rig, const weir_channel_type *types, size_t count)
{
    for (size_t o = 0; o < COUNT(orders); o++)
        for (size_t t = 0; t < count; t++)
            if (is_format(orders[o], types[t]))
                read_format(rig, orders[o], types[t]);
}

// Of these reads and those of fractions, the simulator of tools/opencl/races.txt runs these.
RIG_TEST(ReadsOfFloats)
{
    read_formats(rig, &(weir_channel_type){WEIR_CHANNEL_FLOAT}, 1);
}

// The last of the fractions is WEIR_CHANNEL_FLOAT.
RIG_TEST(ReadsOfFractions)
{
    read_formats(rig, fractions, COUNT(fractions) - 1);
}

RIG_TEST(SamplersOfTheProgram)
{
    static const unsigned same[] = {WEIR_ADDRESS_CLAMP | WEIR_FILTER_NEAREST,
                                    WEIR_ADDRESS_CLAMP_TO_EDGE | WEIR_FILTER_LINEAR,
                                    WEIR_COORDS_NORMALIZED | WEIR_ADDRESS_REPEAT |
                                        WEIR_FILTER_LINEAR};
    struct image image;
    images_make(&image, WEIR_ORDER_RGBA, WEIR_CHANNEL_FLOAT, 7, 5, 1);
    for (unsigned which = 0; which < COUNT(same); which++)
        compare_reads(rig, "read_constant",
                      &(struct view){.image = &image, .sampler = same[which], .dimensions = 2},
                      which);
    free(image.data);
}

static void compare_integers(struct rig *rig, const struct image *image, unsigned sampler)
{
    const int is_signed = image->layout.format >> 16 <= WEIR_CHANNEL_SIGNED_INT32;
    int32_t at[PLACES][4];
    uint32_t got[PLACES][4] = {{0}};
    for (int i = 0; i < PLACES; i++) {
        at[i][0] = i % 16 - 4;
        at[i][1] = i / 16 - 4;
    }
    weir_buffer *pixels = buffer_of(rig, image->data, image->size);
    weir_buffer *places = buffer_of(rig, at, sizeof at), *out = buffer_of(rig, got, sizeof got);
    EXPECT_OK(weir_queue_launch(rig->on.queue, kernel_of(rig, "read_integers"),
                                weir_dim(PLACES / LINE, 1, 1), weir_dim(LINE, 1, 1),
                                weir_image_in(pixels, IMAGES_OFFSET, &image->layout), sampler,
                                weir_whole_in(places), is_signed, weir_whole_out(out)));
    EXPECT_OK(weir_download(rig->on.queue, got, out, 0, sizeof got));
    for (unsigned i = 0; i < PLACES; i++) {
        double wanted[4];
        images_texel(image, images_addressed(at[i][0], (int)image->layout.width, sampler),
                     images_addressed(at[i][1], (int)image->layout.height, sampler), 0, wanted);
        for (unsigned c = 0; c < 4; c++) {
            const double is = is_signed ? (double)(int32_t)got[i][c] : (double)got[i][c];
            if (is != wanted[c])
                weir_test_fail(__FILE__, __LINE__, "format %08x at %d %d: %g, not %g",
                               image->layout.format, at[i][0], at[i][1], is, wanted[c]);
        }
    }
    drop_buffers(rig);
}

// Compares an image of 7 x 5 x depth pixels of each format.
static void with_formats(struct rig *rig, const weir_channel_type *types, size_t count,
                         uint32_t depth,
                         void (*compare)(struct rig *rig, const struct image *image))
{
    for (size_t o = 0; o < COUNT(orders); o++)
        for (size_t t = 0; t < count; t++) {
            struct image image;
            if (!is_format(orders[o], types[t]))
                continue;
            images_make(&image, orders[o], types[t], 7, 5, depth);
            compare(rig, &image);
            free(image.data);
        }
}

static void compare_integer_reads(struct rig *rig, const struct image *image)
{
    compare_integers(rig, image, WEIR_ADDRESS_CLAMP);
    compare_integers(rig, image, WEIR_ADDRESS_CLAMP_TO_EDGE);
}

RIG_TEST(ReadsOfIntegers)
{
    with_formats(rig, integers, COUNT(integers), 1, compare_integer_reads);
}

RIG_TEST(ReadsOfPlainElements)
{
    uint32_t values[2 * LINE], got[2 * LINE][4];
    for (uint32_t i = 0; i < 2 * LINE; i++)
        values[i] = i * 0x01010101u;
    const struct weir_image_layout layout =
        weir_image_2d(WEIR_ORDER_R, WEIR_CHANNEL_UNSIGNED_INT32, LINE, 1);
    weir_buffer *pixels = buffer_of(rig, values, sizeof values);
    weir_buffer *out = buffer_of(rig, got, sizeof got);
    EXPECT_OK(weir_queue_launch(rig->on.queue, kernel_of(rig, "read_plain"), weir_dim(2, 1, 1),
                                weir_dim(LINE, 1, 1), weir_image_in(pixels, 0, &layout),
                                weir_whole_out(out)));
    EXPECT_OK(weir_download(rig->on.queue, got, out, 0, sizeof got));
    for (uint32_t i = 0; i < 2 * LINE; i++) { // from LINE on outside: the last one
        EXPECT_UINT_EQ(got[i][0], values[i < LINE ? i : LINE - 1]);
        EXPECT_UINT_EQ(got[i][3], 1);
    }
}

// Writes. The kernels write a pixel on each side too, which must not change a byte.

static const struct {
    weir_channel_type type;
    float scale, least;
} scales[] = {{WEIR_CHANNEL_SNORM_INT8, 127, -128},
              {WEIR_CHANNEL_SNORM_INT16, 32767, -32768},
              {WEIR_CHANNEL_UNORM_INT8, 255, 0},
              {WEIR_CHANNEL_UNORM_INT16, 65535, 0}};

static uint32_t fraction_bits(const struct image *image, float value)
{
    const unsigned type = image->layout.format >> 16;
    uint32_t bits;
    for (size_t i = 0; i < COUNT(scales); i++)
        if (scales[i].type == type)
            return (uint32_t)(int32_t)rintf(
                fminf(fmaxf(value * scales[i].scale, scales[i].least), scales[i].scale));
    if (type == WEIR_CHANNEL_HALF_FLOAT)
        return (uint32_t)weir_half(value).bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint32_t integer_bits(const struct image *image, uint32_t value)
{
    const unsigned bytes = image->layout.pixel_bytes / images_channels(image);
    const int32_t most = (int32_t)(0x7fffffffu >> (32 - 8 * bytes));
    const int32_t is = (int32_t)value;
    if (image->layout.format >> 16 <= WEIR_CHANNEL_SIGNED_INT32)
        return (uint32_t)(is > most ? most : is < -most - 1 ? -most - 1 : is);
    return bytes == 4 || value < 1u << 8 * bytes ? value : (1u << 8 * bytes) - 1;
}

static void set_texel(const struct image *image, int x, int y, int z, const uint32_t bits[4])
{
    const unsigned channels = images_channels(image), bytes = image->layout.pixel_bytes / channels;
    const bool blue = (image->layout.format & 0xffff) == WEIR_ORDER_BGRA;
    for (unsigned c = 0; c < channels; c++)
        for (unsigned b = 0; b < bytes; b++)
            images_pixel(image, x, y, z)[c * bytes + b] =
                (unsigned char)(bits[blue && c < 3 ? 2 - c : c] >> 8 * b);
}

enum { // of what the kernels write
    W = 9,
    H = 7,
    D = 5
};

// What the image holds after `values`, a pixel for each of W x H x depth + 2, were written to it.
static void expect_written(struct rig *rig, const struct image *image, weir_buffer *pixels,
                           uint32_t values[][H][W][4])
{
    const uint32_t depth = image->layout.depth;
    unsigned char *got = malloc(image->size);
    size_t at = 0;
    if (!got)
        abort();
    for (uint32_t z = 0; z < depth; z++)
        for (int y = 0; y < H - 2; y++)
            for (int x = 0; x < W - 2; x++)
                set_texel(image, x, y, (int)z, values[depth > 1 ? z + 1 : 0][y + 1][x + 1]);
    EXPECT_OK(weir_download(rig->on.queue, got, pixels, 0, image->size));
    while (at < image->size && got[at] == image->data[at])
        at++;
    if (at < image->size)
        weir_test_fail(__FILE__, __LINE__,
                       "format %08x: byte %zu after the offset is %02x, not %02x",
                       image->layout.format, at - IMAGES_OFFSET, got[at], image->data[at]);
    free(got);
    drop_buffers(rig);
}

static void compare_writes(struct rig *rig, const struct image *image)
{
    static float in[D][H][W][4];
    static uint32_t bits[D][H][W][4];
    uint32_t state = 99;
    weir_buffer *pixels = buffer_of(rig, image->data, image->size);
    for (size_t i = 0; i < sizeof in / sizeof(float); i++)
        (&in[0][0][0][0])[i] = (float)(test_next(&state) >> 8) / (1 << 22) - 2;
    if (image->layout.format >> 16 != WEIR_CHANNEL_HALF_FLOAT) // where it may have other bits
        in[1][1][1][0] = NAN;
    in[1][1][2][1] = INFINITY;
    in[1][1][2][2] = -INFINITY;
    for (size_t i = 0; i < sizeof in / sizeof(float); i++)
        (&bits[0][0][0][0])[i] = fraction_bits(image, (&in[0][0][0][0])[i]);
    weir_buffer *values = buffer_of(rig, in, sizeof in);
    EXPECT_OK(weir_queue_launch(rig->on.queue, kernel_of(rig, "write_f"), weir_dim(1, H, D),
                                weir_dim(W, 1, 1),
                                weir_image_out(pixels, IMAGES_OFFSET, &image->layout),
                                weir_whole_in(values)));
    expect_written(rig, image, pixels, bits);
}

RIG_TEST(WritesOfFractions)
{
    with_formats(rig, fractions, COUNT(fractions), 3, compare_writes);
}

static void compare_integer_writes(struct rig *rig, const struct image *image)
{
    const int is_signed = image->layout.format >> 16 <= WEIR_CHANNEL_SIGNED_INT32;
    uint32_t in[1][H][W][4], bits[1][H][W][4], state = 5;
    for (size_t i = 0; i < sizeof in / sizeof(uint32_t); i++) {
        const uint32_t value = (uint32_t)((int32_t)test_next(&state) >> state % 32);
        (&in[0][0][0][0])[i] = value;
        (&bits[0][0][0][0])[i] = integer_bits(image, value);
    }
    weir_buffer *pixels = buffer_of(rig, image->data, image->size);
    weir_buffer *values = buffer_of(rig, in, sizeof in);
    EXPECT_OK(weir_queue_launch(rig->on.queue, kernel_of(rig, "write_integers"), weir_dim(1, H, 1),
                                weir_dim(W, 1, 1),
                                weir_image_out(pixels, IMAGES_OFFSET, &image->layout), is_signed,
                                weir_whole_in(values)));
    expect_written(rig, image, pixels, bits);
}

RIG_TEST(WritesOfIntegers)
{
    with_formats(rig, integers, COUNT(integers), 1, compare_integer_writes);
}

RIG_TEST(ReadAndWritten)
{
    float values[4][4][4];
    for (int i = 0; i < 64; i++)
        (&values[0][0][0])[i] = (float)i;
    const struct weir_image_layout layout =
        weir_image_2d(WEIR_ORDER_RGBA, WEIR_CHANNEL_FLOAT, 4, 4);
    weir_buffer *pixels = buffer_of(rig, values, sizeof values);
    EXPECT_OK(weir_queue_launch(rig->on.queue, kernel_of(rig, "twice"), weir_dim(1, 1, 1),
                                weir_dim(4, 4, 1), weir_image_inout(pixels, 0, &layout)));
    EXPECT_OK(weir_download(rig->on.queue, values, pixels, 0, sizeof values));
    for (int i = 0; i < 64; i++)
        EXPECT_TRUE((&values[0][0][0])[i] == (float)(2 * i));
}

// Source at run time has the same images.
RIG_TEST(SourceAtRunTime)
{
    static const char source[] =
        "const sampler_t half_way = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE |\n"
        "                           CLK_FILTER_LINEAR;\n"
        "#define OPENS \"/*\"\n" // no comment begins here
        "// nor here \\\n/*\n"
        "__kernel void shift(read_only image2d_t in, write_only image2d_t out)\n"
        "{\n"
        "    int2 at = (int2)((int)get_global_id(0), (int)get_global_id(1));\n"
        "    write_imagef(out, at, read_imagef(in, half_way, convert_float2(at) + 1.0f));\n"
        "}\n";
    unsigned char values[4][4], got[4][4];
    if (!create(rig, source, WEIR_OK))
        WEIR_SKIP("this device compiles no source");
    for (int i = 0; i < 16; i++)
        values[i / 4][i % 4] = (unsigned char)(8 * i);
    const struct weir_image_layout layout =
        weir_image_2d(WEIR_ORDER_R, WEIR_CHANNEL_UNORM_INT8, 4, 4);
    weir_kernel *kernel = kernel_of(rig, "shift");
    weir_buffer *in = buffer_of(rig, values, sizeof values);
    weir_buffer *out = buffer_of(rig, values, sizeof values);
    EXPECT_OK(weir_queue_launch(rig->on.queue, kernel, weir_dim(1, 1, 1), weir_dim(4, 4, 1),
                                weir_image_in(in, 0, &layout), weir_image_out(out, 0, &layout)));
    EXPECT_OK(weir_download(rig->on.queue, got, out, 0, sizeof got));
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 4; x++) // the mean of four pixels
            EXPECT_INT_EQ(got[y][x], (values[y][x] + values[y][x < 3 ? x + 1 : 3] +
                                      values[y < 3 ? y + 1 : 3][x] +
                                      values[y < 3 ? y + 1 : 3][x < 3 ? x + 1 : 3]) /
                                         4);
}

// What the compiler says does not name the cause.
RIG_TEST(HiddenByMacros)
{
    static const char *const sources[] = {
        "#define IN read_only image2d_t\n"
        "__kernel void k(IN in, sampler_t how, __global float4 *out)\n"
        "{ *out = read_imagef(in, how, (int2)(0, 0)); }\n",
        "#define SAMPLER sampler_t\n"
        "const SAMPLER how = CLK_FILTER_NEAREST;\n"
        "__kernel void k(read_only image2d_t in, __global float4 *out)\n"
        "{ *out = read_imagef(in, how, (int2)(0, 0)); }\n",
        "#define KERNEL __kernel\n"
        "KERNEL void k(read_only image2d_t in) { (void)in; }\n"};
    for (size_t i = 0; i < COUNT(sources); i++) {
        if (!create(rig, sources[i], WEIR_ERROR_BUILD))
            WEIR_SKIP("this device compiles no source");
        EXPECT_CONTAINS(weir_last_error_text(),
                        "where macros hide '__kernel', 'sampler_t' or a type of images, write "
                        "these out; mend the source");
    }
}

RIG_TEST(HalfATurn)
{
    enum {
        SIDE = 8
    };
    const uint32_t width = SIDE, height = SIDE;
    const float sine = 0.0f, cosine = -1.0f;
    float values[SIDE][SIDE][4], got[SIDE][SIDE][4];
    weir_queue *queue = rig->on.queue;
    for (int i = 0; i < SIDE * SIDE * 4; i++)
        (&values[0][0][0])[i] = (float)(i * i);
    weir_kernel *turn = kernel_of(rig, "turn");
    weir_buffer *in = buffer_of(rig, values, sizeof values);
    weir_buffer *out = buffer_of(rig, values, sizeof values);
    const struct weir_image_layout layout =
        weir_image_2d(WEIR_ORDER_RGBA, WEIR_CHANNEL_FLOAT, width, height);
    EXPECT_OK(weir_queue_launch_global(queue, turn, weir_dim(width, height, 1),
                                       weir_image_in(in, 0, &layout),
                                       weir_image_out(out, 0, &layout), sine, cosine));
    EXPECT_OK(weir_download(rig->on.queue, got, out, 0, sizeof got));
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            for (int c = 0; c < 4; c++)
                EXPECT_TRUE(got[y][x][c] == values[SIDE - 1 - y][SIDE - 1 - x][c]);
}

RIG_TEST(SizesAndFormats)
{
    static const int32_t wanted[10] = {
        7, 5, 3, 3, 2, 11, 13, WEIR_ORDER_BGRA, WEIR_CHANNEL_UNORM_INT8, 8};
    int32_t got[10] = {0};
    const struct weir_image_layout solid = weir_image_3d(WEIR_ORDER_R, WEIR_CHANNEL_FLOAT, 7, 5, 3),
                                   array = weir_image_3d(WEIR_ORDER_R, WEIR_CHANNEL_FLOAT, 7, 5, 2),
                                   flat = weir_image_2d(WEIR_ORDER_BGRA, WEIR_CHANNEL_UNORM_INT8,
                                                        11, 13);
    static const char bytes[4096];
    weir_buffer *pixels = buffer_of(rig, bytes, sizeof bytes);
    weir_buffer *out = buffer_of(rig, got, sizeof got);
    const struct weir_argument arguments[] = {weir_image_in(pixels, 0, &solid),
                                              weir_image_in(pixels, 0, &array),
                                              weir_image_in(pixels, 0, &flat), weir_whole_out(out)};
    EXPECT_OK(weir_queue_launch_array(rig->on.queue, kernel_of(rig, "tell"), weir_dim(1, 1, 1),
                                      weir_dim(1, 1, 1), arguments, 7));
    EXPECT_OK(weir_download(rig->on.queue, got, out, 0, sizeof got));
    for (int i = 0; i < 10; i++)
        EXPECT_INT_EQ(got[i], wanted[i]);
}

// Bad images.

static void refused(struct rig *rig, struct weir_argument range, struct weir_argument layout,
                    const char *sentence)
{
    const struct weir_argument arguments[] = {range, layout};
    EXPECT_FAILURE(weir_queue_launch_array(rig->on.queue, rig->kernel, weir_dim(1, 1, 1),
                                           weir_dim(4, 4, 1), arguments, 2),
                   WEIR_ERROR_INVALID, sentence);
}

RIG_TEST(RefusedLayouts)
{
    static const char bytes[1024];
    static const uint32_t rgba = WEIR_ORDER_RGBA | (uint32_t)WEIR_CHANNEL_FLOAT << 16,
                          bgra = WEIR_ORDER_BGRA | (uint32_t)WEIR_CHANNEL_FLOAT << 16,
                          r = WEIR_ORDER_R | (uint32_t)WEIR_CHANNEL_UNORM_INT8 << 16;
    static const struct {
        struct weir_image_layout layout; // width, height, depth, pitches, format, pixel_bytes
        const char *sentence;
    } cases[] = {
        {{0}, "an image of 0 x 0 x 0 pixels has none"},
        {{8, 8, 1, 128, 1024, WEIR_ORDER_RGBA | 0x10d4u << 16, 16},
         "0x10d410b5 is no format of pixels of 16 bytes"},
        {{8, 8, 1, 128, 1024, bgra, 16}, "0x10de10b6 is no format of pixels of 16 bytes"},
        {{8, 8, 1, 128, 1024, rgba, 0}, "0x10de10b5 is no format of pixels of 0 bytes"},
        {{8, 8, 1, 120, 1024, rgba, 16}, "pitches of 120 and 1024 bytes; a row has 128"},
        {{8, 8, 1, 132, 1024, rgba, 16}, "give it larger pitches, in whole pixels"},
        {{1u << 15, 1u << 15, 1, 1u << 19, 0, rgba, 16},
         "an image of 17179869184 bytes in a range of 1024"},
        {{2, 2, 0x7fffffff, 32, 64, rgba, 16}, "an image of 137438953408 bytes"},
        {{0x80000000, 1, 1, 0x80000000, 0x80000000, r, 1}, "a dimension has 2147483647 at most"},
        {{1, 1, 0x80000000, 1, 1, r, 1}, "use several images"},
    };
    const struct weir_image_layout good = weir_image_2d(WEIR_ORDER_RGBA, WEIR_CHANNEL_FLOAT, 8, 8),
                                   high = weir_image_2d(WEIR_ORDER_RGBA, WEIR_CHANNEL_FLOAT, 9, 8),
                                   large = weir_image_2d(WEIR_ORDER_RGBA, WEIR_CHANNEL_FLOAT, 1024,
                                                         1024),
                                   *none = NULL;
    kernel_of(rig, "twice");
    weir_buffer *pixels = buffer_of(rig, bytes, sizeof bytes);
    const struct weir_argument whole = weir_whole_inout(pixels);
    for (size_t i = 0; i < COUNT(cases); i++)
        refused(rig, whole, weir_value(&cases[i].layout, sizeof cases[i].layout),
                cases[i].sentence);
    refused(rig, weir_inout(pixels, 0, 1008), weir_value(&good, sizeof good),
            "launch: parameter 1, 'image__layout': an image of 1024 bytes in a range of 1008");
    refused(rig, weir_null(), weir_value(&good, sizeof good),
            "pass a larger range, by weir_image_in()");
    refused(rig, whole, // as a vector of as many bytes
            (struct weir_argument){.kind = WEIR_PARAMETER_VALUE,
                                   .scalar = WEIR_SCALAR_U32,
                                   .size = sizeof large,
                                   .pointer = &large,
                                   .bits = 7},
            "an image of 16777216 bytes in a range of 1024");
    const struct weir_argument of_none[] = {weir_image_inout(pixels, 0, none)},
                               outside[] = {weir_image_inout(pixels, 0, &high)};
    refused(rig, of_none[0], of_none[1], "an empty range");
    refused(rig, outside[0], outside[1], "'image__pixels'");
}
