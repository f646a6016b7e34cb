// A row of a trace, without the end of its line.
#ifndef WEIR_REPORT_TRACE_ROW_H
#define WEIR_REPORT_TRACE_ROW_H

#include "report/trace.h"
#include "report/trace_out.h"

// {"ph": …, "name": …, "pid": …, "tid": …
void weir__row_begin(struct weir__out *out, const char *phase, const char *name, uint64_t pid,
                     uint64_t tid);
// A field, which is left out if it is empty, or 0.
void weir__row_text(struct weir__out *out, const char *name, const char *text);
void weir__row_count(struct weir__out *out, const char *name, uint64_t number);
// All fields of an operation.
void weir__row_operation(struct weir__out *out, const struct weir_trace_operation *operation,
                         uint32_t device, uint64_t correlation);
// The function that submitted an operation of that kind.
const char *weir__row_call_name(enum weir_trace_kind kind);

#endif
