// A record is a marker in the command queue. Its native event is kept in a ring
// until it is known to be complete; the markers of an in-order queue complete in
// order, so the ring is retired from the front, a little at each record. Once a
// record is complete, its number is all that is needed to know that.
#include <inttypes.h>
#include <string.h>

#include "backends/opencl/opencl.h"
#include "base/clock.h"

#define RECORDS_AT_FIRST 64

// CL_COMPLETE or an error of the command's: it has ended.
static cl_int ask_state(const struct ocl_queue *queue, cl_event event, cl_int *out_state)
{
    *out_state = CL_COMPLETE;
    return queue->device->module->cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                                    sizeof *out_state, out_state, NULL);
}

static struct ocl_record *record_at(const struct ocl_queue *queue, size_t index)
{
    return &queue->records[(queue->first + index) & (queue->capacity - 1)];
}

// The record of that number; NULL when it is complete and retired. Records behind
// it say nothing about it: they may be there still.
static struct ocl_record *find_record(const struct ocl_queue *queue, uint64_t sequence)
{
    size_t low = 0;
    size_t high = queue->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (record_at(queue, middle)->sequence < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    struct ocl_record *found = low < queue->count ? record_at(queue, low) : NULL;
    return found && found->sequence == sequence ? found : NULL;
}

static void keep_time(struct ocl_queue *queue, const struct ocl_record *record)
{
    cl_ulong time = 0;
    cl_int code =
        queue->device->module->cl.clGetEventProfilingInfo(record->event, CL_PROFILING_COMMAND_END,
                                                          sizeof time, &time, NULL);
    queue->times[queue->time_count++ % OCL_TIMING_HISTORY] =
        (struct ocl_time){record->sequence, time, code};
}

// Drops the first record if it is complete. Under the queue's lock.
static bool retire_first(struct ocl_queue *queue)
{
    if (queue->count == 0)
        return false;
    struct ocl_record *record = record_at(queue, 0);
    cl_int state;
    queue->asked_code = ask_state(queue, record->event, &state);
    // What cannot be asked about may still run, and so it stays.
    if (queue->asked_code != CL_SUCCESS || state > CL_COMPLETE)
        return false;
    if (state < CL_COMPLETE && queue->failed_sequence == 0) {
        queue->failed_sequence = record->sequence;
        queue->failed_code = state;
    }
    if (state == CL_COMPLETE && queue->timing)
        keep_time(queue, record);
    queue->device->module->cl.clReleaseEvent(record->event);
    queue->first = (queue->first + 1) & (queue->capacity - 1);
    queue->count--;
    return true;
}

// Doubles the ring. Under the queue's lock.
static bool grow(struct ocl_queue *queue)
{
    const struct weir_host *host = queue->device->module->host;
    const size_t capacity = queue->capacity ? 2 * queue->capacity : RECORDS_AT_FIRST;
    struct ocl_record *records = host->allocate(capacity * sizeof *records);
    if (!records)
        return false;
    for (size_t i = 0; i < queue->count; i++)
        records[i] = *record_at(queue, i);
    host->release(queue->records);
    queue->records = records;
    queue->capacity = capacity;
    queue->first = 0;
    return true;
}

weir_status ocl_submit_record(struct ocl_queue *queue, uint64_t sequence)
{
    const struct ocl_module *module = queue->device->module;
    cl_event event;
    cl_int code = module->cl.clEnqueueMarkerWithWaitList(queue->queue, 0, NULL, &event);
    if (code != CL_SUCCESS)
        return ocl_native_error(module, "clEnqueueMarkerWithWaitList", code, "record");

    pthread_mutex_lock(&queue->lock);
    // Two for one: the ring shrinks as long as the device keeps up.
    if (retire_first(queue))
        retire_first(queue);
    const bool fits = queue->count < queue->capacity || grow(queue);
    if (fits) {
        queue->count++;
        *record_at(queue, queue->count - 1) = (struct ocl_record){sequence, event};
    }
    pthread_mutex_unlock(&queue->lock);
    if (fits)
        return WEIR_OK;
    module->cl.clReleaseEvent(event);
    return weir_host_no_memory(module->host, "the records of a queue");
}

// Stores the event of a record with a reference for the caller, or NULL when the
// record is complete already.
static weir_status borrow(struct ocl_queue *queue, uint64_t sequence, cl_event *out_event)
{
    const struct ocl_module *module = queue->device->module;
    cl_int code = CL_SUCCESS;
    *out_event = NULL;
    pthread_mutex_lock(&queue->lock);
    struct ocl_record *record = find_record(queue, sequence);
    if (record)
        code = module->cl.clRetainEvent(record->event);
    if (record && code == CL_SUCCESS)
        *out_event = record->event;
    pthread_mutex_unlock(&queue->lock);
    return code == CL_SUCCESS ? WEIR_OK : ocl_native_error(module, "clRetainEvent", code, "wait");
}

weir_status ocl_submit_wait(struct ocl_queue *queue, struct ocl_queue *producer, uint64_t sequence)
{
    const struct ocl_module *module = queue->device->module;
    cl_event event;
    weir_status status = borrow(producer, sequence, &event);
    if (!event)
        return status;

    status = ocl_queue_flush_to(producer, sequence);
    if (status == WEIR_OK) {
        cl_int code = module->cl.clEnqueueBarrierWithWaitList(queue->queue, 1, &event, NULL);
        if (code != CL_SUCCESS)
            status = ocl_native_error(module, "clEnqueueBarrierWithWaitList", code, "wait");
    }
    module->cl.clReleaseEvent(event);
    return status;
}

static weir_status report_unasked(const struct ocl_queue *queue, cl_int code)
{
    return ocl_native_error(queue->device->module, "clGetEventInfo", code,
                            "ask whether the queue's work is complete");
}

static weir_status report_failure(const struct ocl_queue *queue, cl_int code)
{
    return ocl_native_error(queue->device->module, "a command of the queue", code,
                            "the driver ended the queue's work before its time");
}

// Retires what is complete and answers for `sequence`.
static weir_status answer(struct ocl_queue *queue, uint64_t sequence)
{
    pthread_mutex_lock(&queue->lock);
    while (retire_first(queue)) {
    }
    const bool complete = !find_record(queue, sequence);
    const bool failed = queue->failed_sequence != 0 && queue->failed_sequence <= sequence;
    const cl_int code = queue->failed_code;
    const cl_int asked = queue->asked_code;
    pthread_mutex_unlock(&queue->lock);

    if (failed)
        return report_failure(queue, code);
    if (complete)
        return WEIR_OK;
    return asked == CL_SUCCESS ? WEIR_NOT_READY : report_unasked(queue, asked);
}

weir_status ocl_event_query(const struct weir_link *link, weir_queue *object, uint64_t sequence)
{
    struct ocl_queue *queue = ocl_queue_of(link, object);
    weir_status status = ocl_queue_flush_to(queue, sequence);
    return status < 0 ? status : answer(queue, sequence);
}

// OpenCL has no wait with a timeout, so this asks.
static weir_status poll_until(struct ocl_queue *queue, uint64_t sequence, uint64_t timeout_ns)
{
    const uint64_t start_ns = weir_clock_now_ns();
    uint64_t pause_ns = 0;
    for (;;) {
        weir_status status = answer(queue, sequence);
        if (status != WEIR_NOT_READY)
            return status;
        if (!weir_clock_pause(start_ns, timeout_ns, &pause_ns))
            return WEIR_TIMEOUT;
    }
}

static weir_status wait_for_ever(struct ocl_queue *queue, uint64_t sequence)
{
    const struct ocl_module *module = queue->device->module;
    cl_event event;
    weir_status status = borrow(queue, sequence, &event);
    if (status < 0)
        return status;
    if (event) {
        cl_int code = module->cl.clWaitForEvents(1, &event);
        // A command that failed is reported with its own code below.
        cl_int state;
        const bool refused = code != CL_SUCCESS && (ask_state(queue, event, &state) != CL_SUCCESS ||
                                                    state >= CL_COMPLETE);
        module->cl.clReleaseEvent(event);
        if (refused)
            return ocl_native_error(module, "clWaitForEvents", code, "wait on the host");
    }
    // Some drivers wake the waiter a moment before the state reads complete.
    return poll_until(queue, sequence, WEIR_FOREVER);
}

weir_status ocl_event_wait(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                           uint64_t timeout_ns)
{
    struct ocl_queue *queue = ocl_queue_of(link, object);
    weir_status status = ocl_queue_flush_to(queue, sequence);
    if (status < 0)
        return status;
    return timeout_ns == WEIR_FOREVER ? wait_for_ever(queue, sequence)
                                      : poll_until(queue, sequence, timeout_ns);
}

// Looks among the kept times, which are in order of their records.
static bool find_time(const struct ocl_queue *queue, uint64_t sequence, struct ocl_time *out_time)
{
    const uint64_t end = queue->time_count;
    uint64_t low = end > OCL_TIMING_HISTORY ? end - OCL_TIMING_HISTORY : 0;
    uint64_t high = end;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (queue->times[middle % OCL_TIMING_HISTORY].sequence < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    const struct ocl_time *time = &queue->times[low % OCL_TIMING_HISTORY];
    if (low == end || time->sequence != sequence)
        return false;
    *out_time = *time;
    return true;
}

weir_status ocl_event_time(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                           uint64_t *out_time_ns)
{
    struct ocl_queue *queue = ocl_queue_of(link, object);
    const struct weir_host *host = queue->device->module->host;
    if (!queue->timing)
        return weir_host_fail(host, WEIR_ERROR_INVALID, "create the queue with timing",
                              "the queue takes no times");

    weir_status status = answer(queue, sequence);
    if (status != WEIR_OK)
        return status;
    pthread_mutex_lock(&queue->lock);
    struct ocl_time time = {0};
    const bool found = find_time(queue, sequence, &time);
    pthread_mutex_unlock(&queue->lock);
    *out_time_ns = time.time_ns;
    if (time.code != CL_SUCCESS)
        return ocl_native_error(queue->device->module, "clGetEventProfilingInfo", time.code,
                                "the driver did not tell the time of operation %" PRIu64, sequence);
    if (found)
        return WEIR_OK;
    return weir_host_fail(host, WEIR_ERROR_EXPIRED, "read times sooner",
                          "the time of operation %" PRIu64
                          " is not kept; a queue keeps its last %d",
                          sequence, OCL_TIMING_HISTORY);
}

weir_status ocl_records_settle(struct ocl_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    while (retire_first(queue)) {
    }
    const bool failed = queue->failed_sequence != 0;
    const cl_int code = queue->failed_code;
    const cl_int asked = queue->count > 0 ? queue->asked_code : CL_SUCCESS;
    queue->failed_sequence = 0;
    pthread_mutex_unlock(&queue->lock);
    if (failed)
        return report_failure(queue, code);
    return asked == CL_SUCCESS ? WEIR_OK : report_unasked(queue, asked);
}

void ocl_records_finish(struct ocl_queue *queue)
{
    const struct ocl_module *module = queue->device->module;
    for (size_t i = 0; i < queue->count; i++)
        module->cl.clReleaseEvent(record_at(queue, i)->event);
    module->host->release(queue->records);
    module->host->release(queue->times);
}
