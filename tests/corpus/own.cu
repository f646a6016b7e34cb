// own.cl as CUDA C++.
#define __kernel extern "C" __global__
#define __global
#define get_global_id(d) (blockIdx.x * blockDim.x + threadIdx.x)
#include "own.cl"
