// Gradients on their way to other ranks. README.md says what the kernels compute.

// Rounds to nearest even. A NaN stays one: its payload is cut, and the quiet bit set.
__kernel void buckets_narrow(__global const uint *src, __global ushort *dst, ulong count)
{
    ulong i = get_global_id(0);
    if (i >= count)
        return;
    uint bits = src[i];
    uint rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
    dst[i] = (ushort)((bits & 0x7FFFFFFFu) > 0x7F800000u ? bits >> 16 | 0x40u : rounded);
}

__kernel void buckets_widen(__global const ushort *src, __global uint *dst, ulong count)
{
    ulong i = get_global_id(0);
    if (i < count)
        dst[i] = (uint)src[i] << 16;
}
