// The report for a terminal.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/grid.h"
#include "report/report.h"
#include "report/report_parts.h"

enum {
    LONGEST = 5,    // bubbles that are shown
    MOST_NAMES = 12 // rows of tables that may be long
};

const struct weir__pair weir__pairs[WEIR__PAIR_COUNT] = {
    {"copy", "compute"},      {"to_device", "compute"}, {"to_host", "compute"},
    {"to_device", "to_host"}, {"copy", "copy"},         {"compute", "compute"},
};

const char *weir__verdict_name(weir_report_verdict verdict)
{
    switch (verdict) {
    case WEIR_REPORT_DEVICE_BOUND:
        return "device-bound";
    case WEIR_REPORT_MIXED:
        return "mixed";
    case WEIR_REPORT_SUBMIT_BOUND:
        return "submit-bound";
    case WEIR_REPORT_NOTHING_RAN:
        break;
    }
    return "nothing ran";
}

const char *weir__cause_name(weir_report_cause cause)
{
    switch (cause) {
    case WEIR_REPORT_CAUSE_SUBMIT:
        return "submit";
    case WEIR_REPORT_CAUSE_WAIT:
        return "wait";
    case WEIR_REPORT_CAUSE_QUEUE:
        return "queue";
    case WEIR_REPORT_CAUSE_LATENCY:
        return "latency";
    case WEIR_REPORT_CAUSE_NONE:
        break;
    }
    return "none";
}

const char *weir__table_name(weir_report_table table)
{
    static const char *const names[WEIR__TABLE_COUNT] = {
        [WEIR_REPORT_DEVICES] = "devices", [WEIR_REPORT_QUEUES] = "queues",
        [WEIR_REPORT_ENGINES] = "engines", [WEIR_REPORT_KINDS] = "kinds",
        [WEIR_REPORT_NAMES] = "names",     [WEIR_REPORT_REGIONS] = "regions",
        [WEIR_REPORT_PATH] = "path",
    };
    return names[table];
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole > 0 ? 100 * (double)part / (double)whole : 0;
}

// "61 %" or "40 to 61 %".
static const char *show_range(char text[64], double least, double most)
{
    if (100 * (most - least) < 0.05)
        snprintf(text, 64, "%.1f %%", 100 * most);
    else
        snprintf(text, 64, "%.1f to %.1f %%", 100 * least, 100 * most);
    return text;
}

static const char *show_times(char text[96], struct weir_report_time time)
{
    char least[WEIR__DURATION_SIZE];
    char most[WEIR__DURATION_SIZE];
    weir__duration(least, (double)time.least_ns);
    weir__duration(most, (double)time.most_ns);
    if (strcmp(least, most) == 0)
        snprintf(text, 96, "%s", most);
    else
        snprintf(text, 96, "%s to %s", least, most);
    return text;
}

static const char *show_bytes(char text[WEIR__DURATION_SIZE], uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 999.5 && unit < 4) {
        value /= 1024;
        unit++;
    }
    const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(text, WEIR__DURATION_SIZE, "%.*f %s", decimals, value, units[unit]);
    return text;
}

// Then rows of devices begin with the device's number.
static bool has_several_devices(const weir_report *report)
{
    return report->tables[WEIR_REPORT_DEVICES].count > 1;
}

static void add_notes(const weir_report *report, struct weir__text *text)
{
    const struct weir_trace *trace = report->trace;
    const struct weir_report_summary *summary = &report->summary;
    for (size_t i = 0; i < trace->note_count; i++)
        weir__text_add(text, "note: %s\n", trace->notes[i]);
    if (summary->untimed > 0)
        weir__text_add(text, "note: %" PRIu64 " operations have no times and are left out\n",
                       summary->untimed);
    if (!summary->exact)
        weir__text_add(text, "note: of some operations the driver tells no start; figures that "
                             "depend on it are given as \"least to most\"\n");
    if (trace->note_count > 0 || summary->untimed > 0 || !summary->exact)
        weir__text_add(text, "\n");
}

static void add_head(const weir_report *report, struct weir__text *text)
{
    const struct weir_trace *trace = report->trace;
    const struct weir_report_summary *summary = &report->summary;
    weir__text_add(text, "%s%s%s", *trace->meta.program ? trace->meta.program : "a trace",
                   *trace->meta.backend ? " on " : "", trace->meta.backend);
    for (size_t i = 0; i < trace->device_count; i++)
        weir__text_add(text, "%s%s", i == 0 ? ", " : " and ",
                       *trace->devices[i].name ? trace->devices[i].name : "a device");
    weir__text_add(text, ": %" PRIu64 " operations, %zu queue%s\n\n", summary->operations,
                   trace->queue_count, trace->queue_count == 1 ? "" : "s");
    add_notes(report, text);
}

static void add_summary(const weir_report *report, struct weir__text *text)
{
    const struct weir_report_summary *s = &report->summary;
    struct weir__grid grid = {.alignment = "ll"};
    char time[WEIR__DURATION_SIZE];
    weir__grid_add(&grid, "span");
    weir__grid_add(&grid, "%s: idle %.1f %%, compute %.1f %%, other work %.1f %%",
                   weir__duration(time, (double)s->span_ns), percent(s->idle_ns, s->span_ns),
                   percent(s->compute_ns, s->span_ns), percent(s->non_compute_ns, s->span_ns));
    weir__grid_add(&grid, "effective speed-up");
    if (*s->serial_reason)
        weir__grid_add(&grid, "n/a: %s", s->serial_reason);
    else if (s->speedup_most - s->speedup_least < 0.005)
        weir__grid_add(&grid, "%.2f: the durations, added up, over the span", s->speedup_most);
    else
        weir__grid_add(&grid, "%.2f to %.2f: the durations, added up, over the span",
                       s->speedup_least, s->speedup_most);
    weir__grid_add(&grid, "bound");
    char device[32] = "";
    if (has_several_devices(report))
        snprintf(device, sizeof device, " of device %" PRIu32, s->bound_device);
    weir__grid_add(&grid, "%s, the busy time of engine %s%s; the span is %.2f times that",
                   weir__duration(time, (double)s->bound_ns), s->bound_engine, device,
                   s->bound_distance);
    weir__grid_add(&grid, "held up by");
    weir__grid_add(&grid,
                   "%s: of the critical path %.1f %% is work of the device, %.1f %% the host, "
                   "%.1f %% latency",
                   weir__verdict_name(s->verdict), 100 * s->device_share, 100 * s->host_share,
                   100 * s->latency_share);
    weir__grid_end(&grid, text);
}

static void add_overlap(const struct weir__pair *pair, const struct weir_report_overlap *overlap,
                        struct weir__grid *grid)
{
    char times[96];
    char shares[64];
    weir__grid_add(grid, "%s / %s", pair->first, pair->second);
    if (!overlap->applies) {
        weir__grid_add(grid, "n/a");
        weir__grid_add(grid, "n/a");
        return;
    }
    weir__grid_add(grid, "%s", show_times(times, overlap->both));
    weir__grid_add(grid, "%s", show_range(shares, overlap->least, overlap->most));
}

static void add_overlaps(const weir_report *report, struct weir__text *text)
{
    struct weir__grid grid = {.alignment = "lrr"};
    weir__text_add(text, "\noverlap\n");
    weir__grid_add(&grid, "A / B");
    weir__grid_add(&grid, "both ran");
    weir__grid_add(&grid, "of A");
    for (size_t i = 0; i < WEIR__PAIR_COUNT; i++) {
        struct weir_report_overlap overlap;
        if (weir_report_get_overlap(report, weir__pairs[i].first, weir__pairs[i].second,
                                    &overlap) != WEIR_OK) {
            text->failed = true;
            break;
        }
        if (overlap.first.most_ns > 0 && overlap.second.most_ns > 0)
            add_overlap(&weir__pairs[i], &overlap, &grid);
    }
    weir__grid_end(&grid, text);
}

static void add_table(const weir_report *report, weir_report_table table, struct weir__text *text)
{
    const struct weir__rows_of_table *rows = &report->tables[table];
    struct weir__grid grid = {.alignment = "lrrrrr"};
    char busy[96];
    char bytes[WEIR__DURATION_SIZE];
    char longest[WEIR__DURATION_SIZE];
    if (rows->count == 0)
        return;
    weir__text_add(text, "\n%s\n", weir__table_name(table));
    weir__grid_add(&grid, " ");
    weir__grid_add(&grid, "operations");
    weir__grid_add(&grid, "bytes");
    weir__grid_add(&grid, "longest");
    weir__grid_add(&grid, "busy");
    weir__grid_add(&grid, "of the span");
    for (size_t i = 0; i < rows->count && i < MOST_NAMES; i++) {
        const struct weir_report_row *row = &rows->rows[i];
        if (table <= WEIR_REPORT_ENGINES && has_several_devices(report))
            weir__grid_add(&grid, "%" PRIu32 ": %s", row->device, row->name);
        else
            weir__grid_add(&grid, "%s", row->name);
        weir__grid_add(&grid, "%" PRIu64, row->count);
        weir__grid_add(&grid, "%s", row->bytes ? show_bytes(bytes, row->bytes) : "");
        weir__grid_add(&grid, "%s", weir__duration(longest, (double)row->longest_ns));
        weir__grid_add(&grid, "%s", show_times(busy, row->busy));
        weir__grid_add(&grid, "%.1f %%", 100 * row->utilisation);
    }
    weir__grid_end(&grid, text);
    if (rows->count > MOST_NAMES)
        weir__text_add(text, "  and %zu more\n", rows->count - MOST_NAMES);
}

static void add_path(const weir_report *report, struct weir__text *text)
{
    const struct weir__rows_of_table *rows = &report->tables[WEIR_REPORT_PATH];
    struct weir__grid grid = {.alignment = "lrrr"};
    char time[WEIR__DURATION_SIZE];
    if (rows->count == 0)
        return;
    weir__text_add(text, "\ncritical path\n");
    for (size_t i = 0; i < rows->count && i < MOST_NAMES; i++) {
        const struct weir_report_row *row = &rows->rows[i];
        weir__grid_add(&grid, "%s", row->name);
        weir__grid_add(&grid, "%" PRIu64 " x", row->count);
        weir__grid_add(&grid, "%s", weir__duration(time, (double)row->busy.most_ns));
        weir__grid_add(&grid, "%.1f %%", 100 * row->utilisation);
    }
    weir__grid_end(&grid, text);
    if (rows->count > MOST_NAMES)
        weir__text_add(text, "  and %zu more\n", rows->count - MOST_NAMES);
}

static void add_bubbles(const weir_report *report, bool of_bound, struct weir__text *text)
{
    const struct weir__bubbles *bubbles = &report->bubbles[of_bound];
    struct weir__grid grid = {.alignment = "rrl"};
    for (size_t i = 0; i < bubbles->count && i < LONGEST; i++) {
        const struct weir_report_bubble *bubble = &bubbles->items[i];
        char length[WEIR__DURATION_SIZE];
        char at[WEIR__DURATION_SIZE];
        weir__grid_add(&grid, "%s",
                       weir__duration(length, (double)(bubble->end_ns - bubble->begin_ns)));
        weir__grid_add(&grid, "at %s",
                       weir__duration(at, (double)(bubble->begin_ns - report->origin_ns)));
        if (*bubble->file)
            weir__grid_add(&grid, "%s (%s:%d)", bubble->sentence, bubble->file, bubble->line);
        else
            weir__grid_add(&grid, "%s", bubble->sentence);
    }
    weir__grid_end(&grid, text);
}

static void add_all_bubbles(const weir_report *report, struct weir__text *text)
{
    const struct weir_report_summary *summary = &report->summary;
    char total[WEIR__DURATION_SIZE];
    if (summary->bubbles > 0) {
        weir__text_add(text, "\nbubbles: %" PRIu64 ", in which a device ran nothing, %s in all%s\n",
                       summary->bubbles, weir__duration(total, (double)summary->bubbles_ns),
                       summary->bubbles > LONGEST ? "; the longest" : "");
        add_bubbles(report, false, text);
    }
    if (report->bubbles[1].count > 0) {
        weir__text_add(text, "\nidle stretches of the bound, engine %s%s\n", summary->bound_engine,
                       report->bubbles[1].count > LONGEST ? "; the longest" : "");
        add_bubbles(report, true, text);
    }
}

char *weir_report_text(const weir_report *report)
{
    struct weir__text text = {0};
    if (!report)
        return NULL;
    add_head(report, &text);
    if (report->summary.span_ns == 0) {
        weir__text_add(&text, "no operation of a device took any time\n");
    } else {
        add_summary(report, &text);
        add_overlaps(report, &text);
        if (has_several_devices(report))
            add_table(report, WEIR_REPORT_DEVICES, &text);
        add_table(report, WEIR_REPORT_ENGINES, &text);
        add_table(report, WEIR_REPORT_QUEUES, &text);
        add_table(report, WEIR_REPORT_NAMES, &text);
        add_table(report, WEIR_REPORT_REGIONS, &text);
        add_path(report, &text);
        add_all_bubbles(report, &text);
    }
    if (!text.failed)
        return text.text;
    free(text.text);
    weir__report_fail(WEIR_ERROR_OUT_OF_MEMORY, "", "no memory for the report's text");
    return NULL;
}
