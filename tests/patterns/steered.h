// The rig in virtual time, whose calls fail on command. The linker puts functions of this file before the library's,
// so that tests see a pipeline's waits, set device times, and simulate a lost device. Link with //tests/patterns:steered.
//
// Threads: one lock guards everything.
#ifndef WEIR_TESTS_PATTERNS_STEERED_H
#define WEIR_TESTS_PATTERNS_STEERED_H

#include "tests/patterns/rig.h"

// What a test asks for, and what was asked.
struct steered {
    unsigned queues;            // that were created so far
    unsigned refused_queue;     // the one, from 1, that cannot be created; 0: none
    weir_status recover_status; // what weir_queue_recover() of a broken queue returns
    unsigned recover_times;     // so many times
    bool times_expired;         // the times of all events are unknown
};
extern struct steered steered;

// Opens the rig and forgets what was asked for; returns the device. The rig's end fails the test if a queue is left.
weir_device *steered_open(void);
void steered_close(void);

// Submits work that takes so long in virtual time.
weir_status steered_work(weir_queue *queue, uint64_t duration_ns);

// Fails a queue with `status`, at once or in a moment: a recovery that does not wait for that comes too early.
void steered_break(weir_queue *queue, weir_status status, const char *message, bool soon);

// limits.timing_history of the device.
void steered_timing_history(uint32_t records);

// The next so many queries find their event pending. Of the events that were pending then:
// queries, and syncs, which end that.
struct steered_waits {
    unsigned queries, early_syncs;
};
void steered_pend(unsigned queries);
struct steered_waits steered_waits(void);

#endif
