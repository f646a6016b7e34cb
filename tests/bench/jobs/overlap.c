// The job `overlap`: weir bench overlap beside chunks without Weir: the common orders on a table of calls, and
// those of the CUDA driver and of plain OpenCL, on memory of their own. On OpenCL as NVIDIA's overlap sample does
// it: pinned memory is a buffer with CL_MEM_ALLOC_HOST_PTR that stays mapped, and every operation is flushed. Queues
// are created for each way, outside the measured time, so that those of one way do not share a device's channels
// with those of another.
#include <stdlib.h>
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

// All return at once but `open`, `close` and `finish`. Errors: false after a sentence.
struct calls {
    bool (*open_queue)(struct raw *raw, unsigned queue);
    void (*close_queue)(struct raw *raw, unsigned queue);
    bool (*copy)(struct raw *raw, unsigned queue, bool up, size_t at, size_t size);
    bool (*multiply)(struct raw *raw, unsigned queue, size_t at, size_t size, uint32_t rounds);
    bool (*record)(struct raw *raw, unsigned queue, unsigned event);
    bool (*wait)(struct raw *raw, unsigned queue, unsigned event);
    bool (*flush)(struct raw *raw, unsigned queue);
    bool (*finish)(struct raw *raw, unsigned queue);
    bool (*spoil)(struct raw *raw); // the device's memory, in queue 0
    void (*close)(struct raw *raw);
};

struct raw {
    const struct calls *calls;
    struct bench *bench;
    size_t size;
    uint32_t *src, *dst; // pinned
    unsigned queue_count;
    bool bare; // a copy down is of what no kernel writes
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
        cl_mem in, out, src, dst;
        cl_command_queue queues[QUEUES_MAX], keeper; // the latter of the mappings
        cl_event events[EVENTS];
    } cl;
};

// CUDA.

#define CU(name, ...) raw_cuda_check(raw->bench, &raw->cu.api, raw->cu.api.name(__VA_ARGS__), #name)

static bool cu_open_queue(struct raw *raw, unsigned queue)
{
    return CU(cuStreamCreateWithPriority, &raw->cu.queues[queue], CU_STREAM_NON_BLOCKING, 0);
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

static bool cu_copy(struct raw *raw, unsigned queue, bool up, size_t at, size_t size)
{
    return up ? CU(cuMemcpyHtoDAsync, raw->cu.in + at, (char *)raw->src + at, size,
                   raw->cu.queues[queue])
              : CU(cuMemcpyDtoHAsync, (char *)raw->dst + at,
                   (raw->bare ? raw->cu.out : raw->cu.in) + at, size, raw->cu.queues[queue]);
}

static bool cu_multiply(struct raw *raw, unsigned queue, size_t at, size_t size, uint32_t rounds)
{
    CUdeviceptr values = raw->cu.in + at;
    uint32_t count = (uint32_t)(size / sizeof(uint32_t));
    void *arguments[] = {&values, &rounds, &count};
    return CU(cuLaunchKernel, raw->cu.advance, (count + BLOCK - 1) / BLOCK, 1, 1, BLOCK, 1, 1, 0,
              raw->cu.queues[queue], arguments, NULL);
}

static bool cu_record(struct raw *raw, unsigned queue, unsigned event)
{
    return CU(cuEventRecord, raw->cu.events[event], raw->cu.queues[queue]);
}

static bool cu_wait(struct raw *raw, unsigned queue, unsigned event)
{
    return CU(cuStreamWaitEvent, raw->cu.queues[queue], raw->cu.events[event], 0);
}

static bool cu_flush(struct raw *raw, unsigned queue)
{
    (void)raw;
    (void)queue;
    return true;
}

static bool cu_finish(struct raw *raw, unsigned queue)
{
    return CU(cuStreamSynchronize, raw->cu.queues[queue]);
}

static bool cu_spoil(struct raw *raw)
{
    return CU(cuMemsetD8Async, raw->cu.in, 0xff, raw->size, raw->cu.queues[0]) &&
           CU(cuMemsetD8Async, raw->cu.out, 0xff, raw->size, raw->cu.queues[0]) &&
           cu_finish(raw, 0);
}

// All queues are captured from queue 0, to which they return.
static bool begin_capture(struct raw *raw)
{
    bool fine = CU(cuStreamBeginCapture, raw->cu.queues[0], CU_STREAM_CAPTURE_MODE_RELAXED) &&
                CU(cuEventRecord, raw->cu.fork, raw->cu.queues[0]);
    for (unsigned i = 1; fine && i < raw->queue_count; i++)
        fine = CU(cuStreamWaitEvent, raw->cu.queues[i], raw->cu.fork, 0);
    return fine;
}

static bool end_capture(struct raw *raw)
{
    bool fine = true;
    for (unsigned i = 1; fine && i < raw->queue_count; i++)
        fine = CU(cuEventRecord, raw->cu.ends[i], raw->cu.queues[i]) &&
               CU(cuStreamWaitEvent, raw->cu.queues[0], raw->cu.ends[i], 0);
    return fine && CU(cuStreamEndCapture, raw->cu.queues[0], &raw->cu.graph) &&
           CU(cuGraphInstantiateWithFlags, &raw->cu.executable, raw->cu.graph, 0);
}

static void cu_close(struct raw *raw)
{
    const struct raw_cuda *api = &raw->cu.api;
    for (unsigned i = 0; i < EVENTS; i++)
        if (raw->cu.events[i])
            api->cuEventDestroy(raw->cu.events[i]);
    for (unsigned i = 0; i < QUEUES_MAX; i++)
        if (raw->cu.ends[i])
            api->cuEventDestroy(raw->cu.ends[i]);
    if (raw->cu.fork)
        api->cuEventDestroy(raw->cu.fork);
    if (raw->src)
        api->cuMemFreeHost(raw->src);
    if (raw->dst)
        api->cuMemFreeHost(raw->dst);
    if (raw->cu.in)
        api->cuMemFree(raw->cu.in);
    if (raw->cu.out)
        api->cuMemFree(raw->cu.out);
    raw_cuda_close(&raw->cu.api);
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
    .close = cu_close,
};

static bool cu_open(struct raw *raw)
{
    const size_t size = raw->size;
    bool fine = CU(cuModuleGetFunction, &raw->cu.advance, raw->cu.api.module, "advance") &&
                CU(cuMemAlloc, &raw->cu.in, size) && CU(cuMemAlloc, &raw->cu.out, size) &&
                CU(cuMemHostAlloc, (void **)&raw->src, size, 0) &&
                CU(cuMemHostAlloc, (void **)&raw->dst, size, 0) &&
                CU(cuEventCreate, &raw->cu.fork, CU_EVENT_DISABLE_TIMING);
    for (unsigned i = 0; i < EVENTS && fine; i++)
        fine = CU(cuEventCreate, &raw->cu.events[i], CU_EVENT_DISABLE_TIMING);
    for (unsigned i = 0; i < QUEUES_MAX && fine; i++)
        fine = CU(cuEventCreate, &raw->cu.ends[i], CU_EVENT_DISABLE_TIMING);
    return fine;
}

// OpenCL.

static bool cl_fine(struct raw *raw, cl_int code, const char *call)
{
    return code == CL_SUCCESS ||
           bench_fail(raw->bench, CLI_SETUP, "plain OpenCL: %s failed with %d", call, (int)code);
}

#define CL(name, ...) cl_fine(raw, raw->cl.api.name(__VA_ARGS__), #name)

static bool cl_make_queue(struct raw *raw, cl_command_queue *out_queue)
{
    cl_int code = 0;
    *out_queue =
        raw->cl.api.clCreateCommandQueue(raw->cl.api.context, raw->cl.api.device, 0, &code);
    return cl_fine(raw, code, "clCreateCommandQueue");
}

static bool cl_open_queue(struct raw *raw, unsigned queue)
{
    return cl_make_queue(raw, &raw->cl.queues[queue]);
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

static bool cl_flush(struct raw *raw, unsigned queue)
{
    return CL(clFlush, raw->cl.queues[queue]);
}

static bool cl_copy(struct raw *raw, unsigned queue, bool up, size_t at, size_t size)
{
    return (up ? CL(clEnqueueWriteBuffer, raw->cl.queues[queue], raw->cl.in, 0, at, size,
                    (char *)raw->src + at, 0, NULL, NULL)
               : CL(clEnqueueReadBuffer, raw->cl.queues[queue],
                    raw->bare ? raw->cl.out : raw->cl.in, 0, at, size, (char *)raw->dst + at, 0,
                    NULL, NULL)) &&
           cl_flush(raw, queue);
}

// The kernel takes whole buffers and starts at a global offset: no sub-buffers, which some drivers order
// against each other.
static bool cl_multiply(struct raw *raw, unsigned queue, size_t at, size_t size, uint32_t rounds)
{
    cl_kernel kernel = raw->cl.advance;
    const uint32_t end = (uint32_t)((at + size) / sizeof(uint32_t));
    const size_t first = at / sizeof(uint32_t), count = size / sizeof(uint32_t), block = BLOCK;
    return CL(clSetKernelArg, kernel, 0, sizeof raw->cl.in, &raw->cl.in) &&
           CL(clSetKernelArg, kernel, 1, sizeof rounds, &rounds) &&
           CL(clSetKernelArg, kernel, 2, sizeof end, &end) &&
           CL(clEnqueueNDRangeKernel, raw->cl.queues[queue], kernel, 1, &first, &count, &block, 0,
              NULL, NULL) &&
           cl_flush(raw, queue);
}

static bool cl_record(struct raw *raw, unsigned queue, unsigned event)
{
    cl_forget(raw, event);
    return CL(clEnqueueMarkerWithWaitList, raw->cl.queues[queue], 0, NULL, &raw->cl.events[event]);
}

static bool cl_wait(struct raw *raw, unsigned queue, unsigned event)
{
    return CL(clEnqueueBarrierWithWaitList, raw->cl.queues[queue], 1, &raw->cl.events[event], NULL);
}

static bool cl_finish(struct raw *raw, unsigned queue)
{
    return CL(clFinish, raw->cl.queues[queue]);
}

static bool cl_spoil(struct raw *raw)
{
    const uint32_t nothing = 0xffffffffu;
    return CL(clEnqueueFillBuffer, raw->cl.queues[0], raw->cl.in, &nothing, sizeof nothing, 0,
              raw->size, 0, NULL, NULL) &&
           CL(clEnqueueFillBuffer, raw->cl.queues[0], raw->cl.out, &nothing, sizeof nothing, 0,
              raw->size, 0, NULL, NULL) &&
           cl_finish(raw, 0);
}

static void release(struct raw *raw, cl_mem buffer, void *pointer)
{
    if (pointer)
        raw->cl.api.clEnqueueUnmapMemObject(raw->cl.keeper, buffer, pointer, 0, NULL, NULL);
    if (raw->cl.keeper)
        raw->cl.api.clFinish(raw->cl.keeper);
    if (buffer)
        raw->cl.api.clReleaseMemObject(buffer);
}

static void cl_close(struct raw *raw)
{
    release(raw, raw->cl.src, raw->src);
    release(raw, raw->cl.dst, raw->dst);
    release(raw, raw->cl.in, NULL);
    release(raw, raw->cl.out, NULL);
    if (raw->cl.advance)
        raw->cl.api.clReleaseKernel(raw->cl.advance);
    if (raw->cl.keeper)
        raw->cl.api.clReleaseCommandQueue(raw->cl.keeper);
    raw_opencl_close(&raw->cl.api);
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
    .close = cl_close,
};

static bool make_buffer(struct raw *raw, cl_mem *out_buffer, uint32_t **out_pinned)
{
    const struct raw_opencl *api = &raw->cl.api;
    cl_int code;
    *out_buffer = api->clCreateBuffer(api->context,
                                      CL_MEM_READ_WRITE | (out_pinned ? CL_MEM_ALLOC_HOST_PTR : 0),
                                      raw->size, NULL, &code);
    if (code == CL_SUCCESS && out_pinned)
        *out_pinned =
            api->clEnqueueMapBuffer(raw->cl.keeper, *out_buffer, 1, CL_MAP_READ | CL_MAP_WRITE, 0,
                                    raw->size, 0, NULL, NULL, &code);
    return cl_fine(raw, code, "a buffer");
}

static bool cl_open(struct raw *raw)
{
    cl_int code = 0;
    raw->cl.advance = raw->cl.api.clCreateKernel(raw->cl.api.program, "advance", &code);
    return cl_fine(raw, code, "clCreateKernel") && cl_make_queue(raw, &raw->cl.keeper) &&
           make_buffer(raw, &raw->cl.in, NULL) && make_buffer(raw, &raw->cl.out, NULL) &&
           make_buffer(raw, &raw->cl.src, &raw->src) && make_buffer(raw, &raw->cl.dst, &raw->dst);
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

// One operation of one piece, with the events that its stage needs `by_engine`.
static bool submit(struct raw *raw, const struct way *way, const struct pieces *pieces,
                   enum stage stage, unsigned piece, uint32_t rounds)
{
    const struct calls *calls = raw->calls;
    const size_t at = piece > 0 ? pieces->ends[piece - 1] : 0, size = pieces->ends[piece] - at;
    const unsigned queue = way->by_engine ? stage : piece % way->queues;
    if (way->by_engine && stage != UP && !calls->wait(raw, queue, 2 * piece + (stage == DOWN)))
        return false;
    if (stage == MULTIPLY ? !calls->multiply(raw, queue, at, size, rounds)
                          : !calls->copy(raw, queue, stage == UP, at, size))
        return false;
    // Flushes the work that another queue waits for.
    return !way->by_engine || stage == DOWN ||
           (calls->record(raw, queue, 2 * piece + (stage == MULTIPLY)) && calls->flush(raw, queue));
}

static bool submit_all(struct raw *raw, const struct way *way, const struct pieces *pieces,
                       uint32_t rounds)
{
    const unsigned count = pieces->count;
    bool fine = true;
    for (unsigned i = 0; way->order != INTERLEAVED && fine && i < count * STAGES; i++)
        fine = way->order == DEPTH_FIRST
                   ? submit(raw, way, pieces, (enum stage)(i % STAGES), i / STAGES, rounds)
                   : submit(raw, way, pieces, (enum stage)(i / count), i % count, rounds);
    if (way->order != INTERLEAVED)
        return fine;
    fine = submit(raw, way, pieces, UP, 0, rounds);
    for (unsigned i = 0; fine && i < count; i++)
        fine = submit(raw, way, pieces, MULTIPLY, i, rounds) &&
               (i + 1 == count || submit(raw, way, pieces, UP, i + 1, rounds)) &&
               submit(raw, way, pieces, DOWN, i, rounds);
    return fine;
}

// The bare copies: up in queue 0, down in queue 1.
static bool submit_copies(struct raw *raw, const struct way *way)
{
    const bool up = way != &ways[1], down = way != &ways[0];
    return (!up || (raw->calls->copy(raw, 0, true, 0, raw->size) && raw->calls->flush(raw, 0))) &&
           (!down || (raw->calls->copy(raw, 1, false, 0, raw->size) && raw->calls->flush(raw, 1)));
}

static bool run_once(struct raw *raw, const struct way *way, const struct pieces *pieces,
                     uint32_t rounds)
{
    bool fine = way->order == COPIES ? submit_copies(raw, way)
                : way->graph         ? CU(cuGraphLaunch, raw->cu.executable, raw->cu.queues[0])
                                     : submit_all(raw, way, pieces, rounds);
    for (unsigned i = 0; fine && i < way->queues; i++)
        fine = raw->calls->flush(raw, i);
    for (unsigned i = 0; fine && i < way->queues; i++)
        fine = raw->calls->finish(raw, i);
    return fine;
}

static bool run_times(struct raw *raw, const struct way *way, uint32_t rounds, int times,
                      double *out_ms)
{
    struct pieces pieces = {.count = 0};
    bool fine = true;
    if (way->pieces)
        cut(raw->size, way, &pieces);
    if (way->graph)
        fine = begin_capture(raw) && submit_all(raw, way, &pieces, rounds) && end_capture(raw);
    for (int i = 0; fine && i < times; i++) {
        const uint64_t began = cli_now_ns();
        fine = run_once(raw, way, &pieces, rounds);
        *out_ms = (double)(cli_now_ns() - began) * 1e-6;
    }
    return fine;
}

static bool run_way(void *user, size_t index, bool checks, double *out_ms)
{
    struct raw *raw = user;
    const struct way *way = &ways[index];
    const uint32_t rounds = 1 + (checks ? index % 14 : 0); // others in each way that is checked
    bool fine = true;
    raw->bare = way->order == COPIES;
    for (raw->queue_count = 0; fine && raw->queue_count < way->queues;)
        if ((fine = raw->calls->open_queue(raw, raw->queue_count)))
            raw->queue_count++;
    fine = fine && (!checks || raw->calls->spoil(raw)) &&
           run_times(raw, way, rounds, checks ? 1 : 2, out_ms);
    while (raw->queue_count > 0)
        raw->calls->close_queue(raw, --raw->queue_count);
    return fine && (!checks || bench_work_compare(raw->bench, raw->dst, raw->size, OVERLAP_SEED,
                                                  rounds, way->name));
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

static void close_raw(void *user)
{
    struct raw *raw = user;
    if (raw && raw->calls)
        raw->calls->close(raw);
    free(raw);
}

static void *open_raw(struct bench *bench, size_t size)
{
    const char *backend = weir_runtime_backend(bench->runtime);
    const bool cuda = strcmp(backend, "cuda") == 0;
    struct raw *raw = calloc(1, sizeof *raw);
    char message[512] = "the backend has no driver";
    if (!raw) {
        bench_fail(bench, CLI_FAILED, "no memory for the driver's calls");
        return NULL;
    }
    raw->bench = bench;
    raw->size = size;
    if (cuda && raw_cuda_open(&raw->cu.api, &bench_kernels, message, sizeof message))
        raw->calls = &cu_calls;
    if (strcmp(backend, "opencl") == 0 &&
        raw_opencl_open(&raw->cl.api, weir_device_get_info(bench->device)->name, &bench_kernels,
                        message, sizeof message))
        raw->calls = &cl_calls;
    if (!raw->calls) {
        bench_note(bench, "not measured: raw calls: %.250s", message);
    } else if (cuda ? cu_open(raw) : cl_open(raw)) {
        bench_work_numbers(raw->src, size, OVERLAP_SEED);
        return raw;
    }
    close_raw(raw);
    return NULL;
}

// The job.

static int overlap_main(int argc, char **argv)
{
    static const struct overlap_raw raw = {
        .open = open_raw,
        .close = close_raw,
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
