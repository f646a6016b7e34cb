// Sixty-four calls of one function, a chain of x * y + c, and a product in tiles; own.cl has the same.
#define MAP(name, e)                                                                  \
extern "C" __global__ void map_##name(const float *a, float *o, int n) \
{ \
    int i = blockIdx.x * blockDim.x + threadIdx.x;                                                             \
    if (i >= n)                                                                       \
        return;                                                                       \
    float x = a[i], sum = 0;                                                          \
    for (int j = 0; j < 64; j++, x += 0.001f)                                         \
        sum += e;                                                                     \
    o[i] = sum;                                                                       \
}
MAP(tanh, tanhf(x))
MAP(erf, erff(x))
MAP(sin, sinf(x))
MAP(atan, atanf(x))
MAP(log2, log2f(x))
MAP(pow, powf(x, x + 0.5f))

extern "C" __global__ void chain(const float *a, float *o, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], y = x * 0.5f + 0.25f, c = 0.125f, u = x, v = y;
    for (int j = 0; j < 1024; j++) {
        u = u * y + c;
        v = v * x + c;
    }
    o[i] = u + v;
}
extern "C" __global__ __launch_bounds__(256) void tile(const float *a, const float *b, float *c, int n)
{
    __shared__ float ta[16][16], tb[16][16];
    int x = threadIdx.x, y = threadIdx.y;
    int col = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
    float sum = 0;
    for (int t = 0; t < n; t += 16) {
        ta[y][x] = a[row * n + t + x];
        tb[y][x] = b[(t + y) * n + col];
        __syncthreads();
        for (int k = 0; k < 16; k++)
            sum += ta[y][k] * tb[k][x];
        __syncthreads();
    }
    c[row * n + col] = sum;
}
