// The writing thread. In each round it reads the clocks, fetches the times of every queue, joins
// them with the submitted operations, and writes the complete ones. Between two rounds it sleeps,
// longer if nothing happened, and is woken by a submitter that fills a ring.
//
// Other threads only add to the front of the lists, and only this thread removes from them, so it
// reads the part of a list that it has already seen without a lock.
#include <inttypes.h>

#include "base/text.h"
#include "base/wait.h"
#include "plugins/trace/parts.h"

#define SHORTEST_PAUSE_NS UINT64_C(2000000)
#define LONGEST_PAUSE_NS UINT64_C(50000000)
// The distance between readings of the clocks: shorter at first, while there are few.
#define PAIR_SOON_NS UINT64_C(100000000)
#define PAIR_LATE_NS UINT64_C(500000000)
#define PAIRS_SOON 16
// The number of operations of one queue that are written before the others and the clocks are
// served.
#define WRITE_AT_ONCE 512

struct round {
    struct trace_device *devices;
    struct trace_queue *queues;
    struct trace_spans *spans;
    bool last;
    bool more;     // there is more to write: no sleep
    bool happened; // something was written
};

// Clocks.

void trace_pair_clocks(const struct weir_link *link, struct trace_device *device, bool now)
{
    const uint64_t distance = device->pairs < PAIRS_SOON ? PAIR_SOON_NS : PAIR_LATE_NS;
    uint64_t host_ns;
    uint64_t device_ns;
    if (device->queue_count == 0 ||
        (device->pairs > 0 && !now && weir_clock_now_ns() - device->paired_ns < distance))
        return;
    if (link->next->ops->device_clock(link->next, device->object, &host_ns, &device_ns) != WEIR_OK)
        return;
    weir_clock_map_add(&device->clock, device_ns, host_ns);
    device->paired_ns = host_ns;
    device->pairs++;
}

// Times.
//
// Operations of a queue finish in the order of their submission, and their times are in the same
// order. A time without an entry belongs to an operation that was not kept because the ring was full. An
// entry that is older than the newest time, and has none, gets none: it was not fetched soon enough.

static bool has_run(const struct trace_entry *entry)
{
    return atomic_load_explicit(&entry->called, memory_order_acquire);
}

// Whether the note has the times of that entry. In virtual time what the front end runs has those of the links after
// this one. A plugin's own host call has the number of the operation before it.
static bool is_of(const struct trace_queue *queue, const struct trace_entry *entry,
                  const struct weir_host_note *note)
{
    if (note->kind == WEIR_HOST_NOTE_TIMES)
        return entry->row.kind == WEIR_TRACE_NOTE;
    if (queue->trace->clock || has_run(entry))
        return false;
    return note->flags & WEIR_HOST_NOTE_COLLECTIVE
               ? entry->row.kind == WEIR_TRACE_COLLECTIVE
               : entry->row.kind == WEIR_TRACE_HOST_CALL &&
                     entry->internal == (note->flags & WEIR_HOST_NOTE_INTERNAL);
}

// The times of an operation on the host's clock: of a NOTE, whose entry is kept until it has them, or of what the front
// end has carried out, possibly before the submit has returned.
static void set_times(struct trace_queue *queue, const struct weir_host_note *note)
{
    const uint64_t begun = atomic_load_explicit(&queue->begun, memory_order_acquire);
    uint64_t low = queue->joined;
    uint64_t high = begun;
    while (low < high) { // entries are in the order of their numbers
        const uint64_t middle = low + (high - low) / 2;
        if (queue->ring[middle & queue->mask].row.sequence < note->u.ran.sequence)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < begun; low++) {
        struct trace_entry *entry = &queue->ring[low & queue->mask];
        if (entry->row.sequence != note->u.ran.sequence)
            return;
        if (!is_of(queue, entry, note))
            continue;
        entry->row.start_ns = note->u.ran.begin_ns;
        entry->row.end_ns = note->u.ran.end_ns;
        atomic_store_explicit(&entry->called, true, memory_order_release);
        return;
    }
}

weir_status trace_host_note(const struct weir_link *link, const struct weir_host_note *note)
{
    if (note->kind == WEIR_HOST_NOTE_RAN || note->kind == WEIR_HOST_NOTE_TIMES) {
        struct trace_queue *queue = trace_queue_of(link, note->u.ran.queue);
        pthread_mutex_lock(&queue->lock);
        set_times(queue, note);
        pthread_mutex_unlock(&queue->lock);
    }
    return link->next->ops->host_note(link->next, note);
}

// Whether a time of that number is of a later entry than the next one. A plugin's own operations have the number of the
// operation before them. All times of a collective's number are its own: the front end may carry it out as copies.
static bool is_of_later(const struct trace_queue *queue, uint64_t sequence, uint64_t begun)
{
    const struct trace_entry *entry = &queue->ring[queue->noted & queue->mask];
    const bool submitted = queue->noted + 1 < begun; // before that the flags are the submitter's
    if (entry->row.sequence != sequence)
        return entry->row.sequence < sequence;
    return (submitted && !entry->row.timed) ||
           (entry->row.kind != WEIR_TRACE_COLLECTIVE && entry->seen >= entry->times);
}

// Stores a time, on the device's clock, with its entry, of which the submit may not have returned. Nodes of a graph may
// overlap: all of them are one operation.
static void note_time(struct trace_queue *queue, const struct weir_operation_time *time)
{
    const uint64_t begun = atomic_load_explicit(&queue->begun, memory_order_acquire);
    if (queue->noted < queue->joined)
        queue->noted = queue->joined;
    while (queue->noted < begun && is_of_later(queue, time->sequence, begun))
        queue->noted++;
    struct trace_entry *entry = &queue->ring[queue->noted & queue->mask];
    if (queue->noted == begun || entry->row.sequence != time->sequence || has_run(entry))
        return;
    if (entry->seen == 0 || time->start_ns < entry->row.start_ns)
        entry->row.start_ns = time->start_ns;
    if (entry->seen == 0 || time->end_ns > entry->row.end_ns)
        entry->row.end_ns = time->end_ns;
    entry->row.start_is_earliest |= time->start_is_earliest;
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

// Operations of a queue never overlap, so rounding errors of the clocks are corrected.
static void put_after_last(struct trace_queue *queue, struct trace_entry *entry)
{
    if (entry->row.start_ns < queue->end_ns)
        entry->row.start_ns = queue->end_ns;
    if (entry->row.end_ns < entry->row.start_ns)
        entry->row.end_ns = entry->row.start_ns;
    queue->end_ns = entry->row.end_ns;
}

// Converts the times to the host's clock. An earliest start is not later than the end.
static void convert(struct trace_queue *queue, struct trace_entry *entry)
{
    const struct weir_clock_map *clock = &queue->device->clock_now;
    entry->row.start_ns = weir_clock_map_b(clock, entry->row.start_ns);
    entry->row.end_ns = weir_clock_map_b(clock, entry->row.end_ns);
    if (entry->row.start_is_earliest && entry->row.start_ns < entry->row.submit_ns)
        entry->row.start_ns = entry->row.submit_ns;
    if (entry->row.start_is_earliest && entry->row.start_ns > entry->row.end_ns &&
        entry->row.end_ns > queue->end_ns)
        entry->row.start_ns = entry->row.end_ns;
    put_after_last(queue, entry);
}

// Completes the next entry, or returns false where its times may still come. Once a later operation has run, or with
// `last`, they do not: a host call after a failure never runs, nor does a collective.
static bool join_next(struct trace_queue *queue, uint64_t head, bool last)
{
    struct trace_entry *entry = &queue->ring[queue->joined & queue->mask];
    const enum weir_trace_kind kind = entry->row.kind;
    const bool called = has_run(entry);
    if (!entry->row.timed)
        return true;
    // Times of a note may never come, and must not keep later entries from being written. Where the device has an
    // engine for collectives, the front end may still carry one out, of which the backend times the copies.
    const bool over = last || queue->last_fetched > entry->row.sequence ||
                      (kind == WEIR_TRACE_NOTE && head - queue->joined > queue->mask / 2);
    const bool whole = entry->times > 0 && entry->seen >= entry->times &&
                       (kind != WEIR_TRACE_COLLECTIVE || queue->trace->clock);
    if (!called && !whole && !over)
        return false;
    if (called) {
        put_after_last(queue, entry);
    } else if (entry->seen > 0 && queue->device->clock_now.count > 0) {
        convert(queue, entry);
    } else {
        entry->row.timed = false;
        queue->trace->unfinished++;
    }
    return true;
}

// Fetches the times so far, and stores them with their entries. `last`: there will be no more times.
static void join(struct trace_queue *queues, bool last)
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

// Writing.

static uint64_t since_base(const struct trace *trace, uint64_t time_ns)
{
    return time_ns > trace->base_ns ? time_ns - trace->base_ns : 0;
}

// The list begins with the newest.
static void announce_devices(struct trace *trace, struct trace_device *device)
{
    if (!device || device->announced)
        return;
    announce_devices(trace, device->next);
    weir_trace_writer_device(trace->writer, &device->row);
    device->announced = true;
}

static void keep_wait(struct trace_queue *queue, const struct trace_entry *entry)
{
    if (entry->row.failed)
        return;
    if (queue->wait_count == TRACE_WAITS) {
        memmove(queue->waits, queue->waits + 1, (TRACE_WAITS - 1) * sizeof *queue->waits);
        queue->wait_count--;
    }
    queue->waits[queue->wait_count++] = entry->u.wait;
}

// "all-reduce" as "AllReduce".
static size_t append_kind(char *text, size_t used, const char *kind)
{
    bool upper = true;
    for (; *kind && used + 1 < TRACE_TITLE_SIZE; kind++) {
        if (*kind != '-')
            text[used++] = upper ? weir_text_upper(*kind) : *kind;
        upper = *kind == '-';
    }
    return used;
}

// Tools take a name that begins with "nccl" and has "Kernel" in it for communication.
static void make_name(const struct weir_trace_collective *collective, char *name)
{
    size_t used = (size_t)snprintf(name, TRACE_TITLE_SIZE, "ncclKernel_");
    used = append_kind(name, used, collective->kind);
    if (collective->reduction[0])
        used =
            append_kind(name, used + (size_t)snprintf(name + used, 2, "_"), collective->reduction);
    snprintf(name + used, TRACE_TITLE_SIZE - used, "%s%s", collective->element[0] ? "_" : "",
             collective->element);
}

static void write_operation(struct trace *trace, struct trace_queue *queue,
                            const struct trace_entry *entry)
{
    struct weir_trace_operation row = entry->row;
    struct weir_trace_scalar scalars[TRACE_SCALARS];
    char name[TRACE_TITLE_SIZE];
    for (size_t i = 0; i < row.scalar_count; i++)
        scalars[i] =
            (struct weir_trace_scalar){entry->u.launch.arguments[i], entry->u.launch.values[i]};
    row.scalars = scalars;
    row.queue = queue->row.id;
    row.engine = row.timed ? row.engine : WEIR_ENGINE_NONE;
    row.start_is_earliest = row.start_is_earliest && row.timed;
    row.submit_ns = since_base(trace, row.submit_ns);
    row.submit_end_ns = since_base(trace, row.submit_end_ns);
    row.start_ns = since_base(trace, row.start_ns);
    row.end_ns = since_base(trace, row.end_ns);
    row.waits = queue->waits;
    row.wait_count = queue->wait_count;
    if (row.collective) {
        make_name(row.collective, name);
        row.name = name;
    }
    if (!queue->announced)
        weir_trace_writer_queue(trace->writer, &queue->row);
    queue->announced = true;
    weir_trace_writer_operation(trace->writer, &row);
    queue->wait_count = 0;
}

// A program that submits without end fills no disk.
static bool is_full(struct trace *trace)
{
    char text[640];
    if (trace->full || weir_trace_writer_bytes(trace->writer) < trace->limit)
        return trace->full;
    trace->full = true;
    snprintf(text, sizeof text,
             "%s: has reached %" PRIu64 " MiB, and nothing more is kept; `limit` in [trace] "
             "allows more",
             trace->path, trace->limit >> 20);
    trace->link->host->log(WEIR_LOG_WARNING, "trace", text);
    return true;
}

static void write_queue(struct trace *trace, struct trace_queue *queue, struct round *round)
{
    uint64_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);
    const uint64_t end =
        queue->joined - tail > WRITE_AT_ONCE ? tail + WRITE_AT_ONCE : queue->joined;
    if (tail == end)
        return;
    for (; tail < end; tail++) {
        const struct trace_entry *entry = &queue->ring[tail & queue->mask];
        if ((enum weir_operation_kind)entry->row.kind == WEIR_OPERATION_WAIT)
            keep_wait(queue, entry);
        else if (is_full(trace))
            trace->beyond++;
        else
            write_operation(trace, queue, entry);
    }
    atomic_store_explicit(&queue->tail, end, memory_order_release);
    round->happened = true;
    round->more = round->more || queue->joined > end;
}

void trace_queue_free(struct trace_queue *queue)
{
    free(queue->ring);
    free(queue->times);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

// Frees destroyed queues of which everything is written.
static void free_queues(struct trace *trace, struct trace_queue *queue)
{
    while (queue) {
        struct trace_queue *next = queue->next;
        pthread_mutex_lock(&queue->lock);
        const bool gone = !queue->object;
        pthread_mutex_unlock(&queue->lock);
        if (gone && atomic_load(&queue->destroyed) &&
            atomic_load(&queue->tail) == atomic_load(&queue->head)) {
            trace->dropped += atomic_load(&queue->dropped);
            pthread_mutex_lock(&trace->lists);
            struct trace_queue **at = &trace->queues;
            while (*at != queue)
                at = &(*at)->next;
            *at = next;
            pthread_mutex_unlock(&trace->lists);
            trace_queue_free(queue);
        }
        queue = next;
    }
}

// Of each thread in the order of their ends, its name first, so that two runs in virtual time write the same.
static int by_thread(const void *a, const void *b)
{
    const struct weir_trace_span *x = &((const struct trace_span_entry *)a)->span;
    const struct weir_trace_span *y = &((const struct trace_span_entry *)b)->span;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    return x->begin_ns > y->begin_ns ? -1 : x->begin_ns < y->begin_ns;
}

static void write_spans(struct trace *trace, struct round *round)
{
    struct trace_spans *spans = round->spans;
    round->happened = round->happened || spans->count > 0;
    qsort(spans->items, spans->count, sizeof *spans->items, by_thread);
    for (size_t i = 0; i < spans->count; i++) {
        struct weir_trace_span row = spans->items[i].span;
        row.name = spans->items[i].name;
        row.begin_ns = since_base(trace, row.begin_ns);
        row.end_ns = since_base(trace, row.end_ns);
        if (row.kind == 0)
            weir_trace_writer_thread(trace->writer, &(struct weir_trace_thread){.id = row.thread,
                                                                                .name = row.name});
        else if (!is_full(trace))
            weir_trace_writer_span(trace->writer, &row);
    }
    spans->count = 0;
}

static void flush(struct trace *trace, uint64_t now_ns)
{
    if (now_ns - trace->flushed_ns < trace->flush_ns)
        return;
    trace->flushed_ns = now_ns;
    if (weir_trace_writer_flush(trace->writer) || trace->write_failed)
        return;
    trace->write_failed = true;
    char text[640];
    snprintf(text, sizeof text,
             "%s: writing failed, and nothing more is traced; weir_close() tells why", trace->path);
    trace->link->host->log(WEIR_LOG_ERROR, "trace", text);
}

static void go_round(struct trace *trace, struct round *round)
{
    pthread_mutex_lock(&trace->lists);
    round->devices = trace->devices;
    round->queues = trace->queues;
    round->spans = &trace->spans[trace->filling];
    trace->filling = !trace->filling;
    pthread_mutex_unlock(&trace->lists);
    round->more = false;
    round->happened = false;

    const uint64_t now_ns = weir_clock_now_ns();
    for (struct trace_device *device = round->devices; device; device = device->next) {
        pthread_mutex_lock(&device->lock);
        trace_pair_clocks(trace->link, device, false);
        device->clock_now = device->clock;
        pthread_mutex_unlock(&device->lock);
    }
    join(round->queues, round->last);
    announce_devices(trace, round->devices);
    write_spans(trace, round);
    for (struct trace_queue *queue = round->queues; queue; queue = queue->next)
        write_queue(trace, queue, round);
    free_queues(trace, round->queues);
    flush(trace, now_ns);
}

static void close_file(struct trace *trace)
{
    const struct weir_trace_meta end = {
        .end_ns = since_base(trace, trace_now_ns(trace)),
        .dropped = trace->dropped,
        .beyond = trace->beyond,
        .unfinished = trace->unfinished,
    };
    trace->write_failed =
        !weir_trace_writer_close(&trace->writer, &end, trace->failure, sizeof trace->failure);
}

// In virtual time, with the lock held: no rounds but those that threads wait for.
static void serve(struct trace *trace, struct round *round)
{
    const uint64_t asked = trace->asked;
    const bool work = asked > trace->served;
    pthread_mutex_unlock(&trace->lock);
    if (!work)
        flush(trace, weir_clock_now_ns());
    else
        do
            go_round(trace, round);
        while (round->more);
    pthread_mutex_lock(&trace->lock);
    trace->served = asked;
    pthread_cond_broadcast(&trace->written);
}

void trace_drain(void *argument)
{
    struct trace *trace = argument;
    struct round round = {.last = false};
    uint64_t pause_ns = trace->clock ? trace->flush_ns : SHORTEST_PAUSE_NS;

    pthread_mutex_lock(&trace->lock);
    while (!trace->stop) {
        if (!round.more && !trace->pressed)
            weir_wait_until(&trace->wake, &trace->lock, weir_clock_deadline(pause_ns));
        trace->pressed = false;
        if (trace->clock) {
            serve(trace, &round);
            continue;
        }
        pthread_mutex_unlock(&trace->lock);
        go_round(trace, &round);
        pause_ns = round.happened ? SHORTEST_PAUSE_NS : 2 * pause_ns;
        pause_ns = pause_ns < LONGEST_PAUSE_NS ? pause_ns : LONGEST_PAUSE_NS;
        pthread_mutex_lock(&trace->lock);
    }
    pthread_mutex_unlock(&trace->lock);
    // Every queue is destroyed by now. This thread has all signals blocked: SIGPIPE of a pipe without a reader.
    round.last = true;
    do
        go_round(trace, &round);
    while (round.more);
    close_file(trace);
}

void trace_drain_now(struct trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    const uint64_t turn = ++trace->asked;
    trace->pressed = true;
    pthread_cond_signal(&trace->wake);
    while (trace->served < turn)
        pthread_cond_wait(&trace->written, &trace->lock);
    pthread_mutex_unlock(&trace->lock);
}
