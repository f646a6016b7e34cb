// The peer: a program in plain OpenCL that does what the Weir side does, with the
// same kernels from the same source, on the same device.
#ifndef WEIR_CLI_BENCH_PEER_OPENCL_H
#define WEIR_CLI_BENCH_PEER_OPENCL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bench_cl bench_cl;

// Opens the OpenCL device of this name, builds `source`, and makes a queue and a
// buffer of `size` bytes.
//
// Ownership: the caller's, until bench_cl_close().
// Errors: NULL, with a sentence in `message`.
bench_cl *bench_cl_open(const char *device, const char *source, size_t size, char *message,
                        size_t message_size);
void bench_cl_close(bench_cl **pointer);

// Launches kernel "spin" (buffer, seed, steps) on one work-item, its arguments set
// for this launch.
bool bench_cl_spin(bench_cl *peer, uint32_t seed, uint64_t steps);

// Launches kernel "increment" (buffer, 1, 0), which does nothing; with
// `set_arguments` they are set for this launch, else those set last hold.
bool bench_cl_empty(bench_cl *peer, bool set_arguments);

// Waits for everything.
bool bench_cl_finish(bench_cl *peer);

// Waits, and reads the buffer's first number.
bool bench_cl_read(bench_cl *peer, uint32_t *out_value);

#endif
