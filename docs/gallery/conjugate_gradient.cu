// Conjugate gradients: the loop's body is captured once, and the host looks at every eighth residue.
#include <cmath>
#include <cstdio>
#include <vector>

#include "check.cuh"

__global__ void apply(const float *p, float *q, unsigned count)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        q[i] = 4 * p[i] - (i > 0 ? p[i - 1] : 0) - (i + 1 < count ? p[i + 1] : 0);
}

// For one block, of a power of two of threads.
__global__ void dot_product(const float *a, const float *b, float *out, unsigned count)
{
    extern __shared__ float scratch[];
    const unsigned t = threadIdx.x;
    float sum = 0;
    for (unsigned i = t; i < count; i += blockDim.x)
        sum += a[i] * b[i];
    scratch[t] = sum;
    __syncthreads();
    for (unsigned step = blockDim.x / 2; step > 0; step /= 2) {
        if (t < step)
            scratch[t] += scratch[t + step];
        __syncthreads();
    }
    if (t == 0)
        *out = scratch[0];
}

__global__ void move(float *x, float *r, const float *p, const float *q, const float *rr,
                     const float *pq, unsigned count)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const float alpha = *pq > 0 ? *rr / *pq : 0;
    if (i < count) {
        x[i] += alpha * p[i];
        r[i] -= alpha * q[i];
    }
}

__global__ void turn(float *p, const float *r, const float *rr, const float *before, unsigned count)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const float beta = *before > 0 ? *rr / *before : 0;
    if (i < count)
        p[i] = r[i] + beta * p[i];
}

enum {
    COUNT = 4096,
    BLOCK = 256,
    MOST = 64
};

enum {
    X,
    R,
    P,
    Q,
    RR,
    BEFORE,
    PQ,
    VECTORS
};

static void dot(cudaStream_t stream, const float *a, const float *b, float *out)
{
    dot_product<<<1, BLOCK, BLOCK * sizeof(float), stream>>>(a, b, out, COUNT);
    CHECK(cudaGetLastError());
}

static void iterate(cudaStream_t stream, float **v)
{
    CHECK(cudaMemcpyAsync(v[BEFORE], v[RR], sizeof(float), cudaMemcpyDeviceToDevice, stream));
    apply<<<COUNT / BLOCK, BLOCK, 0, stream>>>(v[P], v[Q], COUNT);
    CHECK(cudaGetLastError());
    dot(stream, v[P], v[Q], v[PQ]);
    move<<<COUNT / BLOCK, BLOCK, 0, stream>>>(v[X], v[R], v[P], v[Q], v[RR], v[PQ], COUNT);
    CHECK(cudaGetLastError());
    dot(stream, v[R], v[R], v[RR]);
    turn<<<COUNT / BLOCK, BLOCK, 0, stream>>>(v[P], v[R], v[RR], v[BEFORE], COUNT);
    CHECK(cudaGetLastError());
}

int main()
{
    const size_t bytes = COUNT * sizeof(float);
    std::vector<float> b(COUNT), x(COUNT);
    cudaStream_t stream;
    cudaGraph_t captured;
    cudaGraphExec_t graph;
    float *v[VECTORS], residue = 1;
    int iterations = 0, wrong = 0;

    CHECK(cudaSetDevice(0));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < VECTORS; i++)
        CHECK(cudaMalloc(&v[i], i < RR ? bytes : sizeof(float)));
    for (int i = 0; i < COUNT; i++)
        b[i] = (float)(i * 37 % 101) / 101;
    CHECK(cudaMemsetAsync(v[X], 0, bytes, stream));
    CHECK(cudaMemcpyAsync(v[R], b.data(), bytes, cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemcpyAsync(v[P], b.data(), bytes, cudaMemcpyHostToDevice, stream));
    dot(stream, v[R], v[R], v[RR]);

    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    iterate(stream, v);
    CHECK(cudaStreamEndCapture(stream, &captured));
    CHECK(cudaGraphInstantiate(&graph, captured, 0));
    while (residue > 1e-9f && iterations < MOST) {
        for (int i = 0; i < 8; i++, iterations++)
            CHECK(cudaGraphLaunch(graph, stream));
        CHECK(cudaMemcpyAsync(&residue, v[RR], sizeof residue, cudaMemcpyDeviceToHost, stream));
        CHECK(cudaStreamSynchronize(stream));
    }

    CHECK(cudaMemcpyAsync(x.data(), v[X], bytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 1; i < COUNT - 1; i++)
        wrong += !(std::fabs(4 * x[i] - x[i - 1] - x[i + 1] - b[i]) < 1e-4f);
    printf("%d iterations, residue %.1e, %d wrong\n", iterations, residue, wrong);

    CHECK(cudaGraphExecDestroy(graph));
    CHECK(cudaGraphDestroy(captured));
    for (int i = 0; i < VECTORS; i++)
        CHECK(cudaFree(v[i]));
    CHECK(cudaStreamDestroy(stream));
    return wrong != 0 || residue > 1e-9f;
}
