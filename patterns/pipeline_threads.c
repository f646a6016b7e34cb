// The threads of a pipeline: the starter, the preparers and the deliverer; and frames as graphs. The deliverer is another
// thread because one that waits for the oldest frame cannot start the next, and so that `prepare` and `deliver`, the
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

#include "patterns/shared.h"

// Keeps the first failure of a frame, with the detail that the calling thread holds.
static void note(struct weir__slot *slot, const char *stage, weir_status status)
{
    if (slot->status != WEIR_OK)
        return;
    char what[WEIR__NAME_SIZE + 24];
    snprintf(what, sizeof what, "the callback of '%s'", stage);
    slot->stage = stage;
    slot->status = weir__pattern_callback_failed(NULL, what, status);
    slot->error = *weir_last_error();
}

static bool took(struct weir__slot *slot, const char *stage, weir_status status)
{
    if (status == WEIR_OK)
        return true;
    slot->queue_failed = true;
    slot->refused = slot->refused || slot->status == WEIR_OK;
    note(slot, stage, status);
    return false;
}

// --- recovering ---

weir_status weir__pipeline_recover_queues(weir_pipeline *pipeline)
{
    const struct weir_pipeline_params *params = &pipeline->params;
    const uint32_t count = params->graphs ? params->slot_count : params->stage_count;
    struct weir__pattern_first first = {.status = WEIR_OK};

    for (uint32_t i = 0; i < count; i++) {
        weir_queue *queue = params->graphs ? pipeline->slots[i].queue : pipeline->stages[i].queue;
        // A queue fails only when it reaches its wait for a failed event; if it
        // were recovered before that, it would fail afterwards.
        WEIR_IGNORE(weir_queue_sync(queue, WEIR_FOREVER));
        weir__pattern_note(&first, weir_queue_recover(queue));
    }
    return weir__pattern_first(&first);
}

// Called without the lock. Returns false if the frame cannot run, after noting the
// failure.
static bool recover(weir_pipeline *pipeline, struct weir__slot *slot)
{
    weir_status status = weir__pipeline_recover_queues(pipeline);
    if (status == WEIR_OK)
        return true;
    slot->queue_failed = true;
    note(slot, "", status);
    return false;
}

// Called with the lock. The slot's frame is the next one of which work is submitted; returns whether queues
// must be recovered first.
static bool take_turn(weir_pipeline *pipeline, struct weir__slot *slot)
{
    const bool must_recover = pipeline->must_recover;
    if (must_recover) {
        pipeline->must_recover = false;
        pipeline->generation++;
        pipeline->figures.recoveries++;
    }
    slot->generation = pipeline->generation;
    return must_recover;
}

// --- preparing ---

// The preparation of frames on the host: by the starter, or ahead of it by prepare_threads.
// Each of these takes the oldest waiting frame with the next slot, so slots are given out, and
// returned, in the order of frames whatever the order in which frames become ready.

void weir__pipeline_wake_start(weir_pipeline *pipeline)
{
    pthread_cond_signal(pipeline->params.prepare_threads > 0 ? &pipeline->to_prepare
                                                             : &pipeline->to_start);
}

static struct weir__record *take_slot(weir_pipeline *pipeline)
{
    struct weir__record *record = weir__pipeline_oldest(pipeline);
    record->state = WEIR__FRAME_PREPARING;
    record->slot = (uint32_t)(pipeline->started % pipeline->params.slot_count);
    pipeline->waiting--;
    pipeline->started++;
    if (pipeline->started - pipeline->released > pipeline->figures.in_flight_max)
        pipeline->figures.in_flight_max = (uint32_t)(pipeline->started - pipeline->released);
    return record;
}

// Nothing waits for what the slot's last frame has recorded, nor for a capture's events after it.
static void forget_events(const weir_pipeline *pipeline, struct weir__slot *slot)
{
    slot->done = (struct weir_event){0};
    memset(slot->begins, 0, pipeline->params.stage_count * sizeof *slot->begins);
    memset(slot->ends, 0, pipeline->params.stage_count * sizeof *slot->ends);
}

static void prepare(weir_pipeline *pipeline, struct weir__slot *slot, void *frame, uint64_t number)
{
    const struct weir_pipeline_params *params = &pipeline->params;
    weir_runtime *runtime = weir_device_runtime(params->device);
    if (!params->prepare)
        return;
    weir_region_push(runtime, "prepare", number);
    weir__pattern_forget();
    const weir_status status = params->prepare(params->user, slot->data, frame);
    if (status != WEIR_OK)
        note(slot, "prepare", status);
    weir_region_pop(runtime);
}

// Called with the lock, which is released meanwhile. The frame is ready to be submitted then, or has failed.
// The starter recovers queues before it prepares: work of the slot's last frame may still run after a failure.
static void prepare_oldest(weir_pipeline *pipeline)
{
    struct weir__record *record = take_slot(pipeline);
    struct weir__slot *slot = &pipeline->slots[record->slot];
    const uint64_t number = pipeline->next_start;
    const bool must_recover = pipeline->params.prepare_threads == 0 && take_turn(pipeline, slot);
    pipeline->preparing++;
    weir__pattern_lock_release(&pipeline->line->lock);

    slot->status = WEIR_OK;
    slot->stage = "";
    slot->queue_failed = false;
    slot->refused = false;
    forget_events(pipeline, slot);
    if (!must_recover || recover(pipeline, slot))
        prepare(pipeline, slot, record->frame, number);
    weir__pattern_lock_take(&pipeline->line->lock);
    record->state = WEIR__FRAME_PREPARED;
    pipeline->preparing--;
    pthread_cond_signal(&pipeline->to_start);
}

// Called with the lock. Waits at `changed` until the oldest waiting frame can have a slot; false
// when the pipeline is to stop.
static bool wait_for_slot(weir_pipeline *pipeline, pthread_cond_t *changed)
{
    while (!pipeline->stopping) {
        const bool slot_free = pipeline->started - pipeline->released < pipeline->params.slot_count;
        if (pipeline->waiting > 0 && pipeline->lost)
            weir__pipeline_end(pipeline, weir__pipeline_oldest(pipeline),
                               pipeline->lost_error.status);
        else if (pipeline->waiting > 0 && slot_free)
            return true;
        else
            (void)weir__pattern_lock_wait(&pipeline->line->lock, changed, WEIR_FOREVER);
    }
    return false;
}

void weir__pipeline_preparer(void *argument)
{
    weir_pipeline *pipeline = argument;

    weir__pattern_lock_take(&pipeline->line->lock);
    while (wait_for_slot(pipeline, &pipeline->to_prepare))
        prepare_oldest(pipeline);
    weir__pattern_lock_release(&pipeline->line->lock);
}

// --- the stages ---

static weir_queue *queue_of(const weir_pipeline *pipeline, const struct weir__slot *slot,
                            const struct weir__stage *stage)
{
    return stage->lane == WEIR__SLOT_LANE ? slot->queue : pipeline->stages[stage->lane].queue;
}

// `begin`: of the capture, with graphs.
static bool wait_for_stages(weir_pipeline *pipeline, struct weir__slot *slot, uint32_t index,
                            const struct weir_event *begin)
{
    const struct weir__stage *stage = &pipeline->stages[index];
    weir_queue *queue = queue_of(pipeline, slot, stage);

    if (begin && stage->depends_on == 0 && stage->lane != WEIR__SLOT_LANE &&
        !took(slot, stage->name, weir_queue_wait(queue, *begin)))
        return false;
    for (uint32_t i = 0; i < index; i++)
        if ((stage->depends_on >> i & 1) && pipeline->stages[i].lane != stage->lane &&
            !took(slot, stage->name, weir_queue_wait(queue, slot->ends[i])))
            return false;
    return true;
}

static bool call_submit(weir_pipeline *pipeline, struct weir__slot *slot, void *frame,
                        const struct weir__stage *stage)
{
    weir__pattern_forget();
    const weir_status status =
        stage->submit(pipeline->params.user, slot->data, frame, queue_of(pipeline, slot, stage));
    if (status == WEIR_OK)
        return true;
    note(slot, stage->name, status);
    // The call that a capture refused gives the error; the pipeline adds the remedy.
    if (pipeline->params.graphs && slot->status == WEIR_ERROR_INVALID)
        snprintf(slot->error.remedy, sizeof slot->error.remedy,
                 "keep it out of the stages, or run the pipeline without graphs (graphs = 0)");
    return false;
}

static bool submit_to(weir_pipeline *pipeline, struct weir__slot *slot, void *frame, uint32_t index,
                      const struct weir_event *begin)
{
    const struct weir__stage *stage = &pipeline->stages[index];
    weir_queue *queue = queue_of(pipeline, slot, stage);

    if (!wait_for_stages(pipeline, slot, index, begin) ||
        (pipeline->params.timing &&
         !took(slot, stage->name, weir_queue_record(queue, &slot->begins[index]))))
        return false;
    const bool submitted = call_submit(pipeline, slot, frame, stage);
    if (begin && !submitted)
        return false;
    // Also after a callback that failed: it may have submitted half of its work, which must finish
    // before the slot is reused.
    if (took(slot, stage->name, weir_queue_record(queue, &slot->ends[index])))
        return submitted;
    // The queue had failed, and what the callback returned may be its refusal.
    slot->refused = true;
    return false;
}

static void submit_frame(weir_pipeline *pipeline, struct weir__slot *slot, void *frame)
{
    const struct weir_pipeline_params *params = &pipeline->params;
    weir_runtime *runtime = weir_device_runtime(params->device);
    bool submitted = true;

    // In a region with the stage's name, inside the frame's region: traces show both.
    for (uint32_t i = 0; i < params->stage_count && submitted; i++) {
        weir_region_push(runtime, pipeline->stages[i].name, WEIR_NO_NUMBER);
        submitted = submit_to(pipeline, slot, frame, i, NULL);
        weir_region_pop(runtime);
    }
    // A wait flushes the queue that it waits for. But the last stages are waited
    // for by the deliverer, which may still be busy with an earlier frame.
    for (uint32_t i = 0; i < params->stage_count && submitted; i++)
        submitted = !pipeline->stages[i].last || took(slot, pipeline->stages[i].name,
                                                      weir_queue_flush(pipeline->stages[i].queue));
}

// --- graphs ---

// Each slot has a queue that launches its frames, so frames overlap as
// far as the device allows, and a graph, captured from the stages at the slot's first
// frame with a given `repeat` number.
// A stage is captured on the queue of a stage that it depends on, if no other stage has
// continued there, and else on its own queue. So a chain of stages is captured on the
// slot's queue alone and needs no fork, which makes it cheaper to replay on a backend
// without graphs.

static bool capture_stages(weir_pipeline *pipeline, struct weir__slot *slot, void *frame)
{
    struct weir_event begin;

    if (!took(slot, "graph", weir_queue_record(slot->queue, &begin)))
        return false;
    for (uint32_t i = 0; i < pipeline->params.stage_count; i++)
        if (!submit_to(pipeline, slot, frame, i, &begin))
            return false;
    for (uint32_t i = 0; i < pipeline->params.stage_count; i++) {
        const struct weir__stage *stage = &pipeline->stages[i];
        if (stage->last && stage->lane != WEIR__SLOT_LANE &&
            !took(slot, stage->name, weir_queue_wait(slot->queue, slot->ends[i])))
            return false;
    }
    return true;
}

static bool capture(weir_pipeline *pipeline, struct weir__slot *slot, void *frame)
{
    const struct weir_graph_params params = {
        .struct_size = sizeof params,
        .label = weir_queue_label(slot->queue),
    };

    weir_graph_destroy(&slot->graph);
    if (!took(slot, "graph", weir_capture_begin(slot->queue)))
        return false;
    const bool captured = capture_stages(pipeline, slot, frame);
    forget_events(pipeline, slot);
    if (!captured) {
        WEIR_IGNORE(weir_capture_cancel(slot->queue));
        return false;
    }
    const weir_status status = weir_capture_end(slot->queue, &params, &slot->graph);
    if (status != WEIR_OK)
        note(slot, "graph", status);
    return status == WEIR_OK;
}

static void launch_frame(weir_pipeline *pipeline, struct weir__slot *slot, void *frame)
{
    weir__pattern_forget();
    const uint64_t number = pipeline->params.repeat(pipeline->params.user, slot->data, frame);
    if ((!slot->graph || slot->number != number) && !capture(pipeline, slot, frame))
        return;
    slot->number = number;
    bool launched = took(slot, "graph", weir_queue_graph(slot->queue, slot->graph));
    // Also after a launch that failed: part of it may be running.
    if (took(slot, "graph", weir_queue_record(slot->queue, &slot->done)) && launched)
        (void)took(slot, "graph", weir_queue_flush(slot->queue));
}

// --- the starter ---

// Called with the lock, which is released meanwhile.
static void start(weir_pipeline *pipeline, struct weir__record *record, uint64_t number)
{
    struct weir__slot *slot = &pipeline->slots[record->slot];
    weir_runtime *runtime = weir_device_runtime(pipeline->params.device);
    const bool must_recover = take_turn(pipeline, slot);
    weir__pattern_lock_release(&pipeline->line->lock);

    weir_region_push(runtime, "frame", number);
    if ((!must_recover || recover(pipeline, slot)) && slot->status == WEIR_OK)
        (pipeline->params.graphs ? launch_frame : submit_frame)(pipeline, slot, record->frame);
    weir_region_pop(runtime);
    weir__pattern_lock_take(&pipeline->line->lock);
    record->state = WEIR__FRAME_STARTED;
    if (slot->queue_failed)
        pipeline->must_recover = true;
    if (slot->status == WEIR_ERROR_DEVICE_LOST && slot->queue_failed && !pipeline->lost) {
        pipeline->lost = true;
        pipeline->lost_error = slot->error;
        pthread_cond_broadcast(&pipeline->to_prepare);
    }
    pthread_cond_signal(&pipeline->to_deliver);
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
static struct weir__record *wait_for_prepared(weir_pipeline *pipeline)
{
    struct weir__record *record = NULL;
    while (!pipeline->stopping && !(record = find_prepared(pipeline))) {
        if (pipeline->params.prepare_threads > 0)
            (void)weir__pattern_lock_wait(&pipeline->line->lock, &pipeline->to_start, WEIR_FOREVER);
        else if (wait_for_slot(pipeline, &pipeline->to_start))
            prepare_oldest(pipeline);
    }
    return record;
}

void weir__pipeline_starter(void *argument)
{
    weir_pipeline *pipeline = argument;
    struct weir__record *record;

    weir__pattern_lock_take(&pipeline->line->lock);
    while ((record = wait_for_prepared(pipeline)))
        start(pipeline, record, pipeline->next_submit++);
    weir__pattern_lock_release(&pipeline->line->lock);
}

// --- the deliverer ---

// It waits for the oldest frame, counts it, and delivers it.

#define SHORTEST_NAP_NS UINT64_C(200000)
#define LONGEST_NAP_NS UINT64_C(1000000)

static bool all_prepare(weir_pipeline *pipeline)
{
    weir__pattern_lock_take(&pipeline->line->lock);
    const bool all =
        pipeline->preparing > 0 && pipeline->preparing == pipeline->params.prepare_threads;
    weir__pattern_lock_release(&pipeline->line->lock);
    return all;
}

// Drivers that notice the end of an event soonest keep a processor busy until then. While all preparers
// are at work the pipeline waits for them and not for the device: the processor is theirs, and a
// delivery some time later delays nothing, as there are free slots.
static weir_status wait_for_event(weir_pipeline *pipeline, struct weir_event event)
{
    for (uint64_t nap_ns = SHORTEST_NAP_NS;
         all_prepare(pipeline) && weir_event_query(event) == WEIR_NOT_READY;
         nap_ns = nap_ns < LONGEST_NAP_NS / 2 ? 2 * nap_ns : LONGEST_NAP_NS)
        weir_clock_sleep_ns(nap_ns);
    return weir_event_sync(event, WEIR_FOREVER);
}

static bool wait_for_last_stages(weir_pipeline *pipeline, struct weir__slot *slot)
{
    for (uint32_t i = 0; i < pipeline->params.stage_count; i++) {
        if (pipeline->stages[i].last && wait_for_event(pipeline, slot->ends[i]) != WEIR_OK)
            return false;
    }
    return true;
}

// Waits for all work of a frame. If nothing failed, the end of the last stages
// implies that of the stages before them. Otherwise every submitted stage is
// queried, in order, so that the earliest failure is found: a queue that refused a
// stage may only have passed on the failure of an earlier stage.
static void wait_for_frame(weir_pipeline *pipeline, struct weir__slot *slot)
{
    if (pipeline->params.graphs) {
        // The slot's previous frame was delivered, so a refusal belongs to this frame.
        if (slot->done.sequence != 0)
            (void)took(slot, "graph", wait_for_event(pipeline, slot->done));
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
        (void)took(slot, pipeline->stages[i].name, status);
    }
}

// Returns the slot's spans, or NULL if one of them is not available.
static const struct weir_pipeline_span *read_spans(weir_pipeline *pipeline, struct weir__slot *slot)
{
    if (!pipeline->params.timing || slot->status != WEIR_OK)
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

// Called with the lock, which is released meanwhile.
static void deliver_head(weir_pipeline *pipeline)
{
    const struct weir_pipeline_params *params = &pipeline->params;
    const struct weir__record *record = weir__pipeline_record(pipeline, pipeline->head);
    struct weir__slot *slot = NULL;
    const struct weir_pipeline_span *spans = NULL;

    if (record->state == WEIR__FRAME_STARTED) {
        slot = &pipeline->slots[record->slot];
        weir__pattern_lock_release(&pipeline->line->lock);
        wait_for_frame(pipeline, slot);
        spans = read_spans(pipeline, slot);
        weir__pattern_lock_take(&pipeline->line->lock);
        if (slot->queue_failed && slot->generation == pipeline->generation)
            pipeline->must_recover = true;
    }
    while (pipeline->line->head != record->number)
        (void)weir__pattern_lock_wait(&pipeline->line->lock, &pipeline->line->moved, WEIR_FOREVER);
    uint64_t now_ns = weir_clock_now_ns();
    void *frame = record->frame;
    struct {
        WEIR_SIZED_CELL(struct weir_pipeline_result, result, WEIR_SIZED_ROOM);
    } delivery;
    memset(&delivery, 0, sizeof delivery);
    delivery.result = make_result(pipeline, record, slot, now_ns);
    delivery.result.spans = spans;
    weir__pipeline_count(pipeline, &delivery.result);
    pipeline->last_ns = now_ns;
    weir__pattern_lock_release(&pipeline->line->lock);
    if (params->deliver)
        params->deliver(params->user, frame, slot ? slot->data : NULL, &delivery.result);
    weir__pattern_lock_take(&pipeline->line->lock);
    pipeline->line->head++;
    pipeline->head++;
    pipeline->released += slot != NULL;
    weir__pipeline_wake_start(pipeline);
    pthread_cond_broadcast(&pipeline->line->moved);
}

// Called with the lock. False when the pipeline is to stop.
static bool wait_for_head(weir_pipeline *pipeline)
{
    while (!pipeline->stopping) {
        const struct weir__record *head = weir__pipeline_record(pipeline, pipeline->head);
        if (pipeline->head < pipeline->tail &&
            (head->state == WEIR__FRAME_STARTED || head->state == WEIR__FRAME_ENDED))
            return true;
        (void)weir__pattern_lock_wait(&pipeline->line->lock, &pipeline->to_deliver, WEIR_FOREVER);
    }
    return false;
}

void weir__pipeline_deliverer(void *argument)
{
    weir_pipeline *pipeline = argument;

    weir__pattern_lock_take(&pipeline->line->lock);
    while (wait_for_head(pipeline))
        deliver_head(pipeline);
    weir__pattern_lock_release(&pipeline->line->lock);
}
