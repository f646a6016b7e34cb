// The form of trace files, for their writer, their reader and the page: names, the fields of each row, and JSON that is
// composed in memory.
#ifndef WEIR_REPORT_TRACE_FORMAT_H
#define WEIR_REPORT_TRACE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/table.h"
#include "report/trace.h"

// What the file has of a structure, member by member: the writer and the reader go by these tables.

enum weir__field_type {
    WEIR__END,    // of the table
    WEIR__TEXT,   // const char *
    WEIR__COUNT,  // uint64_t
    WEIR__SMALL,  // uint32_t
    WEIR__INT,    // int
    WEIR__BOOL,   // not of a list
    WEIR__REAL,   // double
    WEIR__TRIPLE, // uint32_t[3]
    // By their names.
    WEIR__KIND,
    WEIR__ENGINE,
    WEIR__MEMORY,
};

struct weir__field {
    size_t offset;
    enum weir__field_type type;
    const char *name; // NULL: of a list
    bool always;      // is there also if it is 0, false or ""
};

#define WEIR__ALWAYS(structure, member, type, name)          \
    {                                                        \
        offsetof(struct structure, member), type, name, true \
    }

// Of struct weir_trace_meta the head and the end; of struct weir_trace_device the row and the properties.
extern const struct weir__field weir__head_fields[], weir__end_fields[], weir__device_fields[],
    weir__property_fields[], weir__queue_fields[], weir__operation_fields[], weir__wait_fields[],
    weir__scalar_fields[], weir__collective_fields[];

// The name of a WEIR__KIND, a WEIR__ENGINE or a WEIR__MEMORY: "Device", "Pinned", "Pageable", "Managed", "Unknown".
const char *weir__trace_name(enum weir__field_type type, unsigned number);

// The names of rows that only Weir reads.
#define WEIR__TRACE_DEVICE_ROW "process_name"
#define WEIR__TRACE_QUEUE_ROW "thread_name"
#define WEIR__TRACE_END_ROW "weir_end"

// JSON.

// Text without any change.
void weir__out_raw(struct weir_long_text *out, const char *text);
// A JSON string with its quotes; NULL is "". Bytes that are not UTF-8 become '?'.
void weir__out_string(struct weir_long_text *out, const char *text);
// At most 2^63 - 1: JSON readers have no larger whole numbers.
void weir__out_uint(struct weir_long_text *out, uint64_t number);
void weir__out_int(struct weir_long_text *out, int64_t number);

// Members of an object: a comma, unless it is the first after the object's brace, then the name and the value.
void weir__out_key(struct weir_long_text *out, const char *name);
void weir__out_string_field(struct weir_long_text *out, const char *name, const char *text);
void weir__out_uint_field(struct weir_long_text *out, const char *name, uint64_t number);
void weir__out_us_field(struct weir_long_text *out, const char *name, uint64_t ns);
void weir__out_double_field(struct weir_long_text *out, const char *name, double number);

// Adds the fields to an object that is open, or makes a list of them.
void weir__out_fields(struct weir_long_text *out, const struct weir__field *fields,
                      const void *item);
void weir__out_list(struct weir_long_text *out, const struct weir__field *fields, const void *item);

#endif
