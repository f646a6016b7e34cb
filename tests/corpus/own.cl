// Sixty-four calls of one function; own.cu makes CUDA C++ of it.
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
