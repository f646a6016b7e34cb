// Times of records, on the one timeline of a device, and of operations, by events; the device's clock.
#include "backends/cuda/cu.h"
#include "base/clock.h"

#define ANCHOR_DISTANCE_NS UINT64_C(500000000)
#define NEAR_NS INT64_C(1000000000)

#define PAIR_TRIES 20
#define PAIR_NARROW_NS 12000
#define PAIR_PATIENCE_NS UINT64_C(1000000)
#define PAIR_DISTANCE_NS UINT64_C(250000000)
#define DROPPED_AT_ONCE 256

// The timeline.
//
// CUDA measures the time between two events, in milliseconds as a float with a mantissa of 24 bits:
// a resolution of 60 ns over a second, and of 0.25 ms over an hour. So a device has anchors, events
// whose time is known, recorded about twice a second while times are requested, and a time is
// measured from the nearest anchor.
//
// Each anchor's own time is a sum of differences. The error of a difference is at
// most 2^-24 of it, so between two times of a device it is at most 60 ns and
// 1.2e-7 of the difference between them, as long as each is within a second of an anchor. If no
// times are requested for longer than that there is no such anchor; the previous record of the
// queue is then used, if it is nearer. The clock of the events' time stamps has a resolution of its
// own (about 500 ns).
//
// Anchors are recorded in the memory stream, where no work delays them. The first one has the time
// of the host's monotonic clock, so that the timeline begins near that; the two clocks may drift
// apart.

static struct cu_anchor *anchor_at(struct cu_timeline *timeline, uint64_t number)
{
    return &timeline->anchors[number % CU_ANCHOR_COUNT];
}

// The time from `start` to `end`, which may be negative.
static CUresult difference(const struct cu_device *device, CUevent start, CUevent end,
                           int64_t *out_ns)
{
    float milliseconds = 0;
    CUresult code = device->module->cu.cuEventElapsedTime(&milliseconds, start, end);
    const double nanoseconds = (double)milliseconds * 1e6;
    *out_ns = (int64_t)(nanoseconds < 0 ? nanoseconds - 0.5 : nanoseconds + 0.5);
    return code;
}

weir_status cu_timeline_init(struct cu_device *device)
{
    const struct cu_symbols *cu = &device->module->cu;
    struct cu_timeline *timeline = &device->timeline;
    struct cu_anchor first;
    const char *call = "cuEventCreate";
    CUresult code = cu->cuEventCreate(&first.event, CU_EVENT_DEFAULT);
    if (code != CUDA_SUCCESS)
        return cu_native_error(device, call, code, "begin the device's timeline");
    call = "cuEventRecord";
    code = cu->cuEventRecord(first.event, device->memory_stream);
    if (code == CUDA_SUCCESS) {
        call = "cuStreamSynchronize";
        code = cu_await_stream(cu, device->memory_stream);
    }
    if (code != CUDA_SUCCESS) {
        cu->cuEventDestroy(first.event);
        return cu_native_error(device, call, code, "begin the device's timeline");
    }
    first.time_ns = weir_clock_now_ns();
    timeline->anchors[0] = first;
    timeline->count = 1;
    timeline->last_ns = first.time_ns;
    return WEIR_OK;
}

void cu_timeline_finish(struct cu_device *device)
{
    const struct cu_symbols *cu = &device->module->cu;
    struct cu_timeline *timeline = &device->timeline;
    for (uint64_t i = 0; i < timeline->count && i < CU_ANCHOR_COUNT; i++)
        cu->cuEventDestroy(timeline->anchors[i].event);
    if (timeline->is_pending)
        cu->cuEventDestroy(timeline->pending);
    timeline->count = 0;
    timeline->is_pending = false;
}

// Makes an anchor of the pending event if that is complete. A failure only reduces the resolution,
// so it is ignored. Under the lock.
static void resolve(struct cu_device *device)
{
    const struct cu_symbols *cu = &device->module->cu;
    struct cu_timeline *timeline = &device->timeline;
    int64_t distance;
    if (!timeline->is_pending || cu_ask_event(cu, timeline->pending) != CUDA_SUCCESS)
        return;
    const struct cu_anchor *last = anchor_at(timeline, timeline->count - 1);
    const uint64_t last_ns = last->time_ns;
    timeline->is_pending = false;
    if (difference(device, last->event, timeline->pending, &distance) != CUDA_SUCCESS) {
        cu->cuEventDestroy(timeline->pending);
        return;
    }
    struct cu_anchor *place = anchor_at(timeline, timeline->count);
    if (timeline->count >= CU_ANCHOR_COUNT)
        cu->cuEventDestroy(place->event);
    *place = (struct cu_anchor){timeline->pending, last_ns + (uint64_t)distance};
    timeline->count++;
}

void cu_timeline_advance(struct cu_device *device)
{
    const struct cu_symbols *cu = &device->module->cu;
    struct cu_timeline *timeline = &device->timeline;
    const uint64_t now = weir_clock_now_ns();

    pthread_mutex_lock(&timeline->lock);
    resolve(device);
    if (!timeline->is_pending && now - timeline->last_ns >= ANCHOR_DISTANCE_NS &&
        cu->cuEventCreate(&timeline->pending, CU_EVENT_DEFAULT) == CUDA_SUCCESS) {
        timeline->is_pending =
            cu->cuEventRecord(timeline->pending, device->memory_stream) == CUDA_SUCCESS;
        if (!timeline->is_pending)
            cu->cuEventDestroy(timeline->pending);
        timeline->last_ns = now;
    }
    pthread_mutex_unlock(&timeline->lock);
}

static int64_t magnitude(int64_t value)
{
    return value < 0 ? -value : value;
}

static uint64_t distance_of(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

static const struct cu_anchor *nearest(struct cu_timeline *timeline, uint64_t time_ns)
{
    const uint64_t end = timeline->count;
    const uint64_t begin = end > CU_ANCHOR_COUNT ? end - CU_ANCHOR_COUNT : 0;
    const struct cu_anchor *best = anchor_at(timeline, end - 1);
    for (uint64_t i = begin; i < end; i++) {
        const struct cu_anchor *anchor = anchor_at(timeline, i);
        if (distance_of(anchor->time_ns, time_ns) < distance_of(best->time_ns, time_ns))
            best = anchor;
    }
    return best;
}

CUresult cu_timeline_convert(struct cu_device *device, CUevent event, CUevent near,
                             uint64_t near_ns, uint64_t *out_time_ns)
{
    struct cu_timeline *timeline = &device->timeline;
    int64_t distance;
    int64_t near_distance;

    pthread_mutex_lock(&timeline->lock);
    resolve(device);
    const struct cu_anchor *anchor = anchor_at(timeline, timeline->count - 1);
    CUresult code = difference(device, anchor->event, event, &distance);
    if (code == CUDA_SUCCESS && magnitude(distance) > NEAR_NS) {
        anchor = nearest(timeline, anchor->time_ns + (uint64_t)distance);
        code = difference(device, anchor->event, event, &distance);
    }
    *out_time_ns = anchor->time_ns + (uint64_t)distance;
    pthread_mutex_unlock(&timeline->lock);

    if (code == CUDA_SUCCESS && near && magnitude(distance) > NEAR_NS &&
        difference(device, near, event, &near_distance) == CUDA_SUCCESS &&
        magnitude(near_distance) < magnitude(distance))
        *out_time_ns = near_ns + (uint64_t)near_distance;
    return code;
}

// Operations.
//
// Times of operations, for plugins that need them. With CUPTI, start and end are known
// (activity.c). Without it, a timed event is recorded after each operation and each wait: an
// operation began no earlier than the end of the one before it, the end of the last wait before it,
// and its submission; the exact start is unknown.
//
// The ring of a queue has one writer, the thread that submits, and one reader, the thread that
// fetches times with the lock held. The writer tries to take the lock only to drop the oldest
// entries of a full ring; if times are being fetched at that moment, it drops its own entry
// instead. Events return to the writer through a second ring.

static struct cu_timed *timed_at(struct cu_watch *watch, uint64_t number)
{
    return &watch->ring[number % CU_WATCH_ENTRIES];
}

// The two clocks.

// Within the device's context.
static CUresult time_now(struct cu_device *device, CUevent event, uint64_t *out_before_ns,
                         uint64_t *out_after_ns)
{
    const struct cu_symbols *cu = &device->module->cu;
    *out_before_ns = weir_clock_now_ns();
    CUresult code = cu->cuEventRecord(event, device->memory_stream);
    if (code == CUDA_SUCCESS)
        code = cu_ask_event(cu, event);
    while (code == CUDA_ERROR_NOT_READY && weir_clock_now_ns() - *out_before_ns < PAIR_PATIENCE_NS)
        code = cu_ask_event(cu, event);
    *out_after_ns = weir_clock_now_ns();
    return code;
}

// Records an event in a stream without work, between two readings of the host's clock; of several
// tries the closest readings count. Within the device's context, with the clock's lock held.
static weir_status pair(struct cu_device *device, uint64_t *out_host_ns, uint64_t *out_device_ns)
{
    const struct cu_symbols *cu = &device->module->cu;
    uint64_t narrowest = UINT64_MAX;
    const char *call = "cuEventRecord";
    CUevent event;
    CUresult code = cu->cuEventCreate(&event, CU_EVENT_DEFAULT);
    if (code != CUDA_SUCCESS)
        return cu_native_error(device, "cuEventCreate", code, "ask for the device's clock");
    for (int i = 0; i < PAIR_TRIES; i++) {
        if (i >= PAIR_TRIES / 4 && narrowest <= PAIR_NARROW_NS)
            break;
        uint64_t before_ns;
        uint64_t after_ns;
        uint64_t device_ns;
        code = time_now(device, event, &before_ns, &after_ns);
        if (code != CUDA_SUCCESS)
            break;
        call = "cuEventElapsedTime";
        code = cu_timeline_convert(device, event, NULL, 0, &device_ns);
        if (code != CUDA_SUCCESS)
            break;
        call = "cuEventRecord";
        if (after_ns - before_ns < narrowest) {
            narrowest = after_ns - before_ns;
            *out_host_ns = before_ns + narrowest / 2;
            *out_device_ns = device_ns;
        }
    }
    cu->cuEventDestroy(event);
    if (narrowest < UINT64_MAX)
        return WEIR_OK;
    return code == CUDA_ERROR_NOT_READY
               ? WEIR_NOT_READY
               : cu_native_error(device, call, code, "ask for the device's clock");
}

// With the clock's lock held, within the device's context.
static void keep_pair(struct cu_device *device)
{
    struct cu_clock *clock = &device->clock;
    uint64_t host_ns = 0;
    uint64_t device_ns = 0;
    if (clock->map.count > 0 && weir_clock_now_ns() - clock->paired_ns < PAIR_DISTANCE_NS)
        return;
    cu_timeline_advance(device);
    if (pair(device, &host_ns, &device_ns) != WEIR_OK)
        return;
    weir_clock_map_add(&clock->map, host_ns, device_ns);
    clock->paired_ns = host_ns;
}

weir_status cu_device_clock(const struct weir_link *link, weir_device *object,
                            uint64_t *out_host_ns, uint64_t *out_device_ns)
{
    struct cu_device *device = cu_device_of(link, object);
    struct cu_scope scope;
    weir_status status = cu_enter(device, &scope);
    if (status < 0)
        return status;
    pthread_mutex_lock(&device->clock.lock);
    cu_timeline_advance(device);
    status = pair(device, out_host_ns, out_device_ns);
    pthread_mutex_unlock(&device->clock.lock);
    cu_leave(device, &scope);
    return status;
}

uint64_t cu_clock_convert(struct cu_device *device, uint64_t host_ns)
{
    pthread_mutex_lock(&device->clock.lock);
    const uint64_t device_ns = weir_clock_map_b(&device->clock.map, host_ns);
    pthread_mutex_unlock(&device->clock.lock);
    return device_ns;
}

// Submitting.

weir_status cu_watch_init(struct cu_queue *queue)
{
    struct cu_device *device = queue->device;
    queue->watch = device->module->host->allocate(sizeof *queue->watch);
    if (!queue->watch)
        return weir_host_no_memory(device->module->host, "the times of a queue's operations");
    pthread_mutex_init(&queue->watch->lock, NULL);
    pthread_mutex_lock(&device->clock.lock);
    keep_pair(device);
    pthread_mutex_unlock(&device->clock.lock);
    queue->watch->exact = cu_activity_enlist(queue);
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
        cu_activity_delist(queue);
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
        cu_activity_lock();
    drop_oldest(watch);
    if (watch->exact)
        cu_activity_unlock();
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
        cu_activity_push(queue, operation->sequence);
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
        cu_activity_pop();
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
    pthread_mutex_lock(&device->clock.lock);
    keep_pair(device);
    pthread_mutex_unlock(&device->clock.lock);
    if (watch->exact)
        cu_activity_flush(queue);
    pthread_mutex_lock(&watch->lock);
    *out_count = watch->exact ? cu_activity_fetch(queue, times, time_size, capacity)
                              : fetch_events(queue, times, time_size, capacity);
    pthread_mutex_unlock(&watch->lock);
    cu_leave(device, &scope);
    return WEIR_OK;
}
