// Records and waits, by the kit, on Tarn's events, which are reused. All functions are called
// within the device's context.
#include <inttypes.h>

#include "trn.h"

static const struct trn_symbols *tarn_of(void *user)
{
    return &((struct trn_queue *)user)->device->module->tarn;
}

static weir_status create_event(void *user, void **out_event)
{
    const struct trn_queue *queue = user;
    tarn_event *event = NULL;
    tarn_result result = tarn_of(user)->tarn_event_create(&event);
    *out_event = event;
    if (result == TARN_OK)
        return WEIR_OK;
    return trn_error(queue->device->module, "tarn_event_create", result, "record");
}

static void destroy_event(void *user, void *event)
{
    tarn_of(user)->tarn_event_destroy(event);
}

static enum weir_kit_state state_of(tarn_result result, int *out_code)
{
    *out_code = (int)result;
    if (result == TARN_OK)
        return WEIR_KIT_COMPLETE;
    return result == TARN_NOT_READY ? WEIR_KIT_PENDING : WEIR_KIT_UNKNOWN;
}

static enum weir_kit_state query_event(void *user, void *event, int *out_code)
{
    return state_of(tarn_of(user)->tarn_event_query(event), out_code);
}

static enum weir_kit_state wait_for_event(void *user, void *event, int *out_code)
{
    return state_of(tarn_of(user)->tarn_event_synchronize(event), out_code);
}

static int time_of_event(void *user, void *event, void *before, uint64_t before_ns,
                         uint64_t *out_time_ns)
{
    (void)before;
    (void)before_ns;
    return (int)tarn_of(user)->tarn_event_time(event, out_time_ns);
}

static weir_status report(void *user, enum weir_kit_question question, int code, uint64_t sequence)
{
    static const char *const calls[] = {
        [WEIR_KIT_ASKED] = "tarn_event_query",
        [WEIR_KIT_WAITED] = "tarn_event_synchronize",
        [WEIR_KIT_WORKED] = "tarn_event_query",
        [WEIR_KIT_TIMED] = "tarn_event_time",
    };
    const struct trn_queue *queue = user;
    return trn_error(queue->device->module, calls[question], (tarn_result)code,
                     "ask about operation %" PRIu64, sequence);
}

static const struct weir_kit_record_ops ops = {
    .create = create_event,
    .destroy = destroy_event,
    .query = query_event,
    .wait = wait_for_event,
    .time = time_of_event,
    .report = report,
};

weir_status trn_records_create(struct trn_queue *queue, bool timing)
{
    const struct weir_kit_records_params params = {
        .host = queue->device->module->host,
        .ops = &ops,
        .queue = queue,
        .timing_history = timing ? TRN_TIMING_HISTORY : 0,
    };
    return weir_kit_records_create(&params, &queue->records);
}

weir_status trn_submit_record(struct trn_queue *queue, uint64_t sequence)
{
    struct weir_kit_event *event;
    weir_status status = weir_kit_records_take(queue->records, &event);
    if (!event)
        return status;
    tarn_result result = tarn_of(queue)->tarn_event_record(event->native, queue->stream);
    if (result == TARN_OK)
        return weir_kit_records_append(queue->records, sequence, event);
    weir_kit_records_cancel(queue->records, event);
    return trn_error(queue->device->module, "tarn_event_record", result, "record");
}

weir_status trn_submit_wait(struct trn_queue *queue, struct trn_queue *producer, uint64_t sequence)
{
    struct weir_kit_event *event = weir_kit_records_hold(producer->records, sequence);
    if (!event) // it is complete
        return WEIR_OK;
    tarn_result result = tarn_of(queue)->tarn_stream_wait_event(queue->stream, event->native);
    weir_kit_records_release(producer->records, event);
    if (result == TARN_OK)
        return WEIR_OK;
    return trn_error(queue->device->module, "tarn_stream_wait_event", result, "wait");
}

weir_status trn_event_query(const struct weir_link *link, weir_queue *object, uint64_t sequence)
{
    struct trn_queue *queue = trn_queue_of(link, object);
    tarn_context *before;
    weir_status status = trn_enter(queue->device, &before);
    if (status < 0)
        return status;
    status = weir_kit_records_query(queue->records, sequence);
    trn_leave(queue->device, before);
    return status;
}

weir_status trn_event_wait(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                           uint64_t timeout_ns)
{
    struct trn_queue *queue = trn_queue_of(link, object);
    tarn_context *before;
    weir_status status = trn_enter(queue->device, &before);
    if (status < 0)
        return status;
    status = weir_kit_records_wait(queue->records, sequence, timeout_ns);
    if (status == WEIR_OK)
        weir_kit_idle_settle(queue->device->idle);
    trn_leave(queue->device, before);
    return status;
}

weir_status trn_event_time(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                           uint64_t *out_time_ns)
{
    struct trn_queue *queue = trn_queue_of(link, object);
    tarn_context *before;
    weir_status status = trn_enter(queue->device, &before);
    if (status < 0)
        return status;
    status = weir_kit_records_time(queue->records, sequence, out_time_ns);
    trn_leave(queue->device, before);
    return status;
}
