// The part of the page with the report.
#ifndef WEIR_REPORT_PAGE_REPORT_H
#define WEIR_REPORT_PAGE_REPORT_H

#include "report/findings.h"
#include "report/report.h"
#include "report/trace_out.h"

// Writes it as a JSON object. `findings` may be NULL: none were asked for.
void weir__page_report(struct weir__out *out, const weir_report *report,
                       const struct weir_findings *findings);

#endif
