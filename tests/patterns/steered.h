// The rig in virtual time, whose calls fail on command. The linker puts functions of this file before the library's,
// so that tests see a pipeline's waits, set device times, and simulate a lost device. Link with //tests/patterns:steered.
//
// Threads: one lock guards everything.
#ifndef WEIR_TESTS_PATTERNS_STEERED_H
#define WEIR_TESTS_PATTERNS_STEERED_H

#include "tests/patterns/rig.h"

// Opens the rig and forgets all commands; returns the device. The rig's end fails the test if a queue is left.
weir_device *steered_open(void);
void steered_close(void);

// Queues that were created so far.
unsigned steered_queues(void);

// Makes the n-th queue that is created from now on fail, from 1.
void steered_refuse_queue(unsigned nth);

// Submits work that takes so long in virtual time.
weir_status steered_work(weir_queue *queue, uint64_t duration_ns);

// Fails a queue with `status`, at once or in a moment: a recovery that does not wait for that comes too early.
void steered_break(weir_queue *queue, weir_status status, const char *message, bool soon);

// Sets the status that weir_queue_recover() of a broken queue returns, `times` times.
void steered_recover_with(weir_status status, unsigned times);

// The times of all events are unknown from now on.
void steered_expire_times(void);

// limits.timing_history of the device.
void steered_timing_history(uint32_t records);

// The next so many queries find their event pending. Of the events that were pending then:
// queries, and syncs, which end that.
void steered_pend(unsigned queries);
unsigned steered_query_count(void);
unsigned steered_early_sync_count(void);

#endif
