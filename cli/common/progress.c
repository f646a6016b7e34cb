// Progress on standard error, and the clock.
#include "cli/common/progress.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static const struct weir_host_clock *used;

void cli_clock_use(const struct weir_host_clock *clock)
{
    used = clock;
}

bool cli_clock_is_virtual(void)
{
    return used != NULL;
}

uint64_t cli_now_ns(void)
{
    return used ? used->now_ns(used->user) : weir_clock_now_ns();
}

uint64_t cli_processor_time_ns(void)
{
    struct timespec time;
    return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0
               ? (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec
               : 0;
}

enum {
    BAR_CELLS = 24,
    INTERVAL_NS = 100 * 1000 * 1000
};

// A dumb terminal cannot go back to the start of a line and erase it.
static bool can_draw(void)
{
    const char *kind = getenv("TERM");
    return isatty(STDERR_FILENO) && kind && strcmp(kind, "dumb") != 0;
}

void cli_progress_start(struct cli_progress *progress, bool wanted, uint64_t total,
                        const char *rate)
{
    *progress = (struct cli_progress){
        .shown = wanted && total > 0 && can_draw(),
        .rate = rate,
        .total = total,
        .began_ns = weir_clock_now_ns(),
    };
    cli_progress_update(progress, 0, "");
}

void cli_progress_update(struct cli_progress *progress, uint64_t done, const char *name)
{
    const uint64_t now = weir_clock_now_ns();
    if (!progress->shown || (done > 0 && now - progress->drawn_ns < INTERVAL_NS))
        return;
    progress->drawn_ns = now;

    char bar[BAR_CELLS + 1];
    const uint64_t full = done * BAR_CELLS / progress->total;
    for (uint64_t i = 0; i < BAR_CELLS; i++)
        bar[i] = i < full ? '=' : i == full ? '>' : ' ';
    bar[BAR_CELLS] = '\0';
    const double seconds = (double)(now - progress->began_ns) / 1e9;

    char rate[48] = "";
    if (progress->rate)
        snprintf(rate, sizeof rate, "  %.1f %.16s", seconds > 0 ? (double)done / seconds : 0.0,
                 progress->rate);
    char text[160];
    snprintf(text, sizeof text, "[%s] %" PRIu64 " of %" PRIu64 "%s  %.40s", bar, done,
             progress->total, rate, name);
    cli_progress_line(text);
}

void cli_progress_end(struct cli_progress *progress)
{
    if (progress->shown)
        cli_progress_line(NULL);
    progress->shown = false;
}
