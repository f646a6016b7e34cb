// The product of two matrices of floats, row-major, of any size.
//
// A block makes a tile of 128 x 64. It walks along the factors 16 at a time. Their
// parts are double-buffered in local memory, so that the next ones arrive while
// these are multiplied, and one barrier per step is enough. The part of `a` is
// kept transposed, so that every work-item reads both factors four floats at a
// time. Elements past an edge are zero and never read from memory.

#include "kernels/matmul/tile.cl.h"

// The distance between rows of the transposed part: 4 more than a power of two,
// which halves the bank conflicts of its stores on a GPU, and still a whole number
// of vectors.
#define PITCH (MATMUL_ROWS + 4)

// Each work-item loads 16 floats of `a`, 8 rows apart, and 8 of `b`, 2 rows apart.
// Neighbouring work-items load neighbouring floats.
#define A_LOADS 16u
#define A_STEP 8u
#define B_LOADS 8u
#define B_STEP 2u

float element(__global const float *from, uint row, uint column, uint rows, uint columns)
{
    return row < rows && column < columns ? from[(size_t)row * columns + column] : 0.0f;
}

// `count` floats, `step` rows apart. `inside` is the same for a whole block, so the common case has no test.
void load(__global const float *restrict matrix, uint row, uint column, uint rows, uint columns,
          bool inside, uint count, uint step, float *out)
{
    if (inside) {
        __global const float *from = matrix + (size_t)row * columns + column;
#pragma unroll
        for (uint i = 0; i < count; i++)
            out[i] = from[(size_t)(step * i) * columns];
    } else {
#pragma unroll
        for (uint i = 0; i < count; i++)
            out[i] = element(matrix, row + step * i, column, rows, columns);
    }
}

void store(__local float *to, const float *from, uint count, uint step)
{
#pragma unroll
    for (uint i = 0; i < count; i++)
        to[step * i] = from[i];
}

void take(float4 low, float4 high, float *out)
{
    out[0] = low.x;
    out[1] = low.y;
    out[2] = low.z;
    out[3] = low.w;
    out[4] = high.x;
    out[5] = high.y;
    out[6] = high.z;
    out[7] = high.w;
}

// One step of 16: only fma(), in ascending order, so that the bits do not depend
// on the device.
void multiply(__local const float4 *a, __local const float4 *b, float sum[MATMUL_ITEM][MATMUL_ITEM])
{
#pragma unroll
    for (uint d = 0; d < MATMUL_DEPTH; d++) {
        float x[MATMUL_ITEM], y[MATMUL_ITEM];
        take(a[d * (PITCH / 4)], a[d * (PITCH / 4) + MATMUL_ROWS / 8], x);
        take(b[d * (MATMUL_COLUMNS / 4)], b[d * (MATMUL_COLUMNS / 4) + MATMUL_COLUMNS / 8], y);
#pragma unroll
        for (uint i = 0; i < MATMUL_ITEM; i++)
#pragma unroll
            for (uint j = 0; j < MATMUL_ITEM; j++)
                sum[i][j] = fma(x[i], y[j], sum[i][j]);
    }
}

// The row or column, within the tile, of number `i` of the eight that work-item
// `at` computes along this side.
uint place(uint at, uint i, uint side)
{
    return MATMUL_GROUP * at + i % MATMUL_GROUP + i / MATMUL_GROUP * (side / 2u);
}

// c = a b; a is m x k, b is k x n, c is m x n.
__kernel __attribute__((reqd_work_group_size(8, 16, 1))) void matmul(
    __global const float *restrict a, __global const float *restrict b, __global float *restrict c,
    uint m, uint n, uint k)
{
    __local float4 part_a[2 * MATMUL_DEPTH * PITCH / 4];
    __local float4 part_b[2 * MATMUL_DEPTH * MATMUL_COLUMNS / 4];
    uint tx = (uint)get_local_id(0), ty = (uint)get_local_id(1);
    uint lane = ty * MATMUL_BLOCK_X + tx;
    uint row = (uint)get_group_id(1) * MATMUL_ROWS;
    uint column = (uint)get_group_id(0) * MATMUL_COLUMNS;
    uint a_row = lane / MATMUL_DEPTH, a_column = lane % MATMUL_DEPTH;
    uint b_row = lane / MATMUL_COLUMNS, b_column = lane % MATMUL_COLUMNS;
    __local float *to_a = (__local float *)part_a + a_column * PITCH + a_row;
    __local float *to_b = (__local float *)part_b + b_row * MATMUL_COLUMNS + b_column;
    bool rows_inside = row + MATMUL_ROWS <= m, columns_inside = column + MATMUL_COLUMNS <= n;
    float sum[MATMUL_ITEM][MATMUL_ITEM];
    float next_a[A_LOADS], next_b[B_LOADS];

#pragma unroll
    for (uint i = 0; i < MATMUL_ITEM; i++)
#pragma unroll
        for (uint j = 0; j < MATMUL_ITEM; j++)
            sum[i][j] = 0.0f;
    load(a, row + a_row, a_column, m, k, rows_inside && MATMUL_DEPTH <= k, A_LOADS, A_STEP, next_a);
    load(b, b_row, column + b_column, k, n, columns_inside && MATMUL_DEPTH <= k, B_LOADS, B_STEP,
         next_b);
    store(to_a, next_a, A_LOADS, A_STEP);
    store(to_b, next_b, B_LOADS, B_STEP * MATMUL_COLUMNS);
    barrier(CLK_LOCAL_MEM_FENCE);

    uint which = 0;
    for (uint next = MATMUL_DEPTH; next < k + MATMUL_DEPTH; next += MATMUL_DEPTH) {
        if (next < k) {
            bool full = next + MATMUL_DEPTH <= k;
            load(a, row + a_row, next + a_column, m, k, rows_inside && full, A_LOADS, A_STEP,
                 next_a);
            load(b, next + b_row, column + b_column, k, n, columns_inside && full, B_LOADS, B_STEP,
                 next_b);
        }
        multiply(part_a + which * (MATMUL_DEPTH * PITCH / 4) + ty,
                 part_b + which * (MATMUL_DEPTH * MATMUL_COLUMNS / 4) + tx, sum);
        which = 1u - which;
        if (next < k) {
            store(to_a + which * MATMUL_DEPTH * PITCH, next_a, A_LOADS, A_STEP);
            store(to_b + which * MATMUL_DEPTH * MATMUL_COLUMNS, next_b, B_LOADS,
                  B_STEP * MATMUL_COLUMNS);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

#pragma unroll
    for (uint i = 0; i < MATMUL_ITEM; i++) {
        uint at_row = row + place(ty, i, MATMUL_ROWS);
#pragma unroll
        for (uint j = 0; j < MATMUL_ITEM; j++) {
            uint at_column = column + place(tx, j, MATMUL_COLUMNS);
            if (at_row < m && at_column < n)
                c[(size_t)at_row * n + at_column] = sum[i][j];
        }
    }
}
