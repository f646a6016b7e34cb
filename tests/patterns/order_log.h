// A stand-in for the part of Weir that `chunks` uses, in place of core. It runs nothing:
// it logs every submission, and computes from records and waits which operations are
// ordered, and when each would run on a device with one engine for kernels and one or two
// for copies.
//
// Threads: one.
#ifndef WEIR_TESTS_PATTERNS_ORDER_LOG_H
#define WEIR_TESTS_PATTERNS_ORDER_LOG_H

#include <weir/weir.h>

// Forgets everything and returns the one device.
weir_device *order_begin(void);

struct weir_limits *order_limits(void);

weir_buffer *order_buffer(size_t size, weir_placement placement);

// A kernel of one unit of time, which reads and writes these ranges; NULL for none.
struct order_range {
    weir_buffer *buffer;
    size_t offset;
    size_t size;
};
weir_status order_kernel(weir_queue *queue, struct order_range reads, struct order_range writes);

// Finds two operations on common bytes, at least one of which writes them, that are not
// ordered; false if there are none. Otherwise `text` names them.
bool order_has_race(char *text, size_t size);

// Whether the event comes after everything submitted so far.
bool order_is_behind_all(struct weir_event event);

// How often work was submitted while another queue had work that was neither flushed nor
// waited for; and the number of queues that have such work now.
unsigned order_late_flushes(void);

// The work so far in order of submission: u and d for a copy up and down, k for a kernel.
const char *order_text(void);

// Queues that exist, and calls that waited on the host.
unsigned order_queue_count(void);
unsigned order_host_waits(void);

// The time at which all work is done, if copies and kernels take a unit of time each, and
// engines take work in order of submission. `copy_engines` is 1, or 2 for one a
// direction.
unsigned order_makespan(unsigned copy_engines);

// Makes the n-th submission from now on fail with WEIR_ERROR_IO, from 1; the queue then
// refuses work until it is recovered. Makes the n-th queue from now on fail.
void order_break(unsigned nth);
void order_refuse_queue(unsigned nth);

// The latest region without a number.
const char *order_region(void);

// Ignores waits of queue `waiter` for queue `producer`, given by their labels, to test
// that missing waits are noticed.
void order_ignore_wait(const char *waiter, const char *producer);

#endif
