// Shared by the parts of the reader: rows of the file are added to the trace, which is sorted at
// the end.
#ifndef WEIR_REPORT_TRACE_ROWS_H
#define WEIR_REPORT_TRACE_ROWS_H

#include <jansson.h>

#include "report/trace.h"

// A host's call of another program's trace, for its operations' submit times.
struct weir__call {
    uint64_t correlation;
    uint64_t thread;
    uint64_t begin_ns;
    uint64_t end_ns;
};

// Waits, spans of threads, threads and calls that are read for each operation that may be, all of
// them together.
#define WEIR__OTHERS_LIMIT 4

struct weir__rows {
    struct weir_trace *trace;
    const char *name;       // of the file, for messages
    size_t operation_limit; // and that of everything else: WEIR__OTHERS_LIMIT times as many
    bool own;               // written by Weir
    bool ended;             // the last row was seen
    uint64_t host;          // the pid of the host's rows
    size_t wait_count;      // of all operations
    struct weir__call *calls;
    size_t call_count;
    size_t call_capacity;
    char *message;
    size_t message_size;
};

// One value of the head. False if out of memory.
bool weir__rows_head(struct weir__rows *rows, const char *key, const json_t *value);

// Adds one event; those without a meaning here are ignored. False, with a message, if out of memory
// or beyond the limit.
bool weir__rows_event(struct weir__rows *rows, const json_t *event);

// Returns false with the message for memory that ran out.
bool weir__rows_no_memory(struct weir__rows *rows);

// Sorts the trace and connects its parts, after all rows were added. False if out of memory.
bool weir__rows_finish(struct weir__rows *rows);

#endif
