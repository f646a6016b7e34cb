// For each call of the driver in an operation CUPTI writes a record that relates the operation's number to
// the call's correlation id, and the record of each activity names the call that caused it. The two
// records come in either order. They are joined in a table indexed by the correlation id: these ids
// ascend, so in a table as large as the number of pending calls no two of them collide.
//
// CUPTI's clock is usually the host's real-time clock. Pairs of readings relate it to the monotonic
// clock, and the device's clock (times.c) relates that to the device's timeline.
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/activity_parts.h"
#include "base/clock.h"

enum {
    BUFFER_BYTES = 1 << 20,
    SPARE_BUFFERS = 8,
    MEETINGS = 1 << 16,
    QUEUES = 1 << 16,
};

#define FLUSH_DISTANCE_NS UINT64_C(4000000)
// CUPTI may keep a buffer for as long as the activity of one of its records is running.
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
} activity = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

void cu_activity_lock(void)
{
    pthread_mutex_lock(&activity.lock);
}

void cu_activity_unlock(void)
{
    pthread_mutex_unlock(&activity.lock);
}

// The tables, and numbers of queues.

bool cu_activity_allocate(void)
{
    activity.meetings = calloc(MEETINGS, sizeof *activity.meetings);
    activity.queues = calloc(QUEUES, sizeof *activity.queues);
    activity.next_number = CU_PROBE;
    return activity.meetings && activity.queues;
}

void cu_activity_free(void)
{
    free(activity.meetings);
    free(activity.queues);
    activity.meetings = NULL;
    activity.queues = NULL;
}

// Returns a number that no queue has, or 0 if there is none. With the lock held.
static uint64_t take_number(struct cu_queue *queue)
{
    for (int i = 0; i < QUEUES; i++) {
        const uint32_t number = ++activity.next_number & 0xffffff;
        if (number == CU_PROBE || activity.queues[number % QUEUES])
            continue;
        activity.queues[number % QUEUES] = queue;
        return number;
    }
    return 0;
}

bool cu_activity_number(struct cu_queue *queue)
{
    pthread_mutex_lock(&activity.lock);
    queue->watch->number = take_number(queue);
    pthread_mutex_unlock(&activity.lock);
    return queue->watch->number != 0;
}

void cu_activity_drop_number(const struct cu_queue *queue)
{
    pthread_mutex_lock(&activity.lock);
    activity.queues[queue->watch->number % QUEUES] = NULL;
    pthread_mutex_unlock(&activity.lock);
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

// The entry of an operation, or NULL if it was dropped.
static struct cu_timed *find_timed(const struct cu_queue *queue, uint64_t sequence)
{
    struct cu_watch *watch = queue->watch;
    uint64_t low = atomic_load_explicit(&watch->tail, memory_order_relaxed);
    uint64_t high = atomic_load_explicit(&watch->head, memory_order_acquire);
    const uint64_t end = high;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if ((watch->ring[middle % CU_WATCH_ENTRIES].sequence & CU_SEQUENCE_MASK) < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    struct cu_timed *timed = &watch->ring[low % CU_WATCH_ENTRIES];
    return low < end && (timed->sequence & CU_SEQUENCE_MASK) == sequence ? timed : NULL;
}

void cu_activity_forget_probe(void)
{
    pthread_mutex_lock(&activity.lock);
    activity.probed = false;
    pthread_mutex_unlock(&activity.lock);
}

bool cu_activity_probe(uint64_t *out_start_ns, uint64_t *out_end_ns)
{
    pthread_mutex_lock(&activity.lock);
    const bool probed = activity.probed;
    *out_start_ns = activity.probe_start_ns;
    *out_end_ns = activity.probe_end_ns;
    pthread_mutex_unlock(&activity.lock);
    return probed;
}

// With the lock held.
static void note_probe(uint64_t start_ns, uint64_t end_ns)
{
    activity.probed = true;
    activity.probe_start_ns = start_ns;
    activity.probe_end_ns = end_ns;
}

// Stores the times of a joined call with its operation. A record without times counts too.
static void tell(const struct meeting *meeting)
{
    const uint64_t number = meeting->id >> CU_SEQUENCE_BITS;
    const bool known = meeting->start_ns > 0 && meeting->end_ns >= meeting->start_ns;
    const uint64_t start_ns = weir_clock_map_b(&activity.clock, meeting->start_ns);
    const uint64_t end_ns = weir_clock_map_b(&activity.clock, meeting->end_ns);
    if (number == CU_PROBE) {
        note_probe(start_ns, end_ns);
        return;
    }
    const struct cu_queue *queue = activity.queues[number % QUEUES];
    if (!queue || queue->watch->number != number)
        return;
    struct cu_timed *timed = find_timed(queue, meeting->id & CU_SEQUENCE_MASK);
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
    struct meeting *meeting = &activity.meetings[correlation % MEETINGS];
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

void cu_activity_request(uint8_t **out_buffer, size_t *out_size, size_t *out_records)
{
    *out_records = 0;
    *out_size = BUFFER_BYTES;
    pthread_mutex_lock(&activity.lock);
    *out_buffer = activity.spare_count > 0 ? activity.spare[--activity.spare_count] : NULL;
    pthread_mutex_unlock(&activity.lock);
    if (!*out_buffer) // records are aligned to eight bytes, as malloc() is
        *out_buffer = malloc(BUFFER_BYTES);
    if (!*out_buffer)
        *out_size = 0;
}

void cu_activity_complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                          size_t used)
{
    CUpti_Activity *record = NULL;
    (void)context;
    (void)stream;
    (void)size;
    if (!buffer)
        return;
    pthread_mutex_lock(&activity.lock);
    while (used > 0 && cu_cupti.cuptiActivityGetNextRecord(buffer, used, &record) == CUPTI_SUCCESS)
        take(record);
    const bool kept = activity.spare_count < SPARE_BUFFERS;
    if (kept)
        activity.spare[activity.spare_count++] = buffer;
    pthread_mutex_unlock(&activity.lock);
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

void cu_activity_deliver(uint32_t flag)
{
    uint64_t cupti_ns = 0;
    uint64_t host_ns = 0;
    const bool read = read_clocks(&cupti_ns, &host_ns);
    pthread_mutex_lock(&activity.lock);
    if (read)
        weir_clock_map_add(&activity.clock, cupti_ns, host_ns);
    activity.flushed_ns = weir_clock_now_ns();
    pthread_mutex_unlock(&activity.lock);
    cu_cupti.cuptiActivityFlushAll(flag);
}

// Fetching.

void cu_activity_flush(const struct cu_queue *queue)
{
    const struct cu_watch *watch = queue->watch;
    if (atomic_load(&watch->head) == atomic_load(&watch->tail))
        return;
    pthread_mutex_lock(&activity.lock);
    const bool due = weir_clock_now_ns() - activity.flushed_ns >= FLUSH_DISTANCE_NS;
    pthread_mutex_unlock(&activity.lock);
    if (due)
        cu_activity_deliver(0);
}

static bool is_whole(const struct cu_timed *timed)
{
    const unsigned commands = atomic_load_explicit(&timed->commands, memory_order_acquire);
    return commands > 0 && (commands == CU_NO_COMMANDS || timed->seen >= commands);
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

size_t cu_activity_fetch(struct cu_queue *queue, struct weir_operation_time *times,
                         size_t time_size, size_t capacity)
{
    struct cu_watch *watch = queue->watch;
    size_t count = 0;
    pthread_mutex_lock(&activity.lock);
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
    pthread_mutex_unlock(&activity.lock);
    return count;
}
