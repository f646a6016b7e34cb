// The job `overlap`: weir bench overlap beside chunks without Weir: the common orders on a table of calls, and
// those of the CUDA driver and of plain OpenCL, on memory of their own. On OpenCL as NVIDIA's overlap sample does
// it: pinned memory is a buffer with CL_MEM_ALLOC_HOST_PTR that stays mapped, and every operation is flushed. Queues
// are created for each way, outside the measured time, so that those of one way do not share a device's channels
// with those of another.
#include <string.h>

#include "cli/bench/overlap.h"
#include "kernels/bench/bench.h"
#include "tests/bench/jobs/raw.h"

enum {
    BLOCK = 256, // work-items of a block of the kernel
    QUEUES_MAX = 16,
    PIECES_MAX = 256,
    EVENTS = 2 * PIECES_MAX,
    LEAST = 2 << 20, // bytes of the first piece that grows
    ALIGNMENT = BLOCK * sizeof(uint32_t)
};

enum order {
    DEPTH_FIRST,   // H_0 K_0 D_0  H_1 K_1 D_1  ...
    BREADTH_FIRST, // H_0 H_1 ...  K_0 K_1 ...  D_0 D_1 ...
    INTERLEAVED,   // H_0  K_0 H_1 D_0  K_1 H_2 D_1  ...
    COPIES
};

enum stage {
    UP,
    MULTIPLY,
    DOWN,
    STAGES
};

struct way {
    const char *name;
    enum order order;
    unsigned queues, pieces;
    bool by_engine; // a queue for each stage, with events between them
    bool grows;     // pieces from LEAST bytes, a twentieth each, up to a 1 / `pieces` of all
    bool graph;     // captured once
};

// The textbook's have as many chunks as queues.
static const struct way ways[] = {
    {"up", COPIES, 2, 0, false, false, false},
    {"down", COPIES, 2, 0, false, false, false},
    {"both_ways", COPIES, 2, 0, false, false, false},
    {"one_queue", DEPTH_FIRST, 1, 1, false, false, false},
    {"depth_first_2", DEPTH_FIRST, 2, 2, false, false, false},
    {"breadth_first_2", BREADTH_FIRST, 2, 2, false, false, false},
    {"interleaved_2", INTERLEAVED, 2, 2, false, false, false},
    {"depth_first_4", DEPTH_FIRST, 4, 4, false, false, false},
    {"breadth_first_4", BREADTH_FIRST, 4, 4, false, false, false},
    {"interleaved_4", INTERLEAVED, 4, 4, false, false, false},
    {"depth_first_8", DEPTH_FIRST, 8, 8, false, false, false},
    {"breadth_first_8", BREADTH_FIRST, 8, 8, false, false, false},
    {"interleaved_8", INTERLEAVED, 8, 8, false, false, false},
    {"depth_first_16", DEPTH_FIRST, 16, 16, false, false, false},
    {"one_queue_64_chunks", DEPTH_FIRST, 1, 64, false, false, false},
    {"depth_first_8_64_chunks", DEPTH_FIRST, 8, 64, false, false, false},
    {"breadth_first_8_64_chunks", BREADTH_FIRST, 8, 64, false, false, false},
    {"interleaved_8_64_chunks", INTERLEAVED, 8, 64, false, false, false},
    {"three_queues_32_chunks", INTERLEAVED, 3, 32, true, false, false},
    {"three_queues_64_chunks", INTERLEAVED, 3, 64, true, false, false},
    {"three_queues_64_chunks_breadth", BREADTH_FIRST, 3, 64, true, false, false},
    {"three_queues_96_chunks", INTERLEAVED, 3, 96, true, false, false},
    {"three_queues_growing", INTERLEAVED, 3, 64, true, true, false},
    {"graph_64_chunks", INTERLEAVED, 3, 64, true, false, true},
    {"graph_128_chunks", INTERLEAVED, 3, 128, true, false, true},
};

enum {
    WAYS = sizeof ways / sizeof *ways,
    GRAPHS = 2 // the last ones
};

struct pieces {
    unsigned count;
    size_t ends[PIECES_MAX];
};

struct raw;

// Of either driver. All return at once but `finish`.
struct calls {
    void (*open_queue)(struct raw *raw, unsigned queue);
    void (*close_queue)(struct raw *raw, unsigned queue);
    void (*copy)(struct raw *raw, unsigned queue, bool up, size_t at, size_t size);
    void (*multiply)(struct raw *raw, unsigned queue, size_t at, size_t size, uint32_t rounds);
    void (*record)(struct raw *raw, unsigned queue, unsigned event);
    void (*wait)(struct raw *raw, unsigned queue, unsigned event);
    void (*flush)(struct raw *raw, unsigned queue);
    void (*finish)(struct raw *raw, unsigned queue);
    void (*spoil)(struct raw *raw); // the device's memory, in queue 0
};

struct raw {
    const struct calls *calls;
    struct bench *bench;
    size_t size;
    uint32_t *src, *dst; // pinned
    bool bare;           // a copy down is of what no kernel writes
    struct {
        struct raw_cuda api;
        CUfunction advance;
        CUdeviceptr in, out;
        CUstream queues[QUEUES_MAX];
        CUevent events[EVENTS], fork, ends[QUEUES_MAX]; // the latter of a capture
        CUgraph graph;
        CUgraphExec executable;
    } cu;
    struct {
        struct raw_opencl api;
        cl_kernel advance;
        cl_mem in, out;
        cl_command_queue queues[QUEUES_MAX], keeper; // the latter of the mappings
        cl_event events[EVENTS];
    } cl;
};

// CUDA.

#define CU(name, ...) RAW_CU(&raw->cu.api, name, __VA_ARGS__)

static void cu_open_queue(struct raw *raw, unsigned queue)
{
    CU(cuStreamCreateWithPriority, &raw->cu.queues[queue], CU_STREAM_NON_BLOCKING, 0);
}

static void cu_close_queue(struct raw *raw, unsigned queue)
{
    if (raw->cu.executable)
        raw->cu.api.cuGraphExecDestroy(raw->cu.executable);
    if (raw->cu.graph)
        raw->cu.api.cuGraphDestroy(raw->cu.graph);
    raw->cu.executable = NULL;
    raw->cu.graph = NULL;
    raw->cu.api.cuStreamDestroy(raw->cu.queues[queue]);
}

static void cu_copy(struct raw *raw, unsigned queue, bool up, size_t at, size_t size)
{
    if (up)
        CU(cuMemcpyHtoDAsync, raw->cu.in + at, (char *)raw->src + at, size, raw->cu.queues[queue]);
    else
        CU(cuMemcpyDtoHAsync, (char *)raw->dst + at, (raw->bare ? raw->cu.out : raw->cu.in) + at,
           size, raw->cu.queues[queue]);
}

static void cu_multiply(struct raw *raw, unsigned queue, size_t at, size_t size, uint32_t rounds)
{
    CUdeviceptr values = raw->cu.in + at;
    uint32_t count = (uint32_t)(size / sizeof(uint32_t));
    void *arguments[] = {&values, &rounds, &count};
    CU(cuLaunchKernel, raw->cu.advance, (count + BLOCK - 1) / BLOCK, 1, 1, BLOCK, 1, 1, 0,
       raw->cu.queues[queue], arguments, NULL);
}

static void cu_record(struct raw *raw, unsigned queue, unsigned event)
{
    CU(cuEventRecord, raw->cu.events[event], raw->cu.queues[queue]);
}

static void cu_wait(struct raw *raw, unsigned queue, unsigned event)
{
    CU(cuStreamWaitEvent, raw->cu.queues[queue], raw->cu.events[event], 0);
}

static void cu_flush(struct raw *raw, unsigned queue)
{
    (void)raw;
    (void)queue;
}

static void cu_finish(struct raw *raw, unsigned queue)
{
    CU(cuStreamSynchronize, raw->cu.queues[queue]);
}

static void cu_spoil(struct raw *raw)
{
    CU(cuMemsetD8Async, raw->cu.in, 0xff, raw->size, raw->cu.queues[0]);
    CU(cuMemsetD8Async, raw->cu.out, 0xff, raw->size, raw->cu.queues[0]);
    cu_finish(raw, 0);
}

// All queues are captured from queue 0, to which they return.
static void begin_capture(struct raw *raw, unsigned queues)
{
    CU(cuStreamBeginCapture, raw->cu.queues[0], CU_STREAM_CAPTURE_MODE_RELAXED);
    CU(cuEventRecord, raw->cu.fork, raw->cu.queues[0]);
    for (unsigned i = 1; i < queues; i++)
        CU(cuStreamWaitEvent, raw->cu.queues[i], raw->cu.fork, 0);
}

static void end_capture(struct raw *raw, unsigned queues)
{
    for (unsigned i = 1; i < queues; i++) {
        CU(cuEventRecord, raw->cu.ends[i], raw->cu.queues[i]);
        CU(cuStreamWaitEvent, raw->cu.queues[0], raw->cu.ends[i], 0);
    }
    CU(cuStreamEndCapture, raw->cu.queues[0], &raw->cu.graph);
    CU(cuGraphInstantiateWithFlags, &raw->cu.executable, raw->cu.graph, 0);
}

static const struct calls cu_calls = {
    .open_queue = cu_open_queue,
    .close_queue = cu_close_queue,
    .copy = cu_copy,
    .multiply = cu_multiply,
    .record = cu_record,
    .wait = cu_wait,
    .flush = cu_flush,
    .finish = cu_finish,
    .spoil = cu_spoil,
};

static bool cu_open(struct raw *raw)
{
    struct raw_cuda *api = &raw->cu.api;
    if (!raw_cuda_open(raw->bench, "raw calls", &bench_kernels, api))
        return false;
    raw->calls = &cu_calls;
    raw->cu.advance = raw_cuda_function(api, "advance");
    raw->cu.in = raw_cuda_memory(api, raw->size);
    raw->cu.out = raw_cuda_memory(api, raw->size);
    raw->src = raw_cuda_pinned(api, raw->size);
    raw->dst = raw_cuda_pinned(api, raw->size);
    raw->cu.fork = raw_cuda_event(api);
    for (unsigned i = 0; i < EVENTS; i++)
        raw->cu.events[i] = raw_cuda_event(api);
    for (unsigned i = 0; i < QUEUES_MAX; i++)
        raw->cu.ends[i] = raw_cuda_event(api);
    return true;
}

// OpenCL.

#define CL(name, ...) RAW_CL(&raw->cl.api, name, __VA_ARGS__)

static void cl_open_queue(struct raw *raw, unsigned queue)
{
    const struct raw_opencl *api = &raw->cl.api;
    cl_int code;
    raw->cl.queues[queue] = api->clCreateCommandQueue(api->context, api->device, 0, &code);
    raw_opencl_check(code, "clCreateCommandQueue");
}

static void cl_forget(struct raw *raw, unsigned event)
{
    if (raw->cl.events[event])
        raw->cl.api.clReleaseEvent(raw->cl.events[event]);
    raw->cl.events[event] = NULL;
}

static void cl_close_queue(struct raw *raw, unsigned queue)
{
    for (unsigned i = 0; i < EVENTS; i++)
        cl_forget(raw, i);
    raw->cl.api.clReleaseCommandQueue(raw->cl.queues[queue]);
}

static void cl_flush(struct raw *raw, unsigned queue)
{
    CL(clFlush, raw->cl.queues[queue]);
}

static void cl_copy(struct raw *raw, unsigned queue, bool up, size_t at, size_t size)
{
    if (up)
        CL(clEnqueueWriteBuffer, raw->cl.queues[queue], raw->cl.in, 0, at, size,
           (char *)raw->src + at, 0, NULL, NULL);
    else
        CL(clEnqueueReadBuffer, raw->cl.queues[queue], raw->bare ? raw->cl.out : raw->cl.in, 0, at,
           size, (char *)raw->dst + at, 0, NULL, NULL);
    cl_flush(raw, queue);
}

// The kernel takes whole buffers and starts at a global offset: no sub-buffers, which some drivers order
// against each other.
static void cl_multiply(struct raw *raw, unsigned queue, size_t at, size_t size, uint32_t rounds)
{
    const uint32_t end = (uint32_t)((at + size) / sizeof(uint32_t));
    const size_t first = at / sizeof(uint32_t), count = size / sizeof(uint32_t), block = BLOCK;
    CL(clSetKernelArg, raw->cl.advance, 0, sizeof raw->cl.in, &raw->cl.in);
    CL(clSetKernelArg, raw->cl.advance, 1, sizeof rounds, &rounds);
    CL(clSetKernelArg, raw->cl.advance, 2, sizeof end, &end);
    CL(clEnqueueNDRangeKernel, raw->cl.queues[queue], raw->cl.advance, 1, &first, &count, &block, 0,
       NULL, NULL);
    cl_flush(raw, queue);
}

static void cl_record(struct raw *raw, unsigned queue, unsigned event)
{
    cl_forget(raw, event);
    CL(clEnqueueMarkerWithWaitList, raw->cl.queues[queue], 0, NULL, &raw->cl.events[event]);
}

static void cl_wait(struct raw *raw, unsigned queue, unsigned event)
{
    CL(clEnqueueBarrierWithWaitList, raw->cl.queues[queue], 1, &raw->cl.events[event], NULL);
}

static void cl_finish(struct raw *raw, unsigned queue)
{
    CL(clFinish, raw->cl.queues[queue]);
}

static void cl_spoil(struct raw *raw)
{
    const uint32_t nothing = 0xffffffffu;
    CL(clEnqueueFillBuffer, raw->cl.queues[0], raw->cl.in, &nothing, sizeof nothing, 0, raw->size,
       0, NULL, NULL);
    CL(clEnqueueFillBuffer, raw->cl.queues[0], raw->cl.out, &nothing, sizeof nothing, 0, raw->size,
       0, NULL, NULL);
    cl_finish(raw, 0);
}

static const struct calls cl_calls = {
    .open_queue = cl_open_queue,
    .close_queue = cl_close_queue,
    .copy = cl_copy,
    .multiply = cl_multiply,
    .record = cl_record,
    .wait = cl_wait,
    .flush = cl_flush,
    .finish = cl_finish,
    .spoil = cl_spoil,
};

// Pinned memory; the mapping ends with the buffer.
static uint32_t *cl_map(struct raw *raw)
{
    cl_int code;
    cl_mem buffer = raw_opencl_buffer(&raw->cl.api, CL_MEM_ALLOC_HOST_PTR, raw->size);
    void *pinned =
        raw->cl.api.clEnqueueMapBuffer(raw->cl.keeper, buffer, 1, CL_MAP_READ | CL_MAP_WRITE, 0,
                                       raw->size, 0, NULL, NULL, &code);
    raw_opencl_check(code, "clEnqueueMapBuffer");
    return pinned;
}

static bool cl_open(struct raw *raw)
{
    struct raw_opencl *api = &raw->cl.api;
    if (!raw_opencl_open(raw->bench, "raw calls", weir_device_get_info(raw->bench->device)->name,
                         &bench_kernels, api))
        return false;
    raw->calls = &cl_calls;
    raw->cl.advance = raw_opencl_kernel(api, "advance");
    raw->cl.keeper = raw_opencl_queue(api);
    raw->cl.in = raw_opencl_buffer(api, 0, raw->size);
    raw->cl.out = raw_opencl_buffer(api, 0, raw->size);
    raw->src = cl_map(raw);
    raw->dst = cl_map(raw);
    return true;
}

// The orders.

static void cut(size_t size, const struct way *way, struct pieces *out)
{
    const size_t units = size / ALIGNMENT, most = size / way->pieces;
    const size_t equal = way->pieces < units ? way->pieces : units;
    size_t next = LEAST, end = 0;
    for (out->count = 0; end < size && out->count < PIECES_MAX; out->count++) {
        next = next < most ? next : most;
        if (way->grows)
            end += (next + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        else
            end = units * (out->count + 1) / equal * ALIGNMENT;
        if (end > size || out->count + 1 == PIECES_MAX)
            end = size;
        out->ends[out->count] = end;
        next += next / 20;
    }
}

// What is run once.
struct run {
    struct raw *raw;
    const struct way *way;
    struct pieces pieces;
    uint32_t rounds;
};

// One operation of one piece, with the events that its stage needs `by_engine`.
static void submit(const struct run *run, enum stage stage, unsigned piece)
{
    const struct calls *calls = run->raw->calls;
    const size_t at = piece > 0 ? run->pieces.ends[piece - 1] : 0;
    const size_t size = run->pieces.ends[piece] - at;
    const bool by_engine = run->way->by_engine;
    const unsigned queue = by_engine ? stage : piece % run->way->queues;
    if (by_engine && stage != UP)
        calls->wait(run->raw, queue, 2 * piece + (stage == DOWN));
    if (stage == MULTIPLY)
        calls->multiply(run->raw, queue, at, size, run->rounds);
    else
        calls->copy(run->raw, queue, stage == UP, at, size);
    if (!by_engine || stage == DOWN)
        return;
    // Flushes the work that another queue waits for.
    calls->record(run->raw, queue, 2 * piece + (stage == MULTIPLY));
    calls->flush(run->raw, queue);
}

static void submit_all(const struct run *run)
{
    const unsigned count = run->pieces.count;
    const enum order order = run->way->order;
    for (unsigned i = 0; order == DEPTH_FIRST && i < count * STAGES; i++)
        submit(run, (enum stage)(i % STAGES), i / STAGES);
    for (unsigned i = 0; order == BREADTH_FIRST && i < count * STAGES; i++)
        submit(run, (enum stage)(i / count), i % count);
    if (order != INTERLEAVED)
        return;
    submit(run, UP, 0);
    for (unsigned i = 0; i < count; i++) {
        submit(run, MULTIPLY, i);
        if (i + 1 < count)
            submit(run, UP, i + 1);
        submit(run, DOWN, i);
    }
}

// The bare copies: up in queue 0, down in queue 1.
static void submit_copies(const struct run *run)
{
    for (unsigned queue = 0; queue < 2; queue++) {
        if (run->way == &ways[!queue])
            continue;
        run->raw->calls->copy(run->raw, queue, queue == 0, 0, run->raw->size);
        run->raw->calls->flush(run->raw, queue);
    }
}

static void run_once(const struct run *run)
{
    struct raw *raw = run->raw;
    if (run->way->order == COPIES)
        submit_copies(run);
    else if (run->way->graph)
        CU(cuGraphLaunch, raw->cu.executable, raw->cu.queues[0]);
    else
        submit_all(run);
    for (unsigned i = 0; i < run->way->queues; i++)
        raw->calls->flush(raw, i);
    for (unsigned i = 0; i < run->way->queues; i++)
        raw->calls->finish(raw, i);
}

static double run_times(const struct run *run, int times)
{
    double ms = 0;
    if (run->way->graph) {
        begin_capture(run->raw, run->way->queues);
        submit_all(run);
        end_capture(run->raw, run->way->queues);
    }
    for (int i = 0; i < times; i++) {
        const uint64_t began = cli_now_ns();
        run_once(run);
        ms = (double)(cli_now_ns() - began) * 1e-6;
    }
    return ms;
}

// Other rounds in each way that is checked.
static double run_way(void *user, size_t index, bool checks)
{
    struct raw *raw = user;
    const struct way *way = &ways[index];
    struct run run = {.raw = raw, .way = way, .rounds = 1 + (checks ? index % 14 : 0)};
    raw->bare = way->order == COPIES;
    if (way->pieces)
        cut(raw->size, way, &run.pieces);
    for (unsigned i = 0; i < way->queues; i++)
        raw->calls->open_queue(raw, i);
    if (checks)
        raw->calls->spoil(raw);
    const double ms = run_times(&run, checks ? 1 : 2);
    for (unsigned i = way->queues; i-- > 0;)
        raw->calls->close_queue(raw, i);
    if (checks)
        (void)bench_work_compare(raw->bench, raw->dst, raw->size, OVERLAP_SEED, run.rounds,
                                 way->name);
    bench_judge(raw->bench);
    return ms;
}

static size_t count_ways(const void *user)
{
    const struct raw *raw = user;
    return raw->calls == &cu_calls ? WAYS : WAYS - GRAPHS;
}

static const char *name_of(size_t way)
{
    return ways[way].name;
}

static void *open_raw(struct bench *bench, size_t size)
{
    const char *backend = weir_runtime_backend(bench->runtime);
    struct raw *raw = cli_allocate(1, sizeof *raw);
    raw->bench = bench;
    raw->size = size;
    if (!(strcmp(backend, "opencl") == 0 ? cl_open(raw) : cu_open(raw)))
        return NULL;
    bench_work_numbers(raw->src, size, OVERLAP_SEED);
    return raw;
}

// The job.

static int overlap_main(int argc, char **argv)
{
    static const struct overlap_raw raw = {
        .open = open_raw,
        .count = count_ways,
        .name = name_of,
        .run = run_way,
    };
    static const struct overlap_with with = {
        .group = "jobs",
        .about =
            "Measures what weir bench overlap measures, beside the driver's own calls in every\n"
            "common order: raw CUDA, and plain OpenCL.\n",
        .orders = "auto",
        .kernels = "light",
        .raw = &raw,
    };
    return bench_overlap_main(&with, argc, argv);
}

const struct cli_command job_overlap = {
    .name = "overlap",
    .summary = "chunks up, through a kernel and down, beside the driver's own calls",
    .main = overlap_main,
};
