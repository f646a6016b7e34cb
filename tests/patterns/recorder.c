// Deliveries are copied, because results are valid only during their callback.
#include "tests/patterns/recorder.h"

#include <stdio.h>

void recorder_init(struct recorder *recorder)
{
    pthread_mutex_init(&recorder->lock, NULL);
    recorder->count = 0;
}

void recorder_finish(struct recorder *recorder)
{
    pthread_mutex_destroy(&recorder->lock);
}

void recorder_add(struct recorder *recorder, void *frame, void *slot,
                  const struct weir_pipeline_result *result)
{
    struct delivery delivery = {
        .frame = frame,
        .slot = slot,
        .sequence = result->sequence,
        .status = result->status,
        .has_error = result->error != NULL,
        .timed = result->spans != NULL,
    };
    snprintf(delivery.stage, sizeof delivery.stage, "%s", result->stage);
    if (result->error) {
        delivery.error_status = result->error->status;
        snprintf(delivery.message, sizeof delivery.message, "%.*s",
                 (int)sizeof delivery.message - 1, result->error->message);
        snprintf(delivery.remedy, sizeof delivery.remedy, "%.*s", (int)sizeof delivery.remedy - 1,
                 result->error->remedy);
    }
    pthread_mutex_lock(&recorder->lock);
    if (recorder->count < DELIVERIES)
        recorder->list[recorder->count] = delivery;
    recorder->count++;
    pthread_mutex_unlock(&recorder->lock);
}

unsigned recorder_count(struct recorder *recorder)
{
    pthread_mutex_lock(&recorder->lock);
    unsigned count = recorder->count;
    pthread_mutex_unlock(&recorder->lock);
    return count;
}

unsigned recorder_count_of(struct recorder *recorder, weir_status status)
{
    unsigned count = 0;
    pthread_mutex_lock(&recorder->lock);
    for (unsigned i = 0; i < recorder->count; i++)
        count += recorder->list[i].status == status;
    pthread_mutex_unlock(&recorder->lock);
    return count;
}

const struct delivery *recorder_at(struct recorder *recorder, unsigned index)
{
    static const struct delivery missing = {.status = WEIR_ERROR_NOT_FOUND, .sequence = UINT64_MAX};
    return index < recorder_count(recorder) ? &recorder->list[index] : &missing;
}

bool recorder_is_in_order(struct recorder *recorder, unsigned count)
{
    pthread_mutex_lock(&recorder->lock);
    bool in_order = recorder->count == count;
    for (unsigned i = 0; i < recorder->count && in_order; i++)
        in_order = recorder->list[i].sequence == i;
    pthread_mutex_unlock(&recorder->lock);
    return in_order;
}

void gate_init(struct gate *gate)
{
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->changed, NULL);
    gate->open = false;
    gate->arrived = 0;
}

void gate_finish(struct gate *gate)
{
    pthread_cond_destroy(&gate->changed);
    pthread_mutex_destroy(&gate->lock);
}

void gate_pass(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->arrived++;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->open)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

void gate_open(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->open = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

void gate_shut(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->open = false;
    gate->arrived = 0;
    pthread_mutex_unlock(&gate->lock);
}

void gate_await(struct gate *gate, unsigned count)
{
    pthread_mutex_lock(&gate->lock);
    while (gate->arrived < count)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

weir_status gate_call(void *gate)
{
    gate_pass(gate);
    return WEIR_OK;
}

weir_status gate_call_that_fails(void *gate)
{
    gate_pass(gate);
    return WEIR_ERROR_IO;
}
