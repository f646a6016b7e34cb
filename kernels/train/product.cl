// The products of a network's passes: of any size, with either factor stored as its
// transpose, in parts along the depth where the result alone would give too few blocks.

#include "kernels/train/element.cl.h"
#include "kernels/train/tile.cl.h"

// Between the rows of a tile in local memory: apart from a power of two, which would put
// the stores of a column into one bank.
#define PITCH (TRAIN_TILE + 4)

// How the work-items of a block take a tile: work-item `lane` takes TRAIN_ITEM elements.
struct lane {
    uint line, depth;           // its first element in the tile
    uint next_line, next_depth; // to the next one
    size_t lines, depths;       // between lines, and between depths, in memory
};

// Neighbouring work-items read neighbouring elements. A line is a row of the first factor, or a column of
// the second one; in memory a matrix is [lines, depths], or [depths, lines] if it is `turned`.
struct lane lane_of(uint lane, bool turned, uint lines, uint depths)
{
    struct lane own;
    own.line = turned ? lane % TRAIN_TILE : lane / TRAIN_DEPTH;
    own.depth = turned ? lane / TRAIN_TILE : lane % TRAIN_DEPTH;
    own.next_line = turned ? 0 : TRAIN_TILE / TRAIN_ITEM;
    own.next_depth = turned ? TRAIN_ITEM : 0;
    own.lines = turned ? 1 : depths;
    own.depths = turned ? lines : 1;
    return own;
}

// Into [depth, line], with zeros outside the matrix. Without an `if` for the whole block, on which PoCL 5.0 ends:
// docs/opencl-drivers.md.
void take(__local float *tile, __global const element *restrict from, struct lane own, uint line,
          uint depth, uint lines, uint depth_end)
{
#pragma unroll
    for (uint k = 0; k < TRAIN_ITEM; k++) {
        uint i = own.line + k * own.next_line, d = own.depth + k * own.next_depth;
        bool inside = line + i < lines && depth + d < depth_end;
        tile[d * PITCH + i] =
            inside ? wide(from[(line + i) * own.lines + (depth + d) * own.depths]) : 0.0f;
    }
}

// c = a b, or c + a b with `add`; a is m x k, b is k x n, c is m x n. With more than one layer of
// the grid part z takes `span` of the depth from z * span on, and has a result of its own.
__kernel __attribute__((reqd_work_group_size(TRAIN_BLOCK, TRAIN_BLOCK, 1))) void product(
    __global const element *restrict a, __global const element *restrict b, __global float *c,
    uint m, uint n, uint k, uint span, uint turned, uint add)
{
    __local float part_a[TRAIN_DEPTH * PITCH];
    __local float part_b[TRAIN_DEPTH * PITCH];
    uint tx = (uint)get_local_id(0), ty = (uint)get_local_id(1);
    uint lane = ty * TRAIN_BLOCK + tx;
    uint row = (uint)get_group_id(1) * TRAIN_TILE;
    uint column = (uint)get_group_id(0) * TRAIN_TILE;
    uint begin = (uint)get_group_id(2) * span;
    uint end = min(k, begin + span);
    struct lane lane_a = lane_of(lane, turned & TRAIN_TURNED_A, m, k);
    struct lane lane_b = lane_of(lane, !(turned & TRAIN_TURNED_B), n, k);
    float sum[TRAIN_ITEM][TRAIN_ITEM];

#pragma unroll
    for (uint i = 0; i < TRAIN_ITEM; i++)
#pragma unroll
        for (uint j = 0; j < TRAIN_ITEM; j++)
            sum[i][j] = 0.0f;
    for (uint depth = begin; depth < end; depth += TRAIN_DEPTH) {
        take(part_a, a, lane_a, row, depth, m, end);
        take(part_b, b, lane_b, column, depth, n, end);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint d = 0; d < TRAIN_DEPTH; d++)
#pragma unroll
            for (uint i = 0; i < TRAIN_ITEM; i++)
#pragma unroll
                for (uint j = 0; j < TRAIN_ITEM; j++)
                    sum[i][j] = fma(part_a[d * PITCH + ty + i * TRAIN_BLOCK],
                                    part_b[d * PITCH + tx + j * TRAIN_BLOCK], sum[i][j]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    c += (size_t)get_group_id(2) * m * n;
#pragma unroll
    for (uint i = 0; i < TRAIN_ITEM; i++)
#pragma unroll
        for (uint j = 0; j < TRAIN_ITEM; j++) {
            uint at_row = row + ty + i * TRAIN_BLOCK, at_column = column + tx + j * TRAIN_BLOCK;
            if (at_row < m && at_column < n) {
                size_t at = (size_t)at_row * n + at_column;
                c[at] = add ? c[at] + sum[i][j] : sum[i][j];
            }
        }
}

// out = the sum of the parts, each of `count` numbers, or out + it with `add`.
__kernel void sum_parts(__global const float *restrict parts, __global float *restrict out,
                        uint count, uint part_count, uint add)
{
    uint i = (uint)get_global_id(0);
    if (i >= count)
        return;
    float sum = parts[i];
    for (uint part = 1; part < part_count; part++)
        sum += parts[(size_t)part * count + i];
    out[i] = add ? out[i] + sum : sum;
}

// The sums of the columns of `values` [rows, columns]. Row y of the grid takes `span` rows from
// y * span on, and has a result of its own.
__kernel __attribute__((reqd_work_group_size(TRAIN_SUM_COLUMNS, TRAIN_SUM_ROWS, 1))) void
column_sums(__global const element *restrict values, __global float *out, uint rows, uint columns,
            uint span, uint add)
{
    __local float parts[TRAIN_SUM_ROWS][TRAIN_SUM_COLUMNS];
    uint tx = (uint)get_local_id(0), ty = (uint)get_local_id(1);
    uint column = (uint)get_group_id(0) * TRAIN_SUM_COLUMNS + tx;
    uint begin = (uint)get_group_id(1) * span;
    uint end = min(rows, begin + span);
    float sum = 0.0f;

    for (uint row = begin + ty; row < end && column < columns; row += TRAIN_SUM_ROWS)
        sum += wide(values[(size_t)row * columns + column]);
    parts[ty][tx] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (ty > 0 || column >= columns)
        return;
    for (uint i = 1; i < TRAIN_SUM_ROWS; i++)
        sum += parts[i][tx];
    out += (size_t)get_group_id(1) * columns;
    out[column] = add ? out[column] + sum : sum;
}
