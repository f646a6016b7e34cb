// The report as JSON. json_dumps loses bytes silently when it runs out of memory on the
// way, so the text is measured first.
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/c_locale.h"
#include "base/text.h"
#include "report/report.h"
#include "report/report_parts.h"

#define FLAGS (JSON_INDENT(1) | JSON_REAL_PRECISION(9))

static void set(json_t *object, const char *key, json_t *value, bool *ok)
{
    if (json_object_set_new(object, key, value) != 0)
        *ok = false;
}

static void append(json_t *array, json_t *value, bool *ok)
{
    if (json_array_append_new(array, value) != 0)
        *ok = false;
}

static void set_count(json_t *object, const char *key, uint64_t number, bool *ok)
{
    set(object, key, json_integer((json_int_t)(number > INT64_MAX ? INT64_MAX : number)), ok);
}

// The reader's texts are UTF-8, but a sentence may have been cut within a character.
static void set_text(json_t *object, const char *key, const char *text, bool *ok)
{
    const size_t size = strlen(text);
    size_t length = 0;
    size_t next;
    while (length < size && (next = weir_text_character(text + length, size - length)) > 0)
        length += next;
    set(object, key, json_stringn(text, length), ok);
}

static json_t *time_of(struct weir_report_time time, bool *ok)
{
    json_t *object = json_object();
    set_count(object, "least_ns", time.least_ns, ok);
    set_count(object, "most_ns", time.most_ns, ok);
    return object;
}

static void set_meta(json_t *root, const weir_report *report, bool *ok)
{
    const struct weir_trace *trace = report->trace;
    json_t *notes = json_array();
    json_t *devices = json_array();
    set_text(root, "program", trace->meta.program, ok);
    set_text(root, "backend", trace->meta.backend, ok);
    set_text(root, "source", trace->meta.source, ok);
    for (size_t i = 0; i < trace->device_count; i++)
        append(devices, json_string(trace->devices[i].name), ok);
    set(root, "device_names", devices, ok);
    for (size_t i = 0; i < trace->note_count; i++)
        append(notes, json_string(trace->notes[i]), ok);
    set(root, "notes", notes, ok);
}

static void set_summary(json_t *root, const struct weir_report_summary *s, bool *ok)
{
    set_count(root, "operations", s->operations, ok);
    set_count(root, "untimed", s->untimed, ok);
    set_count(root, "dropped", s->dropped, ok);
    set(root, "truncated", json_boolean(s->truncated), ok);
    set(root, "exact", json_boolean(s->exact), ok);
    set_count(root, "begin_ns", s->begin_ns, ok);
    set_count(root, "end_ns", s->end_ns, ok);
    set_count(root, "span_ns", s->span_ns, ok);
    set_count(root, "idle_ns", s->idle_ns, ok);
    set_count(root, "compute_ns", s->compute_ns, ok);
    set_count(root, "non_compute_ns", s->non_compute_ns, ok);
    const bool serial = *s->serial_reason != '\0';
    set(root, "speedup_least", serial ? json_null() : json_real(s->speedup_least), ok);
    set(root, "speedup_most", serial ? json_null() : json_real(s->speedup_most), ok);
    set_count(root, "bound_ns", s->bound_ns, ok);
    set_count(root, "bound_device", s->bound_device, ok);
    set_text(root, "bound_engine", s->bound_engine, ok);
    set(root, "bound_distance", json_real(s->bound_distance), ok);
    set_text(root, "serial_reason", s->serial_reason, ok);
    set_count(root, "bubble_count", s->bubbles, ok);
    set_count(root, "bubbles_ns", s->bubbles_ns, ok);
    set_count(root, "longest_bubble_ns", s->longest_bubble_ns, ok);
    set(root, "device_share", json_real(s->device_share), ok);
    set(root, "host_share", json_real(s->host_share), ok);
    set(root, "latency_share", json_real(s->latency_share), ok);
    set_text(root, "verdict", weir__verdict_name(s->verdict), ok);
}

static json_t *overlap_of(const struct weir__pair *pair, const struct weir_report_overlap *overlap,
                          bool *ok)
{
    json_t *object = json_object();
    set_text(object, "first", pair->first, ok);
    set_text(object, "second", pair->second, ok);
    set(object, "both", time_of(overlap->both, ok), ok);
    set(object, "least", overlap->applies ? json_real(overlap->least) : json_null(), ok);
    set(object, "most", overlap->applies ? json_real(overlap->most) : json_null(), ok);
    set_text(object, "reason", overlap->reason, ok);
    return object;
}

static void set_overlaps(json_t *root, const weir_report *report, bool *ok)
{
    json_t *list = json_array();
    for (size_t i = 0; i < WEIR__PAIR_COUNT; i++) {
        struct weir_report_overlap overlap;
        if (weir_report_get_overlap(report, weir__pairs[i].first, weir__pairs[i].second,
                                    &overlap) == WEIR_OK)
            append(list, overlap_of(&weir__pairs[i], &overlap, ok), ok);
        else
            *ok = false;
    }
    set(root, "overlaps", list, ok);
}

static json_t *row_of(const struct weir_report_row *row, weir_report_table table, bool *ok)
{
    json_t *object = json_object();
    set_text(object, "name", row->name, ok);
    if (table == WEIR_REPORT_DEVICES || table == WEIR_REPORT_QUEUES || table == WEIR_REPORT_ENGINES)
        set_count(object, "device", row->device, ok);
    if (table == WEIR_REPORT_QUEUES)
        set_count(object, "queue", row->queue, ok);
    set_count(object, "count", row->count, ok);
    set_count(object, "bytes", row->bytes, ok);
    set(object, "sum", time_of(row->sum, ok), ok);
    set(object, "busy", time_of(row->busy, ok), ok);
    set_count(object, "longest_ns", row->longest_ns, ok);
    set(object, "utilisation", json_real(row->utilisation), ok);
    return object;
}

static void set_tables(json_t *root, const weir_report *report, bool *ok)
{
    for (int table = WEIR_REPORT_DEVICES; table <= WEIR_REPORT_PATH; table++) {
        json_t *list = json_array();
        for (size_t i = 0; i < report->tables[table].count; i++)
            append(list, row_of(&report->tables[table].rows[i], (weir_report_table)table, ok), ok);
        set(root, weir__table_name((weir_report_table)table), list, ok);
    }
}

static json_t *bubble_of(const struct weir_report_bubble *bubble, bool *ok)
{
    json_t *object = json_object();
    set_count(object, "begin_ns", bubble->begin_ns, ok);
    set_count(object, "end_ns", bubble->end_ns, ok);
    set_count(object, "device", bubble->device, ok);
    set_text(object, "engine", bubble->engine, ok);
    set_text(object, "cause", weir__cause_name(bubble->cause), ok);
    set_text(object, "sentence", bubble->sentence, ok);
    set_text(object, "file", bubble->file, ok);
    set(object, "line", json_integer(bubble->line), ok);
    return object;
}

static void set_bubbles(json_t *root, const weir_report *report, bool of_bound, bool *ok)
{
    json_t *list = json_array();
    for (size_t i = 0; i < report->bubbles[of_bound].count; i++)
        append(list, bubble_of(&report->bubbles[of_bound].items[i], ok), ok);
    set(root, of_bound ? "bound_bubbles" : "bubbles", list, ok);
}

static char *dump_in_locale(const json_t *root)
{
    const size_t size = json_dumpb(root, NULL, 0, FLAGS);
    char *text = size > 0 ? malloc(size + 2) : NULL;
    if (!text)
        return NULL;
    if (json_dumpb(root, text, size, FLAGS) != size) {
        free(text);
        return NULL;
    }
    memcpy(text + size, "\n", 2);
    return text;
}

// jansson writes numbers in the thread's locale and then corrects the decimal point.
static char *dump(const json_t *root)
{
    const locale_t before = weir_c_locale_enter();
    char *text = dump_in_locale(root);
    weir_c_locale_leave(before);
    return text;
}

char *weir_report_json(const weir_report *report)
{
    bool ok = true;
    if (!report)
        return NULL;
    json_t *root = json_object();
    set_meta(root, report, &ok);
    set_summary(root, &report->summary, &ok);
    set_overlaps(root, report, &ok);
    set_tables(root, report, &ok);
    set_bubbles(root, report, false, &ok);
    set_bubbles(root, report, true, &ok);
    char *text = ok && root ? dump(root) : NULL;
    json_decref(root);
    if (!text)
        weir__report_fail(WEIR_ERROR_OUT_OF_MEMORY, "", "no memory for the report's text");
    return text;
}
