// What device.cl was before it was ported: its kernels in CUDA C++, with the same names, parameters and
// results. device_twin_test compares the two on a GPU; docs/porting.md has the rows.
#include <cuda_fp16.h>

typedef size_t weir_local; // local memory: its offset in the block's dynamic shared memory
extern __shared__ char local[];


__device__ static size_t global_id()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

extern "C" __global__ void indices(const unsigned *in, unsigned *out, weir_local scratch)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] + gridDim.x;
}

extern "C" __global__ void grid_stride(const unsigned *in, unsigned *out, weir_local scratch)
{
    unsigned n = 256;
    for (size_t i = global_id() * 2; i < n; i += gridDim.x * blockDim.x)
        out[i] = in[i], out[i + 1] = in[i + 1];
}

__device__ float mean_of(const float *__restrict__ a, const float *b)
{
    return (a[0] + b[0]) / 2;
}

extern "C" __global__ void functions_and_pointers(const unsigned *in, unsigned *out,
                                                  weir_local scratch)
{
    const float *numbers = (const float *)in;
    float *mine = (float *)(local + scratch) + threadIdx.x;
    *mine = numbers[global_id()];
    out[global_id()] = __float_as_uint(mean_of(numbers + global_id(), mine));
}

extern "C" __global__ void static_shared(const unsigned *in, unsigned *out, weir_local scratch)
{
    __shared__ unsigned tile[8][9];
    unsigned x = threadIdx.x % 8, y = threadIdx.x / 8;
    tile[y][x] = in[global_id()];
    __syncthreads();
    out[global_id()] = tile[x][y];
}

extern "C" __global__ void dynamic_shared(const unsigned *in, unsigned *out, weir_local offset)
{
    unsigned *scratch = (unsigned *)(local + offset);
    scratch[threadIdx.x] = in[global_id()];
    __syncthreads();
    out[global_id()] = scratch[63 - threadIdx.x];
}

// Some threads return before the barrier of the others.
extern "C" __global__ void no_early_return(const unsigned *in, unsigned *out, weir_local offset)
{
    unsigned *scratch = (unsigned *)(local + offset);
    unsigned i = global_id(), t = threadIdx.x, n = 250;
    scratch[t] = 0;
    __syncthreads();
    if (i >= n)
        return;
    scratch[t] = in[i];
    __syncthreads();
    out[i] = scratch[(t + 1) % 64];
}

extern "C" __global__ void votes(const unsigned *in, unsigned *out, weir_local scratch)
{
    bool p = in[global_id()] % 3 == 0;
    unsigned count = __syncthreads_count(p);
    bool any = __syncthreads_or(p), all = __syncthreads_and(p);
    out[global_id()] = count + (any ? 100 : 0) + (all ? 1000 : 0);
}

extern "C" __global__ void block_sum(const unsigned *in, unsigned *out, weir_local offset)
{
    volatile unsigned *scratch = (unsigned *)(local + offset);
    unsigned t = threadIdx.x;
    scratch[t] = in[global_id()];
    __syncthreads();
    if (t < 32) {
        scratch[t] += scratch[t + 32];
        for (unsigned s = 16; s > 0; s /= 2) {
            unsigned other = scratch[(t + s) % 32];
            __syncwarp();
            scratch[t] += t < s ? other : 0;
            __syncwarp();
        }
    }
    __syncthreads();
    out[global_id()] = scratch[0];
}

extern "C" __global__ void fences(const unsigned *in, unsigned *out, weir_local offset)
{
    unsigned *scratch = (unsigned *)(local + offset);
    scratch[threadIdx.x] = in[global_id()];
    __threadfence_block();
    out[global_id()] = scratch[threadIdx.x];
    __threadfence();
}

extern "C" __global__ void atomics(const unsigned *in, unsigned *out, weir_local offset)
{
    unsigned *scratch = (unsigned *)(local + offset);
    unsigned old = 0;
    if (threadIdx.x == 0) {
        scratch[0] = 5;
        old += atomicAdd(&scratch[0], 3);
        old += atomicSub(&scratch[0], 1);
        old += atomicExch(&scratch[0], 20);
        old += atomicMin(&scratch[0], 10);
        old += atomicMax(&scratch[0], 12);
        old += atomicAnd(&scratch[0], 8);
        old += atomicOr(&scratch[0], 1);
        old += atomicXor(&scratch[0], 3);
        old += atomicCAS(&scratch[0], 10, 100);
        old += scratch[0];
    }
    out[global_id()] = old;
}

extern "C" __global__ void float_atomics(const unsigned *in, unsigned *out, weir_local offset)
{
    float *sum = (float *)(local + offset);
    if (threadIdx.x == 0)
        *sum = 0;
    __syncthreads();
    atomicAdd(sum, (float)in[global_id()]);
    __syncthreads();
    out[global_id()] = __float_as_uint(*sum);
}

extern "C" __global__ void wrapping_increment(const unsigned *in, unsigned *out, weir_local offset)
{
    unsigned *scratch = (unsigned *)(local + offset);
    if (threadIdx.x == 0)
        scratch[0] = 0;
    __syncthreads();
    atomicInc(&scratch[0], 9);
    __syncthreads();
    out[global_id()] = scratch[0];
}

extern "C" __global__ void wide_atomics(const unsigned *in, unsigned *out, weir_local scratch)
{
    __shared__ unsigned long long sum;
    if (threadIdx.x == 0)
        sum = 0xffffffffULL;
    __syncthreads();
    atomicAdd_block(&sum, 1ULL);
    __syncthreads();
    out[global_id()] = (unsigned)(sum >> 32) + (unsigned)sum;
}

template <typename T> __device__ T square(T x)
{
    return x * x;
}

__device__ static unsigned twice(unsigned x)
{
    return 2 * x;
}

__device__ static float twice(float x)
{
    return 2 * x;
}

template <int STEPS> __device__ unsigned steps(unsigned x)
{
    for (int i = 0; i < STEPS; i++)
        x += square(2u) + (unsigned)square(3.0f) + twice(1u) + (unsigned)twice(1.5f);
    return x;
}

extern "C" __global__ void templates(const unsigned *in, unsigned *out, weir_local scratch)
{
    out[global_id()] = steps<3>(in[global_id()]);
}

__constant__ unsigned weights[4] = {1, 10, 100, 1000};

extern "C" __global__ void constants(const unsigned *in, unsigned *out, weir_local scratch)
{
    out[global_id()] = __ldg(&in[global_id()]) * weights[global_id() % 4];
}

extern "C" __global__ void fast_functions(const unsigned *in, unsigned *out, weir_local scratch)
{
    float x = (float)in[global_id()] / 256, e = 0;
    e = fmaxf(e, fabsf(__expf(x) - expf(x)) / expf(x));
    e = fmaxf(e, fabsf(__logf(x + 1) - logf(x + 1)));
    e = fmaxf(e, fabsf(__sinf(x) - sinf(x)));
    e = fmaxf(e, fabsf(__cosf(x) - cosf(x)));
    e = fmaxf(e, fabsf(__fdividef(x, 3.0f) - __fdiv_rn(x, 3.0f)));
    e = fmaxf(e, fabsf(__powf(x + 1, 2.0f) - powf(x + 1, 2.0f)));
    e = fmaxf(e, fabsf(rsqrtf(x + 1) - __frcp_rn(__fsqrt_rn(x + 1))));
    out[global_id()] = e < 1e-5f;
}

extern "C" __global__ void functions(const unsigned *in, unsigned *out, weir_local scratch)
{
    float x = (float)in[global_id()] / 256, s, c;
    sincosf(x, &s, &c);
    float e = fabsf(s * s + c * c - 1);
    e = fmaxf(e, fabsf(powf(x, 3) - x * x * x));
    e = fmaxf(e, fabsf(sinpif(x) - sinf(x * 3.14159265f)));
    e = fmaxf(e, fabsf(exp10f(x) - powf(10.0f, x)) / 10);
    e = fmaxf(e, fabsf(__saturatef(x - 0.5f) - fminf(fmaxf(x - 0.5f, 0.0f), 1.0f)));
    e = fmaxf(e, fabsf(__fmaf_rn(x, x, 1.0f) - __fadd_rn(__fmul_rn(x, x), 1.0f)));
    e = fmaxf(e, fabsf(fmaf(x, x, 1.0f) - (x * x + 1.0f)));
    e = fmaxf(e, fabsf(hypotf(x, 1.0f) - sqrtf(x * x + 1)));
    out[global_id()] = e < 1e-5f && !isnan(x) && sqrtf(4.0f) == 2.0f;
}

extern "C" __global__ void conversions(const unsigned *in, unsigned *out, weir_local scratch)
{
    float x = (float)in[global_id()] + 0.5f;
    int nearest = __float2int_rn(x), zero = __float2int_rz(-x);
    int down = __float2int_rd(-x), up = __float2int_ru(x);
    float back = __int2float_rz(0x7fffffff);
    unsigned same = __uint_as_float(__float_as_uint(x)) == x && __float_as_int(1.0f) == 0x3f800000 &&
                    __int_as_float(0x3f800000) == 1.0f;
    out[global_id()] = (nearest % 2 == 0) + 2 * (zero == -(int)x) + 4 * (down == zero - 1) +
                       8 * (up == (int)x + 1) + 16 * (back == 2147483520.0f) + 32 * same + 64;
}

extern "C" __global__ void integers(const unsigned *in, unsigned *out, weir_local scratch)
{
    unsigned x = in[global_id()];
    int low = __ffs(x);
    unsigned turned = __funnelshift_l(x, x, 8);
    unsigned funnel = __funnelshift_l(7, x, 8);
    out[global_id()] = __popc(x) + __clz(x) * 2 + (unsigned)low * 100 + (turned == x << 8) +
                       (funnel == x << 8) + __umulhi(x, 0x80000000u) + __mul24((int)x, 3) +
                       __sad((int)x, 9, 0) + __uhadd(x, 1u) + __urhadd(x, 1u) + max(x, 5u) +
                       min(x, 5u);
}

// A vector of three has 12 bytes here.
extern "C" __global__ void vectors(const unsigned *in, unsigned *out, weir_local scratch)
{
    size_t i = global_id();
    uint4 v = make_uint4(in[i], 1, 2, 3);
    uint4 four = make_uint4(2 * v.w + 1, 2 * v.z + 1, 2 * v.y + 1, 2 * v.x + 1);
    uint3 three = reinterpret_cast<const uint3 *>(in)[i % 64];
    uint4 aligned = reinterpret_cast<const uint4 *>(in)[i % 64];
    out[i] = four.w + three.z + aligned.y + aligned.x + (sizeof(float3) == 12 ? 1000 : 0);
}

struct __align__(16) sphere
{
    float centre[3];
    float radius;
};

extern "C" __global__ void structures(const unsigned *in, unsigned *out, weir_local scratch)
{
    sphere s = {{1, 2, 3}, (float)in[global_id()]};
    out[global_id()] = (unsigned)(s.centre[2] + s.radius) + (sizeof s == 16 ? 1000 : 0);
}

extern "C" __global__ void sizes(const unsigned *in, unsigned *out, weir_local scratch)
{
    out[global_id()] = sizeof(long) == 8 && sizeof(long long) == 8 && sizeof(unsigned long long) == 8;
}

extern "C" __global__ void asserts(const unsigned *in, unsigned *out, weir_local scratch)
{
    if (!(in[global_id()] < 257))
        __trap();
}

// A texture's linear filter, with its own precision of 8 bits, would not give the same here.
__device__ static float texel(const unsigned *picture, int x, int y)
{
    x = min(max(x, 0), 15), y = min(max(y, 0), 15);
    return (float)picture[y * 16 + x];
}

extern "C" __global__ void textures(const unsigned *in, unsigned *out, weir_local scratch)
{
    size_t i = global_id();
    int x = i % 16, y = i / 16;
    out[i] = (unsigned)(texel(in, x, y) + texel(in, x + 1, y));
}

extern "C" __global__ void short_floats(const unsigned *in, unsigned *out, weir_local scratch)
{
    __half *halves = (__half *)out;
    size_t i = global_id();
    halves[2 * i] = __float2half((float)in[i]);
    float x = __half2float(halves[2 * i]);
    unsigned bits = __float_as_uint(x + 0.25f);
    unsigned b = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    out[i] = (unsigned)x + (__uint_as_float(b << 16) == x) * 1000;
}

extern "C" __global__ void doubles(const unsigned *in, unsigned *out, weir_local scratch)
{
    size_t i = global_id();
    double x = 1.0 + in[i] * 1e-12;
    out[i] = (unsigned)((x - 1.0) * 1e12 + 0.5);
}

extern "C" __global__ void __launch_bounds__(64)
    launch_bounds(const unsigned *in, unsigned *out, weir_local scratch)
{
    unsigned sum = 0;
#pragma unroll
    for (int k = 0; k < 4; k++)
        sum += in[(global_id() + k) % 256];
    out[global_id()] = sum;
}

extern "C" __global__ void blocks_of_memory(const unsigned *in, unsigned *out, weir_local offset)
{
    unsigned *scratch = (unsigned *)(local + offset);
    if (threadIdx.x == 0)
        memcpy(scratch, in + blockIdx.x * 64, 64 * sizeof *in);
    __syncthreads();
    out[global_id()] = scratch[threadIdx.x];
}
