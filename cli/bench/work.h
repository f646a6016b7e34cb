// The work that benchmarks run on a device: a kernel with a chosen duration and a known
// result, and buffers of numbers for it.
#ifndef WEIR_CLI_BENCH_WORK_H
#define WEIR_CLI_BENCH_WORK_H

#include "cli/bench/bench.h"

struct bench_work {
    struct bench *bench;
    weir_program *program;
    weir_kernel *kernel;
    weir_queue *queue; // for calibration and set-up, which are not part of the times
    uint32_t block;
};

bool bench_work_open(struct bench *bench, struct bench_work *out_work);
void bench_work_close(struct bench_work *work);

// Launches the kernel, with `rounds` rounds, on the numbers in `size` bytes of the buffer.
// `size` is a multiple of 4.
weir_status bench_work_launch(const struct bench_work *work, weir_queue *queue, weir_buffer *buffer,
                              size_t offset, size_t size, uint32_t rounds);

// Nanoseconds of the kernel alone over these bytes, from submit to sync.
bool bench_work_time(const struct bench_work *work, weir_buffer *buffer, size_t size,
                     uint32_t rounds, double *out_ns);

// The rounds with which the kernel takes about `wanted_ns` over these bytes, at least 1.
// 1 on a device that runs no kernels, unless they take virtual time.
bool bench_work_calibrate(const struct bench_work *work, weir_buffer *buffer, size_t size,
                          double wanted_ns, uint32_t *out_rounds);

// Host memory. Fills a range with numbers that depend on `seed`.
bool bench_work_fill(struct bench *bench, weir_buffer *buffer, size_t size, uint32_t seed);

// The same with memory of any kind.
void bench_work_numbers(uint32_t *numbers, size_t size, uint32_t seed);
bool bench_work_compare(struct bench *bench, uint32_t *numbers, size_t size, uint32_t seed,
                        uint32_t rounds, const char *what);

// Overwrites a range with values that are never a right result.
bool bench_work_spoil(struct bench *bench, weir_buffer *buffer, size_t size);

// Checks that a range holds the kernel's results for the numbers of `seed`, counts it as
// checked, and spoils it. The message of a wrong result names `what`.
bool bench_work_check(struct bench *bench, weir_buffer *buffer, size_t size, uint32_t seed,
                      uint32_t rounds, const char *what);

// Objects, with a message when they cannot be made.
bool bench_buffer(struct bench *bench, const char *label, size_t size, weir_placement placement,
                  weir_buffer **out_buffer);
bool bench_queue(struct bench *bench, const char *label, int32_t priority, weir_queue **out_queue);
// The same on a device of its own.
bool bench_buffer_on(struct bench *bench, weir_device *device, const char *label, size_t size,
                     weir_placement placement, weir_buffer **out_buffer);
bool bench_queue_on(struct bench *bench, weir_device *device, const char *label,
                    weir_queue **out_queue);
// A kernel of `*program`, which is made of the bundle if it is NULL.
bool bench_kernel_on(struct bench *bench, weir_device *device, const struct weir_bundle *bundle,
                     const char *name, weir_program **program, weir_kernel **out_kernel);
// Fills a range with bytes that are no right result, and waits.
bool bench_fill(struct bench *bench, weir_queue *queue, weir_buffer *buffer, size_t size);

// The ranks of a benchmark that measures collectives: the one that a launcher started, or several in
// this process.

enum {
    BENCH_RANKS_MAX = 16, // in one process
};

struct bench_rank {
    weir_device *device; // may be that of another rank
    bool opened;         // it is this one's to close
    weir_comm *comm;
    weir_queue *queue;
    weir_buffer *value;     // 8 bytes
    weir_buffer *src, *dst; // the benchmark's, if it makes them
};

struct bench_ranks {
    struct bench_rank ranks[BENCH_RANKS_MAX];
    uint32_t local_count; // of `ranks`
    uint32_t first;       // the rank of the first of them
    uint32_t count;       // of all ranks
};

// Opens devices of the benchmark's runtime, communicators and queues: of the rank that the environment tells,
// else of `asked` ranks in this process. With as many devices as ranks each has its own.
//
// Errors: false after a sentence; bench_ranks_close() frees what was made.
bool bench_ranks_open(struct bench *bench, uint64_t asked, struct bench_ranks *out_ranks);
void bench_ranks_close(struct bench *bench, struct bench_ranks *ranks);

// Of all queues of this process: their end, and a barrier after which all are idle.
weir_status bench_ranks_sync(const struct bench_ranks *ranks);
weir_status bench_ranks_meet(const struct bench_ranks *ranks);
// The largest value that any rank gives; negative on failure.
double bench_ranks_slowest(const struct bench_ranks *ranks, double value);

#endif
