// Stage 2: the scores of each patch, and the mixture of the three scores.
//
// patch_scores has one block per patch, relevance a single block. Every sum has a
// fixed order that depends only on sizes; the histogram is of integers, one copy
// per work-item, and so needs neither atomics nor an order.

#include "kernels/arr_coc/layout.cl.h"

#define COLUMNS 32u
#define ROWS 4u
#define PATCH_LANES (COLUMNS * ROWS)
#define IMAGE_CHANNELS 9u
#define BINS 32u
#define PADDED_BINS \
    33u // not a power of two, to avoid conflicts in the GPUs' \
        // memory banks
#define HIDDEN 64u
#define SEGMENT 16u // partial sums that one work-item adds up

// Adds one pixel to a work-item's own histogram: integer weights, 256 a pixel.
// With W = floor(256 * 31 v + 0.5) the pixel counts W & 255 in bin (W >> 8) + 1
// and the rest in the bin below. On which side of the tie n + 0.5 a value is, is
// decided by one fused product, whose sign is exact, so every float gets the
// weights that exact arithmetic would give: a flat patch on the wrong side of a
// tie would be wrong throughout.
void count_pixel(__local int *bins, float value, int inside)
{
    int below = (int)(7936.0f * value);
    int whole = below + (fma(7936.0f, value, -((float)below + 0.5f)) >= 0.0f ? 1 : 0);
    int k = min(whole >> 8, 30);
    int weight = whole - (k << 8);
    bins[k] += inside * (256 - weight);
    bins[k + 1] += inside * weight;
}

float kept(bool inside, float value)
{
    return inside ? value : 0.0f;
}

// Reduces one value per work-item to a few per channel, and to the 32 terms p log2
// p of the entropy. Ends with a barrier.
void reduce_items(__local const float *partial, __local const int *histogram,
                  __local float *segments, __local float *terms, float pixels, uint lane)
{
    if (lane < IMAGE_CHANNELS * (PATCH_LANES / SEGMENT)) {
        float sum = 0.0f;
#pragma unroll
        for (uint i = 0; i < SEGMENT; i++)
            sum += partial[lane * SEGMENT + i];
        segments[lane] = sum;
    } else if (lane >= PATCH_LANES - BINS) {
        uint bin = lane - (PATCH_LANES - BINS);
        int count = 0;
        for (uint i = 0; i < PATCH_LANES; i++)
            count += histogram[i * PADDED_BINS + bin];
        float p = (float)count / (256.0f * pixels);
        terms[bin] = count > 0 ? p * log2(p) : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// The participatory layer without its D outputs f: the contribution of each hidden
// unit to |f|^2 and to f.q. Ends with a barrier.
void feature_terms(__global const float *weights, __local const float *means, __local float *hidden,
                   __local float *square, __local float *along, uint lane)
{
    if (lane < HIDDEN) {
        float sum = weights[ARR_COC_PACK_B0 + lane];
        for (uint i = 0; i < ARR_COC_CHANNELS; i++)
            sum = fma(weights[ARR_COC_PACK_W0 + i * HIDDEN + lane], means[i], sum);
        hidden[lane] = fmax(sum, 0.0f);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    if (lane < HIDDEN) {
        float sum = weights[ARR_COC_PACK_WB + lane];
        for (uint i = 0; i < HIDDEN; i++)
            sum = fma(weights[ARR_COC_PACK_GRAM + i * HIDDEN + lane], hidden[i], sum);
        square[lane] = hidden[lane] * sum;
        along[lane] = hidden[lane] * weights[ARR_COC_PACK_WQ + lane];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// (1 + cos(f, q)) / 2.
float participation(__global const float *weights, __local const float *square,
                    __local const float *along)
{
    float f_f = weights[ARR_COC_PACK_SCALARS];
    float f_q = weights[ARR_COC_PACK_SCALARS + 1];
    for (uint i = 0; i < HIDDEN; i++) {
        f_f += square[i];
        f_q += along[i];
    }
    float lengths = sqrt(fmax(f_f, 0.0f)) * weights[ARR_COC_PACK_SCALARS + 2];
    return 0.5f + 0.5f * (f_q / fmax(lengths, 1e-12f));
}

__kernel __attribute__((reqd_work_group_size(32, 4, 1))) void patch_scores(
    __global const float *texture, __global const float *weights, __global const float *position,
    __global float *scores, uint size, uint grid, uint plane)
{
    __local float partial[IMAGE_CHANNELS * PATCH_LANES];
    __local float segments[IMAGE_CHANNELS * (PATCH_LANES / SEGMENT)];
    __local int histogram[PATCH_LANES * PADDED_BINS];
    __local float terms[BINS];
    __local float means[ARR_COC_CHANNELS];
    __local float hidden[HIDDEN];
    __local float along[HIDDEN], square[HIDDEN];
    uint lx = (uint)get_local_id(0), ly = (uint)get_local_id(1);
    uint lane = ly * COLUMNS + lx;
    uint patch = (uint)get_group_id(0), patches = grid * grid;
    uint side = size / grid;
    uint origin = (patch / grid) * side * size + (patch % grid) * side;
    __local int *bins = histogram + lane * PADDED_BINS;

#pragma unroll
    for (uint bin = 0; bin < BINS; bin++)
        bins[bin] = 0;
    float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f, s4 = 0.0f;
    float s5 = 0.0f, s6 = 0.0f, s7 = 0.0f, s8 = 0.0f;
    for (uint left = 0; left < side; left += COLUMNS) {
        // Past the patch's right edge the floats belong to its neighbour or to
        // padding with arbitrary contents; they are read and discarded.
        for (uint top = 0; top < side; top += ROWS) {
            bool inside = left + lx < side && top + ly < side;
            uint row = min(top + ly, side - 1u);
            __global const float *in = texture + origin + row * size + left + lx;
            float lightness = in[3u * plane];
            lightness = inside ? lightness : 0.0f;
            s0 += kept(inside, in[0]);
            s1 += kept(inside, in[plane]);
            s2 += kept(inside, in[2u * plane]);
            s3 += lightness;
            s4 += kept(inside, in[4u * plane]);
            s5 += kept(inside, in[5u * plane]);
            s6 += kept(inside, in[6u * plane]);
            s7 += kept(inside, in[7u * plane]);
            s8 += kept(inside, in[8u * plane]);
            count_pixel(bins, lightness, inside ? 1 : 0);
        }
    }
    partial[0u * PATCH_LANES + lane] = s0;
    partial[1u * PATCH_LANES + lane] = s1;
    partial[2u * PATCH_LANES + lane] = s2;
    partial[3u * PATCH_LANES + lane] = s3;
    partial[4u * PATCH_LANES + lane] = s4;
    partial[5u * PATCH_LANES + lane] = s5;
    partial[6u * PATCH_LANES + lane] = s6;
    partial[7u * PATCH_LANES + lane] = s7;
    partial[8u * PATCH_LANES + lane] = s8;
    barrier(CLK_LOCAL_MEM_FENCE);

    reduce_items(partial, histogram, segments, terms, (float)(side * side), lane);
    if (lane < IMAGE_CHANNELS) {
        float sum = 0.0f;
        for (uint i = 0; i < PATCH_LANES / SEGMENT; i++)
            sum += segments[lane * (PATCH_LANES / SEGMENT) + i];
        means[lane] = sum / (float)(side * side);
    } else if (lane < ARR_COC_CHANNELS) {
        means[lane] = position[(lane - IMAGE_CHANNELS) * patches + patch];
    } else if (lane == ARR_COC_CHANNELS) {
        float sum = 0.0f;
        for (uint i = 0; i < BINS; i++)
            sum += terms[i];
        scores[patch] = -sum * (1.0f / 5.0f);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    feature_terms(weights, means, hidden, square, along, lane);
    if (lane == 0u) {
        scores[patches + patch] = means[8];
        scores[2u * patches + patch] = participation(weights, square, along);
    }
}

// relevance: one block.

#define ITEMS 256u
#define GROUPS 16u // of 16 work-items
#define WIDTH 128u
#define LOWEST -3.402823466e38f

// Combines the values that each work-item stored in `parts` [count][ITEMS], in two
// steps and always in the same order; afterwards every work-item may read [count]
// results. Begins and ends with a barrier.
#define BLOCK_REDUCTION(name, combine)                                                     \
    void combine_groups_##name(__local const float *from, __local float *to, uint count)   \
    {                                                                                      \
        uint lane = (uint)get_local_id(0);                                                 \
        barrier(CLK_LOCAL_MEM_FENCE);                                                      \
        if (lane < count) {                                                                \
            float result = from[lane * GROUPS];                                            \
            for (uint i = 1; i < GROUPS; i++)                                              \
                result = combine(result, from[lane * GROUPS + i]);                         \
            to[lane] = result;                                                             \
        }                                                                                  \
    }                                                                                      \
    void block_##name(__local float *parts, __local float *groups, __local float *results, \
                      uint count)                                                          \
    {                                                                                      \
        combine_groups_##name(parts, groups, count *GROUPS);                               \
        combine_groups_##name(groups, results, count);                                     \
        barrier(CLK_LOCAL_MEM_FENCE);                                                      \
    }

#define ADD(a, b) ((a) + (b))
BLOCK_REDUCTION(max, fmax)
BLOCK_REDUCTION(sum, ADD)

float norm(float value, float low, float high)
{
    return (value - low) / (high - low + 1e-8f);
}

// The greatest of entropy, -entropy, contrast, -contrast and participation.
void ranges(__global const float *scores, uint patches, __local float *parts, __local float *groups,
            __local float *range)
{
    uint lane = (uint)get_local_id(0);
    float high0 = LOWEST, high1 = LOWEST, high2 = LOWEST, high3 = LOWEST;
    float high4 = LOWEST;
    for (uint i = lane; i < patches; i += ITEMS) {
        high0 = fmax(high0, scores[i]);
        high1 = fmax(high1, -scores[i]);
        high2 = fmax(high2, scores[patches + i]);
        high3 = fmax(high3, -scores[patches + i]);
        high4 = fmax(high4, scores[2u * patches + i]);
    }
    parts[lane] = high0;
    parts[ITEMS + lane] = high1;
    parts[2u * ITEMS + lane] = high2;
    parts[3u * ITEMS + lane] = high3;
    parts[4u * ITEMS + lane] = high4;
    block_max(parts, groups, range, 5u);
}

// The three scores of a patch as inputs of the balancer.
struct three {
    float prop, persp, part;
};

struct three three_of(__global const float *scores, uint i, uint patches,
                      __local const float *range)
{
    struct three three;
    three.prop = norm(scores[i], -range[1], range[0]);
    three.persp = norm(scores[patches + i], -range[3], range[2]);
    three.part = scores[2u * patches + i];
    return three;
}

// The balancer's three layers, from `z` to the three numbers before softmax.
void balancer(__global const float *weights, __local const float *z, __local float *first,
              __local float *second, __local float *shares)
{
    uint lane = (uint)get_local_id(0);
    if (lane < WIDTH) {
        float sum = weights[ARR_COC_PACK_BALANCER_0_BIAS + lane];
        for (uint i = 0; i < ARR_COC_STATISTICS; i++)
            sum = fma(weights[ARR_COC_PACK_BALANCER_0 + i * WIDTH + lane], z[i], sum);
        first[lane] = fmax(sum, 0.0f);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < WIDTH) {
        float sum = weights[ARR_COC_PACK_BALANCER_2_BIAS + lane];
        for (uint i = 0; i < WIDTH; i++)
            sum = fma(weights[ARR_COC_PACK_BALANCER_2 + i * WIDTH + lane], first[i], sum);
        second[lane] = fmax(sum, 0.0f);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < 3u) {
        float sum = weights[ARR_COC_PACK_BALANCER_4_BIAS + lane];
        for (uint i = 0; i < WIDTH; i++)
            sum = fma(weights[ARR_COC_PACK_BALANCER_4 + i * 3u + lane], second[i], sum);
        shares[lane] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void relevance(
    __global const float *weights, __global float *scores, __global float *balance,
    __global float *relevance_out, uint patches)
{
    __local float parts[5 * ITEMS], groups[5 * GROUPS];
    __local float range[5], means[3], squares[3], ends[2];
    __local float z[ARR_COC_STATISTICS], first[WIDTH], second[WIDTH], shares[3];
    uint lane = (uint)get_local_id(0);

    ranges(scores, patches, parts, groups, range);

    float sum0 = 0.0f, sum1 = 0.0f, sum2 = 0.0f;
    for (uint i = lane; i < patches; i += ITEMS) {
        struct three three = three_of(scores, i, patches, range);
        sum0 += three.prop;
        sum1 += three.persp;
        sum2 += three.part;
    }
    parts[lane] = sum0;
    parts[ITEMS + lane] = sum1;
    parts[2u * ITEMS + lane] = sum2;
    block_sum(parts, groups, means, 3u);

    // Deviations from the mean: a sum of squares less a square would cancel.
    float n = (float)patches;
    float mean0 = means[0] / n, mean1 = means[1] / n, mean2 = means[2] / n;
    sum0 = sum1 = sum2 = 0.0f;
    for (uint i = lane; i < patches; i += ITEMS) {
        struct three three = three_of(scores, i, patches, range);
        sum0 = fma(three.prop - mean0, three.prop - mean0, sum0);
        sum1 = fma(three.persp - mean1, three.persp - mean1, sum1);
        sum2 = fma(three.part - mean2, three.part - mean2, sum2);
    }
    parts[lane] = sum0;
    parts[ITEMS + lane] = sum1;
    parts[2u * ITEMS + lane] = sum2;
    block_sum(parts, groups, squares, 3u);

    if (lane == 0u) {
        float degrees = fmax(n - 1.0f, 1.0f);
        z[0] = mean0;
        z[1] = norm(range[0], -range[1], range[0]);
        z[2] = sqrt(squares[0] / degrees);
        z[3] = mean1;
        z[4] = norm(range[2], -range[3], range[2]);
        z[5] = sqrt(squares[1] / degrees);
        z[6] = mean2;
        z[7] = range[4];
        z[8] = sqrt(squares[2] / degrees);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    balancer(weights, z, first, second, shares);

    // Every work-item computes the same three weights itself.
    float top = fmax(shares[0], fmax(shares[1], shares[2]));
    float e0 = exp(shares[0] - top), e1 = exp(shares[1] - top), e2 = exp(shares[2] - top);
    float total = e0 + e1 + e2;
    float a0 = e0 / total, a1 = e1 / total, a2 = e2 / total;
    if (lane == 0u) {
        balance[0] = a0;
        balance[1] = a1;
        balance[2] = a2;
    }
    float high0 = LOWEST, high1 = LOWEST;
    for (uint i = lane; i < patches; i += ITEMS) {
        struct three three = three_of(scores, i, patches, range);
        float mixed = fma(a0, three.prop, fma(a1, three.persp, a2 * three.part));
        scores[i] = three.prop;
        scores[patches + i] = three.persp;
        relevance_out[i] = mixed;
        high0 = fmax(high0, mixed);
        high1 = fmax(high1, -mixed);
    }
    parts[lane] = high0;
    parts[ITEMS + lane] = high1;
    block_max(parts, groups, ends, 2u);
    for (uint i = lane; i < patches; i += ITEMS)
        relevance_out[i] = norm(relevance_out[i], -ends[1], ends[0]);
}

// Means of the channels that do not depend on the image, computed once.
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void position_means(
    __global const float *texture, __global float *position, uint size, uint grid, uint plane)
{
    __local float sums[4 * 64];
    uint lane = (uint)get_local_id(0);
    uint patch = (uint)get_group_id(0);
    uint side = size / grid;
    uint origin = 9u * plane + (patch / grid) * side * size + (patch % grid) * side;
    for (uint channel = 0; channel < 4u; channel++) {
        float sum = 0.0f;
        for (uint i = lane; i < side * side; i += 64u)
            sum += texture[origin + channel * plane + (i / side) * size + i % side];
        sums[channel * 64u + lane] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < 4u) {
        float sum = 0.0f;
        for (uint i = 0; i < 64u; i++)
            sum += sums[lane * 64u + i];
        position[lane * grid * grid + patch] = sum / (float)(side * side);
    }
}
