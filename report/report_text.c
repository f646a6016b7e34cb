// The report as JSON and as text.
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/json/json.h"
#include "base/table.h"
#include "base/text.h"
#include "report/report.h"

// The overlaps that every report lists.
static const struct {
    const char *first;
    const char *second;
} pairs[] = {
    {"copy", "compute"},          {"to_device", "compute"},  {"to_host", "compute"},
    {"to_device", "to_host"},     {"copy", "copy"},          {"compute", "compute"},
    {"communication", "compute"}, {"communication", "copy"},
};

enum {
    PAIR_COUNT = sizeof pairs / sizeof *pairs
};

static const char *const verdict_names[] = {
    [WEIR_REPORT_NOTHING_RAN] = "nothing ran",
    [WEIR_REPORT_DEVICE_BOUND] = "device-bound",
    [WEIR_REPORT_MIXED] = "mixed",
    [WEIR_REPORT_SUBMIT_BOUND] = "submit-bound",
};

static const char *const cause_names[] = {
    [WEIR_REPORT_CAUSE_NONE] = "none",       [WEIR_REPORT_CAUSE_SUBMIT] = "submit",
    [WEIR_REPORT_CAUSE_WAIT] = "wait",       [WEIR_REPORT_CAUSE_QUEUE] = "queue",
    [WEIR_REPORT_CAUSE_LATENCY] = "latency",
};

static const char *const table_names[WEIR__TABLE_COUNT] = {
    [WEIR_REPORT_DEVICES] = "devices", [WEIR_REPORT_QUEUES] = "queues",
    [WEIR_REPORT_ENGINES] = "engines", [WEIR_REPORT_KINDS] = "kinds",
    [WEIR_REPORT_NAMES] = "names",     [WEIR_REPORT_REGIONS] = "regions",
    [WEIR_REPORT_PATH] = "path",
};

#define FLAGS (JSON_INDENT(1) | JSON_REAL_PRECISION(9))

// The reader's texts are UTF-8, but a sentence may have been cut within a character.
static json_t *text_of(const char *text)
{
    const size_t size = strlen(text);
    size_t length = 0;
    size_t next;
    while (length < size && (next = weir_text_character(text + length, size - length)) > 0)
        length += next;
    return json_stringn(text, length);
}

static json_t *time_of(struct weir_report_time time)
{
    return json_pack("{s:o, s:o}", "least_ns", weir_json_count(time.least_ns), "most_ns",
                     weir_json_count(time.most_ns));
}

// null if the number does not apply.
static json_t *number_of(double number, bool applies)
{
    return applies ? json_real(number) : json_null();
}

static json_t *meta_of(const struct weir_trace *trace, bool *ok)
{
    json_t *notes = json_array();
    json_t *devices = json_array();
    for (size_t i = 0; i < trace->device_count; i++)
        weir_json_append(devices, json_string(trace->devices[i].name), ok);
    for (size_t i = 0; i < trace->note_count; i++)
        weir_json_append(notes, json_string(trace->notes[i]), ok);
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "program", text_of(trace->meta.program),
                     "backend", text_of(trace->meta.backend), "source", text_of(trace->meta.source),
                     "device_names", devices, "notes", notes);
}

static json_t *summary_of(const struct weir_report_summary *s)
{
    const bool overlaps = *s->serial_reason == '\0';
    return json_pack(
        "{s:o, s:o, s:o, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, "
        "s:o, s:o, s:o, s:o, s:f, s:f, s:f, s:s}",
        "operations", weir_json_count(s->operations), "untimed", weir_json_count(s->untimed),
        "dropped", weir_json_count(s->dropped), "truncated", (int)s->truncated, "exact",
        (int)s->exact, "begin_ns", weir_json_count(s->begin_ns), "end_ns",
        weir_json_count(s->end_ns), "span_ns", weir_json_count(s->span_ns), "idle_ns",
        weir_json_count(s->idle_ns), "compute_ns", weir_json_count(s->compute_ns), "non_compute_ns",
        weir_json_count(s->non_compute_ns), "speedup_least", number_of(s->speedup_least, overlaps),
        "speedup_most", number_of(s->speedup_most, overlaps), "bound_ns",
        weir_json_count(s->bound_ns), "bound_device", weir_json_count(s->bound_device),
        "bound_engine", text_of(s->bound_engine), "bound_distance", s->bound_distance,
        "serial_reason", text_of(s->serial_reason), "bubble_count", weir_json_count(s->bubbles),
        "bubbles_ns", weir_json_count(s->bubbles_ns), "longest_bubble_ns",
        weir_json_count(s->longest_bubble_ns), "device_share", s->device_share, "host_share",
        s->host_share, "latency_share", s->latency_share, "verdict", verdict_names[s->verdict]);
}

static void set_overlaps(json_t *root, const weir_report *report, bool *ok)
{
    json_t *list = json_array();
    for (size_t i = 0; i < PAIR_COUNT; i++) {
        struct weir_report_overlap it;
        *ok =
            *ok && weir_report_get_overlap(report, pairs[i].first, pairs[i].second, &it) == WEIR_OK;
        if (!*ok)
            break;
        weir_json_append(list,
                         json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "first", pairs[i].first,
                                   "second", pairs[i].second, "both", time_of(it.both), "least",
                                   number_of(it.least, it.applies), "most",
                                   number_of(it.most, it.applies), "reason", text_of(it.reason)),
                         ok);
    }
    weir_json_set(root, "overlaps", list, ok);
}

static void set_tables(json_t *root, const weir_report *report, bool *ok)
{
    for (int table = WEIR_REPORT_DEVICES; table <= WEIR_REPORT_PATH; table++) {
        json_t *list = json_array();
        for (size_t i = 0; i < report->tables[table].count; i++) {
            const struct weir_report_row *row = &report->tables[table].rows[i].row;
            json_t *object =
                json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:f}", "name", text_of(row->name),
                          "count", weir_json_count(row->count), "bytes",
                          weir_json_count(row->bytes), "sum", time_of(row->sum), "busy",
                          time_of(row->busy), "longest_ns", weir_json_count(row->longest_ns),
                          "utilisation", row->utilisation);
            if (table <= WEIR_REPORT_ENGINES)
                weir_json_set(object, "device", weir_json_count(row->device), ok);
            if (table == WEIR_REPORT_QUEUES)
                weir_json_set(object, "queue", weir_json_count(row->queue), ok);
            weir_json_append(list, object, ok);
        }
        weir_json_set(root, table_names[table], list, ok);
    }
}

static void set_bubbles(json_t *root, const weir_report *report, bool of_bound, bool *ok)
{
    json_t *list = json_array();
    for (size_t i = 0; i < report->bubbles[of_bound].count; i++) {
        const struct weir_report_bubble *it = &report->bubbles[of_bound].items[i].bubble;
        weir_json_append(list,
                         json_pack("{s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:i}", "begin_ns",
                                   weir_json_count(it->begin_ns), "end_ns",
                                   weir_json_count(it->end_ns), "device",
                                   weir_json_count(it->device), "engine", text_of(it->engine),
                                   "cause", cause_names[it->cause], "sentence",
                                   text_of(it->sentence), "file", text_of(it->file), "line",
                                   it->line),
                         ok);
    }
    weir_json_set(root, of_bound ? "bound_bubbles" : "bubbles", list, ok);
}

char *weir_report_json(const weir_report *report)
{
    bool ok = true;
    if (!report)
        return NULL;
    json_t *root = meta_of(report->trace, &ok);
    json_t *summary = summary_of(&report->summary);
    ok = ok && json_object_update(root, summary) == 0;
    json_decref(summary);
    set_overlaps(root, report, &ok);
    set_tables(root, report, &ok);
    set_bubbles(root, report, false, &ok);
    set_bubbles(root, report, true, &ok);
    char *text = weir_json_text(root, ok, FLAGS, NULL);
    if (!text)
        weir__report_fail(WEIR_ERROR_OUT_OF_MEMORY, "", "no memory for the report's text");
    return text;
}

// The report for a terminal.

enum {
    LONGEST = 5,    // bubbles that are shown
    MOST_NAMES = 12 // rows of tables that may be long
};

static double percent(uint64_t part, uint64_t whole)
{
    return whole > 0 ? 100 * (double)part / (double)whole : 0;
}

// "61 %" or "40 to 61 %".
static struct weir_quantity show_range(double least, double most)
{
    struct weir_quantity shown;
    if (100 * (most - least) < 0.05)
        weir_c_format(shown.text, sizeof shown.text, "%.1f %%", 100 * most);
    else
        weir_c_format(shown.text, sizeof shown.text, "%.1f to %.1f %%", 100 * least, 100 * most);
    return shown;
}

static struct weir_quantity show_times(struct weir_report_time time)
{
    const struct weir_quantity least = weir_text_duration((double)time.least_ns);
    const struct weir_quantity most = weir_text_duration((double)time.most_ns);
    struct weir_quantity shown;
    if (strcmp(least.text, most.text) == 0)
        return most;
    snprintf(shown.text, sizeof shown.text, "%.13s to %.13s", least.text, most.text);
    return shown;
}

// Then rows of devices begin with the device's number.
static bool has_several_devices(const weir_report *report)
{
    return report->tables[WEIR_REPORT_DEVICES].count > 1;
}

static void add_notes(const weir_report *report, struct weir_long_text *text)
{
    const struct weir_trace *trace = report->trace;
    const struct weir_report_summary *summary = &report->summary;
    for (size_t i = 0; i < trace->note_count; i++) {
        weir_long_text_add(text, "note: ");
        weir_long_text_add_shown(text, trace->notes[i]);
        weir_long_text_add(text, "\n");
    }
    if (summary->untimed > 0)
        weir_long_text_add(text, "note: %" PRIu64 " operations have no times and are left out\n",
                           summary->untimed);
    if (!summary->exact)
        weir_long_text_add(text, "note: of some operations the driver tells no start; figures that "
                                 "depend on it are given as \"least to most\"\n");
    if (trace->note_count > 0 || summary->untimed > 0 || !summary->exact)
        weir_long_text_add(text, "\n");
}

static void add_head(const weir_report *report, struct weir_long_text *text)
{
    const struct weir_trace *trace = report->trace;
    const struct weir_report_summary *summary = &report->summary;
    weir_long_text_add_shown(text, *trace->meta.program ? trace->meta.program : "a trace");
    weir_long_text_add(text, "%s", *trace->meta.backend ? " on " : "");
    weir_long_text_add_shown(text, trace->meta.backend);
    for (size_t i = 0; i < trace->device_count; i++) {
        weir_long_text_add(text, "%s", i == 0 ? ", " : " and ");
        weir_long_text_add_shown(text,
                                 *trace->devices[i].name ? trace->devices[i].name : "a device");
    }
    weir_long_text_add(text, ": %" PRIu64 " operations, %zu queue%s\n\n", summary->operations,
                       trace->queue_count, trace->queue_count == 1 ? "" : "s");
    add_notes(report, text);
}

static void add_summary(const weir_report *report, struct weir_long_text *text)
{
    const struct weir_report_summary *s = &report->summary;
    struct weir_table cells = {.alignment = "ll"};
    weir_table_add(&cells, "span\t%s: idle %.1f %%, compute %.1f %%, other work %.1f %%",
                   weir_text_duration((double)s->span_ns).text, percent(s->idle_ns, s->span_ns),
                   percent(s->compute_ns, s->span_ns), percent(s->non_compute_ns, s->span_ns));
    weir_table_add(&cells, "effective speed-up");
    if (*s->serial_reason)
        weir_table_add(&cells, "n/a: %s", s->serial_reason);
    else if (s->speedup_most - s->speedup_least < 0.005)
        weir_table_add(&cells, "%.2f: the durations, added up, over the span", s->speedup_most);
    else
        weir_table_add(&cells, "%.2f to %.2f: the durations, added up, over the span",
                       s->speedup_least, s->speedup_most);
    char device[32] = "";
    if (has_several_devices(report))
        snprintf(device, sizeof device, " of device %" PRIu32, s->bound_device);
    weir_table_add(&cells, "bound\t%s, the busy time of engine %s%s; the span is %.2f times that",
                   weir_text_duration((double)s->bound_ns).text, s->bound_engine, device,
                   s->bound_distance);
    weir_table_add(
        &cells,
        "held up by\t%s: of the critical path %.1f %% is work of the device, %.1f %% the host, "
        "%.1f %% latency",
        verdict_names[s->verdict], 100 * s->device_share, 100 * s->host_share,
        100 * s->latency_share);
    weir_table_end(&cells, 2, text);
}

static void add_overlaps(const weir_report *report, struct weir_long_text *text)
{
    struct weir_table cells = {.alignment = "lrr"};
    weir_long_text_add(text, "\noverlap\n");
    weir_table_add(&cells, "A / B\tboth ran\tof A");
    for (size_t i = 0; i < PAIR_COUNT; i++) {
        struct weir_report_overlap it;
        if (weir_report_get_overlap(report, pairs[i].first, pairs[i].second, &it) != WEIR_OK) {
            text->failed = true;
            break;
        }
        if (it.first.most_ns > 0 && it.second.most_ns > 0)
            weir_table_add(&cells, "%s / %s\t%s\t%s", pairs[i].first, pairs[i].second,
                           it.applies ? show_times(it.both).text : "n/a",
                           it.applies ? show_range(it.least, it.most).text : "n/a");
    }
    weir_table_end(&cells, 2, text);
}

static void add_row(const weir_report *report, weir_report_table table,
                    const struct weir_report_row *row, struct weir_table *cells)
{
    if (table <= WEIR_REPORT_ENGINES && has_several_devices(report))
        weir_table_add(cells, "%" PRIu32 ": %s", row->device, row->name);
    else
        weir_table_add(cells, "%s", row->name);
    if (table == WEIR_REPORT_PATH)
        weir_table_add(cells, "%" PRIu64 " x", row->count);
    else
        weir_table_add(cells, "%" PRIu64 "\t%s\t%s", row->count,
                       row->bytes ? weir_text_bytes(row->bytes).text : "",
                       weir_text_duration((double)row->longest_ns).text);
    weir_table_add(cells, "%s\t%.1f %%", show_times(row->busy).text, 100 * row->utilisation);
}

static void add_table(const weir_report *report, weir_report_table table,
                      struct weir_long_text *text)
{
    const struct weir__rows_of_table *rows = &report->tables[table];
    const bool path = table == WEIR_REPORT_PATH;
    struct weir_table cells = {.alignment = path ? "lrrr" : "lrrrrr"};
    if (rows->count == 0)
        return;
    weir_long_text_add(text, "\n%s\n", path ? "critical path" : table_names[table]);
    if (!path)
        weir_table_add(&cells, " \toperations\tbytes\tlongest\tbusy\tof the span");
    for (size_t i = 0; i < rows->count && i < MOST_NAMES; i++)
        add_row(report, table, &rows->rows[i].row, &cells);
    weir_table_end(&cells, 2, text);
    if (rows->count > MOST_NAMES)
        weir_long_text_add(text, "  and %zu more\n", rows->count - MOST_NAMES);
}

static void add_bubbles(const weir_report *report, bool of_bound, struct weir_long_text *text)
{
    const struct weir__bubbles *bubbles = &report->bubbles[of_bound];
    struct weir_table cells = {.alignment = "rrl"};
    for (size_t i = 0; i < bubbles->count && i < LONGEST; i++) {
        const struct weir_report_bubble *bubble = &bubbles->items[i].bubble;
        weir_table_add(&cells, "%s\tat %s",
                       weir_text_duration((double)(bubble->end_ns - bubble->begin_ns)).text,
                       weir_text_duration((double)(bubble->begin_ns - report->origin_ns)).text);
        if (*bubble->file)
            weir_table_add(&cells, "%s (%s:%d)", bubble->sentence, bubble->file, bubble->line);
        else
            weir_table_add(&cells, "%s", bubble->sentence);
    }
    weir_table_end(&cells, 2, text);
}

static void add_all_bubbles(const weir_report *report, struct weir_long_text *text)
{
    const struct weir_report_summary *summary = &report->summary;
    if (summary->bubbles > 0) {
        weir_long_text_add(text,
                           "\nbubbles: %" PRIu64 ", in which a device ran nothing, %s in all%s\n",
                           summary->bubbles, weir_text_duration((double)summary->bubbles_ns).text,
                           summary->bubbles > LONGEST ? "; the longest" : "");
        add_bubbles(report, false, text);
    }
    if (report->bubbles[1].count > 0) {
        weir_long_text_add(text, "\nidle stretches of the bound, engine %s%s\n",
                           summary->bound_engine,
                           report->bubbles[1].count > LONGEST ? "; the longest" : "");
        add_bubbles(report, true, text);
    }
}

char *weir_report_text(const weir_report *report)
{
    struct weir_long_text text = {0};
    if (!report)
        return NULL;
    add_head(report, &text);
    if (report->summary.span_ns == 0) {
        weir_long_text_add(&text, "no operation of a device took any time\n");
    } else {
        add_summary(report, &text);
        add_overlaps(report, &text);
        if (has_several_devices(report))
            add_table(report, WEIR_REPORT_DEVICES, &text);
        add_table(report, WEIR_REPORT_ENGINES, &text);
        add_table(report, WEIR_REPORT_QUEUES, &text);
        add_table(report, WEIR_REPORT_NAMES, &text);
        add_table(report, WEIR_REPORT_REGIONS, &text);
        add_table(report, WEIR_REPORT_PATH, &text);
        add_all_bubbles(report, &text);
    }
    if (!text.failed)
        return text.text;
    free(text.text);
    weir__report_fail(WEIR_ERROR_OUT_OF_MEMORY, "", "no memory for the report's text");
    return NULL;
}
