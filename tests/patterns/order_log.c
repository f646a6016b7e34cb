// Every queue has a vector clock: how much of each queue's work is ordered before its
// next operation. A record keeps a copy, a wait merges one in.
#include "tests/patterns/order_log.h"

#include <stdio.h>
#include <string.h>

enum {
    QUEUES = 16,
    BUFFERS = 16,
    WORKS = 2048,
    RECORDS = 2048,
    WAITS = 64 // of one operation
};

struct clock {
    unsigned of[QUEUES];
};

struct weir_device {
    struct weir_limits limits;
};

struct weir_buffer {
    size_t size;
    weir_placement placement;
};

struct weir_queue {
    char label[80];
    bool exists;
    bool failed;
    bool flushed;
    struct clock clock;
};

struct work {
    unsigned queue;
    char kind;
    struct order_range reads;
    struct order_range writes;
    struct clock clock;    // its own included
    unsigned waits[WAITS]; // records, by index
    unsigned wait_count;
};

struct record {
    struct clock clock;
    unsigned queue;
    unsigned work; // number of operations submitted before
};

static struct weir_device device;
static struct weir_buffer buffers[BUFFERS];
static unsigned buffer_count;
static struct weir_queue queues[QUEUES];
static unsigned queues_made;
static unsigned refused_queue;
static struct work works[WORKS];
static unsigned work_count;
static struct record records[RECORDS];
static unsigned record_count;
static unsigned pending[QUEUES][WAITS]; // waits before a queue's next work
static unsigned pending_count[QUEUES];
static char text[WORKS + 1];
static unsigned host_waits;
static unsigned late_flushes;
static unsigned breaks_in;
static const char *ignored_waiter;
static const char *ignored_producer;

weir_device *order_begin(void)
{
    memset(queues, 0, sizeof queues);
    memset(pending_count, 0, sizeof pending_count);
    memset(text, 0, sizeof text);
    buffer_count = queues_made = refused_queue = work_count = record_count = 0;
    host_waits = late_flushes = breaks_in = 0;
    ignored_waiter = ignored_producer = NULL;
    device.limits = (struct weir_limits){
        .argument_alignment_bytes = 128,
        .concurrent_kernels = 128,
        .copy_engines_to_device = 1,
        .copy_engines_to_host = 1,
    };
    return &device;
}

struct weir_limits *order_limits(void)
{
    return &device.limits;
}

weir_buffer *order_buffer(size_t size, weir_placement placement)
{
    buffers[buffer_count] = (struct weir_buffer){size, placement};
    return &buffers[buffer_count++];
}

unsigned order_queue_count(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < QUEUES; i++)
        count += queues[i].exists;
    return count;
}

unsigned order_host_waits(void)
{
    return host_waits;
}

void order_break(unsigned nth)
{
    breaks_in = nth;
}

void order_refuse_queue(unsigned nth)
{
    refused_queue = queues_made + nth;
}

void order_ignore_wait(const char *waiter, const char *producer)
{
    ignored_waiter = waiter;
    ignored_producer = producer;
}

const char *order_text(void)
{
    return text;
}

unsigned order_late_flushes(void)
{
    unsigned count = late_flushes;
    for (unsigned i = 0; i < queues_made; i++)
        count += !queues[i].flushed;
    return count;
}

// --- evaluation of the log ---

static bool is_before(const struct work *earlier, const struct clock *clock)
{
    return clock->of[earlier->queue] >= earlier->clock.of[earlier->queue];
}

static bool meet(const struct order_range *a, const struct order_range *b)
{
    return a->buffer && a->buffer == b->buffer && a->offset < b->offset + b->size &&
           b->offset < a->offset + a->size;
}

static bool conflict(const struct work *a, const struct work *b)
{
    return meet(&a->writes, &b->writes) || meet(&a->writes, &b->reads) ||
           meet(&a->reads, &b->writes);
}

bool order_has_race(char *what, size_t size)
{
    for (unsigned b = 0; b < work_count; b++) {
        for (unsigned a = 0; a < b; a++) {
            if (!conflict(&works[a], &works[b]) || is_before(&works[a], &works[b].clock))
                continue;
            snprintf(what, size, "operation %u (%c in '%s') and operation %u (%c in '%s')", a,
                     works[a].kind, queues[works[a].queue].label, b, works[b].kind,
                     queues[works[b].queue].label);
            return true;
        }
    }
    snprintf(what, size, "none");
    return false;
}

bool order_is_behind_all(struct weir_event event)
{
    if (event.sequence == 0 || event.sequence > record_count)
        return false;
    for (unsigned i = 0; i < work_count; i++)
        if (!is_before(&works[i], &records[event.sequence - 1].clock))
            return false;
    return true;
}

// The latest end of the operations before a record in its queue, waits included.
unsigned order_makespan(unsigned copy_engines)
{
    static unsigned record_time[RECORDS];
    unsigned queue_time[QUEUES] = {0};
    unsigned engine_time[3] = {0};
    unsigned next_record = 0;
    unsigned last = 0;

    for (unsigned i = 0; i <= work_count; i++) {
        for (; next_record < record_count && records[next_record].work <= i; next_record++)
            record_time[next_record] = queue_time[records[next_record].queue];
        if (i == work_count)
            break;
        const struct work *work = &works[i];
        unsigned engine = work->kind == 'k' ? 0 : work->kind == 'd' && copy_engines == 2 ? 2 : 1;
        unsigned start = queue_time[work->queue];
        for (unsigned w = 0; w < work->wait_count; w++)
            if (start < record_time[work->waits[w]])
                start = record_time[work->waits[w]];
        if (start < engine_time[engine])
            start = engine_time[engine];
        queue_time[work->queue] = engine_time[engine] = start + 1;
        if (last < start + 1)
            last = start + 1;
    }
    return last;
}

// --- Weir's calls ---

const struct weir_limits *weir_device_limits(const weir_device *asked)
{
    return &asked->limits;
}

size_t weir_buffer_size(const weir_buffer *buffer)
{
    return buffer->size;
}

weir_placement weir_buffer_placement(const weir_buffer *buffer)
{
    return buffer->placement;
}

static weir_status fail(const char *message)
{
    struct weir_error error = {.status = WEIR_ERROR_IO};
    snprintf(error.message, sizeof error.message, "%s", message);
    return weir_error_set(&error);
}

weir_status weir_queue_create_at(weir_device *of, const struct weir_queue_params *params,
                                 weir_queue **out_queue, const char *file, int line)
{
    (void)of, (void)file, (void)line;
    *out_queue = NULL;
    if (++queues_made == refused_queue)
        return fail("no more queues");
    weir_queue *queue = &queues[queues_made - 1];
    snprintf(queue->label, sizeof queue->label, "%s", params->label);
    queue->exists = true;
    queue->flushed = true;
    *out_queue = queue;
    return WEIR_OK;
}

void weir_queue_destroy_at(weir_queue **queue, const char *file, int line)
{
    (void)file;
    (void)line;
    if (*queue)
        (*queue)->exists = false;
    *queue = NULL;
}

static weir_status accept(weir_queue *queue)
{
    if (breaks_in > 0 && --breaks_in == 0)
        queue->failed = true;
    return queue->failed ? fail("the queue broke") : WEIR_OK;
}

static weir_status add_work(weir_queue *queue, char kind, struct order_range reads,
                            struct order_range writes)
{
    unsigned index = (unsigned)(queue - queues);
    weir_status status = accept(queue);
    if (status != WEIR_OK)
        return status;
    if (work_count == WORKS)
        return fail("the log is full");
    for (unsigned i = 0; i < queues_made; i++)
        late_flushes += i != index && !queues[i].flushed;
    struct work *work = &works[work_count];
    *work = (struct work){.queue = index, .kind = kind, .reads = reads, .writes = writes};
    work->wait_count = pending_count[index];
    memcpy(work->waits, pending[index], pending_count[index] * sizeof *work->waits);
    pending_count[index] = 0;
    queue->clock.of[index]++;
    queue->flushed = false;
    work->clock = queue->clock;
    text[work_count++] = kind;
    return WEIR_OK;
}

weir_status order_kernel(weir_queue *queue, struct order_range reads, struct order_range writes)
{
    return add_work(queue, 'k', reads, writes);
}

weir_status weir_queue_copy_at(weir_queue *queue, weir_buffer *dst, size_t dst_offset,
                               weir_buffer *src, size_t src_offset, size_t size, const char *file,
                               int line)
{
    (void)file, (void)line;
    return add_work(queue, dst->placement == WEIR_PLACE_HOST ? 'd' : 'u',
                    (struct order_range){src, src_offset, size},
                    (struct order_range){dst, dst_offset, size});
}

weir_status weir_queue_record_at(weir_queue *queue, struct weir_event *out_event, const char *file,
                                 int line)
{
    unsigned index = (unsigned)(queue - queues);
    (void)file, (void)line;
    *out_event = (struct weir_event){0, 0};
    weir_status status = accept(queue);
    if (status != WEIR_OK)
        return status;
    if (record_count == RECORDS)
        return fail("the log is full");
    queue->flushed = false;
    records[record_count] = (struct record){queue->clock, index, work_count};
    *out_event = (struct weir_event){index + 1, ++record_count};
    return WEIR_OK;
}

weir_status weir_queue_wait_at(weir_queue *queue, struct weir_event event, const char *file,
                               int line)
{
    unsigned index = (unsigned)(queue - queues);
    weir_queue *producer = &queues[event.queue - 1];
    (void)file, (void)line;
    weir_status status = accept(queue);
    if (status != WEIR_OK)
        return status;
    producer->flushed = true;
    if (ignored_waiter && strcmp(queue->label, ignored_waiter) == 0 &&
        strcmp(producer->label, ignored_producer) == 0)
        return WEIR_OK;
    for (unsigned i = 0; i < QUEUES; i++) {
        unsigned seen = records[event.sequence - 1].clock.of[i];
        if (queue->clock.of[i] < seen)
            queue->clock.of[i] = seen;
    }
    if (pending_count[index] == WAITS)
        return fail("the log has no room for that many waits");
    pending[index][pending_count[index]++] = (unsigned)event.sequence - 1;
    return WEIR_OK;
}

weir_status weir_queue_flush_at(weir_queue *queue, const char *file, int line)
{
    (void)file, (void)line;
    queue->flushed = true;
    return WEIR_OK;
}

weir_status weir_queue_sync_at(weir_queue *queue, uint64_t timeout_ns, const char *file, int line)
{
    (void)timeout_ns, (void)file, (void)line;
    host_waits++;
    return queue->failed ? fail("the queue broke") : WEIR_OK;
}

weir_status weir_queue_recover_at(weir_queue *queue, const char *file, int line)
{
    (void)file;
    (void)line;
    queue->failed = false;
    return WEIR_OK;
}
