// A pipeline's params, its creation, and the end of its threads and memory.
#include "patterns/pipeline_parts.h"

#include <inttypes.h>

#include "patterns/shared.h"

// Checks of a pipeline's params, and its section of a configuration. A stage
// may only depend on stages before it in the list, so a graph that passes has
// no cycle, and list order is submission order.

// What a stage of the first version has.
#define LEAST_STAGE WEIR_SIZED_UP_TO(struct weir_pipeline_stage, submit)

static weir_status check_count(const struct weir_pipeline_params *params, const char *name,
                               uint32_t value, uint32_t minimum, uint32_t maximum)
{
    if (value >= minimum && value <= maximum)
        return WEIR_OK;
    return weir__pattern_refuse(params->label, NULL,
                                "a pipeline's %s is %" PRIu32 ", but must be %" PRIu32
                                " to %" PRIu32,
                                name, value, minimum, maximum);
}

static weir_status check_dependencies(const struct weir_pipeline_params *params, uint32_t index)
{
    const struct weir_pipeline_stage *stage = &params->stages[index];
    unsigned wrong = index;
    // Stages before this one are valid dependencies; any bits that remain are
    // not.
    if (stage->depends_on >> index == 0)
        return WEIR_OK;
    while (!(stage->depends_on >> wrong & 1))
        wrong++;
    if (wrong == index)
        return weir__pattern_refuse(params->label,
                                    "frames of one stage run in order anyway: leave it out",
                                    "stage %" PRIu32 " ('%s') depends on itself", index,
                                    stage->name);
    if (wrong >= params->stage_count)
        return weir__pattern_refuse(params->label, "use the indices of the list, from 0",
                                    "stage %" PRIu32
                                    " ('%s') depends on stage %u, but there are only %" PRIu32
                                    " stages",
                                    index, stage->name, wrong, params->stage_count);
    return weir__pattern_refuse(
        params->label, "list a stage after all that it depends on; a cycle has no such order",
        "stage %" PRIu32 " ('%s') depends on stage %u ('%s'), which comes after it", index,
        stage->name, wrong, params->stages[wrong].name);
}

static weir_status check_name(const struct weir_pipeline_params *params, uint32_t index)
{
    const char *name = params->stages[index].name;

    if (!name || !*name)
        return weir__pattern_refuse(params->label, "name it; statistics and errors use the name",
                                    "stage %" PRIu32 " has no name", index);
    if (strlen(name) >= WEIR__NAME_SIZE)
        return weir__pattern_refuse(params->label, NULL,
                                    "the name of stage %" PRIu32
                                    " ('%s') has %zu bytes, but may have %d",
                                    index, name, strlen(name), WEIR__NAME_SIZE - 1);
    for (uint32_t i = 0; i < index; i++) {
        if (strcmp(params->stages[i].name, name) == 0)
            return weir__pattern_refuse(params->label, "give each its own name",
                                        "stages %" PRIu32 " and %" PRIu32 " are both named '%s'", i,
                                        index, name);
    }
    return WEIR_OK;
}

static weir_status check_device(const struct weir_pipeline_params *params, uint32_t index)
{
    const struct weir_pipeline_stage *stage = &params->stages[index];
    if (!stage->device || stage->device == params->device)
        return WEIR_OK;
    if (weir_device_runtime(stage->device) != weir_device_runtime(params->device))
        return weir__pattern_refuse(params->label, "open its devices from one runtime",
                                    "the device of stage %" PRIu32
                                    " ('%s') belongs to another runtime than the pipeline's",
                                    index, stage->name);
    if (params->graphs)
        return weir__pattern_refuse(params->label, "set graphs = 0",
                                    "the pipeline cannot run as graphs: stage %" PRIu32
                                    " ('%s') is on another device, and a graph has one",
                                    index, stage->name);
    return WEIR_OK;
}

static weir_status check_stages(const struct weir_pipeline_params *params)
{
    for (uint32_t i = 0; i < params->stage_count; i++)
        TRY(check_name(params, i));
    for (uint32_t i = 0; i < params->stage_count; i++) {
        TRY(check_dependencies(params, i));
        if (!params->stages[i].submit)
            TRY(weir__pattern_refuse(params->label, "set its `submit`",
                                     "stage %" PRIu32 " ('%s') has no submit callback", i,
                                     params->stages[i].name));
        TRY(check_device(params, i));
    }
    return WEIR_OK;
}

static weir_status check(const struct weir_pipeline_params *params)
{
    if (!params->device || !params->stages)
        return weir__pattern_refuse(params->label, "set it",
                                    "weir_pipeline_create: params->%s is NULL",
                                    params->device ? "stages" : "device");
    if ((unsigned)params->full > WEIR_PIPELINE_DROP_NEWEST)
        return weir__pattern_refuse(params->label, "use one of enum weir_pipeline_full",
                                    "weir_pipeline_create: there is no policy %d",
                                    (int)params->full);

    if (params->graphs && !params->repeat)
        return weir__pattern_refuse(params->label, "set graphs = 0, or the params' `repeat`",
                                    "the pipeline cannot run as graphs: it does not say which of "
                                    "its frames repeat each other's work");

    TRY(check_count(params, "stage_count", params->stage_count, 1, WEIR_PIPELINE_STAGES_MAX));
    TRY(check_count(params, "slot_count", params->slot_count, 0, WEIR_PIPELINE_SLOTS_MAX));
    TRY(check_count(params, "prepare_threads", params->prepare_threads, 0,
                    WEIR_PIPELINE_SLOTS_MAX));
    TRY(check_count(params, "backlog", params->backlog, 0, WEIR_PIPELINE_BACKLOG_MAX));
    return check_count(params, "dropped_backlog", params->dropped_backlog, 0,
                       WEIR_PIPELINE_BACKLOG_MAX);
}

// Reads what this library knows of a user's params, with their stages in `stages`, which has
// room for WEIR_PIPELINE_STAGES_MAX, and checks them.
static weir_status pipeline_read(const struct weir_pipeline_params *given,
                                 struct weir_pipeline_params *params,
                                 struct weir_pipeline_stage *stages)
{
    TRY(weir__pattern_params("weir_pipeline_create", "weir_pipeline_params", given, params,
                             sizeof *params));
    params->label = weir__pattern_label(params->label, "pipeline");
    TRY(check(params));
    if (params->stage_size < LEAST_STAGE || params->stage_size > WEIR_SIZED_BYTES_MAX)
        return weir__pattern_refuse(params->label, "set it to sizeof(struct weir_pipeline_stage)",
                                    "weir_pipeline_create: stage_size is %" PRIu32
                                    ", and a stage has %zu to %d bytes",
                                    params->stage_size, LEAST_STAGE, WEIR_SIZED_BYTES_MAX);
    for (uint32_t i = 0; i < params->stage_count; i++)
        TRY(weir__pattern_item("weir_pipeline_create", "weir_pipeline_stage",
                               (const char *)params->stages + (size_t)i * params->stage_size,
                               params->stage_size, &stages[i], sizeof stages[i]));
    params->stages = stages;
    params->stage_size = sizeof *stages;
    return check_stages(params);
}

// In the order of enum weir_pipeline_full.
static const char *const full_names[] = {"block", "would-block", "drop-oldest", "drop-newest",
                                         NULL};

// In the order of weir_pipeline_params_from_settings().
static const struct weir_key keys[] = {
    WEIR_INTEGER_KEY("slots", "0", 0, WEIR_PIPELINE_SLOTS_MAX,
                     "Frames in flight; 0 means one for each stage and one more."),
    WEIR_CHOICE_KEY("full", "block", full_names,
                    "What happens to a new frame when all slots and the backlog are taken."),
    WEIR_INTEGER_KEY("backlog", "0", 0, WEIR_PIPELINE_BACKLOG_MAX,
                     "Frames that may wait for a slot; 0 means as many as slots."),
    WEIR_BOOLEAN_KEY("timing", "0", "Times every stage of every frame on the device."),
    WEIR_BOOLEAN_KEY(
        "graphs", "0",
        "Runs each frame as a graph, captured once for each slot. Stages are not timed."),
};

const struct weir_section *weir_pipeline_section(void)
{
    static const struct weir_section section = {
        .struct_size = sizeof section,
        .name = "pipeline",
        .keys = keys,
        .key_count = sizeof keys / sizeof *keys,
        .key_size = sizeof keys[0],
    };
    return &section;
}

weir_status weir_pipeline_params_from_settings(const weir_runtime *runtime, const char *section,
                                               struct weir_pipeline_params *params)
{
    const struct weir_setting *values[sizeof keys / sizeof *keys];
    const char *name = section ? section : "pipeline";
    int full = 0;

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!(values[i] = weir_runtime_setting(runtime, name, keys[i].name)))
            return weir__pattern_fail(
                NULL, WEIR_ERROR_NOT_FOUND,
                "pass weir_open() a section with the keys of weir_pipeline_section()",
                "the keys of a pipeline were not declared for section [%s]", name);
    params->slot_count = (uint32_t)values[0]->integer;
    while (full_names[full] && strcmp(full_names[full], values[1]->text) != 0)
        full++;
    params->full = (weir_pipeline_full)full;
    params->backlog = (uint32_t)values[2]->integer;
    params->timing = values[3]->integer != 0;
    params->graphs = values[4]->integer != 0;
    return WEIR_OK;
}

// Creation of a pipeline: its storage, queues, slots and threads.

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
    params->label = weir__pattern_keep(pipeline->label, given->label, NULL);
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
    params->timing = params->timing && !params->graphs;
    for (uint32_t i = 0; i < params->stage_count; i++) {
        const struct weir_limits *limits =
            weir_device_limits(device_of(pipeline, &given->stages[i]));
        params->timing = params->timing && limits && limits->timing_history > 0;
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

    pipeline->slots = calloc(slots, sizeof *pipeline->slots);
    pipeline->records = calloc(pipeline->record_count, sizeof *pipeline->records);
    pipeline->pieces = calloc(stages * (slots * stages + 1), sizeof *pipeline->pieces);
    if (!pipeline->slots || !pipeline->records || !pipeline->pieces)
        return weir__pattern_fail(pipeline->label, WEIR_ERROR_OUT_OF_MEMORY,
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
    return WEIR_OK;
}

static weir_status make_stages(weir_pipeline *pipeline, const struct weir_pipeline_stage *given,
                               struct weir__place place)
{
    uint32_t count = pipeline->params.stage_count;
    uint64_t depended_on = 0;

    for (uint32_t i = 0; i < count; i++)
        depended_on |= given[i].depends_on;
    for (uint32_t i = 0; i < count; i++) {
        struct weir__stage *stage = &pipeline->stages[i];
        snprintf(stage->name, sizeof stage->name, "%s", given[i].name);
        stage->depends_on = given[i].depends_on;
        stage->last = !(depended_on >> i & 1);
        stage->lane = i;
        stage->submit = given[i].submit;
        stage->priority = given[i].priority;
        stage->device = device_of(pipeline, &given[i]);
        while (pipeline->stages[stage->timeline].device != stage->device)
            stage->timeline++;
        TRY(weir__pattern_queue(stage->device, stage->priority, pipeline->params.timing, place,
                                &stage->queue, "%s/%s", pipeline->label, stage->name));
    }
    return WEIR_OK;
}

// List order is a topological order, so the stages that this one depends on have their
// lanes already.
static void choose_lanes(weir_pipeline *pipeline)
{
    uint64_t continued = 0;
    bool rooted = false;

    for (uint32_t i = 0; i < pipeline->params.stage_count; i++) {
        struct weir__stage *stage = &pipeline->stages[i];
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

// Creates the queues of the slots, of the highest priority of the stages.
static weir_status make_graphs(weir_pipeline *pipeline, struct weir__place place)
{
    int32_t highest = pipeline->stages[0].priority;
    choose_lanes(pipeline);
    for (uint32_t i = 1; i < pipeline->params.stage_count; i++)
        if (highest < pipeline->stages[i].priority)
            highest = pipeline->stages[i].priority;
    for (uint32_t i = 0; i < pipeline->params.slot_count; i++) {
        TRY(weir__pattern_queue(pipeline->params.device, highest, false, place,
                                &pipeline->slots[i].queue, "%s/slot %u", pipeline->label,
                                (unsigned)i));
    }
    return WEIR_OK;
}

static weir_status make_slots(weir_pipeline *pipeline)
{
    const struct weir_pipeline_params *params = &pipeline->params;

    if (!params->slot_create)
        return WEIR_OK;
    for (uint32_t i = 0; i < params->slot_count; i++) {
        char what[32];
        snprintf(what, sizeof what, "slot_create of slot %u", (unsigned)i);
        weir__pattern_forget();
        const weir_status status =
            params->slot_create(params->user, params->device, i, &pipeline->slots[i].data);
        if (status != WEIR_OK)
            return weir__pattern_callback_failed(pipeline->label, what, status);
        pipeline->slots_made++;
    }
    return WEIR_OK;
}

static weir_status join_group(weir_pipeline *pipeline)
{
    weir_pipeline_group *group = pipeline->params.group;
    weir_status status = WEIR_OK;
    if (!group)
        return WEIR_OK;
    weir__pattern_lock_take(&group->line.lock);
    if (group->count == WEIR_PIPELINE_GROUP_MAX) {
        status =
            weir__pattern_refuse(pipeline->label, NULL,
                                 "group '%s' has %d pipelines already, the most that it can have",
                                 group->label, WEIR_PIPELINE_GROUP_MAX);
    } else if (group->count > 0 && group->members[0]->params.full != pipeline->params.full) {
        status = weir__pattern_refuse(
            pipeline->label, "give the pipelines of a group the same `full`",
            "its policy for a full pipeline is %d, and that of '%s' in group '%s' is %d",
            (int)pipeline->params.full, group->members[0]->label, group->label,
            (int)group->members[0]->params.full);
    } else {
        weir__pattern_lock_use(&group->line.lock, pipeline->params.device);
        group->last = group->count;
        group->members[group->count++] = pipeline;
        pipeline->line = &group->line;
    }
    weir__pattern_lock_release(&group->line.lock);
    return status;
}

static void leave_group(weir_pipeline *pipeline)
{
    weir_pipeline_group *group = pipeline->params.group;
    uint32_t at = 0;
    if (pipeline->line == &pipeline->own)
        return;
    weir__pattern_lock_take(&group->line.lock);
    while (group->members[at] != pipeline)
        at++;
    group->count--;
    memmove(&group->members[at], &group->members[at + 1],
            (group->count - at) * sizeof(weir_pipeline *));
    group->last = group->count > 0 ? group->count - 1 : 0;
    weir__pattern_lock_release(&group->line.lock);
}

static void stop_threads(weir_pipeline *pipeline)
{
    weir__pattern_lock_take(&pipeline->line->lock);
    pipeline->stopping = true;
    pthread_cond_signal(&pipeline->to_start);
    pthread_cond_broadcast(&pipeline->to_prepare);
    pthread_cond_signal(&pipeline->to_deliver);
    weir__pattern_lock_release(&pipeline->line->lock);
    for (uint32_t i = 0; i < pipeline->thread_count; i++)
        weir_thread_join(&pipeline->threads[i]);
}

static weir_status make_threads(weir_pipeline *pipeline)
{
    const uint32_t preparers = pipeline->params.prepare_threads;
    int error = 0;
    for (uint32_t i = 0; i < preparers + 2 && error == 0; i++) {
        error = weir_thread_start(&pipeline->threads[i],
                                  i < preparers    ? weir__pipeline_preparer
                                  : i == preparers ? weir__pipeline_starter
                                                   : weir__pipeline_deliverer,
                                  pipeline);
        pipeline->thread_count += error == 0;
    }
    if (error == 0)
        return WEIR_OK;
    stop_threads(pipeline);
    return weir__pattern_fail(pipeline->label, WEIR_ERROR_SYSTEM, WEIR__THREADS_REMEDY,
                              "the pipeline's %u threads cannot be started: %s",
                              (unsigned)preparers + 2, strerror(error));
}

// Frees a pipeline whose threads have ended or were never started; parts that were not
// created are skipped.
static void release(weir_pipeline *pipeline)
{
    const struct weir_pipeline_params *params = &pipeline->params;

    leave_group(pipeline);
    for (uint32_t i = 0; pipeline->slots && i < params->slot_count; i++) {
        weir_graph_destroy(&pipeline->slots[i].graph);
        weir_queue_destroy(&pipeline->slots[i].queue);
    }
    while (pipeline->slots && pipeline->slots_made > 0) {
        pipeline->slots_made--;
        if (params->slot_destroy)
            params->slot_destroy(params->user, pipeline->slots[pipeline->slots_made].data);
    }
    for (uint32_t i = 0; i < params->stage_count; i++)
        weir_queue_destroy(&pipeline->stages[i].queue);
    pthread_cond_destroy(&pipeline->to_deliver);
    pthread_cond_destroy(&pipeline->to_prepare);
    pthread_cond_destroy(&pipeline->to_start);
    pthread_cond_destroy(&pipeline->own.moved);
    pthread_mutex_destroy(&pipeline->own.lock.mutex);
    free(pipeline->pieces);
    free(pipeline->records);
    free(pipeline->slots);
    free(pipeline);
}

static weir_status make_parts(weir_pipeline *pipeline, const struct weir_pipeline_params *params,
                              struct weir__place place)
{
    pthread_mutex_init(&pipeline->own.lock.mutex, NULL);
    weir_condition_init(&pipeline->own.moved);
    pthread_cond_init(&pipeline->to_start, NULL);
    pthread_cond_init(&pipeline->to_prepare, NULL);
    pthread_cond_init(&pipeline->to_deliver, NULL);
    pipeline->line = &pipeline->own;
    resolve_params(pipeline, params);
    weir__pattern_lock_use(&pipeline->own.lock, pipeline->params.device);
    TRY(make_storage(pipeline));
    TRY(make_stages(pipeline, params->stages, place));
    if (params->graphs)
        TRY(make_graphs(pipeline, place));
    TRY(make_slots(pipeline));
    TRY(join_group(pipeline));
    return make_threads(pipeline);
}

static weir_status create(const struct weir_pipeline_params *params, weir_pipeline **out_pipeline,
                          struct weir__place place)
{
    struct weir_pipeline_params known;
    struct weir_pipeline_stage stages[WEIR_PIPELINE_STAGES_MAX];
    TRY(pipeline_read(params, &known, stages));
    weir_pipeline *pipeline = calloc(1, sizeof *pipeline);
    if (!pipeline)
        return weir__pattern_no_memory(known.label, "a pipeline");
    if (make_parts(pipeline, &known, place) == WEIR_OK) {
        *out_pipeline = pipeline;
        return WEIR_OK;
    }
    // slot_destroy is a user callback, in which calls may fail and change the thread's
    // error detail.
    const struct weir_error error = *weir_last_error();
    release(pipeline);
    return weir_error_set(&error);
}

weir_status weir_pipeline_create_at(const struct weir_pipeline_params *params,
                                    weir_pipeline **out_pipeline, const char *file, int line)
{
    *out_pipeline = NULL;
    const weir_status status = create(params, out_pipeline, (struct weir__place){file, line});
    return weir__pattern_placed(status, file, line);
}

weir_status weir_pipeline_destroy(weir_pipeline **pipeline)
{
    if (!pipeline || !*pipeline)
        return WEIR_OK;

    weir_pipeline *ending = *pipeline;
    TRY(weir__pipeline_check_caller(ending, "weir_pipeline_destroy",
                                    "destroy it from a thread of the program's"));
    WEIR_IGNORE(weir_pipeline_cancel(ending));
    weir__pattern_lock_take(&ending->line->lock);
    while (ending->head < ending->tail || ending->blocked > 0)
        (void)weir__pattern_lock_wait(&ending->line->lock, &ending->line->moved, WEIR_FOREVER);
    weir__pattern_lock_release(&ending->line->lock);
    stop_threads(ending);
    // Work after a failure may still be running although its frame was delivered, and
    // the slots' memory is freed next. The status of the queues no longer matters.
    weir__pipeline_recover_queues(ending);
    release(ending);
    *pipeline = NULL;
    return WEIR_OK;
}
