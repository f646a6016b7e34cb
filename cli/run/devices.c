// The devices of a run, and their pipelines.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/processors.h"
#include "cli/run/run.h"
#include "cli/runtime/open.h"

enum {
    RUN_DECODERS_USUAL = 16
};

static void note_module(struct run *run)
{
    struct run_facts *facts = &run->facts;
    snprintf(facts->module, sizeof facts->module, "%s", weir_runtime_backend(run->runtime));
    const weir_load_report *report = weir_runtime_report(run->runtime);
    const struct weir_load_entry *entry;
    for (size_t i = 0; (entry = weir_load_report_entry(report, i)); i++)
        if (entry->outcome == WEIR_LOAD_USED && strcmp(entry->module, facts->module) == 0)
            snprintf(facts->module_version, sizeof facts->module_version, "%s", entry->version);
}

bool run_open_devices(struct run *run)
{
    weir_device *list[CLI_DEVICES_MAX];
    if ((run->compile ? cli_open_plain(run->config, &run->runtime)
                      : cli_open(run->config, NULL, &run->runtime)) < 0)
        return false;
    if (run->by_ranks)
        cli_devices_of_rank(run->runtime, &run->wanted);
    const weir_status status =
        cli_devices_open(run->runtime, &run->wanted, list, &run->device_count);
    for (uint32_t i = 0; i < run->device_count; i++)
        run->devices[i] = (struct run_device){
            .run = run,
            .device = list[i],
            .info = *weir_device_get_info(list[i]),
        };
    run->shown = run->devices;
    run->shown_count = run->device_count;
    note_module(run);
    return status == WEIR_OK;
}

static void note_facts(struct run *run)
{
    run->facts.sizes = *weir_arr_coc_get_sizes(run->devices[0].arr_coc);
    run->facts.weights = run->weights_path;
    run->facts.query = run->query_path;
    weir_pipeline_group_get_statistics(run->group, &run->statistics);
    for (uint32_t i = 0; i < run->statistics.stage_count && i < RUN_STAGES; i++)
        run->facts.stages[i] = run->statistics.stages[i].name;
}

// Where the processor is the device, kernels need it. Images that there are not need no thread, and
// each thread has two slots of the pipeline.
static uint32_t count_decoders(const struct run *run)
{
    const struct weir_limits *limits = weir_device_limits(run->devices[0].device);
    const uint64_t frames = run->image_count * run->repeat;
    const uint32_t most = limits->unified_memory ? 1 : RUN_DECODERS_USUAL;
    const uint32_t usual = cli_processors(most * run->device_count) / run->device_count;
    const uint64_t asked = run->decoders ? run->decoders : usual ? usual : 1;
    return (uint32_t)(asked < frames ? asked : frames);
}

bool run_create_pipelines(struct run *run, struct weir_arr_coc_params *params)
{
    if (!run->video) {
        params->prepare_threads = count_decoders(run);
        params->slot_count += params->slot_count ? 2 * params->prepare_threads : 0;
        if (params->slot_count > WEIR_PIPELINE_SLOTS_MAX)
            params->slot_count = WEIR_PIPELINE_SLOTS_MAX;
    }
    const struct weir_pipeline_group_params group = {.struct_size = sizeof group,
                                                     .label = "arr-coc"};
    if (weir_pipeline_group_create(&group, &run->group) < 0)
        return false;
    for (uint32_t i = 0; i < run->device_count; i++) {
        params->group = run->group;
        run_compile_watch(&run->devices[i], params);
        if (weir_arr_coc_create(params, &run->devices[i].arr_coc) < 0)
            return false;
    }
    note_facts(run);
    return true;
}

int run_close_devices(struct run *run, int code)
{
    for (uint32_t i = 0; i < run->device_count; i++)
        weir_arr_coc_destroy(&run->devices[i].arr_coc);
    weir_pipeline_group_destroy(&run->group);
    for (uint32_t i = run->device_count; i-- > 0;)
        code = cli_close(&run->devices[i].device, i == 0 ? &run->runtime : NULL, code);
    if (run->device_count == 0)
        code = cli_close(NULL, &run->runtime, code);
    return code;
}
