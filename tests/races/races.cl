// Kernels of the programs in tests/races, on bytes.

__kernel void add(__global const uchar *in, __global uchar *out, uint by)
{
    size_t i = get_global_id(0);
    out[i] = (uchar)(in[i] + by);
}

__kernel void sum(__global const uchar *a, __global const uchar *b, __global uchar *out)
{
    size_t i = get_global_id(0);
    out[i] = (uchar)(a[i] + b[i]);
}

__kernel void bump(__global uchar *values, uint by)
{
    size_t i = get_global_id(0);
    values[i] = (uchar)(values[i] + by);
}

__kernel void set(__global uchar *out, uint value)
{
    out[get_global_id(0)] = (uchar)value;
}
