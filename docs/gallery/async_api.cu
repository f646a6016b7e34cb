// The host counts while the device adds.
#include <cstdio>
#include <cstring>

#include "check.cuh"

__global__ void add(int *numbers, int value, unsigned count)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        numbers[i] += value;
}

int main()
{
    const unsigned count = 1 << 20;
    const size_t bytes = count * sizeof(int);
    cudaStream_t stream;
    cudaEvent_t begin, end;
    int *host, *memory;
    unsigned long rounds = 0;
    float elapsed_ms;
    cudaError_t status;

    CHECK(cudaSetDevice(0));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaMallocHost(&host, bytes));
    CHECK(cudaMalloc(&memory, bytes));
    memset(host, 0, bytes);

    CHECK(cudaEventRecord(begin, stream));
    CHECK(cudaMemcpyAsync(memory, host, bytes, cudaMemcpyHostToDevice, stream));
    add<<<(count + 255) / 256, 256, 0, stream>>>(memory, 26, count);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(host, memory, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaEventRecord(end, stream));

    while ((status = cudaEventQuery(end)) == cudaErrorNotReady)
        rounds++; // what the host has to do
    CHECK(status);
    CHECK(cudaEventElapsedTime(&elapsed_ms, begin, end));

    unsigned wrong = 0;
    for (unsigned i = 0; i < count; i++)
        wrong += host[i] != 26;
    printf("%.3f ms on the device, %lu rounds on the host, %u wrong\n", elapsed_ms, rounds, wrong);

    CHECK(cudaFreeHost(host));
    CHECK(cudaFree(memory));
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    CHECK(cudaStreamDestroy(stream));
    return wrong != 0;
}
