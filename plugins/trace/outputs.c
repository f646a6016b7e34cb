// The report and the page, at a link's close.
//
// The report's library sets errors through the public API, which a module does not link; the
// functions that it needs are defined here.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/report.h>

#include "base/file.h"
#include "base/text.h"
#include "base/thread_local.h"
#include "plugins/trace/parts.h"
#include "report/page.h"

void trace_paths_give_back(const struct trace *trace)
{
    weir_output_path_give_back(trace->path);
    weir_output_path_give_back(trace->report_path);
    weir_output_path_give_back(trace->html_path);
}

// The replacement of `stdin`; see BUILD for the reason.
extern FILE *const trace_no_stdin;
FILE *const trace_no_stdin = NULL;

// Errors of the report's library.

// Of the thread that reads a report.
static WEIR_MODULE_THREAD_LOCAL struct weir_error *last_error;

weir_status weir_error_set_sized(const struct weir_error *detail, size_t size)
{
    (void)size; // the report's library is of the same version
    const struct weir_error error = detail ? *detail : (struct weir_error){.status = WEIR_OK};
    if (last_error)
        *last_error = error;
    return error.status;
}

// The report and the page.

static bool write_report(const char *path, const weir_report *report, char *message, size_t size)
{
    char *text = weir_report_text(report);
    const bool written = text && weir_file_write(path, text, strlen(text), message, size);
    if (!text)
        snprintf(message, size, "%s: there is no memory for the report", path);
    weir_report_free_text(&text);
    return written;
}

static void fail(struct trace *trace, const char *message)
{
    if (!trace->failure[0])
        weir_text_escape(trace->failure, sizeof trace->failure, message, "");
}

static bool read_report(struct trace *trace, weir_report **out_report)
{
    struct weir_error error = {.status = WEIR_OK};
    last_error = &error;
    const bool read = weir_report_read(trace->path, NULL, out_report) >= 0;
    last_error = NULL;
    if (!read)
        fail(trace, error.message);
    return read;
}

void trace_outputs_write(struct trace *trace)
{
    weir_report *report = NULL;
    char message[1024];
    if ((!trace->report_path[0] && !trace->html_path[0]) || trace->write_failed)
        return;
    if (!read_report(trace, &report))
        return;
    if (trace->report_path[0] && !write_report(trace->report_path, report, message, sizeof message))
        fail(trace, message);
    if (trace->html_path[0] && !weir_page_write(trace->html_path, report, message, sizeof message))
        fail(trace, message);
    weir_report_destroy(&report);
}
