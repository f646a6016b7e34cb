// Kernels for the conformance suite: each tests one feature, and its result is
// exact on every device. See README.md for the arguments.

__kernel void vector_add(__global const float *a, __global const float *b, __global float *sum,
                         uint n)
{
    uint i = (uint)get_global_id(0);
    if (i < n)
        sum[i] = a[i] + b[i];
}

__kernel void scale(__global const float *in, __global float *out, float factor, uint n)
{
    uint i = (uint)get_global_id(0);
    if (i < n)
        out[i] = in[i] * factor;
}

__kernel void saxpy(__global float *y, __global const float *x, float a, uint n)
{
    uint i = (uint)get_global_id(0);
    if (i < n)
        y[i] = fma(a, x[i], y[i]);
}

__kernel void iota(__global uint *out, uint first, uint n)
{
    uint i = (uint)get_global_id(0);
    if (i < n)
        out[i] = first + i;
}

__kernel void increment(__global uint *values, uint by, uint n)
{
    uint i = (uint)get_global_id(0);
    if (i < n)
        values[i] += by;
}

// Each step needs the one before it, and the last is stored, so that no compiler
// can shorten the loop.
__kernel void spin(__global uint *result, uint seed, ulong steps)
{
    uint i = (uint)get_global_id(0);
    uint x = seed + i;
    for (ulong step = 0; step < steps; step++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        x += 0x9e3779b9u;
    }
    result[i] = x;
}

// One sum a block, in a tree over local memory that the launch sizes.
__kernel void block_sum(__global const uint *in, __global uint *sums, __local uint *scratch, uint n)
{
    uint i = (uint)get_global_id(0);
    uint lane = (uint)get_local_id(0);
    scratch[lane] = i < n ? in[i] : 0u;
    for (uint half_size = (uint)get_local_size(0) / 2u; half_size > 0u; half_size /= 2u) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < half_size)
            scratch[lane] += scratch[lane + half_size];
    }
    if (lane == 0u)
        sums[get_group_id(0)] = scratch[0];
}

// Two local arrays that must not overlap: the block's values backwards, and each
// value's left neighbour.
__kernel void two_locals(__global const uint *in, __global uint *out, __local uint *values,
                         __local ushort *lanes)
{
    uint lane = (uint)get_local_id(0);
    uint size = (uint)get_local_size(0);
    values[lane] = in[get_global_id(0)];
    lanes[lane] = (ushort)(size - 1u - lane);
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = values[lanes[lane]];
}

// A helper with barriers in it, called twice: each block's sum of the elements
// and of their squares.
uint sum_of_block(__local uint *scratch, uint value)
{
    uint lane = (uint)get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[lane] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint sum = 0;
    for (uint i = 0; i < (uint)get_local_size(0); i++)
        sum += scratch[i];
    return sum;
}

__kernel void barrier_in_helper(__global const uint *in, __global uint *sums, __local uint *scratch)
{
    uint value = in[get_global_id(0)];
    uint sum = sum_of_block(scratch, value);
    uint squares = sum_of_block(scratch, value * value);
    if (get_local_id(0) == 0) {
        sums[2u * get_group_id(0)] = sum;
        sums[2u * get_group_id(0) + 1u] = squares;
    }
}

struct conformance_values {
    uint a;
    float b;
    ulong c;
};

// Values of every size that an argument can have.
__kernel void store_values(__global ulong *out, uchar u8, ushort u16, uint u32, ulong u64, char i8,
                           short i16, int i32, long i64, float f32,
                           struct conformance_values values)
{
    if (get_global_id(0) != 0)
        return;
    out[0] = u8;
    out[1] = u16;
    out[2] = u32;
    out[3] = u64;
    out[4] = (ulong)i8;
    out[5] = (ulong)i16;
    out[6] = (ulong)i32;
    out[7] = (ulong)i64;
    out[8] = as_uint(f32);
    out[9] = values.a;
    out[10] = as_uint(values.b);
    out[11] = values.c;
}

__kernel __attribute__((reqd_work_group_size(8, 4, 2))) void required_block(__global uint *out)
{
    uint lane = (uint)get_local_id(0) + 8u * ((uint)get_local_id(1) + 4u * (uint)get_local_id(2));
    uint block = (uint)get_group_id(0) +
                 (uint)get_num_groups(0) *
                     ((uint)get_group_id(1) + (uint)get_num_groups(1) * (uint)get_group_id(2));
    out[64u * block + lane] = 1000u * block + lane;
}

// The geometry of a launch as each work-item sees it: 12 numbers, in the order
// of the flattened global index. Axes are constants, since PoCL 7.1 cannot load get_group_id()
// of an axis that a loop counts.
__kernel void geometry(__global uint *out)
{
    size_t at = get_global_id(0) +
                get_global_size(0) * (get_global_id(1) + get_global_size(1) * get_global_id(2));
#define PUT_AXIS(axis)                                      \
    out[12u * at + axis] = (uint)get_global_id(axis);       \
    out[12u * at + 3u + axis] = (uint)get_group_id(axis);   \
    out[12u * at + 6u + axis] = (uint)get_local_size(axis); \
    out[12u * at + 9u + axis] = (uint)get_num_groups(axis)
    PUT_AXIS(0);
    PUT_AXIS(1);
    PUT_AXIS(2);
#undef PUT_AXIS
}

uchar pattern(uint index)
{
    return (uchar)(index * 31u + (index >> 8) * 7u + 11u);
}

// Writes the pattern from its byte `first` on; check_pattern() counts the bytes
// of `in` that do not continue it there. Together they show where a copy's bytes
// came from.
__kernel void fill_pattern(__global uchar *out, uint first, uint n)
{
    uint i = (uint)get_global_id(0);
    if (i < n)
        out[i] = pattern(first + i);
}

__kernel void check_pattern(__global const uchar *in, __global uint *mismatches, uint first, uint n)
{
    uint i = (uint)get_global_id(0);
    if (i < n && in[i] != pattern(first + i))
        atomic_add(mismatches, 1u);
}

// fma() rounds once on every device. Whether a * b + c does is the driver's
// choice (docs/kernels.md).
__kernel void fused(__global const float *in, __global float *out)
{
    if (get_global_id(0) == 0)
        out[0] = fma(in[0], in[1], in[2]);
}
