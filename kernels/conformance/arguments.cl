// Kernels for what a launch can pass besides plain numbers: vectors, NULL, ranges at any offset,
// addresses and constants. The same bundle as conformance.cl.

__kernel void store_vectors(__global uint *out, float4 a, int2 b, float3 c, uchar16 d, ulong2 e)
{
    if (get_global_id(0) != 0)
        return;
    vstore4(as_uint4(a), 0, out);
    vstore2(as_uint2(b), 2, out);
    vstore3(as_uint3(c), 2, out);
    vstore4(as_uint4(d), 0, out + 9);
    vstore4(as_uint4(e), 0, out + 13);
}

// The first word of each, or 1000 and 2000 for NULL.
__kernel void store_present(__global uint *out, __global const uint *a, __constant uint *b)
{
    if (get_global_id(0) != 0)
        return;
    out[0] = a ? a[0] : 1000u;
    out[1] = b ? b[0] : 2000u;
}

// For ranges of one buffer, at offsets of their own.
__kernel void add_words(__global const uint *a, __global const uint *b, __global uint *sum, uint n)
{
    uint i = (uint)get_global_id(0);
    if (i < n)
        sum[i] = a[i] + b[i];
}

// Elements of 1, 8 and 16 bytes, a structure, and local memory beside them.
__kernel void count_kinds(__global uchar *bytes, __global const long *wide,
                          __global const float4 *vectors,
                          __global const struct conformance_values *values, __local uint *scratch)
{
    __local uint total[64];
    uint lane = (uint)get_local_id(0);
    scratch[lane] = (uint)wide[lane] + (uint)vectors[lane].w;
    total[lane] = values[0].a;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint last = (uint)get_local_size(0) - 1u;
    bytes[get_global_id(0)] = (uchar)(scratch[last - lane] + total[last - lane]);
}

// Each node is two words of 64 bits: the address of the next one, or 0, and a value.
__kernel void follow_addresses(ulong first, __global ulong *out)
{
    ulong sum = 0;
    uint count = 0;
    if (get_global_id(0) != 0)
        return;
    for (__global ulong *node = (__global ulong *)first; node; node = (__global ulong *)node[0]) {
        node[1] += 1;
        sum += node[1];
        count++;
    }
    out[0] = sum;
    out[1] = count;
}

__kernel void weigh(__constant float *weights, __global const uint *in, __global float *out, uint n)
{
    uint i = (uint)get_global_id(0);
    if (i < n)
        out[i] = weights[in[i]];
}
