// out[0] is 1 where the device has the functions; then GROUP_RESULTS results for each work-item.
#define GROUP_RESULTS 26

#if defined(cl_khr_subgroups) && defined(cl_khr_subgroup_ballot) &&                  \
    defined(cl_khr_subgroup_shuffle) && defined(cl_khr_subgroup_shuffle_relative) && \
    defined(cl_khr_subgroup_rotate)
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#define HAVE_SUB_GROUPS
#endif

__kernel void run(__global const uint *in, __global uint *out)
{
    size_t i = get_global_id(0);
#ifdef HAVE_SUB_GROUPS
    const int v = (int)in[i];
    const uint lane = get_sub_group_local_id();
    __global uint *to = out + 1 + GROUP_RESULTS * i;
    out[0] = 1;
    to[0] = get_sub_group_size();
    to[1] = get_max_sub_group_size();
    to[2] = get_num_sub_groups();
    to[3] = get_sub_group_id();
    to[4] = lane;
    to[5] = (uint)sub_group_reduce_add(v);
    to[6] = (uint)sub_group_reduce_min(v);
    to[7] = as_uint(sub_group_reduce_max((float)v));
    to[8] = (uint)sub_group_scan_inclusive_add(v);
    to[9] = (uint)sub_group_scan_exclusive_add(v);
    to[10] = (uint)sub_group_scan_exclusive_min(v);
    to[11] = (uint)(sub_group_scan_inclusive_max((long)v << 32) >> 32);
    to[12] = (uint)sub_group_broadcast(v, 5);
    to[13] = (uint)(sub_group_reduce_add((ulong)in[i] << 30) >> 30);
    to[14] = (uint)sub_group_shuffle(v, lane ^ 1);
    to[15] = (uint)(sub_group_shuffle_xor((long)v << 32, 2u) >> 32);
    to[16] = (uint)sub_group_shuffle_up(v, 1u);
    to[17] = (uint)sub_group_shuffle_down(v, 1u);
    to[18] = (uint)(sub_group_all(v > -100000) != 0);
    to[19] = (uint)(sub_group_any(v == 7) != 0);
    to[20] = sub_group_ballot(v & 1).x;
    to[21] = sub_group_ballot_bit_count(sub_group_ballot(v & 1));
    to[22] = sub_group_ballot_exclusive_scan(sub_group_ballot(v & 1));
    to[23] = (uint)sub_group_rotate(v, 3);
    to[24] = as_uint(sub_group_scan_exclusive_max((float)v));
    sub_group_barrier(CLK_GLOBAL_MEM_FENCE);
    to[25] = (uint)sub_group_reduce_max((double)v);
#else
    out[0] = in[i] & 0;
#endif
}
