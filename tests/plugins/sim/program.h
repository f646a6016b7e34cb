// Programs for the engine, and two ways to run them: the engine itself, and a simulation that
// looks at everything at each nanosecond.
#ifndef WEIR_TESTS_PLUGINS_SIM_PROGRAM_H
#define WEIR_TESTS_PLUGINS_SIM_PROGRAM_H

#include "plugins/sim/engine.h"

enum {
    STEPS = 1024,
    QUEUES = 64,
    STEP_WAITS = 4,
};

// An operation that the host submits.
struct step {
    uint32_t queue;
    enum sim_kind kind;
    uint32_t places;
    uint64_t yield_ns;
    bool first;            // of a graph's branch
    bool node;             // of a graph
    bool pulls;            // from the other of two devices
    uint64_t length;       // bytes of a copy, nanoseconds of a kernel or a pause
    int waits[STEP_WAITS]; // earlier steps; -1: none
    int host_wait;         // the host waits for this step before; -1: none
    uint64_t host_ns;      // what the host does before
};

struct slot {
    uint64_t start_ns;
    uint64_t end_ns;
};

struct program {
    const struct sim_model *models[2];
    uint32_t device_count;
    struct sim_queue_params queues[QUEUES];
    uint32_t queue_count;
    struct step steps[STEPS];
    int step_count;
    struct slot slots[STEPS]; // when each ran
    int done[STEPS];          // in the order of the ends
    int done_count;
};

// A model of stream queues without any cost, with a byte a nanosecond in each direction.
struct sim_model plain_model(void);

// Appends a step without waits; returns its number.
int add_step(struct program *program, uint32_t queue, enum sim_kind kind, uint64_t length);

// Fill in `slots`.
void run_engine(struct program *program);
void run_oracle(struct program *program);

// The last end.
uint64_t makespan(const struct program *program);

#endif
