// Chains of empty kernels as CUDA graphs, and as single launches: how long a launch takes
// to submit, and to complete when launches follow one another.
#include "tests/bench/peers/peer.h"
#include "tests/bench/peers/raw_cuda.h"

#include <stdio.h>

enum {
    // Launches that are timed together; fewer than a driver queues up.
    BATCH = 200
};

static const unsigned lengths[] = {1, 5, 20, 100};

enum {
    LENGTHS = sizeof lengths / sizeof *lengths
};

struct raw {
    struct raw_cuda cu;
    CUfunction increment;
    CUdeviceptr counter;
    CUstream stream;
    CUgraph graphs[LENGTHS];
    CUgraphExec executables[LENGTHS];
};

// One work-item; with `count` 0 it does nothing.
static bool launch(struct raw *raw, uint32_t count)
{
    uint32_t by = 1;
    void *arguments[] = {&raw->counter, &by, &count};
    return RAW_CUDA(&raw->cu, cuLaunchKernel, raw->increment, 1, 1, 1, 1, 1, 1, 0, raw->stream,
                    arguments, NULL);
}

static bool capture(struct raw *raw, unsigned length, uint32_t count, CUgraph *out_graph,
                    CUgraphExec *out_executable)
{
    bool fine =
        RAW_CUDA(&raw->cu, cuStreamBeginCapture, raw->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    for (unsigned i = 0; fine && i < length; i++)
        fine = launch(raw, count);
    return fine && RAW_CUDA(&raw->cu, cuStreamEndCapture, raw->stream, out_graph) &&
           RAW_CUDA(&raw->cu, cuGraphInstantiate, out_executable, *out_graph, 0);
}

// A graph whose kernels count, launched three times, counts to three times its length.
static bool check(struct raw *raw, unsigned length)
{
    CUgraph graph = NULL;
    CUgraphExec executable = NULL;
    uint32_t counted = 0;
    struct raw_cuda *cu = &raw->cu;
    bool fine = capture(raw, length, 1, &graph, &executable) &&
                RAW_CUDA(cu, cuMemsetD8Async, raw->counter, 0, sizeof counted, raw->stream);
    for (int i = 0; fine && i < 3; i++)
        fine = RAW_CUDA(cu, cuGraphLaunch, executable, raw->stream);
    fine = fine &&
           RAW_CUDA(cu, cuMemcpyDtoHAsync, &counted, raw->counter, sizeof counted, raw->stream) &&
           RAW_CUDA(cu, cuStreamSynchronize, raw->stream);
    if (executable)
        cu->cuGraphExecDestroy(executable);
    if (graph)
        cu->cuGraphDestroy(graph);
    if (fine && counted != 3 * length)
        return peer_fail("three launches of a graph of %u counted to %u", length, counted);
    peer_checked(1);
    return fine;
}

static bool open_raw(void *user)
{
    struct raw *raw = user;
    struct raw_cuda *cu = &raw->cu;
    if (!raw_cuda_open(cu) ||
        !RAW_CUDA(cu, cuModuleGetFunction, &raw->increment, cu->module, "increment") ||
        !RAW_CUDA(cu, cuMemAlloc, &raw->counter, 256) ||
        !RAW_CUDA(cu, cuStreamCreate, &raw->stream, CU_STREAM_NON_BLOCKING))
        return false;
    for (unsigned i = 0; i < LENGTHS; i++)
        if (!check(raw, lengths[i]) ||
            !capture(raw, lengths[i], 0, &raw->graphs[i], &raw->executables[i]))
            return false;
    return true;
}

// Milliseconds a launch: until the last was submitted, and until all were done.
static bool time_batch(struct raw *raw, unsigned index, bool as_graph, double *out_submit,
                       double *out_complete)
{
    struct raw_cuda *cu = &raw->cu;
    // As many kernels as a driver takes without waiting, when they are single.
    const unsigned batch = as_graph ? BATCH : BATCH / lengths[index] + 1;
    const double began = peer_now_ms();
    for (unsigned i = 0; i < batch; i++) {
        bool fine = true;
        if (as_graph)
            fine = RAW_CUDA(cu, cuGraphLaunch, raw->executables[index], raw->stream);
        for (unsigned k = 0; !as_graph && fine && k < lengths[index]; k++)
            fine = launch(raw, 0);
        if (!fine)
            return false;
    }
    const double submitted = peer_now_ms();
    if (!RAW_CUDA(cu, cuStreamSynchronize, raw->stream))
        return false;
    *out_submit = (submitted - began) / batch;
    *out_complete = (peer_now_ms() - began) / batch;
    return true;
}

static bool round_raw(void *user)
{
    struct raw *raw = user;
    for (unsigned i = 0; i < LENGTHS; i++)
        for (int as_graph = 1; as_graph >= 0; as_graph--) {
            char name[64];
            double submit, complete;
            // The first warms up.
            for (int k = 0; k < 2; k++)
                if (!time_batch(raw, i, as_graph, &submit, &complete))
                    return false;
            snprintf(name, sizeof name, "%s_%u_submit", as_graph ? "graph" : "single", lengths[i]);
            peer_value(name, submit);
            snprintf(name, sizeof name, "%s_%u_complete", as_graph ? "graph" : "single",
                     lengths[i]);
            peer_value(name, complete);
        }
    return true;
}

static void close_raw(void *user)
{
    struct raw *raw = user;
    struct raw_cuda *cu = &raw->cu;
    for (unsigned i = 0; i < LENGTHS; i++) {
        if (raw->executables[i])
            cu->cuGraphExecDestroy(raw->executables[i]);
        if (raw->graphs[i])
            cu->cuGraphDestroy(raw->graphs[i]);
    }
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
