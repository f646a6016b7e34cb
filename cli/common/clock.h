// The clock by which commands measure what a program waits for: the system's, or the virtual one of a
// plugin in the chain.
#ifndef WEIR_CLI_COMMON_CLOCK_H
#define WEIR_CLI_COMMON_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/host_clock.h"

// From this call on cli_now_ns() reads this clock, which is that of a runtime until it is closed;
// NULL: the system's.
//
// Threads: one at a time, while no other thread reads it.
void cli_clock_use(const struct weir_host_clock *clock);

// Whether another clock than the system's is used.
bool cli_clock_is_virtual(void);

// Nanoseconds on a clock that only goes forward.
uint64_t cli_now_ns(void);

// The processor time that this process has used, in nanoseconds.
uint64_t cli_processor_time_ns(void);

#endif
