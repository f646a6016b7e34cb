// Warps, as sub-groups of OpenCL C 2.0, where the device has them with ballots and all shuffles; else the same in
// local memory. PoCL 6 has sub-groups, and no shuffle by a distance.
#if defined(cl_khr_subgroups) && defined(cl_khr_subgroup_ballot) && \
    defined(cl_khr_subgroup_shuffle) && defined(cl_khr_subgroup_shuffle_relative)
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
__kernel void warps(__global const uint *in, __global uint *out, __local uint *scratch)
{
    uint x = in[get_global_id(0)], lane = get_sub_group_local_id();
    uint wrong = 0;
    wrong |= get_max_sub_group_size() < get_sub_group_size();
    wrong |= sub_group_shuffle(x, 0u) != sub_group_broadcast(x, 0);
    wrong |= sub_group_shuffle_xor(x, 1u) != ((x - 1) ^ 1) + 1;
    uint down = sub_group_shuffle_down(x, 1u), up = sub_group_shuffle_up(x, 1u);
    wrong |= lane + 1 < get_sub_group_size() && down != x + 1;
    wrong |= lane > 0 && up != x - 1;
    wrong |= popcount(sub_group_ballot(lane < 5).x) != 5;
    int any = sub_group_any(lane == 3), all = sub_group_all(lane == 3);
    wrong |= !any || all;
    wrong |= sub_group_reduce_add(1u) != get_sub_group_size();
    wrong |= sub_group_scan_inclusive_add(1u) != lane + 1;
    sub_group_barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = wrong;
}
#else
__kernel void warps(__global const uint *in, __global uint *out, __local uint *scratch)
{
    scratch[get_local_id(0)] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = scratch[get_local_id(0) ^ 1] != ((in[get_global_id(0)] - 1) ^ 1) + 1;
}
#endif
