// Each block writes its sum; the number of its work-items is a power of two.
__kernel void sum(__global const uint *in, __global uint *out, uint count, __local uint *scratch)
{
    uint t = (uint)get_local_id(0);
    uint mine = 0;
    for (uint i = (uint)get_global_id(0); i < count; i += (uint)get_global_size(0))
        mine += in[i];
    scratch[t] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = (uint)get_local_size(0) / 2; step > 0; step /= 2) {
        if (t < step)
            scratch[t] += scratch[t + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (t == 0)
        out[get_group_id(0)] = scratch[0];
}
