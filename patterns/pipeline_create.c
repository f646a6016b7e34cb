// Creation of a pipeline: its storage, queues, slots and threads.
#include "patterns/pipeline_parts.h"
#include "patterns/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DROPPED_BACKLOG 1024

static weir_device *device_of(const weir_pipeline *pipeline,
                              const struct weir_pipeline_stage *stage)
{
    return stage->device ? stage->device : pipeline->params.device;
}

static void resolve_params(weir_pipeline *pipeline, const struct weir_pipeline_params *given)
{
    struct weir_pipeline_params *params = &pipeline->params;

    *params = *given;
    snprintf(pipeline->label, sizeof pipeline->label, "%s",
             weir__pattern_label(given->label, "pipeline"));
    params->label = pipeline->label;
    params->stages = NULL;
    if (!params->prepare)
        params->prepare_threads = 0;
    if (params->slot_count == 0)
        params->slot_count = params->stage_count + 1 + 2 * params->prepare_threads;
    if (params->slot_count > WEIR_PIPELINE_SLOTS_MAX)
        params->slot_count = WEIR_PIPELINE_SLOTS_MAX;
    if (params->backlog == 0)
        params->backlog = params->slot_count;
    if (params->dropped_backlog == 0)
        params->dropped_backlog = DROPPED_BACKLOG;
    pipeline->timing = params->timing && !params->graphs;
    for (uint32_t i = 0; i < params->stage_count; i++) {
        const struct weir_limits *limits =
            weir_device_limits(device_of(pipeline, &given->stages[i]));
        pipeline->timing = pipeline->timing && limits && limits->timing_history > 0;
    }

    pipeline->record_count = params->slot_count + params->backlog;
    if (params->full == WEIR_PIPELINE_DROP_OLDEST || params->full == WEIR_PIPELINE_DROP_NEWEST)
        pipeline->record_count += params->dropped_backlog;
}

// Everything that the threads need, so that they allocate nothing.
static weir_status make_storage(weir_pipeline *pipeline)
{
    size_t stages = pipeline->params.stage_count;
    size_t slots = pipeline->params.slot_count;

    pipeline->stages = calloc(stages, sizeof *pipeline->stages);
    pipeline->slots = calloc(slots, sizeof *pipeline->slots);
    pipeline->records = calloc(pipeline->record_count, sizeof *pipeline->records);
    pipeline->events = calloc(slots * stages * 2, sizeof *pipeline->events);
    pipeline->spans = calloc(slots * stages, sizeof *pipeline->spans);
    pipeline->covered = calloc(stages, sizeof *pipeline->covered);
    pipeline->pieces = calloc(stages * (slots * stages + 1), sizeof *pipeline->pieces);
    pipeline->preparers = // never 0 bytes
        calloc((size_t)pipeline->params.prepare_threads + 1, sizeof *pipeline->preparers);
    if (!pipeline->stages || !pipeline->preparers || !pipeline->slots || !pipeline->records ||
        !pipeline->events || !pipeline->spans || !pipeline->covered || !pipeline->pieces)
        return weir__pipeline_fail(pipeline->label, WEIR_ERROR_OUT_OF_MEMORY,
                                   "use fewer slots or a smaller backlog",
                                   "no memory for %zu slots of %zu stages and %u frames", slots,
                                   stages, (unsigned)pipeline->record_count);

    // With more than slots × stages disjoint pieces, one of them holds only frames
    // that were delivered before any future frame could start. So no future interval
    // reaches into it, nor into the oldest piece, which is before it.
    for (size_t i = 0; i < stages; i++) {
        pipeline->covered[i].capacity = (uint32_t)(slots * stages);
        pipeline->covered[i].pieces = pipeline->pieces + i * (slots * stages + 1);
    }
    for (size_t i = 0; i < slots; i++) {
        pipeline->slots[i].begins = pipeline->events + i * stages * 2;
        pipeline->slots[i].ends = pipeline->slots[i].begins + stages;
        pipeline->slots[i].spans = pipeline->spans + i * stages;
    }
    return WEIR_OK;
}

static weir_status make_stages(weir_pipeline *pipeline, const struct weir_pipeline_stage *given)
{
    uint32_t count = pipeline->params.stage_count;
    uint64_t depended_on = 0;
    weir_status status = WEIR_OK;

    for (uint32_t i = 0; i < count; i++)
        depended_on |= given[i].depends_on;
    for (uint32_t i = 0; i < count && status == WEIR_OK; i++) {
        struct weir__stage *stage = &pipeline->stages[i];
        char label[WEIR__PATTERN_LABEL_SIZE + WEIR__NAME_SIZE];
        snprintf(stage->name, sizeof stage->name, "%s", given[i].name);
        snprintf(label, sizeof label, "%s/%s", pipeline->label, stage->name);
        stage->depends_on = given[i].depends_on;
        stage->last = !(depended_on >> i & 1);
        stage->submit = given[i].submit;
        stage->priority = given[i].priority;
        stage->device = device_of(pipeline, &given[i]);
        while (pipeline->stages[stage->timeline].device != stage->device)
            stage->timeline++;
        status = weir_queue_create(stage->device,
                                   &(struct weir_queue_params){
                                       .struct_size = sizeof(struct weir_queue_params),
                                       .label = label,
                                       .priority = given[i].priority,
                                       .timing = pipeline->timing,
                                   },
                                   &stage->queue);
    }
    return status;
}

static weir_status make_slots(weir_pipeline *pipeline)
{
    const struct weir_pipeline_params *params = &pipeline->params;

    if (!params->slot_create)
        return WEIR_OK;
    for (uint32_t i = 0; i < params->slot_count; i++) {
        weir_error_set(NULL);
        weir_status status =
            params->slot_create(params->user, params->device, i, &pipeline->slots[i].data);
        if (status < 0 && weir_last_error()->status == status)
            return status;
        if (status != WEIR_OK)
            return weir__pipeline_fail(pipeline->label, status < 0 ? status : WEIR_ERROR_INVALID,
                                       NULL, "slot_create of slot %u returned %s", (unsigned)i,
                                       weir_status_name(status));
        pipeline->slots_made++;
    }
    return WEIR_OK;
}

static bool make_locks(weir_pipeline *pipeline)
{
    pthread_condattr_t monotonic;

    if (pthread_condattr_init(&monotonic) != 0)
        return false;
    bool ok = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0 &&
              pthread_mutex_init(&pipeline->lock, NULL) == 0 &&
              pthread_cond_init(&pipeline->to_start, &monotonic) == 0 &&
              pthread_cond_init(&pipeline->to_prepare, &monotonic) == 0 &&
              pthread_cond_init(&pipeline->to_deliver, &monotonic) == 0 &&
              pthread_cond_init(&pipeline->moved, &monotonic) == 0;
    pthread_condattr_destroy(&monotonic);
    return ok;
}

static void stop_threads(weir_pipeline *pipeline, bool starter, bool deliverer)
{
    pthread_mutex_lock(&pipeline->lock);
    pipeline->stopping = true;
    pthread_cond_signal(&pipeline->to_start);
    pthread_cond_broadcast(&pipeline->to_prepare);
    pthread_cond_signal(&pipeline->to_deliver);
    pthread_mutex_unlock(&pipeline->lock);
    for (uint32_t i = 0; i < pipeline->preparer_count; i++)
        weir_thread_join(&pipeline->preparers[i]);
    if (starter)
        weir_thread_join(&pipeline->starter);
    if (deliverer)
        weir_thread_join(&pipeline->deliverer);
}

static int start_preparers(weir_pipeline *pipeline)
{
    int error = 0;
    for (uint32_t i = 0; i < pipeline->params.prepare_threads && error == 0; i++) {
        error = weir_thread_start_known(&pipeline->preparers[i], weir__pipeline_preparer, pipeline);
        pipeline->preparer_count += error == 0;
    }
    return error;
}

static weir_status make_threads(weir_pipeline *pipeline)
{
    int error = start_preparers(pipeline);
    bool started = false;
    if (error == 0) {
        error = weir_thread_start_known(&pipeline->starter, weir__pipeline_starter, pipeline);
        started = error == 0;
    }
    if (error == 0)
        error = weir_thread_start_known(&pipeline->deliverer, weir__pipeline_deliverer, pipeline);
    if (error == 0)
        return WEIR_OK;
    stop_threads(pipeline, started, false);
    return weir__pipeline_fail(pipeline->label, WEIR_ERROR_SYSTEM, WEIR__THREADS_REMEDY,
                               "the pipeline's %u threads cannot be started: %s",
                               (unsigned)pipeline->params.prepare_threads + 2, strerror(error));
}

// Frees a pipeline whose threads have ended or were never started; parts that were not
// created are skipped.
static void release(weir_pipeline *pipeline)
{
    const struct weir_pipeline_params *params = &pipeline->params;

    weir__pipeline_leave(pipeline);
    weir__pipeline_free_graphs(pipeline);
    while (pipeline->slots_made > 0) {
        pipeline->slots_made--;
        if (params->slot_destroy)
            params->slot_destroy(params->user, pipeline->slots[pipeline->slots_made].data);
    }
    for (uint32_t i = 0; pipeline->stages && i < params->stage_count; i++)
        weir_queue_destroy(&pipeline->stages[i].queue);
    pthread_cond_destroy(&pipeline->moved);
    pthread_cond_destroy(&pipeline->to_deliver);
    pthread_cond_destroy(&pipeline->to_prepare);
    pthread_cond_destroy(&pipeline->to_start);
    pthread_mutex_destroy(&pipeline->lock);
    free(pipeline->preparers);
    free(pipeline->pieces);
    free(pipeline->covered);
    free(pipeline->spans);
    free(pipeline->events);
    free(pipeline->records);
    free(pipeline->slots);
    free(pipeline->stages);
    free(pipeline);
}

void weir__pipeline_free(weir_pipeline *pipeline)
{
    stop_threads(pipeline, true, true);
    // Work after a failure may still be running although its frame was delivered, and
    // the slots' memory is freed next. The status of the queues no longer matters.
    weir__pipeline_recover_queues(pipeline);
    release(pipeline);
}

weir_status(weir_pipeline_create)(const struct weir_pipeline_params *params,
                                  weir_pipeline **out_pipeline)
{
    struct weir_pipeline_params known;
    struct weir_pipeline_stage stages[WEIR_PIPELINE_STAGES_MAX];
    *out_pipeline = NULL;

    weir_status status = weir__pipeline_read(params, &known, stages);
    params = &known;
    if (status != WEIR_OK)
        return status;

    weir_pipeline *pipeline = calloc(1, sizeof *pipeline);
    if (!pipeline || !make_locks(pipeline)) {
        free(pipeline);
        return weir__pipeline_fail(params->label, WEIR_ERROR_OUT_OF_MEMORY, NULL,
                                   "no memory for a pipeline");
    }
    resolve_params(pipeline, params);
    status = make_storage(pipeline);
    if (status == WEIR_OK)
        status = make_stages(pipeline, params->stages);
    if (status == WEIR_OK && params->graphs)
        status = weir__pipeline_make_graphs(pipeline);
    if (status == WEIR_OK)
        status = make_slots(pipeline);
    if (status == WEIR_OK)
        status = weir__pipeline_join(pipeline);
    if (status == WEIR_OK)
        status = make_threads(pipeline);
    if (status == WEIR_OK) {
        *out_pipeline = pipeline;
        return WEIR_OK;
    }

    // slot_destroy is a user callback, in which calls may fail and change the thread's
    // error detail.
    struct weir_error error = *weir_last_error();
    release(pipeline);
    weir_error_set(&error);
    return status;
}

weir_status weir_pipeline_create_at(const struct weir_pipeline_params *params,
                                    weir_pipeline **out_pipeline, const char *file, int line)
{
    const struct weir__place before = weir__pattern_begin(file, line);
    return weir__pattern_end((weir_pipeline_create)(params, out_pipeline), before);
}
