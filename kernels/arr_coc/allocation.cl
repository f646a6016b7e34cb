// Stage 3: the choice of the patches that get tokens, and the tokens.
//
// A patch's rank in descending order is the number of patches before it, which
// is counted: no sorting network, any number of patches. A budget buys at most
// B/64 patches, so the walk over the order is short and one work-item does it.

#include "kernels/arr_coc/layout.cl.h"

#define LANES 64u

// PARTS work-items count for one patch, each in its part of every RANK_TILE of patches.
#define PARTS 4u
#define RANK_TILE 1024u
#define COUNTERS (PARTS * LANES)

// Relevance is never negative, so its bits compare as its values do; unlike
// floats they also have an order for a NaN.
__kernel __attribute__((reqd_work_group_size(COUNTERS, 1, 1))) void rank_patches(
    __global const float *relevance, __global int *order, uint patches)
{
    __local int tile[RANK_TILE];
    __local uint counts[COUNTERS];
    uint lane = (uint)get_local_id(0);
    uint index = (uint)get_group_id(0) * LANES + lane % LANES;
    uint first = lane / LANES * (RANK_TILE / PARTS);
    uint at = min(index, patches - 1u);
    int own = as_int(relevance[at]);
    uint rank = 0;
    for (uint start = 0; start < patches; start += RANK_TILE) {
        // Values past the last patch are less than any.
        for (uint i = lane; i < RANK_TILE; i += COUNTERS)
            tile[i] = start + i < patches ? as_int(relevance[start + i]) : INT_MIN;
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 16
        for (uint i = first; i < first + RANK_TILE / PARTS; i++) {
            int value = tile[i];
            rank += value > own || (value == own && start + i < at) ? 1u : 0u;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    counts[lane] = rank;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < LANES && index < patches) {
        for (uint part = 1; part < PARTS; part++)
            rank += counts[part * LANES + lane];
        order[rank] = (int)index;
    }
}

int side_of(float relevance)
{
    int side = ARR_COC_SIDE_MIN + (int)floor(fma(12.0f, relevance, 0.5f));
    return clamp(side, (int)ARR_COC_SIDE_MIN, (int)ARR_COC_SIDE_MAX);
}

// The largest side whose tokens fit, or 0 if that is too small.
int side_that_fits(int tokens)
{
    int side = 0;
    for (int s = ARR_COC_SIDE_MIN; s <= ARR_COC_SIDE_MAX; s++)
        side = s * s <= tokens ? s : side;
    return side;
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void allocate_tokens(
    __global const float *relevance, __global const int *order, __global int *patches_out,
    __global int *counts, uint patches, uint budget)
{
    __local int sides[LANES], indices[LANES];
    __local int used, taken, ended;
    uint lane = (uint)get_local_id(0);
    if (lane == 0u) {
        used = 0;
        taken = 0;
        ended = 0;
    }
    // The longest walk: K patches, and the one that does not fit.
    uint longest = min(patches, budget / 64u + 1u);
    for (uint start = 0; start < longest; start += LANES) {
        uint place = min(start + lane, patches - 1u);
        indices[lane] = order[place];
        sides[lane] = side_of(relevance[order[place]]);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane == 0u) {
            for (uint i = 0; i < min(LANES, longest - start) && !ended; i++) {
                int left = (int)budget - used;
                int side = sides[i];
                if (side * side > left) {
                    ended = 1;
                    side = side_that_fits(left);
                }
                if (side > 0) {
                    patches_out[3 * taken] = indices[i];
                    patches_out[3 * taken + 1] = side;
                    patches_out[3 * taken + 2] = used;
                    used += side * side;
                    taken++;
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0u) {
        counts[0] = taken;
        counts[1] = used;
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
