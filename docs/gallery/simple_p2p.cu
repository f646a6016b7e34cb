// To the first device, over to the second, work there, and back the same way.
#include <cstdio>

#include "check.cuh"

__global__ void twice(int *numbers, unsigned count)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        numbers[i] *= 2;
}

enum {
    COUNT = 1 << 20
};

int main()
{
    const size_t bytes = COUNT * sizeof(int);
    cudaStream_t streams[2];
    cudaEvent_t sent, worked;
    int *host, *memory[2], devices, reach;

    CHECK(cudaGetDeviceCount(&devices));
    if (devices < 2) {
        fprintf(stderr, "simple_p2p: there is one device, and it needs two\n");
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        CHECK(cudaSetDevice(i));
        CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        CHECK(cudaMalloc(&memory[i], bytes));
        CHECK(cudaDeviceCanAccessPeer(&reach, i, 1 - i));
        if (reach)
            CHECK(cudaDeviceEnablePeerAccess(1 - i, 0));
    }
    CHECK(cudaEventCreateWithFlags(&worked, cudaEventDisableTiming));
    CHECK(cudaSetDevice(0));
    CHECK(cudaEventCreateWithFlags(&sent, cudaEventDisableTiming));
    CHECK(cudaMallocHost(&host, bytes));
    for (int i = 0; i < COUNT; i++)
        host[i] = i;

    CHECK(cudaMemcpyAsync(memory[0], host, bytes, cudaMemcpyHostToDevice, streams[0]));
    CHECK(cudaMemcpyPeerAsync(memory[1], 1, memory[0], 0, bytes, streams[0]));
    CHECK(cudaEventRecord(sent, streams[0]));
    CHECK(cudaSetDevice(1));
    CHECK(cudaStreamWaitEvent(streams[1], sent, 0));
    twice<<<(COUNT + 255) / 256, 256, 0, streams[1]>>>(memory[1], COUNT);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyPeerAsync(memory[0], 0, memory[1], 1, bytes, streams[1]));
    CHECK(cudaEventRecord(worked, streams[1]));
    CHECK(cudaSetDevice(0));
    CHECK(cudaStreamWaitEvent(streams[0], worked, 0));
    CHECK(cudaMemcpyAsync(host, memory[0], bytes, cudaMemcpyDeviceToHost, streams[0]));
    CHECK(cudaStreamSynchronize(streams[0]));

    unsigned wrong = 0;
    for (int i = 0; i < COUNT; i++)
        wrong += host[i] != 2 * i;
    printf("over two devices and back, %u wrong\n", wrong);

    CHECK(cudaFreeHost(host));
    CHECK(cudaEventDestroy(sent));
    CHECK(cudaEventDestroy(worked));
    for (int i = 0; i < 2; i++) {
        CHECK(cudaSetDevice(i));
        CHECK(cudaFree(memory[i]));
        CHECK(cudaStreamDestroy(streams[i]));
    }
    return wrong != 0;
}
