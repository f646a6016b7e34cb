__kernel void fill(__global const int *in, __global int *out, __local int *tile, int add)
{
    int i = get_global_id(0), n = get_local_size(0);
    tile[get_local_id(0)] = in[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[i] = tile[n - 1 - get_local_id(0)] + add * SCALE;
}
