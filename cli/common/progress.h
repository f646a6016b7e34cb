// One line on a terminal that says how far a run is. Elsewhere: nothing.
#ifndef WEIR_CLI_COMMON_PROGRESS_H
#define WEIR_CLI_COMMON_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct cli_progress {
    bool shown;
    const char *rate;
    uint64_t total;
    uint64_t began_ns;
    uint64_t drawn_ns;
};

// Shows nothing unless stderr is a terminal and `wanted`. `rate` is what is counted, a
// second: "frames/s"; NULL: no rate is shown.
void cli_progress_start(struct cli_progress *progress, bool wanted, uint64_t total,
                        const char *rate);

// `done` of the total, the last of them `name`. Draws at most ten times a second.
//
// Threads: one at a time.
void cli_progress_update(struct cli_progress *progress, uint64_t done, const char *name);

void cli_progress_end(struct cli_progress *progress);

// Draws the line, or erases it if `text` is NULL. In message.c, which owns the
// terminal.
void cli_progress_line(const char *text);

// Nanoseconds on a clock that only goes forward.
uint64_t cli_now_ns(void);

#endif
