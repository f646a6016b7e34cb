// The same work in small blocks, and in blocks of the size that fills the device.
#include <cstdio>
#include <vector>

#include "check.cuh"

__global__ void square(int *numbers, unsigned count)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        numbers[i] *= numbers[i];
}

enum {
    COUNT = 1 << 18,
    SMALL = 32
};

static unsigned run(cudaStream_t stream, int *memory, int block)
{
    std::vector<int> numbers(COUNT);
    cudaDeviceProp properties;
    unsigned wrong = 0;
    int blocks;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, square, block, 0));
    printf("blocks of %d: %d to a multiprocessor, %d of %d threads\n", block, blocks,
           blocks * block, properties.maxThreadsPerMultiProcessor);
    for (int i = 0; i < COUNT; i++)
        numbers[i] = i % 1000;
    CHECK(cudaMemcpyAsync(memory, numbers.data(), COUNT * sizeof(int), cudaMemcpyHostToDevice,
                          stream));
    square<<<(COUNT + block - 1) / block, block, 0, stream>>>(memory, COUNT);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(numbers.data(), memory, COUNT * sizeof(int), cudaMemcpyDeviceToHost,
                          stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < COUNT; i++)
        wrong += numbers[i] != (i % 1000) * (i % 1000);
    return wrong;
}

int main()
{
    cudaStream_t stream;
    int *memory, grid, block;
    CHECK(cudaSetDevice(0));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&memory, COUNT * sizeof(int)));
    CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, square, 0, 0));

    unsigned wrong = run(stream, memory, SMALL);
    wrong += run(stream, memory, block);
    printf("both ways, %u wrong\n", wrong);

    CHECK(cudaFree(memory));
    CHECK(cudaStreamDestroy(stream));
    return wrong != 0;
}
