// Marks in a trace file: operations of lines that the plugin `check` has found, for viewers of traces.
#ifndef WEIR_REPORT_MARK_H
#define WEIR_REPORT_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/findings.h"

#ifdef __cplusplus
extern "C" {
#endif

// Writes the trace anew, to a file that is complete or not there at all. Each operation whose line is
// in a finding that is no hint and not suppressed gets the arguments `weir.finding` and
// `weir.remedy`, and an instant event of the finding's kind, of category `weir_check`. `output` may be the trace. A name
// that ends in .gz is compressed.
//
// Errors: false, with a sentence in `message`, also for a trace of another program. `*out_marked` is how many operations
// were marked that had no mark.
bool weir_trace_mark(const char *trace, const struct weir_findings *findings, const char *output,
                     uint64_t *out_marked, char *message, size_t message_size);

#ifdef __cplusplus
}
#endif

#endif
