// Shared by the files of the reader: rows that are added to the trace, which is sorted at the end, and the memory of all.
#ifndef WEIR_REPORT_TRACE_READER_H
#define WEIR_REPORT_TRACE_READER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/common.h>

#include "base/names.h"
#include "base/siphash.h"
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

// trace_storage.c: texts, each once, waits in blocks that never move, and arrays that grow.

#define WEIR__BLOCK_ALIGNMENT 16

struct weir__block {
    struct weir__block *next;
    size_t used;
    size_t size;
    _Alignas(WEIR__BLOCK_ALIGNMENT) char data[];
};

struct weir_trace_storage {
    struct weir__block *blocks;
    struct weir_names *texts;
    struct weir_siphash_key key; // of the table of queues
    bool has_key;
    // From a queue's id to its index: open addressing, 0 is free, else index + 1.
    uint32_t *queue_slots;
    size_t queue_slot_count;
    size_t device_capacity;
    size_t queue_capacity;
    size_t thread_capacity;
    size_t operation_capacity;
    size_t span_capacity;
    size_t note_capacity;
};

// All of them return NULL, or false, if out of memory.

// Memory that lives as long as the trace.
void *weir__trace_allocate(struct weir_trace_storage *storage, size_t size);

// The same text always has the same address. NULL is "".
const char *weir__trace_intern(struct weir_trace_storage *storage, const char *text);

// Returns the array `items`, which may have moved, with room for one more item than `count`. If out
// of memory `items` is not changed.
void *weir__trace_grow(void *items, size_t count, size_t *capacity, size_t item_size);

// The queue with that id, which is added if it is not known.
struct weir_trace_queue *weir__trace_queue(struct weir_trace *trace, uint64_t id, uint32_t device);

// Adds a sentence to the trace's notes.
bool weir__trace_note(struct weir_trace *trace, const char *format, ...) WEIR_PRINTF(2, 3);
#endif
