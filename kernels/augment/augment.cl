// Augmentation of images for training: a crop at a random place, a mirror image of every other one,
// random contrast and brightness, normalisation. README.md has the formulas.

// Murmur3's finaliser: each bit of the result depends on each bit of x.
uint mix_bits(uint x)
{
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return x ^ (x >> 16);
}

// Draw `which` of image `index`: a function of these and the seed alone, so that it does not depend
// on how images are divided into batches and ranks.
uint draw(uint seed, ulong index, uint which)
{
    uint x = mix_bits(seed + 0x9e3779b9u * which);
    x = mix_bits(x ^ (uint)index);
    return mix_bits(x + (uint)(index >> 32));
}

// In [low, high), of the draw's upper 24 bits.
float draw_between(uint bits, float low, float high)
{
    return fma((float)(bits >> 8) * 0x1p-24f, high - low, low);
}

float pick(float4 values, uint i)
{
    return i == 0 ? values.x : i == 1 ? values.y : i == 2 ? values.z : values.w;
}

// images: [count, height, width, channels] bytes. out: [count, out_height, out_width, channels].
// Image i of the batch is image `first + i` of the whole data. One work-item for each number of out.
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
augment(__global const uchar *images, __global float *out, uint count, uint width, uint height,
        uint channels, uint out_width, uint out_height, ulong first, uint seed, float contrast,
        float brightness, float4 scale, float4 shift)
{
    const uint at = (uint)get_global_id(0);
    const uint row_length = out_width * channels;
    const uint image = at / (row_length * out_height);
    if (image >= count)
        return;
    const uint row = at / row_length % out_height;
    const uint column = at % row_length / channels;
    const uint channel = at % channels;
    const ulong index = first + image;
    const uint top = draw(seed, index, 0) % (height - out_height + 1);
    const uint left = draw(seed, index, 1) % (width - out_width + 1);
    const bool mirrored = draw(seed, index, 2) & 1;
    const float gain = draw_between(draw(seed, index, 3), 1 - contrast, 1 + contrast);
    const float bias = draw_between(draw(seed, index, 4), -brightness, brightness);
    const uint x = left + (mirrored ? out_width - 1 - column : column);
    const uint from = ((image * height + top + row) * width + x) * channels + channel;
    const float light = fma((float)images[from] * (1 / 255.0f), gain, bias);
    out[at] = fma(light, pick(scale, channel), pick(shift, channel));
}

// out[i]: byte i as a number about 0, exactly: (v - 128) / 64 or, with `whole`, a whole number.
__kernel void centre(__global const uchar *images, __global float *out, ulong count, uint whole)
{
    const ulong at = get_global_id(0);
    if (at >= count)
        return;
    const int value = images[at];
    out[at] = whole ? (float)(value / 32 - 4) : (float)(value - 128) * 0x1p-6f;
}
