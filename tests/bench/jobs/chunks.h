// What the files of the job `chunks` share: bytes of pinned memory are uploaded, a light kernel multiplies them
// as floats, and they are downloaded, in pieces.
#ifndef WEIR_TESTS_BENCH_JOBS_CHUNKS_H
#define WEIR_TESTS_BENCH_JOBS_CHUNKS_H

#include "cli/bench/bench.h"

enum {
    CHUNK_BLOCK = 256, // work-items of a block of the kernel
};

// The numbers of `src`, and how many of `dst` are not `factor` times those.
void chunks_fill(float *src, size_t size);
size_t chunks_wrong(const float *dst, size_t size, float factor);

// The same work by the driver's own calls, on memory, queues and events of its own, in every common order.
struct chunks_raw;

// NULL where there is none for the device's backend, with the reason in a note, or in the bench's code.
struct chunks_raw *chunks_raw_open(struct bench *bench, size_t size);
void chunks_raw_close(struct chunks_raw **raw);

// The ways, of which the first three are the bare copies: up, down, both at once.
enum {
    CHUNKS_RAW_BOTH = 2,
    CHUNKS_RAW_COPIES,
    CHUNKS_RAW_MOST = 32
};
size_t chunks_raw_count(const struct chunks_raw *raw);
const char *chunks_raw_name(size_t way);

// Runs the way twice on new queues, for the milliseconds of the second time; with `checks` once, and compares
// its results. Errors: false after a sentence.
bool chunks_raw_run(struct chunks_raw *raw, size_t way, bool checks, double *out_ms);

#endif
