// CUDA's own declarations, for `clang -x cuda -fsyntax-only` on a machine
// without a CUDA toolkit. Only those that cuda.h uses, so that a kernel that
// leaves the dialect fails to build everywhere and not only where nvcc is
// installed.

#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __align__(n) __attribute__((aligned(n)))
#define __forceinline__ inline
#define __launch_bounds__(n) __attribute__((launch_bounds(n)))

typedef __SIZE_TYPE__ size_t;

struct weir_check_extent {
    unsigned x, y, z;
};
extern const __device__ weir_check_extent threadIdx, blockIdx, blockDim, gridDim;

__device__ void __syncthreads();
__device__ float fmaf(float, float, float);
__device__ float fabsf(float);
__device__ float fminf(float, float);
__device__ float fmaxf(float, float);
__device__ float floorf(float);
__device__ float ceilf(float);
__device__ float truncf(float);
__device__ float rintf(float);
__device__ float sqrtf(float);
__device__ float expf(float);
__device__ float exp2f(float);
__device__ float logf(float);
__device__ float log2f(float);
__device__ float powf(float, float);
__device__ float sinf(float);
__device__ float cosf(float);
__device__ float atan2f(float, float);
__device__ int __float_as_int(float);
__device__ unsigned __float_as_uint(float);
__device__ float __int_as_float(int);
__device__ float __uint_as_float(unsigned);

#define WEIR_CHECK_ATOMIC(name)       \
    __device__ int name(int *, int);  \
    __device__ unsigned name(unsigned *, unsigned);
WEIR_CHECK_ATOMIC(atomicAdd)
WEIR_CHECK_ATOMIC(atomicMin)
WEIR_CHECK_ATOMIC(atomicMax)
WEIR_CHECK_ATOMIC(atomicOr)
#undef WEIR_CHECK_ATOMIC
