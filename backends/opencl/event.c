// Records and waits, by the kit. A record is an event that the driver created, of the last command or of a
// marker after it: commands.c.
#include <inttypes.h>

#include "backends/opencl/opencl.h"

// CL_COMPLETE, or the command's error: it has ended.
static cl_int ask_state(const struct ocl_queue *queue, cl_event event, cl_int *out_state)
{
    *out_state = CL_COMPLETE;
    return queue->device->module->cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                                    sizeof *out_state, out_state, NULL);
}

static void destroy_event(void *user, void *event)
{
    const struct ocl_queue *queue = user;
    queue->device->module->cl.clReleaseEvent(event);
}

static enum weir_kit_state query_event(void *user, void *event, int *out_code)
{
    cl_int state;
    *out_code = ask_state(user, event, &state);
    if (*out_code != CL_SUCCESS)
        return WEIR_KIT_UNKNOWN;
    if (state > CL_COMPLETE)
        return WEIR_KIT_PENDING;
    *out_code = state;
    return state == CL_COMPLETE ? WEIR_KIT_COMPLETE : WEIR_KIT_FAILED;
}

// The wait for a failed command fails too, with another code than that of the command.
static enum weir_kit_state wait_for_event(void *user, void *event, int *out_code)
{
    const struct ocl_queue *queue = user;
    const cl_event native = event;
    cl_int state;
    *out_code = queue->device->module->cl.clWaitForEvents(1, &native);
    if (*out_code == CL_SUCCESS)
        return WEIR_KIT_COMPLETE;
    return ask_state(queue, event, &state) == CL_SUCCESS && state < CL_COMPLETE ? WEIR_KIT_FAILED
                                                                                : WEIR_KIT_UNKNOWN;
}

static int time_of_event(void *user, void *event, void *before, uint64_t before_ns,
                         uint64_t *out_time_ns)
{
    const struct ocl_queue *queue = user;
    cl_ulong time = 0;
    (void)before;
    (void)before_ns;
    const cl_int code =
        queue->device->module->cl.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END,
                                                          sizeof time, &time, NULL);
    *out_time_ns = time;
    return code;
}

static weir_status report(void *user, enum weir_kit_question question, int code, uint64_t sequence)
{
    const struct ocl_module *module = ((const struct ocl_queue *)user)->device->module;
    switch (question) {
    case WEIR_KIT_WORKED:
        return ocl_event_error(module, "a command of the queue", code,
                               "the work before operation %" PRIu64 " failed, or waits for some "
                               "that did",
                               sequence);
    case WEIR_KIT_WAITED:
        return ocl_native_error(module, "clWaitForEvents", code, "wait on the host");
    case WEIR_KIT_TIMED:
        return ocl_native_error(module, "clGetEventProfilingInfo", code,
                                "the driver did not tell the time of operation %" PRIu64, sequence);
    case WEIR_KIT_ASKED:
        break;
    }
    return ocl_native_error(module, "clGetEventInfo", code,
                            "ask whether the queue's work is complete");
}

static const struct weir_kit_record_ops ops = {
    .destroy = destroy_event,
    .query = query_event,
    .wait = wait_for_event,
    .time = time_of_event,
    .report = report,
};

weir_status ocl_records_init(struct ocl_queue *queue, bool timing)
{
    const struct weir_kit_records_params params = {
        .host = queue->device->module->host,
        .ops = &ops,
        .queue = queue,
        .timing_history = timing ? OCL_TIMING_HISTORY : 0,
        // A query takes 1.3 us on NVIDIA's driver, a third of a launch. Of times each is asked anyway.
        .failures_last = queue->device->errors_stay && !timing,
    };
    return weir_kit_records_create(&params, &queue->records);
}

weir_status ocl_submit_record(struct ocl_queue *queue, uint64_t sequence)
{
    struct weir_kit_event *event;
    cl_event native = NULL;
    weir_status status = weir_kit_records_take(queue->records, &event);
    if (!event)
        return status;
    status = ocl_commands_record(queue, &native);
    if (status < 0) {
        weir_kit_records_cancel(queue->records, event);
        return status;
    }
    event->native = native;
    return weir_kit_records_append(queue->records, sequence, event);
}

weir_status ocl_submit_wait(struct ocl_queue *queue, uint64_t own, struct ocl_queue *producer,
                            uint64_t sequence)
{
    weir_status status = ocl_launches_wait(queue, own, producer, sequence);
    if (status < 0)
        return status;
    struct weir_kit_event *event = weir_kit_records_hold(producer->records, sequence);
    if (!event)
        return WEIR_OK;
    status = ocl_queue_flush_to(producer, sequence);
    if (status == WEIR_OK)
        status = ocl_commands_wait(queue, event->native);
    weir_kit_records_release(producer->records, event);
    return status;
}

// `status` is that of the record, which may have the event of a command that the driver ended because one
// that it waited for had failed. Of the two the launch is the cause. The driver may end such a command while
// others before it run.
static weir_status find_cause(struct ocl_queue *queue, uint64_t sequence, weir_status status)
{
    if (status > WEIR_OK)
        return status;
    const weir_status launches = ocl_launches_check(queue, sequence, status == WEIR_OK);
    if (status < 0 || launches < 0)
        atomic_store(&queue->failed, true);
    return launches < 0 ? launches : status;
}

weir_status ocl_event_query(const struct weir_link *link, weir_queue *object, uint64_t sequence)
{
    struct ocl_queue *queue = ocl_queue_of(link, object);
    weir_status status = ocl_queue_flush_to(queue, sequence);
    if (status < 0)
        return status;
    return find_cause(queue, sequence, weir_kit_records_query(queue->records, sequence));
}

weir_status ocl_event_wait(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                           uint64_t timeout_ns)
{
    struct ocl_queue *queue = ocl_queue_of(link, object);
    weir_status status = ocl_queue_flush_to(queue, sequence);
    if (status < 0)
        return status;
    return find_cause(queue, sequence, weir_kit_records_wait(queue->records, sequence, timeout_ns));
}

weir_status ocl_event_time(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                           uint64_t *out_time_ns)
{
    return weir_kit_records_time(ocl_queue_of(link, object)->records, sequence, out_time_ns);
}
