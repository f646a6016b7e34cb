// What the plugin keeps account of beside the engine: records and times of a queue, what kernels took on the
// next link, threads that copy memory that is not pinned, and the jitter.
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread_local.h"
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

void sim_record_done(void *user, const struct sim_done *done)
{
    const struct sim *sim = user;
    struct sim_virtual_queue *queue = sim->queues[done->point.queue];
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
    sim_take(sim);
    for (; queue->fetched < queue->kept && *out_count < capacity; queue->fetched++)
        weir_write((char *)times + (*out_count)++ * time_size, time_size,
                   &queue->times[queue->fetched & (queue->time_room - 1)], sizeof *queue->times);
    pthread_mutex_unlock(&sim->lock);
    return WEIR_OK;
}

// Kernels without a cost, if `kernels = scale`: what the first launch of each size took on
// the next link, times a factor. To be measured a launch runs alone in its queue, and its submit
// waits for it; later ones of the size do not. Sizes are in a hash table with open addressing.

#define MOST_NS (365.0 * 86400e9)

struct sim_measured {
    struct sim_launch launch; // the kernel's name is this structure's; NULL: free
    uint64_t ns;
};

// A function of the host, in which nothing is measured: the queue that would have to finish may be
// its own. One that never ran, since its queue failed, stays until the end.
struct sim_call {
    struct sim *sim;
    struct sim_call *next;
    struct sim_call *next_free;
    weir_host_function function;
    void *user;
};

static WEIR_MODULE_THREAD_LOCAL bool in_host_call;

// Sizes.

// A value that is no number is equal to itself here.
static uint64_t bits_of(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static uint64_t hash(const struct sim_launch *launch)
{
    uint64_t value = UINT64_C(14695981039346656037);
    const double numbers[] = {launch->blocks, launch->items, launch->bytes};
    for (const char *c = launch->kernel; *c; c++)
        value = (value ^ (unsigned char)*c) * UINT64_C(1099511628211);
    for (size_t i = 0; i < 3; i++)
        value = (value ^ bits_of(numbers[i])) * UINT64_C(1099511628211);
    for (size_t i = 0; i < SIM_ARGUMENTS; i++)
        value = (value ^ bits_of(launch->arguments[i])) * UINT64_C(1099511628211);
    return value ^ value >> 32;
}

static bool is_same(const struct sim_launch *a, const struct sim_launch *b)
{
    bool same = a->blocks == b->blocks && a->items == b->items && a->bytes == b->bytes;
    for (size_t i = 0; i < SIM_ARGUMENTS && same; i++)
        same = bits_of(a->arguments[i]) == bits_of(b->arguments[i]);
    return same && strcmp(a->kernel, b->kernel) == 0;
}

// Where it is, or would be. There is room.
static struct sim_measured *place_of(struct sim_measured *items, size_t room,
                                     const struct sim_launch *launch)
{
    size_t at = hash(launch) & (room - 1);
    while (items[at].launch.kernel && !is_same(&items[at].launch, launch))
        at = (at + 1) & (room - 1);
    return &items[at];
}

static bool reserve(struct sim_scale *scale)
{
    if (2 * scale->count < scale->room)
        return true;
    const size_t room = scale->room ? 2 * scale->room : 64;
    struct sim_measured *items = calloc(room, sizeof *items);
    if (!items)
        return false;
    for (size_t i = 0; i < scale->room; i++)
        if (scale->items[i].launch.kernel)
            *place_of(items, room, &scale->items[i].launch) = scale->items[i];
    free(scale->items);
    scale->items = items;
    scale->room = room;
    return true;
}

static bool add(struct sim_scale *scale, const struct sim_launch *launch, double ns)
{
    char *kernel = strdup(launch->kernel);
    if (!kernel || !reserve(scale)) {
        free(kernel);
        return false;
    }
    struct sim_measured *at = place_of(scale->items, scale->room, launch);
    if (at->launch.kernel) { // by another thread meanwhile
        free(kernel);
        return true;
    }
    at->launch = *launch;
    at->launch.kernel = kernel;
    at->ns = (uint64_t)(ns * scale->factor < MOST_NS ? ns * scale->factor + 0.5 : MOST_NS);
    scale->count++;
    return true;
}

bool sim_scale_find(const struct sim_scale *scale, const struct sim_launch *launch,
                    uint64_t *out_ns)
{
    if (scale->count == 0)
        return false;
    const struct sim_measured *at = place_of(scale->items, scale->room, launch);
    *out_ns = at->ns;
    return at->launch.kernel;
}

void sim_scale_finish(struct sim_scale *scale)
{
    for (size_t i = 0; i < scale->room; i++)
        free((char *)scale->items[i].launch.kernel);
    free(scale->items);
    while (scale->calls) {
        struct sim_call *next = scale->calls->next;
        free(scale->calls);
        scale->calls = next;
    }
}

// Measuring.

// The driver's time of the operation, if the next link keeps times, as it does for the plugin trace.
static void read_time(const struct weir_link *next, weir_queue *object, uint64_t sequence,
                      double *ns)
{
    struct weir_operation_time times[16];
    size_t count = 1;
    while (count > 0 &&
           next->ops->queue_times(next, object, times, sizeof *times, 16, &count) == WEIR_OK)
        for (size_t i = 0; i < count; i++)
            if (times[i].sequence == sequence)
                *ns = (double)(times[i].end_ns - times[i].start_ns);
}

static weir_status run_alone(const struct weir_link *next, weir_queue *object,
                             const struct weir_operation *operation, double *out_ns)
{
    weir_status status = next->ops->queue_finish(next, object);
    const uint64_t began = weir_clock_now_ns();
    if (status == WEIR_OK)
        status = next->ops->queue_submit(next, object, operation);
    if (status == WEIR_OK)
        status = next->ops->queue_finish(next, object);
    *out_ns = (double)(weir_clock_now_ns() - began);
    if (status == WEIR_OK)
        read_time(next, object, operation->sequence, out_ns);
    return status;
}

static weir_status measure(const struct weir_link *link, weir_queue *object,
                           const struct weir_operation *operation, const struct sim_launch *launch)
{
    struct sim *sim = sim_of(link);
    double ns;
    if (in_host_call)
        return weir_host_fail(link->host, WEIR_ERROR_UNSUPPORTED,
                              "launch it with these sizes from another thread first, or give it a "
                              "cost",
                              "sim: the kernel '%.200s' has no cost, and cannot be measured in a "
                              "function of the host",
                              launch->kernel);
    sim_go(sim);
    const weir_status status = run_alone(link->next, object, operation, &ns);
    sim_return(sim);
    if (status < 0)
        return status;
    return add(&sim->scale, launch, ns) ? WEIR_OK
                                        : weir_host_no_memory(link->host, "a kernel's time");
}

weir_status sim_scale_launch(const struct weir_link *link, weir_queue *object,
                             const struct weir_operation *operation, bool *out_ran)
{
    const struct sim *sim = sim_of(link);
    uint64_t ns;
    *out_ran = false;
    if (sim->scale.factor == 0 || operation->kind != WEIR_OPERATION_LAUNCH)
        return WEIR_OK;
    const struct sim_launch launch = sim_launch_of(link, operation);
    if (sim_kernel_ns(sim->model, &launch, &ns) || sim_scale_find(&sim->scale, &launch, &ns))
        return WEIR_OK;
    *out_ran = true;
    return measure(link, object, operation, &launch);
}

// Functions of the host.

static weir_status call(void *user)
{
    struct sim_call *own = user;
    struct sim *sim = own->sim;
    in_host_call = true;
    const weir_status status = own->function(own->user);
    in_host_call = false;
    pthread_mutex_lock(&sim->lock);
    own->next_free = sim->scale.free_calls;
    sim->scale.free_calls = own;
    pthread_mutex_unlock(&sim->lock);
    return status;
}

static struct sim_call *take_call(struct sim_scale *scale)
{
    struct sim_call *own = scale->free_calls;
    if (own) {
        scale->free_calls = own->next_free;
        return own;
    }
    own = calloc(1, sizeof *own);
    if (!own)
        return NULL;
    own->next = scale->calls;
    scale->calls = own;
    return own;
}

weir_status sim_scale_call(const struct weir_link *link, struct weir_operation *operation)
{
    struct sim *sim = sim_of(link);
    if (sim->scale.factor == 0 || operation->kind != WEIR_OPERATION_HOST_CALL)
        return WEIR_OK;
    struct sim_call *own = take_call(&sim->scale);
    if (!own)
        return weir_host_no_memory(link->host, "a function of the host");
    own->sim = sim;
    own->function = operation->u.host_call.function;
    own->user = operation->u.host_call.user;
    operation->u.host_call.function = call;
    operation->u.host_call.user = own;
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
    const uint64_t now_ns = sim_self(sim)->now_ns;
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

static void forget(struct sim_copiers *copiers, struct sim_piece *piece)
{
    *piece = copiers->pieces[--copiers->count];
}

// One that has no room takes its time when it ends, as if the calling thread copied it. One in its memory
// that has not ended was refused by a link before this one, which did not tell its end.
static void begin(struct sim *sim, const struct weir_host_note *note, uint64_t ns)
{
    struct sim_copiers *copiers = &sim->copiers;
    struct sim_piece *refused = find(copiers, note);
    if (refused)
        forget(copiers, refused);
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
    sim_wait_until(sim, piece->end_ns);
    forget(&sim->copiers, piece);
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

// Jitter. A fixed sequence of numbers, so that two runs are the same. Bytes vary in place of bandwidths: their
// time is the same, and what both directions share stays the model's.

#define CALLS_A_SLOW_ONE 100
#define SLOW_ONE 10

// splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
static uint64_t next(struct sim_jitter *jitter)
{
    uint64_t z = jitter->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t sim_vary(struct sim_jitter *jitter, uint64_t amount)
{
    if (!(jitter->share > 0))
        return amount;
    const double at = (double)(next(jitter) >> 11) * 0x1p-52 - 1; // -1 to 1
    return (uint64_t)((double)amount * (1 + jitter->share * at) + 0.5);
}

uint64_t sim_vary_call(struct sim_jitter *jitter, uint64_t ns)
{
    if (!(jitter->share > 0))
        return ns;
    const bool slow = next(jitter) % CALLS_A_SLOW_ONE == 0;
    return sim_vary(jitter, slow ? SLOW_ONE * ns : ns);
}
