// One side of a comparison: Weir, or what stands beside it, on queues, events and memory that are known by their
// numbers. A benchmark says once what is done, and each side does it. Weir's is here, those of the drivers are in
// tests/bench/jobs.
//
// Ownership: what Weir's side has is destroyed when the benchmark ends, a driver's when the process does.
// Threads: that of bench_main(), unless a comment says something else.
// Errors: a call that fails ends the benchmark after a sentence.
#ifndef WEIR_CLI_BENCH_SIDE_H
#define WEIR_CLI_BENCH_SIDE_H

#include "cli/bench/bench.h"

enum {
    SIDE_QUEUES = 20,
    SIDE_EVENTS = 512,
    SIDE_PINNED = 2,
    SIDE_KERNELS = 2,
    SIDE_ARGUMENTS = 3, // of a kernel
};

// kernel(range of the memory, a, b), of which b is a number of items or, if it is `wide`, of 64 bits.
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
    void (*memory)(struct side *side, size_t size);
    void (*pinned)(struct side *side, unsigned pinned, size_t size);
    // Between the memory and pinned memory, of which the first goes up and the last comes down.
    void (*copy)(struct side *side, unsigned queue, bool up, size_t at, size_t size);
    void (*launch)(struct side *side, unsigned queue, const struct side_launch *launch);
    void (*record)(struct side *side, unsigned queue, unsigned event);
    void (*wait)(struct side *side, unsigned queue, unsigned event);
    void (*flush)(struct side *side, unsigned queue);
    // The thread has the driver's context, or none. NULL for Weir and OpenCL.
    void (*use_context)(struct side *side, bool current);
    // The host waits; the first is NULL for OpenCL.
    void (*sync)(struct side *side, unsigned event);
    void (*finish)(struct side *side, unsigned queue);
    // The memory and the program's, in queue 0. They return when it is done.
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
    weir_buffer *memory, *pinned[SIDE_PINNED];
};

struct side {
    const struct side_calls *calls;
    void *pinned[SIDE_PINNED]; // of the drivers
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

// What calls cost the thread that submits, on Weir's side and on one beside it: `weir bench submit`, and a job.

enum {
    SUBMIT_NUMBERS = 1024,
    SUBMIT_BYTES = 4 * SUBMIT_NUMBERS, // of a memory
    SUBMIT_KINDS_MOST = 8
};

// Operations; several ones of a kind are in this order. The last kernels are a long one, an empty one, and an empty
// one for which plain OpenCL does not set its arguments again.
enum submit_step {
    SUBMIT_COPY = 1,
    SUBMIT_LAUNCH = 2,
    SUBMIT_RECORD = 4,
    SUBMIT_WAIT = 8,
    SUBMIT_SYNC = 16,
    SUBMIT_HOST = 32,
    SUBMIT_SPIN = 64,
    SUBMIT_EMPTY = 128,
    SUBMIT_SET_ONCE = 256,
    SUBMIT_NO_CONTEXT = 512, // on the thread, for Weir; the driver's calls need one
    SUBMIT_SEQUENCE = SUBMIT_COPY | SUBMIT_LAUNCH | SUBMIT_RECORD | SUBMIT_WAIT
};

struct submit_kind {
    const char *name, *about;
    unsigned prepare, steps; // the former are repeated before, and not timed
};

struct submit {
    const struct submit_kind *kinds;
    size_t count;
    uint64_t operations;   // in each turn
    uint64_t spins;        // of a long kernel; 0: results are those of the sequence
    size_t copied;         // bytes of a copy
    uint32_t added;        // by a launch: 0 or 1
    bool to_the_end;       // the wait for the device is timed too
    struct side *sides[2]; // Weir's, and the one beside it; NULL: there is none
    struct bench_samples ns[SUBMIT_KINDS_MOST][2];
};

// Opens a side, with queues, kernels, memory, and pinned memory with the numbers from 0 on. False as side_open().
bool bench_submit_open(struct side *side, const struct side_calls *calls, weir_device *device);
// Nothing is timed unless all sides give the expected numbers, or the same one of a long kernel.
void bench_submit_check(struct submit *submit);
// Nanoseconds a repetition on the side of this index.
double bench_submit_time(struct submit *submit, const struct submit_kind *kind, unsigned side);
// All turns, and a table.
void bench_submit_measure(struct submit *submit, const char *key, const char *title);

// `weir bench overlap`, and what a job adds to it: the same work by the driver's own calls.

enum {
    OVERLAP_SEED = 20261, // of the numbers
    OVERLAP_RAW_MOST = 32
};

// Memory, queues and events of its own; a number of rounds of the kernel, as bench_work_launch().
struct overlap_raw {
    // For this many bytes each way. Returns how many ways there are; 0 where the device's backend has none, with the
    // reason in a note.
    size_t (*open)(size_t size);
    const char *(*name)(size_t way);
    // Runs the way twice on new queues, for the milliseconds of the second time; with `checks` once, and compares
    // its results.
    double (*run)(size_t way, bool checks);
};

// `raw`, of the first size, or NULL for none.
int bench_overlap_main(const struct overlap_raw *raw, int argc, char **argv);

#endif
