// The dialect on CUDA C++, for nvcc and NVRTC. Prepended to every kernel source;
// docs/kernels.md lists what a kernel may use.
//
// OpenCL's names are macros and small functions here. A scalar function takes
// exactly the types that OpenCL's takes; the vector types are the dialect's own,
// without a converting constructor, so that `(float4)(1, 2, 3, 4)`, which C++
// parses as a comma expression, does not compile.
//
// With WEIR_DIALECT_CHECK the same file is parsed by clang on machines without a
// CUDA toolkit: kernels/dialect/check.h then makes CUDA's declarations.

#ifndef WEIR_DIALECT
#define WEIR_DIALECT 1

#define __kernel extern "C" __global__
#define __global
#define __local __shared__
#define __constant __constant__ const
#define restrict __restrict__

#define WEIR_FN __device__ __forceinline__
#define WEIR_BLOCK(x, y, z) __launch_bounds__((x) * (y) * (z))
#define WEIR_LOCAL_PTR(type) type *
#define WEIR_LOCAL_PARAM(type) const weir_local_param<type>

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

// A __local parameter of a kernel arrives as an offset into the block's dynamic
// shared memory, so that there can be several.
extern __shared__ __align__(16) uchar weir_dynamic_shared[];

template <typename type> struct weir_local_param {
    uint offset_bytes;
    __device__ __forceinline__ operator type *() const
    {
        return reinterpret_cast<type *>(weir_dynamic_shared + offset_bytes);
    }
};

// Work-items.

#define WEIR_CUDA_AXIS(name, x_value, y_value, z_value)                   \
    WEIR_FN size_t name(uint axis)                                        \
    {                                                                     \
        return axis == 0 ? (x_value) : axis == 1 ? (y_value) : (z_value); \
    }
WEIR_CUDA_AXIS(get_local_id, threadIdx.x, threadIdx.y, threadIdx.z)
WEIR_CUDA_AXIS(get_local_size, blockDim.x, blockDim.y, blockDim.z)
WEIR_CUDA_AXIS(get_group_id, blockIdx.x, blockIdx.y, blockIdx.z)
WEIR_CUDA_AXIS(get_num_groups, gridDim.x, gridDim.y, gridDim.z)
#undef WEIR_CUDA_AXIS

WEIR_FN size_t get_global_id(uint axis)
{
    return get_group_id(axis) * get_local_size(axis) + get_local_id(axis);
}

WEIR_FN size_t get_global_size(uint axis)
{
    return get_num_groups(axis) * get_local_size(axis);
}

#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define barrier(fences) __syncthreads()

// Mathematics, single precision only.

#define fma(a, b, c) fmaf(a, b, c)
#define weir_fma(a, b, c) fmaf(a, b, c)
#define fabs(x) fabsf(x)
#define fmin(a, b) fminf(a, b)
#define fmax(a, b) fmaxf(a, b)
#define floor(x) floorf(x)
#define ceil(x) ceilf(x)
#define trunc(x) truncf(x)
#define rint(x) rintf(x)
#define sqrt(x) sqrtf(x)
#define exp(x) expf(x)
#define exp2(x) exp2f(x)
#define log(x) logf(x)
#define log2(x) log2f(x)
#define pow(a, b) powf(a, b)
#define sin(x) sinf(x)
#define cos(x) cosf(x)
#define atan2(a, b) atan2f(a, b)

#define weir_as_int(x) __float_as_int(x)
#define weir_as_uint(x) __float_as_uint(x)
#define weir_as_float(x) weir_cuda_as_float(x)

WEIR_FN float weir_cuda_as_float(int x)
{
    return __int_as_float(x);
}
WEIR_FN float weir_cuda_as_float(uint x)
{
    return __uint_as_float(x);
}

#define min(a, b) weir_cuda_min(a, b)
#define max(a, b) weir_cuda_max(a, b)
#define clamp(x, low, high) weir_cuda_clamp(x, low, high)

#define WEIR_CUDA_ORDER(type)                                 \
    WEIR_FN type weir_cuda_min(type a, type b)                \
    {                                                         \
        return b < a ? b : a;                                 \
    }                                                         \
    WEIR_FN type weir_cuda_max(type a, type b)                \
    {                                                         \
        return a < b ? b : a;                                 \
    }                                                         \
    WEIR_FN type weir_cuda_clamp(type x, type low, type high) \
    {                                                         \
        return weir_cuda_min(weir_cuda_max(x, low), high);    \
    }
WEIR_CUDA_ORDER(int)
WEIR_CUDA_ORDER(uint)
WEIR_CUDA_ORDER(long)
WEIR_CUDA_ORDER(ulong)
WEIR_CUDA_ORDER(float)
#undef WEIR_CUDA_ORDER

// Atomics on 32-bit integers.

#define WEIR_CUDA_ATOMIC(name, cuda_name)           \
    WEIR_FN int name(volatile int *p, int x)        \
    {                                               \
        return cuda_name(const_cast<int *>(p), x);  \
    }                                               \
    WEIR_FN uint name(volatile uint *p, uint x)     \
    {                                               \
        return cuda_name(const_cast<uint *>(p), x); \
    }
WEIR_CUDA_ATOMIC(atomic_add, atomicAdd)
WEIR_CUDA_ATOMIC(atomic_min, atomicMin)
WEIR_CUDA_ATOMIC(atomic_max, atomicMax)
WEIR_CUDA_ATOMIC(atomic_or, atomicOr)
#undef WEIR_CUDA_ATOMIC

// Vectors: components, + - * between vectors of one type and with a scalar on
// the right.

#define float2 weir_cuda_float2
#define float4 weir_cuda_float4
#define int2 weir_cuda_int2
#define int4 weir_cuda_int4
#define uint2 weir_cuda_uint2
#define uint4 weir_cuda_uint4

#define WEIR_CUDA_VECTOR2(vector, scalar, make)                            \
    struct __align__(8) vector                                             \
    {                                                                      \
        scalar x, y;                                                       \
        vector() = default;                                                \
        __device__ __forceinline__ vector(scalar a, scalar b) : x(a), y(b) \
        {                                                                  \
        }                                                                  \
    };                                                                     \
    WEIR_FN vector make(scalar a, scalar b)                                \
    {                                                                      \
        return vector(a, b);                                               \
    }                                                                      \
    WEIR_CUDA_VECTOR2_OPERATOR(vector, scalar, +)                          \
    WEIR_CUDA_VECTOR2_OPERATOR(vector, scalar, -)                          \
    WEIR_CUDA_VECTOR2_OPERATOR(vector, scalar, *)
#define WEIR_CUDA_VECTOR2_OPERATOR(vector, scalar, op) \
    WEIR_FN vector operator op(vector a, vector b)     \
    {                                                  \
        return vector(a.x op b.x, a.y op b.y);         \
    }                                                  \
    WEIR_FN vector operator op(vector a, scalar b)     \
    {                                                  \
        return vector(a.x op b, a.y op b);             \
    }
WEIR_CUDA_VECTOR2(float2, float, weir_float2)
WEIR_CUDA_VECTOR2(int2, int, weir_int2)
WEIR_CUDA_VECTOR2(uint2, uint, weir_uint2)
#undef WEIR_CUDA_VECTOR2_OPERATOR
#undef WEIR_CUDA_VECTOR2

#define WEIR_CUDA_VECTOR4(vector, scalar, make)                                   \
    struct __align__(16) vector                                                   \
    {                                                                             \
        scalar x, y, z, w;                                                        \
        vector() = default;                                                       \
        __device__ __forceinline__ vector(scalar a, scalar b, scalar c, scalar d) \
            : x(a), y(b), z(c), w(d)                                              \
        {                                                                         \
        }                                                                         \
    };                                                                            \
    WEIR_FN vector make(scalar a, scalar b, scalar c, scalar d)                   \
    {                                                                             \
        return vector(a, b, c, d);                                                \
    }                                                                             \
    WEIR_CUDA_VECTOR4_OPERATOR(vector, scalar, +)                                 \
    WEIR_CUDA_VECTOR4_OPERATOR(vector, scalar, -)                                 \
    WEIR_CUDA_VECTOR4_OPERATOR(vector, scalar, *)
#define WEIR_CUDA_VECTOR4_OPERATOR(vector, scalar, op)                 \
    WEIR_FN vector operator op(vector a, vector b)                     \
    {                                                                  \
        return vector(a.x op b.x, a.y op b.y, a.z op b.z, a.w op b.w); \
    }                                                                  \
    WEIR_FN vector operator op(vector a, scalar b)                     \
    {                                                                  \
        return vector(a.x op b, a.y op b, a.z op b, a.w op b);         \
    }
WEIR_CUDA_VECTOR4(float4, float, weir_float4)
WEIR_CUDA_VECTOR4(int4, int, weir_int4)
WEIR_CUDA_VECTOR4(uint4, uint, weir_uint4)
#undef WEIR_CUDA_VECTOR4_OPERATOR
#undef WEIR_CUDA_VECTOR4

#endif
