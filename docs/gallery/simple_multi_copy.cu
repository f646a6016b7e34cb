// Sixteen frames through four slots: up, work and down at once.
#include <cstdio>
#include <cstring>

#include "check.cuh"

__global__ void add(const int *in, int *out, int value)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] + value;
}

enum {
    COUNT = 1 << 16,
    FRAMES = 16,
    SLOTS = 4,
    BLOCK = 256
};

struct slot {
    cudaStream_t stream;
    int *in, *out; // on the device
    int *sent, *received;
};

static void slot_create(struct slot *slot)
{
    const size_t bytes = COUNT * sizeof(int);
    CHECK(cudaStreamCreateWithFlags(&slot->stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&slot->in, bytes));
    CHECK(cudaMalloc(&slot->out, bytes));
    CHECK(cudaMallocHost(&slot->sent, bytes));
    CHECK(cudaMallocHost(&slot->received, bytes));
}

static void slot_destroy(struct slot *slot)
{
    CHECK(cudaStreamDestroy(slot->stream));
    CHECK(cudaFree(slot->in));
    CHECK(cudaFree(slot->out));
    CHECK(cudaFreeHost(slot->sent));
    CHECK(cudaFreeHost(slot->received));
}

static void submit(struct slot *slot, int frame)
{
    const size_t bytes = COUNT * sizeof(int);
    for (int i = 0; i < COUNT; i++)
        slot->sent[i] = frame * i;
    CHECK(cudaMemcpyAsync(slot->in, slot->sent, bytes, cudaMemcpyHostToDevice, slot->stream));
    add<<<COUNT / BLOCK, BLOCK, 0, slot->stream>>>(slot->in, slot->out, frame);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(slot->received, slot->out, bytes, cudaMemcpyDeviceToHost, slot->stream));
}

static unsigned finish(struct slot *slot, int frame)
{
    unsigned wrong = 0;
    CHECK(cudaStreamSynchronize(slot->stream));
    for (int i = 0; i < COUNT; i++)
        wrong += slot->received[i] != frame * i + frame;
    return wrong;
}

int main()
{
    struct slot slots[SLOTS];
    unsigned wrong = 0;
    CHECK(cudaSetDevice(0));
    for (int i = 0; i < SLOTS; i++)
        slot_create(&slots[i]);

    for (int frame = 0; frame < FRAMES + SLOTS; frame++) {
        if (frame >= SLOTS)
            wrong += finish(&slots[frame % SLOTS], frame - SLOTS);
        if (frame < FRAMES)
            submit(&slots[frame % SLOTS], frame);
    }
    printf("%d frames, %u wrong\n", FRAMES, wrong);

    for (int i = 0; i < SLOTS; i++)
        slot_destroy(&slots[i]);
    return wrong != 0;
}
