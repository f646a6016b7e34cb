// The events that a queue keeps: of commands until it is known how they ended, and of operations until their
// times were fetched; and the device's clock.
//
// How commands ended. One that fails need not fail those after it: PoCL runs the queue on, and a
// marker reads complete. So the event of each is kept until a record after it is complete, and
// its status is read then. A queue that waits for another one is only as good as that one, and the front
// end takes what was waited for as complete without a query; so waits are kept among the commands, and
// the question follows them.
//
// An entry is dropped when it was read. In a queue without records that is done when the list is full, up
// to its middle.
//
// Times of operations, for plugins that request them. An operation may be several commands; its
// times are the start of the first and the end of the last one. These two events are kept in a ring
// until the times are fetched. If the ring is full, the newest operation replaces the oldest.
//
// The device's clock is related to the host's by the moment at which a marker is enqueued: the
// driver stamps it with the device's clock, between two readings of the host's clock. It does not
// matter whether the device is busy.
#include <inttypes.h>

#include "backends/opencl/opencl.h"

#define PENDING 256     // a power of two
#define OPERATIONS 4096 // a power of two
#define CLOCK_PATIENCE_NS 1000000
#define CLOCK_TRIES 8
#define CLOCK_NARROW_NS 10000

struct ocl_pending {
    struct ocl_device *device; // whose pending_lock guards what follows
    uint32_t users;            // the queue, and waits of others
    struct ocl_entry *entries; // a ring
    size_t first;
    size_t count;
    size_t capacity;
    uint64_t failed; // the first operation that failed; 0: none
    cl_int code;
    bool unknown;      // `code` is of the query
    uint64_t question; // the last one that came here,
    size_t reached;    // and how many of the entries it has read that stay
};

// -1 is what PoCL gives a command that failed in any way, and not the error of that number.
weir_status ocl_event_error(const struct ocl_module *module, const char *call, cl_int code,
                            const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (code != -1)
        return clc_native_error(module->host, call, code, "%s", text);
    return weir_host_fail(module->host, WEIR_ERROR_DEVICE,
                          "the driver gives no cause; its log may (POCL_DEBUG=err for PoCL)",
                          "%s: its event ended with status -1", text);
}

static struct ocl_entry *entry_at(const struct ocl_pending *pending, size_t index)
{
    return &pending->entries[(pending->first + index) & (pending->capacity - 1)];
}

static struct ocl_entry take_first(struct ocl_pending *pending)
{
    const struct ocl_entry entry = *entry_at(pending, 0);
    pending->first = (pending->first + 1) & (pending->capacity - 1);
    pending->count--;
    return entry;
}

// The queue of a list that others still wait for may be gone; then the list is empty.
static void put(struct ocl_pending *pending)
{
    const struct weir_host *host = pending->device->module->host;
    if (--pending->users > 0)
        return;
    host->release(pending->entries);
    host->release(pending);
}

static void drop(const struct ocl_device *device, const struct ocl_entry *entry)
{
    if (entry->event)
        device->module->cl.clReleaseEvent(entry->event);
    else
        put(entry->producer);
}

// The question.

static void note(struct ocl_pending *pending, uint64_t sequence, cl_int code, bool unknown)
{
    if (pending->failed != 0 && pending->failed <= sequence)
        return;
    pending->failed = sequence;
    pending->code = code;
    pending->unknown = unknown;
}

cl_int ocl_event_state(const struct ocl_module *module, cl_event event, bool *out_known)
{
    cl_int state = CL_COMPLETE;
    const cl_int code = module->cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                                  sizeof state, &state, NULL);
    *out_known = code == CL_SUCCESS;
    return code == CL_SUCCESS ? state : code;
}

bool ocl_event_await(const struct ocl_module *module, cl_event event, uint64_t limit_ns)
{
    const uint64_t start_ns = weir_clock_now_ns();
    uint64_t pause_ns = 0;
    bool known;
    while (ocl_event_state(module, event, &known) > CL_COMPLETE)
        if (!weir_clock_pause(start_ns, limit_ns, &pause_ns))
            return false;
    return true;
}

// A command that `ended` may be told to have a moment later than a marker after it.
static void look(struct ocl_pending *pending, const struct ocl_entry *entry, bool ended)
{
    const struct ocl_module *module = pending->device->module;
    bool known;
    cl_int state = ocl_event_state(module, entry->event, &known);
    if (state > CL_COMPLETE && ended) {
        module->cl.clWaitForEvents(1, &entry->event);
        state = ocl_event_state(module, entry->event, &known);
    }
    if (state < CL_COMPLETE)
        note(pending, entry->sequence, state, !known);
}

// What was waited for was submitted before the wait, so a list that the question comes to again has been read as far
// as it asks then, and a row of calls is as long as there are queues. A failure passes through a wait.
static void read_entries(struct ocl_pending *pending, uint64_t sequence, uint64_t question,
                         bool ended)
{
    if (pending->question != question) {
        pending->question = question;
        pending->reached = 0;
    }
    while (pending->reached < pending->count &&
           entry_at(pending, pending->reached)->sequence <= sequence) {
        const struct ocl_entry entry =
            ended ? take_first(pending) : *entry_at(pending, pending->reached++);
        const struct ocl_pending *from = entry.producer;
        if (entry.event)
            look(pending, &entry, ended);
        else
            read_entries(entry.producer, entry.until, question, ended);
        if (from && from->failed != 0 && from->failed <= entry.until)
            note(pending, entry.sequence, from->code, from->unknown);
        if (ended)
            drop(pending->device, &entry);
    }
}

// Reads the commands up to `sequence`, and those that these came after. Those that have not `ended` all stay in
// the lists, and none is waited for. Under the lock.
static void settle(struct ocl_pending *pending, uint64_t sequence, bool ended)
{
    read_entries(pending, sequence, ++pending->device->questions, ended);
}

// Keeping.

// Commands of a queue end in order, so what is before one that has ended has ended too.
static void drop_ended(struct ocl_pending *pending)
{
    bool known;
    size_t index = pending->count / 2;
    while (index > 0 && !entry_at(pending, index)->event)
        index--;
    const struct ocl_entry *entry = entry_at(pending, index);
    if (entry->event &&
        ocl_event_state(pending->device->module, entry->event, &known) <= CL_COMPLETE && known)
        settle(pending, entry->sequence - 1, true);
}

// Under the lock.
static bool append(struct ocl_pending *pending, const struct ocl_entry *entry)
{
    const struct weir_host *host = pending->device->module->host;
    if (pending->count == pending->capacity)
        drop_ended(pending);
    if (pending->count == pending->capacity) {
        struct ocl_entry *entries = host->allocate(2 * pending->capacity * sizeof *entries);
        if (!entries)
            return false;
        for (size_t i = 0; i < pending->count; i++)
            entries[i] = *entry_at(pending, i);
        host->release(pending->entries);
        pending->entries = entries;
        pending->capacity *= 2;
        pending->first = 0;
    }
    *entry_at(pending, pending->count++) = *entry;
    return true;
}

bool ocl_pending_add(struct ocl_queue *queue, const struct ocl_entry *entry)
{
    pthread_mutex_lock(&queue->device->pending_lock);
    const bool kept = append(queue->pending, entry);
    if (kept && entry->producer)
        entry->producer->users++;
    pthread_mutex_unlock(&queue->device->pending_lock);
    return kept;
}

weir_status ocl_pending_check(struct ocl_queue *queue, uint64_t sequence, bool ended, bool clear)
{
    const struct ocl_module *module = queue->device->module;
    struct ocl_pending *pending = queue->pending;
    if (!pending)
        return WEIR_OK;
    pthread_mutex_lock(&pending->device->pending_lock);
    settle(pending, sequence, ended);
    const struct ocl_pending found = *pending;
    const bool failed = found.failed != 0 && found.failed <= sequence;
    if (failed && clear)
        pending->failed = 0;
    pthread_mutex_unlock(&pending->device->pending_lock);
    if (failed && found.unknown)
        return clc_native_error(module->host, "clGetEventInfo", found.code,
                                "ask how the commands up to operation %" PRIu64 " ended",
                                found.failed);
    if (failed)
        return ocl_event_error(module, "a command of the queue", found.code,
                               "operation %" PRIu64 " is a command that failed, or waits for one",
                               found.failed);
    return WEIR_OK;
}

// Times of operations.

struct timed {
    uint64_t sequence;
    cl_event first;
    cl_event last; // NULL: there is one command only
};

struct ocl_watch {
    struct timed now;     // used by the thread that submits only
    pthread_mutex_t lock; // guards what follows
    uint64_t kept;        // operations so far
    uint64_t fetched;     // and those that left the ring
    struct timed ring[OPERATIONS];
};

static void drop_times(const struct ocl_module *module, struct timed *timed)
{
    if (timed->first)
        module->cl.clReleaseEvent(timed->first);
    if (timed->last)
        module->cl.clReleaseEvent(timed->last);
    *timed = (struct timed){0};
}

cl_event *ocl_watch_event(const struct ocl_queue *queue)
{
    struct timed *now = &queue->watch->now;
    if (!now->first)
        return &now->first;
    if (now->last)
        queue->device->module->cl.clReleaseEvent(now->last);
    now->last = NULL;
    return &now->last;
}

void ocl_watch_keep(struct ocl_queue *queue, uint64_t sequence, bool submitted)
{
    const struct ocl_module *module = queue->device->module;
    struct ocl_watch *watch = queue->watch;
    if (!watch->now.first)
        return;
    if (!submitted) {
        drop_times(module, &watch->now);
        return;
    }
    watch->now.sequence = sequence;
    pthread_mutex_lock(&watch->lock);
    if (watch->kept - watch->fetched == OPERATIONS)
        drop_times(module, &watch->ring[watch->fetched++ % OPERATIONS]);
    watch->ring[watch->kept++ % OPERATIONS] = watch->now;
    pthread_mutex_unlock(&watch->lock);
    watch->now = (struct timed){0};
}

cl_int ocl_event_profile(const struct ocl_module *module, cl_event event, cl_profiling_info what,
                         uint64_t *out_time_ns)
{
    cl_ulong time = 0;
    const cl_int code = module->cl.clGetEventProfilingInfo(event, what, sizeof time, &time, NULL);
    *out_time_ns = time;
    return code;
}

weir_status ocl_queue_times(const struct weir_link *link, weir_queue *object,
                            struct weir_operation_time *times, size_t time_size, size_t capacity,
                            size_t *out_count)
{
    const struct ocl_module *module = ocl_module_of(link);
    struct ocl_watch *watch = ocl_queue_of(link, object)->watch;
    *out_count = 0;
    if (!watch)
        return WEIR_OK;
    pthread_mutex_lock(&watch->lock);
    while (watch->fetched < watch->kept && *out_count < capacity) {
        struct timed *timed = &watch->ring[watch->fetched % OPERATIONS];
        struct weir_operation_time time = {.sequence = timed->sequence};
        const cl_event last = timed->last ? timed->last : timed->first;
        bool known;
        const cl_int state = ocl_event_state(module, last, &known);
        if (state > CL_COMPLETE)
            break;
        if (state == CL_COMPLETE && // one that failed has no times
            !ocl_event_profile(module, timed->first, CL_PROFILING_COMMAND_START, &time.start_ns) &&
            !ocl_event_profile(module, last, CL_PROFILING_COMMAND_END, &time.end_ns))
            weir_write((char *)times + (*out_count)++ * time_size, time_size, &time, sizeof time);
        drop_times(module, timed);
        watch->fetched++;
    }
    pthread_mutex_unlock(&watch->lock);
    return WEIR_OK;
}

// Both.

// A device whose queues have times has it from the first of them on: a warm loop makes no driver objects.
static weir_status need_clock_queue(struct ocl_device *device)
{
    const struct ocl_symbols *cl = &device->module->cl;
    struct ocl_clock *clock = &device->clock;
    cl_int code = CL_SUCCESS;
    if (clock->queue)
        return WEIR_OK;
    clock->queue = cl->clCreateCommandQueue(device->context, device->listed->device,
                                            CL_QUEUE_PROFILING_ENABLE, &code);
    if (!clock->queue)
        return clc_native_error(device->module->host, "clCreateCommandQueue", code,
                                "ask for the device's clock");
    device->module->host->count_driver_object();
    return WEIR_OK;
}

weir_status ocl_events_create(struct ocl_queue *queue, bool times)
{
    const struct weir_host *host = queue->device->module->host;
    const bool errors_stay = queue->device->errors_stay;
    struct ocl_pending *pending = errors_stay ? NULL : host->allocate(sizeof *pending);
    queue->pending = pending;
    if (pending)
        *pending = (struct ocl_pending){
            .device = queue->device,
            .users = 1,
            .entries = host->allocate(PENDING * sizeof *pending->entries),
            .capacity = PENDING,
        };
    if (!errors_stay && !(pending && pending->entries))
        return weir_host_no_memory(host, "the commands of a queue");
    if (!times)
        return WEIR_OK;
    pthread_mutex_lock(&queue->device->clock.lock);
    const weir_status status = need_clock_queue(queue->device);
    pthread_mutex_unlock(&queue->device->clock.lock);
    if (status < 0)
        return status;
    queue->watch = host->allocate(sizeof *queue->watch);
    if (!queue->watch)
        return weir_host_no_memory(host, "the times of a queue's operations");
    pthread_mutex_init(&queue->watch->lock, NULL);
    return WEIR_OK;
}

// The work of a queue that is destroyed has ended. Its list is read to the end, for the sake of those that wait for it,
// and since lists of queues that waited for each other in a circle would keep each other.
void ocl_events_finish(struct ocl_queue *queue)
{
    struct ocl_device *device = queue->device;
    struct ocl_watch *watch = queue->watch;
    if (queue->pending) {
        pthread_mutex_lock(&device->pending_lock);
        settle(queue->pending, UINT64_MAX, true);
        put(queue->pending);
        pthread_mutex_unlock(&device->pending_lock);
    }
    if (!watch)
        return;
    for (; watch->fetched < watch->kept; watch->fetched++)
        drop_times(device->module, &watch->ring[watch->fetched % OPERATIONS]);
    drop_times(device->module, &watch->now);
    pthread_mutex_destroy(&watch->lock);
    device->module->host->release(watch);
}

// The two clocks.

// A marker that took long to enqueue is imprecise, and the next one is tried.
static weir_status enqueue_marker(struct ocl_device *device)
{
    const struct ocl_symbols *cl = &device->module->cl;
    struct ocl_clock *clock = &device->clock;
    TRY(need_clock_queue(device));
    const char *call = "clEnqueueMarkerWithWaitList";
    cl_int code = CL_SUCCESS;
    for (int i = 0; i < CLOCK_TRIES && code == CL_SUCCESS; i++) {
        if (clock->marker && clock->after_ns - clock->before_ns <= CLOCK_NARROW_NS)
            break;
        if (clock->marker)
            cl->clReleaseEvent(clock->marker);
        clock->marker = NULL;
        clock->before_ns = weir_clock_now_ns();
        code = cl->clEnqueueMarkerWithWaitList(clock->queue, 0, NULL, &clock->marker);
        clock->after_ns = weir_clock_now_ns();
    }
    if (code == CL_SUCCESS) {
        call = "clFlush";
        code = cl->clFlush(clock->queue);
    }
    if (code == CL_SUCCESS)
        return WEIR_OK;
    return clc_native_error(device->module->host, call, code, "ask for the device's clock");
}

// Some drivers stamp host events with a clock that only approximates the device's. The end of the
// marker is stamped by the device, so that is used if the two disagree.
static bool read_marker(const struct ocl_device *device, uint64_t *out_host_ns,
                        uint64_t *out_device_ns)
{
    const struct ocl_clock *clock = &device->clock;
    uint64_t queued;
    uint64_t end;
    if (ocl_event_profile(device->module, clock->marker, CL_PROFILING_COMMAND_QUEUED, &queued) ||
        ocl_event_profile(device->module, clock->marker, CL_PROFILING_COMMAND_END, &end))
        return false;
    const uint64_t now = weir_clock_now_ns();
    *out_host_ns = clock->before_ns + (clock->after_ns - clock->before_ns) / 2;
    *out_device_ns = queued;
    if (end >= queued && end - queued <= now - *out_host_ns)
        return true;
    *out_host_ns = clock->before_ns + (now - clock->before_ns) / 2;
    *out_device_ns = end;
    return true;
}

weir_status ocl_device_clock(const struct weir_link *link, weir_device *object,
                             uint64_t *out_host_ns, uint64_t *out_device_ns)
{
    struct ocl_device *device = ocl_device_of(link, object);
    struct ocl_clock *clock = &device->clock;
    weir_status status = WEIR_OK;

    pthread_mutex_lock(&clock->lock);
    if (!clock->marker)
        status = enqueue_marker(device);
    if (status == WEIR_OK && !ocl_event_await(device->module, clock->marker, CLOCK_PATIENCE_NS))
        status = WEIR_NOT_READY; // the marker stays for the next call
    if (status == WEIR_OK && !read_marker(device, out_host_ns, out_device_ns))
        status = weir_host_fail(link->host, WEIR_ERROR_UNSUPPORTED,
                                "leave out plugins that want times, or use another driver",
                                "the driver does not tell the times of a marker");
    if (status != WEIR_NOT_READY && clock->marker) {
        device->module->cl.clReleaseEvent(clock->marker);
        clock->marker = NULL;
    }
    pthread_mutex_unlock(&clock->lock);
    return status;
}
