// The page: one self-contained HTML file that shows a trace and its report in a browser. Operations
// are in rows by engine and by queue, with the host's calls below.
#ifndef WEIR_REPORT_PAGE_H
#define WEIR_REPORT_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/report.h>

#include "report/findings.h"

// Writes the page of a report to `path`, atomically. `findings` of the plugin `check` are listed, and the operations of
// their lines marked; NULL: none.
//
// Errors: false, with one sentence in `message`.
bool weir_page_write(const char *path, const weir_report *report,
                     const struct weir_findings *findings, char *message, size_t message_size);

#endif
