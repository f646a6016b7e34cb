// What the plugin keeps account of beside the engine: records and times of a queue, and threads that copy memory
// that is not pinned.
#include <stdlib.h>

#include "plugins/sim/sim.h"

// Records of a queue, for waits and for the program's own times.

static struct sim_record *record_at(const struct sim_virtual_queue *queue, uint64_t number)
{
    return &queue->records[number & (queue->record_room - 1)];
}

static bool grow_records(struct sim_virtual_queue *queue)
{
    const size_t room = queue->record_room ? 2 * queue->record_room : SIM_HISTORY;
    struct sim_record *records = calloc(room, sizeof *records);
    if (!records)
        return false;
    for (uint64_t number = queue->first_record; number < queue->next_record; number++)
        records[number & (room - 1)] = *record_at(queue, number);
    free(queue->records);
    queue->records = records;
    queue->record_room = room;
    return true;
}

// Those that are complete, but for the last ones.
static void drop_old(struct sim_virtual_queue *queue, uint64_t keep)
{
    while (queue->next_record - queue->first_record > keep &&
           record_at(queue, queue->first_record)->complete)
        queue->first_record++;
}

bool sim_record_add(struct sim_virtual_queue *queue, uint64_t sequence, struct sim_point point,
                    uint64_t submit_ns)
{
    drop_old(queue, SIM_HISTORY - 1);
    if (queue->next_record - queue->first_record >= queue->record_room && !grow_records(queue))
        return false;
    *record_at(queue, queue->next_record++) =
        (struct sim_record){.sequence = sequence, .point = point, .submit_ns = submit_ns};
    return true;
}

struct sim_record *sim_record_find(const struct sim_virtual_queue *queue, uint64_t sequence)
{
    uint64_t first = queue->first_record;
    uint64_t end = queue->next_record;
    while (first < end) {
        const uint64_t middle = first + (end - first) / 2;
        if (record_at(queue, middle)->sequence < sequence)
            first = middle + 1;
        else
            end = middle;
    }
    if (first == queue->next_record || record_at(queue, first)->sequence != sequence)
        return NULL;
    return record_at(queue, first);
}

// Times of operations, for the links before this one. If there is no memory for more of them, the oldest are dropped.

static bool grow_times(struct sim_virtual_queue *queue)
{
    const size_t room = queue->time_room ? 2 * queue->time_room : 64;
    if (room > SIM_TIMES_MOST)
        return false;
    struct weir_operation_time *times = calloc(room, sizeof *times);
    if (!times)
        return false;
    for (uint64_t number = queue->fetched; number < queue->kept; number++)
        times[number & (room - 1)] = queue->times[number & (queue->time_room - 1)];
    free(queue->times);
    queue->times = times;
    queue->time_room = room;
    return true;
}

static void keep_time(struct sim_virtual_queue *queue, uint64_t sequence, uint64_t start_ns,
                      uint64_t end_ns)
{
    if (!queue->keeps_times)
        return;
    if (queue->kept - queue->fetched == queue->time_room && !grow_times(queue)) {
        if (queue->time_room == 0)
            return;
        queue->fetched++;
    }
    queue->times[queue->kept++ & (queue->time_room - 1)] =
        (struct weir_operation_time){.sequence = sequence, .start_ns = start_ns, .end_ns = end_ns};
}

static void end_record(struct sim_virtual_queue *queue, uint64_t sequence, uint64_t end_ns)
{
    struct sim_record *record = sim_record_find(queue, sequence);
    if (!record)
        return;
    record->end_ns = end_ns;
    record->complete = true;
    drop_old(queue, SIM_HISTORY);
}

static void end_graph(struct sim_virtual_queue *queue, uint64_t sequence, uint64_t end_ns)
{
    end_record(queue, sequence, end_ns);
    if (queue->graph_start_ns != UINT64_MAX)
        keep_time(queue, sequence, queue->graph_start_ns, end_ns);
    queue->graph_start_ns = UINT64_MAX;
}

void sim_record_done(const struct sim_done *done)
{
    struct sim_virtual_queue *queue = done->owner;
    const uint64_t sequence = done->tag >> SIM_TAG_BITS;
    if (!queue)
        return; // of a device that was lost
    queue->end_ns = done->end_ns;
    switch ((enum sim_tag)(done->tag & ((1u << SIM_TAG_BITS) - 1))) {
    case SIM_TAG_RECORD:
        end_record(queue, sequence, done->end_ns);
        break;
    case SIM_TAG_TIMED:
        keep_time(queue, sequence, done->start_ns, done->end_ns);
        break;
    case SIM_TAG_PART:
        if (done->start_ns < queue->graph_start_ns)
            queue->graph_start_ns = done->start_ns;
        break;
    case SIM_TAG_GRAPH_END:
        end_graph(queue, sequence, done->end_ns);
        break;
    default:
        break;
    }
}

weir_status sim_queue_times(const struct weir_link *link, weir_queue *object,
                            struct weir_operation_time *times, size_t time_size, size_t capacity,
                            size_t *out_count)
{
    struct sim_virtual_queue *queue = sim_queue_of(link, object);
    struct sim *sim = queue->sim;
    *out_count = 0;
    pthread_mutex_lock(&sim->lock);
    for (; queue->fetched < queue->kept && *out_count < capacity; queue->fetched++)
        weir_write((char *)times + (*out_count)++ * time_size, time_size,
                   &queue->times[queue->fetched & (queue->time_room - 1)], sizeof *queue->times);
    pthread_mutex_unlock(&sim->lock);
    return WEIR_OK;
}

// Memory that is not pinned: uploads and downloads copy through pinned pieces. Of a small transfer the
// calling thread copies one after the other; of a large one several threads do, each a part at a time,
// in the order in which the calling thread gives them away; one that has nothing to do sleeps, and has to
// wake first. That the calling thread copies a part which it waits for, and which none has begun, is left
// out.

static uint64_t copy_ns(struct sim *sim, size_t size, uint64_t bytes_per_s)
{
    const double ns = bytes_per_s ? (double)size * 1e9 / (double)bytes_per_s + 0.5 : 0;
    return sim_vary(&sim->jitter, (uint64_t)ns);
}

// Of one of that many threads.
static uint64_t rate_of(const struct sim_staging_rate *rate, uint32_t threads)
{
    if (threads == 0 || rate->all_bytes_per_s == 0)
        return rate->bytes_per_s;
    const uint64_t part = rate->all_bytes_per_s / threads;
    return rate->bytes_per_s == 0 || part < rate->bytes_per_s ? part : rate->bytes_per_s;
}

static uint32_t threads_of(const struct weir_host_note *note)
{
    const uint32_t threads =
        (note->flags & WEIR_HOST_NOTE_THREADS_MASK) >> WEIR_HOST_NOTE_THREADS_SHIFT;
    return threads < SIM_COPIERS_MOST ? threads : SIM_COPIERS_MOST;
}

// The thread that is free first takes it.
static uint64_t give_away(struct sim *sim, uint32_t threads, uint64_t ns)
{
    const uint64_t now_ns = sim_now_ns();
    uint64_t *first = &sim->copiers.free_ns[0];
    for (uint32_t i = 1; i < threads; i++)
        if (sim->copiers.free_ns[i] < *first)
            first = &sim->copiers.free_ns[i];
    *first = (*first > now_ns ? *first : now_ns + sim->model->wake_ns) + ns;
    return *first;
}

static struct sim_piece *find(struct sim_copiers *copiers, const struct weir_host_note *note)
{
    for (size_t i = 0; i < copiers->count; i++)
        if (copiers->pieces[i].buffer == note->u.access.buffer &&
            copiers->pieces[i].offset == note->u.access.offset)
            return &copiers->pieces[i];
    return NULL;
}

// One that has no room takes its time when it ends, as if the calling thread copied it.
static void begin(struct sim *sim, const struct weir_host_note *note, uint64_t ns)
{
    struct sim_copiers *copiers = &sim->copiers;
    if (threads_of(note) == 0 || copiers->count == SIM_PIECES_MOST)
        return;
    copiers->pieces[copiers->count++] =
        (struct sim_piece){note->u.access.buffer, note->u.access.offset,
                           give_away(sim, threads_of(note), ns)};
}

static void end(struct sim *sim, const struct weir_host_note *note, uint64_t ns)
{
    struct sim_piece *piece = find(&sim->copiers, note);
    if (!piece) {
        sim_spend(sim, ns);
        return;
    }
    sim_wait_until(piece->end_ns);
    *piece = sim->copiers.pieces[--sim->copiers.count];
}

static void take_time(struct sim *sim, const struct weir_host_note *note)
{
    sim_enter(sim);
    const uint64_t ns =
        copy_ns(sim, note->u.access.size, rate_of(&sim->model->staging, threads_of(note)));
    (note->kind == WEIR_HOST_NOTE_BEGIN ? begin : end)(sim, note, ns);
    sim_leave(sim);
}

// A beginning that a link refuses was none.
weir_status sim_host_note(const struct weir_link *link, const struct weir_host_note *note)
{
    struct sim *sim = sim_of(link);
    const bool piece = sim->host == SIM_HOST_FIXED && note->flags & WEIR_HOST_NOTE_INTERNAL;
    if (piece && note->kind == WEIR_HOST_NOTE_END)
        take_time(sim, note);
    const weir_status status = link->next->ops->host_note(link->next, note);
    if (piece && note->kind == WEIR_HOST_NOTE_BEGIN && status >= 0)
        take_time(sim, note);
    return status;
}
