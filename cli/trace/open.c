#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/status.h>

#include "base/c_locale.h"
#include "cli/common/progress.h"
#include "cli/trace/trace.h"
#include "report/report.h"

struct cli_usage cli_trace_usage(const char *command, const char *about,
                                 const struct cli_option *options, size_t option_count)
{
    return (struct cli_usage){
        .command = command,
        .operands = "FILE",
        .operand = "a trace",
        .about = about,
        .manual = "weir-trace(1)",
        .options = options,
        .option_count = option_count,
        .operand_minimum = 1,
        .operand_maximum = 1,
    };
}

bool cli_trace_read_time(const char *option, const char *text, uint64_t *out_ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end = NULL;
    const double number = weir_c_number(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (isdigit((unsigned char)text[0]) && strcmp(end, units[i].name) == 0 &&
            isfinite(number) && number * units[i].ns < 9e18) {
            *out_ns = (uint64_t)(number * units[i].ns + 0.5);
            return true;
        }
    if (strcmp(text, "0") == 0) {
        *out_ns = 0;
        return true;
    }
    cli_error("--%s takes a time such as 1.5ms, in ns, us, ms or s, not '%s'", option, text);
    return false;
}

static void show_progress(void *user, uint64_t done, uint64_t total)
{
    struct cli_progress *progress = user;
    // The first call tells how large the file is.
    if (progress->total == 0)
        cli_progress_start(progress, total > (uint64_t)8 << 20, (total >> 20) + 1, NULL);
    cli_progress_update(progress, done >> 20, "MiB read");
}

static uint64_t first_start(const struct weir_trace *trace)
{
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < trace->operation_count; i++) {
        const struct weir_trace_operation *operation = &trace->operations[i];
        if (operation->timed && operation->engine != WEIR_ENGINE_NONE &&
            operation->kind != WEIR_TRACE_HOST_CALL && operation->start_ns < first)
            first = operation->start_ns;
    }
    return first == UINT64_MAX ? 0 : first;
}

static bool read_window(const struct cli_trace_window *window, uint64_t origin,
                        struct weir_report_params *params)
{
    uint64_t from = 0;
    uint64_t to = 0;
    if (window->from && !cli_trace_read_time("from", window->from, &from))
        return false;
    if (window->to && !cli_trace_read_time("to", window->to, &to))
        return false;
    if (window->to && to <= from) {
        cli_error("--to is not later than --from, so there is nothing between them");
        return false;
    }
    params->from_ns = window->from ? origin + from : 0;
    params->to_ns = window->to ? origin + to : 0;
    return true;
}

int cli_trace_open(const char *path, const struct cli_trace_window *window, uint64_t bubbles,
                   bool quiet, weir_report **out_report)
{
    struct weir_report_params params = {.struct_size = sizeof params,
                                        .bubble_limit = (uint32_t)bubbles};
    struct cli_progress progress = {0};
    const struct weir_trace_read_options options = {.progress = show_progress, .user = &progress};
    struct weir_trace *trace = NULL;
    char message[512];
    *out_report = NULL;
    const bool read = weir_trace_read(path, &options, &trace, message, sizeof message);
    cli_progress_end(&progress);
    if (!read) {
        cli_error("%s", message);
        return CLI_FAILED;
    }
    for (size_t i = 0; i < trace->note_count && !quiet; i++)
        cli_warning("%s: %s", path, trace->notes[i]);
    if (window && !read_window(window, first_start(trace), &params)) {
        weir_trace_destroy(&trace);
        return CLI_USAGE;
    }
    if (weir__report_make(trace, &params, out_report) == WEIR_OK)
        return CLI_OK;
    cli_error("%s: %s", path, weir_last_error_text());
    return weir_last_error()->status == WEIR_ERROR_INVALID ? CLI_USAGE : CLI_FAILED;
}
