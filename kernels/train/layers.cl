// What stands before and after the products: the pieces of an image that a convolution
// multiplies, biases, ReLU, and the way back.

#include "kernels/train/element.cl.h"

__kernel void narrow(__global const float *restrict in, __global element *restrict out, uint count)
{
    uint i = (uint)get_global_id(0);
    if (i < count)
        out[i] = narrow_one(in[i]);
}

__kernel void widen(__global const element *restrict in, __global float *restrict out, uint count)
{
    uint i = (uint)get_global_id(0);
    if (i < count)
        out[i] = wide(in[i]);
}

// A convolution's geometry: an image of height x width x channels, pieces of side x side, and how
// many of these lie above and beside each other.
struct view {
    uint height, width, channels, side, stride, high, across;
};

// out[samples * high * across, side * side * channels]: the piece of each place, zeros outside the
// image.
__kernel void pieces(__global const element *restrict images, __global element *restrict out,
                     struct view view, uint count)
{
    uint i = (uint)get_global_id(0);
    if (i >= count)
        return;
    uint channel = i % view.channels, rest = i / view.channels;
    uint x = rest % view.side, y = rest / view.side % view.side;
    rest /= view.side * view.side;
    uint column = rest % view.across, row = rest / view.across % view.high;
    uint sample = rest / (view.across * view.high);
    // Outside the image these wrap around and are too large.
    uint from_x = column * view.stride + x - view.side / 2;
    uint from_y = row * view.stride + y - view.side / 2;
    bool inside = from_x < view.width && from_y < view.height;
    size_t at = ((size_t)sample * view.height + from_y) * view.width + from_x;
    out[i] = inside ? images[at * view.channels + channel] : narrow_one(0.0f);
}

// The gradient of an image from that of its pieces, in the order of places, through the ReLU that
// made the image if there was one.
__kernel void unite(__global const float *restrict pieces, __global const element *restrict image,
                    __global element *restrict out, struct view view, uint relu, float grid,
                    uint count)
{
    uint i = (uint)get_global_id(0);
    if (i >= count)
        return;
    uint channel = i % view.channels, rest = i / view.channels;
    uint column = rest % view.width, row = rest / view.width % view.height;
    uint sample = rest / (view.width * view.height);
    float sum = 0.0f;
    for (uint y = 0; y < view.side; y++)
        for (uint x = 0; x < view.side; x++) {
            uint from_x = column + view.side / 2 - x, from_y = row + view.side / 2 - y;
            if (from_x % view.stride || from_y % view.stride ||
                from_x / view.stride >= view.across || from_y / view.stride >= view.high)
                continue;
            size_t place = ((size_t)sample * view.high + from_y / view.stride) * view.across +
                           from_x / view.stride;
            sum += pieces[((place * view.side + y) * view.side + x) * view.channels + channel];
        }
    bool passes = !relu || wide(image[i]) > 0.0f;
    out[i] = narrow_one(passes ? on_grid(sum, grid) : 0.0f);
}

// The output of a layer from its sums [count / outputs, outputs].
__kernel void activate(__global const float *restrict sums, __global const float *restrict bias,
                       __global element *restrict out, uint outputs, uint relu, float grid,
                       uint count)
{
    uint i = (uint)get_global_id(0);
    if (i >= count)
        return;
    float value = sums[i] + bias[i % outputs];
    value = relu ? fmax(value, 0.0f) : value;
    out[i] = narrow_one(on_grid(value, grid));
}
