// The callers' side of the pipeline: the ring of records, the policies, and the end. The work of its threads is in
// pipeline_start.c and pipeline_deliver.c, its creation in pipeline_create.c.
//
// Room is counted in frames that are alive (waiting or in a slot), not by the progress
// of the starter, so whether a submit finds the pipeline full does not depend on
// thread scheduling. Dropped and cancelled frames are not alive but keep their place
// in the ring, for delivery in order.
#include "patterns/pipeline_parts.h"

#include <errno.h>

#include "base/clock.h"
#include "patterns/place.h"

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

// --- submission ---

bool weir__pipeline_in_callback(const weir_pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->params.prepare_threads; i++)
        if (weir_thread_is_current(&pipeline->preparers[i]))
            return true;
    return weir_thread_is_current(&pipeline->starter) ||
           weir_thread_is_current(&pipeline->deliverer);
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
    return weir__pipeline_fail(NULL, WEIR_ERROR_INVALID, WEIR__CREATE_REMEDY,
                               "%s: pipeline is NULL", call);
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
        weir__pattern_lock_wait(&pipeline->lock, &pipeline->moved);
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

    weir__pattern_lock_take(&pipeline->lock);
    weir_status status = make_room(pipeline);
    if (status == WEIR_OK || status == WEIR_DROPPED)
        accept_frame(pipeline, frame, status);
    else if (status == WEIR_NOT_READY)
        pipeline->figures.refused++;
    weir__pattern_lock_release(&pipeline->lock);
    return status == WEIR_DROPPED ? WEIR_OK : status;
}

void weir__pipeline_get_load(weir_pipeline *pipeline, struct weir__pipeline_load *out_load)
{
    weir__pattern_lock_take(&pipeline->lock);
    *out_load = (struct weir__pipeline_load){
        .alive = count_alive(pipeline),
        .oldest = pipeline->waiting > 0 ? weir__pipeline_oldest(pipeline)->number : UINT64_MAX,
        .room = has_room(pipeline),
        .lost = pipeline->lost,
    };
    weir__pattern_lock_release(&pipeline->lock);
}

bool weir__pipeline_try(weir_pipeline *pipeline, void *frame)
{
    weir__pattern_lock_take(&pipeline->lock);
    const bool room = has_room(pipeline);
    if (room)
        accept_frame(pipeline, frame, WEIR_OK);
    weir__pattern_lock_release(&pipeline->lock);
    return room;
}

// --- the end ---

// The end of a timeout in the form that weir_wait_until() takes; false for
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
    weir__pattern_lock_take(&pipeline->lock);
    uint64_t target = pipeline->tail;
    pipeline->draining++;
    while (pipeline->head < target && error != ETIMEDOUT) {
        if (limited)
            error = weir__pattern_lock_wait_until(&pipeline->lock, &pipeline->moved, &deadline);
        else
            weir__pattern_lock_wait(&pipeline->lock, &pipeline->moved);
    }
    pipeline->draining--;
    const bool drained = pipeline->head >= target;
    weir__pattern_lock_release(&pipeline->lock);
    return drained ? WEIR_OK : WEIR_TIMEOUT;
}

weir_status weir_pipeline_cancel(weir_pipeline *pipeline)
{
    if (!pipeline)
        return refuse_null("weir_pipeline_cancel");

    weir__pattern_lock_take(&pipeline->lock);
    while (pipeline->waiting > 0)
        weir__pipeline_end(pipeline, weir__pipeline_oldest(pipeline), WEIR_CANCELLED);
    pipeline->cancels++;
    pthread_cond_broadcast(&pipeline->moved);
    weir__pattern_lock_release(&pipeline->lock);
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
    WEIR_IGNORE(weir_pipeline_cancel(ending));
    weir__pattern_lock_take(&ending->lock);
    ending->draining++;
    while (ending->head < ending->tail || ending->blocked > 0)
        weir__pattern_lock_wait(&ending->lock, &ending->moved);
    weir__pattern_lock_release(&ending->lock);
    weir__pipeline_free(ending);
    *pipeline = NULL;
    return WEIR_OK;
}
