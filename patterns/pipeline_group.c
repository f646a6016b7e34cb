// Each frame has a number in the group, in the order in which they were accepted, and the deliverer that
// has the frame of the group's head delivers it.
//
// Submission looks at one pipeline after the other, each under its own lock. A pipeline that fills up
// between the look and the submission is found by the next look.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "patterns/pipeline_parts.h"
#include "patterns/shared.h"

struct weir_pipeline_group {
    char label[WEIR__PATTERN_LABEL_SIZE];
    struct weir__pattern_lock lock;
    pthread_cond_t turn;  // deliverers wait: for their frame's number
    pthread_cond_t moved; // callers wait: for room
    weir_pipeline *members[WEIR_PIPELINE_GROUP_MAX];
    uint32_t count;
    uint32_t last; // the member that got the last frame
    uint64_t head; // number of the next frame that is delivered
    uint64_t tail; // number of the next that is accepted
    uint64_t cancels;
};

static weir_status create(const struct weir_pipeline_group_params *params,
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
    snprintf(group->label, sizeof group->label, "%s", label);
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
    return weir__pattern_end(create(params, out_group), before);
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

// --- members ---

// Called with the lock.
static weir_status check_member(const weir_pipeline_group *group, const weir_pipeline *pipeline)
{
    if (group->count == WEIR_PIPELINE_GROUP_MAX)
        return weir__pattern_refuse(
            pipeline->label, NULL, "group '%s' has %d pipelines already, the most that it can have",
            group->label, WEIR_PIPELINE_GROUP_MAX);
    if (group->count > 0 && group->members[0]->params.full != pipeline->params.full)
        return weir__pattern_refuse(
            pipeline->label, "give the pipelines of a group the same `full`",
            "its policy for a full pipeline is %d, and that of '%s' in group '%s' is %d",
            (int)pipeline->params.full, group->members[0]->label, group->label,
            (int)group->members[0]->params.full);
    return WEIR_OK;
}

weir_status weir__pipeline_join(weir_pipeline *pipeline)
{
    weir_pipeline_group *group = pipeline->params.group;
    if (!group)
        return WEIR_OK;
    weir__pattern_lock_take(&group->lock);
    weir_status status = check_member(group, pipeline);
    if (status == WEIR_OK) {
        weir__pattern_lock_use(&group->lock, pipeline->params.device);
        group->last = group->count;
        group->members[group->count++] = pipeline;
        pipeline->joined = true;
    }
    weir__pattern_lock_release(&group->lock);
    return status;
}

void weir__pipeline_leave(weir_pipeline *pipeline)
{
    weir_pipeline_group *group = pipeline->params.group;
    uint32_t at = 0;
    if (!pipeline->joined)
        return;
    weir__pattern_lock_take(&group->lock);
    while (group->members[at] != pipeline)
        at++;
    group->count--;
    memmove(&group->members[at], &group->members[at + 1],
            (group->count - at) * sizeof(weir_pipeline *));
    group->last = group->count > 0 ? group->count - 1 : 0;
    weir__pattern_lock_release(&group->lock);
}

// --- the order of deliveries ---

uint64_t weir__pipeline_enter_group(weir_pipeline *pipeline)
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

void weir__pipeline_cancel_in_group(weir_pipeline *pipeline)
{
    weir_pipeline_group *group = pipeline->params.group;
    if (!group)
        return;
    weir__pattern_lock_take(&group->lock);
    group->cancels++;
    pthread_cond_broadcast(&group->moved);
    weir__pattern_lock_release(&group->lock);
}

// --- submission ---

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

static bool is_better(const struct weir__pipeline_load *a, const struct weir__pipeline_load *b)
{
    if (a->lost != b->lost)
        return b->lost;
    if (a->room != b->room)
        return a->room;
    // With room the least loaded; without, the one whose frame would be dropped.
    return a->room ? a->alive < b->alive : a->oldest < b->oldest;
}

// The member for the next frame, and its load.
static uint32_t choose(const weir_pipeline_group *group, uint32_t first,
                       struct weir__pipeline_load *out_load)
{
    uint32_t best = first;
    weir__pipeline_get_load(group->members[first], out_load);
    for (uint32_t i = 1; i < group->count; i++) {
        const uint32_t at = (first + i) % group->count;
        struct weir__pipeline_load load;
        weir__pipeline_get_load(group->members[at], &load);
        if (is_better(&load, out_load)) {
            best = at;
            *out_load = load;
        }
    }
    return best;
}

static weir_status wait_for_room(weir_pipeline_group *group, const struct look *look)
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
        if (weir__pipeline_in_callback(group->members[i]))
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
        struct weir__pipeline_load load;
        const struct look look = begin_look(group);
        const uint32_t member = choose(group, look.first, &load);
        weir_pipeline *pipeline = group->members[member];
        if (load.room ? weir__pipeline_try(pipeline, frame)
                      : pipeline->params.full != WEIR_PIPELINE_BLOCK) {
            note_last(group, member);
            return load.room ? WEIR_OK : weir_pipeline_submit(pipeline, frame);
        }
        if (!load.room)
            status = wait_for_room(group, &look);
    }
    return status;
}

// --- all pipelines ---

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

void weir_pipeline_group_get_statistics_sized(weir_pipeline_group *group,
                                              struct weir_pipeline_statistics *out_statistics,
                                              size_t size)
{
    struct weir__pipeline_sum sum = {.first_ns = UINT64_MAX};
    struct weir_pipeline_statistics *figures = &sum.figures;

    for (uint32_t i = 0; group && i < group->count; i++)
        weir__pipeline_add_statistics(group->members[i], &sum);
    weir__pipeline_put_latency(figures, &sum.latency);
    figures->wall_ns = sum.last_ns > 0 ? sum.last_ns - sum.first_ns : 0;
    weir_sized_write(out_statistics, size, figures, sizeof *figures);
}
