// Checks of a pipeline's params, and its section of a configuration. A stage
// may only depend on stages before it in the list, so a graph that passes has
// no cycle, and list order is submission order.
#include "patterns/pipeline_parts.h"

#include <inttypes.h>
#include <string.h>

// What a stage of the first version has.
#define LEAST_STAGE WEIR_SIZED_UP_TO(struct weir_pipeline_stage, submit)

static weir_status check_count(const struct weir_pipeline_params *params, const char *name,
                               uint32_t value, uint32_t minimum, uint32_t maximum)
{
    if (value >= minimum && value <= maximum)
        return WEIR_OK;
    return weir__pipeline_fail(params->label, WEIR_ERROR_INVALID, NULL,
                               "a pipeline's %s is %" PRIu32 ", but must be %" PRIu32
                               " to %" PRIu32,
                               name, value, minimum, maximum);
}

static weir_status check_counts(const struct weir_pipeline_params *params)
{
    weir_status status =
        check_count(params, "stage_count", params->stage_count, 1, WEIR_PIPELINE_STAGES_MAX);
    if (status == WEIR_OK)
        status = check_count(params, "slot_count", params->slot_count, 0, WEIR_PIPELINE_SLOTS_MAX);
    if (status == WEIR_OK)
        status = check_count(params, "prepare_threads", params->prepare_threads, 0,
                             WEIR_PIPELINE_SLOTS_MAX);
    if (status == WEIR_OK)
        status = check_count(params, "backlog", params->backlog, 0, WEIR_PIPELINE_BACKLOG_MAX);
    if (status == WEIR_OK)
        status = check_count(params, "dropped_backlog", params->dropped_backlog, 0,
                             WEIR_PIPELINE_BACKLOG_MAX);
    return status;
}

// The lowest stage in the set, or 64.
static unsigned lowest(uint64_t set)
{
    unsigned index = 0;
    while (index < 64 && !(set >> index & 1))
        index++;
    return index;
}

static weir_status check_dependencies(const struct weir_pipeline_params *params, uint32_t index)
{
    const struct weir_pipeline_stage *stage = &params->stages[index];
    // Stages before this one are valid dependencies; any bits that remain are
    // not.
    unsigned wrong = lowest(stage->depends_on >> index) + index;

    if (stage->depends_on >> index == 0)
        return WEIR_OK;
    if (wrong == index)
        return weir__pipeline_fail(params->label, WEIR_ERROR_INVALID,
                                   "frames of one stage run in order anyway: leave it out",
                                   "stage %" PRIu32 " ('%s') depends on itself", index,
                                   stage->name);
    if (wrong >= params->stage_count)
        return weir__pipeline_fail(params->label, WEIR_ERROR_INVALID,
                                   "use the indices of the list, from 0",
                                   "stage %" PRIu32 " ('%s') depends on stage %u, but there are "
                                   "only %" PRIu32 " stages",
                                   index, stage->name, wrong, params->stage_count);
    return weir__pipeline_fail(params->label, WEIR_ERROR_INVALID,
                               "list a stage after all that it depends on; a cycle has no such "
                               "order",
                               "stage %" PRIu32 " ('%s') depends on stage %u ('%s'), "
                               "which comes after it",
                               index, stage->name, wrong, params->stages[wrong].name);
}

static weir_status check_name(const struct weir_pipeline_params *params, uint32_t index)
{
    const char *name = params->stages[index].name;

    if (!name || !*name)
        return weir__pipeline_fail(params->label, WEIR_ERROR_INVALID,
                                   "name it; statistics and errors use the name",
                                   "stage %" PRIu32 " has no name", index);
    if (strlen(name) >= WEIR__NAME_SIZE)
        return weir__pipeline_fail(params->label, WEIR_ERROR_INVALID, NULL,
                                   "the name of stage %" PRIu32 " ('%s') has %zu bytes, but may "
                                   "have %d",
                                   index, name, strlen(name), WEIR__NAME_SIZE - 1);
    for (uint32_t i = 0; i < index; i++) {
        if (strcmp(params->stages[i].name, name) == 0)
            return weir__pipeline_fail(params->label, WEIR_ERROR_INVALID, "give each its own name",
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
        return weir__pipeline_fail(params->label, WEIR_ERROR_INVALID,
                                   "open its devices from one runtime",
                                   "the device of stage %" PRIu32 " ('%s') belongs to another "
                                   "runtime than the pipeline's",
                                   index, stage->name);
    if (params->graphs)
        return weir__pipeline_fail(params->label, WEIR_ERROR_INVALID, "set graphs = 0",
                                   "the pipeline cannot run as graphs: stage %" PRIu32
                                   " ('%s') is on another device, and a graph has one",
                                   index, stage->name);
    return WEIR_OK;
}

static weir_status check_stages(const struct weir_pipeline_params *params)
{
    weir_status status = WEIR_OK;

    for (uint32_t i = 0; i < params->stage_count && status == WEIR_OK; i++)
        status = check_name(params, i);
    for (uint32_t i = 0; i < params->stage_count && status == WEIR_OK; i++) {
        status = check_dependencies(params, i);
        if (status == WEIR_OK && !params->stages[i].submit)
            status = weir__pipeline_fail(params->label, WEIR_ERROR_INVALID, "set its `submit`",
                                         "stage %" PRIu32 " ('%s') has no "
                                         "submit callback",
                                         i, params->stages[i].name);
        if (status == WEIR_OK)
            status = check_device(params, i);
    }
    return status;
}

static weir_status check(const struct weir_pipeline_params *params)
{
    if (!params->device || !params->stages)
        return weir__pipeline_fail(params->label, WEIR_ERROR_INVALID, "set it",
                                   "weir_pipeline_create: params->%s is NULL",
                                   params->device ? "stages" : "device");
    if ((unsigned)params->full > WEIR_PIPELINE_DROP_NEWEST)
        return weir__pipeline_fail(params->label, WEIR_ERROR_INVALID,
                                   "use one of enum weir_pipeline_full",
                                   "weir_pipeline_create: there is no policy %d",
                                   (int)params->full);

    if (params->graphs && !params->repeat)
        return weir__pipeline_fail(params->label, WEIR_ERROR_INVALID,
                                   "set graphs = 0, or the params' `repeat`",
                                   "the pipeline cannot run as graphs: it does not say which of "
                                   "its frames repeat each other's work");

    return check_counts(params);
}

static weir_status check_stage_size(const struct weir_pipeline_params *params)
{
    if (params->stage_size >= LEAST_STAGE && params->stage_size <= WEIR_SIZED_BYTES_MAX)
        return WEIR_OK;
    return weir__pipeline_fail(params->label, WEIR_ERROR_INVALID,
                               "set it to sizeof(struct weir_pipeline_stage)",
                               "weir_pipeline_create: stage_size is %" PRIu32
                               ", and a stage has %zu to %d bytes",
                               params->stage_size, LEAST_STAGE, WEIR_SIZED_BYTES_MAX);
}

static weir_status read_stages(const struct weir_pipeline_params *params,
                               struct weir_pipeline_stage *stages)
{
    weir_status status = check_stage_size(params);
    const char *given = (const char *)params->stages;
    for (uint32_t i = 0; i < params->stage_count && status == WEIR_OK; i++)
        status = weir__pattern_item("weir_pipeline_create", "weir_pipeline_stage",
                                    given + (size_t)i * params->stage_size, params->stage_size,
                                    &stages[i], sizeof stages[i]);
    return status;
}

weir_status weir__pipeline_read(const struct weir_pipeline_params *given,
                                struct weir_pipeline_params *params,
                                struct weir_pipeline_stage *stages)
{
    weir_status status = weir__pattern_params("weir_pipeline_create", "weir_pipeline_params", given,
                                              params, sizeof *params);
    if (status == WEIR_OK)
        status = check(params);
    if (status == WEIR_OK)
        status = read_stages(params, stages);
    if (status != WEIR_OK)
        return status;
    params->stages = stages;
    params->stage_size = sizeof *stages;
    return check_stages(params);
}

// In the order of enum weir_pipeline_full.
static const char *const full_names[] = {"block", "would-block", "drop-oldest", "drop-newest",
                                         NULL};

static const struct weir_key keys[] = {
    {
        .name = "slots",
        .type = WEIR_KEY_INTEGER,
        .fallback = "0",
        .minimum = 0,
        .maximum = WEIR_PIPELINE_SLOTS_MAX,
        .help = "Frames in flight; 0 means one for each stage and one more.",
    },
    {
        .name = "full",
        .type = WEIR_KEY_CHOICE,
        .fallback = "block",
        .choices = full_names,
        .help = "What happens to a new frame when all slots and the backlog are taken.",
    },
    {
        .name = "backlog",
        .type = WEIR_KEY_INTEGER,
        .fallback = "0",
        .minimum = 0,
        .maximum = WEIR_PIPELINE_BACKLOG_MAX,
        .help = "Frames that may wait for a slot; 0 means as many as slots.",
    },
    {
        .name = "timing",
        .type = WEIR_KEY_BOOLEAN,
        .fallback = "0",
        .help = "Times every stage of every frame on the device.",
    },
    {
        .name = "graphs",
        .type = WEIR_KEY_BOOLEAN,
        .fallback = "0",
        .help = "Runs each frame as a graph, captured once for each slot. Stages are not timed.",
    },
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

static weir_pipeline_full full_named(const char *name)
{
    int full = WEIR_PIPELINE_BLOCK;
    while (full_names[full] && strcmp(full_names[full], name) != 0)
        full++;
    return (weir_pipeline_full)full;
}

weir_status weir_pipeline_params_from_settings(const weir_runtime *runtime, const char *section,
                                               struct weir_pipeline_params *params)
{
    const char *name = section ? section : "pipeline";
    const struct weir_setting *slots = weir_runtime_setting(runtime, name, "slots");
    const struct weir_setting *full = weir_runtime_setting(runtime, name, "full");
    const struct weir_setting *backlog = weir_runtime_setting(runtime, name, "backlog");
    const struct weir_setting *timing = weir_runtime_setting(runtime, name, "timing");
    const struct weir_setting *graphs = weir_runtime_setting(runtime, name, "graphs");

    if (!slots || !full || !backlog || !timing || !graphs)
        return weir__pipeline_fail(NULL, WEIR_ERROR_NOT_FOUND,
                                   "pass weir_open() a section with the keys of "
                                   "weir_pipeline_section()",
                                   "the keys of a pipeline were not declared for section [%s]",
                                   name);
    params->slot_count = (uint32_t)slots->integer;
    params->full = full_named(full->text);
    params->backlog = (uint32_t)backlog->integer;
    params->timing = timing->integer != 0;
    params->graphs = graphs->integer != 0;
    return WEIR_OK;
}
