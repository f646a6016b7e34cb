// Four workers, whose results a function of the host checks as soon as they are there.
#include <cstdio>

#include "check.cuh"

__global__ void twice(int *numbers, unsigned count)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        numbers[i] *= 2;
}

enum {
    COUNT = 1 << 18,
    WORKERS = 4
};

struct worker {
    cudaStream_t stream;
    int *host, *memory;
    unsigned wrong;
};

static void CUDART_CB check(void *user)
{
    struct worker *worker = (struct worker *)user;
    for (int i = 0; i < COUNT; i++)
        worker->wrong += worker->host[i] != 2 * i;
}

static void submit(struct worker *worker)
{
    const size_t bytes = COUNT * sizeof(int);
    CHECK(cudaStreamCreateWithFlags(&worker->stream, cudaStreamNonBlocking));
    CHECK(cudaMallocHost(&worker->host, bytes));
    CHECK(cudaMalloc(&worker->memory, bytes));
    for (int i = 0; i < COUNT; i++)
        worker->host[i] = i;
    CHECK(cudaMemcpyAsync(worker->memory, worker->host, bytes, cudaMemcpyHostToDevice,
                          worker->stream));
    twice<<<(COUNT + 255) / 256, 256, 0, worker->stream>>>(worker->memory, COUNT);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(worker->host, worker->memory, bytes, cudaMemcpyDeviceToHost,
                          worker->stream));
    CHECK(cudaLaunchHostFunc(worker->stream, check, worker));
}

static unsigned finish(struct worker *worker)
{
    CHECK(cudaStreamSynchronize(worker->stream));
    CHECK(cudaFreeHost(worker->host));
    CHECK(cudaFree(worker->memory));
    CHECK(cudaStreamDestroy(worker->stream));
    return worker->wrong;
}

int main()
{
    struct worker workers[WORKERS] = {};
    unsigned wrong = 0;
    CHECK(cudaSetDevice(0));
    for (int i = 0; i < WORKERS; i++)
        submit(&workers[i]);
    for (int i = 0; i < WORKERS; i++)
        wrong += finish(&workers[i]);
    printf("%d workers, %u wrong\n", WORKERS, wrong);
    return wrong != 0;
}
