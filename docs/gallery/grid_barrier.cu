// Many steps in one launch: all blocks wait for each other after each.
#include <cmath>
#include <cooperative_groups.h>
#include <cstdio>
#include <vector>

#include "check.cuh"

// Each number becomes the mean of its neighbours, `steps` times; an even number of steps ends in `a`.
__global__ void relax(float *a, float *b, unsigned count, unsigned steps)
{
    const unsigned first = blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned step = 0; step < steps; step++) {
        const float *from = step % 2 == 0 ? a : b;
        float *to = step % 2 == 0 ? b : a;
        for (unsigned i = first; i < count; i += blockDim.x * gridDim.x)
            to[i] = 0.5f * (from[i > 0 ? i - 1 : 0] + from[i + 1 < count ? i + 1 : i]);
        cooperative_groups::this_grid().sync();
    }
}

enum {
    COUNT = 1 << 14,
    STEPS = 16,
    BLOCK = 256
};

static std::vector<float> relax_here(std::vector<float> a)
{
    std::vector<float> b(a);
    for (unsigned step = 0; step < STEPS; step++, a.swap(b))
        for (unsigned i = 0; i < COUNT; i++)
            b[i] = 0.5f * (a[i > 0 ? i - 1 : 0] + a[i + 1 < COUNT ? i + 1 : i]);
    return a;
}

int main()
{
    const size_t bytes = COUNT * sizeof(float);
    std::vector<float> numbers(COUNT);
    cudaStream_t stream;
    cudaDeviceProp properties;
    unsigned count = COUNT, steps = STEPS, wrong = 0;
    int blocks, cooperative;
    float *a, *b;
    for (int i = 0; i < COUNT; i++)
        numbers[i] = (float)(i * 37 % 101);
    const std::vector<float> expected = relax_here(numbers);

    CHECK(cudaSetDevice(0));
    CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
    if (!cooperative) {
        fprintf(stderr, "grid_barrier: blocks of this device cannot wait for each other\n");
        return 1;
    }
    CHECK(cudaGetDeviceProperties(&properties, 0));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, relax, BLOCK, 0));
    blocks *= properties.multiProcessorCount;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&a, bytes));
    CHECK(cudaMalloc(&b, bytes));

    void *arguments[] = {&a, &b, &count, &steps};
    CHECK(cudaMemcpyAsync(a, numbers.data(), bytes, cudaMemcpyHostToDevice, stream));
    CHECK(cudaLaunchCooperativeKernel(relax, dim3(blocks), dim3(BLOCK), arguments, 0, stream));
    CHECK(cudaMemcpyAsync(numbers.data(), a, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < COUNT; i++)
        wrong += !(std::fabs(numbers[i] - expected[i]) < 1e-3f);
    printf("%d steps in one launch, %u wrong\n", STEPS, wrong);

    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    CHECK(cudaStreamDestroy(stream));
    return wrong != 0;
}
