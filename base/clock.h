// The monotonic clock, in nanoseconds.
//
// Threads: all functions are safe.
#ifndef WEIR_BASE_CLOCK_H
#define WEIR_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

// Since some point in the past; never runs backwards.
uint64_t weir_clock_now_ns(void);

// The time `timeout_ns` from now, and the time left until a deadline, 0 once that has passed. UINT64_MAX: without end.
uint64_t weir_clock_deadline(uint64_t timeout_ns);
uint64_t weir_clock_left(uint64_t deadline_ns);

// Sleeps for about that long; a signal may end it early.
void weir_clock_sleep_ns(uint64_t duration_ns);

// For polling: sleeps, longer at each call, from 2 us to 1 ms. `*pause_ns` is
// 0 before the first call. False, without sleeping, once `timeout_ns` have passed since
// `start_ns`.
bool weir_clock_pause(uint64_t start_ns, uint64_t timeout_ns, uint64_t *pause_ns);

// `time_ns` as the C library's structure.
struct timespec weir_clock_timespec(uint64_t time_ns);

#endif
