// Small programs made of bytes: several queues and buffers, pools, graphs, host accesses and host
// calls. Running one does the calls and notes each for the oracle.
//
// The first step of eight bytes sets up the objects; each other step is one operation. All bytes are
// valid, so any step can be left out.
#ifndef WEIR_TESTS_RACES_FUZZ_PROGRAM_H
#define WEIR_TESTS_RACES_FUZZ_PROGRAM_H

#include <pthread.h>
#include <stdio.h>

#include <weir/weir.h>

#include "tests/races/fuzz/oracle.h"
#include "tests/support/gate.h"

enum {
    STEP_BYTES = 8,
    PROGRAM_STEPS = 48,
    PROGRAM_BYTES = PROGRAM_STEPS * STEP_BYTES,
    PROGRAM_GRAPHS = 2,
    PROGRAM_LINES = 1000, // that a program has, from its first
    GRAPH_LINES = 100,    // of each graph, after the first hundred
    PROGRAM_THREADS = 3,  // of the host; another one comes and goes
};

struct run;

// What orders the threads of programs.
enum ground_order {
    GROUND_ONE,   // nothing: they are one
    GROUND_TOLD,  // weir_check_release() and weir_check_acquire(), with `threads = strict`
    GROUND_LOCKS, // locks, and making and joining threads, which the library of locks/ sees
};

// A thread of the host that does one step at a time.
struct ground_thread {
    pthread_t thread;
    bool started;
    struct gate begin, end;        // which the plugin does not see
    void (*step)(struct run *run); // NULL: it ends
    struct run *run;
};

// False: there is no thread.
bool ground_thread_start(struct ground_thread *thread);
void ground_thread_stop(struct ground_thread *thread);

// What programs share: a runtime with the plugin in its chain.
struct ground {
    weir_runtime *runtime;
    weir_device *device;
    weir_program *program;
    weir_kernel *sum; // a, b, out
    int line;         // the first of the next program
    enum ground_order order;
    struct ground_thread threads[PROGRAM_THREADS]; // unless they are one; the first is the caller
};

// Errors: those of weir_open(); WEIR_ERROR_UNSUPPORTED where locks are not seen.
weir_status ground_open(struct ground *ground, enum ground_order order);
void ground_close(struct ground *ground);

// What running a program noted.
struct program_notes {
    struct oracle oracle;
    struct oracle graphs[PROGRAM_GRAPHS]; // the nodes of each
    uint64_t launches[PROGRAM_GRAPHS];    // of each, nodes
    int graph_count;
    int line;
};

// Runs a program, writes its calls to `text` if that is not NULL, and compares what the plugin found with the
// oracle. Returns whether there is no
// difference, else with a sentence in `difference`.
bool program_agrees(struct ground *ground, const uint8_t *bytes, size_t size, FILE *text,
                    char difference[256]);

// Random programs one after the other, and what is left of one that shows a difference: drive.c.

struct drive_result {
    uint64_t programs;
    uint64_t findings; // of all programs
    uint64_t with;     // programs with at least one
    bool different;    // the last program showed a difference
};

// Runs programs until one shows a difference, which is made as small as it gets and written to
// `text`: the difference, the calls, and the bytes in hexadecimal.
struct drive_result drive(enum ground_order order, uint64_t seed, uint64_t count, FILE *text);

// Runs the program of those hexadecimal digits, and writes its calls. Returns whether it agrees.
bool drive_one(enum ground_order order, const char *digits, FILE *text);

#endif
