// weir trace report and diff: opens traces, prints their reports, and compares two.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/trace/trace.h"
#include "report/report.h"

static uint64_t read_time(const char *option, const char *text)
{
    double ns;
    if (!weir__report_time(text, &ns) || !(ns < 9e18))
        cli_fail(CLI_USAGE, "--%s takes a time such as 1.5ms, in ns, us, ms or s, not '%s'", option,
                 text);
    return (uint64_t)(ns + 0.5);
}

static void show_progress(void *user, uint64_t done, uint64_t total)
{
    struct cli_progress *progress = user;
    // The first call tells how large the file is.
    if (progress->total == 0)
        cli_progress_start(progress, total > (uint64_t)8 << 20, (total >> 20) + 1, NULL);
    cli_progress_update(progress, done >> 20, "MiB read");
}

static void read_window(const struct cli_trace_window *window, uint64_t origin,
                        struct weir_report_params *params)
{
    const uint64_t from = window->from ? read_time("from", window->from) : 0;
    const uint64_t to = window->to ? read_time("to", window->to) : 0;
    if (window->to && to <= from)
        cli_fail(CLI_USAGE, "--to is not later than --from, so there is nothing between them");
    params->from_ns = window->from ? origin + from : 0;
    params->to_ns = window->to ? origin + to : 0;
}

static void destroy_report(void *object)
{
    weir_report *report = object;
    weir_report_destroy(&report);
}

weir_report *cli_trace_open(const char *path, const struct cli_trace_window *window,
                            uint64_t bubbles, bool notes, int failed)
{
    struct weir_report_params params = {.struct_size = sizeof params,
                                        .bubble_limit = (uint32_t)bubbles};
    struct cli_progress progress = {0};
    const struct weir_trace_read_options options = {.progress = show_progress, .user = &progress};
    struct weir_trace *trace = NULL;
    weir_report *report;
    char message[512];
    const bool read = weir_trace_read(path, &options, &trace, message, sizeof message);
    cli_progress_end(&progress);
    if (!read)
        cli_fail(failed, "%s", message);
    for (size_t i = 0; i < trace->note_count && notes; i++)
        cli_warning("%s: %s", path, trace->notes[i]);
    if (window)
        read_window(window, weir__first_start(trace), &params);
    if (weir__report_make(trace, &params, &report) < 0)
        cli_fail(weir_last_error()->status == WEIR_ERROR_INVALID ? CLI_USAGE : failed, "%s: %s",
                 path, weir_last_error_text());
    cli_own(destroy_report, report);
    return report;
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
    cli_parse(&usage, argc, argv);
    // The text has the notes itself.
    weir_report *report = cli_trace_open(argv[0], &window, bubbles, json, CLI_FAILED);
    char *text = json ? weir_report_json(report) : weir_report_text(report);
    if (!text)
        cli_fail_weir();
    fputs(text, stdout);
    weir_report_free_text(&text);
    return CLI_OK;
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

struct conditions {
    char **texts;
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

// Moves the conditions out of argv, which keeps the rest; returns how many words that has.
static int take_conditions(struct conditions *conditions, int argc, char **argv)
{
    int left = 1;
    conditions->texts = cli_allocate((size_t)argc, sizeof *conditions->texts);
    for (int i = 1; i < argc; i++) {
        const bool two = i + 1 < argc && is_condition(argv[i + 1]) && !is_condition(argv[i]) &&
                         (is_word(argv[i], "overlap") || is_word(argv[i], "busy"));
        if (!two && !is_condition(argv[i])) {
            argv[left++] = argv[i];
            continue;
        }
        const char *first = argv[i] + strspn(argv[i], "-");
        conditions->texts[conditions->count++] =
            two ? cli_text("%s %s", first, argv[++i]) : cli_copy(first);
    }
    return left;
}

static int check_all(const weir_report *report, const struct conditions *conditions, bool json)
{
    json_t *list = json_array();
    int code = CLI_OK;
    for (size_t i = 0; i < conditions->count; i++) {
        struct weir_report_finding check;
        if (weir_report_check(report, conditions->texts[i], &check) != WEIR_OK) {
            json_decref(list);
            cli_fail(CLI_USAGE, "%s", weir_last_error_text());
        }
        if (!check.holds)
            code = CLI_FAILED;
        if (json)
            cli_json_append(list, json_pack("{s:o, s:b, s:o}", "condition",
                                            cli_json_string(conditions->texts[i]), "holds",
                                            (int)check.holds, "sentence",
                                            cli_json_string(check.sentence)));
        else
            printf("%s: %s\n", check.holds ? "holds" : "fails", check.sentence);
    }
    if (json)
        return cli_json_print(list, code);
    json_decref(list);
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
    const struct cli_usage usage =
        CLI_FORM("weir trace check", "FILE CONDITION...", "a trace", 1, 1, check_about, options);
    argc = take_conditions(&conditions, argc, argv);
    cli_parse(&usage, argc, argv);
    if (conditions.count == 0)
        cli_fail(CLI_USAGE,
                 "weir trace check needs a condition, such as '--bubbles<=1ms', in quotes for "
                 "the shell");
    return check_all(cli_trace_open(argv[0], &window, 1, true, CLI_FAILED), &conditions, json);
}

// weir trace diff: what got slower between two traces. Rows of both are joined by name, and
// their total times are compared, so that a kernel that is launched twice as often shows
// up as one that takes twice as long does.

enum {
    ROWS_SHOWN = 10,
    DEFAULT_LIMIT = 10,
};

static const char about[] =
    "Compares two traces: span, speed-up and idle time, and the time of each name of kernel or\n"
    "copy, each region, each queue and each engine, the largest changes first. Ends with 1 if\n"
    "the span of AFTER is longer than that of BEFORE by more than --limit percent.";

// One name in both traces. Rows of the same name, such as those of queues that are created
// repeatedly, are added up.
struct entry {
    const char *name;
    uint64_t ns[2]; // before and after
    uint64_t count[2];
};

struct entries {
    struct entry *items;
    size_t count;
};

struct section {
    const char *title;
    const char *name; // in JSON
    weir_report_table table;
};

static const struct section sections[] = {
    {"kernels and copies", "names", WEIR_REPORT_NAMES}, {"regions", "regions", WEIR_REPORT_REGIONS},
    {"queues", "queues", WEIR_REPORT_QUEUES},           {"engines", "engines", WEIR_REPORT_ENGINES},
    {"critical path", "path", WEIR_REPORT_PATH},
};

enum {
    SECTION_COUNT = sizeof sections / sizeof *sections
};

static double change(const struct entry *entry)
{
    return (double)entry->ns[1] - (double)entry->ns[0];
}

static int by_change(const void *a, const void *b)
{
    const struct entry *first = a;
    const struct entry *second = b;
    const double x = fabs(change(first));
    const double y = fabs(change(second));
    return x != y ? (x > y ? -1 : 1) : strcmp(first->name, second->name);
}

CLI_DESTROYER(destroy_names, weir_names_destroy)

// Ownership: the command's.
static struct entries find_entries(weir_report *const reports[2], weir_report_table table)
{
    const size_t rows =
        weir_report_row_count(reports[0], table) + weir_report_row_count(reports[1], table);
    struct entries entries = {.items = cli_allocate(rows + 1, sizeof *entries.items)};
    struct weir_names *names = weir_names_create();
    cli_own(destroy_names, names);
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < weir_report_row_count(reports[side], table); i++) {
            const struct weir_report_row *row = weir_report_get_row(reports[side], table, i);
            const size_t number = names ? weir_names_number(names, row->name) : SIZE_MAX;
            if (number == SIZE_MAX)
                cli_fail(CLI_FAILED, "no memory for the comparison");
            struct entry *entry = &entries.items[number];
            entry->name = row->name;
            entry->ns[side] += row->sum.most_ns;
            entry->count[side] += row->count;
        }
    entries.count = names ? weir_names_count(names) : 0;
    qsort(entries.items, entries.count, sizeof *entries.items, by_change);
    return entries;
}

// Text.

static void add_percent(struct weir_table *table, double before, double after)
{
    if (before > 0)
        weir_table_add(table, "%+.1f %%", 100 * (after / before - 1));
    else
        weir_table_add(table, "%s", after > 0 ? "new" : "");
}

static void add_times(struct weir_table *table, uint64_t before, uint64_t after)
{
    weir_table_add(table, "%s\t%s\t%s%s", weir_text_duration((double)before).text,
                   weir_text_duration((double)after).text,
                   after > before   ? "+"
                   : after < before ? "-"
                                    : "",
                   weir_text_duration(fabs((double)after - (double)before)).text);
    if (after == 0 && before > 0)
        weir_table_add(table, "gone");
    else
        add_percent(table, (double)before, (double)after);
}

#define HEADS "%s\tbefore\tafter\tchange\t"

static void print_totals(weir_report *const reports[2])
{
    const struct weir_report_summary *before = weir_report_get_summary(reports[0]);
    const struct weir_report_summary *after = weir_report_get_summary(reports[1]);
    const bool serial = *before->serial_reason || *after->serial_reason;
    struct weir_table table = {.alignment = "lrrrr"};
    weir_table_add(&table, HEADS, "");
    weir_table_add(&table, "span");
    add_times(&table, before->span_ns, after->span_ns);
    weir_table_add(&table, "idle");
    add_times(&table, before->idle_ns, after->idle_ns);
    weir_table_add(&table, "bound");
    add_times(&table, before->bound_ns, after->bound_ns);
    weir_table_add(&table, "longest bubble");
    add_times(&table, before->longest_bubble_ns, after->longest_bubble_ns);
    if (!serial) {
        weir_table_add(&table, "effective speed-up\t%.2f\t%.2f\t%+.2f", before->speedup_most,
                       after->speedup_most, after->speedup_most - before->speedup_most);
        add_percent(&table, before->speedup_most, after->speedup_most);
    }
    cli_table_print(&table, stdout, 0);
}

static void print_section(const struct section *section, const struct entries *entries)
{
    struct weir_table table = {.alignment = "lrrrr"};
    size_t shown = 0;
    if (entries->count == 0)
        return;
    printf("\n");
    weir_table_add(&table, HEADS, section->title);
    for (; shown < entries->count && shown < ROWS_SHOWN; shown++) {
        const struct entry *entry = &entries->items[shown];
        if (entry->count[0] == entry->count[1])
            weir_table_add(&table, "  %s", entry->name);
        else
            weir_table_add(&table, "  %s (%" PRIu64 " x, then %" PRIu64 " x)", entry->name,
                           entry->count[0], entry->count[1]);
        add_times(&table, entry->ns[0], entry->ns[1]);
    }
    cli_table_print(&table, stdout, 0);
    if (entries->count > shown)
        printf("  and %zu more\n", entries->count - shown);
}

// JSON.

static json_t *sides(uint64_t before, uint64_t after)
{
    return json_pack("{s:o, s:o}", "before", weir_json_count(before), "after",
                     weir_json_count(after));
}

static int print_json(weir_report *const reports[2], int code)
{
    const struct weir_report_summary *before = weir_report_get_summary(reports[0]);
    const struct weir_report_summary *after = weir_report_get_summary(reports[1]);
    json_t *root =
        json_pack("{s:o, s:o, s:o, s:o}", "span_ns", sides(before->span_ns, after->span_ns),
                  "idle_ns", sides(before->idle_ns, after->idle_ns), "bound_ns",
                  sides(before->bound_ns, after->bound_ns), "longest_bubble_ns",
                  sides(before->longest_bubble_ns, after->longest_bubble_ns));
    for (size_t i = 0; i < SECTION_COUNT; i++) {
        const struct entries entries = find_entries(reports, sections[i].table);
        json_t *list = json_array();
        for (size_t k = 0; k < entries.count; k++) {
            const struct entry *entry = &entries.items[k];
            cli_json_append(list, json_pack("{s:o, s:o, s:o}", "name", cli_json_string(entry->name),
                                            "ns", sides(entry->ns[0], entry->ns[1]), "count",
                                            sides(entry->count[0], entry->count[1])));
        }
        cli_json_set(root, sections[i].name, list);
    }
    return cli_json_print(root, code);
}

int cli_trace_diff(int argc, char **argv)
{
    uint64_t limit = DEFAULT_LIMIT;
    bool json = false;
    const struct cli_option options[] = {
        {"limit", "P", "by how many percent the span may grow; without it,\n10", CLI_COUNT, &limit,
         0, 1000000},
        {"json", NULL, "print the comparison as JSON", CLI_FLAG, &json, 0, 0},
    };
    const struct cli_usage usage =
        CLI_FORM("weir trace diff", "BEFORE AFTER", "two traces", 2, 2, about, options);
    weir_report *reports[2];
    cli_parse(&usage, argc, argv);
    for (size_t i = 0; i < 2; i++)
        reports[i] = cli_trace_open(argv[i], NULL, 1, true, CLI_FAILED);
    const double before = (double)weir_report_get_summary(reports[0])->span_ns;
    const double after = (double)weir_report_get_summary(reports[1])->span_ns;
    const bool slower = after > before * (1 + (double)limit / 100);
    const int code = slower ? CLI_FAILED : CLI_OK;
    if (slower)
        cli_error("the span grew by %.1f %%, and %" PRIu64 " %% are allowed",
                  before > 0 ? 100 * (after / before - 1) : 100.0, limit);
    if (json)
        return print_json(reports, code);
    print_totals(reports);
    for (size_t i = 0; i < SECTION_COUNT; i++) {
        const struct entries entries = find_entries(reports, sections[i].table);
        print_section(&sections[i], &entries);
    }
    return code;
}
