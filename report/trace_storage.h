// The storage of the reader: texts, each once, waits in blocks that never move, and arrays that grow.
#ifndef WEIR_REPORT_TRACE_STORAGE_H
#define WEIR_REPORT_TRACE_STORAGE_H

#include <weir/common.h>

#include "base/names.h"
#include "base/siphash.h"
#include "report/trace.h"

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

// The queue with that id, or NULL.
struct weir_trace_queue *weir__trace_queue(const struct weir_trace *trace, uint64_t id);

// Adds a queue that is not there yet.
struct weir_trace_queue *weir__trace_add_queue(struct weir_trace *trace, uint64_t id);

// Adds a sentence to the trace's notes.
bool weir__trace_note(struct weir_trace *trace, const char *format, ...) WEIR_PRINTF(2, 3);

void weir__trace_storage_finish(struct weir_trace_storage *storage);

#endif
