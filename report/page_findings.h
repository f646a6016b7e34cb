// The part of the page with the findings of the plugin `check`.
#ifndef WEIR_REPORT_PAGE_FINDINGS_H
#define WEIR_REPORT_PAGE_FINDINGS_H

#include "report/findings.h"
#include "report/trace_out.h"

// Writes them as a JSON array.
void weir__page_findings(struct weir__out *out, const struct weir_findings *findings);

#endif
