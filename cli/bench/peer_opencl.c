// Written as a careful OpenCL program would be: no events where none are needed,
// objects created once. The few declarations are here, so that the command builds
// without OpenCL headers; names and values are Khronos'.
#include "cli/bench/peer_opencl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/kit/symbols.h>

enum {
    PLATFORM_LIMIT = 16,
    DEVICE_LIMIT = 16,
    DEVICE_NAME = 0x102B,
    MEMORY_READ_WRITE = 1,
};

#define DEVICE_TYPE_ALL UINT64_C(0xFFFFFFFF)

// X(name, arguments): functions that return an error code.
#define PEER_CALLS(X)                                                                       \
    X(clGetPlatformIDs, (uint32_t, void **, uint32_t *))                                    \
    X(clGetDeviceIDs, (void *, uint64_t, uint32_t, void **, uint32_t *))                    \
    X(clGetDeviceInfo, (void *, uint32_t, size_t, void *, size_t *))                        \
    X(clBuildProgram,                                                                       \
      (void *, uint32_t, void *const *, const char *, void (*)(void *, void *), void *))    \
    X(clSetKernelArg, (void *, uint32_t, size_t, const void *))                             \
    X(clEnqueueNDRangeKernel, (void *, void *, uint32_t, const size_t *, const size_t *,    \
                               const size_t *, uint32_t, void *const *, void **))           \
    X(clEnqueueReadBuffer,                                                                  \
      (void *, void *, uint32_t, size_t, size_t, void *, uint32_t, void *const *, void **)) \
    X(clFinish, (void *))                                                                   \
    X(clReleaseContext, (void *))                                                           \
    X(clReleaseCommandQueue, (void *))                                                      \
    X(clReleaseMemObject, (void *))                                                         \
    X(clReleaseProgram, (void *))                                                           \
    X(clReleaseKernel, (void *))

// And those that return an object.
#define PEER_MAKERS(X)                                                                            \
    X(clCreateContext, (const intptr_t *, uint32_t, void *const *,                                \
                        void (*)(const char *, const void *, size_t, void *), void *, int32_t *)) \
    X(clCreateCommandQueue, (void *, void *, uint64_t, int32_t *))                                \
    X(clCreateBuffer, (void *, uint64_t, size_t, void *, int32_t *))                              \
    X(clCreateProgramWithSource, (void *, uint32_t, const char **, const size_t *, int32_t *))    \
    X(clCreateKernel, (void *, const char *, int32_t *))

struct peer_api {
#define PEER_CALL(name, arguments) int32_t(*name) arguments;
#define PEER_MAKER(name, arguments) void *(*name)arguments;
    PEER_CALLS(PEER_CALL)
    PEER_MAKERS(PEER_MAKER)
#undef PEER_CALL
#undef PEER_MAKER
};

static const struct weir_kit_symbol symbols[] = {
#define PEER_SYMBOL(name, arguments) {#name, offsetof(struct peer_api, name), false},
    PEER_CALLS(PEER_SYMBOL) PEER_MAKERS(PEER_SYMBOL)
#undef PEER_SYMBOL
};

struct bench_cl {
    struct peer_api cl;
    void *device;
    void *context;
    void *queue;
    void *buffer;
    void *program;
    void *spin;
    void *increment;
};

static bool load(bench_cl *peer, char *message, size_t size)
{
    static const char *const names[] = {"libOpenCL.so.1", "libOpenCL.so"};
    void *library = weir_kit_library_open(names, 2, message, size);
    return library &&
           weir_kit_symbols_load(library, names[0], symbols, sizeof symbols / sizeof *symbols,
                                 &peer->cl, message, size);
}

static bool find_in_platform(bench_cl *peer, void *platform, const char *wanted)
{
    void *devices[DEVICE_LIMIT];
    uint32_t count = 0;
    if (peer->cl.clGetDeviceIDs(platform, DEVICE_TYPE_ALL, DEVICE_LIMIT, devices, &count) != 0)
        return false;
    for (uint32_t i = 0; i < count && i < DEVICE_LIMIT; i++) {
        char name[256] = "";
        if (peer->cl.clGetDeviceInfo(devices[i], DEVICE_NAME, sizeof name - 1, name, NULL) == 0 &&
            strcmp(name, wanted) == 0) {
            peer->device = devices[i];
            return true;
        }
    }
    return false;
}

static bool find(bench_cl *peer, const char *wanted, char *message, size_t size)
{
    void *platforms[PLATFORM_LIMIT];
    uint32_t count = 0;
    if (peer->cl.clGetPlatformIDs(PLATFORM_LIMIT, platforms, &count) == 0)
        for (uint32_t i = 0; i < count && i < PLATFORM_LIMIT; i++)
            if (find_in_platform(peer, platforms[i], wanted))
                return true;
    snprintf(message, size, "the OpenCL loader lists no device '%s'", wanted);
    return false;
}

static bool make(bench_cl *peer, const char *source, size_t buffer_size)
{
    const struct peer_api *cl = &peer->cl;
    int32_t code;
    return (peer->context = cl->clCreateContext(NULL, 1, &peer->device, NULL, NULL, &code)) &&
           (peer->queue = cl->clCreateCommandQueue(peer->context, peer->device, 0, &code)) &&
           (peer->buffer =
                cl->clCreateBuffer(peer->context, MEMORY_READ_WRITE, buffer_size, NULL, &code)) &&
           (peer->program =
                cl->clCreateProgramWithSource(peer->context, 1, &source, NULL, &code)) &&
           cl->clBuildProgram(peer->program, 1, &peer->device, "-cl-std=CL1.2", NULL, NULL) == 0 &&
           (peer->spin = cl->clCreateKernel(peer->program, "spin", &code)) &&
           (peer->increment = cl->clCreateKernel(peer->program, "increment", &code));
}

bench_cl *bench_cl_open(const char *device, const char *source, size_t size, char *message,
                        size_t message_size)
{
    bench_cl *peer = calloc(1, sizeof *peer);
    if (!peer) {
        snprintf(message, message_size, "no memory for the peer");
        return NULL;
    }
    bool fine = load(peer, message, message_size) && find(peer, device, message, message_size);
    if (fine && !make(peer, source, size)) {
        snprintf(message, message_size, "plain OpenCL cannot set up the same work on '%s'", device);
        fine = false;
    }
    if (!fine)
        bench_cl_close(&peer);
    return peer;
}

void bench_cl_close(bench_cl **pointer)
{
    bench_cl *peer = *pointer;
    *pointer = NULL;
    if (!peer)
        return;
    const struct peer_api *cl = &peer->cl;
    if (peer->increment)
        cl->clReleaseKernel(peer->increment);
    if (peer->spin)
        cl->clReleaseKernel(peer->spin);
    if (peer->program)
        cl->clReleaseProgram(peer->program);
    if (peer->buffer)
        cl->clReleaseMemObject(peer->buffer);
    if (peer->queue)
        cl->clReleaseCommandQueue(peer->queue);
    if (peer->context)
        cl->clReleaseContext(peer->context);
    free(peer);
}

static bool launch(bench_cl *peer, void *kernel)
{
    static const size_t one = 1;
    return peer->cl.clEnqueueNDRangeKernel(peer->queue, kernel, 1, NULL, &one, &one, 0, NULL,
                                           NULL) == 0;
}

bool bench_cl_spin(bench_cl *peer, uint32_t seed, uint64_t steps)
{
    const struct peer_api *cl = &peer->cl;
    return cl->clSetKernelArg(peer->spin, 0, sizeof peer->buffer, &peer->buffer) == 0 &&
           cl->clSetKernelArg(peer->spin, 1, sizeof seed, &seed) == 0 &&
           cl->clSetKernelArg(peer->spin, 2, sizeof steps, &steps) == 0 && launch(peer, peer->spin);
}

bool bench_cl_empty(bench_cl *peer, bool set_arguments)
{
    static const uint32_t by = 1, none = 0;
    const struct peer_api *cl = &peer->cl;
    if (set_arguments &&
        (cl->clSetKernelArg(peer->increment, 0, sizeof peer->buffer, &peer->buffer) != 0 ||
         cl->clSetKernelArg(peer->increment, 1, sizeof by, &by) != 0 ||
         cl->clSetKernelArg(peer->increment, 2, sizeof none, &none) != 0))
        return false;
    return launch(peer, peer->increment);
}

bool bench_cl_finish(bench_cl *peer)
{
    return peer->cl.clFinish(peer->queue) == 0;
}

bool bench_cl_read(bench_cl *peer, uint32_t *out_value)
{
    return peer->cl.clEnqueueReadBuffer(peer->queue, peer->buffer, 1, 0, sizeof *out_value,
                                        out_value, 0, NULL, NULL) == 0;
}
