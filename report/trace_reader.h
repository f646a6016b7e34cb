// Shared by the files of the reader: rows that are added to the trace, which is sorted at the end, and the memory of all.
#ifndef WEIR_REPORT_TRACE_READER_H
#define WEIR_REPORT_TRACE_READER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/common.h>

#include "base/names.h"
#include "report/trace.h"

// trace_rows.c

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
    size_t wait_count;      // of all operations
    struct weir__call *calls;
    size_t call_count;
    char *message;
    size_t message_size;
};

// One value of the head, which may come after events.
void weir__rows_head(struct weir__rows *rows, const char *key, const json_t *value);

// Adds one event; those without a meaning here are ignored. False, with a message, if out of memory
// or beyond the limit.
bool weir__rows_event(struct weir__rows *rows, const json_t *event);

// Returns false with the message for memory that ran out.
bool weir__rows_no_memory(struct weir__rows *rows);

// Sorts the trace and connects its parts, after all rows were added. False if out of memory.
bool weir__rows_finish(struct weir__rows *rows);

// trace_storage.c: arrays that grow. All of them return NULL, or false, if out of memory, with the message.

// A new item of zeros at the end of an array of rows.
#define WEIR__ADD(rows, items, count) weir__rows_add(rows, &(items), &(count), sizeof *(items))
void *weir__rows_add(struct weir__rows *rows, void *array, size_t *count, size_t size);

// A new device.
struct weir_trace_device *weir__rows_device(struct weir__rows *rows, uint32_t index);

// Adds a sentence to the trace's notes.
bool weir__rows_note(struct weir__rows *rows, const char *format, ...) WEIR_PRINTF(2, 3);

#endif
