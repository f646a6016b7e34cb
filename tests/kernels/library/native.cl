// out[0] is 1 where the device has the functions; then five results for each work-item.
__kernel void run(__global const uint *in, __global uint *out)
{
    size_t i = get_global_id(0);
    const float x = as_float(in[2 * i]), y = as_float(in[2 * i + 1]);
    __global float *to = (__global float *)(out + 1 + 5 * i);
    out[0] = 1;
    to[0] = native_exp(x);
    to[1] = native_log(y);
    to[2] = native_log2((float4)(1, 2, y, 3)).z;
    to[3] = native_log10(y);
    to[4] = native_powr(y, x);
}
