// Records and waits: the kit's, on events that are used again.
#include <inttypes.h>

#include "backends/cuda/ask.h"
#include "backends/cuda/cu.h"

// The driver takes about a thousand operations before a submit blocks.
#define DEPTH 2048

static weir_status create_event(void *user, void **out_event)
{
    struct cu_queue *queue = user;
    struct cu_device *device = queue->device;
    const unsigned timing = queue->timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
    const unsigned blocking = device->module->spin ? CU_EVENT_DEFAULT : CU_EVENT_BLOCKING_SYNC;
    CUevent event = NULL;
    CUresult code = device->module->cu.cuEventCreate(&event, timing | blocking);
    *out_event = event;
    return code == CUDA_SUCCESS ? WEIR_OK
                                : cu_native_error(device, "cuEventCreate", code, "record");
}

static void destroy_event(void *user, void *event)
{
    const struct cu_queue *queue = user;
    queue->device->module->cu.cuEventDestroy(event);
}

static enum weir_kit_state state_of(CUresult code, int *out_code)
{
    *out_code = (int)code;
    if (code == CUDA_SUCCESS)
        return WEIR_KIT_COMPLETE;
    return code == CUDA_ERROR_NOT_READY ? WEIR_KIT_PENDING : WEIR_KIT_UNKNOWN;
}

static enum weir_kit_state query_event(void *user, void *event, int *out_code)
{
    const struct cu_queue *queue = user;
    if (cu_is_given_up(queue->device))
        return state_of(CUDA_ERROR_LAUNCH_TIMEOUT, out_code);
    return state_of(cu_ask_event(&queue->device->module->cu, event), out_code);
}

static enum weir_kit_state wait_for_event(void *user, void *event, int *out_code)
{
    const struct cu_queue *queue = user;
    return state_of(cu_await_record(queue->device, event), out_code);
}

static int time_of_event(void *user, void *event, void *before, uint64_t before_ns,
                         uint64_t *out_time_ns)
{
    const struct cu_queue *queue = user;
    return (int)cu_timeline_convert(queue->device, event, before, before_ns, out_time_ns);
}

static weir_status report(void *user, enum weir_kit_question question, int code, uint64_t sequence)
{
    struct cu_device *device = ((struct cu_queue *)user)->device;
    switch (question) {
    case WEIR_KIT_WAITED:
        return cu_native_error(device, "cuEventSynchronize", (CUresult)code,
                               "wait for operation %" PRIu64, sequence);
    case WEIR_KIT_TIMED:
        return cu_native_error(device, "cuEventElapsedTime", (CUresult)code,
                               "ask for the time of operation %" PRIu64, sequence);
    case WEIR_KIT_ASKED:
    case WEIR_KIT_WORKED: // never: a failure here is one of the context, which every call tells
        break;
    }
    return cu_native_error(device, "cuEventQuery", (CUresult)code,
                           "ask whether operation %" PRIu64 " is complete", sequence);
}

static const struct weir_kit_record_ops ops = {
    .create = create_event,
    .destroy = destroy_event,
    .query = query_event,
    .wait = wait_for_event,
    .time = time_of_event,
    .report = report,
};

weir_status cu_records_init(struct cu_queue *queue)
{
    const struct weir_kit_records_params params = {
        .host = queue->device->module->host,
        .ops = &ops,
        .queue = queue,
        .depth = DEPTH,
        .timing_history = queue->timing ? CU_TIMING_HISTORY : 0,
    };
    return weir_kit_records_create(&params, &queue->records);
}

// The driver may block in cuEventRecord when its queue is full, so no lock is held.
weir_status cu_submit_record(struct cu_queue *queue, uint64_t sequence)
{
    struct cu_device *device = queue->device;
    struct weir_kit_event *event;
    if (queue->timing)
        cu_timeline_advance(device);
    weir_status status = weir_kit_records_take(queue->records, &event);
    if (!event)
        return status;
    CUresult code = device->module->cu.cuEventRecord(event->native, queue->stream);
    if (code == CUDA_SUCCESS)
        return weir_kit_records_append(queue->records, sequence, event);
    weir_kit_records_cancel(queue->records, event);
    return cu_native_error(device, "cuEventRecord", code, "record");
}

weir_status cu_submit_wait(struct cu_queue *queue, struct cu_queue *producer, uint64_t sequence)
{
    struct weir_kit_event *event = weir_kit_records_hold(producer->records, sequence);
    if (!event)
        return WEIR_OK;
    CUresult code = queue->device->module->cu.cuStreamWaitEvent(queue->stream, event->native, 0);
    weir_kit_records_release(producer->records, event);
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    return cu_native_error(queue->device, "cuStreamWaitEvent", code, "wait");
}

weir_status cu_event_query(const struct weir_link *link, weir_queue *object, uint64_t sequence)
{
    struct cu_queue *queue = cu_queue_of(link, object);
    struct cu_scope scope;
    if (weir_kit_records_completed(queue->records) >= sequence) {
        cu_prints_take(queue->device);
        return WEIR_OK;
    }
    weir_status status = cu_enter(queue->device, &scope);
    if (status < 0)
        return status;
    status = weir_kit_records_query(queue->records, sequence);
    cu_prints_take(queue->device);
    cu_leave(queue->device, &scope);
    return status;
}

weir_status cu_event_wait(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                          uint64_t timeout_ns)
{
    struct cu_queue *queue = cu_queue_of(link, object);
    struct cu_scope scope;
    weir_status status = cu_enter(queue->device, &scope);
    if (status < 0)
        return status;
    status = weir_kit_records_wait(queue->records, sequence, timeout_ns);
    cu_prints_take(queue->device);
    if (status == WEIR_OK)
        weir_kit_idle_settle(queue->device->idle);
    cu_leave(queue->device, &scope);
    return status;
}

weir_status cu_event_time(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                          uint64_t *out_time_ns)
{
    struct cu_queue *queue = cu_queue_of(link, object);
    struct cu_scope scope;
    weir_status status = cu_enter(queue->device, &scope);
    if (status < 0)
        return status;
    status = weir_kit_records_time(queue->records, sequence, out_time_ns);
    cu_leave(queue->device, &scope);
    return status;
}
