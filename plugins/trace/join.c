// Operations of a queue finish in the order of their submission, and their times are in the same
// order, so one pass over both joins them. A time without an entry belongs to an operation that was
// not kept because the ring was full. An entry that is older than the next time has none: it was
// not fetched soon enough.
#include "plugins/trace/parts.h"

#include <stdlib.h>

// If a driver reports only the ends of copies, the earliest start of a copy is the time from which
// its queue had no other work, although the engine may have been busy with a copy of another queue.
// A copy engine makes one copy at a time, so a copy began when the previous one on its engine
// ended, or when its own queue was ready, whichever was later. That is its exact start.
// Kernels share their engine, so their starts remain lower bounds.

struct copy {
    struct trace_queue *queue;
    uint64_t at; // in its ring
    struct trace_entry *entry;
};

struct copies {
    struct copy *all; // room for every entry that is not placed; NULL: there is no memory
    size_t count;
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
        if (has_engine(queue->device, entry) && copies->all)
            copies->all[copies->count++] = (struct copy){queue, at, entry};
        else
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

static void place_all(struct trace_device *devices, struct trace_queue *queues, uint64_t until_ns)
{
    for (struct trace_device *device = devices; device; device = device->next) {
        size_t most = 0;
        for (struct trace_queue *queue = queues; queue; queue = queue->next)
            most += queue->device == device ? queue->joined - queue->placed : 0;
        if (most == 0)
            continue;
        struct copies copies = {.all = malloc(most * sizeof *copies.all)};
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

// Times.

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
    entry->flags |= TRACE_UNTIMED | TRACE_READY;
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
    if (!(entry->flags & TRACE_EARLIEST))
        entry->flags |= TRACE_READY;
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
        entry->flags |= TRACE_TIMED | TRACE_READY;
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

static bool has_time_after(const struct trace_queue *queue, uint64_t sequence)
{
    return queue->times_tail < queue->times_head &&
           queue->times[(queue->times_head - 1) & queue->times_mask].sequence > sequence;
}

// Where the device has an engine for collectives, the front end may still carry one out, of which the
// backend times the copies. It has told that when a later operation runs.
static bool join_collective(struct trace_queue *queue, struct trace_entry *entry, bool last)
{
    if (!trace_is_by_device(queue, entry) || has_run(entry))
        return join_call(queue, entry, last);
    return (last || has_time_after(queue, entry->sequence)) && join_work(queue, entry, last);
}

// Its times may never come, and must not keep later entries from being written.
static bool join_noted(struct trace_queue *queue, struct trace_entry *entry, bool last)
{
    const uint64_t head = atomic_load_explicit(&queue->head, memory_order_acquire);
    return join_call(queue, entry, last || head - queue->joined > queue->mask / 2);
}

static bool join_entry(struct trace_queue *queue, struct trace_entry *entry, bool last)
{
    if (entry->kind == WEIR_OPERATION_WAIT || (entry->flags & TRACE_UNTIMED)) {
        entry->flags |= TRACE_READY;
        return true;
    }
    if (entry->kind == WEIR_OPERATION_HOST_CALL && !queue->trace->clock)
        return join_call(queue, entry, last);
    if (entry->kind == WEIR_OPERATION_COLLECTIVE && !queue->trace->clock)
        return join_collective(queue, entry, last);
    if (entry->kind == WEIR_OPERATION_NOTE)
        return join_noted(queue, entry, last);
    return join_work(queue, entry, last);
}

static void join(struct trace_queue *queue, bool last)
{
    const uint64_t head = atomic_load_explicit(&queue->head, memory_order_acquire);
    pthread_mutex_lock(&queue->lock);
    // After the destruction there are no more times.
    const bool gone = !queue->object;
    while (queue->joined < head &&
           join_entry(queue, &queue->ring[queue->joined & queue->mask], last || gone))
        queue->joined++;
    pthread_mutex_unlock(&queue->lock);
}

void trace_join(struct trace_device *devices, struct trace_queue *queues, bool last,
                uint64_t until_ns)
{
    for (struct trace_queue *queue = queues; queue; queue = queue->next)
        if (last || queue->device->clock_now.count > 0)
            join(queue, last);
    place_all(devices, queues, until_ns);
}
