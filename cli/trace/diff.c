// weir trace diff: what got slower between two traces. Rows of both are joined by name, and
// their total times are compared, so that a kernel that is launched twice as often shows
// up as one that takes twice as long does.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sum.h"
#include "cli/common/output.h"
#include "cli/trace/trace.h"

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

static int by_name(const void *a, const void *b)
{
    const struct entry *first = a;
    const struct entry *second = b;
    return strcmp(first->name, second->name);
}

static void add_up(struct entries *entries)
{
    size_t used = 0;
    for (size_t i = 0; i < entries->count; i++) {
        const struct entry entry = entries->items[i];
        if (used == 0 || strcmp(entries->items[used - 1].name, entry.name) != 0) {
            entries->items[used++] = entry;
            continue;
        }
        for (size_t side = 0; side < 2; side++) {
            weir_sum_add(&entries->items[used - 1].ns[side], entry.ns[side]);
            entries->items[used - 1].count[side] += entry.count[side];
        }
    }
    entries->count = used;
}

static bool find_entries(weir_report *const reports[2], weir_report_table table,
                         struct entries *entries)
{
    const size_t rows =
        weir_report_row_count(reports[0], table) + weir_report_row_count(reports[1], table);
    *entries = (struct entries){.items = malloc((rows + 1) * sizeof *entries->items)};
    if (!entries->items)
        return false;
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < weir_report_row_count(reports[side], table); i++) {
            const struct weir_report_row *row = weir_report_get_row(reports[side], table, i);
            struct entry *entry = &entries->items[entries->count++];
            *entry = (struct entry){.name = row->name};
            entry->ns[side] = row->sum.most_ns;
            entry->count[side] = row->count;
        }
    qsort(entries->items, entries->count, sizeof *entries->items, by_name);
    add_up(entries);
    qsort(entries->items, entries->count, sizeof *entries->items, by_change);
    return true;
}

// Text.

static const char *show_change(char text[WEIR_TEXT_QUANTITY_SIZE], double ns)
{
    char size[WEIR_TEXT_QUANTITY_SIZE];
    snprintf(text, WEIR_TEXT_QUANTITY_SIZE, "%s%.24s",
             ns > 0   ? "+"
             : ns < 0 ? "-"
                      : "",
             weir_text_duration(size, fabs(ns)));
    return text;
}

static void add_percent(struct weir_table *table, double before, double after)
{
    if (before > 0)
        weir_table_add(table, "%+.1f %%", 100 * (after / before - 1));
    else
        weir_table_add(table, "%s", after > 0 ? "new" : "");
}

static void add_times(struct weir_table *table, uint64_t before, uint64_t after)
{
    char text[WEIR_TEXT_QUANTITY_SIZE];
    weir_table_add(table, "%s", weir_text_duration(text, (double)before));
    weir_table_add(table, "%s", weir_text_duration(text, (double)after));
    weir_table_add(table, "%s", show_change(text, (double)after - (double)before));
    if (after == 0 && before > 0)
        weir_table_add(table, "gone");
    else
        add_percent(table, (double)before, (double)after);
}

static void add_heads(struct weir_table *table, const char *title)
{
    static const char *const heads[] = {"before", "after", "change", ""};
    weir_table_add(table, "%s", title);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        weir_table_add(table, "%s", heads[i]);
}

static void print_totals(weir_report *const reports[2])
{
    const struct weir_report_summary *before = weir_report_get_summary(reports[0]);
    const struct weir_report_summary *after = weir_report_get_summary(reports[1]);
    const bool serial = *before->serial_reason || *after->serial_reason;
    struct weir_table table = {.alignment = "lrrrr"};
    add_heads(&table, "");
    weir_table_add(&table, "span");
    add_times(&table, before->span_ns, after->span_ns);
    weir_table_add(&table, "idle");
    add_times(&table, before->idle_ns, after->idle_ns);
    weir_table_add(&table, "bound");
    add_times(&table, before->bound_ns, after->bound_ns);
    weir_table_add(&table, "longest bubble");
    add_times(&table, before->longest_bubble_ns, after->longest_bubble_ns);
    if (!serial) {
        weir_table_add(&table, "effective speed-up");
        weir_table_add(&table, "%.2f", before->speedup_most);
        weir_table_add(&table, "%.2f", after->speedup_most);
        weir_table_add(&table, "%+.2f", after->speedup_most - before->speedup_most);
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
    add_heads(&table, section->title);
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

static bool print_text(weir_report *const reports[2])
{
    print_totals(reports);
    for (size_t i = 0; i < SECTION_COUNT; i++) {
        struct entries entries;
        if (!find_entries(reports, sections[i].table, &entries))
            return false;
        print_section(&sections[i], &entries);
        free(entries.items);
    }
    return true;
}

// JSON.

static void set_sides(json_t *object, const char *key, uint64_t before, uint64_t after, bool *ok)
{
    json_t *sides = json_object();
    weir_json_set(sides, "before", weir_json_count(before), ok);
    weir_json_set(sides, "after", weir_json_count(after), ok);
    weir_json_set(object, key, sides, ok);
}

static json_t *describe_entries(const struct entries *entries, bool *ok)
{
    json_t *list = json_array();
    for (size_t i = 0; i < entries->count; i++) {
        const struct entry *entry = &entries->items[i];
        json_t *object = json_object();
        weir_json_set(object, "name", cli_json_string(entry->name), ok);
        set_sides(object, "ns", entry->ns[0], entry->ns[1], ok);
        set_sides(object, "count", entry->count[0], entry->count[1], ok);
        weir_json_append(list, object, ok);
    }
    return list;
}

static int print_json(weir_report *const reports[2], int code)
{
    const struct weir_report_summary *before = weir_report_get_summary(reports[0]);
    const struct weir_report_summary *after = weir_report_get_summary(reports[1]);
    bool ok = true;
    json_t *root = json_object();
    set_sides(root, "span_ns", before->span_ns, after->span_ns, &ok);
    set_sides(root, "idle_ns", before->idle_ns, after->idle_ns, &ok);
    set_sides(root, "bound_ns", before->bound_ns, after->bound_ns, &ok);
    set_sides(root, "longest_bubble_ns", before->longest_bubble_ns, after->longest_bubble_ns, &ok);
    for (size_t i = 0; i < SECTION_COUNT; i++) {
        struct entries entries;
        if (!find_entries(reports, sections[i].table, &entries)) {
            ok = false;
            break;
        }
        weir_json_set(root, sections[i].name, describe_entries(&entries, &ok), &ok);
        free(entries.items);
    }
    return cli_json_print(root, ok, code);
}

// Whether it got slower, in a sentence.
static int judge(weir_report *const reports[2], uint64_t limit)
{
    const double before = (double)weir_report_get_summary(reports[0])->span_ns;
    const double after = (double)weir_report_get_summary(reports[1])->span_ns;
    if (after <= before * (1 + (double)limit / 100))
        return CLI_OK;
    cli_error("the span grew by %.1f %%, and %" PRIu64 " %% are allowed",
              before > 0 ? 100 * (after / before - 1) : 100.0, limit);
    return CLI_FAILED;
}

static int compare(weir_report *const reports[2], uint64_t limit, bool json)
{
    const int code = judge(reports, limit);
    if (json)
        return print_json(reports, code);
    if (print_text(reports))
        return code;
    cli_error("no memory to compare the traces");
    return CLI_FAILED;
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
    const struct cli_usage usage = CLI_FORM("weir trace diff", "BEFORE AFTER", "two traces", 2, 2,
                                            about, "weir-trace(1)", options);
    weir_report *reports[2] = {NULL, NULL};
    size_t operands;
    int code;
    if (!cli_parse(&usage, argc, argv, &operands, &code))
        return code;
    code = CLI_OK;
    for (size_t i = 0; i < 2 && code == CLI_OK; i++)
        code = cli_trace_open(argv[i], NULL, 1, false, &reports[i]);
    if (code == CLI_OK)
        code = compare(reports, limit, json);
    weir_report_destroy(&reports[0]);
    weir_report_destroy(&reports[1]);
    return code;
}
