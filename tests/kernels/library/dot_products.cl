// out[0] is 1 where the device has the functions; then ten results for each work-item.
__kernel void run(__global const uint *in, __global uint *out)
{
    size_t i = get_global_id(0);
#ifdef __opencl_c_integer_dot_product_input_4x8bit_packed
    const uint x = in[3 * i], y = in[3 * i + 1], sum = in[3 * i + 2];
    __global uint *to = out + 1 + 10 * i;
    out[0] = 1;
    to[0] = dot_4x8packed_uu_uint(x, y);
    to[1] = (uint)dot_4x8packed_ss_int(x, y);
    to[2] = (uint)dot_4x8packed_us_int(x, y);
    to[3] = (uint)dot_4x8packed_su_int(x, y);
    to[4] = dot_acc_sat_4x8packed_uu_uint(x, y, sum);
    to[5] = (uint)dot_acc_sat_4x8packed_ss_int(x, y, (int)sum);
    to[6] = (uint)dot_acc_sat_4x8packed_us_int(x, y, (int)sum);
    to[7] = (uint)dot_acc_sat_4x8packed_su_int(x, y, (int)sum);
    to[8] = (uint)dot(as_uchar4(x), as_char4(y));
    to[9] = (uint)dot_acc_sat(as_char4(x), as_char4(y), (int)sum);
#else
    out[0] = in[i] & 0;
#endif
}
