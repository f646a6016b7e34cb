// The callers' side of the pipeline: the ring of records, the policies, groups, and the end. The starter's and the
// deliverer's work is in pipeline_start.c and pipeline_deliver.c, the creation in pipeline_create.c.
//
// Room is counted in frames that are alive (waiting or in a slot), not by the progress
// of the starter, so whether a submit finds the pipeline full does not depend on
// thread scheduling. Dropped and cancelled frames are not alive but keep their place
// in the ring, for delivery in order.
//
// Each frame of a group has a number there, in the order in which they were accepted, and the deliverer that
// has the frame of the group's head delivers it. Submission to a group looks at one pipeline after the other,
// each under its own lock. A pipeline that fills up between the look and the submission is found by the next look.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "patterns/pipeline_parts.h"
#include "patterns/shared.h"

static weir_status create_group(const struct weir_pipeline_group_params *params,
                                weir_pipeline_group **out_group)
{
    struct weir_pipeline_group_params known = {.label = NULL};
    *out_group = NULL;
    if (params)
        TRY(weir__pattern_params("weir_pipeline_group_create", "weir_pipeline_group_params", params,
                                 &known, sizeof known));
    const char *label = weir__pattern_label(known.label, "group");
    weir_pipeline_group *group = calloc(1, sizeof *group);
    if (!group)
        return weir__pattern_no_memory(label, "a group of pipelines");
    weir__pattern_keep(group->label, label, NULL);
    pthread_mutex_init(&group->lock.mutex, NULL);
    pthread_cond_init(&group->turn, NULL);
    pthread_cond_init(&group->moved, NULL);
    *out_group = group;
    return WEIR_OK;
}

weir_status weir_pipeline_group_create_at(const struct weir_pipeline_group_params *params,
                                          weir_pipeline_group **out_group, const char *file,
                                          int line)
{
    const struct weir__place before = weir__pattern_begin(file, line);
    return weir__pattern_end(create_group(params, out_group), before);
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
    pthread_cond_destroy(&ending->moved);
    pthread_cond_destroy(&ending->turn);
    pthread_mutex_destroy(&ending->lock.mutex);
    free(ending);
    *group = NULL;
    return WEIR_OK;
}

// --- the order of deliveries in a group ---

static uint64_t enter_group(weir_pipeline *pipeline)
{
    weir_pipeline_group *group = pipeline->params.group;
    weir__pattern_lock_take(&group->lock);
    const uint64_t number = group->tail++;
    weir__pattern_lock_release(&group->lock);
    return number;
}

void weir__pipeline_await_turn(weir_pipeline *pipeline, uint64_t number)
{
    weir_pipeline_group *group = pipeline->params.group;
    if (!group)
        return;
    weir__pattern_lock_take(&group->lock);
    while (group->head != number)
        (void)weir__pattern_lock_wait(&group->lock, &group->turn, NULL);
    weir__pattern_lock_release(&group->lock);
}

void weir__pipeline_end_turn(weir_pipeline *pipeline)
{
    weir_pipeline_group *group = pipeline->params.group;
    if (!group)
        return;
    weir__pattern_lock_take(&group->lock);
    group->head++;
    pthread_cond_broadcast(&group->turn);
    pthread_cond_broadcast(&group->moved);
    weir__pattern_lock_release(&group->lock);
}

static void cancel_in_group(weir_pipeline *pipeline)
{
    weir_pipeline_group *group = pipeline->params.group;
    if (!group)
        return;
    weir__pattern_lock_take(&group->lock);
    group->cancels++;
    pthread_cond_broadcast(&group->moved);
    weir__pattern_lock_release(&group->lock);
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

static bool in_callback(const weir_pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->params.prepare_threads; i++)
        if (weir_thread_is_current(&pipeline->preparers[i]))
            return true;
    return weir_thread_is_current(&pipeline->starter) ||
           weir_thread_is_current(&pipeline->deliverer);
}

weir_status weir__pipeline_check_caller(const weir_pipeline *pipeline, const char *call,
                                        const char *remedy)
{
    if (!in_callback(pipeline))
        return WEIR_OK;
    return weir__pattern_refuse(
        pipeline->label, remedy,
        "%s was called from a callback of the same pipeline, which it would wait for", call);
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
        (void)weir__pattern_lock_wait(&pipeline->lock, &pipeline->moved, NULL);
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
        record->number = enter_group(pipeline);
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
        return weir__pattern_refuse_null("weir_pipeline_submit", "pipeline");
    if (pipeline->params.full == WEIR_PIPELINE_BLOCK)
        TRY(weir__pipeline_check_caller(pipeline, "weir_pipeline_submit",
                                        "use another policy than WEIR_PIPELINE_BLOCK"));

    weir__pattern_lock_take(&pipeline->lock);
    weir_status status = make_room(pipeline);
    if (status == WEIR_OK || status == WEIR_DROPPED)
        accept_frame(pipeline, frame, status);
    else if (status == WEIR_NOT_READY)
        pipeline->figures.refused++;
    weir__pattern_lock_release(&pipeline->lock);
    return status == WEIR_DROPPED ? WEIR_OK : status;
}

// How full a pipeline is.
struct load {
    uint64_t alive; // frames that wait or have a slot
    uint64_t
        oldest; // the number in the group of the oldest frame that waits; UINT64_MAX: none waits
    bool room;
    bool lost; // its device
};

static void get_load(weir_pipeline *pipeline, struct load *out_load)
{
    weir__pattern_lock_take(&pipeline->lock);
    *out_load = (struct load){
        .alive = count_alive(pipeline),
        .oldest = pipeline->waiting > 0 ? weir__pipeline_oldest(pipeline)->number : UINT64_MAX,
        .room = has_room(pipeline),
        .lost = pipeline->lost,
    };
    weir__pattern_lock_release(&pipeline->lock);
}

static bool try_submit(weir_pipeline *pipeline, void *frame)
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
        return weir__pattern_refuse_null("weir_pipeline_drain", "pipeline");
    TRY(weir__pipeline_check_caller(pipeline, "weir_pipeline_drain",
                                    "drain from a thread of the program's"));

    bool limited = deadline_of(timeout_ns, &deadline);
    int error = 0;
    weir__pattern_lock_take(&pipeline->lock);
    uint64_t target = pipeline->tail;
    while (pipeline->head < target && error != ETIMEDOUT)
        error =
            weir__pattern_lock_wait(&pipeline->lock, &pipeline->moved, limited ? &deadline : NULL);
    const bool drained = pipeline->head >= target;
    weir__pattern_lock_release(&pipeline->lock);
    return drained ? WEIR_OK : WEIR_TIMEOUT;
}

weir_status weir_pipeline_cancel(weir_pipeline *pipeline)
{
    if (!pipeline)
        return weir__pattern_refuse_null("weir_pipeline_cancel", "pipeline");

    weir__pattern_lock_take(&pipeline->lock);
    while (pipeline->waiting > 0)
        weir__pipeline_end(pipeline, weir__pipeline_oldest(pipeline), WEIR_CANCELLED);
    pipeline->cancels++;
    pthread_cond_broadcast(&pipeline->moved);
    weir__pattern_lock_release(&pipeline->lock);
    cancel_in_group(pipeline);
    return WEIR_OK;
}

// --- submission to a group ---

// What happened in a group before a look at its pipelines.
struct look {
    uint64_t head;
    uint64_t cancels;
    uint32_t first; // the member after the last that got a frame
};

static struct look begin_look(weir_pipeline_group *group)
{
    weir__pattern_lock_take(&group->lock);
    const struct look look = {group->head, group->cancels, (group->last + 1) % group->count};
    weir__pattern_lock_release(&group->lock);
    return look;
}

static bool is_better(const struct load *a, const struct load *b)
{
    if (a->lost != b->lost)
        return b->lost;
    if (a->room != b->room)
        return a->room;
    // With room the least loaded; without, the one whose frame would be dropped.
    return a->room ? a->alive < b->alive : a->oldest < b->oldest;
}

// The member for the next frame, and its load.
static uint32_t choose(const weir_pipeline_group *group, uint32_t first, struct load *out_load)
{
    uint32_t best = first;
    get_load(group->members[first], out_load);
    for (uint32_t i = 1; i < group->count; i++) {
        const uint32_t at = (first + i) % group->count;
        struct load load;
        get_load(group->members[at], &load);
        if (is_better(&load, out_load)) {
            best = at;
            *out_load = load;
        }
    }
    return best;
}

static weir_status wait_for_delivery(weir_pipeline_group *group, const struct look *look)
{
    weir__pattern_lock_take(&group->lock);
    while (group->head == look->head && group->cancels == look->cancels)
        (void)weir__pattern_lock_wait(&group->lock, &group->moved, NULL);
    const bool cancelled = group->cancels != look->cancels;
    weir__pattern_lock_release(&group->lock);
    return cancelled ? WEIR_CANCELLED : WEIR_OK;
}

static weir_status check_submit(weir_pipeline_group *group)
{
    if (!group)
        return weir__pattern_refuse_null("weir_pipeline_group_submit", "group");
    if (group->count == 0)
        return weir__pattern_refuse(group->label,
                                    "create pipelines with this group in their params",
                                    "weir_pipeline_group_submit: the group has no pipelines");
    if (group->members[0]->params.full != WEIR_PIPELINE_BLOCK)
        return WEIR_OK;
    for (uint32_t i = 0; i < group->count; i++)
        if (in_callback(group->members[i]))
            return weir__pattern_refuse(group->label, "use another policy than WEIR_PIPELINE_BLOCK",
                                        "weir_pipeline_group_submit was called from a callback of "
                                        "pipeline '%s', which it would wait for",
                                        group->members[i]->label);
    return WEIR_OK;
}

static void note_last(weir_pipeline_group *group, uint32_t member)
{
    weir__pattern_lock_take(&group->lock);
    group->last = member;
    weir__pattern_lock_release(&group->lock);
}

weir_status weir_pipeline_group_submit(weir_pipeline_group *group, void *frame)
{
    weir_status status = check_submit(group);
    while (status == WEIR_OK) {
        struct load load;
        const struct look look = begin_look(group);
        const uint32_t member = choose(group, look.first, &load);
        weir_pipeline *pipeline = group->members[member];
        if (load.room ? try_submit(pipeline, frame)
                      : pipeline->params.full != WEIR_PIPELINE_BLOCK) {
            note_last(group, member);
            return load.room ? WEIR_OK : weir_pipeline_submit(pipeline, frame);
        }
        if (!load.room)
            status = wait_for_delivery(group, &look);
    }
    return status;
}

// --- all pipelines of a group ---

weir_status weir_pipeline_group_drain(weir_pipeline_group *group, uint64_t timeout_ns)
{
    const uint64_t began_ns = weir_clock_now_ns();
    struct weir__pattern_first first = {.status = WEIR_OK};

    for (uint32_t i = 0; group && i < group->count; i++)
        weir__pattern_note(&first, weir_pipeline_drain(group->members[i],
                                                       weir__pattern_left(timeout_ns, began_ns)));
    return weir__pattern_first(&first);
}

weir_status weir_pipeline_group_cancel(weir_pipeline_group *group)
{
    for (uint32_t i = 0; group && i < group->count; i++)
        WEIR_IGNORE(weir_pipeline_cancel(group->members[i]));
    return WEIR_OK;
}
