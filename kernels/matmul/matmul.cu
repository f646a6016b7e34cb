// The product of two matrices of floats on tensor cores, of sm_80 and later. The launch, the
// parameters and the tiles are those of matmul.cl.
//
// Tensor cores multiply numbers of 11 bits (TF32). A float is cut into two of them, "big" and
// "small", and a product of floats is big * big + (big * small + small * big); what is left out is
// below 2^-19 of it. The small products are summed on their own, so that the sums lose to rounding
// what one product in TF32 would: README.md has the bound.
//
// Of a block's four warps each makes 64 x 32. Parts of the factors, 16 deep, are copied to shared
// memory while earlier ones are multiplied; there is one barrier a step. The distances between rows there
// keep the warps' reads free of bank conflicts.
#include "kernels/matmul/tensor.cuh"
#include "kernels/matmul/tile.cl.h"

enum {
    STAGES = 3,
    A_PITCH = MATMUL_DEPTH + 4,
    B_PITCH = MATMUL_COLUMNS + 8,
    WARP_ROWS = 64, // of the product, by a warp
    WARP_COLUMNS = 32,
    ROW_TILES = WARP_ROWS / 16,
    COLUMN_TILES = WARP_COLUMNS / 8,
    STEP = 8 // the depth of a tensor instruction
};

struct __align__(16) stage
{
    float a[MATMUL_ROWS * A_PITCH];
    float b[MATMUL_DEPTH * B_PITCH];
};

// A matrix of the product, and where the block's part of it begins.
struct factor {
    const float *from;
    unsigned rows, columns;
};

struct sums {
    float big[ROW_TILES][COLUMN_TILES][4];
    float small[ROW_TILES][COLUMN_TILES][4];
};

// Copies a part of HEIGHT x WIDTH at (row, column), of which what is past an edge is zeros. VECTORS: rows
// begin at multiples of 16 bytes, so four neighbours are in the matrix or none is.
template <bool VECTORS, unsigned HEIGHT, unsigned WIDTH, unsigned PITCH>
static __device__ __forceinline__ void copy_part(float *to, const factor &factor, unsigned row,
                                                 unsigned column, unsigned thread)
{
    const unsigned each = VECTORS ? 4 : 1, across = WIDTH / each, down = MATMUL_ITEMS / across;
    const unsigned y = thread / across, x = thread % across * each;
    const float *from = factor.from + (size_t)(row + y) * factor.columns + column + x;
#pragma unroll
    for (unsigned i = 0; i < HEIGHT / down; i++) {
        const bool there = row + y + i * down < factor.rows && column + x < factor.columns;
        float *place = to + (y + i * down) * PITCH + x;
        if (VECTORS)
            copy_16(place, there ? from : factor.from, there);
        else
            copy_4(place, there ? from : factor.from, there);
        from += (size_t)down * factor.columns;
    }
}

template <bool VECTORS>
static __device__ __forceinline__ void copy_stage(stage *to, const factor &a, const factor &b,
                                                  unsigned row, unsigned column, unsigned depth,
                                                  unsigned thread)
{
    copy_part<VECTORS, MATMUL_ROWS, MATMUL_DEPTH, A_PITCH>(to->a, a, row, depth, thread);
    copy_part<VECTORS, MATMUL_DEPTH, MATMUL_COLUMNS, B_PITCH>(to->b, b, depth, column, thread);
    copies_end();
}

// The warp's parts of the factors in a tensor instruction's depth, for a lane.
struct fragments {
    unsigned a_big[ROW_TILES][4], a_small[ROW_TILES][4];
    unsigned b_big[COLUMN_TILES][2], b_small[COLUMN_TILES][2];
};

// Cuts without rounding, so that the largest floats stay finite.
static __device__ __forceinline__ void cut(unsigned value, unsigned &big, unsigned &small)
{
    const unsigned mask = 0xffffe000u;
    big = value & mask;
    small = __float_as_uint(__uint_as_float(value) - __uint_as_float(big)) & mask;
}

static __device__ __forceinline__ void load_a(const float *part, unsigned big[ROW_TILES][4],
                                              unsigned small[ROW_TILES][4])
{
#pragma unroll
    for (unsigned i = 0; i < ROW_TILES; i++) {
        unsigned values[4];
        tensor_load(values, part + 16 * i * A_PITCH);
#pragma unroll
        for (unsigned r = 0; r < 4; r++)
            cut(values[r], big[i][r], small[i][r]);
    }
}

static __device__ __forceinline__ void load_b(const float *part, unsigned big[COLUMN_TILES][2],
                                              unsigned small[COLUMN_TILES][2])
{
#pragma unroll
    for (unsigned j = 0; j < COLUMN_TILES; j++)
#pragma unroll
        for (unsigned r = 0; r < 2; r++)
            cut(__float_as_uint(part[4 * r * B_PITCH + 8 * j]), big[j][r], small[j][r]);
}

// An instruction waits for the one before it that adds to the same sum, so all tiles come between.
static __device__ __forceinline__ void multiply_tiles(float sums[ROW_TILES][COLUMN_TILES][4],
                                                      const unsigned a[ROW_TILES][4],
                                                      const unsigned b[COLUMN_TILES][2])
{
#pragma unroll
    for (unsigned i = 0; i < ROW_TILES; i++)
#pragma unroll
        for (unsigned j = 0; j < COLUMN_TILES; j++)
            tensor_multiply(sums[i][j], a[i], b[j]);
}

static __device__ __forceinline__ void load(const float *a, const float *b, fragments &out)
{
    load_a(a, out.a_big, out.a_small);
    load_b(b, out.b_big, out.b_small);
}

static __device__ __forceinline__ void multiply(const fragments &of, sums &sums)
{
    multiply_tiles(sums.big, of.a_big, of.b_big);
    multiply_tiles(sums.small, of.a_small, of.b_big);
    multiply_tiles(sums.small, of.a_big, of.b_small);
}

// Two neighbours of a row, of which the second may be past the edge.
template <bool VECTORS>
static __device__ __forceinline__ void store(float *c, unsigned row, unsigned column, unsigned m,
                                             unsigned n, float first, float second)
{
    float *to = c + (size_t)row * n + column;
    if (row >= m || column >= n)
        return;
    if (VECTORS) {
        *(float2 *)to = make_float2(first, second);
        return;
    }
    to[0] = first;
    if (column + 1 < n)
        to[1] = second;
}

template <bool VECTORS>
static __device__ __forceinline__ void store_sums(const sums &sums, float *c, unsigned row,
                                                  unsigned column, unsigned m, unsigned n)
{
#pragma unroll
    for (unsigned i = 0; i < ROW_TILES; i++)
#pragma unroll
        for (unsigned j = 0; j < COLUMN_TILES; j++) {
            const float *big = sums.big[i][j], *small = sums.small[i][j];
            store<VECTORS>(c, row + 16 * i, column + 8 * j, m, n, big[0] + small[0],
                           big[1] + small[1]);
            store<VECTORS>(c, row + 16 * i + 8, column + 8 * j, m, n, big[2] + small[2],
                           big[3] + small[3]);
        }
}

template <bool VECTORS>
static __device__ __forceinline__ void product(stage *stages, const factor &a, const factor &b,
                                               float *c)
{
    const unsigned thread = threadIdx.y * MATMUL_BLOCK_X + threadIdx.x;
    const unsigned lane = thread % 32, warp = thread / 32;
    const unsigned row = blockIdx.y * MATMUL_ROWS, column = blockIdx.x * MATMUL_COLUMNS;
    const unsigned warp_row = warp / 2 * WARP_ROWS, warp_column = warp % 2 * WARP_COLUMNS;
    const unsigned a_at = (warp_row + lane % 16) * A_PITCH + lane / 16 * 4;
    const unsigned b_at = lane % 4 * B_PITCH + warp_column + lane / 4;
    const unsigned steps = (a.columns + MATMUL_DEPTH - 1) / MATMUL_DEPTH;
    sums sums = {};

    for (unsigned i = 0; i + 1 < STAGES; i++)
        copy_stage<VECTORS>(&stages[i], a, b, row, column, i * MATMUL_DEPTH, thread);
    for (unsigned step = 0; step < steps; step++) {
        // This step's part is there, for all threads; and none reads the oldest one any more.
        copies_wait<STAGES - 2>();
        __syncthreads();
        const unsigned next = step + STAGES - 1;
        const stage *now = &stages[step % STAGES];
        fragments part;
        load(now->a + a_at, now->b + b_at, part);
        // Past the last step it copies zeros that nothing reads: without a branch the compiler can
        // place the copies between the products.
        copy_stage<VECTORS>(&stages[next % STAGES], a, b, row, column, next * MATMUL_DEPTH, thread);
        multiply(part, sums);
#pragma unroll
        for (unsigned depth = STEP; depth < MATMUL_DEPTH; depth += STEP) {
            load(now->a + a_at + depth, now->b + b_at + depth * B_PITCH, part);
            multiply(part, sums);
        }
    }
    // None of them may come after the block.
    copies_wait<0>();
    store_sums<VECTORS>(sums, c, row + warp_row + lane / 4, column + warp_column + lane % 4 * 2,
                        a.rows, b.columns);
}

// c = a b; a is m x k, b is k x n, c is m x n.
extern "C" __global__ void __launch_bounds__(MATMUL_ITEMS)
    matmul(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
           unsigned m, unsigned n, unsigned k)
{
    __shared__ stage stages[STAGES];
    const factor left = {a, m, k}, right = {b, k, n};
    const size_t places = (size_t)a | (size_t)b | (size_t)c;
    if (places % 16 == 0 && n % 4 == 0 && k % 4 == 0)
        product<true>(stages, left, right, c);
    else
        product<false>(stages, left, right, c);
}
