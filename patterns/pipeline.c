// The callers' side of the pipeline: the ring of records, the policies, groups, and the end. The threads'
// work is in pipeline_threads.c, the creation in pipeline_create.c.
//
// Room is counted in frames that are alive (waiting or in a slot), not by the progress
// of the starter, so whether a submit finds the pipeline full does not depend on
// thread scheduling. Dropped and cancelled frames are not alive but keep their place
// in the ring, for delivery in order.
//
// A submission to a pipeline is one to a group of one. Each frame has a number in the group, in the order in which
// they were accepted, and the deliverer that has the frame of the group's head delivers it.
#include <errno.h>

#include "patterns/pipeline_parts.h"
#include "patterns/shared.h"

static weir_status create_group(const struct weir_pipeline_group_params *params,
                                weir_pipeline_group **out_group)
{
    struct weir_pipeline_group_params known = {.label = NULL};
    if (params)
        TRY(weir__pattern_params("weir_pipeline_group_create", "weir_pipeline_group_params", params,
                                 &known, sizeof known));
    const char *label = weir__pattern_label(known.label, "group");
    weir_pipeline_group *group = *out_group = calloc(1, sizeof *group);
    if (!group)
        return weir__pattern_no_memory(label, "a group of pipelines");
    pthread_mutex_init(&group->line.lock.mutex, NULL);
    weir_condition_init(&group->line.moved);
    weir__pattern_keep(group->label, label, NULL);
    return WEIR_OK;
}

weir_status weir_pipeline_group_create_at(const struct weir_pipeline_group_params *params,
                                          weir_pipeline_group **out_group, const char *file,
                                          int line)
{
    *out_group = NULL;
    return weir__pattern_placed(create_group(params, out_group), file, line);
}

weir_status weir_pipeline_group_destroy(weir_pipeline_group **group)
{
    if (!group || !*group)
        return WEIR_OK;
    weir_pipeline_group *ending = *group;
    if (ending->count > 0)
        return weir__pattern_refuse(
            ending->label, "destroy its pipelines first",
            "weir_pipeline_group_destroy: the group has %u pipelines, one of them '%s'",
            (unsigned)ending->count, ending->members[0]->label);
    pthread_cond_destroy(&ending->line.moved);
    pthread_mutex_destroy(&ending->line.lock.mutex);
    free(ending);
    *group = NULL;
    return WEIR_OK;
}

// --- the ring ---

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

weir_status weir__pipeline_check_caller(const weir_pipeline *pipeline, const char *call,
                                        const char *remedy)
{
    for (uint32_t i = 0; i < pipeline->params.prepare_threads + 2; i++)
        if (weir_thread_is_current(&pipeline->threads[i]))
            return weir__pattern_refuse(
                pipeline->label, remedy,
                "%s was called from a callback of pipeline '%s', which it would wait for", call,
                pipeline->label);
    return WEIR_OK;
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

static void accept_frame(weir_pipeline *pipeline, void *frame, weir_status status)
{
    struct weir__record *record = weir__pipeline_record(pipeline, pipeline->tail);

    *record = (struct weir__record){
        .frame = frame,
        .accepted_ns = weir_clock_now_ns(),
        .state = WEIR__FRAME_WAITING,
        .number = pipeline->line->tail++,
    };
    if (pipeline->tail == 0)
        pipeline->first_ns = record->accepted_ns;
    pipeline->tail++;
    pipeline->waiting++;
    if (status == WEIR_DROPPED)
        weir__pipeline_end(pipeline, record, status);
    else
        weir__pipeline_wake_start(pipeline);
}

// Accepts the frame, which may be dropped at once, or returns why it is not accepted.
static weir_status admit(weir_pipeline *pipeline, void *frame)
{
    const bool room = has_room(pipeline);
    const bool drops_newest = !room && pipeline->params.full == WEIR_PIPELINE_DROP_NEWEST;
    if (!room && (pipeline->params.full == WEIR_PIPELINE_WOULD_BLOCK || !ring_has_room(pipeline))) {
        pipeline->figures.refused++;
        return WEIR_NOT_READY;
    }
    // slots + backlog frames are alive and at most slots have started: one waits.
    if (!room && !drops_newest)
        weir__pipeline_end(pipeline, weir__pipeline_oldest(pipeline), WEIR_DROPPED);
    accept_frame(pipeline, frame, drops_newest ? WEIR_DROPPED : WEIR_OK);
    return WEIR_OK;
}

static uint64_t oldest_number(weir_pipeline *pipeline)
{
    return pipeline->waiting > 0 ? weir__pipeline_oldest(pipeline)->number : UINT64_MAX;
}

static bool is_better(weir_pipeline *a, weir_pipeline *b)
{
    if (a->lost != b->lost)
        return b->lost;
    if (has_room(a) != has_room(b))
        return has_room(a);
    // With room the least loaded; without, the one whose frame would be dropped.
    return has_room(a) ? count_alive(a) < count_alive(b) : oldest_number(a) < oldest_number(b);
}

// The pipeline for the next frame, of those from the one after the last that got a frame.
static uint32_t choose(weir_pipeline *const *pipelines, uint32_t count, uint32_t last)
{
    uint32_t best = (last + 1) % count;
    for (uint32_t i = 2; i <= count; i++)
        if (is_better(pipelines[(last + i) % count], pipelines[best]))
            best = (last + i) % count;
    return best;
}

static uint64_t count_cancels(weir_pipeline *const *pipelines, uint32_t count)
{
    uint64_t cancels = 0;
    for (uint32_t i = 0; i < count; i++)
        cancels += pipelines[i]->cancels;
    return cancels;
}

// Until something has changed. The destruction of any of them waits for the caller to leave.
static void wait_blocked(weir_pipeline *const *pipelines, uint32_t count)
{
    struct weir__pipeline_line *line = pipelines[0]->line;
    for (uint32_t i = 0; i < count; i++)
        pipelines[i]->blocked++;
    (void)weir__pattern_lock_wait(&line->lock, &line->moved, WEIR_FOREVER);
    for (uint32_t i = 0; i < count; i++)
        pipelines[i]->blocked--;
}

// To one of the pipelines, which are of one group. `last` is the index of the one that got the last frame.
static weir_status submit(const char *call, weir_pipeline *const *pipelines, uint32_t count,
                          uint32_t *last, void *frame)
{
    for (uint32_t i = 0; i < count && pipelines[i]->params.full == WEIR_PIPELINE_BLOCK; i++)
        TRY(weir__pipeline_check_caller(pipelines[i], call,
                                        "use another policy than WEIR_PIPELINE_BLOCK"));
    struct weir__pipeline_line *line = pipelines[0]->line;
    bool cancelled = false;
    weir__pattern_lock_take(&line->lock);
    const uint64_t cancels = count_cancels(pipelines, count);
    uint32_t chosen = choose(pipelines, count, *last);
    while (!cancelled && !has_room(pipelines[chosen]) &&
           pipelines[chosen]->params.full == WEIR_PIPELINE_BLOCK) {
        wait_blocked(pipelines, count);
        cancelled = count_cancels(pipelines, count) != cancels;
        chosen = choose(pipelines, count, *last);
    }
    const weir_status status = cancelled ? WEIR_CANCELLED : admit(pipelines[chosen], frame);
    if (status == WEIR_OK)
        *last = chosen;
    if (cancelled) // which a destruction may wait for
        pthread_cond_broadcast(&line->moved);
    weir__pattern_lock_release(&line->lock);
    return status;
}

weir_status weir_pipeline_submit(weir_pipeline *pipeline, void *frame)
{
    uint32_t last = 0;
    if (!pipeline)
        return weir__pattern_refuse_null("weir_pipeline_submit", "pipeline");
    return submit("weir_pipeline_submit", &pipeline, 1, &last, frame);
}

weir_status weir_pipeline_group_submit(weir_pipeline_group *group, void *frame)
{
    if (!group)
        return weir__pattern_refuse_null("weir_pipeline_group_submit", "group");
    if (group->count == 0)
        return weir__pattern_refuse(group->label,
                                    "create pipelines with this group in their params",
                                    "weir_pipeline_group_submit: the group has no pipelines");
    return submit("weir_pipeline_group_submit", group->members, group->count, &group->last, frame);
}

// --- the end ---

weir_status weir_pipeline_drain(weir_pipeline *pipeline, uint64_t timeout_ns)
{
    if (!pipeline)
        return weir__pattern_refuse_null("weir_pipeline_drain", "pipeline");
    TRY(weir__pipeline_check_caller(pipeline, "weir_pipeline_drain",
                                    "drain from a thread of the program's"));

    const uint64_t deadline_ns = weir_clock_deadline(timeout_ns);
    int error = 0;
    weir__pattern_lock_take(&pipeline->line->lock);
    uint64_t target = pipeline->tail;
    while (pipeline->head < target && error != ETIMEDOUT)
        error = weir__pattern_lock_wait(&pipeline->line->lock, &pipeline->line->moved, deadline_ns);
    const bool drained = pipeline->head >= target;
    weir__pattern_lock_release(&pipeline->line->lock);
    return drained ? WEIR_OK : WEIR_TIMEOUT;
}

weir_status weir_pipeline_cancel(weir_pipeline *pipeline)
{
    if (!pipeline)
        return weir__pattern_refuse_null("weir_pipeline_cancel", "pipeline");

    weir__pattern_lock_take(&pipeline->line->lock);
    while (pipeline->waiting > 0)
        weir__pipeline_end(pipeline, weir__pipeline_oldest(pipeline), WEIR_CANCELLED);
    pipeline->cancels++;
    pthread_cond_broadcast(&pipeline->line->moved);
    weir__pattern_lock_release(&pipeline->line->lock);
    return WEIR_OK;
}

// --- all pipelines of a group ---

weir_status weir_pipeline_group_drain(weir_pipeline_group *group, uint64_t timeout_ns)
{
    const uint64_t deadline_ns = weir_clock_deadline(timeout_ns);
    struct weir__pattern_first first = {.status = WEIR_OK};

    for (uint32_t i = 0; group && i < group->count; i++)
        weir__pattern_note(&first,
                           weir_pipeline_drain(group->members[i], weir_clock_left(deadline_ns)));
    return weir__pattern_first(&first);
}

weir_status weir_pipeline_group_cancel(weir_pipeline_group *group)
{
    for (uint32_t i = 0; group && i < group->count; i++)
        WEIR_IGNORE(weir_pipeline_cancel(group->members[i]));
    return WEIR_OK;
}
