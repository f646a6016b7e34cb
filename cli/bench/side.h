// One side of a comparison: Weir, or what stands beside it, on queues, events and memory that are known by their
// numbers. A benchmark says once what is done, and each side does it. Weir's is here, those of the drivers are in
// tests/bench/jobs.
//
// Ownership: what Weir's side has is destroyed when the benchmark ends, a driver's when the process does.
// Threads: that of bench_main(), unless a comment says something else.
// Errors: a call that fails ends the benchmark after a sentence.
#ifndef WEIR_CLI_BENCH_SIDE_H
#define WEIR_CLI_BENCH_SIDE_H

#include "cli/bench/work.h"

enum {
    SIDE_QUEUES = 20,
    SIDE_EVENTS = 512,
    SIDE_MEMORIES = 2, // of the device, and pinned ones
    SIDE_KERNELS = 2,
    SIDE_ARGUMENTS = 3, // of a kernel
};

// kernel(range of memory 0, a, b), of which b is a number of items or, if it is `wide`, of 64 bits.
struct side_launch {
    unsigned kernel;
    size_t at, size; // bytes
    uint32_t blocks, block, a;
    uint64_t b;
    bool wide;
    bool as_before; // plain OpenCL does not set the arguments again
};

struct side;

// Unless a comment says something else, calls on a queue return at once.
struct side_calls {
    const char *name; // "raw CUDA"
    // Opens the device that Weir has, else the first one, with the bundle's kernels; NULL: none. Errors: false, with
    // the reason.
    bool (*open)(struct side *side, const struct weir_bundle *bundle, char *message, size_t size);
    void (*kernel)(struct side *side, unsigned kernel, const char *name);
    void (*open_queue)(struct side *side, unsigned queue);
    void (*close_queue)(struct side *side, unsigned queue); // NULL for Weir
    void (*memory)(struct side *side, unsigned memory, size_t size);
    void (*pinned)(struct side *side, unsigned pinned, size_t size);
    // Between a memory and pinned memory, of which the first goes up and the last comes down.
    void (*copy)(struct side *side, unsigned queue, bool up, unsigned memory, size_t at,
                 size_t size);
    void (*launch)(struct side *side, unsigned queue, const struct side_launch *launch);
    void (*record)(struct side *side, unsigned queue, unsigned event);
    void (*wait)(struct side *side, unsigned queue, unsigned event);
    void (*flush)(struct side *side, unsigned queue);
    // The thread has the driver's context, or none. NULL for Weir and OpenCL.
    void (*use_context)(struct side *side, bool current);
    // The host waits; the first is NULL for OpenCL.
    void (*sync)(struct side *side, unsigned event);
    void (*finish)(struct side *side, unsigned queue);
    // Memory 0 and the program's, in queue 0. They return when it is done.
    void (*upload)(struct side *side, const void *from, size_t size);
    void (*download)(struct side *side, void *to, size_t size);
    // What is submitted to so many queues between the two is a graph, which is launched in queue 0. NULL for OpenCL.
    void (*begin_graph)(struct side *side, unsigned queues);
    void *(*end_graph)(struct side *side, unsigned queues);
    void (*launch_graph)(struct side *side, void *graph);
    void (*destroy_graph)(struct side *side, void *graph);
};

struct side_weir {
    weir_device *device; // also of the side of a driver, which is measured on the same one
    const struct weir_bundle *bundle;
    weir_kernel *kernels[SIDE_KERNELS];
    weir_queue *queues[SIDE_QUEUES];
    struct weir_event events[SIDE_EVENTS];
    weir_buffer *memories[SIDE_MEMORIES], *pinned[SIDE_MEMORIES];
};

struct side {
    const struct side_calls *calls;
    void *pinned[SIDE_MEMORIES]; // of the drivers
    unsigned pinned_last;
    struct side_weir weir;
    // Made by `open`.
    struct side_cuda *cu;
    struct side_opencl *cl;
};

extern const struct side_calls side_weir_calls;

// Opens a side beside Weir's device; NULL: the first one. False after a note that the side is not measured.
bool side_open(struct side *side, const struct side_calls *calls, weir_device *beside,
               const struct weir_bundle *bundle);
// A launch's arguments for Weir.
void side_arguments(const struct side *side, const struct side_launch *launch,
                    struct weir_argument arguments[SIDE_ARGUMENTS]);
// Queues from 0 on.
void side_queues(struct side *side, unsigned count);

#endif
