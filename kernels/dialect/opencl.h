// The dialect on OpenCL C. Prepended to every kernel source; docs/kernels.md
// lists what a kernel may use, and cuda.h defines the same names for nvcc.

#ifndef WEIR_DIALECT
#define WEIR_DIALECT 1

// a * b + c rounds twice, as with nvcc; fma() rounds once. Not every driver
// complies: PoCL 3.1's code generator fuses regardless (measured).
#pragma OPENCL FP_CONTRACT OFF

// Always inlined, as in cuda.h: PoCL 3.1 ignores the barriers of a function that
// is called twice and not inlined, and every result of it is then wrong.
#define WEIR_FN static inline __attribute__((always_inline))
#define WEIR_BLOCK(x, y, z) __attribute__((reqd_work_group_size(x, y, z)))
#define WEIR_LOCAL_PTR(type) __local type *
#define WEIR_LOCAL_PARAM(type) __local type *

#define weir_as_int(x) as_int(x)
#define weir_as_uint(x) as_uint(x)
#define weir_as_float(x) as_float(x)
#define weir_fma(a, b, c) fma(a, b, c)

#define weir_float2(a, b) ((float2)((a), (b)))
#define weir_float4(a, b, c, d) ((float4)((a), (b), (c), (d)))
#define weir_int2(a, b) ((int2)((a), (b)))
#define weir_int4(a, b, c, d) ((int4)((a), (b), (c), (d)))
#define weir_uint2(a, b) ((uint2)((a), (b)))
#define weir_uint4(a, b, c, d) ((uint4)((a), (b), (c), (d)))

#endif
