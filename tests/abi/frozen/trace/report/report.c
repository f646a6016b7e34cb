// The public functions: reading a trace, measuring it once, and handing out the
// figures.
#include "tests/abi/frozen/trace/report/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/abi/frozen/trace/base/text.h"
#include "tests/abi/frozen/trace/report/names.h"

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

const char *weir__report_keep(weir_report *report, const char *text)
{
    const size_t number = weir__names_number(report->names, text);
    return number == SIZE_MAX ? NULL : weir__names_text(report->names, number);
}

static weir_status check_window(const weir_report *report)
{
    const struct weir_report_params *params = &report->params;
    if (report->run_count > 0 || (params->from_ns == 0 && params->to_ns == 0))
        return WEIR_OK;
    char end[WEIR_TEXT_QUANTITY_SIZE];
    return weir__report_fail(WEIR_ERROR_INVALID, "choose a window inside it",
                             "no operation ran in the window that was asked for; the trace is %s "
                             "long",
                             weir_text_duration(end, (double)report->trace->meta.end_ns));
}

static bool make_cells(weir_report *report)
{
    for (size_t i = 0; i < WEIR__TABLE_COUNT; i++) {
        struct weir__rows_of_table *table = &report->tables[i];
        table->cells = calloc(table->count + 1, sizeof *table->cells);
        for (size_t k = 0; table->cells && k < table->count; k++)
            table->cells[k].row = table->rows[k];
        if (!table->cells)
            return false;
    }
    for (size_t i = 0; i < 2; i++) {
        struct weir__bubbles *bubbles = &report->bubbles[i];
        bubbles->cells = calloc(bubbles->count + 1, sizeof *bubbles->cells);
        for (size_t k = 0; bubbles->cells && k < bubbles->count; k++)
            bubbles->cells[k].bubble = bubbles->items[k];
        if (!bubbles->cells)
            return false;
    }
    return true;
}

static weir_status measure(weir_report *report)
{
    report->names = weir__names_create();
    if (!report->names || !weir__measure_runs(report))
        return WEIR_ERROR_OUT_OF_MEMORY;
    const weir_status status = check_window(report);
    if (status != WEIR_OK)
        return status;
    const bool ok = weir__measure_tables(report) && weir__measure_summary(report) &&
                    weir__measure_bubbles(report) && weir__measure_path(report) &&
                    make_cells(report);
    return ok ? WEIR_OK : WEIR_ERROR_OUT_OF_MEMORY;
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
    const weir_status status = measure(report);
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
    for (size_t i = 0; i < WEIR__TABLE_COUNT; i++) {
        free(it->tables[i].rows);
        free(it->tables[i].cells);
    }
    for (size_t i = 0; i < it->lane_count; i++)
        free(it->lanes[i].by_end);
    free(it->lanes);
    free(it->bubbles[0].items);
    free(it->bubbles[1].items);
    free(it->bubbles[0].cells);
    free(it->bubbles[1].cells);
    free(it->runs);
    free(it->run_of);
    free(it->by_certain);
    free(it->by_end);
    weir__names_destroy(it->names);
    weir_trace_destroy(&it->trace);
    free(it);
    *report = NULL;
}

const struct weir_trace *weir__report_trace(const weir_report *report)
{
    return report->trace;
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
    return index < weir_report_row_count(report, table) ? &report->tables[table].cells[index].row
                                                        : NULL;
}

const struct weir_report_row *weir_report_find_row(const weir_report *report,
                                                   weir_report_table table, const char *name)
{
    for (size_t i = 0; name && i < weir_report_row_count(report, table); i++)
        if (strcmp(report->tables[table].rows[i].name, name) == 0)
            return &report->tables[table].cells[i].row;
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
               ? &report->bubbles[of_bound].cells[index].bubble
               : NULL;
}

void weir_report_free_text(char **text)
{
    if (!text)
        return;
    free(*text);
    *text = NULL;
}
