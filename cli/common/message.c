// Messages, progress, and the clock. The progress line is on the same terminal, so both take the same lock, and a
// message erases the line first; the next update draws it again.
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <weir/weir.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/common/cli.h"
#include "cli/common/own.h"
#include "cli/common/progress.h"

static struct {
    pthread_mutex_t lock;
    bool line_shown;
} output = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool cli_quiet;

// Draws the line, or erases it if `text` is NULL.
static void draw_line(const char *text)
{
    pthread_mutex_lock(&output.lock);
    if (text || output.line_shown)
        fprintf(stderr, "\r%s\033[K", text ? text : "");
    output.line_shown = text != NULL;
    fflush(stderr);
    pthread_mutex_unlock(&output.lock);
}

void cli_error(const char *format, ...)
{
    char raw[4096];
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(raw, sizeof raw, format, arguments);
    va_end(arguments);
    weir_text_escape(text, sizeof text, raw, "\n\t"); // names and labels may be in it
    pthread_mutex_lock(&output.lock);
    fprintf(stderr, "%sweir: %s\n", output.line_shown ? "\r\033[K" : "", text);
    output.line_shown = false;
    pthread_mutex_unlock(&output.lock);
}

int cli_weir_error(void)
{
    cli_error("%s", weir_last_error_text());
    switch (weir_last_error()->status) {
    case WEIR_ERROR_HOST_CALL:
    case WEIR_ERROR_EXPIRED:
        return CLI_FAILED;
    default:
        return CLI_SETUP;
    }
}

void cli_need_writable(const char *path)
{
    char message[512];
    weir_file_writer *writer = path ? weir_file_writer_create(path, message, sizeof message) : NULL;
    if (path && !writer)
        cli_fail(CLI_FAILED, "%s", message);
    weir_file_writer_destroy(&writer);
}

bool cli_write_file(const char *path, char *text, size_t size, const char *what)
{
    char message[512];
    snprintf(message, sizeof message, "no memory for %s", what);
    const bool written = text && weir_file_write(path, text, size, message, sizeof message);
    if (!written)
        cli_error("%s", message);
    free(text);
    return written;
}

static void print_log(void *user, weir_log_level level, const char *source, const char *message)
{
    if (level == WEIR_LOG_ERROR)
        cli_error("%s: %s", source, message);
    else
        cli_warning("%s: %s", source, message);
}

void cli_log_to_stderr(void)
{
    weir_log_set(print_log, NULL, WEIR_LOG_WARNING);
}

void cli_print_version(void)
{
    printf("weir %s\n", weir_version());
}

// Progress, and the clock.

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
        .shown = wanted && !cli_quiet && total > 0 && can_draw(),
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
    draw_line(text);
}

void cli_progress_end(struct cli_progress *progress)
{
    if (progress->shown)
        draw_line(NULL);
    progress->shown = false;
}
