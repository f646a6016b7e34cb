// The device side of docs/porting.md: a kernel for each row, or for a few that belong together, run by
// device_test.c. Every kernel takes 256 numbers, writes 256 results, and has 64 words of local memory;
// a launch has 4 blocks of 64 work-items.

// Indices.
__kernel void indices(__global const uint *in, __global uint *out, __local uint *scratch)
{
    uint i = (uint)get_global_id(0);
    uint j = (uint)(get_group_id(0) * get_local_size(0) + get_local_id(0));
    out[i] = i == j ? in[i] + (uint)get_num_groups(0) : 0;
}

// A loop of a grid's stride.
__kernel void grid_stride(__global const uint *in, __global uint *out, __local uint *scratch)
{
    uint n = 256;
    for (size_t i = get_global_id(0) * 2; i < n; i += get_global_size(0))
        out[i] = in[i], out[i + 1] = in[i + 1];
}

// A function of the device, and pointers of each address space.
static inline float mean_of(__global const float *restrict a, __local const float *b)
{
    return (a[0] + b[0]) / 2;
}

__kernel void functions_and_pointers(__global const uint *in, __global uint *out,
                                     __local uint *scratch)
{
    __global const float *restrict numbers = (__global const float *)in;
    __local float *mine = (__local float *)scratch + get_local_id(0);
    *mine = numbers[get_global_id(0)];
    out[get_global_id(0)] = as_uint(mean_of(numbers + get_global_id(0), mine));
}

// Static shared memory, in the kernel's outermost scope.
__kernel void static_shared(__global const uint *in, __global uint *out, __local uint *scratch)
{
    __local uint tile[8][9];
    uint x = get_local_id(0) % 8, y = get_local_id(0) / 8;
    tile[y][x] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = tile[x][y];
}

// Dynamic shared memory: a parameter for each array.
__kernel void dynamic_shared(__global const uint *in, __global uint *out, __local uint *scratch)
{
    uint t = get_local_id(0);
    scratch[t] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = scratch[63 - t];
}

// Work-items that have nothing to do come to the barrier too.
__kernel void no_early_return(__global const uint *in, __global uint *out, __local uint *scratch)
{
    uint i = get_global_id(0), t = get_local_id(0), n = 250;
    scratch[t] = i < n ? in[i] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i < n)
        out[i] = scratch[(t + 1) % 64];
}

// __syncthreads_count(), _or() and _and().
__kernel void votes(__global const uint *in, __global uint *out, __local uint *scratch)
{
    uint t = get_local_id(0);
    if (t == 0)
        scratch[0] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (in[get_global_id(0)] % 3 == 0)
        atomic_inc(&scratch[0]);
    barrier(CLK_LOCAL_MEM_FENCE);
    uint count = scratch[0];
    bool any = count > 0, all = count == get_local_size(0);
    out[get_global_id(0)] = count + (any ? 100 : 0) + (all ? 1000 : 0);
}

// The last steps of a reduction without barriers, as CUDA's older samples had them, get their barriers.
__kernel void block_sum(__global const uint *in, __global uint *out, __local uint *scratch)
{
    uint t = get_local_id(0);
    scratch[t] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint s = get_local_size(0) / 2; s > 0; s /= 2) {
        if (t < s)
            scratch[t] += scratch[t + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[get_global_id(0)] = scratch[0];
}

// Fences.
__kernel void fences(__global const uint *in, __global uint *out, __local uint *scratch)
{
    uint t = get_local_id(0);
    scratch[t] = in[get_global_id(0)];
    mem_fence(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = scratch[t];
    mem_fence(CLK_GLOBAL_MEM_FENCE);
}

// Atomics return the old value.
__kernel void atomics(__global const uint *in, __global uint *out, __local uint *scratch)
{
    uint t = get_local_id(0), old = 0;
    if (t == 0) {
        scratch[0] = 5;
        old += atomic_add(&scratch[0], 3);           // 5, then 8
        old += atomic_sub(&scratch[0], 1);           // 8, then 7
        old += atomic_xchg(&scratch[0], 20);         // 7, then 20
        old += atomic_min(&scratch[0], 10);          // 20, then 10
        old += atomic_max(&scratch[0], 12);          // 10, then 12
        old += atomic_and(&scratch[0], 8);           // 12, then 8
        old += atomic_or(&scratch[0], 1);            // 8, then 9
        old += atomic_xor(&scratch[0], 3);           // 9, then 10
        old += atomic_cmpxchg(&scratch[0], 10, 100); // 10, then 100
        old += scratch[0];
    }
    out[get_global_id(0)] = old;
}

// atomicAdd of a float. It begins with a guess: reading what others write would be a race.
static void add_float(volatile __local float *sum, float value)
{
    uint old = 0, seen;
    while ((seen = atomic_cmpxchg((volatile __local uint *)sum, old,
                                  as_uint(as_float(old) + value))) != old)
        old = seen;
}

__kernel void float_atomics(__global const uint *in, __global uint *out, __local uint *scratch)
{
    __local float *sum = (__local float *)scratch;
    if (get_local_id(0) == 0)
        *sum = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    add_float(sum, (float)in[get_global_id(0)]);
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = as_uint(*sum);
}

// atomicInc(p, last) begins again at 0.
static uint increment_within(volatile __local uint *p, uint last)
{
    uint old = 0, seen;
    while ((seen = atomic_cmpxchg(p, old, old >= last ? 0 : old + 1)) != old)
        old = seen;
    return old;
}

__kernel void wrapping_increment(__global const uint *in, __global uint *out, __local uint *scratch)
{
    if (get_local_id(0) == 0)
        scratch[0] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    increment_within(&scratch[0], 9);
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = scratch[0];
}

// Atomics of 64 bits.
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
__kernel void wide_atomics(__global const uint *in, __global uint *out, __local uint *scratch)
{
    __local ulong sum;
    if (get_local_id(0) == 0)
        sum = 0xffffffffUL;
    barrier(CLK_LOCAL_MEM_FENCE);
    atom_add(&sum, (ulong)1);
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = (uint)(sum >> 32) + (uint)sum;
}

// Templates: a macro that defines the function for each type.
#define DEFINE_SQUARE(T)            \
    static inline T square_##T(T x) \
    {                               \
        return x * x;               \
    }
DEFINE_SQUARE(float)
DEFINE_SQUARE(uint)

// Functions of one name.
__attribute__((overloadable)) static uint twice(uint x)
{
    return 2 * x;
}
__attribute__((overloadable)) static float twice(float x)
{
    return 2 * x;
}

// A template's parameter: a macro that the rule or the program's options define.
#ifndef STEPS
#define STEPS 3
#endif

__kernel void templates(__global const uint *in, __global uint *out, __local uint *scratch)
{
    uint x = in[get_global_id(0)];
    for (int i = 0; i < STEPS; i++)
        x += square_uint(2) + (uint)square_float(3.0f) + twice(1u) + (uint)twice(1.5f);
    out[get_global_id(0)] = x;
}

// Constants that the program has, and loads through the cache for data that is only read.
__constant uint weights[4] = {1, 10, 100, 1000};

__kernel void constants(__global const uint *in, __global uint *out, __local uint *scratch)
{
    __global const uint *restrict only_read = in;
    out[get_global_id(0)] = only_read[get_global_id(0)] * weights[get_global_id(0) % 4];
}

// Functions of the hardware, within its precision.
__kernel void fast_functions(__global const uint *in, __global uint *out, __local uint *scratch)
{
    float x = (float)in[get_global_id(0)] / 256, e = 0;
    e = fmax(e, fabs(native_exp(x) - exp(x)) / exp(x));
    e = fmax(e, fabs(native_log(x + 1) - log(x + 1)));
    e = fmax(e, fabs(native_sin(x) - sin(x)));
    e = fmax(e, fabs(native_cos(x) - cos(x)));
    e = fmax(e, fabs(native_divide(x, 3.0f) - x / 3.0f));
    e = fmax(e, fabs(native_powr(x + 1, 2.0f) - pow(x + 1, 2.0f)));
    e = fmax(e, fabs(rsqrt(x + 1) - 1.0f / sqrt(x + 1)));
    out[get_global_id(0)] = e < 1e-5f;
}

// Functions of other names.
__kernel void functions(__global const uint *in, __global uint *out, __local uint *scratch)
{
    float x = (float)in[get_global_id(0)] / 256, c;
    float s = sincos(x, &c);
    float e = fabs(s * s + c * c - 1);
    e = fmax(e, fabs(pown(x, 3) - x * x * x));
    e = fmax(e, fabs(sinpi(x) - sin(x * M_PI_F)));
    e = fmax(e, fabs(exp10(x) - pow(10.0f, x)) / 10);
    e = fmax(e, fabs(clamp(x - 0.5f, 0.0f, 1.0f) - fmin(fmax(x - 0.5f, 0.0f), 1.0f)));
    e = fmax(e, fabs(fma(x, x, 1.0f) - (x * x + 1.0f)));
    e = fmax(e, fabs(hypot(x, 1.0f) - sqrt(x * x + 1)));
    out[get_global_id(0)] = e < 1e-5f && !isnan(x) && isinf(INFINITY) && sqrt(4.0f) == 2.0f;
}

// Conversions, and bits of another type.
__kernel void conversions(__global const uint *in, __global uint *out, __local uint *scratch)
{
    float x = (float)in[get_global_id(0)] + 0.5f;
    int nearest = convert_int_rte(x), zero = convert_int_rtz(-x);
    int down = convert_int_rtn(-x), up = convert_int_rtp(x);
    float back = convert_float_rtz(0x7fffffff);
    uint same = as_float(as_uint(x)) == x && as_int(1.0f) == 0x3f800000;
    out[get_global_id(0)] = (nearest % 2 == 0) + 2 * (zero == -(int)x) + 4 * (down == zero - 1) +
                            8 * (up == (int)x + 1) + 16 * (back == 2147483520.0f) + 32 * same +
                            64 * (convert_uchar_sat(x + 300) == 255);
}

// Functions of integers.
__kernel void integers(__global const uint *in, __global uint *out, __local uint *scratch)
{
    uint x = in[get_global_id(0)];
    int low = 32 - (int)clz(x & -x); // __ffs(x)
    uint turned = rotate(x, 8u);     // __funnelshift_l(x, x, 8)
    uint funnel = (x << 8) | (7u >> 24);
    out[get_global_id(0)] = popcount(x) + clz(x) * 2 + (uint)low * 100 + (turned == x << 8) +
                            (funnel == x << 8) + mul_hi(x, 0x80000000u) + mul24((int)x, 3) +
                            abs_diff(x, 9u) + hadd(x, 1u) + rhadd(x, 1u) + max(x, 5u) + min(x, 5u);
}

// Vectors. A vector of three takes as much memory as one of four; vload3 reads three neighbours.
__kernel void vectors(__global const uint *in, __global uint *out, __local uint *scratch)
{
    size_t i = get_global_id(0);
    uint4 four = (uint4)(in[i], 1, 2, 3);
    four = four.wzyx * 2u + (uint4)(1);
    uint3 three = vload3(i % 64, in);
    uint4 aligned = ((__global const uint4 *)in)[i % 64];
    uint4 loaded = vload4(i % 64, in);
    out[i] = four.w + three.z + aligned.y + loaded.x + (sizeof(float3) == 16 ? 1000 : 0);
}

// A structure has the layout of the host's, if it has no vector of three.
struct __attribute__((aligned(16))) sphere {
    float centre[3];
    float radius;
};

__kernel void structures(__global const uint *in, __global uint *out, __local uint *scratch)
{
    struct sphere s = {{1, 2, 3}, (float)in[get_global_id(0)]};
    out[get_global_id(0)] = (uint)(s.centre[2] + s.radius) + (sizeof s == 16 ? 1000 : 0);
}

// Integers have the same size on every device.
__kernel void sizes(__global const uint *in, __global uint *out, __local uint *scratch)
{
    bool right = sizeof(long) == 8 && sizeof(ulong) == 8 && sizeof(int) == 4 &&
                 sizeof(short) == 2 && (char)-1 < 0 && sizeof(size_t) == 8;
    out[get_global_id(0)] = right;
}

// assert: a bit of a buffer that the host looks at.
__kernel void asserts(__global const uint *in, __global uint *out, __local uint *scratch)
{
    __global uint *errors = out;
    if (!(in[get_global_id(0)] < 257))
        atomic_or(errors, 1u);
}

// A texture with linear filtering and clamped coordinates, as a buffer.
static float texel(__global const uint *picture, int x, int y)
{
    x = clamp(x, 0, 15), y = clamp(y, 0, 15);
    return (float)picture[y * 16 + x];
}

static float sample(__global const uint *picture, float x, float y)
{
    float fx = floor(x - 0.5f), fy = floor(y - 0.5f);
    float ax = x - 0.5f - fx, ay = y - 0.5f - fy;
    float top = mix(texel(picture, (int)fx, (int)fy), texel(picture, (int)fx + 1, (int)fy), ax);
    float low =
        mix(texel(picture, (int)fx, (int)fy + 1), texel(picture, (int)fx + 1, (int)fy + 1), ax);
    return mix(top, low, ay);
}

__kernel void textures(__global const uint *in, __global uint *out, __local uint *scratch)
{
    size_t i = get_global_id(0);
    out[i] = (uint)(2 * sample(in, (float)(i % 16) + 1, (float)(i / 16) + 0.5f));
}

// Half in memory, and bfloat16 as the upper half of a float.
static ushort bfloat_of(float x)
{
    uint bits = as_uint(x);
    return isnan(x) ? (ushort)0x7fff : (ushort)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

__kernel void short_floats(__global const uint *in, __global uint *out, __local uint *scratch)
{
    __global half *halves = (__global half *)out;
    size_t i = get_global_id(0);
    vstore_half((float)in[i], 2 * i, halves);
    float x = vload_half(2 * i, halves);
    ushort b = bfloat_of(x + 0.25f);
    out[i] = (uint)x + (as_float((uint)b << 16) == x) * 1000;
}

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
__kernel void doubles(__global const uint *in, __global uint *out, __local uint *scratch)
{
    size_t i = get_global_id(0);
#ifdef cl_khr_fp64
    double x = 1.0 + in[i] * 1e-12;
    out[i] = (uint)((x - 1.0) * 1e12 + 0.5);
#else
    out[i] = in[i];
#endif
}

// __launch_bounds__, and unrolling.
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void launch_bounds(__global const uint *in,
                                                                            __global uint *out,
                                                                            __local uint *scratch)
{
    uint sum = 0;
#pragma unroll
    for (int k = 0; k < 4; k++)
        sum += in[(get_global_id(0) + k) % 256];
    out[get_global_id(0)] = sum;
}

// memcpy and memset in a kernel.
__kernel void blocks_of_memory(__global const uint *in, __global uint *out, __local uint *scratch)
{
    event_t copied = async_work_group_copy(scratch, in + get_group_id(0) * 64, 64, 0);
    wait_group_events(1, &copied);
    uint4 zeros[2] = {0};
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = scratch[get_local_id(0)] + zeros[1].x;
}
