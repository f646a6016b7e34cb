// The few declarations are here, so that the command builds without a CUDA toolkit; names
// and values are NVIDIA's. Functions come from cuGetProcAddress(), in the versions given
// beside them.
#include "cli/bench/peer_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/kit/symbols.h>

enum {
    STREAM_NON_BLOCKING = 1,
    EVENT_DISABLE_TIMING = 2,
    ALLOCATION_PINNED = 1, // of the device: the kind that pools have
    LOCATION_DEVICE = 1,
    POOL_RELEASE_THRESHOLD = 4,
    CAPABILITY_MAJOR = 75,
    CAPABILITY_MINOR = 76,
    NUMBERS_BYTES = BENCH_CUDA_NUMBERS * 4,
    LAUNCHED = 64
};

typedef unsigned long long device_pointer;

// CUmemPoolProps.
struct pool_properties {
    unsigned allocation;
    unsigned handles;
    unsigned location;
    int device;
    void *security;
    unsigned char reserved[64];
};

// X(version, name, parameters)
#define PEER_CALLS(X)                                                                        \
    X(2000, cuInit, (unsigned))                                                              \
    X(2000, cuDeviceGet, (int *, int))                                                       \
    X(2000, cuDeviceGetAttribute, (int *, int, int))                                         \
    X(7000, cuDevicePrimaryCtxRetain, (void **, int))                                        \
    X(11000, cuDevicePrimaryCtxRelease, (int))                                               \
    X(4000, cuCtxSetCurrent, (void *))                                                       \
    X(5050, cuStreamCreateWithPriority, (void **, unsigned, int))                            \
    X(4000, cuStreamDestroy, (void *))                                                       \
    X(2000, cuStreamSynchronize, (void *))                                                   \
    X(3020, cuStreamWaitEvent, (void *, void *, unsigned))                                   \
    X(2000, cuEventCreate, (void **, unsigned))                                              \
    X(4000, cuEventDestroy, (void *))                                                        \
    X(2000, cuEventRecord, (void *, void *))                                                 \
    X(2000, cuEventSynchronize, (void *))                                                    \
    X(11020, cuMemPoolCreate, (void **, const struct pool_properties *))                     \
    X(11020, cuMemPoolSetAttribute, (void *, int, void *))                                   \
    X(11020, cuMemPoolDestroy, (void *))                                                     \
    X(11020, cuMemAllocFromPoolAsync, (device_pointer *, size_t, void *, void *))            \
    X(11020, cuMemFreeAsync, (device_pointer, void *))                                       \
    X(2020, cuMemHostAlloc, (void **, size_t, unsigned))                                     \
    X(2000, cuMemFreeHost, (void *))                                                         \
    X(3020, cuMemcpyHtoDAsync, (device_pointer, const void *, size_t, void *))               \
    X(3020, cuMemcpyDtoHAsync, (void *, device_pointer, size_t, void *))                     \
    X(2010, cuModuleLoadDataEx, (void **, const void *, unsigned, int *, void **))           \
    X(2000, cuModuleUnload, (void *))                                                        \
    X(2000, cuModuleGetFunction, (void **, void *, const char *))                            \
    X(4000, cuLaunchKernel,                                                                  \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, \
       void **, void **))

// CUDA_KERNEL_NODE_PARAMS, in its second version.
struct node_parameters {
    void *function;
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_bytes;
    void **parameters;
    void **extra;
    void *kernel;
    void *context;
};

// What only graphs need; NULL where the driver lacks it.
#define PEER_GRAPH_CALLS(X)                                                      \
    X(10000, cuGraphCreate, (void **, unsigned))                                 \
    X(12000, cuGraphAddKernelNode,                                               \
      (void **, void *, void *const *, size_t, const struct node_parameters *))  \
    X(11040, cuGraphInstantiateWithFlags, (void **, void *, unsigned long long)) \
    X(11010, cuGraphUpload, (void *, void *))                                    \
    X(10000, cuGraphLaunch, (void *, void *))                                    \
    X(10000, cuGraphExecDestroy, (void *))                                       \
    X(10000, cuGraphDestroy, (void *))

struct peer_api {
#define PEER_CALL(version, name, parameters) int(*name) parameters;
    PEER_CALLS(PEER_CALL) PEER_GRAPH_CALLS(PEER_CALL)
#undef PEER_CALL
};

static const struct {
    const char *name;
    int version;
    size_t offset;
    bool optional;
} calls[] = {
#define PEER_ENTRY(version, name, parameters) \
    {#name, version, offsetof(struct peer_api, name), false},
#define PEER_OPTION(version, name, parameters) \
    {#name, version, offsetof(struct peer_api, name), true},
    PEER_CALLS(PEER_ENTRY) PEER_GRAPH_CALLS(PEER_OPTION)
#undef PEER_ENTRY
#undef PEER_OPTION
};

struct bench_cuda {
    struct peer_api cu;
    int device;
    void *context;
    void *streams[2];
    void *events[BENCH_CUDA_EVENTS];
    void *pool;
    device_pointer memory;
    void *pinned;
    void *module;
    void *function;
    void *graph; // an executable one
};

static bool load(bench_cuda *peer, char *message, size_t size)
{
    static const char *const names[] = {"libcuda.so.1", "libcuda.so"};
    struct {
        int (*get)(const char *, void **, int, uint64_t, void *);
    } bootstrap;
    static const struct weir_kit_symbol symbol = {"cuGetProcAddress_v2", 0, false};
    void *library = weir_kit_library_open(names, 2, message, size);
    if (!library ||
        !weir_kit_symbols_load(library, names[0], &symbol, 1, &bootstrap, message, size))
        return false;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        void *address = NULL;
        if (bootstrap.get(calls[i].name, &address, calls[i].version, 0, NULL) != 0)
            address = NULL;
        if (!address && !calls[i].optional) {
            snprintf(message, size, "the driver lacks %s", calls[i].name);
            return false;
        }
        // ISO C has no conversion from an object pointer to a function pointer.
        memcpy((char *)&peer->cu + calls[i].offset, &address, sizeof address);
    }
    return true;
}

// The newest cubin that the device runs.
static const void *image_for(const struct weir_bundle *bundle, unsigned architecture)
{
    const struct weir_image *best = NULL;
    for (uint32_t i = 0; i < bundle->image_count; i++) {
        const struct weir_image *image = &bundle->images[i];
        if (weir_image_is(image, WEIR_IMAGE_CUBIN) &&
            weir_image_sm(image) / 10 == architecture / 10 &&
            weir_image_sm(image) <= architecture &&
            (!best || weir_image_sm(image) > weir_image_sm(best)))
            best = image;
    }
    return best ? best->data : NULL;
}

static bool make_context(bench_cuda *peer)
{
    const struct peer_api *cu = &peer->cu;
    return cu->cuInit(0) == 0 && cu->cuDeviceGet(&peer->device, 0) == 0 &&
           cu->cuDevicePrimaryCtxRetain(&peer->context, peer->device) == 0 &&
           cu->cuCtxSetCurrent(peer->context) == 0;
}

static bool make_kernel(bench_cuda *peer, const struct weir_bundle *bundle)
{
    const struct peer_api *cu = &peer->cu;
    int major = 0, minor = 0;
    if (!bundle)
        return true;
    cu->cuDeviceGetAttribute(&major, CAPABILITY_MAJOR, peer->device);
    cu->cuDeviceGetAttribute(&minor, CAPABILITY_MINOR, peer->device);
    const void *image = image_for(bundle, (unsigned)(10 * major + minor));
    return image && cu->cuModuleLoadDataEx(&peer->module, image, 0, NULL, NULL) == 0 &&
           cu->cuModuleGetFunction(&peer->function, peer->module, "increment") == 0;
}

// DEVICE memory out of a pool, as Weir has it.
static bool make_memory(bench_cuda *peer)
{
    const struct peer_api *cu = &peer->cu;
    const struct pool_properties properties = {.allocation = ALLOCATION_PINNED,
                                               .location = LOCATION_DEVICE,
                                               .device = peer->device};
    for (int i = 0; i < 2; i++)
        if (cu->cuStreamCreateWithPriority(&peer->streams[i], STREAM_NON_BLOCKING, 0) != 0)
            return false;
    for (int i = 0; i < BENCH_CUDA_EVENTS; i++)
        if (cu->cuEventCreate(&peer->events[i], EVENT_DISABLE_TIMING) != 0)
            return false;
    if (cu->cuMemHostAlloc(&peer->pinned, NUMBERS_BYTES, 0) != 0)
        return false;
    for (uint32_t i = 0; i < BENCH_CUDA_NUMBERS; i++)
        ((uint32_t *)peer->pinned)[i] = i;
    uint64_t keep_all = UINT64_MAX;
    return cu->cuMemPoolCreate(&peer->pool, &properties) == 0 &&
           cu->cuMemPoolSetAttribute(peer->pool, POOL_RELEASE_THRESHOLD, &keep_all) == 0 &&
           cu->cuMemAllocFromPoolAsync(&peer->memory, NUMBERS_BYTES, peer->pool,
                                       peer->streams[0]) == 0 &&
           cu->cuStreamSynchronize(peer->streams[0]) == 0;
}

bench_cuda *bench_cuda_open(const struct weir_bundle *bundle, char *message, size_t message_size)
{
    bench_cuda *peer = calloc(1, sizeof *peer);
    if (!peer) {
        snprintf(message, message_size, "no memory for the peer");
        return NULL;
    }
    bool fine = load(peer, message, message_size);
    if (fine && !(make_context(peer) && make_kernel(peer, bundle) && make_memory(peer))) {
        snprintf(message, message_size, "raw driver calls cannot set up the same work");
        fine = false;
    }
    if (!fine)
        bench_cuda_close(&peer);
    return peer;
}

void bench_cuda_close(bench_cuda **pointer)
{
    bench_cuda *peer = *pointer;
    *pointer = NULL;
    if (!peer)
        return;
    const struct peer_api *cu = &peer->cu;
    if (peer->context) {
        cu->cuCtxSetCurrent(peer->context);
        if (peer->graph)
            cu->cuGraphExecDestroy(peer->graph);
        if (peer->memory)
            cu->cuMemFreeAsync(peer->memory, peer->streams[0]);
        for (int i = 0; i < 2; i++)
            if (peer->streams[i]) {
                cu->cuStreamSynchronize(peer->streams[i]);
                cu->cuStreamDestroy(peer->streams[i]);
            }
        if (peer->pool)
            cu->cuMemPoolDestroy(peer->pool);
        if (peer->pinned)
            cu->cuMemFreeHost(peer->pinned);
        for (int i = 0; i < BENCH_CUDA_EVENTS; i++)
            if (peer->events[i])
                cu->cuEventDestroy(peer->events[i]);
        if (peer->module)
            cu->cuModuleUnload(peer->module);
        cu->cuCtxSetCurrent(NULL);
        cu->cuDevicePrimaryCtxRelease(peer->device);
    }
    free(peer);
}

bool bench_cuda_use(bench_cuda *peer, bool current)
{
    return peer->cu.cuCtxSetCurrent(current ? peer->context : NULL) == 0;
}

bool bench_cuda_repeat(bench_cuda *peer, unsigned steps, size_t count)
{
    const struct peer_api *cu = &peer->cu;
    uint32_t by = 1, n = LAUNCHED;
    void *parameters[] = {&peer->memory, &by, &n};
    int code = 0;
    for (size_t i = 0; i < count && code == 0; i++) {
        if (steps & BENCH_CUDA_COPY)
            code |=
                cu->cuMemcpyHtoDAsync(peer->memory, peer->pinned, NUMBERS_BYTES, peer->streams[0]);
        if (steps & BENCH_CUDA_LAUNCH)
            code |= cu->cuLaunchKernel(peer->function, 1, 1, 1, LAUNCHED, 1, 1, 0, peer->streams[0],
                                       parameters, NULL);
        if (steps & (BENCH_CUDA_RECORD | BENCH_CUDA_SYNC))
            code |= cu->cuEventRecord(peer->events[i], peer->streams[0]);
        if (steps & BENCH_CUDA_WAIT)
            code |= cu->cuStreamWaitEvent(peer->streams[1], peer->events[i], 0);
        if (steps & BENCH_CUDA_SYNC)
            code |= cu->cuEventSynchronize(peer->events[i]);
    }
    return code == 0;
}

bool bench_cuda_allocate(bench_cuda *peer, size_t size, size_t out, size_t rounds)
{
    const struct peer_api *cu = &peer->cu;
    device_pointer blocks[BENCH_CUDA_BLOCKS];
    int code = 0;
    for (size_t round = 0; round < rounds && code == 0; round++) {
        for (size_t i = 0; i < out && code == 0; i++)
            code = cu->cuMemAllocFromPoolAsync(&blocks[i], size, peer->pool, peer->streams[0]);
        for (size_t i = out; i > 0 && code == 0; i--)
            code = cu->cuMemFreeAsync(blocks[i - 1], peer->streams[0]);
    }
    return code == 0;
}

// A chain: each node waits for the one before it.
static bool add_nodes(bench_cuda *peer, void *graph, size_t nodes)
{
    uint32_t by = 1, n = LAUNCHED;
    void *parameters[] = {&peer->memory, &by, &n};
    const struct node_parameters node = {.function = peer->function,
                                         .grid = {1, 1, 1},
                                         .block = {LAUNCHED, 1, 1},
                                         .parameters = parameters};
    void *last = NULL;
    for (size_t i = 0; i < nodes; i++) {
        void *before = last;
        if (peer->cu.cuGraphAddKernelNode(&last, graph, &before, i > 0, &node) != 0)
            return false;
    }
    return true;
}

bool bench_cuda_graph(bench_cuda *peer, size_t nodes)
{
    const struct peer_api *cu = &peer->cu;
    void *graph = NULL;
    if (!cu->cuGraphCreate || !cu->cuGraphAddKernelNode || !cu->cuGraphInstantiateWithFlags ||
        !cu->cuGraphUpload || !cu->cuGraphLaunch || !cu->cuGraphExecDestroy || !cu->cuGraphDestroy)
        return false;
    if (peer->graph)
        cu->cuGraphExecDestroy(peer->graph);
    peer->graph = NULL;
    const bool fine = cu->cuGraphCreate(&graph, 0) == 0 && add_nodes(peer, graph, nodes) &&
                      cu->cuGraphInstantiateWithFlags(&peer->graph, graph, 0) == 0 &&
                      cu->cuGraphUpload(peer->graph, peer->streams[0]) == 0;
    if (graph)
        cu->cuGraphDestroy(graph);
    return fine;
}

bool bench_cuda_graph_launch(bench_cuda *peer, size_t count)
{
    int code = 0;
    for (size_t i = 0; i < count && code == 0; i++)
        code = peer->cu.cuGraphLaunch(peer->graph, peer->streams[0]);
    return code == 0;
}

bool bench_cuda_finish(bench_cuda *peer)
{
    return peer->cu.cuStreamSynchronize(peer->streams[0]) == 0 &&
           peer->cu.cuStreamSynchronize(peer->streams[1]) == 0;
}

bool bench_cuda_read(bench_cuda *peer, uint32_t numbers[BENCH_CUDA_NUMBERS])
{
    uint32_t *pinned = peer->pinned;
    if (!bench_cuda_finish(peer) ||
        peer->cu.cuMemcpyDtoHAsync(pinned, peer->memory, NUMBERS_BYTES, peer->streams[0]) != 0 ||
        peer->cu.cuStreamSynchronize(peer->streams[0]) != 0)
        return false;
    memcpy(numbers, pinned, NUMBERS_BYTES);
    for (uint32_t i = 0; i < BENCH_CUDA_NUMBERS; i++)
        pinned[i] = i;
    return true;
}
