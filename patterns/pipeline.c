// The callers' side of the pipeline: creation and destruction, the ring of records and
// the policies. The work of its threads is in pipeline_prepare.c, pipeline_start.c and pipeline_deliver.c.
//
// Room is counted in frames that are alive (waiting or in a slot), not by the progress
// of the starter, so whether a submit finds the pipeline full does not depend on
// thread scheduling. Dropped and cancelled frames are not alive but keep their place
// in the ring, for delivery in order.
#include "patterns/pipeline_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define DROPPED_BACKLOG 1024

struct weir__record *weir__pipeline_record(weir_pipeline *pipeline, uint64_t sequence)
{
    return &pipeline->records[sequence % pipeline->record_count];
}

struct weir__record *weir__pipeline_oldest(weir_pipeline *pipeline)
{
    // Frames that ended while waiting may have been delivered before `next_start`
    // reached them.
    if (pipeline->next_start < pipeline->head)
        pipeline->next_start = pipeline->head;
    while (weir__pipeline_record(pipeline, pipeline->next_start)->state != WEIR__FRAME_WAITING)
        pipeline->next_start++;
    return weir__pipeline_record(pipeline, pipeline->next_start);
}

void weir__pipeline_end(weir_pipeline *pipeline, struct weir__record *record, weir_status status)
{
    record->state = WEIR__FRAME_ENDED;
    record->status = status;
    pipeline->waiting--;
    pthread_cond_signal(&pipeline->to_deliver);
}

// --- creation ---

static weir_device *device_of(const struct weir_pipeline_params *params, uint32_t stage)
{
    return params->stages[stage].device ? params->stages[stage].device : params->device;
}

static void resolve_params(weir_pipeline *pipeline, const struct weir_pipeline_params *given)
{
    struct weir_pipeline_params *params = &pipeline->params;

    *params = *given;
    snprintf(pipeline->label, sizeof pipeline->label, "%s",
             given->label ? given->label : "pipeline");
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
        const struct weir_limits *limits = weir_device_limits(device_of(given, i));
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
        char label[WEIR__LABEL_SIZE + WEIR__NAME_SIZE];
        snprintf(stage->name, sizeof stage->name, "%s", given[i].name);
        snprintf(label, sizeof label, "%s/%s", pipeline->label, stage->name);
        stage->depends_on = given[i].depends_on;
        stage->last = !(depended_on >> i & 1);
        stage->submit = given[i].submit;
        stage->priority = given[i].priority;
        stage->device = given[i].device ? given[i].device : pipeline->params.device;
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
        error = weir_thread_start(&pipeline->preparers[i], weir__pipeline_preparer, pipeline);
        pipeline->preparer_count += error == 0;
    }
    return error;
}

static weir_status make_threads(weir_pipeline *pipeline)
{
    int error = start_preparers(pipeline);
    bool started = false;
    if (error == 0) {
        error = weir_thread_start(&pipeline->starter, weir__pipeline_starter, pipeline);
        started = error == 0;
    }
    if (error == 0)
        error = weir_thread_start(&pipeline->deliverer, weir__pipeline_deliverer, pipeline);
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

weir_status weir_pipeline_create(const struct weir_pipeline_params *params,
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

// --- submission ---

bool weir__pipeline_in_callback(const weir_pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->params.prepare_threads; i++)
        if (pthread_equal(pthread_self(), pipeline->preparers[i].id))
            return true;
    return pthread_equal(pthread_self(), pipeline->starter.id) ||
           pthread_equal(pthread_self(), pipeline->deliverer.id);
}

static weir_status refuse_in_callback(const weir_pipeline *pipeline, const char *call,
                                      const char *remedy)
{
    return weir__pipeline_fail(pipeline->label, WEIR_ERROR_INVALID, remedy,
                               "%s was called from a callback of the same pipeline, which it would "
                               "wait for",
                               call);
}

static weir_status refuse_null(const char *call)
{
    return weir__pipeline_fail(NULL, WEIR_ERROR_INVALID, NULL, "%s: pipeline is NULL", call);
}

static uint64_t count_alive(const weir_pipeline *pipeline)
{
    return pipeline->waiting + (pipeline->started - pipeline->released);
}

static bool ring_has_room(const weir_pipeline *pipeline)
{
    return pipeline->tail - pipeline->head < pipeline->record_count;
}

static bool has_room(const weir_pipeline *pipeline)
{
    return ring_has_room(pipeline) &&
           count_alive(pipeline) < (uint64_t)pipeline->params.slot_count + pipeline->params.backlog;
}

static weir_status wait_for_room(weir_pipeline *pipeline)
{
    uint64_t cancels = pipeline->cancels;

    pipeline->blocked++;
    while (!has_room(pipeline) && pipeline->cancels == cancels)
        pthread_cond_wait(&pipeline->moved, &pipeline->lock);
    pipeline->blocked--;
    if (pipeline->cancels == cancels)
        return WEIR_OK;
    // Destruction waits for the last blocked caller.
    pthread_cond_broadcast(&pipeline->moved);
    return WEIR_CANCELLED;
}

// Decides about one more frame: WEIR_OK; WEIR_DROPPED if this frame itself is dropped;
// or the status with which it is not accepted.
static weir_status make_room(weir_pipeline *pipeline)
{
    if (has_room(pipeline))
        return WEIR_OK;
    if (pipeline->params.full == WEIR_PIPELINE_BLOCK)
        return wait_for_room(pipeline);
    if (pipeline->params.full == WEIR_PIPELINE_WOULD_BLOCK || !ring_has_room(pipeline))
        return WEIR_NOT_READY;
    if (pipeline->params.full == WEIR_PIPELINE_DROP_NEWEST)
        return WEIR_DROPPED;
    // slots + backlog frames are alive and at most slots have started: one waits.
    weir__pipeline_end(pipeline, weir__pipeline_oldest(pipeline), WEIR_DROPPED);
    return WEIR_OK;
}

static void accept_frame(weir_pipeline *pipeline, void *frame, weir_status status)
{
    struct weir__record *record = weir__pipeline_record(pipeline, pipeline->tail);

    *record = (struct weir__record){
        .frame = frame,
        .accepted_ns = weir_clock_now_ns(),
        .state = WEIR__FRAME_WAITING,
    };
    if (pipeline->params.group)
        record->number = weir__pipeline_enter_group(pipeline);
    if (pipeline->tail == 0)
        pipeline->first_ns = record->accepted_ns;
    pipeline->tail++;
    pipeline->waiting++;
    if (status == WEIR_DROPPED)
        weir__pipeline_end(pipeline, record, status);
    else
        weir__pipeline_wake_start(pipeline);
}

weir_status weir_pipeline_submit(weir_pipeline *pipeline, void *frame)
{
    if (!pipeline)
        return refuse_null("weir_pipeline_submit");
    if (pipeline->params.full == WEIR_PIPELINE_BLOCK && weir__pipeline_in_callback(pipeline))
        return refuse_in_callback(pipeline, "weir_pipeline_submit",
                                  "use another policy than WEIR_PIPELINE_BLOCK");

    pthread_mutex_lock(&pipeline->lock);
    weir_status status = make_room(pipeline);
    if (status == WEIR_OK || status == WEIR_DROPPED)
        accept_frame(pipeline, frame, status);
    else if (status == WEIR_NOT_READY)
        pipeline->figures.refused++;
    pthread_mutex_unlock(&pipeline->lock);
    return status == WEIR_DROPPED ? WEIR_OK : status;
}

void weir__pipeline_get_load(weir_pipeline *pipeline, struct weir__pipeline_load *out_load)
{
    pthread_mutex_lock(&pipeline->lock);
    *out_load = (struct weir__pipeline_load){
        .alive = count_alive(pipeline),
        .oldest = pipeline->waiting > 0 ? weir__pipeline_oldest(pipeline)->number : UINT64_MAX,
        .room = has_room(pipeline),
        .lost = pipeline->lost,
    };
    pthread_mutex_unlock(&pipeline->lock);
}

bool weir__pipeline_try(weir_pipeline *pipeline, void *frame)
{
    pthread_mutex_lock(&pipeline->lock);
    const bool room = has_room(pipeline);
    if (room)
        accept_frame(pipeline, frame, WEIR_OK);
    pthread_mutex_unlock(&pipeline->lock);
    return room;
}

// --- the end ---

// The end of a timeout in the form that pthread_cond_timedwait() takes; false for
// none.
static bool deadline_of(uint64_t timeout_ns, struct timespec *out_deadline)
{
    uint64_t now = weir_clock_now_ns();
    if (timeout_ns == WEIR_FOREVER || timeout_ns > INT64_MAX - now)
        return false;
    *out_deadline = weir_clock_timespec(now + timeout_ns);
    return true;
}

weir_status weir_pipeline_drain(weir_pipeline *pipeline, uint64_t timeout_ns)
{
    struct timespec deadline;

    if (!pipeline)
        return refuse_null("weir_pipeline_drain");
    if (weir__pipeline_in_callback(pipeline))
        return refuse_in_callback(pipeline, "weir_pipeline_drain",
                                  "drain from a thread of the program's");

    bool limited = deadline_of(timeout_ns, &deadline);
    int error = 0;
    pthread_mutex_lock(&pipeline->lock);
    uint64_t target = pipeline->tail;
    while (pipeline->head < target && error != ETIMEDOUT) {
        if (limited)
            error = pthread_cond_timedwait(&pipeline->moved, &pipeline->lock, &deadline);
        else
            pthread_cond_wait(&pipeline->moved, &pipeline->lock);
    }
    const bool drained = pipeline->head >= target;
    const bool ended = drained && pipeline->deliver_ended;
    pipeline->deliver_ended = pipeline->deliver_ended && !ended;
    pthread_mutex_unlock(&pipeline->lock);
    if (ended)
        return weir__pattern_callback_ended(pipeline->label, "`deliver`");
    return drained ? WEIR_OK : WEIR_TIMEOUT;
}

weir_status weir_pipeline_cancel(weir_pipeline *pipeline)
{
    if (!pipeline)
        return refuse_null("weir_pipeline_cancel");

    pthread_mutex_lock(&pipeline->lock);
    while (pipeline->waiting > 0)
        weir__pipeline_end(pipeline, weir__pipeline_oldest(pipeline), WEIR_CANCELLED);
    pipeline->cancels++;
    pthread_cond_broadcast(&pipeline->moved);
    pthread_mutex_unlock(&pipeline->lock);
    weir__pipeline_cancel_in_group(pipeline);
    return WEIR_OK;
}

weir_status weir_pipeline_destroy(weir_pipeline **pipeline)
{
    if (!pipeline || !*pipeline)
        return WEIR_OK;

    weir_pipeline *ending = *pipeline;
    if (weir__pipeline_in_callback(ending))
        return refuse_in_callback(ending, "weir_pipeline_destroy",
                                  "destroy it from a thread of the program's");
    weir_pipeline_cancel(ending);
    pthread_mutex_lock(&ending->lock);
    while (ending->head < ending->tail || ending->blocked > 0)
        pthread_cond_wait(&ending->moved, &ending->lock);
    pthread_mutex_unlock(&ending->lock);
    stop_threads(ending, true, true);
    // Work after a failure may still be running although its frame was delivered, and
    // the slots' memory is freed next. The status of the queues no longer matters.
    weir__pipeline_recover_queues(ending);
    release(ending);
    *pipeline = NULL;
    return WEIR_OK;
}
