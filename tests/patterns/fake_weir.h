// A stand-in for the part of Weir that the pipeline uses, in place of core: queues
// that finish everything at submit, in virtual time, and fail on command. With it
// tests see the pipeline's waits, set device times, and simulate a lost device.
//
// Threads: one lock guards everything.
#ifndef WEIR_TESTS_PATTERNS_FAKE_WEIR_H
#define WEIR_TESTS_PATTERNS_FAKE_WEIR_H

#include <weir/weir.h>

// Forgets all queues, waits and commands, and returns the one device.
weir_device *fake_begin(void);

// Queues that exist.
unsigned fake_queue_count(void);

// Makes the n-th queue that is created from now on fail, from 1.
void fake_refuse_queue(unsigned nth);

// Appends work of that length to a queue.
weir_status fake_work(weir_queue *queue, uint64_t duration_ns);

// Fails a queue with `status`: it refuses work until recovered, and events
// recorded before stay valid.
void fake_break(weir_queue *queue, weir_status status, const char *message);

// The same, but the failure has not reached the queue yet: a sync waits for it,
// and a recovery that does not wait for it comes too early.
void fake_break_soon(weir_queue *queue, weir_status status, const char *message);

// Queues that were destroyed while they were broken.
unsigned fake_destroyed_broken(void);

// The number of flushes of the queue with that label.
unsigned fake_flush_count(const char *label);

// Sets the status that weir_queue_recover() of a broken queue returns, `times`
// times.
void fake_recover_with(weir_status status, unsigned times);

// Times of all events become unknown, or known again.
void fake_expire_times(bool expired);

// limits.timing_history of the device.
void fake_timing_history(uint32_t records);

// How often a queue of label `waiter` waited for an event of queue `producer`.
unsigned fake_wait_count(const char *waiter, const char *producer);

// The next so many queries find their event pending. Of the events that were pending then:
// queries, and syncs, which end that.
void fake_pend(unsigned queries);
unsigned fake_query_count(void);
unsigned fake_early_sync_count(void);

#endif
