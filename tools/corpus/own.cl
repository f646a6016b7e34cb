// Sixty-four calls of one function, a chain of x * y + c, and a product in tiles; own.cu makes CUDA C++ of it.
#ifndef BLOCK_OF_16
#define BLOCK_OF_16 __attribute__((reqd_work_group_size(16, 16, 1)))
#endif
#define MAP(name, e)                                                                  \
__kernel void map_##name(__global const float *a, __global float *o, int n) \
{ \
    int i = get_global_id(0);                                                             \
    if (i >= n)                                                                       \
        return;                                                                       \
    float x = a[i], sum = 0;                                                          \
    for (int j = 0; j < 64; j++, x += 0.001f)                                         \
        sum += e;                                                                     \
    o[i] = sum;                                                                       \
}
MAP(tanh, tanh(x))
MAP(erf, erf(x))
MAP(sin, sin(x))
MAP(atan, atan(x))
MAP(log2, log2(x))
MAP(pow, pow(x, x + 0.5f))

__kernel void chain(__global const float *a, __global float *o, int n)
{
    int i = get_global_id(0);
    if (i >= n) return;
    float x = a[i], y = x * 0.5f + 0.25f, c = 0.125f, u = x, v = y;
    for (int j = 0; j < 1024; j++) {
        u = u * y + c;
        v = v * x + c;
    }
    o[i] = u + v;
}
__kernel BLOCK_OF_16 void tile(__global const float *a, __global const float *b, __global float *c, int n)
{
    __local float ta[16][16], tb[16][16];
    int x = get_local_id(0), y = get_local_id(1);
    int col = get_group_id(0) * 16 + x, row = get_group_id(1) * 16 + y;
    float sum = 0;
    for (int t = 0; t < n; t += 16) {
        ta[y][x] = a[row * n + t + x];
        tb[y][x] = b[(t + y) * n + col];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 16; k++)
            sum += ta[y][k] * tb[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + col] = sum;
}
