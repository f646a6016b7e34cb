// The peer on CUDA: the driver's own calls, in the order in which Weir makes them, with the
// same kernel from the same image on the same device.
#ifndef WEIR_CLI_BENCH_PEER_CUDA_H
#define WEIR_CLI_BENCH_PEER_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/program.h>

typedef struct bench_cuda bench_cuda;

enum {
    BENCH_CUDA_EVENTS = 256, // the most that one call may record
    BENCH_CUDA_NUMBERS = 1024,
    BENCH_CUDA_BLOCKS = 8
};

// Parts of what is repeated, in this order, or one of them. WAIT waits in the second
// stream for the event that the same repetition recorded, now or earlier; SYNC
// records and waits on the host.
enum bench_cuda_step {
    BENCH_CUDA_COPY = 1 << 0,   // 4 KiB up
    BENCH_CUDA_LAUNCH = 1 << 1, // adds 1 to 64 numbers
    BENCH_CUDA_RECORD = 1 << 2,
    BENCH_CUDA_WAIT = 1 << 3,
    BENCH_CUDA_SYNC = 1 << 4,
};

// Opens device 0, loads kernel "increment" of the bundle, and makes two streams, memory
// and events, as a careful program would. If `bundle` is NULL no kernel is loaded, and the
// functions that launch may not be called.
//
// Ownership: the caller's, until bench_cuda_close().
// Errors: NULL, with a sentence in `message`.
bench_cuda *bench_cuda_open(const struct weir_bundle *bundle, char *message, size_t message_size);
void bench_cuda_close(bench_cuda **pointer);

// Makes the device's context the calling thread's current one, or none. The functions
// below need it.
bool bench_cuda_use(bench_cuda *peer, bool current);

// Repeats the steps, a mask, `count` times; at most BENCH_CUDA_EVENTS if they record or
// wait.
bool bench_cuda_repeat(bench_cuda *peer, unsigned steps, size_t count);

// `rounds` times: allocates `out` blocks of `size` bytes from a pool of the driver's that
// keeps what is freed, at most BENCH_CUDA_BLOCKS, then frees them, all in one stream.
bool bench_cuda_allocate(bench_cuda *peer, size_t size, size_t out, size_t rounds);

// Makes a graph of `nodes` launches in a chain, which bench_cuda_graph_launch() launches.
// The graph of an earlier call is destroyed.
//
// Errors: false, also where the driver has no graphs.
bool bench_cuda_graph(bench_cuda *peer, size_t nodes);
bool bench_cuda_graph_launch(bench_cuda *peer, size_t count);

// Waits for both streams.
bool bench_cuda_finish(bench_cuda *peer);

// Reads the numbers on the device.
bool bench_cuda_read(bench_cuda *peer, uint32_t numbers[BENCH_CUDA_NUMBERS]);

#endif
