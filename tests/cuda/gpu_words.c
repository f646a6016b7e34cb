// gpu_check's cost of progress words, which [cuda] attribute_faults writes after every launch:
// raw launches without one and with one, alternating with Weir's. Both sides make the same
// calls on a thread whose current context is the device's, as is usual in programs that use the
// CUDA runtime.
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/symbols.h"
#include "base/clock.h"
#include "kernels/conformance/conformance.h"
#include "tests/cuda/gpu_check.h"

enum {
    BATCH = 200,
    ROUNDS = 11,
    THREADS = 64
};

struct raw_side {
    const struct cu_symbols *driver;
    CUstream stream;
    CUmemoryPool pool;
    CUdeviceptr memory; // DEVICE memory, as Weir has it
    void *pinned;       // where the word is
    CUdeviceptr word;   // the same for the device
    CUmodule module;
    CUfunction function;
};

static const void *first_cubin(unsigned architecture)
{
    for (uint32_t i = 0; i < conformance_kernels.image_count; i++) {
        const struct weir_image *image = &conformance_kernels.images[i];
        if (weir_image_is(image, WEIR_IMAGE_CUBIN) &&
            weir_image_sm(image) / 10 == architecture / 10 && weir_image_sm(image) <= architecture)
            return image->data;
    }
    return NULL;
}

static bool load_kernel(struct raw_side *side)
{
    const struct cu_symbols *cu = side->driver;
    int major = 0;
    int minor = 0;
    cu->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
    cu->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
    const void *image = first_cubin((unsigned)(10 * major + minor));
    return image && cu->cuModuleLoadDataEx(&side->module, image, 0, NULL, NULL) == CUDA_SUCCESS &&
           cu->cuModuleGetFunction(&side->function, side->module, "iota") == CUDA_SUCCESS;
}

static bool make_memory(struct raw_side *side)
{
    const struct cu_symbols *cu = side->driver;
    CUmemPoolProps properties;
    memset(&properties, 0, sizeof properties);
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return cu->cuMemPoolCreate(&side->pool, &properties) == CUDA_SUCCESS &&
           cu->cuMemAllocFromPoolAsync(&side->memory, 4096, side->pool, side->stream) ==
               CUDA_SUCCESS &&
           cu->cuStreamSynchronize(side->stream) == CUDA_SUCCESS &&
           cu->cuMemHostAlloc(&side->pinned, 4096, 0) == CUDA_SUCCESS &&
           cu->cuMemHostGetDevicePointer(&side->word, side->pinned, 0) == CUDA_SUCCESS;
}

static bool open_raw(struct raw_side *side, const struct cu_symbols *driver)
{
    *side = (struct raw_side){.driver = driver};
    return load_kernel(side) &&
           driver->cuStreamCreateWithPriority(&side->stream, CU_STREAM_NON_BLOCKING, 0) ==
               CUDA_SUCCESS &&
           make_memory(side);
}

static void close_raw(struct raw_side *side)
{
    const struct cu_symbols *cu = side->driver;
    cu->cuMemFreeAsync(side->memory, side->stream);
    cu->cuStreamSynchronize(side->stream);
    cu->cuMemPoolDestroy(side->pool);
    cu->cuStreamDestroy(side->stream);
    cu->cuModuleUnload(side->module);
    cu->cuMemFreeHost(side->pinned);
}

// Nanoseconds per launch.
static double raw_launches(const struct raw_side *side, bool with_words)
{
    const struct cu_symbols *cu = side->driver;
    uint32_t first = 3;
    uint32_t n = THREADS;
    CUdeviceptr memory = side->memory;
    void *parameters[] = {&memory, &first, &n};
    const uint64_t start_ns = weir_clock_now_ns();
    for (uint32_t i = 0; i < BATCH; i++) {
        cu->cuLaunchKernel(side->function, 1, 1, 1, THREADS, 1, 1, 0, side->stream, parameters,
                           NULL);
        if (with_words)
            cu->cuStreamWriteValue32(side->stream, side->word, i, CU_STREAM_WRITE_VALUE_DEFAULT);
    }
    const uint64_t took = weir_clock_now_ns() - start_ns;
    cu->cuStreamSynchronize(side->stream);
    return (double)took / BATCH;
}

static double weir_launches(const struct bench *bench)
{
    const uint64_t start_ns = weir_clock_now_ns();
    for (uint32_t i = 0; i < BATCH; i++)
        WEIR_IGNORE(weir_queue_launch(bench->queue, bench->iota, weir_dim(1, 1, 1),
                                      weir_dim(THREADS, 1, 1),
                                      weir_out(bench->memory, 0, (uint64_t)4 * THREADS), 3u,
                                      (uint32_t)THREADS));
    const uint64_t took = weir_clock_now_ns() - start_ns;
    WEIR_IGNORE(weir_queue_sync(bench->queue, WEIR_FOREVER));
    return (double)took / BATCH;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

static void measure(const struct raw_side *side, const struct bench *bench,
                    const struct bench *attributed)
{
    double figures[4][ROUNDS];
    double medians[4];
    for (int i = -1; i < ROUNDS; i++) { // the first one warms up
        const int at = i < 0 ? 0 : i;
        figures[0][at] = raw_launches(side, false);
        figures[1][at] = raw_launches(side, true);
        figures[2][at] = weir_launches(bench);
        figures[3][at] = weir_launches(attributed);
    }
    for (int i = 0; i < 4; i++)
        medians[i] = median(figures[i]);
    const double words[] = {medians[1] - medians[0], medians[3] - medians[2]};
    check(words[1] < 2 * words[0] + 500,
          "attribute_faults: a launch takes %.1f ns with it, %.1f without, so a word takes %.1f; "
          "raw: %.1f with a word, %.1f without, so %.1f",
          medians[3], medians[2], words[1], medians[1], medians[0], words[0]);
}

void check_words(const struct bench *bench, const struct cu_symbols *driver)
{
    CUcontext context = NULL;
    struct raw_side side;
    struct bench attributed;
    if (driver->cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) {
        check(false, "cuDevicePrimaryCtxRetain");
        return;
    }
    driver->cuCtxSetCurrent(context);
    if (!start_with(&attributed, "[cuda]\nattribute_faults = 1\n")) {
        check(false, "opening the device with attribute_faults = 1");
    } else {
        if (open_raw(&side, driver)) {
            measure(&side, bench, &attributed);
            close_raw(&side);
        } else {
            check(false, "raw driver calls beside Weir's");
        }
        finish(&attributed);
    }
    driver->cuCtxSetCurrent(NULL);
    driver->cuDevicePrimaryCtxRelease(0);
}
