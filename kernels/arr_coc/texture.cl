// Stage 1: an RGB8 image to 13 channels of S x S.
//
// A block makes a tile of 32 x 32 pixels, four rows per work-item, in two steps:
// the colours, with the gray values that Sobel needs, go to local memory, with a
// border of one pixel around the tile; then all channels are made of them.
// Work-items never branch: neighbours in x do the same on neighbouring addresses,
// which suits both a CPU's vectoriser and a GPU's memory. The last tiles of a row
// or column are moved back into the image and overlap others, which then store
// the same bits twice.
//
// PoCL makes a loop over the work-items of each piece between two barriers. What
// is computed before a barrier and used after it, such as an address, it keeps in
// memory for each work-item, and then loads and stores are no longer known to be
// of neighbours. So no two pieces have an expression of the work-item in common:
// each has its own mapping of work-items to rows, and the tile's corner goes
// through local memory.
//
// Sums of products are written with fma(), so the result is the same whether or
// not a driver fuses operations. The others (2 b + c, x / 8 + c) are exact.

#define weir_fma(a, b, c) fma(a, b, c)
#include "kernels/arr_coc/color_math.cl.h"

#define TILE 32u
#define EDGE (TILE + 2u) // with one pixel on each side
#define TILE_ROWS 8u     // of work-items
#define PI 3.14159265358979f

// The position at which an output index samples the input: between `low` and
// `high`, both in units of `step` bytes.
struct tap {
    uint low, high;
    float weight; // of `high`
};

// The centre is (index + 0.5) n/S - 0.5. In units of 1/2S it is a whole number,
// so float32 loses nothing on wide images.
struct tap tap_of(int index, uint n, uint size, uint step)
{
    struct tap tap;
    uint inside = (uint)clamp(index, 0, (int)size - 1);
    uint scaled = (2u * inside + 1u) * n;
    uint centre = min(scaled - min(scaled, size), (n - 1u) * 2u * size);
    uint low = centre / (2u * size);
    tap.low = low * step;
    tap.high = min(low + 1u, n - 1u) * step;
    tap.weight = (float)(centre - low * 2u * size) / (float)(2u * size);
    return tap;
}

float mix_of(float a, float b, float weight)
{
    return fma(b - a, weight, a);
}

// One colour of a pixel, 0 to 1. Equal samples give exactly their common value.
float sample(__global const uchar *rgb, uint above, uint below, uint left, uint right, float wx,
             float wy)
{
    float top = mix_of((float)rgb[above + left], (float)rgb[above + right], wx);
    float bottom = mix_of((float)rgb[below + left], (float)rgb[below + right], wx);
    return mix_of(top, bottom, wy) * (1.0f / 255.0f);
}

float gray_of(float r, float g, float b)
{
    return fma(0.114f, b, fma(0.587f, g, 0.299f * r));
}

float unit(float x)
{
    return fmin(fmax(x, 0.0f), 1.0f);
}

// L*, a*, b* in [0, 1] into three planes. A difference of two of the roots as one
// operator would make LLVM compute these two as a pair, and then no more than one
// pixel at a time. It is inlined for the same reason: a call is one pixel.
static inline __attribute__((always_inline)) void store_lab(float red, float green, float blue,
                                                            __global float *out, uint plane)
{
    float r = weir_srgb_to_linear(red);
    float g = weir_srgb_to_linear(green);
    float b = weir_srgb_to_linear(blue);
    // The matrix of sRGB, each row divided by the white's coordinate.
    float x =
        fma(0.412453f / 0.950456f, r, fma(0.357580f / 0.950456f, g, (0.180423f / 0.950456f) * b));
    float y = fma(0.212671f, r, fma(0.715160f, g, 0.072169f * b));
    float z =
        fma(0.019334f / 1.088754f, r, fma(0.119193f / 1.088754f, g, (0.950227f / 1.088754f) * b));
    float fx = weir_lab_f(x);
    float fy = weir_lab_f(y);
    float fz = weir_lab_f(z);
    out[0] = unit(fma(1.16f, fy, -0.16f));
    out[plane] = unit(fma(500.0f / 255.0f, fma(-1.0f, fy, fx), 128.0f / 255.0f));
    out[2u * plane] = unit(fma(200.0f / 255.0f, fma(-1.0f, fz, fy), 128.0f / 255.0f));
}

__kernel __attribute__((reqd_work_group_size(32, 8, 1))) void texture_image(
    __global const uchar *rgb, __global float *texture, uint height, uint width, uint size,
    uint plane)
{
    __local uint corner[2], x_low[EDGE], x_high[EDGE], y_low[EDGE], y_high[EDGE];
    __local float x_weight[EDGE], y_weight[EDGE];
    __local float red[TILE * TILE], green[TILE * TILE], blue[TILE * TILE];
    __local float gray[EDGE * EDGE + TILE]; // and what no work-item reads
    size_t lx = get_local_id(0), ly = get_local_id(1);
    uint left = min((uint)get_group_id(0) * TILE, size - TILE);
    uint top = min((uint)get_group_id(1) * TILE, size - TILE);

    size_t lane = (TILE_ROWS - 1u - ly) * TILE + lx;
    if (lane == 0u) {
        corner[0] = left;
        corner[1] = top;
    }
    if (lane < EDGE) {
        struct tap tap = tap_of((int)left + (int)lane - 1, width, size, 3u);
        x_low[lane] = tap.low;
        x_high[lane] = tap.high;
        x_weight[lane] = tap.weight;
        tap = tap_of((int)top + (int)lane - 1, height, size, 3u * width);
        y_low[lane] = tap.low;
        y_high[lane] = tap.high;
        y_weight[lane] = tap.weight;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

#pragma unroll
    for (size_t part = 0; part < TILE / TILE_ROWS; part++) {
        size_t row = ly + part * TILE_ROWS;
        size_t at = row * TILE + lx;
        uint above = y_low[row + 1u], below = y_high[row + 1u];
        uint before = x_low[lx + 1u], after = x_high[lx + 1u];
        float wx = x_weight[lx + 1u], wy = y_weight[row + 1u];
        float r = sample(rgb, above, below, before, after, wx, wy);
        float g = sample(rgb + 1, above, below, before, after, wx, wy);
        float b = sample(rgb + 2, above, below, before, after, wx, wy);
        red[at] = r;
        green[at] = g;
        blue[at] = b;
        gray[(row + 1u) * EDGE + lx + 1u] = gray_of(r, g, b);
    }
    // For PoCL: the branch below would be in the same loop.
    barrier(CLK_LOCAL_MEM_FENCE);

    // The frame around the tile: two columns, two rows, four corners.
    if (ly < 5u) {
        size_t row = ly < 2u    ? lx + 1u
                     : ly == 2u ? 0u
                     : ly == 3u ? EDGE - 1u
                                : (lx & 1u) * (EDGE - 1u);
        size_t column = ly == 0u   ? 0u
                        : ly == 1u ? EDGE - 1u
                        : ly < 4u  ? lx + 1u
                                   : ((lx >> 1) & 1u) * (EDGE - 1u);
        uint above = y_low[row], below = y_high[row];
        uint before = x_low[column], after = x_high[column];
        float wx = x_weight[column], wy = y_weight[row];
        float r = sample(rgb, above, below, before, after, wx, wy);
        float g = sample(rgb + 1, above, below, before, after, wx, wy);
        float b = sample(rgb + 2, above, below, before, after, wx, wy);
        // The four corners have a row of work-items, of which four store one.
        gray[ly < 4u || lx < 4u ? row * EDGE + column : EDGE * EDGE + lx] = gray_of(r, g, b);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    __global float *tile = texture + corner[1] * size + corner[0];
#pragma unroll
    for (size_t part = 0; part < TILE / TILE_ROWS; part++) {
        size_t row = ly * (TILE / TILE_ROWS) + part;
        size_t at = row * TILE + lx;
        __local float *a = gray + row * EDGE + lx;
        __local float *b = a + EDGE;
        __local float *c = b + EDGE;
        float gx = ((a[2] - a[0]) + 2.0f * (b[2] - b[0]) + (c[2] - c[0])) * 0.125f;
        float gy = ((c[0] - a[0]) + 2.0f * (c[1] - a[1]) + (c[2] - a[2])) * 0.125f;
        __global float *out = tile + row * size + lx;
        out[0] = red[at];
        out[plane] = green[at];
        out[2u * plane] = blue[at];
        store_lab(red[at], green[at], blue[at], out + 3u * plane, plane);
        out[6u * plane] = gx + 0.5f;
        out[7u * plane] = gy + 0.5f;
        out[8u * plane] = sqrt(2.0f * fma(gx, gx, gy * gy));
    }
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void texture_position(
    __global float *texture, uint size, uint plane)
{
    uint row = (uint)get_group_id(1);
    uint column = (uint)get_global_id(0);
    if (column >= size)
        return;
    // Odd multiples of 1/2S: exact for every S below 2^23.
    float scale = 0.5f / (float)size;
    float dy = (float)((int)(2u * row + 1u) - (int)size) * scale;
    float dx = (float)((int)(2u * column + 1u) - (int)size) * scale;
    __global float *out = texture + 9u * plane + row * size + column;
    out[0] = (float)(2u * row + 1u) * scale;
    out[plane] = (float)(2u * column + 1u) * scale;
    out[2u * plane] = fma(atan2(dy, dx), 0.5f / PI, 0.5f);
    out[3u * plane] = sqrt(2.0f * fma(dy, dy, dx * dx));
}
