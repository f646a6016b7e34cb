// The memory of a trace that is read, and what completes it.
#include "report/trace_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_SIZE = 1 << 18,
    QUEUE_LIMIT = 1 << 24
};

void *weir__trace_allocate(struct weir_trace_storage *storage, size_t size)
{
    struct weir__block *block = storage->blocks;
    size = (size + WEIR__BLOCK_ALIGNMENT - 1) / WEIR__BLOCK_ALIGNMENT * WEIR__BLOCK_ALIGNMENT;
    if (!block || size > block->size - block->used) {
        const size_t wanted = size > BLOCK_SIZE ? size : BLOCK_SIZE;
        block = malloc(sizeof *block + wanted);
        if (!block)
            return NULL;
        *block = (struct weir__block){.next = storage->blocks, .size = wanted};
        storage->blocks = block;
    }
    void *data = block->data + block->used;
    block->used += size;
    return data;
}

// The key is made at the first use. It is secret, so no file can be made whose queues all meet in one slot.
static const struct weir_siphash_key *key_of(struct weir_trace_storage *storage)
{
    if (!storage->has_key)
        (void)weir_siphash_random_key(&storage->key);
    storage->has_key = true;
    return &storage->key;
}

const char *weir__trace_intern(struct weir_trace_storage *storage, const char *text)
{
    return text && *text ? weir_names_keep(storage->texts, text) : "";
}

void *weir__trace_grow(void *items, size_t count, size_t *capacity, size_t item_size)
{
    if (count < *capacity)
        return items;
    const size_t wanted = *capacity ? *capacity + *capacity / 2 : 64;
    void *grown = wanted <= SIZE_MAX / item_size ? realloc(items, wanted * item_size) : NULL;
    if (grown)
        *capacity = wanted;
    return grown;
}

static size_t queue_slot(const struct weir_trace *trace, uint64_t id)
{
    struct weir_trace_storage *storage = trace->storage;
    const size_t mask = storage->queue_slot_count - 1;
    size_t at = (size_t)weir_siphash(key_of(storage), &id, sizeof id) & mask;
    while (storage->queue_slots[at] > 0 && trace->queues[storage->queue_slots[at] - 1].id != id)
        at = (at + 1) & mask;
    return at;
}

static struct weir_trace_queue *find_queue(const struct weir_trace *trace, uint64_t id)
{
    if (trace->storage->queue_slot_count == 0)
        return NULL;
    const uint32_t index = trace->storage->queue_slots[queue_slot(trace, id)];
    return index > 0 ? &trace->queues[index - 1] : NULL;
}

// Fills the table of ids after the queues were sorted.
static void index_queues(struct weir_trace *trace)
{
    struct weir_trace_storage *storage = trace->storage;
    if (storage->queue_slot_count == 0)
        return;
    memset(storage->queue_slots, 0, storage->queue_slot_count * sizeof *storage->queue_slots);
    for (size_t i = 0; i < trace->queue_count; i++)
        storage->queue_slots[queue_slot(trace, trace->queues[i].id)] = (uint32_t)i + 1;
}

static bool widen_queues(struct weir_trace *trace)
{
    struct weir_trace_storage *storage = trace->storage;
    const size_t count = storage->queue_slot_count ? 2 * storage->queue_slot_count : 64;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (!slots)
        return false;
    free(storage->queue_slots);
    storage->queue_slots = slots;
    storage->queue_slot_count = count;
    index_queues(trace);
    return true;
}

struct weir_trace_queue *weir__trace_queue(struct weir_trace *trace, uint64_t id, uint32_t device)
{
    struct weir_trace_storage *storage = trace->storage;
    struct weir_trace_queue *known = find_queue(trace, id);
    if (known)
        return known;
    if (trace->queue_count >= QUEUE_LIMIT)
        return NULL;
    if (2 * trace->queue_count >= storage->queue_slot_count && !widen_queues(trace))
        return NULL;
    struct weir_trace_queue *queues =
        weir__trace_grow(trace->queues, trace->queue_count, &storage->queue_capacity,
                         sizeof *trace->queues);
    if (!queues)
        return NULL;
    trace->queues = queues;
    struct weir_trace_queue *queue = &queues[trace->queue_count++];
    *queue = (struct weir_trace_queue){.id = id, .device = device, .label = "", .backend = ""};
    storage->queue_slots[queue_slot(trace, id)] = (uint32_t)trace->queue_count;
    return queue;
}

bool weir__trace_note(struct weir_trace *trace, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *note = weir__trace_intern(trace->storage, text);
    const char **notes = weir__trace_grow(trace->notes, trace->note_count,
                                          &trace->storage->note_capacity, sizeof *notes);
    if (notes)
        trace->notes = notes;
    if (!note || !notes)
        return false;
    notes[trace->note_count++] = note;
    return true;
}

// Sorts the rows that were read: queues by device, operations by queue, and each wait with the
// operation that it refers to.

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_index(const void *a, const void *b)
{
    const struct weir_trace_device *x = a;
    const struct weir_trace_device *y = b;
    return compare(x->index, y->index);
}

static int by_device(const void *a, const void *b)
{
    const struct weir_trace_queue *x = a;
    const struct weir_trace_queue *y = b;
    return x->device != y->device ? compare(x->device, y->device) : compare(x->id, y->id);
}

static int by_queue(const void *a, const void *b)
{
    const struct weir_trace_operation *x = a;
    const struct weir_trace_operation *y = b;
    if (x->queue_index != y->queue_index)
        return compare(x->queue_index, y->queue_index);
    if (x->sequence != y->sequence)
        return compare(x->sequence, y->sequence);
    return x->node != y->node ? compare(x->node, y->node) : compare(x->start_ns, y->start_ns);
}

static int by_start(const void *a, const void *b)
{
    const struct weir_trace_operation *x = a;
    const struct weir_trace_operation *y = b;
    if (x->queue_index != y->queue_index)
        return compare(x->queue_index, y->queue_index);
    return x->start_ns != y->start_ns ? compare(x->start_ns, y->start_ns)
                                      : compare(x->end_ns, y->end_ns);
}

static int by_thread(const void *a, const void *b)
{
    const struct weir_trace_span *x = a;
    const struct weir_trace_span *y = b;
    if (x->thread != y->thread)
        return compare(x->thread, y->thread);
    // Of regions that begin together the outer one is the longer.
    return x->begin_ns != y->begin_ns ? compare(x->begin_ns, y->begin_ns)
                                      : compare(y->end_ns, x->end_ns);
}

static int by_correlation(const void *a, const void *b)
{
    const struct weir__call *x = a;
    const struct weir__call *y = b;
    return compare(x->correlation, y->correlation);
}

static void sort(void *items, size_t count, size_t size, int (*order)(const void *, const void *))
{
    if (count > 1)
        qsort(items, count, size, order);
}

// Adds the devices of queues that no row named. Queues are already in order.
static bool complete_devices(struct weir_trace *trace)
{
    const size_t named = trace->device_count;
    sort(trace->devices, named, sizeof *trace->devices, by_index);
    for (size_t i = 0; i < trace->queue_count; i++) {
        const struct weir_trace_device wanted = {.index = trace->queues[i].device,
                                                 .name = "",
                                                 .platform = "",
                                                 .driver = "",
                                                 .label = ""};
        if (i > 0 && trace->queues[i - 1].device == wanted.index)
            continue;
        if (named > 0 && bsearch(&wanted, trace->devices, named, sizeof *trace->devices, by_index))
            continue;
        struct weir_trace_device *devices =
            weir__trace_grow(trace->devices, trace->device_count, &trace->storage->device_capacity,
                             sizeof *devices);
        if (!devices)
            return false;
        trace->devices = devices;
        devices[trace->device_count++] = wanted;
    }
    sort(trace->devices, trace->device_count, sizeof *trace->devices, by_index);
    return true;
}

static void find_queues(struct weir_trace *trace)
{
    index_queues(trace);
    for (size_t i = 0; i < trace->operation_count; i++) {
        struct weir_trace_operation *operation = &trace->operations[i];
        const struct weir_trace_queue *queue = find_queue(trace, operation->queue);
        operation->queue_index = (uint32_t)(queue - trace->queues);
    }
}

// Other programs' traces.

static void join_calls(struct weir__rows *rows)
{
    struct weir_trace *trace = rows->trace;
    sort(rows->calls, rows->call_count, sizeof *rows->calls, by_correlation);
    for (size_t i = 0; i < trace->operation_count && rows->call_count > 0; i++) {
        struct weir_trace_operation *operation = &trace->operations[i];
        const struct weir__call wanted = {.correlation = operation->sequence};
        const struct weir__call *call =
            bsearch(&wanted, rows->calls, rows->call_count, sizeof *rows->calls, by_correlation);
        if (!call)
            continue;
        operation->thread = call->thread;
        operation->submit_ns = call->begin_ns;
        operation->submit_end_ns = call->end_ns;
    }
}

// Their time 0 may be the start of the machine, or 1970.
static void move_to_zero(struct weir_trace *trace)
{
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < trace->operation_count; i++) {
        const struct weir_trace_operation *operation = &trace->operations[i];
        if (operation->start_ns < first)
            first = operation->start_ns;
        if (operation->submit_end_ns > 0 && operation->submit_ns < first)
            first = operation->submit_ns;
    }
    for (size_t i = 0; i < trace->operation_count; i++) {
        struct weir_trace_operation *operation = &trace->operations[i];
        operation->start_ns -= first;
        operation->end_ns -= first;
        if (operation->submit_end_ns > 0) {
            operation->submit_ns -= first;
            operation->submit_end_ns -= first;
        }
    }
    if (trace->operation_count > 0)
        trace->meta.base_unix_ns += first;
}

// They lack the order of submission, so the order of starts is used.
static void number_by_start(struct weir_trace *trace)
{
    sort(trace->operations, trace->operation_count, sizeof *trace->operations, by_start);
    for (size_t i = 0; i < trace->operation_count; i++) {
        const bool first =
            i == 0 || trace->operations[i - 1].queue_index != trace->operations[i].queue_index;
        trace->operations[i].sequence = first ? 1 : trace->operations[i - 1].sequence + 1;
    }
}

// All traces.

static void find_ranges(struct weir_trace *trace)
{
    for (size_t i = 0; i < trace->operation_count; i++) {
        struct weir_trace_queue *queue = &trace->queues[trace->operations[i].queue_index];
        if (queue->operation_count++ == 0)
            queue->first_operation = i;
    }
}

// The last operation of the queue up to `sequence`.
static size_t last_up_to(const struct weir_trace *trace, const struct weir_trace_queue *queue,
                         uint64_t sequence)
{
    size_t low = queue->first_operation;
    size_t high = low + queue->operation_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (trace->operations[middle].sequence <= sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return low > queue->first_operation ? low - 1 : WEIR_TRACE_NO_INDEX;
}

static void resolve_waits(struct weir_trace *trace)
{
    for (size_t i = 0; i < trace->operation_count; i++) {
        const struct weir_trace_operation *operation = &trace->operations[i];
        // They are in the trace's storage, which may be written to.
        struct weir_trace_wait *waits = (struct weir_trace_wait *)operation->waits;
        for (size_t k = 0; k < operation->wait_count; k++) {
            const struct weir_trace_queue *queue = find_queue(trace, waits[k].queue);
            if (queue && queue->operation_count > 0)
                waits[k].operation = last_up_to(trace, queue, waits[k].sequence);
        }
    }
}

static bool tell_end(struct weir__rows *rows)
{
    struct weir_trace *trace = rows->trace;
    uint64_t last = 0;
    for (size_t i = 0; i < trace->operation_count; i++)
        if (trace->operations[i].end_ns > last)
            last = trace->operations[i].end_ns;
    if (trace->meta.end_ns < last)
        trace->meta.end_ns = last;
    if (rows->own && !rows->ended)
        trace->meta.truncated = true;
    if (trace->meta.truncated &&
        !weir__trace_note(trace,
                          "the trace has no end: the program was killed, is still running, did not "
                          "close its runtime, or could not write the rest. What was written is "
                          "here: %zu operations",
                          trace->operation_count))
        return false;
    if (trace->meta.beyond > 0 &&
        !weir__trace_note(
            trace,
            "%llu operations at the end are missing, with the regions and waits of the host "
            "after them: the file had reached `limit` of [trace]",
            (unsigned long long)trace->meta.beyond))
        return false;
    return trace->meta.dropped == 0 ||
           weir__trace_note(trace,
                            "%llu operations are missing: they came faster than they could be "
                            "written; figures are of the others",
                            (unsigned long long)trace->meta.dropped);
}

bool weir__rows_finish(struct weir__rows *rows)
{
    struct weir_trace *trace = rows->trace;
    sort(trace->queues, trace->queue_count, sizeof *trace->queues, by_device);
    if (!complete_devices(trace))
        return weir__rows_no_memory(rows);
    find_queues(trace);
    if (rows->own) {
        sort(trace->operations, trace->operation_count, sizeof *trace->operations, by_queue);
    } else {
        join_calls(rows);
        move_to_zero(trace);
        number_by_start(trace);
    }
    sort(trace->spans, trace->span_count, sizeof *trace->spans, by_thread);
    find_ranges(trace);
    resolve_waits(trace);
    return tell_end(rows) ? true : weir__rows_no_memory(rows);
}
