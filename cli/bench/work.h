// The work that benchmarks run on a device: a kernel with a chosen duration and a known
// result, and buffers of numbers for it. Ownership, threads and errors are those of bench.h.
#ifndef WEIR_CLI_BENCH_WORK_H
#define WEIR_CLI_BENCH_WORK_H

#include "cli/bench/bench.h"

struct bench_work {
    weir_kernel *kernel;
    weir_queue *queue; // for calibration and set-up, which are not part of the times
    uint32_t block;
};

void bench_work_open(struct bench_work *out_work);

// Launches the kernel, with `rounds` rounds, on the numbers in `size` bytes of the buffer.
// `size` is a multiple of 4. Errors: returned.
weir_status bench_work_launch(const struct bench_work *work, weir_queue *queue, weir_buffer *buffer,
                              size_t offset, size_t size, uint32_t rounds);

// Nanoseconds of the kernel alone over these bytes, from submit to sync.
double bench_work_time(const struct bench_work *work, weir_buffer *buffer, size_t size,
                       uint32_t rounds);

// The rounds with which the kernel takes about `wanted_ns` over these bytes, at least 1.
// 1 on a device that runs no kernels, unless they take virtual time.
uint32_t bench_work_calibrate(const struct bench_work *work, weir_buffer *buffer, size_t size,
                              double wanted_ns);

// Fills memory of any kind, or a buffer of the host's, with numbers that depend on `seed`.
void bench_work_numbers(uint32_t *numbers, size_t size, uint32_t seed);
void bench_work_fill(weir_buffer *buffer, size_t size, uint32_t seed);

// Checks that a range holds the kernel's results for the numbers of `seed`, counts it as
// checked, and spoils it. The message of a wrong result names `what`.
//
// Threads: any. Errors: false after bench_wrong().
bool bench_work_compare(uint32_t *numbers, size_t size, uint32_t seed, uint32_t rounds,
                        const char *what);
bool bench_work_check(weir_buffer *buffer, size_t size, uint32_t seed, uint32_t rounds,
                      const char *what);

// Objects.
void bench_buffer(weir_device *device, const char *label, size_t size, weir_placement placement,
                  weir_buffer **out_buffer);
void bench_queue(weir_device *device, const char *label, int32_t priority, weir_queue **out_queue);
void bench_kernel(weir_device *device, const struct weir_bundle *bundle, const char *name,
                  weir_kernel **out_kernel);

// cli_fine() of a call that is timed: in place while all is well.
static inline void bench_fine(weir_status status)
{
    if (status != WEIR_OK)
        cli_fine(status);
}

// Waits for the queue.
void bench_sync(weir_queue *queue);
// Fills a range with bytes that are no right result, and waits.
void bench_fill(weir_queue *queue, weir_buffer *buffer, size_t size);
// Of the host's access to all of a buffer.
void *bench_begin(weir_buffer *buffer, weir_access access);
void bench_end(weir_buffer *buffer, weir_access access);

#endif
