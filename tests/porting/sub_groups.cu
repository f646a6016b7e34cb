// The warps of sub_groups.cl before it was ported.
typedef size_t weir_local;

extern "C" __global__ void warps(const unsigned *in, unsigned *out, weir_local scratch)
{
    const unsigned all = 0xffffffff;
    unsigned x = in[blockIdx.x * blockDim.x + threadIdx.x], lane = threadIdx.x % 32;
    unsigned wrong = 0, sum = 1;
    wrong |= warpSize < 32;
    wrong |= __shfl_sync(all, x, 0) != x - lane;
    wrong |= __shfl_xor_sync(all, x, 1) != ((x - 1) ^ 1) + 1;
    unsigned down = __shfl_down_sync(all, x, 1), up = __shfl_up_sync(all, x, 1);
    wrong |= lane + 1 < warpSize && down != x + 1;
    wrong |= lane > 0 && up != x - 1;
    wrong |= __popc(__ballot_sync(all, lane < 5)) != 5 || __activemask() != all;
    wrong |= !__any_sync(all, lane == 3) || __all_sync(all, lane == 3);
    for (int s = 16; s > 0; s /= 2)
        sum += __shfl_xor_sync(all, sum, s);
    wrong |= sum != warpSize;
#if __CUDA_ARCH__ >= 800
    wrong |= __reduce_add_sync(all, 1u) != warpSize;
#endif
    __syncwarp();
    out[blockIdx.x * blockDim.x + threadIdx.x] = wrong;
}
