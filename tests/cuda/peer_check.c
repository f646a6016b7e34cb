// What copies between two GPUs cost: a program for a machine that has them. What they copy is in the
// conformance suite. It prints one line per check, with the figure if there is one, and exits with 1 if any
// failed.
//
// Weir's copy of 1 GiB alternates with the driver's, on memory of cuMemAlloc and separate
// streams, and the medians are compared.
#include <dlfcn.h>

#include "backends/cuda/symbols.h"
#include "base/clock.h"
#include "tests/cuda/check.h"

#define GIB ((size_t)1 << 30)
#define SMALL ((size_t)8 << 20)

enum {
    ROUNDS = 11,
    COPIES = 4, // in one round
    HOPS = 200,
};

static struct cu_symbols cu;

struct side {
    weir_device *device;
    weir_queue *queue;
    weir_buffer *memory; // 1 GiB
    weir_buffer *small;
    struct weir_native_device native;
    // The driver's own.
    CUstream stream;
    CUdeviceptr raw;
};

static struct side sides[2];

static weir_buffer *buffer_of(struct side *side, size_t size)
{
    weir_buffer *buffer = NULL;
    if (weir_buffer_create(side->device, WEIR_PARAMS(weir_buffer, .size = size), &buffer) < 0)
        check(false, "a buffer of %zu bytes", size);
    return buffer;
}

static bool open_side(weir_runtime *runtime, struct side *side, const char *index)
{
    if (weir_device_open(runtime, WEIR_PARAMS(weir_device, .select = index), &side->device) < 0 ||
        weir_queue_create(side->device, NULL, &side->queue) < 0 ||
        weir_device_get_native(side->device, &side->native) < 0) {
        check(false, "opening device %s", index);
        return false;
    }
    side->memory = buffer_of(side, GIB);
    side->small = buffer_of(side, SMALL);
    return side->memory && side->small;
}

static void close_side(struct side *side)
{
    weir_buffer_destroy(&side->memory);
    weir_buffer_destroy(&side->small);
    weir_queue_destroy(&side->queue);
    check(weir_device_close(&side->device) == WEIR_OK, "the device closes");
}

static bool open_raw(struct side *side)
{
    CUresult (*allocate)(CUdeviceptr *, size_t) = NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *address = driver ? dlsym(driver, "cuMemAlloc_v2") : NULL;
    memcpy(&allocate, &address, sizeof address);
    if (!allocate || cu.cuCtxSetCurrent(side->native.context) != CUDA_SUCCESS ||
        cu.cuStreamCreateWithPriority(&side->stream, CU_STREAM_NON_BLOCKING, 0) != CUDA_SUCCESS ||
        allocate(&side->raw, GIB) != CUDA_SUCCESS) {
        check(false, "memory and a stream of the driver's");
        return false;
    }
    return true;
}

// Figures.

static int by_value(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a;
    const uint64_t right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static uint64_t median(uint64_t *times)
{
    qsort(times, ROUNDS, sizeof *times, by_value);
    return times[ROUNDS / 2];
}

static uint64_t time_weir(struct side *by, struct side *to, struct side *from)
{
    const uint64_t start = weir_clock_now_ns();
    for (int i = 0; i < COPIES; i++)
        WEIR_IGNORE(weir_queue_copy(by->queue, to->memory, 0, from->memory, 0, GIB));
    const bool good = weir_queue_sync(by->queue, WEIR_FOREVER) == WEIR_OK;
    return good ? weir_clock_now_ns() - start : UINT64_MAX;
}

static uint64_t time_raw(struct side *by, struct side *to, struct side *from)
{
    const uint64_t start = weir_clock_now_ns();
    CUresult code = cu.cuCtxSetCurrent(by->native.context);
    for (int i = 0; i < COPIES && code == CUDA_SUCCESS; i++)
        code = cu.cuMemcpyPeerAsync(to->raw, to->native.context, from->raw, from->native.context,
                                    GIB, by->stream);
    if (code == CUDA_SUCCESS)
        code = cu.cuStreamSynchronize(by->stream);
    return code == CUDA_SUCCESS ? weir_clock_now_ns() - start : UINT64_MAX;
}

static double rate(uint64_t time_ns)
{
    return (double)COPIES * (double)GIB / (double)time_ns;
}

static void compare(struct side *by, struct side *to, struct side *from, const char *what)
{
    uint64_t weir[ROUNDS];
    uint64_t raw[ROUNDS];
    time_weir(by, to, from); // the first of each is slower
    time_raw(by, to, from);
    for (int i = 0; i < ROUNDS; i++) {
        weir[i] = time_weir(by, to, from);
        raw[i] = time_raw(by, to, from);
    }
    const uint64_t weir_ns = median(weir);
    const uint64_t raw_ns = median(raw);
    const double ratio = (double)weir_ns / (double)raw_ns;
    check(ratio <= 1.02, "%s, 1 GiB: Weir %.1f GB/s, cuMemcpyPeerAsync %.1f GB/s, ratio %.4f", what,
          rate(weir_ns), rate(raw_ns), ratio);
}

// Small copies back and forth, each after the other device's: waits on the devices.
static void check_hops(void)
{
    uint64_t times[ROUNDS];
    struct weir_event event;
    bool good = true;
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t start = weir_clock_now_ns();
        for (int hop = 0; hop < HOPS && good; hop++) {
            struct side *by = &sides[hop & 1];
            struct side *next = &sides[!(hop & 1)];
            good = weir_queue_copy(by->queue, next->small, 0, by->small, 0, 4096) == WEIR_OK &&
                   weir_queue_record(by->queue, &event) == WEIR_OK &&
                   weir_queue_wait(next->queue, event) == WEIR_OK;
        }
        good = good && weir_queue_sync(sides[0].queue, WEIR_FOREVER) == WEIR_OK;
        times[round] = weir_clock_now_ns() - start;
    }
    check(good, "a copy of 4 KiB and a wait of the other device: %.1f us a hop",
          (double)median(times) / HOPS / 1e3);
}

static void check_pair(weir_runtime *runtime)
{
    int can = 0;
    if (!open_side(runtime, &sides[0], "0") || !open_side(runtime, &sides[1], "1"))
        return;
    const uint64_t start = weir_clock_now_ns();
    const bool peers = weir_device_can_peer(sides[0].device, sides[1].device);
    const uint64_t first_ns = weir_clock_now_ns() - start;
    cu.cuDeviceCanAccessPeer(&can, sides[0].native.ordinal, sides[1].native.ordinal);
    check(peers,
          "the devices are peers; the driver says that they %s each other's memory; the "
          "first question took %.2f ms",
          can ? "reach" : "do not reach", (double)first_ns / 1e6);
    if (!peers || !open_raw(&sides[0]) || !open_raw(&sides[1]))
        return;
    cu.cuCtxSetCurrent(NULL);
    compare(&sides[0], &sides[1], &sides[0], "device 0 writes device 1");
    compare(&sides[0], &sides[0], &sides[1], "device 0 reads device 1");
    cu.cuCtxSetCurrent(NULL);
    check_hops();
}

int main(void)
{
    weir_runtime *runtime = NULL;
    char message[512];
    int version;
    if (weir_open(WEIR_PARAMS(weir_open, .backend = "cuda"), &runtime) < 0) {
        check(false, "opening the CUDA backend");
        return 1;
    }
    if (weir_device_count(runtime) < 2) {
        check(true, "skipped: there is one GPU");
        WEIR_IGNORE(weir_close(&runtime));
        return 0;
    }
    if (!cu_symbols_load("", &cu, &version, message, sizeof message)) {
        check(false, "%s", message);
        return 1;
    }
    check_pair(runtime);
    // The driver's memory and streams end with the process.
    for (int i = 0; i < 2; i++)
        if (sides[i].device)
            close_side(&sides[i]);
    check(weir_close(&runtime) == WEIR_OK, "the runtime closes");
    return check_failures ? 1 : 0;
}
