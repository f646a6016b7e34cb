// out[0] is 1 where the device has the functions; then three results for each work-item.
__kernel void run(__global const uint *in, __global uint *out)
{
    size_t i = (get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) +
               get_global_id(0);
    out[0] = 1;
    out[1 + 3 * i] = (uint)get_global_offset(0) + (uint)get_global_offset(2);
    out[2 + 3 * i] = get_work_dim();
    out[3 + 3 * i] = in[i];
}
