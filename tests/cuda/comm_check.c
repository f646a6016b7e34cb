// Collectives by NCCL on two GPUs: a program for a machine that has them, run as one process for each
// rank; submit runs as one rank too, on one GPU. The rank's GPU is that of its local rank. Rank 0 prints
// a line for each check, with the figure if there is one; each process exits with 1 if a check of its own
// failed.
//
//   comm_check speed    Weir's all-reduce, and a graph of 20, alternate with NCCL's own, on the same
//                       communicator; medians of pairs are compared
//   comm_check submit   what submits of all-reduces take beside NCCL's own; also as one process, on one GPU
#define _GNU_SOURCE // RTLD_NOLOAD
#include <dlfcn.h>

#include "backends/cuda/nccl.h"
#include "backends/cuda/symbols.h"
#include "base/clock.h"
#include "core/object/comm.h"
#include "tests/cuda/check.h"

#define SPEED_BYTES ((size_t)1 << 30)

enum {
    TURNS = 101,
    LONG_TURNS = 15, // of calls that take milliseconds
    CAPTURED = 20,   // collectives in a graph
    LAUNCHES = 10,
    PAIRS = 301, // of batches of submits
    BATCH = 40,
};

static weir_runtime *runtime;
static weir_device *device;
static weir_queue *queue;
static weir_buffer *buffer;
static weir_comm *comm;
static weir_graph *graph; // of CAPTURED all-reduces

static bool create(void)
{
    const uint64_t start_ns = weir_clock_now_ns();
    const weir_status status =
        weir_comm_create(device, WEIR_PARAMS(weir_comm, .label = "grads"), &comm);
    check_quiet = comm && weir_comm_rank(comm) != 0;
    if (!check(status == WEIR_OK, "a communicator"))
        return false;
    return check(strncmp(weir_comm_engine(comm), "NCCL", 4) == 0, "%s, created in %.0f ms",
                 weir_comm_engine(comm), (double)(weir_clock_now_ns() - start_ns) / 1e6);
}

static bool open_device(void)
{
    const char *local = getenv("LOCAL_RANK");
    return check(weir_open(NULL, &runtime) == WEIR_OK &&
                     weir_device_open(runtime,
                                      WEIR_PARAMS(weir_device, .select = local ? local : "0"),
                                      &device) == WEIR_OK &&
                     weir_queue_create(device, NULL, &queue) == WEIR_OK,
                 "a device and a queue");
}

static bool create_buffer(size_t size)
{
    return check(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = size), &buffer) ==
                     WEIR_OK,
                 "%zu bytes", size);
}

static void close_all(void)
{
    const uint64_t start_ns = weir_clock_now_ns();
    const bool first = weir_comm_rank(comm) == 0;
    weir_comm_destroy(&comm), weir_buffer_destroy(&buffer), weir_queue_destroy(&queue);
    const bool closed = weir_device_close(&device) == WEIR_OK && weir_close(&runtime) == WEIR_OK;
    if (first || !closed)
        check(closed, "everything closes, in %.0f ms",
              (double)(weir_clock_now_ns() - start_ns) / 1e6);
}

static weir_status all_reduce(size_t bytes)
{
    return weir_queue_all_reduce(queue, comm, buffer, 0, buffer, 0, bytes / 4, WEIR_F32, WEIR_SUM);
}

// Figures: submits, calls with their bandwidth, and graphs of them, beside NCCL's own on the same communicator. What
// alternates meets the same of what else the machine does; a ratio is that of two neighbours.

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

static bool open_raw(void)
{
    struct weir_native_device place = {.struct_size = sizeof place};
    struct weir_native_buffer native = {.struct_size = sizeof native};
    char reason[512] = "";
    if (!calls_block(reason, sizeof reason) || !find(reason, sizeof reason) ||
        weir_device_get_native(device, &place) < 0 || weir_buffer_get_native(buffer, &native) < 0 ||
        raw.cu.cuCtxSetCurrent(place.context) != CUDA_SUCCESS ||
        raw.cu.cuStreamCreateWithPriority(&raw.stream, CU_STREAM_NON_BLOCKING, 0) != CUDA_SUCCESS)
        return check(false, "NCCL beside Weir: %s", reason[0] ? reason : weir_last_error_text());
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

static bool reduce_by(bool by_raw, size_t bytes)
{
    if (by_raw)
        return raw.nccl.ncclAllReduce(raw.memory, raw.memory, bytes / 4, ncclFloat32, ncclSum,
                                      raw.comm, raw.stream) == ncclSuccess;
    return all_reduce(bytes) == WEIR_OK;
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
        check(false, "an all-reduce of %zu bytes", bytes);
}

static void meet(void)
{
    if (weir_queue_barrier(queue, comm) < 0 || weir_queue_sync(queue, WEIR_FOREVER) < 0)
        check(false, "a barrier");
}

static bool capture(size_t bytes)
{
    CUgraph captured = NULL;
    drop_raw_graph();
    bool good = weir_capture_begin(queue) == WEIR_OK;
    for (int i = 0; i < CAPTURED && good; i++)
        good = reduce_by(false, bytes);
    good = good && weir_capture_end(queue, NULL, &graph) == WEIR_OK &&
           raw.cu.cuStreamBeginCapture(raw.stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS;
    for (int i = 0; i < CAPTURED && good; i++)
        good = reduce_by(true, bytes);
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
        good = (work->launches ? launch(by_raw) : reduce_by(by_raw, work->bytes)) && good;
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
    check(true,
          "%s of %zu KiB after %d: Weir %.2f us, raw %.2f us (ratio %.3f, half of them from "
          "%.3f to %.3f%s)",
          work->what, work->bytes / 1024, work->warm, own, times[1][turns / 2], ratios[turns / 2],
          ratios[turns / 4], ratios[turns * 3 / 4], rate);
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
                           .count = bytes < SPEED_BYTES / 16 ? 20 : 5,
                           .turns = bytes > 1024 * 1024 ? LONG_TURNS : TURNS});
}

static void compare_captured(size_t bytes)
{
    if (check(capture(bytes), "%d all-reduces of %zu KiB are captured", CAPTURED, bytes / 1024))
        compare(&(struct work){.what = "a graph of 20 all-reduces",
                               .bytes = bytes,
                               .count = LAUNCHES,
                               .turns = bytes > 1024 * 1024 ? LONG_TURNS : TURNS,
                               .launches = true});
    weir_graph_destroy(&graph);
}

static void submits(void)
{
    if (!open_raw())
        return;
    for (size_t bytes = 1024; bytes <= 1024 * 1024; bytes *= 32)
        for (int warm = 0; warm <= 64; warm += warm ? 56 : 8)
            compare_submits(bytes, warm);
    close_raw();
}

static void speed(void)
{
    if (!open_raw())
        return;
    compare_submits(1024, 0);
    compare_submits(1024 * 1024, 0);
    for (size_t bytes = 1024; bytes < SPEED_BYTES; bytes *= bytes < 1024 * 1024 ? 1024 : 16)
        compare_calls(bytes);
    compare_calls(SPEED_BYTES);
    for (size_t bytes = 1024; bytes <= 16 * 1024 * 1024; bytes *= bytes < 1024 * 1024 ? 32 : 16)
        compare_captured(bytes);
    close_raw();
}

static const struct mode {
    const char *name;
    void (*run)(void);
    bool runs_alone; // with one rank
    size_t bytes;    // of the buffer
} modes[] = {
    {"speed", speed, .bytes = SPEED_BYTES},
    {"submit", submits, .bytes = 4 << 20, .runs_alone = true},
};

static const struct mode *find_mode(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(argv[1], modes[i].name) == 0)
            return &modes[i];
    return NULL;
}

static bool has_ranks(const struct mode *mode)
{
    if (weir_comm_count(comm) > 1)
        return true;
    return mode->runs_alone
               ? check(true, "1 GPU: one rank")
               : check(false, "'%s' needs two ranks with a GPU each, as weir launch -n 2 starts",
                       mode->name);
}

int main(int argc, char **argv)
{
    const struct mode *mode = find_mode(argc, argv);
    if (!mode) {
        printf("usage: comm_check speed | submit\n");
        return 1;
    }
    if (!open_device() || !create())
        return 1;
    if (has_ranks(mode) && create_buffer(mode->bytes))
        mode->run();
    close_all();
    return check_failures > 0;
}
