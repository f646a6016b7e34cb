// The arrays of a trace that is read, and what completes it.
#include "report/trace_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/trace_format.h"

// There is room up to the next power of two.
void *weir__rows_add(struct weir__rows *rows, void *array, size_t *count, size_t size)
{
    char *items;
    memcpy(&items, array, sizeof items);
    if ((*count & (*count - 1)) == 0) {
        const size_t room = *count ? 2 * *count : 1;
        items = room <= SIZE_MAX / size ? realloc(items, room * size) : NULL;
        if (!items) {
            weir__rows_no_memory(rows);
            return NULL;
        }
        memcpy(array, &items, sizeof items);
    }
    return memset(items + (*count)++ * size, 0, size);
}

struct weir_trace_device *weir__rows_device(struct weir__rows *rows, uint32_t index)
{
    struct weir_trace_device *device =
        WEIR__ADD(rows, rows->trace->devices, rows->trace->device_count);
    if (device)
        *device = (struct weir_trace_device){
            .index = index, .name = "", .platform = "", .driver = "", .label = ""};
    return device;
}

bool weir__rows_note(struct weir__rows *rows, const char *format, ...)
{
    struct weir_trace *trace = rows->trace;
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char **note = WEIR__ADD(rows, trace->notes, trace->note_count);
    if (!note)
        return false;
    *note = weir_names_keep(trace->texts, text);
    if (!*note)
        trace->note_count--;
    return *note ? true : weir__rows_no_memory(rows);
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

// Of rows of one queue those that name it come first.
static int by_device(const void *a, const void *b)
{
    const struct weir_trace_queue *x = a;
    const struct weir_trace_queue *y = b;
    if (x->device != y->device || x->id != y->id)
        return x->device != y->device ? compare(x->device, y->device) : compare(x->id, y->id);
    return compare(*y->label != 0, *x->label != 0);
}

static int by_id(const void *a, const void *b)
{
    const struct weir_trace_queue *x = *(const struct weir_trace_queue *const *)a;
    const struct weir_trace_queue *y = *(const struct weir_trace_queue *const *)b;
    return compare(x->id, y->id);
}

// Until the queues are complete an operation's index is that of its device.
static int by_device_and_queue(const struct weir_trace_operation *x,
                               const struct weir_trace_operation *y)
{
    return x->queue_index != y->queue_index ? compare(x->queue_index, y->queue_index)
                                            : compare(x->queue, y->queue);
}

static int by_sequence(const void *a, const void *b)
{
    const struct weir_trace_operation *x = a;
    const struct weir_trace_operation *y = b;
    const int queues = by_device_and_queue(x, y);
    if (queues != 0 || x->sequence != y->sequence)
        return queues ? queues : compare(x->sequence, y->sequence);
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
static bool complete_devices(struct weir__rows *rows)
{
    struct weir_trace *trace = rows->trace;
    const size_t named = trace->device_count;
    sort(trace->devices, named, sizeof *trace->devices, by_index);
    for (size_t i = 0; i < trace->queue_count; i++) {
        const struct weir_trace_device wanted = {.index = trace->queues[i].device};
        const bool is_new = (i == 0 || trace->queues[i - 1].device != wanted.index) &&
                            (named == 0 || !bsearch(&wanted, trace->devices, named,
                                                    sizeof *trace->devices, by_index));
        if (is_new && !weir__rows_device(rows, wanted.index))
            return false;
    }
    sort(trace->devices, trace->device_count, sizeof *trace->devices, by_index);
    for (size_t i = 0, at = 0; i < trace->queue_count; i++) {
        while (trace->devices[at].index != trace->queues[i].device)
            at++;
        trace->queues[i].device_index = at;
    }
    return true;
}

// Each queue that rows name or operations have, once. Operations are already in order.
static bool complete_queues(struct weir__rows *rows)
{
    struct weir_trace *trace = rows->trace;
    size_t used = 0;
    for (size_t i = 0; i < trace->operation_count; i++) {
        const struct weir_trace_operation *operation = &trace->operations[i];
        if (i > 0 && by_device_and_queue(operation - 1, operation) == 0)
            continue;
        struct weir_trace_queue *queue = WEIR__ADD(rows, trace->queues, trace->queue_count);
        if (!queue)
            return false;
        *queue = (struct weir_trace_queue){.id = operation->queue,
                                           .device = operation->queue_index,
                                           .label = ""};
    }
    sort(trace->queues, trace->queue_count, sizeof *trace->queues, by_device);
    for (size_t i = 0; i < trace->queue_count; i++) {
        const struct weir_trace_queue queue = trace->queues[i];
        if (used == 0 || trace->queues[used - 1].device != queue.device ||
            trace->queues[used - 1].id != queue.id)
            trace->queues[used++] = queue;
    }
    trace->queue_count = used;
    return true;
}

// If a driver tells only the end of an operation, the file has its earliest start: from then on its queue had no other
// work, although the engine may have been busy with work of another queue. Its latest start is the last end on the
// engine before its own. A copy engine makes one copy at a time, so where a direction has one, that is its exact start.
// Kernels share their engine, so their starts remain bounds.

struct run {
    struct weir_trace_operation *operation;
    size_t lane; // of a device an engine
    bool alone;  // the engine makes one copy at a time
};

static int by_lane_and_end(const void *a, const void *b)
{
    const struct run *x = a;
    const struct run *y = b;
    return x->lane != y->lane ? compare(x->lane, y->lane)
                              : compare(x->operation->end_ns, y->operation->end_ns);
}

// In the order of their ends on each engine.
static size_t list_runs(const struct weir_trace *trace, struct run *runs)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->operation_count; i++) {
        struct weir_trace_operation *it = &trace->operations[i];
        const size_t at = trace->queues[it->queue_index].device_index;
        const struct weir_trace_device *device = &trace->devices[at];
        const bool alone =
            (it->engine == WEIR_ENGINE_TO_DEVICE && device->copy_engines_to_device <= 1) ||
            (it->engine == WEIR_ENGINE_TO_HOST && device->copy_engines_to_host <= 1);
        if (it->timed)
            runs[count++] = (struct run){it, at * WEIR_ENGINE_COUNT + it->engine, alone};
    }
    sort(runs, count, sizeof *runs, by_lane_and_end);
    return count;
}

static bool find_starts(struct weir__rows *rows)
{
    const struct weir_trace *trace = rows->trace;
    size_t bounds = 0;
    for (size_t i = 0; i < trace->operation_count; i++) {
        trace->operations[i].latest_start_ns = trace->operations[i].start_ns;
        bounds += trace->operations[i].start_is_earliest;
    }
    struct run *runs = bounds ? malloc(trace->operation_count * sizeof *runs) : NULL;
    if (!runs)
        return bounds ? weir__rows_no_memory(rows) : true;
    const size_t count = list_runs(trace, runs);
    uint64_t before_ns = 0; // the last end before that of the present run
    for (size_t i = 0; i < count; i++) {
        struct weir_trace_operation *it = runs[i].operation;
        const bool first = i == 0 || runs[i - 1].lane != runs[i].lane;
        const uint64_t last_ns = first ? 0 : runs[i - 1].operation->end_ns;
        before_ns = first || last_ns < it->end_ns ? last_ns : before_ns;
        if (it->start_is_earliest && it->start_ns < before_ns)
            it->latest_start_ns = before_ns;
        if (runs[i].alone) {
            it->start_ns = it->latest_start_ns;
            it->start_is_earliest = false;
        }
    }
    free(runs);
    return true;
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

// Their time 0 may be the start of the machine, or 1970. They lack the order of submission, so that of starts is used.
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
        operation->sequence = operation->start_ns;
        operation->end_ns -= first;
        if (operation->submit_end_ns > 0) {
            operation->submit_ns -= first;
            operation->submit_end_ns -= first;
        }
    }
    if (trace->operation_count > 0)
        trace->meta.base_unix_ns += first;
}

// To the last operation of the queue up to `sequence`.
static void resolve(const struct weir_trace *trace, const struct weir_trace_queue *const *queues,
                    struct weir_trace_wait *wait)
{
    const struct weir_trace_queue wanted = {.id = wait->queue};
    const struct weir_trace_queue *key = &wanted;
    const struct weir_trace_queue *const *queue =
        bsearch(&key, queues, trace->queue_count, sizeof(void *), by_id);
    const size_t first = queue ? (*queue)->first_operation : 0;
    size_t low = first;
    size_t high = queue ? low + (*queue)->operation_count : 0;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (trace->operations[middle].sequence <= wait->sequence)
            low = middle + 1;
        else
            high = middle;
    }
    wait->operation = low > first ? low - 1 : WEIR_TRACE_NO_INDEX;
}

// A wait names its queue by the id alone.
static bool resolve_waits(struct weir__rows *rows)
{
    struct weir_trace *trace = rows->trace;
    const struct weir_trace_queue **queues = malloc((trace->queue_count + 1) * sizeof(void *));
    if (!queues)
        return weir__rows_no_memory(rows);
    for (size_t i = 0; i < trace->queue_count; i++)
        queues[i] = &trace->queues[i];
    sort(queues, trace->queue_count, sizeof *queues, by_id);
    // The waits are the reader's, which may write to them.
    for (size_t i = 0; i < trace->operation_count; i++)
        for (size_t k = 0; k < trace->operations[i].wait_count; k++)
            resolve(trace, queues, (struct weir_trace_wait *)&trace->operations[i].waits[k]);
    free(queues);
    return true;
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
        !weir__rows_note(rows,
                         "the trace has no end: the program was killed, is still running, did not "
                         "close its runtime, or could not write the rest. What was written is "
                         "here: %zu operations",
                         trace->operation_count))
        return false;
    if (trace->meta.beyond > 0 &&
        !weir__rows_note(
            rows,
            "%llu operations at the end are missing, with the regions and waits of the host "
            "after them: the file had reached `limit` of [trace]",
            (unsigned long long)trace->meta.beyond))
        return false;
    return trace->meta.dropped == 0 ||
           weir__rows_note(rows,
                           "%llu operations are missing: they came faster than they could be "
                           "written; figures are of the others",
                           (unsigned long long)trace->meta.dropped);
}

bool weir__rows_finish(struct weir__rows *rows)
{
    struct weir_trace *trace = rows->trace;
    if (!rows->own) {
        trace->thread_count = 0;
        join_calls(rows);
        move_to_zero(trace);
    }
    sort(trace->operations, trace->operation_count, sizeof *trace->operations, by_sequence);
    sort(trace->spans, trace->span_count, sizeof *trace->spans, by_thread);
    if (!complete_queues(rows) || !complete_devices(rows))
        return false;
    // Both are in order, and each operation has a queue.
    struct weir_trace_queue *queue = trace->queues;
    for (size_t i = 0; i < trace->operation_count; i++) {
        struct weir_trace_operation *operation = &trace->operations[i];
        while (queue->device != operation->queue_index || queue->id != operation->queue)
            queue++;
        operation->queue_index = (uint32_t)(queue - trace->queues);
        if (queue->operation_count++ == 0)
            queue->first_operation = i;
    }
    // Numbers in place of starts.
    for (size_t i = 0; i < trace->operation_count && !rows->own; i++) {
        const struct weir_trace_operation *before = i > 0 ? &trace->operations[i - 1] : NULL;
        const bool first = !before || before->queue_index != trace->operations[i].queue_index;
        trace->operations[i].sequence = first ? 1 : before->sequence + 1;
    }
    return find_starts(rows) && resolve_waits(rows) && tell_end(rows);
}
