// JSON that is composed in memory: the lines of a trace, and what a page has of it.
#ifndef WEIR_REPORT_TRACE_OUT_H
#define WEIR_REPORT_TRACE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/table.h"
#include "report/trace_format.h"

// Zeroed at first. Setting `used` of the text to 0 removes it.
struct weir__out {
    struct weir_long_text text;
    char reason[192]; // of the first failure; "": there is none, or no memory
};

// Notes a failure, and removes the text; the first one is kept.
void weir__out_fail(struct weir__out *out, const char *reason);
// Why `failed` of the text is set.
const char *weir__out_reason(const struct weir__out *out);

// Text without any change.
void weir__out_raw(struct weir__out *out, const char *text);
// A JSON string with its quotes; NULL is "". Bytes that are not UTF-8 become '?'.
void weir__out_string(struct weir__out *out, const char *text);
// At most 2^63 - 1: JSON readers have no larger whole numbers.
void weir__out_uint(struct weir__out *out, uint64_t number);
void weir__out_int(struct weir__out *out, int64_t number);
void weir__out_double(struct weir__out *out, double number);

// Members of an object: a comma, unless it is the first after the object's brace, then the name and the value.
void weir__out_key(struct weir__out *out, const char *name);
void weir__out_string_field(struct weir__out *out, const char *name, const char *text);
void weir__out_uint_field(struct weir__out *out, const char *name, uint64_t number);
void weir__out_us_field(struct weir__out *out, const char *name, uint64_t ns);
void weir__out_double_field(struct weir__out *out, const char *name, double number);

// Adds the fields to an object that is open, or makes a list of them.
void weir__out_fields(struct weir__out *out, const struct weir__field *fields, const void *item);
void weir__out_list(struct weir__out *out, const struct weir__field *fields, const void *item);

#endif
