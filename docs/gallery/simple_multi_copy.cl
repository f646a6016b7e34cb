__kernel void add(__global const int *in, __global int *out, int value)
{
    uint i = (uint)get_global_id(0);
    out[i] = in[i] + value;
}
