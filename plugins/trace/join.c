// Operations of a queue finish in the order of their submission, and their times are in the same
// order, so one pass over both joins them. A time without an entry belongs to an operation that was
// not kept because the ring was full. An entry that is older than the next time has none: it was
// not fetched soon enough.
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
    if (low == begun || entry->sequence != note->u.ran.sequence ||
        (entry->kind != WEIR_OPERATION_NOTE && entry->kind != WEIR_OPERATION_COLLECTIVE))
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

// Drops the times of operations that were not kept.
static void compact(struct trace_queue *queue)
{
    const uint64_t head = atomic_load_explicit(&queue->head, memory_order_acquire);
    const uint64_t newest = head > 0 ? queue->ring[(head - 1) & queue->mask].sequence : 0;
    uint64_t entry = queue->joined;
    uint64_t to = queue->times_tail;
    uint64_t passed_on = queue->passed_on;
    for (uint64_t from = queue->times_tail; from < queue->times_head; from++) {
        const struct weir_operation_time time = queue->times[from & queue->times_mask];
        if (from == queue->passed_on)
            passed_on = to;
        while (entry < head && queue->ring[entry & queue->mask].sequence < time.sequence)
            entry++;
        // The submit of a newer operation may not have returned.
        if (time.sequence > newest ||
            (entry < head && queue->ring[entry & queue->mask].sequence == time.sequence))
            queue->times[to++ & queue->times_mask] = time;
    }
    queue->passed_on = queue->passed_on >= queue->times_head ? to : passed_on;
    queue->times_head = to;
}

void trace_fetch(struct trace_queue *queue)
{
    const struct weir_link *next = queue->trace->link->next;
    struct weir_operation_time batch[TRACE_FETCH];
    size_t count = TRACE_FETCH;
    while (count == TRACE_FETCH) {
        if (queue->times_head - queue->times_tail + TRACE_FETCH > queue->times_mask + 1)
            compact(queue);
        if (queue->times_head - queue->times_tail + TRACE_FETCH > queue->times_mask + 1)
            return; // the entries that are there must be written first
        if (next->ops->queue_times(next, queue->object, batch, sizeof *batch, TRACE_FETCH, &count) <
            0)
            return;
        for (size_t i = 0; i < count; i++)
            queue->times[queue->times_head++ & queue->times_mask] = batch[i];
        if (count > 0)
            queue->last_fetched = batch[count - 1].sequence;
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
    if (queue->times_head - queue->passed_on > queue->times_mask + 1)
        queue->passed_on = queue->times_head - queue->times_mask - 1;
    for (; queue->passed_on < queue->times_head && *out_count < capacity; queue->passed_on++)
        weir_write((char *)times + (*out_count)++ * time_size, time_size,
                   &queue->times[queue->passed_on & queue->times_mask], sizeof *queue->times);
    pthread_mutex_unlock(&queue->lock);
    return WEIR_OK;
}

// The oldest time that is not of an operation before `sequence`, or NULL.
static const struct weir_operation_time *first_time(struct trace_queue *queue, uint64_t sequence)
{
    while (queue->times_tail < queue->times_head) {
        const struct weir_operation_time *time =
            &queue->times[queue->times_tail & queue->times_mask];
        if (time->sequence >= sequence)
            return time;
        queue->times_tail++;
    }
    return NULL;
}

// Converts the times to the host's clock. Operations of a queue never overlap, so rounding errors
// of the clocks are corrected. Nodes of a graph may overlap, and come in the order of their ends.
static void take(struct trace_queue *queue, struct trace_entry *entry,
                 const struct weir_operation_time *time)
{
    const struct weir_clock_map *clock = &queue->device->clock_now;
    uint64_t start_ns = weir_clock_map_b(clock, time->start_ns);
    uint64_t end_ns = weir_clock_map_b(clock, time->end_ns);
    if (time->start_is_earliest && start_ns < entry->submit_ns)
        start_ns = entry->submit_ns;
    if (start_ns < queue->end_ns)
        start_ns = queue->end_ns;
    if (end_ns < start_ns) {
        if (time->start_is_earliest && end_ns > queue->end_ns)
            start_ns = end_ns;
        else
            end_ns = start_ns;
    }
    const bool first = !(entry->flags & TRACE_TIMED);
    if (first || start_ns < entry->start_ns)
        entry->start_ns = start_ns;
    if (first || end_ns > entry->end_ns)
        entry->end_ns = end_ns;
    entry->flags |= TRACE_TIMED | (time->start_is_earliest ? TRACE_EARLIEST : 0);
}

static void give_up(struct trace_queue *queue, struct trace_entry *entry)
{
    entry->flags |= TRACE_UNTIMED;
    queue->trace->unfinished++;
}

static bool join_work(struct trace_queue *queue, struct trace_entry *entry, bool last)
{
    if (queue->device->clock_now.count == 0) { // times of a clock that could not be read
        give_up(queue, entry);
        return true;
    }
    for (;;) {
        const struct weir_operation_time *time = first_time(queue, entry->sequence);
        const bool passed = time && time->sequence > entry->sequence;
        if (!time && !last)
            return false;
        if (!time || passed) {
            if (entry->flags & TRACE_TIMED) // some nodes of a graph
                break;
            give_up(queue, entry);
            return true;
        }
        take(queue, entry, time);
        queue->times_tail++;
        if (entry->kind != WEIR_OPERATION_GRAPH || ++entry->u.graph.seen == entry->u.graph.times)
            break;
    }
    queue->end_ns = entry->end_ns;
    return true;
}

static bool has_run(const struct trace_entry *entry)
{
    return atomic_load_explicit(&entry->called, memory_order_acquire);
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
    if (!last && !first_time(queue, entry->sequence + 1))
        return false;
    give_up(queue, entry);
    return true;
}

// Where the device has an engine for collectives, the front end may still carry one out, of which the
// backend times the copies. It has told that when a later operation runs.
static bool join_collective(struct trace_queue *queue, struct trace_entry *entry, bool last)
{
    if (!trace_is_by_device(queue, entry) || has_run(entry))
        return join_call(queue, entry, last);
    const bool later =
        queue->times_tail < queue->times_head &&
        queue->times[(queue->times_head - 1) & queue->times_mask].sequence > entry->sequence;
    return (last || later) && join_work(queue, entry, last);
}

static bool join_next(struct trace_queue *queue, uint64_t head, bool last)
{
    struct trace_entry *entry = &queue->ring[queue->joined & queue->mask];
    if (entry->kind == WEIR_OPERATION_WAIT || (entry->flags & TRACE_UNTIMED))
        return true;
    if (entry->kind == WEIR_OPERATION_HOST_CALL && !queue->trace->clock)
        return join_call(queue, entry, last);
    if (entry->kind == WEIR_OPERATION_COLLECTIVE && !queue->trace->clock)
        return join_collective(queue, entry, last);
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
