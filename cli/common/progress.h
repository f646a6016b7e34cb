// A progress line on a terminal. Where stderr is not a terminal, nothing is drawn.
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

// Shows nothing unless stderr is a terminal and `wanted`. `rate` is the unit of the rate
// shown, such as "frames/s"; NULL: no rate is shown.
void cli_progress_start(struct cli_progress *progress, bool wanted, uint64_t total,
                        const char *rate);

// `done` of the total are done, `name` last. Draws at most ten times a second.
//
// Threads: one at a time.
void cli_progress_update(struct cli_progress *progress, uint64_t done, const char *name);

void cli_progress_end(struct cli_progress *progress);

// Draws the line, or erases it if `text` is NULL. Defined in message.c, whose lock keeps
// messages and the line apart.
void cli_progress_line(const char *text);

#endif
