// own.cl as CUDA C++.
#define __kernel extern "C" __global__
#define __global
#define __local __shared__
#define BLOCK_OF_16 __launch_bounds__(256)
#define get_global_id(d) (blockIdx.x * blockDim.x + threadIdx.x)
#define get_local_id(d) (d ? threadIdx.y : threadIdx.x)
#define get_group_id(d) (d ? blockIdx.y : blockIdx.x)
#define barrier(fence) __syncthreads()
#include "own.cl"
