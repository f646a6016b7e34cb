// out[0] is 1 where the device has the functions; then three results for each work-item.
__kernel void run(__global const uint *in, __global uint *out)
{
    size_t i = (get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) +
               get_global_id(0);
#if __OPENCL_C_VERSION__ >= 200
    out[0] = 1;
    out[1 + 3 * i] = (uint)get_global_linear_id();
    out[2 + 3 * i] = (uint)get_local_linear_id();
    out[3 + 3 * i] = (uint)get_enqueued_local_size(1);
    work_group_barrier(CLK_GLOBAL_MEM_FENCE);
#else
    out[0] = in[i] & 0;
#endif
}
