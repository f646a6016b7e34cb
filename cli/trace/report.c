// weir trace report: opens traces and prints their reports.
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/status.h>

#include "base/c_locale.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/trace/trace.h"
#include "report/report.h"

// "1.5ms", "20us": a number and ns, us, ms or s. False with a message for `option`.
static bool cli_trace_read_time(const char *option, const char *text, uint64_t *out_ns)
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

// weir trace report and weir trace check.

static const char report_about[] =
    "Tells how much of a trace's work overlapped, how far it is from the bound that its\n"
    "busiest engine sets, which stretches were idle and why, and what the end waited for.\n"
    "FILE is what the plugin `trace` or `weir trace COMMAND` wrote, or a trace of PyTorch's\n"
    "profiler; compressed or not.";

int cli_trace_report(int argc, char **argv)
{
    struct cli_trace_window window = {0};
    uint64_t bubbles = 0;
    bool json = false;
    const struct cli_option options[] = {
        {"from", "TIME", "only what ran later than TIME after the first\nstart, such as 1.5ms",
         CLI_TEXT, &window.from, 0, 0},
        {"to", "TIME", "only what ran earlier than TIME after it", CLI_TEXT, &window.to, 0, 0},
        {"bubbles", "N", "how many bubbles the JSON lists; without it, 100", CLI_COUNT, &bubbles, 1,
         1000000},
        {"json", NULL, "print the report as JSON", CLI_FLAG, &json, 0, 0},
    };
    const struct cli_usage usage = CLI_TRACE_FORM("weir trace report", report_about, options);
    weir_report *report = NULL;
    size_t operands;
    int code;
    if (!cli_parse(&usage, argc, argv, &operands, &code))
        return code;
    // The text has the notes itself.
    code = cli_trace_open(argv[0], &window, bubbles, !json, &report);
    if (code != CLI_OK)
        return code;
    char *text = json ? weir_report_json(report) : weir_report_text(report);
    if (text)
        fputs(text, stdout);
    else
        code = cli_weir_error();
    weir_report_free_text(&text);
    weir_report_destroy(&report);
    return code;
}

// Checks. Conditions contain < or >, which no option does; they are removed from the
// arguments before the options are parsed.

static const char check_about[] =
    "Checks conditions on a trace's report and ends with 0 if all hold, 1 if not. A condition\n"
    "is one word, or two, with <=, >=, < or >, and in quotes, for the shell:\n"
    "\n"
    "  --overlap 'copy/compute>=0.6'  the share of the copies' time with compute beside it\n"
    "  '--bubbles<=1ms'               the longest stretch in which a device ran nothing\n"
    "  '--span<=20ms'                 from the first start to the last end\n"
    "  '--idle<=10%'                  of the span, nothing ran\n"
    "  '--speedup>=1.5'               durations, added up, over the span\n"
    "  '--bound<=1.2'                 the span over the busy time of the busiest engine\n"
    "  --busy 'to_device>=0.9'        of the span, this was busy\n"
    "  '--host<=10%'                  of the critical path, the host's share\n"
    "  '--dropped<=0'                 operations that the trace does not hold\n"
    "\n"
    "Sets are copy, compute, to_device, to_host, on_device, communication, host, all,\n"
    "queue:LABEL, name:NAME and region:PATH. Without dashes, a condition is an operand: "
    "'bubbles<=1ms'.";

enum {
    CONDITION_LIMIT = 64
};

struct conditions {
    char *texts[CONDITION_LIMIT];
    size_t count;
};

static bool is_condition(const char *text)
{
    return strpbrk(text, "<>") != NULL;
}

static bool is_word(const char *text, const char *word)
{
    return strcmp(text + strspn(text, "-"), word) == 0;
}

static bool add_condition(struct conditions *conditions, const char *first, const char *second)
{
    if (conditions->count == CONDITION_LIMIT) {
        cli_error("weir trace check takes %d conditions at most; check the others in another call",
                  CONDITION_LIMIT);
        return false;
    }
    first += strspn(first, "-");
    const size_t size = strlen(first) + strlen(second) + 2;
    char *text = malloc(size);
    if (!text) {
        cli_error("no memory for the conditions");
        return false;
    }
    snprintf(text, size, "%s%s%s", first, *second ? " " : "", second);
    conditions->texts[conditions->count++] = text;
    return true;
}

// Moves the conditions out of argv, which keeps the rest; `*argc` counts it.
static bool take_conditions(struct conditions *conditions, int *argc, char **argv)
{
    int left = 1;
    for (int i = 1; i < *argc; i++) {
        const bool two = i + 1 < *argc && is_condition(argv[i + 1]) && !is_condition(argv[i]) &&
                         (is_word(argv[i], "overlap") || is_word(argv[i], "busy"));
        if (!two && !is_condition(argv[i])) {
            argv[left++] = argv[i];
            continue;
        }
        if (!add_condition(conditions, argv[i], two ? argv[i + 1] : ""))
            return false;
        i += two;
    }
    *argc = left;
    return true;
}

static json_t *describe(const char *condition, const struct weir_report_finding *check, bool *ok)
{
    json_t *object = json_object();
    weir_json_set(object, "condition", cli_json_string(condition), ok);
    weir_json_set(object, "holds", json_boolean(check->holds), ok);
    weir_json_set(object, "sentence", cli_json_string(check->sentence), ok);
    return object;
}

static int check_all(const weir_report *report, const struct conditions *conditions, bool json)
{
    json_t *list = json_array();
    int code = CLI_OK;
    bool ok = true;
    for (size_t i = 0; i < conditions->count; i++) {
        struct weir_report_finding check;
        if (weir_report_check(report, conditions->texts[i], &check) != WEIR_OK) {
            cli_error("%s", weir_last_error_text());
            json_decref(list);
            return CLI_USAGE;
        }
        if (!check.holds)
            code = CLI_FAILED;
        if (json)
            weir_json_append(list, describe(conditions->texts[i], &check, &ok), &ok);
        else
            printf("%s: %s\n", check.holds ? "holds" : "fails", check.sentence);
    }
    if (json)
        return cli_json_print(list, ok, code);
    json_decref(list);
    return code;
}

static int check_trace(const char *path, const struct cli_trace_window *window,
                       const struct conditions *conditions, bool json)
{
    weir_report *report = NULL;
    if (conditions->count == 0) {
        cli_error("weir trace check needs a condition, such as '--bubbles<=1ms', in quotes for "
                  "the shell");
        return CLI_USAGE;
    }
    int code = cli_trace_open(path, window, 1, false, &report);
    if (code == CLI_OK)
        code = check_all(report, conditions, json);
    weir_report_destroy(&report);
    return code;
}

int cli_trace_check(int argc, char **argv)
{
    struct conditions conditions = {0};
    struct cli_trace_window window = {0};
    bool json = false;
    const struct cli_option options[] = {
        {"from", "TIME", "only what ran later than TIME after the first\nstart", CLI_TEXT,
         &window.from, 0, 0},
        {"to", "TIME", "only what ran earlier than TIME after it", CLI_TEXT, &window.to, 0, 0},
        {"json", NULL, "print what was found as JSON", CLI_FLAG, &json, 0, 0},
    };
    const struct cli_usage usage = CLI_FORM("weir trace check", "FILE CONDITION...", "a trace", 1,
                                            1, check_about, "weir-trace(1)", options);
    size_t operands;
    int code = CLI_USAGE;
    if (take_conditions(&conditions, &argc, argv) &&
        cli_parse(&usage, argc, argv, &operands, &code))
        code = check_trace(argv[0], &window, &conditions, json);
    for (size_t i = 0; i < conditions.count; i++)
        free(conditions.texts[i]);
    return code;
}
