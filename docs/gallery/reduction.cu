// The sum of an array: one for each block, and then of these.
#include <cstdio>
#include <vector>

#include "check.cuh"

// Each block writes its sum; the number of its threads is a power of two.
__global__ void sum(const unsigned *in, unsigned *out, unsigned count)
{
    extern __shared__ unsigned scratch[];
    const unsigned t = threadIdx.x;
    unsigned mine = 0;
    for (unsigned i = blockIdx.x * blockDim.x + t; i < count; i += blockDim.x * gridDim.x)
        mine += in[i];
    scratch[t] = mine;
    __syncthreads();
    for (unsigned step = blockDim.x / 2; step > 0; step /= 2) {
        if (t < step)
            scratch[t] += scratch[t + step];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = scratch[0];
}

enum {
    COUNT = 1 << 20,
    BLOCKS = 64,
    BLOCK = 256
};

int main()
{
    std::vector<unsigned> numbers(COUNT);
    unsigned expected = 0, found;
    cudaStream_t stream;
    unsigned *in, *parts, *total;
    for (unsigned i = 0; i < COUNT; i++)
        expected += numbers[i] = i * 2654435761u;

    CHECK(cudaSetDevice(0));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&in, COUNT * sizeof(unsigned)));
    CHECK(cudaMalloc(&parts, BLOCKS * sizeof(unsigned)));
    CHECK(cudaMalloc(&total, sizeof(unsigned)));

    CHECK(cudaMemcpyAsync(in, numbers.data(), COUNT * sizeof(unsigned), cudaMemcpyHostToDevice,
                          stream));
    sum<<<BLOCKS, BLOCK, BLOCK * sizeof(unsigned), stream>>>(in, parts, COUNT);
    CHECK(cudaGetLastError());
    sum<<<1, BLOCK, BLOCK * sizeof(unsigned), stream>>>(parts, total, BLOCKS);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(&found, total, sizeof found, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    printf("the sum is %u, %d wrong\n", found, found != expected);

    CHECK(cudaFree(in));
    CHECK(cudaFree(parts));
    CHECK(cudaFree(total));
    CHECK(cudaStreamDestroy(stream));
    return found != expected;
}
