// Times of records, on the one timeline of a device, and the device's clock.

#include "backends/cuda/cu.h"
#include "base/clock.h"

#define ANCHOR_DISTANCE_NS UINT64_C(500000000)
#define NEAR_NS INT64_C(1000000000)

#define PAIR_TRIES 20
#define PAIR_NARROW_NS 12000
#define PAIR_PATIENCE_NS UINT64_C(1000000)
#define PAIR_DISTANCE_NS UINT64_C(250000000)

// The timeline.
//
// CUDA measures the time between two events, in milliseconds as a float with a mantissa of 24 bits:
// a resolution of 60 ns over a second, and of 0.25 ms over an hour. So a device has anchors, events
// whose time is known, recorded about twice a second while times are requested, and a time is
// measured from the nearest anchor.
//
// Each anchor's own time is a sum of differences. The error of a difference is at
// most 2^-24 of it, so between two times of a device it is at most 60 ns and
// 1.2e-7 of the difference between them, as long as each is within a second of an anchor, and
// grows with the distance to the nearest one, if no times are requested for longer than that. The clock of the
// events' time stamps has a resolution of its own (about 500 ns).
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
    struct cu_timeline *timeline = &device->timeline;
    struct cu_anchor *first = &timeline->anchors[0];
    struct cu_trial trial = {.device = device};
    CU_TRY(&trial, cuEventCreate, &first->event, CU_EVENT_DEFAULT);
    timeline->count = trial.code == CUDA_SUCCESS;
    CU_TRY(&trial, cuEventRecord, first->event, device->memory_stream);
    CU_TRY_AWAIT(&trial, device->memory_stream);
    first->time_ns = timeline->last_ns = weir_clock_now_ns();
    return cu_tried(&trial, "begin the device's timeline");
}

void cu_timeline_finish(struct cu_device *device)
{
    const struct cu_symbols *cu = &device->module->cu;
    struct cu_timeline *timeline = &device->timeline;
    for (uint64_t i = 0; i < timeline->count && i < CU_ANCHOR_COUNT; i++)
        cu->cuEventDestroy(timeline->anchors[i].event);
    if (timeline->pending)
        cu->cuEventDestroy(timeline->pending);
}

// Makes an anchor of the pending event if that is complete. A failure only reduces the resolution,
// so it is ignored. Under the lock.
static void resolve(struct cu_device *device)
{
    const struct cu_symbols *cu = &device->module->cu;
    struct cu_timeline *timeline = &device->timeline;
    CUevent event = timeline->pending;
    int64_t distance;
    if (!event || cu_ask_event(cu, event) != CUDA_SUCCESS)
        return;
    const struct cu_anchor *last = anchor_at(timeline, timeline->count - 1);
    const uint64_t last_ns = last->time_ns;
    timeline->pending = NULL;
    if (difference(device, last->event, event, &distance) != CUDA_SUCCESS) {
        cu->cuEventDestroy(event);
        return;
    }
    struct cu_anchor *place = anchor_at(timeline, timeline->count);
    if (timeline->count >= CU_ANCHOR_COUNT)
        cu->cuEventDestroy(place->event);
    *place = (struct cu_anchor){event, last_ns + (uint64_t)distance};
    timeline->count++;
}

void cu_timeline_advance(struct cu_device *device)
{
    const struct cu_symbols *cu = &device->module->cu;
    struct cu_timeline *timeline = &device->timeline;
    const uint64_t now = weir_clock_now_ns();

    pthread_mutex_lock(&timeline->lock);
    resolve(device);
    CUevent event;
    if (!timeline->pending && now - timeline->last_ns >= ANCHOR_DISTANCE_NS &&
        cu->cuEventCreate(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS) {
        if (cu->cuEventRecord(event, device->memory_stream) == CUDA_SUCCESS)
            timeline->pending = event;
        else
            cu->cuEventDestroy(event);
        timeline->last_ns = now;
    }
    pthread_mutex_unlock(&timeline->lock);
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

CUresult cu_timeline_convert(struct cu_device *device, CUevent event, uint64_t *out_time_ns)
{
    struct cu_timeline *timeline = &device->timeline;
    int64_t distance;
    pthread_mutex_lock(&timeline->lock);
    resolve(device);
    const struct cu_anchor *anchor = anchor_at(timeline, timeline->count - 1);
    CUresult code = difference(device, anchor->event, event, &distance);
    if (code == CUDA_SUCCESS && llabs(distance) > NEAR_NS) {
        anchor = nearest(timeline, anchor->time_ns + (uint64_t)distance);
        code = difference(device, anchor->event, event, &distance);
    }
    *out_time_ns = anchor->time_ns + (uint64_t)distance;
    pthread_mutex_unlock(&timeline->lock);
    return code;
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
    struct cu_trial trial = {.device = device};
    uint64_t narrowest = UINT64_MAX;
    CUevent event = NULL;
    CU_TRY(&trial, cuEventCreate, &event, CU_EVENT_DEFAULT);
    for (int i = 0; i < PAIR_TRIES && trial.code == CUDA_SUCCESS; i++) {
        uint64_t before_ns;
        uint64_t after_ns;
        uint64_t device_ns;
        if (i >= PAIR_TRIES / 4 && narrowest <= PAIR_NARROW_NS)
            break;
        CU_TRY_AS(&trial, "cuEventRecord", time_now(device, event, &before_ns, &after_ns));
        CU_TRY_AS(&trial, "cuEventElapsedTime", cu_timeline_convert(device, event, &device_ns));
        if (trial.code == CUDA_SUCCESS && after_ns - before_ns < narrowest) {
            narrowest = after_ns - before_ns;
            *out_host_ns = before_ns + narrowest / 2;
            *out_device_ns = device_ns;
        }
    }
    if (event)
        device->module->cu.cuEventDestroy(event);
    if (narrowest < UINT64_MAX)
        return WEIR_OK;
    return trial.code == CUDA_ERROR_NOT_READY ? WEIR_NOT_READY
                                              : cu_tried(&trial, "ask for the device's clock");
}

weir_status cu_device_clock(const struct weir_link *link, weir_device *object,
                            uint64_t *out_host_ns, uint64_t *out_device_ns)
{
    struct cu_device *device = cu_device_of(link, object);
    struct cu_scope scope;
    TRY(cu_enter(device, &scope));
    pthread_mutex_lock(&device->clock.lock);
    cu_timeline_advance(device);
    weir_status status = pair(device, out_host_ns, out_device_ns);
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

void cu_clock_keep(struct cu_device *device)
{
    struct cu_clock *clock = &device->clock;
    uint64_t host_ns = 0;
    uint64_t device_ns = 0;
    pthread_mutex_lock(&clock->lock);
    if (clock->map.count == 0 || weir_clock_now_ns() - clock->paired_ns >= PAIR_DISTANCE_NS) {
        cu_timeline_advance(device);
        if (pair(device, &host_ns, &device_ns) == WEIR_OK) {
            weir_clock_map_add(&clock->map, host_ns, device_ns);
            clock->paired_ns = host_ns;
        }
    }
    pthread_mutex_unlock(&clock->lock);
}
