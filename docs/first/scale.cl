__kernel void scale(__global const float *in, __global float *out, float factor)
{
    uint i = (uint)get_global_id(0);
    out[i] = in[i] * factor;
}
