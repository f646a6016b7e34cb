// What calls cost the thread that submits, on Weir's side and on one beside it: `weir bench submit`, and a job of
// tests/bench beside the drivers.
#ifndef WEIR_CLI_BENCH_SUBMIT_H
#define WEIR_CLI_BENCH_SUBMIT_H

#include "cli/bench/side.h"

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
    SUBMIT_SEQUENCE = SUBMIT_COPY | SUBMIT_LAUNCH | SUBMIT_RECORD | SUBMIT_WAIT
};

struct submit_kind {
    const char *name, *about;
    unsigned prepare, steps; // the former are repeated before, and not timed
    bool without_context;    // on the thread, for Weir; the driver's calls need one
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

#endif
