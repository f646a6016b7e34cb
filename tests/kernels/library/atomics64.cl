// out[0] is 1 where the device has the functions; then, from out[2], eleven results of two words.
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable

__kernel void run(__global const uint *in, __global uint *out)
{
    __local ulong sum;
    size_t i = get_global_id(0);
#if defined(cl_khr_int64_base_atomics) && defined(cl_khr_int64_extended_atomics)
    const ulong value = (ulong)in[i] << 24;
    __global ulong *to = (__global ulong *)(out + 2);
    __global long *to_signed = (__global long *)to;
    out[0] = 1;
    atom_add(to, value);
    atom_sub(to + 1, value);
    atom_inc(to + 2);
    atom_dec(to_signed + 3);
    atom_min(to_signed + 4, -(long)value);
    atom_max(to + 5, value);
    atom_and(to + 6, ~value);
    atom_or(to + 7, value);
    atom_xor(to + 8, value);
    for (ulong seen = 0, now; (now = atom_cmpxchg(to + 9, seen, seen + value)) != seen;)
        seen = now;
    if (get_local_id(0) == 0)
        sum = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    atom_add(&sum, value);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i == 0)
        atom_xchg(to + 10, sum);
#else
    out[0] = in[i] & 0;
#endif
}
