// Stage 3: the choice of the patches that get tokens, and the tokens.
//
// Patches get tokens in descending order of relevance. A patch's place in that order is
// the number of patches before it, and its first token the number of theirs: both are
// counted, so there is no sorting network and no walk over the order, and each patch is
// chosen by itself.

#include "kernels/arr_coc/layout.cl.h"

#define LANES 64u

// PARTS work-items count for one patch, each in its part of every RANK_TILE of patches.
#define PARTS 4u
#define RANK_TILE 1024u
#define COUNTERS (PARTS * LANES)

int side_of(float relevance)
{
    int side = ARR_COC_SIDE_MIN + (int)floor(fma(12.0f, relevance, 0.5f));
    return clamp(side, (int)ARR_COC_SIDE_MIN, (int)ARR_COC_SIDE_MAX);
}

// The largest side whose tokens fit, or 0 if that is too small.
uint side_that_fits(uint tokens)
{
    uint side = 0;
    for (uint s = ARR_COC_SIDE_MIN; s <= ARR_COC_SIDE_MAX; s++)
        side = s * s <= tokens ? s : side;
    return side;
}

// Takes the patch at `place` of the order, before which `used` tokens are taken, if it
// fits. The first that does not fit gets what is left, if that is enough; those after it
// find more used than the budget has. It tells the counts, or the last of the order does.
void take_patch(__global int *patches_out, __global int *counts, uint patch, uint place,
                uint used, uint side, uint patches, uint budget)
{
    if (used > budget)
        return;
    bool fits = side * side <= budget - used;
    if (!fits)
        side = side_that_fits(budget - used);
    if (side > 0u) {
        patches_out[3u * place] = (int)patch;
        patches_out[3u * place + 1u] = (int)side;
        patches_out[3u * place + 2u] = (int)used;
    }
    if (!fits || place + 1u == patches) {
        counts[0] = (int)(place + (side > 0u ? 1u : 0u));
        counts[1] = (int)(used + side * side);
    }
}

// Relevance is never negative, so its bits compare as its values do; unlike
// floats they also have an order for a NaN.
__kernel __attribute__((reqd_work_group_size(COUNTERS, 1, 1))) void allocate_tokens(
    __global const float *relevance, __global int *patches_out, __global int *counts,
    uint patches, uint budget)
{
    __local int values[RANK_TILE];
    __local uint areas[RANK_TILE];
    __local uint places[COUNTERS], tokens[COUNTERS];
    uint lane = (uint)get_local_id(0);
    uint index = (uint)get_group_id(0) * LANES + lane % LANES;
    uint first = lane / LANES * (RANK_TILE / PARTS);
    uint at = min(index, patches - 1u);
    int own = as_int(relevance[at]);
    uint place = 0, used = 0;
    for (uint start = 0; start < patches; start += RANK_TILE) {
        // Values past the last patch are less than any.
        for (uint i = lane; i < RANK_TILE; i += COUNTERS) {
            float value = relevance[min(start + i, patches - 1u)];
            uint side = (uint)side_of(value);
            values[i] = start + i < patches ? as_int(value) : INT_MIN;
            areas[i] = side * side;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 16
        for (uint i = first; i < first + RANK_TILE / PARTS; i++) {
            int value = values[i];
            bool is_before = value > own || (value == own && start + i < at);
            place += is_before ? 1u : 0u;
            used += is_before ? areas[i] : 0u;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    places[lane] = place;
    tokens[lane] = used;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < LANES && index < patches) {
        for (uint part = 1; part < PARTS; part++) {
            place += places[part * LANES + lane];
            used += tokens[part * LANES + lane];
        }
        take_patch(patches_out, counts, index, place, used,
                   (uint)side_of(relevance[index]), patches, budget);
    }
}

// How much of pixel `pixel` is inside cell `cell` along one axis. In units of
// 1/side of a pixel a cell spans `pixels` and a pixel spans `side`, so all
// numbers are whole.
uint coverage(uint pixel, uint cell, uint pixels, uint side)
{
    uint first = max(pixel * side, cell * pixels);
    uint end = min((pixel + 1u) * side, (cell + 1u) * pixels);
    return end > first ? end - first : 0u;
}

// One block for each taken patch and channel; a work-item averages every
// CELLS-th cell. A cell is a chain of loads and sums, so a GPU wants many at once.
#define CELLS 256u

__kernel __attribute__((reqd_work_group_size(CELLS, 1, 1))) void compress_tokens(
    __global const float *texture, __global const int *patches, __global const int *counts,
    __global float *tokens, uint size, uint grid, uint plane)
{
    uint which = (uint)get_group_id(0), channel = (uint)get_group_id(1);
    if ((int)which >= counts[0])
        return;
    uint patch = (uint)patches[3u * which];
    uint side = (uint)patches[3u * which + 1u];
    uint token = (uint)patches[3u * which + 2u];
    uint pixels = size / grid;
    __global const float *in =
        texture + channel * plane + (patch / grid) * pixels * size + (patch % grid) * pixels;
    for (uint cell = (uint)get_local_id(0); cell < side * side; cell += CELLS) {
        uint cell_y = cell / side, cell_x = cell % side;
        uint y_end = ((cell_y + 1u) * pixels + side - 1u) / side;
        uint x_end = ((cell_x + 1u) * pixels + side - 1u) / side;
        float sum = 0.0f;
        // A cell has few pixels, so loops that are not unrolled are the shorter way.
#pragma unroll 1
        for (uint y = cell_y * pixels / side; y < y_end; y++) {
            float row_sum = 0.0f;
#pragma unroll 1
            for (uint x = cell_x * pixels / side; x < x_end; x++)
                row_sum = fma(in[y * size + x], (float)coverage(x, cell_x, pixels, side), row_sum);
            sum = fma(row_sum, (float)coverage(y, cell_y, pixels, side), sum);
        }
        tokens[(token + cell) * ARR_COC_CHANNELS + channel] = sum / ((float)pixels * (float)pixels);
    }
}
