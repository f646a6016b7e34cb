// Times of operations, for plugins that need them.
//
// With CUPTI, start and end are known
// (below). Without it, a timed event is recorded after each operation and each wait: an
// operation began no earlier than the end of the one before it, the end of the last wait before it,
// and its submission; the exact start is unknown.
//
// The ring of a queue has one writer, the thread that submits, and one reader, the thread that
// fetches times with the lock held. The writer tries to take the lock only to drop the oldest
// entries of a full ring; if times are being fetched at that moment, it drops its own entry
// instead. Events return to the writer through a second ring.
//
// CUPTI writes a record with start and end for everything that the device runs.
// There is one CUPTI in a process and its callbacks have no user pointer, so the state here is global too.
//
// Each operation has a number, made of its queue's and its own, which is pushed as an external
// correlation id around its calls of the driver.
//
// For each call of the driver in an operation CUPTI writes a record that relates the operation's number to
// the call's correlation id, and the record of each activity names the call that caused it. The two
// records come in either order. They are joined in a table indexed by the correlation id: these ids
// ascend, so in a table as large as the number of pending calls no two of them collide.
//
// CUPTI's clock is usually the host's real-time clock. Pairs of readings relate it to the monotonic
// clock, and the device's clock (timeline.c) relates that to the device's timeline.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cu.h"
#include "backends/cuda/libraries.h"
#include "base/clock.h"

#define DROPPED_AT_ONCE 256

enum {
    SEQUENCE_BITS = 40, // of an operation's number; above them is its queue's
    PROBE = 0,          // a number that no queue has
};

#define SEQUENCE_MASK ((UINT64_C(1) << SEQUENCE_BITS) - 1)

#define PROBE_SLACK_NS UINT64_C(1000000)

enum {
    BUFFER_BYTES = 1 << 20,
    SPARE_BUFFERS = 8,
    MEETINGS = 1 << 16,
    QUEUES = 1 << 16,
};

#define FLUSH_DISTANCE_NS UINT64_C(4000000)
// CUPTI may keep a buffer for as long as the records of one of its records is running.
#define PATIENCE_NS UINT64_C(1000000000)

// A call of the driver, of which one of the two records may have arrived.
struct meeting {
    uint32_t correlation;
    bool has_id;
    bool has_times;
    uint64_t id;
    uint64_t start_ns; // on CUPTI's clock
    uint64_t end_ns;
};

static struct {
    pthread_mutex_t lock;        // guards what follows
    struct weir_clock_map clock; // a: CUPTI's, b: the host's
    uint64_t flushed_ns;
    struct meeting *meetings;
    struct cu_queue **queues; // by number
    uint32_t next_number;
    bool probed;
    uint64_t probe_start_ns; // on the host's clock
    uint64_t probe_end_ns;
    uint8_t *spare[SPARE_BUFFERS];
    size_t spare_count;
} records = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

// The tables, and numbers of queues.

// False: out of memory. What there is is freed with free_tables().
static bool allocate_tables(void)
{
    records.meetings = calloc(MEETINGS, sizeof *records.meetings);
    records.queues = calloc(QUEUES, sizeof *records.queues);
    records.next_number = PROBE;
    return records.meetings && records.queues;
}

static void free_tables(void)
{
    free(records.meetings);
    free(records.queues);
    records.meetings = NULL;
    records.queues = NULL;
}

// Returns a number that no queue has, or 0 if there is none. With the lock held.
static uint64_t take_number(struct cu_queue *queue)
{
    for (int i = 0; i < QUEUES; i++) {
        const uint32_t number = ++records.next_number & 0xffffff;
        if (number == PROBE || records.queues[number % QUEUES])
            continue;
        records.queues[number % QUEUES] = queue;
        return number;
    }
    return 0;
}

// Gives the queue's watch a number; false if there is none left.
static bool number_queue(struct cu_queue *queue)
{
    pthread_mutex_lock(&records.lock);
    queue->watch->number = take_number(queue);
    pthread_mutex_unlock(&records.lock);
    return queue->watch->number != 0;
}

// Reading records.

static uint32_t get_32(const CUpti_Activity *record, size_t at)
{
    uint32_t value;
    memcpy(&value, (const char *)record + at, sizeof value);
    return value;
}

static uint64_t get_64(const CUpti_Activity *record, size_t at)
{
    uint64_t value;
    memcpy(&value, (const char *)record + at, sizeof value);
    return value;
}

static bool is_whole(const struct cu_timed *timed)
{
    const unsigned commands = atomic_load_explicit(&timed->commands, memory_order_acquire);
    return commands > 0 && (commands == CU_NO_COMMANDS || timed->seen >= commands);
}

// NULL: it was dropped. A collective through the host has an entry for each copy; records complete the oldest.
static struct cu_timed *find_timed(const struct cu_queue *queue, uint64_t sequence)
{
    struct cu_watch *watch = queue->watch;
    uint64_t low = atomic_load_explicit(&watch->tail, memory_order_relaxed);
    uint64_t high = atomic_load_explicit(&watch->head, memory_order_acquire);
    const uint64_t end = high;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if ((watch->ring[middle % CU_WATCH_ENTRIES].sequence & SEQUENCE_MASK) < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    struct cu_timed *timed = NULL;
    for (; low < end && (!timed || is_whole(timed)); low++) {
        struct cu_timed *next = &watch->ring[low % CU_WATCH_ENTRIES];
        if ((next->sequence & SEQUENCE_MASK) != sequence)
            break;
        timed = next;
    }
    return timed;
}

// Whether a record of the number PROBE has come since it was forgotten, and its times on the host's
// clock.
static bool read_probe(uint64_t *out_start_ns, uint64_t *out_end_ns)
{
    pthread_mutex_lock(&records.lock);
    const bool probed = records.probed;
    *out_start_ns = records.probe_start_ns;
    *out_end_ns = records.probe_end_ns;
    pthread_mutex_unlock(&records.lock);
    return probed;
}

// Stores the times of a joined call with its operation. A record without times counts too.
static void tell(const struct meeting *meeting)
{
    const uint64_t number = meeting->id >> SEQUENCE_BITS;
    const bool known = meeting->start_ns > 0 && meeting->end_ns >= meeting->start_ns;
    const uint64_t start_ns = weir_clock_map_b(&records.clock, meeting->start_ns);
    const uint64_t end_ns = weir_clock_map_b(&records.clock, meeting->end_ns);
    if (number == PROBE) {
        records.probed = true;
        records.probe_start_ns = start_ns;
        records.probe_end_ns = end_ns;
        return;
    }
    const struct cu_queue *queue = records.queues[number % QUEUES];
    if (!queue || queue->watch->number != number)
        return;
    struct cu_timed *timed = find_timed(queue, meeting->id & SEQUENCE_MASK);
    if (!timed)
        return;
    timed->seen++;
    if (known && start_ns < timed->start_ns)
        timed->start_ns = start_ns;
    if (known && end_ns > timed->end_ns)
        timed->end_ns = end_ns;
}

static struct meeting *meet(uint32_t correlation)
{
    struct meeting *meeting = &records.meetings[correlation % MEETINGS];
    if (meeting->correlation != correlation)
        *meeting = (struct meeting){.correlation = correlation};
    return meeting;
}

static void take_id(const CUpti_Activity *record)
{
    if (get_32(record, CUPTI_EXTERNAL_KIND_AT) != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1)
        return;
    struct meeting *meeting = meet(get_32(record, CUPTI_EXTERNAL_CORRELATION_AT));
    meeting->id = get_64(record, CUPTI_EXTERNAL_ID_AT);
    meeting->has_id = true;
    if (meeting->has_times)
        tell(meeting);
}

static void take_times(uint64_t start_ns, uint64_t end_ns, uint32_t correlation)
{
    struct meeting *meeting = meet(correlation);
    meeting->start_ns = start_ns;
    meeting->end_ns = end_ns;
    meeting->has_times = true;
    if (meeting->has_id)
        tell(meeting);
}

static const struct {
    unsigned kind;
    size_t start;
    size_t end;
    size_t correlation;
} timed_records[] = {
#define TIMED(kind, structure, start, end, correlation) {kind, start, end, correlation},
    CUPTI_TIMED_RECORDS(TIMED)
#undef TIMED
};

static void take(const CUpti_Activity *record)
{
    const unsigned kind = (unsigned)record->kind;
    if (kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
        take_id(record);
        return;
    }
    for (size_t i = 0; i < sizeof timed_records / sizeof *timed_records; i++)
        if (timed_records[i].kind == kind) {
            take_times(get_64(record, timed_records[i].start), get_64(record, timed_records[i].end),
                       get_32(record, timed_records[i].correlation));
            return;
        }
}

// CUPTI's callbacks.

static void request_buffer(uint8_t **out_buffer, size_t *out_size, size_t *out_records)
{
    *out_records = 0;
    *out_size = BUFFER_BYTES;
    pthread_mutex_lock(&records.lock);
    *out_buffer = records.spare_count > 0 ? records.spare[--records.spare_count] : NULL;
    pthread_mutex_unlock(&records.lock);
    if (!*out_buffer) // records are aligned to eight bytes, as malloc() is
        *out_buffer = malloc(BUFFER_BYTES);
    if (!*out_buffer)
        *out_size = 0;
}

static void complete_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                            size_t used)
{
    CUpti_Activity *record = NULL;
    (void)context;
    (void)stream;
    (void)size;
    if (!buffer)
        return;
    pthread_mutex_lock(&records.lock);
    while (used > 0 && cu_cupti.cuptiActivityGetNextRecord(buffer, used, &record) == CUPTI_SUCCESS)
        take(record);
    const bool kept = records.spare_count < SPARE_BUFFERS;
    if (kept)
        records.spare[records.spare_count++] = buffer;
    pthread_mutex_unlock(&records.lock);
    if (!kept)
        free(buffer);
}

// Reads both clocks; the closest of several readings counts. Without the lock, since CUPTI may hold
// a lock of its own while it delivers a buffer.
static bool read_clocks(uint64_t *out_cupti_ns, uint64_t *out_host_ns)
{
    uint64_t narrowest = UINT64_MAX;
    for (int i = 0; i < 3; i++) {
        uint64_t now_ns = 0;
        const uint64_t before_ns = weir_clock_now_ns();
        if (cu_cupti.cuptiGetTimestamp(&now_ns) != CUPTI_SUCCESS)
            return false;
        const uint64_t width = weir_clock_now_ns() - before_ns;
        if (width >= narrowest)
            continue;
        narrowest = width;
        *out_cupti_ns = now_ns;
        *out_host_ns = before_ns + width / 2;
    }
    return true;
}

// Makes CUPTI deliver its records now.
static void deliver(uint32_t flag)
{
    uint64_t cupti_ns = 0;
    uint64_t host_ns = 0;
    const bool read = read_clocks(&cupti_ns, &host_ns);
    pthread_mutex_lock(&records.lock);
    if (read)
        weir_clock_map_add(&records.clock, cupti_ns, host_ns);
    records.flushed_ns = weir_clock_now_ns();
    pthread_mutex_unlock(&records.lock);
    cu_cupti.cuptiActivityFlushAll(flag);
}

// Fetching.

static void flush_records(const struct cu_queue *queue)
{
    const struct cu_watch *watch = queue->watch;
    if (atomic_load(&watch->head) == atomic_load(&watch->tail))
        return;
    pthread_mutex_lock(&records.lock);
    const bool due = weir_clock_now_ns() - records.flushed_ns >= FLUSH_DISTANCE_NS;
    pthread_mutex_unlock(&records.lock);
    if (due)
        deliver(0);
}

// What a native call has submitted is not known, so it is over when an operation after it has come.
static bool is_passed(const struct cu_watch *watch, uint64_t tail, uint64_t head)
{
    while (head-- > tail + 1) {
        const struct cu_timed *timed = &watch->ring[head % CU_WATCH_ENTRIES];
        if (is_whole(timed) || (timed->commands == CU_FOREIGN_COMMANDS && timed->seen > 0))
            return true;
    }
    return false;
}

// The last complete entry, or `tail`.
static uint64_t last_whole(const struct cu_watch *watch, uint64_t tail, uint64_t head)
{
    while (head-- > tail + 1)
        if (is_whole(&watch->ring[head % CU_WATCH_ENTRIES]))
            return head;
    return tail;
}

// CUPTI may lose records, and the oldest entry would then block all others. So entries that are
// still incomplete some time after a later entry is complete are given up.
static bool may_leave(struct cu_watch *watch, uint64_t tail, uint64_t head)
{
    const struct cu_timed *timed = &watch->ring[tail % CU_WATCH_ENTRIES];
    if (is_whole(timed))
        return true;
    const unsigned commands = atomic_load_explicit(&timed->commands, memory_order_acquire);
    if (commands == 0 || commands == CU_FOREIGN_COMMANDS)
        return commands > 0 && is_passed(watch, tail, head);
    if (watch->passed_by <= tail) {
        watch->passed_by = last_whole(watch, tail, head);
        watch->passed_ns = weir_clock_now_ns();
    }
    return watch->passed_by > tail && weir_clock_now_ns() - watch->passed_ns >= PATIENCE_NS;
}

static size_t fetch_records(struct cu_queue *queue, struct weir_operation_time *times,
                            size_t time_size, size_t capacity)
{
    struct cu_watch *watch = queue->watch;
    size_t count = 0;
    pthread_mutex_lock(&records.lock);
    const uint64_t head = atomic_load_explicit(&watch->head, memory_order_acquire);
    uint64_t tail = atomic_load_explicit(&watch->tail, memory_order_relaxed);
    for (; tail < head && count < capacity; tail++) {
        const struct cu_timed *timed = &watch->ring[tail % CU_WATCH_ENTRIES];
        if (!may_leave(watch, tail, head))
            break;
        if (timed->end_ns == 0) // it failed, or its times are lost
            continue;
        const struct weir_operation_time time = {
            .sequence = timed->sequence,
            .start_ns = cu_clock_convert(queue->device, timed->start_ns),
            .end_ns = cu_clock_convert(queue->device, timed->end_ns),
        };
        weir_write((char *)times + count++ * time_size, time_size, &time, sizeof time);
    }
    atomic_store_explicit(&watch->tail, tail, memory_order_release);
    pthread_mutex_unlock(&records.lock);
    return count;
}

// Starting.

enum state {
    UNTRIED,
    OFF,
    ON
};

static struct {
    pthread_mutex_t start_lock; // guards starting and stopping; taken before that of the records
    enum state state;
    size_t users;   // queues
    bool idle;      // was in use, and is switched off
    bool all_calls; // all calls must be recorded to get the external ids
} activity = {
    .start_lock = PTHREAD_MUTEX_INITIALIZER,
};

// Makes one fill, whose record must arrive with times between those of the calls around it. This
// detects a CUPTI that does not fit the driver before it spoils a trace.
static bool probe(struct cu_device *device)
{
    const struct cu_symbols *cu = &device->module->cu;
    CUdeviceptr memory;
    pthread_mutex_lock(&records.lock);
    records.probed = false;
    pthread_mutex_unlock(&records.lock);
    if (cu->cuMemAllocFromPoolAsync(&memory, 256, device->pool, device->memory_stream) !=
        CUDA_SUCCESS)
        return false;
    const uint64_t before_ns = weir_clock_now_ns();
    cu_cupti.cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1,
                                                    ((uint64_t)PROBE << SEQUENCE_BITS) | 1);
    cu->cuMemsetD8Async(memory, 0, 256, device->memory_stream);
    cu_cupti.cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, NULL);
    cu->cuMemFreeAsync(memory, device->memory_stream);
    cu_await_stream(cu, device->memory_stream);
    const uint64_t after_ns = weir_clock_now_ns();
    deliver(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    return read_probe(&start_ns, &end_ns) && start_ns + PROBE_SLACK_NS >= before_ns &&
           end_ns <= after_ns + PROBE_SLACK_NS;
}

static const char *result_text(CUptiResult result)
{
    const char *text = NULL;
    cu_cupti.cuptiGetResultString(result, &text);
    return text ? text : "an unknown error";
}

static bool try_start(struct cu_device *device, char *message, size_t size)
{
    if (!cu_cupti_load(device->module->cupti, device->module->version, message, size))
        return false;
    if (!allocate_tables()) {
        snprintf(message, size, "there is no memory");
        return false;
    }
    CUptiResult result = cu_cupti.cuptiActivityRegisterCallbacks(request_buffer, complete_buffer);
    if (result == CUPTI_SUCCESS)
        result = cu_cupti_enable(activity.all_calls);
    if (result != CUPTI_SUCCESS) {
        cu_cupti_disable(activity.all_calls);
        snprintf(message, size, "it refuses: %s", result_text(result));
        return false;
    }
    if (probe(device))
        return true;
    activity.all_calls = true;
    cu_cupti_record_calls(true, true);
    if (probe(device))
        return true;
    cu_cupti_disable(activity.all_calls);
    uint64_t start_ns, end_ns;
    snprintf(message, size, "its record of a fill %s",
             read_probe(&start_ns, &end_ns) ? "has times that cannot be" : "did not come");
    return false;
}

// With start_lock held.
static void start(struct cu_device *device)
{
    char message[512] = "";
    char text[640];
    if (strcmp(device->module->cupti, "off") == 0)
        return; // another runtime of the process may use it
    activity.state = try_start(device, message, sizeof message) ? ON : OFF;
    if (activity.state == ON)
        return;
    free_tables();
    snprintf(text, sizeof text,
             "CUPTI is not used, so starts of operations are only the earliest possible: %s",
             message);
    device->module->host->log(strcmp(device->module->cupti, "auto") == 0 ? WEIR_LOG_INFO
                                                                         : WEIR_LOG_WARNING,
                              "cuda", text);
}

static bool enlist_watch(struct cu_queue *queue)
{
    struct cu_device *device = queue->device;
    pthread_mutex_lock(&activity.start_lock);
    if (activity.state == UNTRIED)
        start(device);
    bool on = activity.state == ON && strcmp(device->module->cupti, "off") != 0;
    if (on) {
        on = number_queue(queue);
    }
    if (on && activity.users++ == 0 && activity.idle) {
        activity.idle = false;
        cu_cupti_enable(activity.all_calls);
    }
    pthread_mutex_unlock(&activity.start_lock);
    return on;
}

static void delist_watch(struct cu_queue *queue)
{
    pthread_mutex_lock(&activity.start_lock);
    pthread_mutex_lock(&records.lock);
    records.queues[queue->watch->number % QUEUES] = NULL;
    pthread_mutex_unlock(&records.lock);
    activity.users--;
    pthread_mutex_unlock(&activity.start_lock);
}

// Switching is too expensive to be done each time the last watched queue is destroyed.
void cu_activity_rest(void)
{
    pthread_mutex_lock(&activity.start_lock);
    if (activity.state == ON && activity.users == 0 && !activity.idle) {
        activity.idle = true;
        cu_cupti_disable(activity.all_calls);
    }
    pthread_mutex_unlock(&activity.start_lock);
}

// The ring of a queue.

static struct cu_timed *timed_at(struct cu_watch *watch, uint64_t number)
{
    return &watch->ring[number % CU_WATCH_ENTRIES];
}

// Submitting.

weir_status cu_watch_init(struct cu_queue *queue)
{
    struct cu_device *device = queue->device;
    queue->watch = device->module->host->allocate(sizeof *queue->watch);
    if (!queue->watch)
        return weir_host_no_memory(device->module->host, "the times of a queue's operations");
    pthread_mutex_init(&queue->watch->lock, NULL);
    cu_clock_keep(device);
    queue->watch->exact = enlist_watch(queue);
    return WEIR_OK;
}

static void give_event(struct cu_watch *watch, CUevent event)
{
    const uint64_t head = atomic_load_explicit(&watch->free_head, memory_order_relaxed);
    watch->free[head % CU_WATCH_ENTRIES] = event;
    atomic_store_explicit(&watch->free_head, head + 1, memory_order_release);
}

void cu_watch_finish(struct cu_queue *queue)
{
    const struct cu_module *module = queue->device->module;
    struct cu_watch *watch = queue->watch;
    if (!watch)
        return;
    if (watch->exact)
        delist_watch(queue);
    for (size_t i = 0; i < watch->event_count; i++)
        module->cu.cuEventDestroy(watch->events[i]);
    pthread_mutex_destroy(&watch->lock);
    module->host->release(watch);
    queue->watch = NULL;
}

// Returns a free event, or a new one; NULL if the driver creates none.
static CUevent take_event(struct cu_queue *queue)
{
    struct cu_watch *watch = queue->watch;
    const uint64_t tail = watch->free_tail;
    CUevent event = watch->spare;
    watch->spare = NULL;
    if (event)
        return event;
    if (tail != atomic_load_explicit(&watch->free_head, memory_order_acquire)) {
        watch->free_tail = tail + 1;
        return watch->free[tail % CU_WATCH_ENTRIES];
    }
    if (watch->event_count == CU_WATCH_ENTRIES ||
        queue->device->module->cu.cuEventCreate(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS)
        return NULL;
    watch->events[watch->event_count++] = event;
    return event;
}

// The event of the last time is kept until there is a later one, since that may be measured from
// it.
static void retire_event(struct cu_watch *watch, CUevent event)
{
    if (watch->near)
        give_event(watch, watch->near);
    watch->near = event;
}

// With the lock held.
static void drop_oldest(struct cu_watch *watch)
{
    uint64_t tail = atomic_load_explicit(&watch->tail, memory_order_relaxed);
    for (int i = 0; i < DROPPED_AT_ONCE; i++, tail++) {
        CUevent event = timed_at(watch, tail)->event;
        if (event)
            give_event(watch, event);
    }
    atomic_store_explicit(&watch->tail, tail, memory_order_release);
}

// Returns the place for the next entry, or NULL. At most two events are outside of the ring: the
// one that is being recorded, and `near`.
static struct cu_timed *next_place(struct cu_watch *watch)
{
    const uint64_t head = atomic_load_explicit(&watch->head, memory_order_relaxed);
    if (head - atomic_load_explicit(&watch->tail, memory_order_acquire) < CU_WATCH_ENTRIES - 2)
        return timed_at(watch, head);
    if (pthread_mutex_trylock(&watch->lock) != 0)
        return NULL;
    if (watch->exact)
        pthread_mutex_lock(&records.lock);
    drop_oldest(watch);
    if (watch->exact)
        pthread_mutex_unlock(&records.lock);
    pthread_mutex_unlock(&watch->lock);
    return timed_at(watch, head);
}

static void publish(struct cu_watch *watch)
{
    const uint64_t head = atomic_load_explicit(&watch->head, memory_order_relaxed);
    atomic_store_explicit(&watch->head, head + 1, memory_order_release);
}

void cu_watch_begin(struct cu_queue *queue, const struct weir_operation *operation)
{
    struct cu_watch *watch = queue->watch;
    watch->now = NULL;
    if (watch->exact && !cu_is_work((int)operation->kind))
        return;
    if (operation->kind == WEIR_OPERATION_RECORD)
        return;
    struct cu_timed *timed = next_place(watch);
    if (!timed)
        return;
    timed->sequence = operation->sequence;
    timed->submit_ns = weir_clock_now_ns();
    timed->is_wait = !cu_is_work((int)operation->kind);
    timed->event = NULL;
    timed->start_ns = UINT64_MAX;
    timed->end_ns = 0;
    timed->seen = 0;
    atomic_store_explicit(&timed->commands, 0, memory_order_relaxed);
    watch->commands = 0;
    watch->now = timed;
    if (watch->exact) {
        publish(watch); // its times may arrive before the submit returns
        cu_cupti.cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1,
                                                        (watch->number << SEQUENCE_BITS) |
                                                            (operation->sequence & SEQUENCE_MASK));
    }
}

void cu_watch_end(struct cu_queue *queue, bool submitted)
{
    struct cu_watch *watch = queue->watch;
    struct cu_timed *timed = watch->now;
    if (!timed)
        return;
    if (watch->exact) {
        const unsigned counted = watch->commands > 0 ? watch->commands : CU_FOREIGN_COMMANDS;
        cu_cupti.cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1,
                                                       NULL);
        atomic_store_explicit(&timed->commands, submitted ? counted : CU_NO_COMMANDS,
                              memory_order_release);
        return;
    }
    timed->event = submitted ? take_event(queue) : NULL;
    if (!timed->event)
        return;
    if (queue->device->module->cu.cuEventRecord(timed->event, queue->stream) == CUDA_SUCCESS)
        publish(watch);
    else
        watch->spare = timed->event;
}

// Fetching.

static bool is_complete(const struct cu_queue *queue, uint64_t number)
{
    return cu_ask_event(&queue->device->module->cu, timed_at(queue->watch, number)->event) ==
           CUDA_SUCCESS;
}

// Returns the end of the complete entries from `low` on, at most `high`. Entries complete in order,
// and a binary search saves queries.
static uint64_t end_of_complete(const struct cu_queue *queue, uint64_t low, uint64_t high)
{
    if (low < high && is_complete(queue, high - 1))
        return high;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (is_complete(queue, middle))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// Converts one entry, whose event is complete, and keeps its end for the next one.
static bool convert(struct cu_queue *queue, struct cu_timed *timed,
                    struct weir_operation_time *out_time)
{
    struct cu_watch *watch = queue->watch;
    uint64_t end_ns;
    const bool told = cu_timeline_convert(queue->device, timed->event, watch->near, watch->end_ns,
                                          &end_ns) == CUDA_SUCCESS;
    retire_event(watch, timed->event);
    if (!told)
        return false;
    end_ns = later(end_ns, watch->end_ns);
    const uint64_t start_ns =
        later(cu_clock_convert(queue->device, timed->submit_ns), watch->end_ns);
    *out_time = (struct weir_operation_time){
        .sequence = timed->sequence,
        .start_ns = start_ns < end_ns ? start_ns : end_ns,
        .end_ns = end_ns,
        .start_is_earliest = true,
    };
    watch->end_ns = end_ns;
    return !timed->is_wait;
}

static size_t fetch_events(struct cu_queue *queue, struct weir_operation_time *times,
                           size_t time_size, size_t capacity)
{
    struct cu_watch *watch = queue->watch;
    const uint64_t head = atomic_load_explicit(&watch->head, memory_order_acquire);
    uint64_t tail = atomic_load_explicit(&watch->tail, memory_order_relaxed);
    const uint64_t end = end_of_complete(queue, tail, head);
    size_t count = 0;
    for (; tail < end && count < capacity; tail++) {
        struct weir_operation_time time;
        if (convert(queue, timed_at(watch, tail), &time))
            weir_write((char *)times + count++ * time_size, time_size, &time, sizeof time);
    }
    atomic_store_explicit(&watch->tail, tail, memory_order_release);
    return count;
}

weir_status cu_queue_times(const struct weir_link *link, weir_queue *object,
                           struct weir_operation_time *times, size_t time_size, size_t capacity,
                           size_t *out_count)
{
    struct cu_queue *queue = cu_queue_of(link, object);
    struct cu_watch *watch = queue->watch;
    struct cu_device *device = queue->device;
    struct cu_scope scope;
    *out_count = 0;
    if (!watch)
        return WEIR_OK;
    weir_status status = cu_enter(device, &scope);
    if (status < 0)
        return status;
    cu_clock_keep(device);
    if (watch->exact)
        flush_records(queue);
    pthread_mutex_lock(&watch->lock);
    *out_count = watch->exact ? fetch_records(queue, times, time_size, capacity)
                              : fetch_events(queue, times, time_size, capacity);
    pthread_mutex_unlock(&watch->lock);
    cu_leave(device, &scope);
    return WEIR_OK;
}
