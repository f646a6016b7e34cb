// The graph job through the CUDA driver API.
#include "tests/bench/peers/graph_job.h"
#include "tests/bench/peers/raw_cuda.h"

struct raw {
    struct raw_cuda cu;
    CUfunction increment;
    CUdeviceptr counter;
    CUstream stream;
    CUgraph graphs[GRAPHS];
    CUgraphExec executables[GRAPHS];
};

// The calls of the job.

static bool launch(void *user, uint32_t count)
{
    struct raw *raw = user;
    uint32_t by = 1;
    void *arguments[] = {&raw->counter, &by, &count};
    return RAW_CUDA(&raw->cu, cuLaunchKernel, raw->increment, 1, 1, 1, 1, 1, 1, 0, raw->stream,
                    arguments, NULL);
}

static bool capture(void *user, unsigned graph, unsigned length, uint32_t count)
{
    struct raw *raw = user;
    bool fine =
        RAW_CUDA(&raw->cu, cuStreamBeginCapture, raw->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    for (unsigned i = 0; fine && i < length; i++)
        fine = launch(raw, count);
    return fine && RAW_CUDA(&raw->cu, cuStreamEndCapture, raw->stream, &raw->graphs[graph]) &&
           RAW_CUDA(&raw->cu, cuGraphInstantiate, &raw->executables[graph], raw->graphs[graph], 0);
}

static void destroy(void *user, unsigned graph)
{
    struct raw *raw = user;
    if (raw->executables[graph])
        raw->cu.cuGraphExecDestroy(raw->executables[graph]);
    if (raw->graphs[graph])
        raw->cu.cuGraphDestroy(raw->graphs[graph]);
    raw->executables[graph] = NULL;
    raw->graphs[graph] = NULL;
}

static bool launch_graph(void *user, unsigned graph)
{
    struct raw *raw = user;
    return RAW_CUDA(&raw->cu, cuGraphLaunch, raw->executables[graph], raw->stream);
}

static bool finish(void *user)
{
    struct raw *raw = user;
    return RAW_CUDA(&raw->cu, cuStreamSynchronize, raw->stream);
}

static bool set_counter(void *user, uint32_t value)
{
    struct raw *raw = user;
    return RAW_CUDA(&raw->cu, cuMemcpyHtoDAsync, raw->counter, &value, sizeof value, raw->stream) &&
           finish(raw);
}

static bool get_counter(void *user, uint32_t *out_value)
{
    struct raw *raw = user;
    return RAW_CUDA(&raw->cu, cuMemcpyDtoHAsync, out_value, raw->counter, sizeof *out_value,
                    raw->stream) &&
           finish(raw);
}

static const struct graph_calls calls = {
    .launch = launch,
    .capture = capture,
    .destroy = destroy,
    .launch_graph = launch_graph,
    .finish = finish,
    .set_counter = set_counter,
    .get_counter = get_counter,
};

// The peer.

static bool open_raw(void *user)
{
    struct raw *raw = user;
    struct raw_cuda *cu = &raw->cu;
    return raw_cuda_open(cu) &&
           RAW_CUDA(cu, cuModuleGetFunction, &raw->increment, cu->module, "increment") &&
           RAW_CUDA(cu, cuMemAlloc, &raw->counter, 256) &&
           RAW_CUDA(cu, cuStreamCreate, &raw->stream, CU_STREAM_NON_BLOCKING) &&
           graph_open(&calls, raw);
}

static bool round_raw(void *user)
{
    return graph_round(&calls, user);
}

static void close_raw(void *user)
{
    struct raw *raw = user;
    struct raw_cuda *cu = &raw->cu;
    graph_close(&calls, raw);
    if (raw->stream)
        cu->cuStreamDestroy(raw->stream);
    if (raw->counter)
        cu->cuMemFree(raw->counter);
    raw_cuda_close(cu);
}

int main(int argc, char **argv)
{
    static struct raw raw;
    const struct peer peer = {
        .name = "raw_cuda_graph",
        .about = "Launches chains of empty kernels as CUDA graphs and one by one.",
        .open = open_raw,
        .round = round_raw,
        .close = close_raw,
    };
    return peer_main(&peer, &raw, argc, argv);
}
