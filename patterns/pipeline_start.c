// The starter of a pipeline, the preparers, and frames as graphs. The deliverer, pipeline_deliver.c, is another thread
// because one that waits for the oldest frame cannot start the next, and so that `prepare` and `deliver`, the
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
#include "patterns/shared.h"

// Frames as graphs. Each slot has a queue that launches its frames, so frames overlap as
// far as the device allows, and a graph, captured from the stages at the slot's first
// frame with a given `repeat` number.
// A stage is captured on the queue of a stage that it depends on, if no other stage has
// continued there, and else on its own queue. So a chain of stages is captured on the
// slot's queue alone and needs no fork, which makes it cheaper to replay on a backend
// without graphs.

static weir_queue *queue_of(const weir_pipeline *pipeline, const struct weir__slot *slot,
                            uint32_t lane)
{
    return lane == WEIR__SLOT_LANE ? slot->queue : pipeline->stages[lane].queue;
}

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

// The call that the capture refused gives the error; the pipeline adds the remedy.
static void note_refusal(struct weir__slot *slot, const char *stage, weir_status status)
{
    note(slot, stage, status);
    if (slot->status == WEIR_ERROR_INVALID)
        snprintf(slot->error.remedy, sizeof slot->error.remedy,
                 "keep it out of the stages, or run the pipeline without graphs (graphs = 0)");
}

static bool capture_waits(weir_pipeline *pipeline, struct weir__slot *slot, uint32_t index,
                          struct weir_event begin)
{
    const struct weir__stage *stage = &pipeline->stages[index];
    weir_queue *queue = queue_of(pipeline, slot, stage->lane);

    if (stage->depends_on == 0 && stage->lane != WEIR__SLOT_LANE &&
        !weir__pipeline_took(slot, stage->name, weir_queue_wait(queue, begin)))
        return false;
    for (uint32_t i = 0; i < index; i++)
        if ((stage->depends_on >> i & 1) && pipeline->stages[i].lane != stage->lane &&
            !weir__pipeline_took(slot, stage->name, weir_queue_wait(queue, slot->ends[i])))
            return false;
    return true;
}

// Nothing may wait for a capture's events after it.
static void forget_ends(const weir_pipeline *pipeline, struct weir__slot *slot)
{
    memset(slot->ends, 0, pipeline->params.stage_count * sizeof *slot->ends);
}

static void cancel_capture(weir_pipeline *pipeline, struct weir__slot *slot)
{
    forget_ends(pipeline, slot);
    WEIR_IGNORE(weir_capture_cancel(slot->queue));
}

// A preparer's frame is ready to be submitted, or has failed. Takes the lock.
static void end_prepare(weir_pipeline *pipeline, struct weir__record *record)
{
    weir_region_pop(weir_device_runtime(pipeline->params.device));
    weir__pattern_lock_take(&pipeline->lock);
    record->state = WEIR__FRAME_PREPARED;
    pipeline->preparing--;
    pthread_cond_signal(&pipeline->to_start);
    weir__pattern_lock_release(&pipeline->lock);
}

// The frame that the starter starts is ready to be delivered, or has failed. Takes the lock.
static void end_start(weir_pipeline *pipeline)
{
    struct weir__record *record = pipeline->starting;
    const struct weir__slot *slot = &pipeline->slots[record->slot];

    weir_region_pop(weir_device_runtime(pipeline->params.device));
    weir__pattern_lock_take(&pipeline->lock);
    if (slot->queue_failed)
        pipeline->must_recover = true;
    if (slot->status == WEIR_ERROR_DEVICE_LOST && slot->queue_failed && !pipeline->lost) {
        pipeline->lost = true;
        pipeline->lost_error = slot->error;
        pthread_cond_broadcast(&pipeline->to_prepare);
    }
    record->state = WEIR__FRAME_STARTED;
    pthread_cond_signal(&pipeline->to_deliver);
    weir__pattern_lock_release(&pipeline->lock);
}

static bool capture_stage(weir_pipeline *pipeline, struct weir__slot *slot, void *frame,
                          uint32_t index, struct weir_event begin)
{
    const struct weir__stage *stage = &pipeline->stages[index];
    weir_queue *queue = queue_of(pipeline, slot, stage->lane);

    if (!capture_waits(pipeline, slot, index, begin))
        return false;
    weir__pattern_forget();
    const weir_status status = stage->submit(pipeline->params.user, slot->data, frame, queue);
    if (status != WEIR_OK) {
        note_refusal(slot, stage->name, status);
        return false;
    }
    return weir__pipeline_took(slot, stage->name, weir_queue_record(queue, &slot->ends[index]));
}

static bool capture_stages(weir_pipeline *pipeline, struct weir__slot *slot, void *frame)
{
    struct weir_event begin;

    if (!weir__pipeline_took(slot, "graph", weir_queue_record(slot->queue, &begin)))
        return false;
    for (uint32_t i = 0; i < pipeline->params.stage_count; i++)
        if (!capture_stage(pipeline, slot, frame, i, begin))
            return false;
    for (uint32_t i = 0; i < pipeline->params.stage_count; i++) {
        const struct weir__stage *stage = &pipeline->stages[i];
        if (stage->last && stage->lane != WEIR__SLOT_LANE &&
            !weir__pipeline_took(slot, stage->name, weir_queue_wait(slot->queue, slot->ends[i])))
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
    if (!weir__pipeline_took(slot, "graph", weir_capture_begin(slot->queue)))
        return false;
    if (!capture_stages(pipeline, slot, frame)) {
        cancel_capture(pipeline, slot);
        return false;
    }
    forget_ends(pipeline, slot);
    weir_status status = weir_capture_end(slot->queue, &params, &slot->graph);
    if (status != WEIR_OK)
        note(slot, "graph", status);
    return status == WEIR_OK;
}

// --- launching ---

static void pipeline_launch(weir_pipeline *pipeline, struct weir__slot *slot, void *frame)
{
    weir__pattern_forget();
    const uint64_t number = pipeline->params.repeat(pipeline->params.user, slot->data, frame);
    if ((!slot->graph || slot->number != number) && !capture(pipeline, slot, frame))
        return;
    slot->number = number;
    bool launched = weir__pipeline_took(slot, "graph", weir_queue_graph(slot->queue, slot->graph));
    // Also after a launch that failed: part of it may be running.
    if (weir__pipeline_took(slot, "graph", weir_queue_record(slot->queue, &slot->done)) && launched)
        (void)weir__pipeline_took(slot, "graph", weir_queue_flush(slot->queue));
}

// The preparation of frames on the host: by the starter, or ahead of it by prepare_threads.
// Each of these takes the oldest waiting frame with the next slot, so slots are given out, and
// returned, in the order of frames whatever the order in which frames become ready.

void weir__pipeline_wake_start(weir_pipeline *pipeline)
{
    pthread_cond_signal(pipeline->params.prepare_threads > 0 ? &pipeline->to_prepare
                                                             : &pipeline->to_start);
}

// Calls `prepare`. False if it failed.
static bool pipeline_prepare(weir_pipeline *pipeline, struct weir__slot *slot, void *frame)
{
    const struct weir_pipeline_params *params = &pipeline->params;
    if (!params->prepare)
        return true;
    weir__pattern_forget();
    const weir_status status = params->prepare(params->user, slot->data, frame);
    if (status != WEIR_OK)
        note(slot, "prepare", status);
    return status == WEIR_OK;
}

static struct weir__record *take_slot(weir_pipeline *pipeline, enum weir__frame_state state)
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

static void reset_slot(weir_pipeline *pipeline, struct weir__slot *slot)
{
    slot->status = WEIR_OK;
    slot->stage = "";
    slot->queue_failed = false;
    slot->refused = false;
    slot->done = (struct weir_event){0};
    memset(slot->begins, 0, pipeline->params.stage_count * sizeof *slot->begins);
    memset(slot->ends, 0, pipeline->params.stage_count * sizeof *slot->ends);
}

// Called with the lock, which is released.
static void prepare_oldest(weir_pipeline *pipeline)
{
    struct weir__record *record = take_slot(pipeline, WEIR__FRAME_PREPARING);
    struct weir__slot *slot = &pipeline->slots[record->slot];
    const uint64_t number = pipeline->next_start;
    pipeline->preparing++;
    weir__pattern_lock_release(&pipeline->lock);

    reset_slot(pipeline, slot);
    weir_region_push(weir_device_runtime(pipeline->params.device), "prepare", number);
    (void)pipeline_prepare(pipeline, slot, record->frame);
    end_prepare(pipeline, record);
}

// Called with the lock. Waits at `changed` until the oldest waiting frame can have a slot; false
// when the pipeline is to stop. Gives it that slot, which must then be reset without the lock.
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
            (void)weir__pattern_lock_wait(&pipeline->lock, changed, NULL);
    }
    return false;
}

void weir__pipeline_preparer(void *argument)
{
    weir_pipeline *pipeline = argument;

    weir__pattern_lock_take(&pipeline->lock);
    while (wait_for_slot(pipeline, &pipeline->to_prepare)) {
        prepare_oldest(pipeline);
        weir__pattern_lock_take(&pipeline->lock);
    }
    weir__pattern_lock_release(&pipeline->lock);
}

static weir_queue *queue_at(const weir_pipeline *pipeline, uint32_t index)
{
    return pipeline->params.graphs ? pipeline->slots[index].queue : pipeline->stages[index].queue;
}

weir_status weir__pipeline_recover_queues(weir_pipeline *pipeline)
{
    const struct weir_pipeline_params *params = &pipeline->params;
    const uint32_t count = params->graphs ? params->slot_count : params->stage_count;
    struct weir__pattern_first first = {.status = WEIR_OK};

    for (uint32_t i = 0; i < count; i++) {
        weir_queue *queue = queue_at(pipeline, i);
        // A queue fails only when it reaches its wait for a failed event; if it
        // were recovered before that, it would fail afterwards.
        WEIR_IGNORE(weir_queue_sync(queue, WEIR_FOREVER));
        weir__pattern_note(&first, weir_queue_recover(queue));
    }
    return weir__pattern_first(&first);
}

bool weir__pipeline_took(struct weir__slot *slot, const char *stage, weir_status status)
{
    if (status == WEIR_OK)
        return true;
    slot->queue_failed = true;
    slot->refused = slot->refused || slot->status == WEIR_OK;
    note(slot, stage, status);
    return false;
}

// Also after a callback that failed: it may have submitted half of its work, which must finish
// before the slot is reused.
static bool record_end(const weir_pipeline *pipeline, struct weir__slot *slot, uint32_t index)
{
    const struct weir__stage *stage = &pipeline->stages[index];
    return weir__pipeline_took(slot, stage->name,
                               weir_queue_record(stage->queue, &slot->ends[index]));
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

    weir__pattern_forget();
    const weir_status status =
        stage->submit(pipeline->params.user, slot->data, frame, stage->queue);
    if (status != WEIR_OK)
        note(slot, stage->name, status);
    if (record_end(pipeline, slot, index))
        return status == WEIR_OK;
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
        pipeline_launch(pipeline, slot, frame);
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
    weir__pattern_lock_release(&pipeline->lock);

    if (!prepared)
        reset_slot(pipeline, slot);
    weir_region_push(weir_device_runtime(pipeline->params.device), "frame", number);
    if ((!must_recover || recover(pipeline, slot)) &&
        (prepared ? slot->status == WEIR_OK : pipeline_prepare(pipeline, slot, frame)))
        submit_frame(pipeline, slot, frame);
    end_start(pipeline);
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
        if (wait_for_slot(pipeline, &pipeline->to_start))
            record = take_slot(pipeline, WEIR__FRAME_STARTING);
        *out_number = pipeline->next_start;
        return record;
    }
    while (!pipeline->stopping && !(record = find_prepared(pipeline)))
        (void)weir__pattern_lock_wait(&pipeline->lock, &pipeline->to_start, NULL);
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

    weir__pattern_lock_take(&pipeline->lock);
    while ((record = wait_for_start(pipeline, &number))) {
        start(pipeline, record, number);
        weir__pattern_lock_take(&pipeline->lock);
    }
    weir__pattern_lock_release(&pipeline->lock);
}
