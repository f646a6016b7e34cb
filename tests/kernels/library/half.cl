// out[0] is 1 where the device has the functions; then HALF_RESULTS results for each work-item, of three
// halves from `in` and one float that lies between two halves.
#define HALF_RESULTS 22

#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

half half_of(uint bits)
{
    return as_half((ushort)bits);
}

uint bits_of(half value)
{
    return as_ushort(value);
}
#endif

__kernel void run(__global const uint *in, __global uint *out)
{
    size_t i = get_global_id(0);
#ifdef cl_khr_fp16
    const half x = half_of(in[4 * i]), y = half_of(in[4 * i + 1]), z = half_of(in[4 * i + 2]);
    const float f = as_float(in[4 * i + 3]);
    __global uint *to = out + 1 + HALF_RESULTS * i;
    out[0] = 1;
    to[0] = bits_of(x + y);
    to[1] = bits_of(x * y);
    to[2] = bits_of(fma(x, y, z));
    to[3] = bits_of(exp(x));
    to[4] = bits_of(sqrt(x));
    to[5] = bits_of(fabs(x));
    to[6] = bits_of(nextafter(x, y));
    to[7] = bits_of(fmod(x, y));
    to[8] = as_uint(convert_float(x));
    to[9] = as_uint(convert_int_sat_rte(x));
    to[10] = convert_uchar_sat_rtz(x);
    to[11] = bits_of(convert_half(f));
    to[12] = bits_of(convert_half_rtz(f));
    to[13] = bits_of(convert_half_rtp(f));
    to[14] = bits_of(convert_half_rtn(f));
    to[15] = bits_of(convert_half4_rtn((float4)(0, 1, f, 2)).z);
    to[16] = (uint)isnormal(x);
    to[17] = (uint)(int)isless((half2)(x, y), (half2)(y, x)).x;
    to[18] = bits_of(select((half2)(x, y), (half2)(z, z), (short2)(1, -1)).y);
    to[19] = bits_of(convert_half_rtp((int)in[4 * i + 3]));
    to[20] = bits_of(fmax((half3)(x, y, z), y).x);
    to[21] = (uint)(int)isinf((half2)(y, x)).y;
#else
    out[0] = in[i] & 0;
#endif
}
