// Records the deliveries of a pipeline; and gates that hold its callbacks or host
// calls until the test opens them.
#ifndef WEIR_TESTS_PATTERNS_RECORDER_H
#define WEIR_TESTS_PATTERNS_RECORDER_H

#include <pthread.h>

#include "patterns/pipeline.h"

#define DELIVERIES 4096

struct delivery {
    void *frame;
    void *slot;
    uint64_t sequence;
    weir_status status;
    bool has_error;
    weir_status error_status;
    char message[160];
    char remedy[160];
    char stage[32];
    bool timed;
};

struct recorder {
    pthread_mutex_t lock;
    unsigned count;
    struct delivery list[DELIVERIES];
};

void recorder_init(struct recorder *recorder);
void recorder_finish(struct recorder *recorder);
void recorder_add(struct recorder *recorder, void *frame, void *slot,
                  const struct weir_pipeline_result *result);
unsigned recorder_count(struct recorder *recorder);

// The number of deliveries so far with that status.
unsigned recorder_count_of(struct recorder *recorder, weir_status status);

// Delivery `index`, which must exist and is no longer written.
const struct delivery *recorder_at(struct recorder *recorder, unsigned index);

// True if the sequences are 0, 1, 2 … `count` - 1.
bool recorder_is_in_order(struct recorder *recorder, unsigned count);

// Holds the threads that come to it until it is opened; closed at first.
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    unsigned arrived; // so far
};

void gate_init(struct gate *gate);
void gate_finish(struct gate *gate);
void gate_pass(struct gate *gate);
void gate_open(struct gate *gate);

// Host calls that pass the gate, their `user`; the second one fails after that with WEIR_ERROR_IO.
weir_status gate_call(void *gate);
weir_status gate_call_that_fails(void *gate);

// As it was at first.
void gate_shut(struct gate *gate);

// Waits until `count` threads have come to the gate.
void gate_await(struct gate *gate, unsigned count);

#endif
