float clamped(float x)
{
    return clamp(x, 0.0f, 1.0f);
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void tone(__global const float *in,
                                                                   __global float *out, float gain,
                                                                   uint n)
{
    uint i = (uint)get_global_id(0);
    if (i < n)
        out[i] = clamped(gain * in[i]);
}
