// Images of OpenCL C over buffers. images.c puts this before a source that names images, on every device. An image
// is a pointer to its pixels and a layout (<weir/image.h>), a sampler is a number with clang's CLK_ bits.
//
// The arithmetic is that of OpenCL C, section "Image Addressing and Filtering". Sums of products are fma(), so that
// devices give the same bits. No coordinate reaches memory outside of the image: CLK_ADDRESS_NONE is
// CLK_ADDRESS_CLAMP_TO_EDGE, and a write outside is left out.
#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif
// A driver's own macros of these names go.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wmacro-redefined"
#define __IMAGE_SUPPORT__ 1
#define __opencl_c_images 1
#define __opencl_c_3d_image_writes 1
#define __opencl_c_read_write_images 1
#define cl_khr_3d_image_writes 1
#define CLK_NORMALIZED_COORDS_FALSE 0
#define CLK_NORMALIZED_COORDS_TRUE 1
#define CLK_ADDRESS_NONE 0
#define CLK_ADDRESS_CLAMP_TO_EDGE 2
#define CLK_ADDRESS_CLAMP 4
#define CLK_ADDRESS_REPEAT 6
#define CLK_ADDRESS_MIRRORED_REPEAT 8
#define CLK_FILTER_NEAREST 0x10
#define CLK_FILTER_LINEAR 0x20
#define WEIR__MODE 14

// Clang makes no code of functions that are static and not used.
#define WEIR__OWN static __attribute__((unused))
#define WEIR__OVER WEIR__OWN __attribute__((overloadable))
#define WEIR__APART WEIR__OWN __attribute__((noinline))

typedef struct {
    uint width, height, depth;
    uint row_pitch, slice_pitch;
    uint format; // the channels' order, and their type << 16, with OpenCL's numbers
    uint pixel_bytes;
} weir_image_layout;

struct weir__image {
    __global uchar *pixels;
    weir_image_layout at;
};
#define WEIR__IMAGE(name) \
    {{(__global uchar *)name##__pixels, name##__layout}}

// Formats.

enum {
    WEIR__R = 0x10b0,
    WEIR__RG = 0x10b2,
    WEIR__BGRA = 0x10b6,
    WEIR__SNORM8 = 0x10d0,
    WEIR__SNORM16,
    WEIR__UNORM8,
    WEIR__UNORM16,
    WEIR__HALF = 0x10dd,
    WEIR__ANY = 0x80000000, // kernels/compiler sets it where formats are others than the next
    WEIR__RGBA_UNORM8 = 0x10d210b5,
    WEIR__RGBA_HALF = 0x10dd10b5
};

uint WEIR__OWN weir__channels(uint format)
{
    const uint order = format & 0xffff;
    return order == WEIR__R ? 1 : order == WEIR__RG ? 2 : 4;
}

// The bits of each channel, in the order of memory; 0 where there is none.
uint4 WEIR__OWN weir__load(const __global uchar *at, uint channels, uint bytes)
{
    const __global ushort *two = (const __global ushort *)at;
    const __global uint *four = (const __global uint *)at;
    uint4 bits = 0;
    if (bytes == 1)
        bits.x = at[0];
    else
        bits.x = bytes == 2 ? two[0] : four[0];
    if (channels > 1)
        bits.y = bytes == 1 ? at[1] : bytes == 2 ? two[1] : four[1];
    if (channels > 2)
        bits.zw = bytes == 1   ? (uint2)(at[2], at[3])
                  : bytes == 2 ? (uint2)(two[2], two[3])
                               : (uint2)(four[2], four[3]);
    return bits;
}

void WEIR__OWN weir__store(__global uchar *at, uint channels, uint bytes, uint4 bits)
{
    for (uint i = 0; i < channels; i++, bits = bits.yzww, at += bytes) {
        if (bytes == 1)
            *at = (uchar)bits.x;
        else if (bytes == 2)
            *(__global ushort *)at = (ushort)bits.x;
        else
            *(__global uint *)at = bits.x;
    }
}

uint4 WEIR__OWN weir__half4_bits(float4 value)
{
    ushort4 bits;
#ifdef cl_khr_fp16
    bits = as_ushort4((half4)((half)value.x, (half)value.y, (half)value.z, (half)value.w));
#else
    vstore_half4_rte(value, 0, (half *)&bits);
#endif
    return convert_uint4(bits);
}

float4 WEIR__OWN weir__half4(uint4 bits)
{
    const ushort4 value = convert_ushort4(bits);
    return vload_half4(0, (const half *)&value);
}

int4 WEIR__OWN weir__signed(uint4 bits, uint bytes)
{
    return as_int4(bits << (32 - 8 * bytes)) >> (int)(32 - 8 * bytes);
}

float4 WEIR__APART weir__load_other(const __global uchar *at, uint format, uint pixel_bytes)
{
    const uint channels = weir__channels(format), bytes = pixel_bytes / channels;
    const uint4 bits = weir__load(at, channels, bytes);
    float4 value;
    switch (format >> 16) {
    case WEIR__UNORM8:
        value = convert_float4(bits) * (1 / 255.0f);
        break;
    case WEIR__UNORM16:
        value = convert_float4(bits) * (1 / 65535.0f);
        break;
    case WEIR__SNORM8:
        value = fmax(convert_float4(weir__signed(bits, 1)) * (1 / 127.0f), -1.0f);
        break;
    case WEIR__SNORM16:
        value = fmax(convert_float4(weir__signed(bits, 2)) * (1 / 32767.0f), -1.0f);
        break;
    case WEIR__HALF:
        value = weir__half4(bits);
        break;
    default:
        value = as_float4(bits);
    }
    if (channels < 4)
        value.w = 1;
    return (format & 0xffff) == WEIR__BGRA ? value.zyxw : value;
}

float4 WEIR__OWN weir__load_f(const __global uchar *at, uint format, uint pixel_bytes)
{
    if (pixel_bytes == 16)
        return *(const __global float4 *)at;
    if (format == WEIR__RGBA_HALF)
#ifdef cl_khr_fp16
        return convert_float4(*(const __global half4 *)at);
#else
        return vloada_half4(0, (const __global half *)at);
#endif
    if (format == WEIR__RGBA_UNORM8)
        return convert_float4(*(const __global uchar4 *)at) * (1 / 255.0f);
    return weir__load_other(at, format, pixel_bytes);
}

uint4 WEIR__APART weir__load_bits(const __global uchar *at, uint format, uint pixel_bytes,
                                  uint is_signed)
{
    const uint channels = weir__channels(format), bytes = pixel_bytes / channels;
    uint4 bits = weir__load(at, channels, bytes);
    if (is_signed)
        bits = as_uint4(weir__signed(bits, bytes));
    if (channels < 4)
        bits.w = 1;
    return (format & 0xffff) == WEIR__BGRA ? bits.zyxw : bits;
}

uint4 WEIR__OWN weir__load_ui(const __global uchar *at, uint format, uint pixel_bytes)
{
    return pixel_bytes == 16 ? *(const __global uint4 *)at
                             : weir__load_bits(at, format, pixel_bytes, 0);
}

int4 WEIR__OWN weir__load_i(const __global uchar *at, uint format, uint pixel_bytes)
{
    return pixel_bytes == 16 ? *(const __global int4 *)at
                             : as_int4(weir__load_bits(at, format, pixel_bytes, 1));
}

// The nearest integer, the even one of two. Not a number is the least.
uint4 WEIR__OWN weir__rounded(float4 value, float scale, float least)
{
    return as_uint4(convert_int4(fmin(fmax(rint(value * scale), least), scale)));
}

void WEIR__APART weir__store_other(__global uchar *at, uint format, uint pixel_bytes, float4 value)
{
    const uint channels = weir__channels(format);
    uint4 bits;
    value = (format & 0xffff) == WEIR__BGRA ? value.zyxw : value;
    switch (format >> 16) {
    case WEIR__UNORM8:
        bits = weir__rounded(value, 255, 0);
        break;
    case WEIR__UNORM16:
        bits = weir__rounded(value, 65535, 0);
        break;
    case WEIR__SNORM8:
        bits = weir__rounded(value, 127, -128);
        break;
    case WEIR__SNORM16:
        bits = weir__rounded(value, 32767, -32768);
        break;
    case WEIR__HALF:
        bits = weir__half4_bits(value);
        break;
    default:
        bits = as_uint4(value);
    }
    weir__store(at, channels, pixel_bytes / channels, bits);
}

void WEIR__OWN weir__store_f(__global uchar *at, uint format, uint pixel_bytes, float4 value)
{
    if (pixel_bytes == 16) {
        *(__global float4 *)at = value;
    } else if (format == WEIR__RGBA_HALF) {
        const uint4 bits = weir__half4_bits(value);
        *(__global uint2 *)at = bits.xz | bits.yw << 16;
    } else if (format == WEIR__RGBA_UNORM8) {
        *(__global uchar4 *)at = convert_uchar4(weir__rounded(value, 255, 0));
    } else {
        weir__store_other(at, format, pixel_bytes, value);
    }
}

void WEIR__APART weir__store_bits(__global uchar *at, uint format, uint pixel_bytes, uint4 bits)
{
    const uint channels = weir__channels(format);
    weir__store(at, channels, pixel_bytes / channels,
                (format & 0xffff) == WEIR__BGRA ? bits.zyxw : bits);
}

void WEIR__OWN weir__store_ui(__global uchar *at, uint format, uint pixel_bytes, uint4 value)
{
    const uint bytes = pixel_bytes / weir__channels(format);
    if (pixel_bytes == 16)
        *(__global uint4 *)at = value;
    else
        weir__store_bits(at, format, pixel_bytes,
                         bytes < 4 ? min(value, (uint4)((1u << 8 * bytes) - 1)) : value);
}

void WEIR__OWN weir__store_i(__global uchar *at, uint format, uint pixel_bytes, int4 value)
{
    const uint bytes = pixel_bytes / weir__channels(format);
    const int most = (int)(0x7fffffffu >> (32 - 8 * bytes));
    if (pixel_bytes == 16)
        *(__global int4 *)at = value;
    else
        weir__store_bits(at, format, pixel_bytes,
                         as_uint4(clamp(value, (int4)(-most - 1), (int4)(most))));
}

// Coordinates. Where the sampler clamps to the border one outside of the image is left as such.

int WEIR__OVER weir__place(int at, uint size, uint sampler)
{
    return (sampler & WEIR__MODE) == CLK_ADDRESS_CLAMP ? at : clamp(at, 0, (int)size - 1);
}

int WEIR__OWN weir__integer(float at, uint size)
{
    return (int)fmin(fmax(at, -1.0f), (float)size);
}

// A coordinate in pixels, and what is taken from it.
float WEIR__OWN weir__scaled(float at, uint size, uint sampler, float less)
{
    const uint mode = sampler & WEIR__MODE;
    if (!(sampler & CLK_NORMALIZED_COORDS_TRUE))
        return at - less;
    if (mode == CLK_ADDRESS_REPEAT)
        at -= floor(at);
    else if (mode == CLK_ADDRESS_MIRRORED_REPEAT)
        at = fabs(at - 2 * rint(0.5f * at));
    return fma(at, (float)size, -less);
}

int WEIR__OVER weir__place(float at, uint size, uint sampler)
{
    int place = weir__integer(floor(weir__scaled(at, size, sampler, 0)), size);
    if ((sampler & WEIR__MODE) == CLK_ADDRESS_REPEAT && place == (int)size)
        place = 0;
    return weir__place(place, size, sampler);
}

struct weir__two {
    int low, high;
    float weight; // of the higher one
};

struct weir__two WEIR__OWN weir__between(float at, uint size, uint sampler)
{
    const float scaled = weir__scaled(at, size, sampler, 0.5f);
    const float below = floor(scaled);
    int low = weir__integer(below, size), high = weir__integer(below + 1, size);
    if ((sampler & WEIR__MODE) == CLK_ADDRESS_REPEAT) {
        low += low < 0 ? (int)size : 0;
        high -= high >= (int)size ? (int)size : 0;
    }
    const struct weir__two two = {weir__place(low, size, sampler), weir__place(high, size, sampler),
                                  scaled - below};
    return two;
}

int WEIR__OVER weir__layer(int at, uint layers)
{
    return clamp(at, 0, (int)layers - 1);
}

int WEIR__OVER weir__layer(float at, uint layers)
{
    return weir__layer(weir__integer(rint(at), layers), layers);
}

int WEIR__OWN weir__is_inside(weir_image_layout at, int x, int y, int z)
{
    return (uint)x < at.width && (uint)y < at.height && (uint)z < at.depth;
}

uint WEIR__OWN weir__offset(weir_image_layout at, int x, int y, int z)
{
    return (uint)z * at.slice_pitch + (uint)y * at.row_pitch + (uint)x * at.pixel_bytes;
}

// Accesses to images of any formats are calls with no branches around: clang moves the arithmetic of what was read into
// the branch that uses it, and then each pixel has registers until there.
#define WEIR__TEXEL(vector, suffix)                                                                \
    vector WEIR__APART weir__read_any_##suffix(const __global uchar *at, uint format,              \
                                               uint pixel_bytes, int is_inside)                    \
    {                                                                                              \
        format &= ~WEIR__ANY;                                                                      \
        if (!is_inside)                                                                            \
            return (vector)(0, 0, 0, weir__channels(format) < 4);                                  \
        return weir__load_##suffix(at, format, pixel_bytes);                                       \
    }                                                                                              \
    void WEIR__APART weir__write_any_##suffix(__global uchar *at, uint format, uint pixel_bytes,   \
                                              int is_inside, vector value)                         \
    {                                                                                              \
        if (is_inside)                                                                             \
            weir__store_##suffix(at, format & ~WEIR__ANY, pixel_bytes, value);                     \
    }                                                                                              \
    vector WEIR__OWN weir__texel_##suffix(struct weir__image image, uint sampler, int x, int y,    \
                                          int z)                                                   \
    {                                                                                              \
        const int is_inside =                                                                      \
            (sampler & WEIR__MODE) != CLK_ADDRESS_CLAMP || weir__is_inside(image.at, x, y, z);     \
        const __global uchar *at =                                                                 \
            image.pixels + (is_inside ? weir__offset(image.at, x, y, z) : 0);                      \
        if (image.at.format & WEIR__ANY)                                                           \
            return weir__read_any_##suffix(at, image.at.format, image.at.pixel_bytes, is_inside);  \
        return is_inside ? weir__load_##suffix(at, image.at.format, image.at.pixel_bytes)           \
                         : (vector)(0, 0, 0, weir__channels(image.at.format) < 4);                  \
    }                                                                                              \
    void WEIR__OWN weir__set_##suffix(struct weir__image image, int x, int y, int z, vector value) \
    {                                                                                              \
        const int is_inside = weir__is_inside(image.at, x, y, z);                                  \
        __global uchar *at = image.pixels + (is_inside ? weir__offset(image.at, x, y, z) : 0);     \
        if (image.at.format & WEIR__ANY)                                                           \
            weir__write_any_##suffix(at, image.at.format, image.at.pixel_bytes, is_inside, value); \
        else if (is_inside)                                                                        \
            weir__store_##suffix(at, image.at.format, image.at.pixel_bytes, value);                \
    }
WEIR__TEXEL(float4, f)
WEIR__TEXEL(int4, i)
WEIR__TEXEL(uint4, ui)

// Linear filters.

float4 WEIR__OWN weir__mix(float4 low, float4 high, float weight)
{
    return fma((float4)(weight), high - low, low);
}

float4 WEIR__OWN weir__linear1(struct weir__image image, uint sampler, float at, int y, int z)
{
    const struct weir__two x = weir__between(at, image.at.width, sampler);
    return weir__mix(weir__texel_f(image, sampler, x.low, y, z),
                     weir__texel_f(image, sampler, x.high, y, z), x.weight);
}

float4 WEIR__OWN weir__linear2(struct weir__image image, uint sampler, float2 at, int z)
{
    const struct weir__two y = weir__between(at.y, image.at.height, sampler);
    return weir__mix(weir__linear1(image, sampler, at.x, y.low, z),
                     weir__linear1(image, sampler, at.x, y.high, z), y.weight);
}

float4 WEIR__OWN weir__linear3(struct weir__image image, uint sampler, float4 at)
{
    const struct weir__two z = weir__between(at.z, image.at.depth, sampler);
    return weir__mix(weir__linear2(image, sampler, at.xy, z.low),
                     weir__linear2(image, sampler, at.xy, z.high), z.weight);
}

// What sources call. Functions with a sampler and those without have the same text: WEIR__FIRST_ and WEIR__PASS_ name
// the parameter, and where there is none, weir__sampler is the constant.

enum {
    weir__sampler = CLK_ADDRESS_NONE
};
#define WEIR__FIRST_plain
#define WEIR__PASS_plain
#define WEIR__FIRST_sampled uint weir__sampler,
#define WEIR__PASS_sampled weir__sampler,

#define WEIR__X(where) weir__place(where, image.i.at.width, weir__sampler)
#define WEIR__Y(where) weir__place(where, image.i.at.height, weir__sampler)
#define WEIR__Z(where) weir__place(where, image.i.at.depth, weir__sampler)
#define WEIR__LAYER(where) weir__layer(where, image.i.at.depth)

#define WEIR__READ(vector, suffix, how, kind, coordinate, value)                \
    vector WEIR__OVER weir__read_image##suffix(struct weir__##kind image,       \
                                               WEIR__FIRST_##how coordinate at) \
    {                                                                           \
        return value;                                                           \
    }
#define WEIR__READS(how, kind, coordinate, x, y, z)                                               \
    WEIR__READ(int4, i, how, kind, coordinate, weir__texel_i(image.i, weir__sampler, x, y, z))    \
    WEIR__READ(uint4, ui, how, kind, coordinate, weir__texel_ui(image.i, weir__sampler, x, y, z)) \
    WEIR__READ_HALF(how, kind, coordinate)
#define WEIR__NEAREST(how, kind, coordinate, x, y, z)                                            \
    WEIR__READ(float4, f, how, kind, coordinate, weir__texel_f(image.i, weir__sampler, x, y, z)) \
    WEIR__READS(how, kind, coordinate, x, y, z)
#define WEIR__LINEAR(kind, coordinate, filtered, x, y, z)                                         \
    WEIR__READ(float4, f, sampled, kind, coordinate,                                              \
               weir__sampler &CLK_FILTER_LINEAR ? filtered                                        \
                                                : weir__texel_f(image.i, weir__sampler, x, y, z)) \
    WEIR__READS(sampled, kind, coordinate, x, y, z)
#define WEIR__WRITE(vector, suffix, kind, coordinate, call)                             \
    void WEIR__OVER weir__write_image##suffix(struct weir__##kind image, coordinate at, \
                                              vector value)                             \
    {                                                                                   \
        call;                                                                           \
    }
#define WEIR__GET(type, name, kind, value)                            \
    type WEIR__OVER weir__get_image_##name(struct weir__##kind image) \
    {                                                                 \
        return (type)(value);                                         \
    }
#define WEIR__KIND(kind, coordinate, x, y, z)                                       \
    struct weir__##kind {                                                           \
        struct weir__image i;                                                       \
    };                                                                              \
    WEIR__NEAREST(plain, kind, coordinate, WEIR__X(x), WEIR__Y(y), WEIR__Z(z))      \
    WEIR__WRITE(float4, f, kind, coordinate, weir__set_f(image.i, x, y, z, value))  \
    WEIR__WRITE(int4, i, kind, coordinate, weir__set_i(image.i, x, y, z, value))    \
    WEIR__WRITE(uint4, ui, kind, coordinate, weir__set_ui(image.i, x, y, z, value)) \
    WEIR__WRITE_HALF(kind, coordinate, x, y, z)                                     \
    WEIR__GET(int, width, kind, image.i.at.width)                                   \
    WEIR__GET(int, channel_data_type, kind, image.i.at.format >> 16 & 0x7fff)       \
    WEIR__GET(int, channel_order, kind, image.i.at.format & 0xffff)
#ifdef cl_khr_fp16
#define WEIR__READ_HALF(how, kind, coordinate)  \
    WEIR__READ(half4, h, how, kind, coordinate, \
               convert_half4(weir__read_imagef(image, WEIR__PASS_##how at)))
#define WEIR__WRITE_HALF(kind, coordinate, x, y, z) \
    WEIR__WRITE(half4, h, kind, coordinate, weir__set_f(image.i, x, y, z, convert_float4(value)))
#else
#define WEIR__READ_HALF(how, kind, coordinate)
#define WEIR__WRITE_HALF(kind, coordinate, x, y, z)
#endif

WEIR__KIND(image1d, int, at, 0, 0)
WEIR__KIND(image1d_buffer, int, at, 0, 0)
WEIR__KIND(image1d_array, int2, at.x, 0, at.y)
WEIR__KIND(image2d, int2, at.x, at.y, 0)
WEIR__KIND(image2d_array, int4, at.x, at.y, at.z)
WEIR__KIND(image3d, int4, at.x, at.y, at.z)

WEIR__NEAREST(sampled, image1d, int, WEIR__X(at), 0, 0)
WEIR__NEAREST(sampled, image1d_array, int2, WEIR__X(at.x), 0, WEIR__LAYER(at.y))
WEIR__NEAREST(sampled, image2d, int2, WEIR__X(at.x), WEIR__Y(at.y), 0)
WEIR__NEAREST(sampled, image2d_array, int4, WEIR__X(at.x), WEIR__Y(at.y), WEIR__LAYER(at.z))
WEIR__NEAREST(sampled, image3d, int4, WEIR__X(at.x), WEIR__Y(at.y), WEIR__Z(at.z))

#define WEIR__LINEAR1(at, y, z) weir__linear1(image.i, weir__sampler, at, y, z)
#define WEIR__LINEAR2(at, z) weir__linear2(image.i, weir__sampler, at, z)
WEIR__LINEAR(image1d, float, WEIR__LINEAR1(at, 0, 0), WEIR__X(at), 0, 0)
WEIR__LINEAR(image1d_array, float2, WEIR__LINEAR1(at.x, 0, WEIR__LAYER(at.y)), WEIR__X(at.x), 0,
             WEIR__LAYER(at.y))
WEIR__LINEAR(image2d, float2, WEIR__LINEAR2(at, 0), WEIR__X(at.x), WEIR__Y(at.y), 0)
WEIR__LINEAR(image2d_array, float4, WEIR__LINEAR2(at.xy, WEIR__LAYER(at.z)), WEIR__X(at.x),
             WEIR__Y(at.y), WEIR__LAYER(at.z))
WEIR__LINEAR(image3d, float4, weir__linear3(image.i, weir__sampler, at), WEIR__X(at.x),
             WEIR__Y(at.y), WEIR__Z(at.z))

WEIR__GET(int, height, image2d, image.i.at.height)
WEIR__GET(int, height, image2d_array, image.i.at.height)
WEIR__GET(int, height, image3d, image.i.at.height)
WEIR__GET(int, depth, image3d, image.i.at.depth)
WEIR__GET(int2, dim, image2d, (int2)((int)image.i.at.width, (int)image.i.at.height))
WEIR__GET(int2, dim, image2d_array, (int2)((int)image.i.at.width, (int)image.i.at.height))
WEIR__GET(int4, dim, image3d,
          (int4)((int)image.i.at.width, (int)image.i.at.height, (int)image.i.at.depth, 0))
WEIR__GET(size_t, array_size, image1d_array, image.i.at.depth)
WEIR__GET(size_t, array_size, image2d_array, image.i.at.depth)

#define read_only
#define __read_only
#define write_only
#define __write_only
#define read_write
#define __read_write
#define image1d_t struct weir__image1d
#define image1d_buffer_t struct weir__image1d_buffer
#define image1d_array_t struct weir__image1d_array
#define image2d_t struct weir__image2d
#define image2d_array_t struct weir__image2d_array
#define image3d_t struct weir__image3d
#define sampler_t uint
#define weir__sampler_of_program __constant uint
#define read_imagef weir__read_imagef
#define read_imagei weir__read_imagei
#define read_imageui weir__read_imageui
#define read_imageh weir__read_imageh
#define write_imagef weir__write_imagef
#define write_imagei weir__write_imagei
#define write_imageui weir__write_imageui
#define write_imageh weir__write_imageh
#define get_image_width weir__get_image_width
#define get_image_height weir__get_image_height
#define get_image_depth weir__get_image_depth
#define get_image_dim weir__get_image_dim
#define get_image_array_size weir__get_image_array_size
#define get_image_channel_data_type weir__get_image_channel_data_type
#define get_image_channel_order weir__get_image_channel_order
#pragma clang diagnostic pop
