// If a driver reports only the ends of copies, the earliest start of a copy is the time from which
// its queue had no other work, although the engine may have been busy with a copy of another queue.
// A copy engine makes one copy at a time, so a copy began when the previous one on its engine
// ended, or when its own queue was ready, whichever was later. That is its exact start.
//
// Kernels share their engine, so their starts remain lower bounds.
#include <stdlib.h>

#include "tests/abi/frozen/trace/plugins/trace/parts.h"

struct copies {
    struct trace_entry **entries;
    size_t count;
    size_t capacity;
};

static int by_end(const void *a, const void *b)
{
    const struct trace_entry *left = *(struct trace_entry *const *)a;
    const struct trace_entry *right = *(struct trace_entry *const *)b;
    if (left->end_ns != right->end_ns)
        return left->end_ns < right->end_ns ? -1 : 1;
    return left->submit_ns < right->submit_ns ? -1 : left->submit_ns > right->submit_ns;
}

static bool has_engine(const struct trace_device *device, const struct trace_entry *entry)
{
    return (entry->engine == WEIR_ENGINE_TO_DEVICE && device->limits.copy_engines_to_device == 1) ||
           (entry->engine == WEIR_ENGINE_TO_HOST && device->limits.copy_engines_to_host == 1);
}

static bool add(struct copies *copies, struct trace_entry *entry)
{
    if (copies->count == copies->capacity) {
        const size_t capacity = copies->capacity ? 2 * copies->capacity : 256;
        struct trace_entry **entries =
            realloc(copies->entries, capacity * sizeof(struct trace_entry *));
        if (!entries)
            return false;
        copies->entries = entries;
        copies->capacity = capacity;
    }
    copies->entries[copies->count++] = entry;
    return true;
}

// Collects the copies of a queue that ended before `until_ns`. Operations without an engine are
// ready as they are, and so are copies for which memory has run out.
static void collect(struct trace_queue *queue, uint64_t until_ns, struct copies *copies)
{
    for (uint64_t at = queue->placed; at < queue->joined; at++) {
        struct trace_entry *entry = &queue->ring[at & queue->mask];
        if (entry->flags & TRACE_READY)
            continue;
        if (has_engine(queue->device, entry) && entry->end_ns > until_ns)
            return; // all later ones end after it too
        if (!has_engine(queue->device, entry) || !add(copies, entry))
            entry->flags |= TRACE_READY;
    }
}

static void place(struct trace_device *device, const struct copies *copies)
{
    for (size_t i = 0; i < copies->count; i++) {
        struct trace_entry *entry = copies->entries[i];
        uint64_t *busy_ns = &device->busy_ns[entry->engine];
        if (entry->start_ns < *busy_ns)
            entry->start_ns = *busy_ns < entry->end_ns ? *busy_ns : entry->end_ns;
        if (*busy_ns < entry->end_ns)
            *busy_ns = entry->end_ns;
        entry->flags &= (uint8_t)~TRACE_EARLIEST;
        entry->flags |= TRACE_READY;
    }
}

static void settle(struct trace_queue *queue)
{
    while (queue->placed < queue->joined &&
           (queue->ring[queue->placed & queue->mask].flags & TRACE_READY))
        queue->placed++;
}

void trace_engines(struct trace_device *devices, struct trace_queue *queues, uint64_t until_ns)
{
    for (struct trace_device *device = devices; device; device = device->next) {
        struct copies copies = {NULL, 0, 0};
        for (struct trace_queue *queue = queues; queue; queue = queue->next)
            if (queue->device == device)
                collect(queue, until_ns, &copies);
        if (copies.count > 1)
            qsort(copies.entries, copies.count, sizeof(struct trace_entry *), by_end);
        place(device, &copies);
        free(copies.entries);
    }
    for (struct trace_queue *queue = queues; queue; queue = queue->next)
        settle(queue);
}
