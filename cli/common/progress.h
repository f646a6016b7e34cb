// A progress line on a terminal. Where stderr is not a terminal, nothing is drawn.
#ifndef WEIR_CLI_COMMON_PROGRESS_H
#define WEIR_CLI_COMMON_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/host_clock.h"

struct cli_progress {
    bool shown;
    const char *rate;
    uint64_t total;
    uint64_t began_ns;
    uint64_t drawn_ns;
};

// Shows nothing with --quiet, nor unless stderr is a terminal and `wanted`. `rate` is the unit of the rate
// shown, such as "frames/s"; NULL: no rate is shown.
void cli_progress_start(struct cli_progress *progress, bool wanted, uint64_t total,
                        const char *rate);

// `done` of the total are done, `name` last. Draws at most ten times a second.
//
// Threads: one at a time.
void cli_progress_update(struct cli_progress *progress, uint64_t done, const char *name);

void cli_progress_end(struct cli_progress *progress);

// The clock by which commands measure what a program waits for: the system's, or the virtual one of a
// plugin in the chain.

// From this call on cli_now_ns() reads this clock, which is that of a runtime until it is closed;
// NULL: the system's.
//
// Threads: one at a time, while no other thread reads it.
void cli_clock_use(const struct weir_host_clock *clock);

// Whether another clock than the system's is used.
bool cli_clock_is_virtual(void);

// Nanoseconds on a clock that only goes forward.
uint64_t cli_now_ns(void);

#endif
