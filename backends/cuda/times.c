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
// instead. The event of an entry is used again when its place is.
//
// CUPTI writes a record with start and end for everything that the device runs.
// There is one CUPTI in a process and its callbacks have no user pointer, so the state here is global too.
//
// Each entry has a number, made of its queue's and its own in the ring, which is pushed as an external
// correlation id around the operation's calls of the driver.
//
// For each call of the driver in an operation CUPTI writes a record that relates the operation's number to
// the call's correlation id, and the record of each activity names the call that caused it. The two
// records come in either order. They are joined in a table indexed by the correlation id: these ids
// ascend, so in a table as large as the number of pending calls no two of them collide.
//
// CUPTI's clock is usually the host's real-time clock. Pairs of readings relate it to the monotonic
// clock, and the device's clock (timeline.c) relates that to the device's timeline.
#include <weir/kit/symbols.h>

#include "backends/cuda/cu.h"
#include "backends/cuda/libraries.h"
#include "base/clock.h"

#define DROPPED_AT_ONCE 256

enum {
    INDEX_BITS = 40, // of an entry's number; above them is its queue's
    PROBE = 0,       // a number that no queue has
};

#define INDEX_MASK ((UINT64_C(1) << INDEX_BITS) - 1)

#define PROBE_SLACK_NS UINT64_C(1000000)

enum {
    BUFFER_BYTES = 1 << 20,
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
    struct meeting meetings[MEETINGS];
    struct cu_queue *queues[QUEUES]; // by number
    uint32_t last_number;
    bool probed;
    uint64_t probe_start_ns; // on the host's clock
    uint64_t probe_end_ns;
} records = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

// CUPTI's library, and what it is told to record.

static struct cupti_symbols cupti;

static bool load_cupti(const char *setting, int driver, char *message, size_t size)
{
    static const struct weir_kit_symbol table[] = {
#define CUPTI_ENTRY(optional, result, name, parameters) \
    {#name, offsetof(struct cupti_symbols, name), optional},
        CUPTI_SYMBOLS(CUPTI_ENTRY)
#undef CUPTI_ENTRY
    };
    static const char *const for_13[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so",
                                         "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"};
    const bool named = strcmp(setting, "auto") != 0;
    const bool recent = driver >= 13000;
    const char *const *names = named ? &setting : recent ? for_13 : for_13 + 1;
    const size_t count = named ? 1 : recent ? 4 : 3;
    if (!named && getenv("CUDA_INJECTION64_PATH")) {
        snprintf(message, size, "another profiler has it: CUDA_INJECTION64_PATH is set");
        return false;
    }
    void *handle = weir_kit_library_open(names, count, message, size);
    return handle && weir_kit_symbols_load(handle, names[0], table, sizeof table / sizeof *table,
                                           &cupti, message, size);
}

// Gives the queue's watch a number that no other queue has; false if there is none left.
static bool number_queue(struct cu_queue *queue)
{
    bool found = false;
    pthread_mutex_lock(&records.lock);
    for (int i = 0; i < QUEUES && !found; i++) {
        const uint32_t number = ++records.last_number & 0xffffff;
        found = number != PROBE && !records.queues[number % QUEUES];
        if (!found)
            continue;
        records.queues[number % QUEUES] = queue;
        queue->watch->number = number;
    }
    pthread_mutex_unlock(&records.lock);
    return found;
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

static struct cu_timed *timed_at(struct cu_watch *watch, uint64_t index)
{
    return &watch->ring[index % CU_WATCH_ENTRIES];
}

// `number` is the lower part of its index. NULL: it was dropped.
static struct cu_timed *find_timed(struct cu_watch *watch, uint64_t number)
{
    const uint64_t tail = atomic_load_explicit(&watch->tail, memory_order_relaxed);
    const uint64_t index = tail + ((number - tail) & INDEX_MASK);
    return index < atomic_load_explicit(&watch->head, memory_order_acquire) ? timed_at(watch, index)
                                                                            : NULL;
}

// Stores the times of a joined call with its operation. A record without times counts too.
static void tell(const struct meeting *meeting)
{
    const uint64_t number = meeting->id >> INDEX_BITS;
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
    struct cu_timed *timed = find_timed(queue->watch, meeting->id);
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
    if (kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION &&
        get_32(record, CUPTI_EXTERNAL_KIND_AT) == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1) {
        struct meeting *meeting = meet(get_32(record, CUPTI_EXTERNAL_CORRELATION_AT));
        meeting->id = get_64(record, CUPTI_EXTERNAL_ID_AT);
        meeting->has_id = true;
        if (meeting->has_times)
            tell(meeting);
    }
    for (size_t i = 0; i < sizeof timed_records / sizeof *timed_records; i++) {
        if (timed_records[i].kind != kind)
            continue;
        struct meeting *meeting = meet(get_32(record, timed_records[i].correlation));
        meeting->start_ns = get_64(record, timed_records[i].start);
        meeting->end_ns = get_64(record, timed_records[i].end);
        meeting->has_times = true;
        if (meeting->has_id)
            tell(meeting);
    }
}

// CUPTI's callbacks.

static void request_buffer(uint8_t **out_buffer, size_t *out_size, size_t *out_records)
{
    *out_records = 0;
    *out_buffer = malloc(BUFFER_BYTES); // records are aligned to eight bytes, as malloc() is
    *out_size = *out_buffer ? BUFFER_BYTES : 0;
}

static void complete_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                            size_t used)
{
    CUpti_Activity *record = NULL;
    if (!buffer)
        return;
    pthread_mutex_lock(&records.lock);
    while (used > 0 && cupti.cuptiActivityGetNextRecord(buffer, used, &record) == CUPTI_SUCCESS)
        take(record);
    pthread_mutex_unlock(&records.lock);
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
        if (cupti.cuptiGetTimestamp(&now_ns) != CUPTI_SUCCESS)
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
    cupti.cuptiActivityFlushAll(flag);
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

// The first complete entry after `tail`, or NULL. A native call, of which it is not known how much it has submitted, counts
// as complete with its first record if `foreign`.
static const struct cu_timed *next_known(struct cu_watch *watch, uint64_t tail, uint64_t head,
                                         bool foreign)
{
    while (++tail < head) {
        const struct cu_timed *timed = timed_at(watch, tail);
        const unsigned commands = atomic_load_explicit(&timed->commands, memory_order_acquire);
        if (timed->end_ns > 0 &&
            (is_whole(timed) || (foreign && commands == CU_FOREIGN_COMMANDS && timed->seen > 0)))
            return timed;
    }
    return NULL;
}

// CUPTI may lose records, and the oldest entry would then block all others. So an entry that is
// still incomplete some time after the end of a later one is given up.
static bool may_leave(struct cu_watch *watch, uint64_t tail, uint64_t head)
{
    const struct cu_timed *timed = timed_at(watch, tail);
    const unsigned commands = atomic_load_explicit(&timed->commands, memory_order_acquire);
    if (is_whole(timed) || commands == 0)
        return commands > 0;
    const bool foreign = commands == CU_FOREIGN_COMMANDS;
    const struct cu_timed *next = next_known(watch, tail, head, foreign);
    return next && (foreign || weir_clock_now_ns() >= next->end_ns + PATIENCE_NS);
}

// False: it failed, or its times are lost.
static bool read_record(const struct cu_queue *queue, const struct cu_timed *timed,
                        struct weir_operation_time *out_time)
{
    *out_time = (struct weir_operation_time){
        .sequence = timed->sequence,
        .start_ns = cu_clock_convert(queue->device, timed->start_ns),
        .end_ns = cu_clock_convert(queue->device, timed->end_ns),
    };
    return timed->end_ns != 0;
}

// Starting.

enum state {
    UNTRIED,
    UNUSABLE,
    RESTING, // switched off
    RUNNING,
};

static struct {
    pthread_mutex_t start_lock; // guards starting and stopping; taken before that of the records
    enum state state;
    size_t users;   // queues
    bool all_calls; // all calls must be recorded to get the external ids
} activity = {
    .start_lock = PTHREAD_MUTEX_INITIALIZER,
};

static const unsigned kinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,           CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_GRAPH_TRACE,       CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
};

#define KIND_COUNT (sizeof kinds / sizeof *kinds)

// CUPTI writes external ids only for calls that are recorded themselves. So the calls that
// operations consist of are recorded, or all calls if CUPTI cannot select them.
static void record_calls(bool on)
{
    if (activity.all_calls || !cupti.cuptiActivityEnableDriverApi) {
        (on ? cupti.cuptiActivityEnable : cupti.cuptiActivityDisable)(CUPTI_ACTIVITY_KIND_DRIVER);
        return;
    }
#define CALL(name, number) cupti.cuptiActivityEnableDriverApi(number, on);
    CUPTI_CALLS(CALL)
#undef CALL
}

// Not every version has the activities of peer copies and graphs.
static CUptiResult enable(void)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        CUptiResult result = cupti.cuptiActivityEnable(kinds[i]);
        if (result != CUPTI_SUCCESS && kinds[i] != CUPTI_ACTIVITY_KIND_MEMCPY2 &&
            kinds[i] != CUPTI_ACTIVITY_KIND_GRAPH_TRACE)
            return result;
    }
    record_calls(true);
    return CUPTI_SUCCESS;
}

static void disable(void)
{
    record_calls(false);
    for (size_t i = 0; i < KIND_COUNT; i++)
        cupti.cuptiActivityDisable(kinds[i]);
}

// Makes one fill, whose record must arrive with times between those of the calls around it. This
// detects a CUPTI that does not fit the driver before it spoils a trace. Returns what is wrong, or NULL.
static const char *probe(struct cu_device *device)
{
    const struct cu_symbols *cu = &device->module->cu;
    CUdeviceptr memory;
    pthread_mutex_lock(&records.lock);
    records.probed = false;
    pthread_mutex_unlock(&records.lock);
    if (cu->cuMemAllocFromPoolAsync(&memory, 256, device->pool, device->memory_stream) !=
        CUDA_SUCCESS)
        return "there is no memory for a fill";
    const uint64_t before_ns = weir_clock_now_ns();
    cupti.cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1,
                                                 (uint64_t)PROBE << INDEX_BITS |
                                                     1); // 0 may count as none
    cu->cuMemsetD8Async(memory, 0, 256, device->memory_stream);
    cupti.cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, NULL);
    cu->cuMemFreeAsync(memory, device->memory_stream);
    cu_await_stream(cu, device->memory_stream);
    const uint64_t after_ns = weir_clock_now_ns();
    deliver(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    pthread_mutex_lock(&records.lock);
    const bool probed = records.probed;
    const bool fits = records.probe_start_ns + PROBE_SLACK_NS >= before_ns &&
                      records.probe_end_ns <= after_ns + PROBE_SLACK_NS;
    pthread_mutex_unlock(&records.lock);
    if (!probed)
        return "its record of a fill did not come";
    return fits ? NULL : "its record of a fill has times that cannot be";
}

static bool try_start(struct cu_device *device, char *message, size_t size)
{
    if (!load_cupti(device->module->cupti, device->module->version, message, size))
        return false;
    CUptiResult result = cupti.cuptiActivityRegisterCallbacks(request_buffer, complete_buffer);
    if (result == CUPTI_SUCCESS)
        result = enable();
    if (result != CUPTI_SUCCESS) {
        const char *text = NULL;
        disable();
        cupti.cuptiGetResultString(result, &text);
        snprintf(message, size, "it refuses: %s", text ? text : "an unknown error");
        return false;
    }
    const char *wrong = probe(device);
    if (wrong) {
        activity.all_calls = true;
        record_calls(true);
        wrong = probe(device);
    }
    if (!wrong)
        return true;
    disable();
    snprintf(message, size, "%s", wrong);
    return false;
}

// With start_lock held.
static void start(struct cu_device *device)
{
    char message[512] = "";
    char text[640];
    activity.state = try_start(device, message, sizeof message) ? RUNNING : UNUSABLE;
    if (activity.state == RUNNING)
        return;
    snprintf(text, sizeof text,
             "CUPTI is not used, so starts of operations are only the earliest possible: %s",
             message);
    device->module->host->log(strcmp(device->module->cupti, "auto") == 0 ? WEIR_LOG_INFO
                                                                         : WEIR_LOG_WARNING,
                              "cuda", text);
}

// Switching is too expensive to be done each time the last watched queue is destroyed.
void cu_activity_rest(void)
{
    pthread_mutex_lock(&activity.start_lock);
    if (activity.state == RUNNING && activity.users == 0) {
        activity.state = RESTING;
        disable();
    }
    pthread_mutex_unlock(&activity.start_lock);
}

// Submitting.

weir_status cu_watch_init(struct cu_queue *queue)
{
    struct cu_device *device = queue->device;
    // Where it is off here, another runtime of the process may use it.
    const bool wanted = strcmp(device->module->cupti, "off") != 0;
    queue->watch = device->module->host->allocate(sizeof *queue->watch);
    if (!queue->watch)
        return weir_host_no_memory(device->module->host, "the times of a queue's operations");
    pthread_mutex_init(&queue->watch->lock, NULL);
    cu_clock_keep(device);
    pthread_mutex_lock(&activity.start_lock);
    if (wanted && activity.state == UNTRIED)
        start(device);
    const bool on = wanted && activity.state >= RESTING && number_queue(queue);
    if (on && activity.state == RESTING) {
        activity.state = RUNNING;
        enable();
    }
    activity.users += on;
    pthread_mutex_unlock(&activity.start_lock);
    queue->watch->exact = on;
    return WEIR_OK;
}

void cu_watch_finish(struct cu_queue *queue)
{
    const struct cu_module *module = queue->device->module;
    struct cu_watch *watch = queue->watch;
    if (!watch)
        return;
    if (watch->exact) {
        pthread_mutex_lock(&activity.start_lock);
        pthread_mutex_lock(&records.lock);
        records.queues[watch->number % QUEUES] = NULL;
        pthread_mutex_unlock(&records.lock);
        activity.users--;
        pthread_mutex_unlock(&activity.start_lock);
    }
    for (size_t i = 0; i < CU_WATCH_ENTRIES; i++)
        if (watch->ring[i].event)
            module->cu.cuEventDestroy(watch->ring[i].event);
    pthread_mutex_destroy(&watch->lock);
    module->host->release(watch);
}

// Returns the place for the next entry, or NULL.
static struct cu_timed *next_place(struct cu_watch *watch)
{
    const uint64_t head = atomic_load_explicit(&watch->head, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&watch->tail, memory_order_acquire);
    if (head - tail < CU_WATCH_ENTRIES - 1)
        return timed_at(watch, head);
    if (pthread_mutex_trylock(&watch->lock) != 0)
        return NULL;
    if (watch->exact)
        pthread_mutex_lock(&records.lock);
    // Else some have been fetched meanwhile.
    (void)atomic_compare_exchange_strong(&watch->tail, &tail, tail + DROPPED_AT_ONCE);
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
    timed->start_ns = UINT64_MAX;
    timed->end_ns = 0;
    timed->seen = 0;
    atomic_store_explicit(&timed->commands, 0, memory_order_relaxed);
    watch->commands = 0;
    watch->now = timed;
    if (watch->exact) {
        const uint64_t index = atomic_load_explicit(&watch->head, memory_order_relaxed);
        publish(watch); // its times may arrive before the submit returns
        cupti.cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1,
                                                     (watch->number << INDEX_BITS) |
                                                         (index & INDEX_MASK));
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
        cupti.cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, NULL);
        atomic_store_explicit(&timed->commands, submitted ? counted : CU_NO_COMMANDS,
                              memory_order_release);
        return;
    }
    const struct cu_symbols *cu = &queue->device->module->cu;
    if (!submitted ||
        (!timed->event && cu->cuEventCreate(&timed->event, CU_EVENT_DEFAULT) != CUDA_SUCCESS))
        return;
    if (cu->cuEventRecord(timed->event, queue->stream) == CUDA_SUCCESS)
        publish(watch);
}

// Fetching.

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// Converts one entry, and keeps its end for the next one. CUDA_ERROR_NOT_READY: it has not ended.
static CUresult convert(const struct cu_queue *queue, const struct cu_timed *timed,
                        struct weir_operation_time *out_time)
{
    struct cu_watch *watch = queue->watch;
    uint64_t end_ns;
    const CUresult code = cu_timeline_convert(queue->device, timed->event, &end_ns);
    if (code != CUDA_SUCCESS)
        return code;
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
    return CUDA_SUCCESS;
}

// With the lock held. Waits are no operations, and some times are not known.
static size_t fetch(struct cu_queue *queue, struct weir_operation_time *times, size_t time_size,
                    size_t capacity)
{
    struct cu_watch *watch = queue->watch;
    const uint64_t head = atomic_load_explicit(&watch->head, memory_order_acquire);
    uint64_t tail = atomic_load_explicit(&watch->tail, memory_order_relaxed);
    size_t count = 0;
    for (; tail < head && count < capacity; tail++) {
        const struct cu_timed *timed = timed_at(watch, tail);
        struct weir_operation_time time;
        const CUresult code = !watch->exact                      ? convert(queue, timed, &time)
                              : !may_leave(watch, tail, head)    ? CUDA_ERROR_NOT_READY
                              : read_record(queue, timed, &time) ? CUDA_SUCCESS
                                                                 : CUDA_ERROR_NOT_FOUND;
        if (code == CUDA_ERROR_NOT_READY)
            break;
        if (code == CUDA_SUCCESS && !timed->is_wait)
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
    TRY(cu_enter(device, &scope));
    cu_clock_keep(device);
    if (watch->exact)
        flush_records(queue);
    pthread_mutex_lock(&watch->lock);
    if (watch->exact)
        pthread_mutex_lock(&records.lock);
    *out_count = fetch(queue, times, time_size, capacity);
    if (watch->exact)
        pthread_mutex_unlock(&records.lock);
    pthread_mutex_unlock(&watch->lock);
    cu_leave(device, &scope);
    return WEIR_OK;
}
