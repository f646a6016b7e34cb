// A report: the names that it groups by, the part of the trace that it is about, and its figures.
#include "report/report.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

// Sets of operations by name, and how much two of them overlap.

enum {
    COPIES = 1 << WEIR_ENGINE_TO_DEVICE | 1 << WEIR_ENGINE_TO_HOST | 1 << WEIR_ENGINE_ON_DEVICE
};

static const struct {
    const char *name;
    uint32_t engines;
} engine_sets[] = {
    {"copy", COPIES},
    {"compute", 1 << WEIR_ENGINE_KERNELS},
    {"kernels", 1 << WEIR_ENGINE_KERNELS},
    {"to_device", 1 << WEIR_ENGINE_TO_DEVICE},
    {"h2d", 1 << WEIR_ENGINE_TO_DEVICE},
    {"to_host", 1 << WEIR_ENGINE_TO_HOST},
    {"d2h", 1 << WEIR_ENGINE_TO_HOST},
    {"on_device", 1 << WEIR_ENGINE_ON_DEVICE},
    {"d2d", 1 << WEIR_ENGINE_ON_DEVICE},
    {"host", 1 << WEIR_ENGINE_HOST},
    {"communication", 1 << WEIR_ENGINE_COMMUNICATION},
    {"all", 0},
};

enum {
    SET_COUNT = sizeof engine_sets / sizeof *engine_sets
};

static const char how[] =
    "a set is copy, compute, to_device, to_host, on_device, communication, host, all, "
    "queue:LABEL, name:NAME or region:PATH";

static weir_status refuse(const char *text, const char *nearest)
{
    if (nearest)
        return weir__report_fail(WEIR_ERROR_INVALID, how,
                                 "there is no set of operations '%s'; did you mean '%s'?", text,
                                 nearest);
    return weir__report_fail(WEIR_ERROR_INVALID, how, "there is no set of operations '%s'", text);
}

// The rest of `text` after "PREFIX:", if a row of the table has that name.
static weir_status match(const weir_report *report, weir_report_table table, const char *text,
                         size_t prefix, const char **out_name)
{
    const char *nearest = NULL;
    for (size_t i = 0; i < report->tables[table].count; i++) {
        const char *name = report->tables[table].rows[i].row.name;
        nearest = weir_text_nearer(text + prefix, nearest, name);
        if (strcmp(name, text + prefix) == 0) {
            *out_name = name;
            return WEIR_OK;
        }
    }
    return refuse(text, nearest);
}

weir_status weir__set_parse(const weir_report *report, const char *text, struct weir__set *out_set)
{
    const char *nearest = NULL;
    *out_set = (struct weir__set){0};
    if (strncmp(text, "queue:", 6) == 0)
        return match(report, WEIR_REPORT_QUEUES, text, 6, &out_set->queue);
    if (strncmp(text, "name:", 5) == 0)
        return match(report, WEIR_REPORT_NAMES, text, 5, &out_set->name);
    if (strncmp(text, "region:", 7) == 0)
        return match(report, WEIR_REPORT_REGIONS, text, 7, &out_set->region);
    for (size_t i = 0; i < SET_COUNT; i++) {
        nearest = weir_text_nearer(text, nearest, engine_sets[i].name);
        if (strcmp(engine_sets[i].name, text) == 0) {
            out_set->engines = engine_sets[i].engines;
            return WEIR_OK;
        }
    }
    return refuse(text, nearest);
}

static bool weir__set_has(const weir_report *report, const struct weir__set *set,
                          const struct weir__run *run)
{
    const struct weir_trace_operation *operation = &report->trace->operations[run->operation];
    char text[512];
    if (set->engines)
        return (set->engines >> report->lanes[run->lane].engine & 1) &&
               (run->of_device || set->engines == 1 << WEIR_ENGINE_HOST);
    if (set->queue)
        return run->of_device &&
               strcmp(set->queue, weir__queue_name(&report->trace->queues[operation->queue_index],
                                                   text, sizeof text)) == 0;
    if (set->name)
        return strcmp(set->name, weir_trace_operation_title(operation, text, sizeof text)) == 0;
    if (set->region) {
        weir__region_family(operation->region, text, sizeof text);
        return strcmp(set->region, text) == 0;
    }
    return run->of_device;
}

struct weir_report_time weir__set_busy(const weir_report *report, const struct weir__set *set)
{
    struct weir__cover most = {0};
    struct weir__cover least = {0};
    for (size_t i = 0; i < report->run_count; i++) {
        const struct weir__run *run = &report->runs[i];
        if (weir__set_has(report, set, run))
            weir__cover_add(&most, run->begin, run->end);
        run = &report->runs[report->by_certain[i]];
        if (weir__set_has(report, set, run))
            weir__cover_add(&least, run->certain, run->end);
    }
    return (struct weir_report_time){least.covered, most.covered};
}

// Those of two sets, from their latest or their earliest starts.
static void list_members(const weir_report *report, const struct weir__set *first,
                         const struct weir__set *second, bool certain, struct weir__member *members)
{
    for (size_t i = 0; i < report->run_count; i++) {
        const struct weir__run *run = &report->runs[i];
        members[i] = (struct weir__member){
            .begin = certain ? run->certain : run->begin,
            .end = run->end,
            .first = weir__set_has(report, first, run),
            .second = weir__set_has(report, second, run),
        };
    }
}

static void explain(struct weir_report_overlap *overlap, const weir_report *report,
                    const char *first, const char *second)
{
    size_t used = 0;
    const char *empty = overlap->first.most_ns == 0    ? first
                        : overlap->second.most_ns == 0 ? second
                                                       : NULL;
    if (empty)
        weir_text_append(overlap->reason, sizeof overlap->reason, &used,
                         "no operation of '%s' took any time", empty);
    else if (*report->summary.serial_reason)
        weir_text_append(overlap->reason, sizeof overlap->reason, &used, "%s",
                         report->summary.serial_reason);
    overlap->applies = *overlap->reason == '\0';
}

static weir_status measure(const weir_report *report, const char *first, const char *second,
                           struct weir_report_overlap *overlap)
{
    struct weir__set sets[2];
    if (!report || !first || !second)
        return weir__report_fail(WEIR_ERROR_INVALID, "", "an overlap needs a report and two sets");
    weir_status status = weir__set_parse(report, first, &sets[0]);
    if (status == WEIR_OK)
        status = weir__set_parse(report, second, &sets[1]);
    if (status != WEIR_OK)
        return status;

    struct weir__member *members = malloc((report->run_count + 1) * sizeof *members);
    bool ok = members != NULL;
    if (ok) {
        list_members(report, &sets[0], &sets[1], false, members);
        ok = weir__intersection(members, report->run_count, &overlap->both.most_ns);
    }
    if (ok) {
        list_members(report, &sets[0], &sets[1], true, members);
        ok = weir__intersection(members, report->run_count, &overlap->both.least_ns);
    }
    free(members);
    if (!ok)
        return weir__report_fail(WEIR_ERROR_OUT_OF_MEMORY, "", "no memory for the overlap");
    overlap->first = weir__set_busy(report, &sets[0]);
    overlap->second = weir__set_busy(report, &sets[1]);
    explain(overlap, report, first, second);
    if (overlap->first.most_ns > 0)
        overlap->least = (double)overlap->both.least_ns / (double)overlap->first.most_ns;
    overlap->most = overlap->both.most_ns == 0 ? 0
                    : overlap->both.most_ns >= overlap->first.least_ns
                        ? 1
                        : (double)overlap->both.most_ns / (double)overlap->first.least_ns;
    return WEIR_OK;
}

weir_status weir_report_get_overlap_sized(const weir_report *report, const char *first,
                                          const char *second,
                                          struct weir_report_overlap *out_overlap, size_t size)
{
    struct weir_report_overlap overlap = {.applies = false};
    const weir_status status = measure(report, first, second, &overlap);
    weir_sized_write(out_overlap, size, &overlap, sizeof overlap);
    return status;
}

// The public functions: reading a trace, measuring it once, and handing out the
// figures.

weir_status weir__report_fail(weir_status status, const char *remedy, const char *format, ...)
{
    struct weir_error error = {.status = status};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error.message, sizeof error.message, format, arguments);
    va_end(arguments);
    snprintf(error.remedy, sizeof error.remedy, "%s", remedy);
    return weir_error_set(&error);
}

weir_status weir__report_make(struct weir_trace *trace, const struct weir_report_params *params,
                              weir_report **out_report)
{
    static const struct weir_report_params none = {.struct_size = sizeof none};
    weir_report *report = calloc(1, sizeof *report);
    *out_report = NULL;
    if (!report) {
        weir_trace_destroy(&trace);
        return weir__report_fail(WEIR_ERROR_OUT_OF_MEMORY, "", "no memory for a report");
    }
    report->trace = trace;
    report->params = params ? *params : none;
    const weir_status status = weir__measure(report);
    if (status == WEIR_OK) {
        *out_report = report;
        return WEIR_OK;
    }
    weir_report_destroy(&report);
    return status == WEIR_ERROR_OUT_OF_MEMORY
               ? weir__report_fail(status, "trace a shorter run, or report on a part of it",
                                   "no memory for a report")
               : status;
}

weir_status weir_report_read(const char *path, const struct weir_report_params *params,
                             weir_report **out_report)
{
    struct weir_trace *trace = NULL;
    struct weir_report_params known;
    struct weir_sized_refusal refusal;
    char message[512];
    if (!out_report)
        return weir__report_fail(WEIR_ERROR_INVALID, "", "there is no place for the report");
    *out_report = NULL;
    if (!path)
        return weir__report_fail(WEIR_ERROR_INVALID, "", "a report needs the path of a trace");
    if (params &&
        !weir_sized_read(__func__, "weir_report_params", params, &known, sizeof known, &refusal))
        return weir__report_fail(WEIR_ERROR_INVALID, refusal.remedy, "%s", refusal.message);
    params = params ? &known : NULL;
    if (params && params->to_ns > 0 && params->to_ns < params->from_ns)
        return weir__report_fail(WEIR_ERROR_INVALID, "", "the window ends before it begins");
    if (!weir_trace_read(path, NULL, &trace, message, sizeof message))
        return weir__report_fail(WEIR_ERROR_IO, "", "%s", message);
    return weir__report_make(trace, params, out_report);
}

void weir_report_destroy(weir_report **report)
{
    weir_report *it = report ? *report : NULL;
    if (!it)
        return;
    for (size_t i = 0; i < WEIR__TABLE_COUNT; i++)
        free(it->tables[i].rows);
    free(it->lanes);
    free(it->bubbles[0].items);
    free(it->bubbles[1].items);
    free(it->runs);
    free(it->run_of);
    free(it->by_certain);
    free(it->by_end);
    weir_names_destroy(it->names);
    weir_trace_destroy(&it->trace);
    free(it);
    *report = NULL;
}

const struct weir_report_summary *weir_report_get_summary(const weir_report *report)
{
    static const WEIR_SIZED_CELL(struct weir_report_summary, summary, WEIR_SIZED_ROOM)
        nothing = {.summary = {.bound_engine = "", .serial_reason = ""}};
    return report ? &report->summary : &nothing.summary;
}

static bool has_table(const weir_report *report, weir_report_table table)
{
    return report && table >= WEIR_REPORT_DEVICES && table <= WEIR_REPORT_PATH;
}

size_t weir_report_row_count(const weir_report *report, weir_report_table table)
{
    return has_table(report, table) ? report->tables[table].count : 0;
}

const struct weir_report_row *weir_report_get_row(const weir_report *report,
                                                  weir_report_table table, size_t index)
{
    return index < weir_report_row_count(report, table) ? &report->tables[table].rows[index].row
                                                        : NULL;
}

const struct weir_report_row *weir_report_find_row(const weir_report *report,
                                                   weir_report_table table, const char *name)
{
    for (size_t i = 0; name && i < weir_report_row_count(report, table); i++)
        if (strcmp(report->tables[table].rows[i].row.name, name) == 0)
            return &report->tables[table].rows[i].row;
    return NULL;
}

size_t weir_report_bubble_count(const weir_report *report, bool of_bound)
{
    return report ? report->bubbles[of_bound].count : 0;
}

const struct weir_report_bubble *weir_report_get_bubble(const weir_report *report, bool of_bound,
                                                        size_t index)
{
    return index < weir_report_bubble_count(report, of_bound)
               ? &report->bubbles[of_bound].items[index].bubble
               : NULL;
}

void weir_report_free_text(char **text)
{
    if (!text)
        return;
    free(*text);
    *text = NULL;
}
