// Collectives beside NCCL's own on the same communicator: submits, calls with their bandwidth, and graphs of
// them. What alternates meets the same of what else the machine does; a ratio is that of two neighbours.
#define _GNU_SOURCE // RTLD_NOLOAD
#include "tests/cuda/comm_speed.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/nccl.h"
#include "backends/cuda/symbols.h"
#include "base/clock.h"
#include "core/object/comm.h"

enum {
    TURNS = 101,
    LONG_TURNS = 15, // of calls that take milliseconds
    CAPTURED = 20,   // collectives in a graph
    LAUNCHES = 10,
    PAIRS = 301, // of batches of submits
    BATCH = 40,
};

static weir_queue *queue;
static weir_comm *comm;
static weir_buffer *buffer;
static weir_graph *graph; // of CAPTURED all-reduces

// NCCL, on a stream of its own.
static struct {
    struct nccl_symbols nccl;
    struct cu_symbols cu;
    ncclComm_t comm; // Weir's
    CUstream stream;
    void *memory; // the buffer's
    CUgraphExec graph;
} raw;

static bool find(char *reason, size_t size)
{
    void *handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
    int version;
    if (!handle || !cu_symbols_load("", &raw.cu, &version, reason, size))
        return false;
#define FIND(result, name, parameters)                    \
    do {                                                  \
        void *address = dlsym(handle, #name);             \
        memcpy(&raw.nccl.name, &address, sizeof address); \
        if (!address)                                     \
            return false;                                 \
    } while (0);
    NCCL_SYMBOLS(FIND)
#undef FIND
    return true;
}

// Without them NCCL's calls return before they are done, and its own ones here do not wait for that.
static bool calls_block(char *reason, size_t size)
{
    const char *blocking = getenv("NCCL_COMM_BLOCKING");
    if (!blocking || strcmp(blocking, "0") != 0)
        return true;
    snprintf(reason, size,
             "NCCL_COMM_BLOCKING=0 is set, and raw calls cannot take turns with Weir's then");
    return false;
}

static bool open_raw(weir_queue *own_queue, weir_comm *own_comm, weir_buffer *own_buffer)
{
    struct weir_native_device device = {.struct_size = sizeof device};
    struct weir_native_buffer native = {.struct_size = sizeof native};
    char reason[512] = "";
    queue = own_queue;
    comm = own_comm;
    buffer = own_buffer;
    if (!calls_block(reason, sizeof reason) || !find(reason, sizeof reason) ||
        weir_device_get_native(weir_comm_device(comm), &device) < 0 ||
        weir_buffer_get_native(buffer, &native) < 0 ||
        raw.cu.cuCtxSetCurrent(device.context) != CUDA_SUCCESS ||
        raw.cu.cuStreamCreateWithPriority(&raw.stream, CU_STREAM_NON_BLOCKING, 0) != CUDA_SUCCESS)
        return comm_check(false, "NCCL beside Weir: %s",
                          reason[0] ? reason : weir_last_error_text());
    raw.comm = cu_comm_of(comm->engine, comm)->native;
    raw.memory = (void *)(uintptr_t)native.address;
    return true;
}

static void drop_raw_graph(void)
{
    if (raw.graph)
        raw.cu.cuGraphExecDestroy(raw.graph);
    raw.graph = NULL;
}

static void close_raw(void)
{
    drop_raw_graph();
    raw.cu.cuStreamDestroy(raw.stream);
}

static bool all_reduce(bool by_raw, size_t bytes)
{
    if (by_raw)
        return raw.nccl.ncclAllReduce(raw.memory, raw.memory, bytes / 4, ncclFloat32, ncclSum,
                                      raw.comm, raw.stream) == ncclSuccess;
    return weir_queue_all_reduce(queue, comm, buffer, 0, buffer, 0, bytes / 4, WEIR_F32,
                                 WEIR_SUM) == WEIR_OK;
}

static bool launch(bool by_raw)
{
    return by_raw ? raw.cu.cuGraphLaunch(raw.graph, raw.stream) == CUDA_SUCCESS
                  : weir_queue_graph(queue, graph) == WEIR_OK;
}

// With a timeout Weir's wait would poll, with pauses.
static void finish(bool by_raw, bool good, size_t bytes)
{
    const bool done = by_raw ? raw.cu.cuStreamSynchronize(raw.stream) == CUDA_SUCCESS
                             : weir_queue_sync(queue, WEIR_FOREVER) == WEIR_OK;
    if (!good || !done)
        comm_check(false, "an all-reduce of %zu bytes", bytes);
}

static void meet(void)
{
    if (weir_queue_barrier(queue, comm) < 0 || weir_queue_sync(queue, WEIR_FOREVER) < 0)
        comm_check(false, "a barrier");
}

static bool capture(size_t bytes)
{
    CUgraph captured = NULL;
    drop_raw_graph();
    bool good = weir_capture_begin(queue) == WEIR_OK;
    for (int i = 0; i < CAPTURED && good; i++)
        good = all_reduce(false, bytes);
    good = good && weir_capture_end(queue, NULL, &graph) == WEIR_OK &&
           raw.cu.cuStreamBeginCapture(raw.stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS;
    for (int i = 0; i < CAPTURED && good; i++)
        good = all_reduce(true, bytes);
    good = raw.cu.cuStreamEndCapture(raw.stream, &captured) == CUDA_SUCCESS && good &&
           raw.cu.cuGraphInstantiateWithFlags(&raw.graph, captured, 0) == CUDA_SUCCESS &&
           raw.cu.cuGraphUpload(raw.graph, raw.stream) == CUDA_SUCCESS;
    if (captured)
        raw.cu.cuGraphDestroy(captured);
    return good;
}

// What is compared: `count` at once, after `warm` more that are not timed, with all that comes until they are
// complete or without.
struct work {
    const char *what;
    size_t bytes;
    int count, warm, turns;
    bool launches; // of graphs
    bool submits;  // without the wait
};

// The microseconds of one.
static double measure(const struct work *work, bool by_raw)
{
    bool good = true;
    uint64_t start_ns = 0;
    meet();
    for (int i = -work->warm; i < work->count; i++) {
        if (i == 0)
            start_ns = weir_clock_now_ns();
        good = (work->launches ? launch(by_raw) : all_reduce(by_raw, work->bytes)) && good;
    }
    const uint64_t submitted_ns = weir_clock_now_ns();
    finish(by_raw, good, work->bytes);
    const uint64_t end_ns = work->submits ? submitted_ns : weir_clock_now_ns();
    return (double)(end_ns - start_ns) / 1e3 / work->count;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void compare(const struct work *work)
{
    double times[2][PAIRS], ratios[PAIRS];
    const size_t turns = (size_t)work->turns;
    for (int turn = -2; turn < work->turns; turn++)
        for (int i = 0; i < 2; i++) {
            const bool by_raw = i == (turn & 1);
            const double took = measure(work, by_raw);
            if (turn >= 0)
                times[by_raw][turn] = took;
        }
    for (size_t turn = 0; turn < turns; turn++)
        ratios[turn] = times[0][turn] / times[1][turn];
    for (int i = 0; i < 2; i++)
        qsort(times[i], turns, sizeof times[i][0], by_value);
    qsort(ratios, turns, sizeof ratios[0], by_value);
    const double own = times[0][turns / 2];
    char rate[32] = "";
    if (!work->submits)
        snprintf(rate, sizeof rate, "; %.1f GB/s",
                 (double)work->bytes / own / 1e3 * (work->launches ? CAPTURED : 1));
    comm_check(true,
               "%s of %zu KiB after %d: Weir %.2f us, raw %.2f us (ratio %.3f, half of them from "
               "%.3f to %.3f%s)",
               work->what, work->bytes / 1024, work->warm, own, times[1][turns / 2],
               ratios[turns / 2], ratios[turns / 4], ratios[turns * 3 / 4], rate);
}

static void compare_submits(size_t bytes, int warm)
{
    compare(&(struct work){.what = "submit",
                           .bytes = bytes,
                           .count = BATCH,
                           .warm = warm,
                           .turns = PAIRS,
                           .submits = true});
}

static void compare_calls(size_t bytes)
{
    compare(&(struct work){.what = "all-reduce",
                           .bytes = bytes,
                           .count = bytes < COMM_SPEED_BYTES / 16 ? 20 : 5,
                           .turns = bytes > 1024 * 1024 ? LONG_TURNS : TURNS});
}

static void compare_captured(size_t bytes)
{
    if (comm_check(capture(bytes), "%d all-reduces of %zu KiB are captured", CAPTURED,
                   bytes / 1024))
        compare(&(struct work){.what = "a graph of 20 all-reduces",
                               .bytes = bytes,
                               .count = LAUNCHES,
                               .turns = bytes > 1024 * 1024 ? LONG_TURNS : TURNS,
                               .launches = true});
    weir_graph_destroy(&graph);
}

void comm_submits(weir_queue *own_queue, weir_comm *own_comm, weir_buffer *own_buffer)
{
    if (!open_raw(own_queue, own_comm, own_buffer))
        return;
    for (size_t bytes = 1024; bytes <= 1024 * 1024; bytes *= 32)
        for (int warm = 0; warm <= 64; warm += warm ? 56 : 8)
            compare_submits(bytes, warm);
    close_raw();
}

void comm_speed(weir_queue *own_queue, weir_comm *own_comm, weir_buffer *own_buffer)
{
    if (!open_raw(own_queue, own_comm, own_buffer))
        return;
    compare_submits(1024, 0);
    compare_submits(1024 * 1024, 0);
    for (size_t bytes = 1024; bytes < COMM_SPEED_BYTES; bytes *= bytes < 1024 * 1024 ? 1024 : 16)
        compare_calls(bytes);
    compare_calls(COMM_SPEED_BYTES);
    for (size_t bytes = 1024; bytes <= 16 * 1024 * 1024; bytes *= bytes < 1024 * 1024 ? 32 : 16)
        compare_captured(bytes);
    close_raw();
}
