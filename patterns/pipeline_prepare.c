// The preparation of frames on the host: by the starter, or ahead of it by prepare_threads.
//
// Each of these takes the oldest waiting frame with the next slot, so slots are given out, and
// returned, in the order of frames whatever the order in which frames become ready.
#include "patterns/pipeline_parts.h"

void weir__pipeline_wake_start(weir_pipeline *pipeline)
{
    pthread_cond_signal(pipeline->params.prepare_threads > 0 ? &pipeline->to_prepare
                                                             : &pipeline->to_start);
}

static void call_prepare(void *user)
{
    struct weir__call *call = user;
    const struct weir_pipeline_params *params = &call->pipeline->params;
    call->status = params->prepare(params->user, call->slot->data, call->frame);
}

bool weir__pipeline_prepare(weir_pipeline *pipeline, struct weir__record *record,
                            struct weir__slot *slot, void *frame)
{
    struct weir__call call = {
        .pipeline = pipeline, .slot = slot, .frame = frame, .name = "prepare", .record = record};
    if (!pipeline->params.prepare)
        return true;
    weir__pipeline_call(&call, call_prepare);
    if (call.status != WEIR_OK)
        weir__pipeline_note(slot, call.name, call.status);
    return call.status == WEIR_OK;
}

// Called with the lock, which is released.
static void prepare_oldest(weir_pipeline *pipeline)
{
    struct weir__record *record = weir__pipeline_take_slot(pipeline, WEIR__FRAME_PREPARING);
    struct weir__slot *slot = &pipeline->slots[record->slot];
    const uint64_t number = pipeline->next_start;
    pipeline->preparing++;
    pthread_mutex_unlock(&pipeline->lock);

    weir__pipeline_reset_slot(pipeline, slot);
    weir_region_push(weir_device_runtime(pipeline->params.device), "prepare", number);
    (void)weir__pipeline_prepare(pipeline, record, slot, record->frame);
    weir__pipeline_end_prepare(pipeline, record);
}

void weir__pipeline_end_prepare(weir_pipeline *pipeline, struct weir__record *record)
{
    weir_region_pop(weir_device_runtime(pipeline->params.device));
    pthread_mutex_lock(&pipeline->lock);
    record->state = WEIR__FRAME_PREPARED;
    pipeline->preparing--;
    pthread_cond_signal(&pipeline->to_start);
    pthread_mutex_unlock(&pipeline->lock);
}

void weir__pipeline_preparer(void *argument)
{
    weir_pipeline *pipeline = argument;

    pthread_mutex_lock(&pipeline->lock);
    while (weir__pipeline_wait_for_slot(pipeline, &pipeline->to_prepare)) {
        prepare_oldest(pipeline);
        pthread_mutex_lock(&pipeline->lock);
    }
    pthread_mutex_unlock(&pipeline->lock);
}
