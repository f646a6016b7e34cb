// out[0] is 1 where the device has the functions; then six results for each work-item.
#ifdef __opencl_c_generic_address_space
uint twice(const uint *p)
{
    return 2 * *p;
}

// A bit for each function that knows the pointer.
uint places(uint *p)
{
    return (to_global(p) ? 1 : 0) | (to_local(p) ? 2 : 0) | (to_private(p) ? 4 : 0);
}
#endif

__kernel void run(__global const uint *in, __global uint *out)
{
    const size_t i = get_global_id(0);
#ifdef __opencl_c_generic_address_space
    __local uint in_block[64];
    uint own = in[i] + 1;
    __global uint *to = out + 1 + 6 * i;
    in_block[get_local_id(0)] = in[i] + 2;
    uint *chosen = in[i] % 2 ? (uint *)&own : (uint *)&in_block[get_local_id(0)];
    out[0] = 1;
    to[0] = in[i];
    to[0] = twice(to);
    to[1] = twice(&own);
    to[2] = twice(&in_block[get_local_id(0)]);
    to[3] = twice(chosen);
    to[4] = places(to) | places(&own) << 4 | places(&in_block[0]) << 8;
    to[5] = (get_fence(to) == CLK_GLOBAL_MEM_FENCE) | (get_fence(chosen) == CLK_LOCAL_MEM_FENCE)
                                                          << 1;
#else
    out[0] = 2 + in[i];
#endif
}
