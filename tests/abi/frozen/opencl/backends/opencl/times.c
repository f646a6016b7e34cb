// Times of operations, for plugins that request them. An operation may be several commands; its
// times are the start of the first and the end of the last one. These two events are kept in a ring
// until the times are fetched. If the ring is full, the newest operation replaces the oldest.
//
// The device's clock is related to the host's by the moment at which a marker is enqueued: the
// driver stamps it with the device's clock, between two readings of the host's clock. It does not
// matter whether the device is busy.
#include "tests/abi/frozen/opencl/backends/opencl/opencl.h"
#include "tests/abi/frozen/opencl/base/clock.h"

#define OPERATIONS 4096 // a power of two
#define CLOCK_PATIENCE_NS 1000000
#define CLOCK_PAUSE_NS 20000
#define CLOCK_TRIES 8
#define CLOCK_NARROW_NS 10000

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

static void drop(const struct ocl_module *module, struct timed *timed)
{
    if (timed->first)
        module->cl.clReleaseEvent(timed->first);
    if (timed->last)
        module->cl.clReleaseEvent(timed->last);
    *timed = (struct timed){0};
}

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
        return ocl_native_error(device->module, "clCreateCommandQueue", code,
                                "ask for the device's clock");
    device->module->host->count_driver_object();
    return WEIR_OK;
}

weir_status ocl_watch_init(struct ocl_queue *queue)
{
    const struct weir_host *host = queue->device->module->host;
    pthread_mutex_lock(&queue->device->clock.lock);
    weir_status status = need_clock_queue(queue->device);
    pthread_mutex_unlock(&queue->device->clock.lock);
    if (status < 0)
        return status;
    queue->watch = host->allocate(sizeof *queue->watch);
    if (!queue->watch)
        return weir_host_no_memory(host, "the times of a queue's operations");
    pthread_mutex_init(&queue->watch->lock, NULL);
    return WEIR_OK;
}

void ocl_watch_finish(struct ocl_queue *queue)
{
    const struct ocl_module *module = queue->device->module;
    struct ocl_watch *watch = queue->watch;
    if (!watch)
        return;
    for (; watch->fetched < watch->kept; watch->fetched++)
        drop(module, &watch->ring[watch->fetched % OPERATIONS]);
    drop(module, &watch->now);
    pthread_mutex_destroy(&watch->lock);
    module->host->release(watch);
    queue->watch = NULL;
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
        drop(module, &watch->now);
        return;
    }
    watch->now.sequence = sequence;
    pthread_mutex_lock(&watch->lock);
    if (watch->kept - watch->fetched == OPERATIONS)
        drop(module, &watch->ring[watch->fetched++ % OPERATIONS]);
    watch->ring[watch->kept++ % OPERATIONS] = watch->now;
    pthread_mutex_unlock(&watch->lock);
    watch->now = (struct timed){0};
}

static bool read_time(const struct ocl_module *module, cl_event event, cl_profiling_info what,
                      uint64_t *out_time_ns)
{
    cl_ulong time = 0;
    cl_int code = module->cl.clGetEventProfilingInfo(event, what, sizeof time, &time, NULL);
    *out_time_ns = time;
    return code == CL_SUCCESS;
}

// Returns the state: positive while the command is pending, negative if it failed.
static cl_int state_of(const struct ocl_module *module, cl_event event)
{
    cl_int state = CL_COMPLETE;
    cl_int code = module->cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state,
                                            &state, NULL);
    return code == CL_SUCCESS ? state : code;
}

// False if the operation failed: it then has no times.
static bool times_of(const struct ocl_module *module, const struct timed *timed,
                     struct weir_operation_time *out_time)
{
    const cl_event last = timed->last ? timed->last : timed->first;
    *out_time = (struct weir_operation_time){.sequence = timed->sequence};
    return state_of(module, last) == CL_COMPLETE &&
           read_time(module, timed->first, CL_PROFILING_COMMAND_START, &out_time->start_ns) &&
           read_time(module, last, CL_PROFILING_COMMAND_END, &out_time->end_ns);
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
        if (state_of(module, timed->last ? timed->last : timed->first) > CL_COMPLETE)
            break;
        struct weir_operation_time time;
        if (times_of(module, timed, &time))
            weir_write((char *)times + (*out_count)++ * time_size, time_size, &time, sizeof time);
        drop(module, timed);
        watch->fetched++;
    }
    pthread_mutex_unlock(&watch->lock);
    return WEIR_OK;
}

// The two clocks.

// A marker that took long to enqueue is imprecise, and the next one is tried.
static weir_status enqueue_marker(struct ocl_device *device)
{
    const struct ocl_symbols *cl = &device->module->cl;
    struct ocl_clock *clock = &device->clock;
    weir_status status = need_clock_queue(device);
    if (status < 0)
        return status;
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
    return ocl_native_error(device->module, call, code, "ask for the device's clock");
}

static bool wait_for_marker(const struct ocl_device *device)
{
    const uint64_t start = weir_clock_now_ns();
    while (state_of(device->module, device->clock.marker) > CL_COMPLETE) {
        if (weir_clock_now_ns() - start > CLOCK_PATIENCE_NS)
            return false;
        weir_clock_sleep_ns(CLOCK_PAUSE_NS);
    }
    return true;
}

// Some drivers stamp host events with a clock that only approximates the device's. The end of the
// marker is stamped by the device, so that is used if the two disagree.
static bool read_marker(const struct ocl_device *device, uint64_t *out_host_ns,
                        uint64_t *out_device_ns)
{
    const struct ocl_clock *clock = &device->clock;
    uint64_t queued;
    uint64_t end;
    if (!read_time(device->module, clock->marker, CL_PROFILING_COMMAND_QUEUED, &queued) ||
        !read_time(device->module, clock->marker, CL_PROFILING_COMMAND_END, &end))
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
    if (status == WEIR_OK && !wait_for_marker(device))
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

void ocl_clock_finish(struct ocl_device *device)
{
    const struct ocl_symbols *cl = &device->module->cl;
    if (device->clock.marker)
        cl->clReleaseEvent(device->clock.marker);
    if (device->clock.queue)
        cl->clReleaseCommandQueue(device->clock.queue);
    pthread_mutex_destroy(&device->clock.lock);
}
