// Operations of a queue finish in the order of their submission, and their times are in the same
// order. A time without an entry belongs to an operation that was not kept because the ring was full. An
// entry that is older than the newest time, and has none, gets none: it was not fetched soon enough.
#include "plugins/trace/parts.h"

bool trace_is_by_device(const struct trace_queue *queue, const struct trace_entry *entry)
{
    return entry->kind != WEIR_OPERATION_COLLECTIVE || queue->trace->clock ||
           queue->device->limits.collectives == 2;
}

// The times of an operation on the host's clock: of a NOTE, whose entry is kept until it has them, or of a collective
// that the front end has carried out, possibly before the submit has returned.
static void set_times(struct trace_queue *queue, const struct weir_host_note *note)
{
    const uint64_t begun = atomic_load_explicit(&queue->begun, memory_order_acquire);
    uint64_t low = queue->joined;
    uint64_t high = begun;
    while (low < high) { // entries are in the order of their numbers
        const uint64_t middle = low + (high - low) / 2;
        if (queue->ring[middle & queue->mask].sequence < note->u.ran.sequence)
            low = middle + 1;
        else
            high = middle;
    }
    struct trace_entry *entry = &queue->ring[low & queue->mask];
    // In virtual time a collective has the times of the links after this one.
    const bool collective = entry->kind == WEIR_OPERATION_COLLECTIVE && !queue->trace->clock;
    if (low == begun || entry->sequence != note->u.ran.sequence ||
        (entry->kind != WEIR_OPERATION_NOTE && !collective))
        return;
    entry->start_ns = note->u.ran.begin_ns;
    entry->end_ns = note->u.ran.end_ns;
    atomic_store_explicit(&entry->called, true, memory_order_release);
}

weir_status trace_host_note(const struct weir_link *link, const struct weir_host_note *note)
{
    if (note->kind == WEIR_HOST_NOTE_COLLECTIVE || note->kind == WEIR_HOST_NOTE_TIMES) {
        struct trace_queue *queue = trace_queue_of(link, note->u.ran.queue);
        pthread_mutex_lock(&queue->lock);
        set_times(queue, note);
        pthread_mutex_unlock(&queue->lock);
    }
    return link->next->ops->host_note(link->next, note);
}

static bool has_run(const struct trace_entry *entry)
{
    return atomic_load_explicit(&entry->called, memory_order_acquire);
}

// Stores a time, on the device's clock, with its entry, of which the submit may not have returned. Nodes of a graph may
// overlap: all of them are one operation.
static void note_time(struct trace_queue *queue, const struct weir_operation_time *time)
{
    const uint64_t begun = atomic_load_explicit(&queue->begun, memory_order_acquire);
    if (queue->noted < queue->joined)
        queue->noted = queue->joined;
    while (queue->noted < begun &&
           queue->ring[queue->noted & queue->mask].sequence < time->sequence)
        queue->noted++;
    struct trace_entry *entry = &queue->ring[queue->noted & queue->mask];
    if (queue->noted == begun || entry->sequence != time->sequence || has_run(entry))
        return;
    if (entry->seen == 0 || time->start_ns < entry->start_ns)
        entry->start_ns = time->start_ns;
    if (entry->seen == 0 || time->end_ns > entry->end_ns)
        entry->end_ns = time->end_ns;
    entry->start_is_earliest |= time->start_is_earliest;
    entry->seen++;
}

void trace_fetch(struct trace_queue *queue)
{
    const struct weir_link *next = queue->trace->link->next;
    struct weir_operation_time batch[TRACE_FETCH];
    size_t count = TRACE_FETCH;
    for (size_t turns = 0; count == TRACE_FETCH && turns < TRACE_FETCHES; turns++) {
        if (next->ops->queue_times(next, queue->object, batch, sizeof *batch, TRACE_FETCH, &count) <
            0)
            return;
        for (size_t i = 0; i < count; i++) {
            note_time(queue, &batch[i]);
            queue->times[queue->fetched++ & queue->mask] = batch[i];
            queue->last_fetched = batch[i].sequence;
        }
    }
}

// Links before this one may request times too, and the backend returns each only once, so times are
// kept for these links until newer ones replace them.
weir_status trace_queue_times(const struct weir_link *link, weir_queue *object,
                              struct weir_operation_time *times, size_t time_size, size_t capacity,
                              size_t *out_count)
{
    struct trace_queue *queue = trace_queue_of(link, object);
    *out_count = 0;
    pthread_mutex_lock(&queue->lock);
    if (queue->object)
        trace_fetch(queue);
    if (queue->fetched - queue->passed_on > queue->mask + 1)
        queue->passed_on = queue->fetched - queue->mask - 1;
    for (; queue->passed_on < queue->fetched && *out_count < capacity; queue->passed_on++)
        weir_write((char *)times + (*out_count)++ * time_size, time_size,
                   &queue->times[queue->passed_on & queue->mask], sizeof *queue->times);
    pthread_mutex_unlock(&queue->lock);
    return WEIR_OK;
}

static void give_up(struct trace_queue *queue, struct trace_entry *entry)
{
    entry->flags |= TRACE_UNTIMED;
    queue->trace->unfinished++;
}

// Converts the times to the host's clock. Operations of a queue never overlap, so rounding errors of the clocks are
// corrected.
static void convert(struct trace_queue *queue, struct trace_entry *entry)
{
    const struct weir_clock_map *clock = &queue->device->clock_now;
    uint64_t start_ns = weir_clock_map_b(clock, entry->start_ns);
    uint64_t end_ns = weir_clock_map_b(clock, entry->end_ns);
    if (entry->start_is_earliest && start_ns < entry->submit_ns)
        start_ns = entry->submit_ns;
    if (start_ns < queue->end_ns)
        start_ns = queue->end_ns;
    if (end_ns < start_ns) {
        if (entry->start_is_earliest && end_ns > queue->end_ns)
            start_ns = end_ns;
        else
            end_ns = start_ns;
    }
    entry->start_ns = start_ns;
    entry->end_ns = queue->end_ns = end_ns;
    entry->flags |= TRACE_TIMED;
}

static bool join_work(struct trace_queue *queue, struct trace_entry *entry, bool last)
{
    const bool readable = queue->device->clock_now.count > 0;
    const uint32_t wanted = entry->kind == WEIR_OPERATION_GRAPH ? entry->u.graph.times : 1;
    if (readable && entry->seen < wanted && !last && queue->last_fetched <= entry->sequence)
        return false;
    if (readable && entry->seen > 0)
        convert(queue, entry);
    else
        give_up(queue, entry);
    return true;
}

// A host call after a failure never runs, nor does a collective. This is known when a later operation
// has run.
static bool join_call(struct trace_queue *queue, struct trace_entry *entry, bool last)
{
    if (has_run(entry)) {
        entry->flags |= TRACE_TIMED;
        if (entry->start_ns < queue->end_ns)
            entry->start_ns = queue->end_ns;
        if (entry->end_ns < entry->start_ns)
            entry->end_ns = entry->start_ns;
        queue->end_ns = entry->end_ns;
        return true;
    }
    if (!last && queue->last_fetched <= entry->sequence)
        return false;
    give_up(queue, entry);
    return true;
}

static bool join_next(struct trace_queue *queue, uint64_t head, bool last)
{
    struct trace_entry *entry = &queue->ring[queue->joined & queue->mask];
    if (entry->kind == WEIR_OPERATION_WAIT || (entry->flags & TRACE_UNTIMED))
        return true;
    const bool collective = entry->kind == WEIR_OPERATION_COLLECTIVE && !queue->trace->clock;
    if ((entry->kind == WEIR_OPERATION_HOST_CALL && !queue->trace->clock) ||
        (collective && (!trace_is_by_device(queue, entry) || has_run(entry))))
        return join_call(queue, entry, last);
    // Where the device has an engine for collectives, the front end may still carry one out, of which the
    // backend times the copies. It has told that when a later operation runs.
    if (collective && !last && queue->last_fetched <= entry->sequence)
        return false;
    // Times of a note may never come, and must not keep later entries from being written.
    if (entry->kind == WEIR_OPERATION_NOTE)
        return join_call(queue, entry, last || head - queue->joined > queue->mask / 2);
    return join_work(queue, entry, last);
}

void trace_join(struct trace_queue *queues, bool last)
{
    for (struct trace_queue *queue = queues; queue; queue = queue->next) {
        const bool ready = last || queue->device->clock_now.count > 0;
        pthread_mutex_lock(&queue->lock);
        // After the destruction there are no more times.
        const bool gone = !queue->object;
        if (!gone)
            trace_fetch(queue);
        const uint64_t head = atomic_load_explicit(&queue->head, memory_order_acquire);
        while (ready && queue->joined < head && join_next(queue, head, last || gone))
            queue->joined++;
        pthread_mutex_unlock(&queue->lock);
    }
}
