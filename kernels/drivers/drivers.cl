// Kernels that a driver is known to compile to something else.
// `weir doctor` runs them. Blocks are of one dimension.

// out[block] is the sum of the block's numbers; a block has a power of two of them.
__kernel void barrier_in_loop(__global const uint *in, __global uint *out, __local uint *values)
{
    const uint i = (uint)get_local_id(0);
    values[i] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = 1; step < get_local_size(0); step *= 2) {
        if (i % (2 * step) == 0)
            values[i] += values[i + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i == 0)
        out[get_group_id(0)] = values[0];
}

// The kernel compiler warns of a variable that every work-item writes, so it is written elsewhere.
static void set(__local uint *variable, uint value)
{
    *variable = value;
}

// out[block] is the block's last number, as its first work-item sees it.
__kernel void written_by_all(__global const uint *in, __global uint *out)
{
    __local uint last;
    set(&last, 0);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == get_local_size(0) - 1)
        set(&last, in[get_global_id(0)]);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0)
        out[get_group_id(0)] = last;
}

// The same, in words that every driver is known to understand.
__kernel void written_by_one(__global const uint *in, __global uint *out)
{
    __local uint last;
    if (get_local_id(0) == 0)
        last = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == get_local_size(0) - 1)
        last = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0)
        out[get_group_id(0)] = last;
}

__kernel void volatile_variable(__global const uint *in, __global uint *out)
{
    volatile __local uint last;
    last = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == get_local_size(0) - 1)
        last = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0)
        out[get_group_id(0)] = last;
}
