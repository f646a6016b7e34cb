// The chunk job in plain OpenCL, as NVIDIA's overlap sample does it: pinned memory is a
// buffer with CL_MEM_ALLOC_HOST_PTR that stays mapped, copies go through the pointer, and
// every operation is flushed, so that the device begins while more is submitted.
#include <string.h>

#include "tests/bench/peers/chunk_job.h"
#include "tests/bench/peers/raw_peer.h"

struct raw {
    struct raw_opencl cl;
    uint64_t bytes;
    cl_kernel scale;
    cl_mem in, out;
    cl_mem pinned_src, pinned_dst;
    cl_command_queue keeper; // of the mappings
    cl_command_queue queues[CHUNK_QUEUES_MAX];
    unsigned queue_count;
    cl_event events[CHUNK_EVENTS];
    struct chunk_job job;
};

// The calls of the job.

static void forget_events(struct raw *raw)
{
    for (unsigned i = 0; i < CHUNK_EVENTS; i++)
        if (raw->events[i]) {
            raw->cl.clReleaseEvent(raw->events[i]);
            raw->events[i] = NULL;
        }
}

static void close_queues(void *user)
{
    struct raw *raw = user;
    forget_events(raw);
    while (raw->queue_count > 0)
        raw->cl.clReleaseCommandQueue(raw->queues[--raw->queue_count]);
}

static bool open_queues(void *user, unsigned count)
{
    struct raw *raw = user;
    int32_t code = 0;
    for (raw->queue_count = 0; raw->queue_count < count; raw->queue_count++) {
        raw->queues[raw->queue_count] =
            raw->cl.clCreateCommandQueue(raw->cl.context, raw->cl.device, 0, &code);
        if (!raw_peer_opencl_fine(code, "clCreateCommandQueue"))
            return false;
    }
    return true;
}

static bool flush(void *user, unsigned queue)
{
    struct raw *raw = user;
    return RAW_OPENCL(&raw->cl, clFlush, raw->queues[queue]);
}

static bool up(void *user, unsigned queue, size_t offset, size_t size)
{
    struct raw *raw = user;
    return RAW_OPENCL(&raw->cl, clEnqueueWriteBuffer, raw->queues[queue], raw->in, 0, offset, size,
                      (const char *)raw->job.src + offset, 0, NULL, NULL) &&
           flush(raw, queue);
}

// The kernel takes whole buffers and starts at a global offset: no sub-buffers, which
// some drivers order against each other.
static bool multiply(void *user, unsigned queue, size_t offset, size_t size, float factor)
{
    struct raw *raw = user;
    cl_kernel kernel = raw->scale;
    const uint32_t end = (uint32_t)((offset + size) / sizeof(float));
    const size_t first = offset / sizeof(float), count = size / sizeof(float);
    const size_t block = CHUNK_BLOCK;
    return RAW_OPENCL(&raw->cl, clSetKernelArg, kernel, 0, sizeof raw->in, &raw->in) &&
           RAW_OPENCL(&raw->cl, clSetKernelArg, kernel, 1, sizeof raw->out, &raw->out) &&
           RAW_OPENCL(&raw->cl, clSetKernelArg, kernel, 2, sizeof factor, &factor) &&
           RAW_OPENCL(&raw->cl, clSetKernelArg, kernel, 3, sizeof end, &end) &&
           RAW_OPENCL(&raw->cl, clEnqueueNDRangeKernel, raw->queues[queue], kernel, 1, &first,
                      &count, &block, 0, NULL, NULL) &&
           flush(raw, queue);
}

static bool down(void *user, unsigned queue, size_t offset, size_t size)
{
    struct raw *raw = user;
    return RAW_OPENCL(&raw->cl, clEnqueueReadBuffer, raw->queues[queue], raw->out, 0, offset, size,
                      (char *)raw->job.dst + offset, 0, NULL, NULL) &&
           flush(raw, queue);
}

static bool record(void *user, unsigned queue, unsigned event)
{
    struct raw *raw = user;
    if (raw->events[event])
        raw->cl.clReleaseEvent(raw->events[event]);
    raw->events[event] = NULL;
    return RAW_OPENCL(&raw->cl, clEnqueueMarkerWithWaitList, raw->queues[queue], 0, NULL,
                      &raw->events[event]);
}

static bool wait(void *user, unsigned queue, unsigned event)
{
    struct raw *raw = user;
    return RAW_OPENCL(&raw->cl, clEnqueueBarrierWithWaitList, raw->queues[queue], 1,
                      &raw->events[event], NULL);
}

static bool finish(void *user)
{
    struct raw *raw = user;
    bool fine = true;
    for (unsigned i = 0; fine && i < raw->queue_count; i++)
        fine = RAW_OPENCL(&raw->cl, clFinish, raw->queues[i]);
    return fine;
}

static bool spoil(void *user)
{
    struct raw *raw = user;
    const uint32_t pattern = 0xffffffffu;
    return RAW_OPENCL(&raw->cl, clEnqueueFillBuffer, raw->queues[0], raw->in, &pattern,
                      sizeof pattern, 0, raw->job.size, 0, NULL, NULL) &&
           RAW_OPENCL(&raw->cl, clEnqueueFillBuffer, raw->queues[0], raw->out, &pattern,
                      sizeof pattern, 0, raw->job.size, 0, NULL, NULL) &&
           RAW_OPENCL(&raw->cl, clFinish, raw->queues[0]);
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
};

// The peer.

static bool make_buffer(struct raw *raw, uint64_t flags, cl_mem *out_buffer)
{
    int32_t code;
    *out_buffer = raw->cl.clCreateBuffer(raw->cl.context, flags, raw->job.size, NULL, &code);
    return raw_peer_opencl_fine(code, "clCreateBuffer");
}

static bool make_pinned(struct raw *raw, cl_mem *out_buffer, float **out_pointer)
{
    int32_t code;
    if (!make_buffer(raw, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, out_buffer))
        return false;
    *out_pointer =
        raw->cl.clEnqueueMapBuffer(raw->keeper, *out_buffer, 1, CL_MAP_READ | CL_MAP_WRITE, 0,
                                   raw->job.size, 0, NULL, NULL, &code);
    return raw_peer_opencl_fine(code, "clEnqueueMapBuffer");
}

static bool open_raw(void *user)
{
    struct raw *raw = user;
    struct raw_opencl *cl = &raw->cl;
    int32_t code = 0;
    raw->job = (struct chunk_job){.calls = &calls, .user = raw, .size = chunk_size(raw->bytes)};
    if (!raw_peer_opencl(cl))
        return false;
    raw->scale = cl->clCreateKernel(cl->program, "scale", &code);
    if (!raw_peer_opencl_fine(code, "clCreateKernel"))
        return false;
    raw->keeper = cl->clCreateCommandQueue(cl->context, cl->device, 0, &code);
    if (!raw_peer_opencl_fine(code, "clCreateCommandQueue") ||
        !make_buffer(raw, CL_MEM_READ_WRITE, &raw->in) ||
        !make_buffer(raw, CL_MEM_READ_WRITE, &raw->out) ||
        !make_pinned(raw, &raw->pinned_src, &raw->job.src) ||
        !make_pinned(raw, &raw->pinned_dst, &raw->job.dst))
        return false;
    return chunk_check(&raw->job);
}

static bool round_raw(void *user)
{
    struct raw *raw = user;
    return chunk_round(&raw->job);
}

static void release_pinned(struct raw *raw, cl_mem buffer, float *pointer)
{
    if (pointer)
        raw->cl.clEnqueueUnmapMemObject(raw->keeper, buffer, pointer, 0, NULL, NULL);
    if (raw->keeper)
        raw->cl.clFinish(raw->keeper);
    if (buffer)
        raw->cl.clReleaseMemObject(buffer);
}

static void close_raw(void *user)
{
    struct raw *raw = user;
    struct raw_opencl *cl = &raw->cl;
    if (!cl->context) {
        raw_opencl_close(cl);
        return;
    }
    close_queues(raw);
    release_pinned(raw, raw->pinned_src, raw->job.src);
    release_pinned(raw, raw->pinned_dst, raw->job.dst);
    if (raw->in)
        cl->clReleaseMemObject(raw->in);
    if (raw->out)
        cl->clReleaseMemObject(raw->out);
    if (raw->scale)
        cl->clReleaseKernel(raw->scale);
    if (raw->keeper)
        cl->clReleaseCommandQueue(raw->keeper);
    raw_opencl_close(cl);
}

int main(int argc, char **argv)
{
    static struct raw raw;
    const struct peer peer = {
        .name = "raw_opencl_chunks",
        .about = "Copies, multiplies and copies back in chunks, in plain OpenCL.",
        .open = open_raw,
        .round = round_raw,
        .close = close_raw,
    };
    return chunk_main(&peer, &raw, &raw.bytes, argc, argv);
}
