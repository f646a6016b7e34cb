// The starter and the deliverer of a pipeline. There are two because a thread that waits for the
// oldest frame cannot start the next, and so that `prepare` and `deliver`, the
// user's work on the host, overlap each other as stages do on the device.
//
// Waits. A stage waits on the device for the end of every stage that it depends
// on, in the same frame. Nothing waits for the slot's previous frame: the starter
// takes a slot only after that frame was delivered, and the deliverer delivers it
// after waiting, on the host, for all its work. A device wait could not replace
// that, because `deliver` reads the slot on the host. It costs no overlap as long
// as there is one slot more than frames in work, which is the default: stages of
// different frames use different slots, and within a queue frames are in order.
//
// Failed queues. From its failure until it is recovered a queue refuses work. If
// it were recovered between two operations of one frame, the second would run
// although the first had not. So only the starter recovers queues, and only
// between frames. It then waits for all queues in order of the graph, so that the
// failure has reached every queue that waited for it before any queue is
// recovered.
#include "patterns/pipeline_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

static weir_queue *queue_at(const weir_pipeline *pipeline, uint32_t index)
{
    return pipeline->params.graphs ? pipeline->slots[index].queue : pipeline->stages[index].queue;
}

weir_status weir__pipeline_recover_queues(weir_pipeline *pipeline)
{
    const struct weir_pipeline_params *params = &pipeline->params;
    const uint32_t count = params->graphs ? params->slot_count : params->stage_count;
    weir_status first = WEIR_OK;
    struct weir_error error;

    for (uint32_t i = 0; i < count; i++) {
        weir_queue *queue = queue_at(pipeline, i);
        // A queue fails only when it reaches its wait for a failed event; if it
        // were recovered before that, it would fail afterwards.
        (void)weir_queue_sync(queue, WEIR_FOREVER);
        weir_status status = weir_queue_recover(queue);
        if (status < 0 && first == WEIR_OK) {
            first = status;
            error = *weir_last_error();
        }
    }
    return first == WEIR_OK ? WEIR_OK : weir_error_set(&error);
}

// --- starting a frame ---

void weir__pipeline_note(struct weir__slot *slot, const char *stage, weir_status status)
{
    if (slot->status != WEIR_OK)
        return;
    slot->stage = stage;
    if (status < 0 && weir_last_error()->status == status) {
        slot->status = status;
        slot->error = *weir_last_error();
        return;
    }
    slot->status = status < 0 ? status : WEIR_ERROR_INVALID;
    slot->error = (struct weir_error){.status = slot->status};
    snprintf(slot->error.message, sizeof slot->error.message,
             "the callback of '%s' returned %s: %s", stage, weir_status_name(status),
             weir_status_text(status));
    if (status > 0)
        snprintf(slot->error.remedy, sizeof slot->error.remedy,
                 "return WEIR_OK or an error: a frame that was started succeeds or fails");
}

bool weir__pipeline_took(struct weir__slot *slot, const char *stage, weir_status status)
{
    if (status == WEIR_OK)
        return true;
    slot->queue_failed = true;
    slot->refused = slot->refused || slot->status == WEIR_OK;
    weir__pipeline_note(slot, stage, status);
    return false;
}

// The callback ended its thread: the frame has failed, and the starter goes on.
static void survive_call(void *user)
{
    struct weir__call *call = user;
    char what[WEIR__NAME_SIZE + 32];
    snprintf(what, sizeof what, "the callback of '%s'", call->name);
    weir__pipeline_note(call->slot, call->name,
                        weir__pattern_callback_ended(call->pipeline->label, what));
    if (call->abandon)
        call->abandon(call);
    if (call->record) {
        weir__pipeline_end_prepare(call->pipeline, call->record);
        weir__pipeline_preparer(call->pipeline);
        return;
    }
    weir__pipeline_end_start(call->pipeline);
    weir__pipeline_starter(call->pipeline);
}

void weir__pipeline_call(struct weir__call *call, void (*function)(void *call))
{
    weir__pattern_forget();
    weir_thread_call(function, survive_call, call);
}

void weir__pipeline_call_submit(void *user)
{
    struct weir__call *call = user;
    call->status = call->stage->submit(call->pipeline->params.user, call->slot->data, call->frame,
                                       call->queue);
}

// Also after a callback that failed: it may have submitted half of its work, which must finish
// before the slot is reused.
static bool record_end(const struct weir__call *call)
{
    const size_t index = (size_t)(call->stage - call->pipeline->stages);
    return weir__pipeline_took(call->slot, call->name,
                               weir_queue_record(call->queue, &call->slot->ends[index]));
}

static void abandon_stage(const struct weir__call *call)
{
    (void)record_end(call);
    weir_region_pop(weir_device_runtime(call->pipeline->params.device));
}

static bool submit_to(weir_pipeline *pipeline, struct weir__slot *slot, void *frame, uint32_t index)
{
    const struct weir__stage *stage = &pipeline->stages[index];

    for (uint32_t i = 0; i < index; i++) {
        if ((stage->depends_on >> i & 1) &&
            !weir__pipeline_took(slot, stage->name, weir_queue_wait(stage->queue, slot->ends[i])))
            return false;
    }
    if (pipeline->timing &&
        !weir__pipeline_took(slot, stage->name,
                             weir_queue_record(stage->queue, &slot->begins[index])))
        return false;

    struct weir__call call = {
        .pipeline = pipeline,
        .slot = slot,
        .frame = frame,
        .name = stage->name,
        .stage = stage,
        .queue = stage->queue,
        .abandon = abandon_stage,
    };
    weir__pipeline_call(&call, weir__pipeline_call_submit);
    if (call.status != WEIR_OK)
        weir__pipeline_note(slot, stage->name, call.status);
    if (record_end(&call))
        return call.status == WEIR_OK;
    // The queue had failed, and what the callback returned may be its refusal.
    slot->refused = true;
    return false;
}

// In a region with the stage's name, inside the frame's region: traces show both.
static bool submit_stage(weir_pipeline *pipeline, struct weir__slot *slot, void *frame,
                         uint32_t index)
{
    weir_runtime *runtime = weir_device_runtime(pipeline->params.device);
    weir_region_push(runtime, pipeline->stages[index].name, WEIR_NO_NUMBER);
    const bool submitted = submit_to(pipeline, slot, frame, index);
    weir_region_pop(runtime);
    return submitted;
}

static void submit_frame(weir_pipeline *pipeline, struct weir__slot *slot, void *frame)
{
    const struct weir_pipeline_params *params = &pipeline->params;

    if (params->graphs) {
        weir__pipeline_launch(pipeline, slot, frame);
        return;
    }
    for (uint32_t i = 0; i < params->stage_count; i++) {
        if (!submit_stage(pipeline, slot, frame, i))
            return;
    }
    // A wait flushes the queue that it waits for. But the last stages are waited
    // for by the deliverer, which may still be busy with an earlier frame.
    for (uint32_t i = 0; i < params->stage_count; i++) {
        if (pipeline->stages[i].last &&
            !weir__pipeline_took(slot, pipeline->stages[i].name,
                                 weir_queue_flush(pipeline->stages[i].queue)))
            return;
    }
}

void weir__pipeline_reset_slot(weir_pipeline *pipeline, struct weir__slot *slot)
{
    slot->status = WEIR_OK;
    slot->stage = "";
    slot->queue_failed = false;
    slot->refused = false;
    slot->done = (struct weir_event){0};
    memset(slot->begins, 0, pipeline->params.stage_count * sizeof *slot->begins);
    memset(slot->ends, 0, pipeline->params.stage_count * sizeof *slot->ends);
}

// Called without the lock. Returns false if the frame cannot run, after noting the
// failure.
static bool recover(weir_pipeline *pipeline, struct weir__slot *slot)
{
    weir_status status = weir__pipeline_recover_queues(pipeline);
    if (status == WEIR_OK)
        return true;
    slot->queue_failed = true;
    weir__pipeline_note(slot, "", status);
    return false;
}

struct weir__record *weir__pipeline_take_slot(weir_pipeline *pipeline, enum weir__frame_state state)
{
    struct weir__record *record = weir__pipeline_oldest(pipeline);
    record->state = state;
    record->slot = (uint32_t)(pipeline->started % pipeline->params.slot_count);
    pipeline->waiting--;
    pipeline->started++;
    if (pipeline->started - pipeline->released > pipeline->figures.in_flight_max)
        pipeline->figures.in_flight_max = (uint32_t)(pipeline->started - pipeline->released);
    return record;
}

// Called with the lock. The frame is the next one of which work is submitted; returns whether queues
// must be recovered first.
static bool take_turn(weir_pipeline *pipeline, struct weir__record *record)
{
    const bool must_recover = pipeline->must_recover;
    pipeline->starting = record;
    if (must_recover) {
        pipeline->must_recover = false;
        pipeline->generation++;
        pipeline->figures.recoveries++;
    }
    pipeline->slots[record->slot].generation = pipeline->generation;
    return must_recover;
}

// Called with the lock, which is released.
static void start(weir_pipeline *pipeline, struct weir__record *record, uint64_t number)
{
    const bool prepared = pipeline->params.prepare_threads > 0;
    const bool must_recover = take_turn(pipeline, record);
    struct weir__slot *slot = &pipeline->slots[record->slot];
    void *frame = record->frame;
    pthread_mutex_unlock(&pipeline->lock);

    if (!prepared)
        weir__pipeline_reset_slot(pipeline, slot);
    weir_region_push(weir_device_runtime(pipeline->params.device), "frame", number);
    if ((!must_recover || recover(pipeline, slot)) &&
        (prepared ? slot->status == WEIR_OK : weir__pipeline_prepare(pipeline, NULL, slot, frame)))
        submit_frame(pipeline, slot, frame);
    weir__pipeline_end_start(pipeline);
}

void weir__pipeline_end_start(weir_pipeline *pipeline)
{
    struct weir__record *record = pipeline->starting;
    const struct weir__slot *slot = &pipeline->slots[record->slot];

    weir_region_pop(weir_device_runtime(pipeline->params.device));
    pthread_mutex_lock(&pipeline->lock);
    if (slot->queue_failed)
        pipeline->must_recover = true;
    if (slot->status == WEIR_ERROR_DEVICE_LOST && slot->queue_failed && !pipeline->lost) {
        pipeline->lost = true;
        pipeline->lost_error = slot->error;
        pthread_cond_broadcast(&pipeline->to_prepare);
    }
    record->state = WEIR__FRAME_STARTED;
    pthread_cond_signal(&pipeline->to_deliver);
    pthread_mutex_unlock(&pipeline->lock);
}

bool weir__pipeline_wait_for_slot(weir_pipeline *pipeline, pthread_cond_t *changed)
{
    while (!pipeline->stopping) {
        const bool slot_free = pipeline->started - pipeline->released < pipeline->params.slot_count;
        if (pipeline->waiting > 0 && pipeline->lost)
            weir__pipeline_end(pipeline, weir__pipeline_oldest(pipeline),
                               pipeline->lost_error.status);
        else if (pipeline->waiting > 0 && slot_free)
            return true;
        else
            pthread_cond_wait(changed, &pipeline->lock);
    }
    return false;
}

// Called with the lock. The next frame to be submitted, if it is prepared.
static struct weir__record *find_prepared(weir_pipeline *pipeline)
{
    // Frames that ended while waiting may have been delivered meanwhile.
    if (pipeline->next_submit < pipeline->head)
        pipeline->next_submit = pipeline->head;
    while (pipeline->next_submit < pipeline->tail) {
        struct weir__record *record = weir__pipeline_record(pipeline, pipeline->next_submit);
        if (record->state != WEIR__FRAME_ENDED)
            return record->state == WEIR__FRAME_PREPARED ? record : NULL;
        pipeline->next_submit++;
    }
    return NULL;
}

// Called with the lock. NULL when the pipeline is to stop.
static struct weir__record *wait_for_start(weir_pipeline *pipeline, uint64_t *out_number)
{
    struct weir__record *record = NULL;
    if (pipeline->params.prepare_threads == 0) {
        if (weir__pipeline_wait_for_slot(pipeline, &pipeline->to_start))
            record = weir__pipeline_take_slot(pipeline, WEIR__FRAME_STARTING);
        *out_number = pipeline->next_start;
        return record;
    }
    while (!pipeline->stopping && !(record = find_prepared(pipeline)))
        pthread_cond_wait(&pipeline->to_start, &pipeline->lock);
    if (record)
        record->state = WEIR__FRAME_STARTING;
    *out_number = pipeline->next_submit;
    pipeline->next_submit += record != NULL;
    return record;
}

void weir__pipeline_starter(void *argument)
{
    weir_pipeline *pipeline = argument;
    struct weir__record *record;
    uint64_t number;

    pthread_mutex_lock(&pipeline->lock);
    while ((record = wait_for_start(pipeline, &number))) {
        start(pipeline, record, number);
        pthread_mutex_lock(&pipeline->lock);
    }
    pthread_mutex_unlock(&pipeline->lock);
}

// --- delivering a frame ---

static bool wait_for_last_stages(weir_pipeline *pipeline, struct weir__slot *slot)
{
    for (uint32_t i = 0; i < pipeline->params.stage_count; i++) {
        if (pipeline->stages[i].last && weir_event_sync(slot->ends[i], WEIR_FOREVER) != WEIR_OK)
            return false;
    }
    return true;
}

// The slot's previous frame was delivered, so a refusal belongs to this frame.
static void wait_for_graph(struct weir__slot *slot)
{
    if (slot->done.sequence != 0)
        (void)weir__pipeline_took(slot, "graph", weir_event_sync(slot->done, WEIR_FOREVER));
}

// Waits for all work of a frame. If nothing failed, the end of the last stages
// implies that of the stages before them. Otherwise every submitted stage is
// queried, in order, so that the earliest failure is found: a queue that refused a
// stage may only have passed on the failure of an earlier stage.
static void wait_for_frame(weir_pipeline *pipeline, struct weir__slot *slot)
{
    if (pipeline->params.graphs) {
        wait_for_graph(slot);
        return;
    }
    if (slot->status == WEIR_OK && wait_for_last_stages(pipeline, slot))
        return;
    bool refused = slot->refused;
    for (uint32_t i = 0; i < pipeline->params.stage_count; i++) {
        if (slot->ends[i].sequence == 0)
            continue;
        weir_status status = weir_event_sync(slot->ends[i], WEIR_FOREVER);
        if (status != WEIR_OK && refused) {
            slot->status = WEIR_OK;
            refused = false;
        }
        (void)weir__pipeline_took(slot, pipeline->stages[i].name, status);
    }
}

// Returns the slot's spans, or NULL if one of them is not available.
static const struct weir_pipeline_span *read_spans(weir_pipeline *pipeline, struct weir__slot *slot)
{
    if (!pipeline->timing || slot->status != WEIR_OK)
        return NULL;
    for (uint32_t i = 0; i < pipeline->params.stage_count; i++) {
        struct weir_pipeline_span *span = &slot->spans[i];
        if (weir_event_time_ns(slot->begins[i], &span->begin_ns) != WEIR_OK ||
            weir_event_time_ns(slot->ends[i], &span->end_ns) != WEIR_OK)
            return NULL;
        // Drivers round the two times independently.
        if (span->end_ns < span->begin_ns)
            span->end_ns = span->begin_ns;
    }
    return slot->spans;
}

static void count_spans(weir_pipeline *pipeline, const struct weir_pipeline_span *spans)
{
    struct weir_pipeline_statistics *figures = &pipeline->figures;

    for (uint32_t i = 0; i < pipeline->params.stage_count; i++) {
        uint64_t begin = spans[i].begin_ns;
        uint64_t last_end = pipeline->last_end_ns[i];
        figures->stages[i].busy_ns += spans[i].end_ns - begin;
        if (figures->timed_frames > 0 && begin > last_end)
            figures->stages[i].wait_ns += begin - last_end;
        pipeline->last_end_ns[i] = spans[i].end_ns;
        weir__union_add(&pipeline->covered[pipeline->stages[i].timeline], begin, spans[i].end_ns);
    }
    figures->timed_frames++;
}

static void count_result(weir_pipeline *pipeline, const struct weir_pipeline_result *result)
{
    struct weir_pipeline_statistics *figures = &pipeline->figures;

    if (result->status == WEIR_DROPPED) {
        figures->dropped++;
    } else if (result->status == WEIR_CANCELLED) {
        figures->cancelled++;
    } else if (result->status != WEIR_OK) {
        figures->failed++;
    } else {
        figures->succeeded++;
        weir__histogram_add(&pipeline->latency, result->latency_ns);
    }
    if (result->spans)
        count_spans(pipeline, result->spans);
}

// Builds the outcome of the frame at the ring's head from its record, its slot and
// the clock.
static struct weir_pipeline_result make_result(weir_pipeline *pipeline,
                                               const struct weir__record *record,
                                               const struct weir__slot *slot, uint64_t now_ns)
{
    struct weir_pipeline_result result = {
        .sequence = pipeline->head,
        .status = slot ? slot->status : record->status,
        .stage = slot ? slot->stage : "",
        .latency_ns = now_ns - record->accepted_ns,
        .stage_count = pipeline->params.stage_count,
    };
    if (result.status < 0)
        result.error = slot ? &slot->error : &pipeline->lost_error;
    return result;
}

// A frame that is delivered.
struct delivery {
    weir_pipeline *pipeline;
    struct weir__slot *slot; // NULL: it never started
    void *frame;
    WEIR_SIZED_CELL(struct weir_pipeline_result, result, WEIR_SIZED_ROOM);
};

static void call_deliver(void *user)
{
    const struct delivery *delivery = user;
    const struct weir_pipeline_params *params = &delivery->pipeline->params;
    params->deliver(params->user, delivery->frame, delivery->slot ? delivery->slot->data : NULL,
                    &delivery->result);
}

// Takes the lock.
static void end_delivery(const struct delivery *delivery, bool thread_ended)
{
    weir_pipeline *pipeline = delivery->pipeline;
    pthread_mutex_lock(&pipeline->lock);
    pipeline->deliver_ended = pipeline->deliver_ended || thread_ended;
    pipeline->head++;
    if (delivery->slot)
        pipeline->released++;
    weir__pipeline_wake_start(pipeline);
    pthread_cond_broadcast(&pipeline->moved);
    pthread_mutex_unlock(&pipeline->lock);
    weir__pipeline_end_turn(pipeline);
}

// `deliver` ended its thread: the frame is delivered all the same, and the deliverer goes on.
static void survive_deliver(void *user)
{
    const struct delivery *delivery = user;
    end_delivery(delivery, true);
    weir__pipeline_deliverer(delivery->pipeline);
}

// Called with the lock, which is released.
static void deliver_head(weir_pipeline *pipeline)
{
    const struct weir_pipeline_params *params = &pipeline->params;
    const struct weir__record *record = weir__pipeline_record(pipeline, pipeline->head);
    struct weir__slot *slot = NULL;
    const struct weir_pipeline_span *spans = NULL;

    if (record->state == WEIR__FRAME_STARTED) {
        slot = &pipeline->slots[record->slot];
        pthread_mutex_unlock(&pipeline->lock);
        wait_for_frame(pipeline, slot);
        spans = read_spans(pipeline, slot);
        pthread_mutex_lock(&pipeline->lock);
        if (slot->queue_failed && slot->generation == pipeline->generation)
            pipeline->must_recover = true;
    }
    pthread_mutex_unlock(&pipeline->lock);
    weir__pipeline_await_turn(pipeline);
    pthread_mutex_lock(&pipeline->lock);
    uint64_t now_ns = weir_clock_now_ns();
    struct delivery delivery;
    memset(&delivery, 0, sizeof delivery);
    delivery.pipeline = pipeline;
    delivery.slot = slot;
    delivery.frame = record->frame;
    delivery.result = make_result(pipeline, record, slot, now_ns);
    delivery.result.spans = spans;
    count_result(pipeline, &delivery.result);
    pipeline->last_ns = now_ns;
    pthread_mutex_unlock(&pipeline->lock);
    if (params->deliver)
        weir_thread_call(call_deliver, survive_deliver, &delivery);
    end_delivery(&delivery, false);
}

// Called with the lock. False when the pipeline is to stop.
static bool wait_for_head(weir_pipeline *pipeline)
{
    while (!pipeline->stopping) {
        const struct weir__record *head = weir__pipeline_record(pipeline, pipeline->head);
        if (pipeline->head < pipeline->tail &&
            (head->state == WEIR__FRAME_STARTED || head->state == WEIR__FRAME_ENDED))
            return true;
        pthread_cond_wait(&pipeline->to_deliver, &pipeline->lock);
    }
    return false;
}

void weir__pipeline_deliverer(void *argument)
{
    weir_pipeline *pipeline = argument;

    pthread_mutex_lock(&pipeline->lock);
    while (wait_for_head(pipeline)) {
        deliver_head(pipeline);
        pthread_mutex_lock(&pipeline->lock);
    }
    pthread_mutex_unlock(&pipeline->lock);
}
