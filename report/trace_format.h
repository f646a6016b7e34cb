// What the writer and the reader of trace files have in common: names, and the fields of each row.
#ifndef WEIR_REPORT_TRACE_FORMAT_H
#define WEIR_REPORT_TRACE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "report/trace.h"

// What the file has of a structure, member by member: the writer and the reader go by these tables.

enum weir__field_type {
    WEIR__END,    // of the table
    WEIR__TEXT,   // const char *
    WEIR__COUNT,  // uint64_t
    WEIR__SMALL,  // uint32_t
    WEIR__INT,    // int
    WEIR__BOOL,   // a list has 0 or 1
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

// Of struct weir_trace_meta the head and the end; of struct weir_trace_device the row, and the clock as a list.
extern const struct weir__field weir__head_fields[], weir__end_fields[], weir__device_fields[],
    weir__property_fields[], weir__clock_fields[], weir__queue_fields[], weir__operation_fields[],
    weir__wait_fields[], weir__scalar_fields[], weir__collective_fields[];

// The name of a WEIR__KIND, a WEIR__ENGINE or a WEIR__MEMORY: "Device", "Pinned", "Pageable", "Managed", "Unknown".
const char *weir__trace_name(enum weir__field_type type, unsigned number);

// The names of rows that only Weir reads.
#define WEIR__TRACE_DEVICE_ROW "process_name"
#define WEIR__TRACE_QUEUE_ROW "thread_name"
#define WEIR__TRACE_END_ROW "weir_end"

#endif
