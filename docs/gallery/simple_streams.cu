// A kernel and the copy of its result, as a whole and in four parts.
#include <cstdio>
#include <cstring>

#include "check.cuh"

__global__ void set(int *numbers, int value, unsigned count, unsigned steps)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = 0;
    for (unsigned step = 0; step < steps; step++)
        sum += value;
    if (i < count)
        numbers[i] = sum;
}

enum {
    COUNT = 1 << 20,
    PARTS = 4,
    STEPS = 5
};

static float run(cudaStream_t *streams, int parts, int value, int *host, int *memory)
{
    const unsigned count = COUNT / parts;
    const size_t size = count * sizeof(int);
    cudaEvent_t begin, end, done;
    float elapsed_ms;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    CHECK(cudaEventRecord(begin, streams[0]));
    for (int i = 0; i < parts; i++) {
        int *part = memory + (size_t)i * count;
        set<<<(count + 255) / 256, 256, 0, streams[i]>>>(part, value, count, STEPS);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpyAsync(host + (size_t)i * count, part, size, cudaMemcpyDeviceToHost,
                              streams[i]));
    }
    for (int i = 1; i < parts; i++) {
        CHECK(cudaEventRecord(done, streams[i]));
        CHECK(cudaStreamWaitEvent(streams[0], done, 0));
    }
    CHECK(cudaEventRecord(end, streams[0]));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&elapsed_ms, begin, end));
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    CHECK(cudaEventDestroy(done));
    return elapsed_ms;
}

static unsigned count_wrong(const int *host, int value)
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < COUNT; i++)
        wrong += host[i] != STEPS * value;
    return wrong;
}

int main()
{
    cudaStream_t streams[PARTS];
    int *host, *memory;

    CHECK(cudaSetDevice(0));
    for (int i = 0; i < PARTS; i++)
        CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    CHECK(cudaMallocHost(&host, COUNT * sizeof(int)));
    CHECK(cudaMalloc(&memory, COUNT * sizeof(int)));

    const float whole_ms = run(streams, 1, 3, host, memory);
    unsigned wrong = count_wrong(host, 3);
    const float parts_ms = run(streams, PARTS, 7, host, memory);
    wrong += count_wrong(host, 7);
    printf("whole %.3f ms, in parts %.3f ms, %u wrong\n", whole_ms, parts_ms, wrong);

    CHECK(cudaFreeHost(host));
    CHECK(cudaFree(memory));
    for (int i = 0; i < PARTS; i++)
        CHECK(cudaStreamDestroy(streams[i]));
    return wrong != 0;
}
