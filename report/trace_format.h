// The form of the files of traces and findings, for their writers, their readers and the page: names, the fields of
// each structure, and JSON that is composed in memory.
#ifndef WEIR_REPORT_TRACE_FORMAT_H
#define WEIR_REPORT_TRACE_FORMAT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/names.h"
#include "base/table.h"
#include "report/trace.h"

// What a file has of a structure, member by member: the writer and the reader go by these tables. One whose fields have
// no names is a list in the file, else an object.

enum weir__field_type {
    WEIR__END,    // of the table
    WEIR__TEXT,   // const char *
    WEIR__REASON, // const char *, or NULL, which is null in the file
    WEIR__COUNT,  // uint64_t
    WEIR__NUMBER, // uint64_t, or WEIR_NO_NUMBER, which is null in the file
    WEIR__SMALL,  // uint32_t
    WEIR__INT,    // int
    WEIR__BOOL,   // not of a list
    WEIR__REAL,   // double
    WEIR__ITEM,   // a structure with fields of its own
    WEIR__HINT,   // whether a weir_check_kind is that of a hint; it is not read
    // By their names.
    WEIR__KIND,
    WEIR__ENGINE,
    WEIR__MEMORY,
    WEIR__FINDING, // weir_check_kind
    WEIR__ACCESS,  // weir_access
};

struct weir__field {
    size_t offset;
    enum weir__field_type type;
    const char *name;              // NULL: of a list
    bool always;                   // is there also if it is 0, false or ""
    const struct weir__field *own; // of an ITEM
};

#define WEIR__ALWAYS(structure, member, type, name)                \
    {                                                              \
        offsetof(struct structure, member), type, name, true, NULL \
    }
#define WEIR__UNLESS_0(structure, member, type, name)               \
    {                                                               \
        offsetof(struct structure, member), type, name, false, NULL \
    }

// Of struct weir_trace_meta the head and the end; of struct weir_trace_device the row and the properties.
extern const struct weir__field weir__head_fields[], weir__end_fields[], weir__device_fields[],
    weir__property_fields[], weir__queue_fields[], weir__operation_fields[], weir__wait_fields[],
    weir__scalar_fields[], weir__collective_fields[];

// The number that goes by such a name; 0 for a name that is none.
unsigned weir__named(enum weir__field_type type, const char *name, size_t length);

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

// Members of an object: a comma, unless it is the first after the object's brace, then the name and the value.
void weir__out_key(struct weir_long_text *out, const char *name);
void weir__out_string_field(struct weir_long_text *out, const char *name, const char *text);
void weir__out_uint_field(struct weir_long_text *out, const char *name, uint64_t number);
void weir__out_us_field(struct weir_long_text *out, const char *name, uint64_t ns);
void weir__out_double_field(struct weir_long_text *out, const char *name, double number);

// Adds the fields to an object or a list that is open.
void weir__out_fields(struct weir_long_text *out, const struct weir__field *fields,
                      const void *item);
void weir__out_item(struct weir_long_text *out, const struct weir__field *fields, const void *item);
// A member that is the list of all items, which may be many.
void weir__out_items(struct weir_long_text *out, const char *name, const struct weir__field *fields,
                     const void *items, size_t count, size_t size);

// Values. What is none of its type is 0, or "". Texts are the value's own, or with `texts` kept there, or "" where memory
// runs out.

uint64_t weir__in_count(const json_t *value);
void weir__in_value(const struct weir__field *field, const json_t *value, struct weir_names *texts,
                    void *out);
// Of an object or a list; without one all are 0 or "".
void weir__in_fields(const struct weir__field *fields, const json_t *value,
                     struct weir_names *texts, void *item);

#endif
