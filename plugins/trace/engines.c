// If a driver reports only the ends of copies, the earliest start of a copy is the time from which
// its queue had no other work, although the engine may have been busy with a copy of another queue.
// A copy engine makes one copy at a time, so a copy began when the previous one on its engine
// ended, or when its own queue was ready, whichever was later. That is its exact start.
//
// Kernels share their engine, so their starts remain lower bounds.
#include <stdlib.h>

#include "plugins/trace/parts.h"

struct copy {
    struct trace_queue *queue;
    uint64_t at; // in its ring
    struct trace_entry *entry;
};

struct copies {
    struct copy *all;
    size_t count;
    size_t capacity;
};

static int by_end(const void *a, const void *b)
{
    const struct trace_entry *left = ((const struct copy *)a)->entry;
    const struct trace_entry *right = ((const struct copy *)b)->entry;
    if (left->end_ns != right->end_ns)
        return left->end_ns < right->end_ns ? -1 : 1;
    return left->submit_ns < right->submit_ns ? -1 : left->submit_ns > right->submit_ns;
}

static bool has_engine(const struct trace_device *device, const struct trace_entry *entry)
{
    return (entry->engine == WEIR_ENGINE_TO_DEVICE && device->limits.copy_engines_to_device == 1) ||
           (entry->engine == WEIR_ENGINE_TO_HOST && device->limits.copy_engines_to_host == 1);
}

static bool add(struct copies *copies, struct copy copy)
{
    if (copies->count == copies->capacity) {
        const size_t capacity = copies->capacity ? 2 * copies->capacity : 256;
        struct copy *all = realloc(copies->all, capacity * sizeof *all);
        if (!all)
            return false;
        copies->all = all;
        copies->capacity = capacity;
    }
    copies->all[copies->count++] = copy;
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
        if (!has_engine(queue->device, entry) || !add(copies, (struct copy){queue, at, entry}))
            entry->flags |= TRACE_READY;
    }
}

// A copy ended after those that were placed before it. If the clocks have since been found to be apart
// by more, its time, converted anew, may lie before theirs: its end is then moved after them, and what
// its queue did next is with it.
static void move(const struct copy *copy, uint64_t to_ns)
{
    struct trace_queue *queue = copy->queue;
    copy->entry->end_ns = to_ns;
    for (uint64_t at = copy->at + 1; at < queue->joined; at++) {
        struct trace_entry *entry = &queue->ring[at & queue->mask];
        if (!(entry->flags & TRACE_TIMED))
            continue;
        if (entry->start_ns >= to_ns)
            break;
        entry->start_ns = to_ns;
        if (entry->end_ns < to_ns)
            entry->end_ns = to_ns;
    }
    if (queue->end_ns < to_ns)
        queue->end_ns = to_ns;
}

static void place(struct trace_device *device, const struct copies *copies)
{
    for (size_t i = 0; i < copies->count; i++) {
        struct trace_entry *entry = copies->all[i].entry;
        uint64_t *busy_ns = &device->busy_ns[entry->engine];
        if (entry->end_ns < *busy_ns)
            move(&copies->all[i], *busy_ns);
        if (entry->start_ns < *busy_ns)
            entry->start_ns = *busy_ns;
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
            qsort(copies.all, copies.count, sizeof *copies.all, by_end);
        place(device, &copies);
        free(copies.all);
    }
    for (struct trace_queue *queue = queues; queue; queue = queue->next)
        settle(queue);
}
