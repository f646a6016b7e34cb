// Frames as graphs. Each slot has a queue that launches its frames, so frames overlap as
// far as the device allows, and a graph, captured from the stages at the slot's first
// frame with a given `repeat` number.
//
// A stage is captured on the queue of a stage that it depends on, if no other stage has
// continued there, and else on its own queue. So a chain of stages is captured on the
// slot's queue alone and needs no fork, which makes it cheaper to replay on a backend
// without graphs.
#include <stdio.h>
#include <string.h>

#include "patterns/pipeline_parts.h"
#include "patterns/place.h"

// List order is a topological order, so the stages that this one depends on have their
// lanes already.
static void choose_lanes(weir_pipeline *pipeline)
{
    uint64_t continued = 0;
    bool rooted = false;

    for (uint32_t i = 0; i < pipeline->params.stage_count; i++) {
        struct weir__stage *stage = &pipeline->stages[i];
        stage->lane = i;
        if (stage->depends_on == 0 && !rooted) {
            stage->lane = WEIR__SLOT_LANE;
            rooted = true;
        }
        for (uint32_t d = 0; d < i; d++)
            if ((stage->depends_on & ~continued) >> d & 1) {
                stage->lane = pipeline->stages[d].lane;
                continued |= WEIR_PIPELINE_AFTER(d);
                break;
            }
    }
}

static int32_t highest_priority(const weir_pipeline *pipeline)
{
    int32_t highest = pipeline->stages[0].priority;
    for (uint32_t i = 1; i < pipeline->params.stage_count; i++)
        if (highest < pipeline->stages[i].priority)
            highest = pipeline->stages[i].priority;
    return highest;
}

weir_status weir__pipeline_make_graphs(weir_pipeline *pipeline)
{
    weir_status status = WEIR_OK;

    choose_lanes(pipeline);
    for (uint32_t i = 0; i < pipeline->params.slot_count && status == WEIR_OK; i++) {
        char label[WEIR__PATTERN_LABEL_SIZE + WEIR__NAME_SIZE];
        snprintf(label, sizeof label, "%s/slot %u", pipeline->label, (unsigned)i);
        status = weir_queue_create(pipeline->params.device,
                                   &(struct weir_queue_params){
                                       .struct_size = sizeof(struct weir_queue_params),
                                       .label = label,
                                       .priority = highest_priority(pipeline),
                                   },
                                   &pipeline->slots[i].queue);
    }
    return status;
}

void weir__pipeline_free_graphs(weir_pipeline *pipeline)
{
    for (uint32_t i = 0; pipeline->slots && i < pipeline->params.slot_count; i++) {
        weir_graph_destroy(&pipeline->slots[i].graph);
        weir_queue_destroy(&pipeline->slots[i].queue);
    }
}

// --- capturing ---

static weir_queue *queue_of(const weir_pipeline *pipeline, const struct weir__slot *slot,
                            uint32_t lane)
{
    return lane == WEIR__SLOT_LANE ? slot->queue : pipeline->stages[lane].queue;
}

// The call that the capture refused gives the error; the pipeline adds the remedy.
static void note_refusal(struct weir__slot *slot, const char *stage, weir_status status)
{
    weir__pipeline_note(slot, stage, status);
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
    weir_capture_cancel(slot->queue);
}

static void abandon_capture(const struct weir__call *call)
{
    cancel_capture(call->pipeline, call->slot);
}

static bool capture_stage(weir_pipeline *pipeline, struct weir__slot *slot, void *frame,
                          uint32_t index, struct weir_event begin)
{
    const struct weir__stage *stage = &pipeline->stages[index];
    weir_queue *queue = queue_of(pipeline, slot, stage->lane);

    if (!capture_waits(pipeline, slot, index, begin))
        return false;
    const weir_status status = weir__pipeline_submit_stage(&(struct weir__call){
        .pipeline = pipeline,
        .slot = slot,
        .frame = frame,
        .stage = stage,
        .queue = queue,
        .abandon = abandon_capture,
    });
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
        weir__pipeline_note(slot, "graph", status);
    return status == WEIR_OK;
}

// --- launching ---

static void call_repeat(void *user)
{
    struct weir__call *call = user;
    const struct weir_pipeline_params *params = &call->pipeline->params;
    call->number = params->repeat(params->user, call->slot->data, call->frame);
}

void weir__pipeline_launch(weir_pipeline *pipeline, struct weir__slot *slot, void *frame)
{
    struct weir__call call = {.pipeline = pipeline, .slot = slot, .frame = frame, .name = "repeat"};

    weir__pipeline_call(&call, call_repeat);
    if ((!slot->graph || slot->number != call.number) && !capture(pipeline, slot, frame))
        return;
    slot->number = call.number;
    bool launched = weir__pipeline_took(slot, "graph", weir_queue_graph(slot->queue, slot->graph));
    // Also after a launch that failed: part of it may be running.
    if (weir__pipeline_took(slot, "graph", weir_queue_record(slot->queue, &slot->done)) && launched)
        (void)weir__pipeline_took(slot, "graph", weir_queue_flush(slot->queue));
}
