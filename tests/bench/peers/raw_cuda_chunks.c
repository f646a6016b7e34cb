// The chunk job through the CUDA driver API.
#include <string.h>

#include "tests/bench/peers/chunk_job.h"
#include "tests/bench/peers/raw_peer.h"

struct raw {
    struct raw_cuda cu;
    uint64_t bytes;
    CUfunction scale;
    CUdeviceptr in, out;
    CUstream streams[CHUNK_QUEUES_MAX];
    unsigned stream_count;
    CUevent events[CHUNK_EVENTS];
    CUevent fork, ends[CHUNK_QUEUES_MAX]; // of a capture
    CUgraph graph;
    CUgraphExec executable;
    struct chunk_job job;
};

// The calls of the job.

static void close_queues(void *user)
{
    struct raw *raw = user;
    if (raw->executable)
        raw->cu.cuGraphExecDestroy(raw->executable);
    if (raw->graph)
        raw->cu.cuGraphDestroy(raw->graph);
    raw->executable = NULL;
    raw->graph = NULL;
    while (raw->stream_count > 0)
        raw->cu.cuStreamDestroy(raw->streams[--raw->stream_count]);
}

static bool open_queues(void *user, unsigned count)
{
    struct raw *raw = user;
    for (raw->stream_count = 0; raw->stream_count < count; raw->stream_count++)
        if (!RAW_CUDA(&raw->cu, cuStreamCreateWithPriority, &raw->streams[raw->stream_count],
                      CU_STREAM_NON_BLOCKING, 0))
            return false;
    return true;
}

static bool up(void *user, unsigned queue, size_t offset, size_t size)
{
    struct raw *raw = user;
    return RAW_CUDA(&raw->cu, cuMemcpyHtoDAsync, raw->in + offset,
                    (const char *)raw->job.src + offset, size, raw->streams[queue]);
}

static bool multiply(void *user, unsigned queue, size_t offset, size_t size, float factor)
{
    struct raw *raw = user;
    CUdeviceptr in = raw->in + offset, out = raw->out + offset;
    uint32_t count = (uint32_t)(size / sizeof(float));
    void *arguments[] = {&in, &out, &factor, &count};
    return RAW_CUDA(&raw->cu, cuLaunchKernel, raw->scale, (count + CHUNK_BLOCK - 1) / CHUNK_BLOCK,
                    1, 1, CHUNK_BLOCK, 1, 1, 0, raw->streams[queue], arguments, NULL);
}

static bool copy_down(struct raw *raw, CUdeviceptr from, unsigned queue, size_t offset, size_t size)
{
    return RAW_CUDA(&raw->cu, cuMemcpyDtoHAsync, (char *)raw->job.dst + offset, from + offset, size,
                    raw->streams[queue]);
}

static bool down(void *user, unsigned queue, size_t offset, size_t size)
{
    struct raw *raw = user;
    return copy_down(raw, raw->out, queue, offset, size);
}

static bool record(void *user, unsigned queue, unsigned event)
{
    struct raw *raw = user;
    return RAW_CUDA(&raw->cu, cuEventRecord, raw->events[event], raw->streams[queue]);
}

static bool wait(void *user, unsigned queue, unsigned event)
{
    struct raw *raw = user;
    return RAW_CUDA(&raw->cu, cuStreamWaitEvent, raw->streams[queue], raw->events[event], 0);
}

static bool flush(void *user, unsigned queue)
{
    (void)user;
    (void)queue;
    return true;
}

static bool finish(void *user)
{
    struct raw *raw = user;
    bool fine = true;
    for (unsigned i = 0; fine && i < raw->stream_count; i++)
        fine = RAW_CUDA(&raw->cu, cuStreamSynchronize, raw->streams[i]);
    return fine;
}

static bool spoil(void *user)
{
    struct raw *raw = user;
    return RAW_CUDA(&raw->cu, cuMemsetD8Async, raw->in, 0xff, raw->job.size, raw->streams[0]) &&
           RAW_CUDA(&raw->cu, cuMemsetD8Async, raw->out, 0xff, raw->job.size, raw->streams[0]) &&
           RAW_CUDA(&raw->cu, cuStreamSynchronize, raw->streams[0]);
}

static bool capture(void *user)
{
    struct raw *raw = user;
    bool fine =
        RAW_CUDA(&raw->cu, cuStreamBeginCapture, raw->streams[0], CU_STREAM_CAPTURE_MODE_RELAXED) &&
        RAW_CUDA(&raw->cu, cuEventRecord, raw->fork, raw->streams[0]);
    for (unsigned i = 1; fine && i < raw->stream_count; i++)
        fine = RAW_CUDA(&raw->cu, cuStreamWaitEvent, raw->streams[i], raw->fork, 0);
    return fine;
}

static bool end_capture(void *user)
{
    struct raw *raw = user;
    bool fine = true;
    for (unsigned i = 1; fine && i < raw->stream_count; i++)
        fine = RAW_CUDA(&raw->cu, cuEventRecord, raw->ends[i], raw->streams[i]) &&
               RAW_CUDA(&raw->cu, cuStreamWaitEvent, raw->streams[0], raw->ends[i], 0);
    return fine && RAW_CUDA(&raw->cu, cuStreamEndCapture, raw->streams[0], &raw->graph) &&
           RAW_CUDA(&raw->cu, cuGraphInstantiateWithFlags, &raw->executable, raw->graph, 0);
}

static bool launch(void *user)
{
    struct raw *raw = user;
    return RAW_CUDA(&raw->cu, cuGraphLaunch, raw->executable, raw->streams[0]);
}

static const struct chunk_calls calls = {
    .open = open_queues,
    .close = close_queues,
    .up = up,
    .multiply = multiply,
    .down = down,
    .down_bare = down,
    .record = record,
    .wait = wait,
    .flush = flush,
    .finish = finish,
    .spoil = spoil,
    .capture = capture,
    .end_capture = end_capture,
    .launch = launch,
};

// The peer.

static bool open_raw(void *user)
{
    struct raw *raw = user;
    struct raw_cuda *cu = &raw->cu;
    const size_t size = chunk_size(raw->bytes);
    raw->job = (struct chunk_job){.calls = &calls, .user = raw, .size = size};
    if (!raw_peer_cuda(cu) ||
        !RAW_CUDA(cu, cuModuleGetFunction, &raw->scale, cu->module, "scale") ||
        !RAW_CUDA(cu, cuMemAlloc, &raw->in, size) || !RAW_CUDA(cu, cuMemAlloc, &raw->out, size) ||
        !RAW_CUDA(cu, cuMemHostAlloc, (void **)&raw->job.src, size, 0) ||
        !RAW_CUDA(cu, cuMemHostAlloc, (void **)&raw->job.dst, size, 0))
        return false;
    for (unsigned i = 0; i < CHUNK_EVENTS; i++)
        if (!RAW_CUDA(cu, cuEventCreate, &raw->events[i], CU_EVENT_DISABLE_TIMING))
            return false;
    for (unsigned i = 0; i < CHUNK_QUEUES_MAX; i++)
        if (!RAW_CUDA(cu, cuEventCreate, &raw->ends[i], CU_EVENT_DISABLE_TIMING))
            return false;
    if (!RAW_CUDA(cu, cuEventCreate, &raw->fork, CU_EVENT_DISABLE_TIMING))
        return false;
    return chunk_check(&raw->job);
}

static bool round_raw(void *user)
{
    struct raw *raw = user;
    return chunk_round(&raw->job);
}

static void close_raw(void *user)
{
    struct raw *raw = user;
    struct raw_cuda *cu = &raw->cu;
    close_queues(raw);
    for (unsigned i = 0; i < CHUNK_EVENTS; i++)
        if (raw->events[i])
            cu->cuEventDestroy(raw->events[i]);
    for (unsigned i = 0; i < CHUNK_QUEUES_MAX; i++)
        if (raw->ends[i])
            cu->cuEventDestroy(raw->ends[i]);
    if (raw->fork)
        cu->cuEventDestroy(raw->fork);
    if (raw->job.src)
        cu->cuMemFreeHost(raw->job.src);
    if (raw->job.dst)
        cu->cuMemFreeHost(raw->job.dst);
    if (raw->in)
        cu->cuMemFree(raw->in);
    if (raw->out)
        cu->cuMemFree(raw->out);
    raw_cuda_close(cu);
}

int main(int argc, char **argv)
{
    static struct raw raw;
    const struct peer peer = {
        .name = "raw_cuda_chunks",
        .about = "Copies, multiplies and copies back in chunks, with the CUDA driver API.",
        .open = open_raw,
        .round = round_raw,
        .close = close_raw,
    };
    return chunk_main(&peer, &raw, &raw.bytes, argc, argv);
}
