// out[0] is 1 where the device has the functions; then RESULTS results for each work-item.
#define RESULTS 13

__kernel void run(__global const uint *in, __global uint *out)
{
    size_t i = get_group_id(0) * get_local_size(0) * get_local_size(1) * get_local_size(2) +
               (get_local_id(2) * get_local_size(1) + get_local_id(1)) * get_local_size(0) +
               get_local_id(0);
#ifdef __opencl_c_work_group_collective_functions
    const int v = (int)in[i];
    __global uint *to = out + 1 + RESULTS * i;
    out[0] = 1;
    to[0] = (uint)work_group_all(v > 0);
    to[1] = (uint)work_group_all(v != 7);
    to[2] = (uint)work_group_any(v == 7);
    to[3] = (uint)work_group_broadcast(v, 3, 2, 1);
    to[4] = as_uint(work_group_broadcast((float)v, 1, 4, 0));
    to[5] = (uint)work_group_reduce_add(v);
    to[6] = (uint)(work_group_reduce_min((ulong)v << 32) >> 32);
    to[7] = as_uint(work_group_reduce_max((float)v));
    to[8] = (uint)work_group_scan_inclusive_add(v);
    to[9] = (uint)work_group_scan_exclusive_add((uint)v);
    to[10] = (uint)work_group_scan_exclusive_min(v);
    to[11] = (uint)(work_group_scan_inclusive_max((long)v << 32) >> 32);
    to[12] = (uint)work_group_scan_inclusive_min((double)v);
#else
    out[0] = 2 + in[i];
#endif
}
